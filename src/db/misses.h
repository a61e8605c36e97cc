/* SPDX-License-Identifier: MIT
 *
 * The clean miss: a read that asks the filter of one table of every run, and all of them deny the
 * key. Most reads of absent keys are that. Its steps are always the same for one view: a negative
 * for each run. So it is counted as one, with the view, in the reader's own cache line; how many
 * negatives of which level that makes is worked out when somebody asks, or when the view goes.
 * Counting each of its steps by itself cost 7 % of such a read (docs/adr/0019-clean-misses.md).
 *
 * The theory beside it is the expected false positives of the filters that were asked, tables that
 * differ a little within a run. One read in MISSES_EXPECT of a seat, its first among them, looks
 * them up, and the others are taken to have met the same on average; of the sum each level gets the
 * part that the mean rates of its runs have. That wants filters that are alike within a run, and
 * where they are not, as after a change of options, each step is counted.
 */
#ifndef TAMIZ_DB_MISSES_H
#define TAMIZ_DB_MISSES_H

#include "env/epoch.h"
#include "version/version.h"

enum { MISSES_EXPECT = 64 };

/* Written by whoever sits there; read by any thread. */
struct miss_seat {
    _Alignas(64) counter reads;
    counter expected_fp_1e9; /* of all filters that one in MISSES_EXPECT of them asked */
    bool hopeful;            /* its last read was none: the next one may find its key, too.
                                Of who sits there alone */
};

struct misses {
    bool alike; /* else nothing is counted here */
    struct miss_seat seats[EPOCH_SLOTS];
};

void misses_init(struct misses *m, const struct version *v);

/* true: misses_expect() is to be called for this one. */
static inline bool misses_count(struct miss_seat *seat)
{
#ifdef TAMIZ_NO_LEDGER
    (void)seat;
    return false;
#else
    const uint64_t before = counter_get(&seat->reads);
    counter_add(&seat->reads, 1);
    return before % MISSES_EXPECT == 0;
#endif
}

/* The sum over the filters that the read asked. */
static inline void misses_expect(struct miss_seat *seat, uint64_t expected_fp_1e9)
{
    counter_add(&seat->expected_fp_1e9, expected_fp_1e9);
}

/* Adds what was counted to the levels of `to`, as if step by step. */
void misses_sum(const struct misses *m, const struct version *v, struct counters *to);

#endif
