/* SPDX-License-Identifier: MIT */
#include "compact/toll.h"

/* Measured at 10 M keys in memory; what counts is what they are to each other. Where blocks come
 * from the device a run costs more than that, by its filter's mistakes: then merges are late, but
 * never without need. */
#define GET_NS   50.0  /* one run more                                */
#define SEEK_NS  700.0 /* one run more, with the next ten keys        */
#define BYTE_NS  4.0   /* read, merged, written                       */
#define MERGE_NS 10e6  /* files made, synced and removed              */
#define MORE     1.25  /* than what bought nothing, to be asked again */

/* A counter that began anew says nothing. */
static double since(uint64_t now, uint64_t then)
{
    return now > then ? (double)(now - then) : 0;
}

void toll_look(struct toll *t, struct toll_reads now, uint32_t runs)
{
    const double price =
        since(now.gets, t->seen.gets) * GET_NS + since(now.seeks, t->seen.seeks) * SEEK_NS;
    t->seen = now;
    if (runs > 1)
        t->paid_ns += price * (runs - 1);
}

/* 10 ms and 4 ns a byte:  50 ms: 10 MB;  10 ms, and all below: 0 */
uint64_t toll_buys(const struct toll *t)
{
    if (t->paid_ns <= MERGE_NS || t->paid_ns < t->vain_ns * MORE)
        return 0;
    return (uint64_t)((t->paid_ns - MERGE_NS) / BYTE_NS);
}

void toll_in_vain(struct toll *t)
{
    t->vain_ns = t->paid_ns;
}

void toll_spend(struct toll *t, uint64_t bytes)
{
    const double price = MERGE_NS + (double)bytes * BYTE_NS;
    t->paid_ns = t->paid_ns > price ? t->paid_ns - price : 0;
    t->vain_ns = 0;
}

void toll_changed(struct toll *t)
{
    t->vain_ns = 0;
}

void toll_forget(struct toll *t)
{
    t->paid_ns = t->vain_ns = 0;
}
