/* SPDX-License-Identifier: MIT */
#include "compact/pace.h"

/* Until something was measured, and the slowest that anybody is slowed to: what is short then is
 * not speed but room, and the wait for a job says so. */
#define RATE_UNKNOWN (64.0 * 1024 * 1024)
#define RATE_LEAST   (256.0 * 1024)

/*
 * Bytes a second for x of a tank that drains `drain`; 0: no limit.
 *     x = 0.25, drain 100 MB/s: 300 MB/s;   0.5: 100 MB/s;   0.9: 11 MB/s
 */
static double rate_at(double x, double drain)
{
    if (x <= 0)
        return 0;
    if (drain <= 0)
        drain = RATE_UNKNOWN;
    const double rate = x < 1 ? drain * (1 - x) / x : 0;
    return rate > RATE_LEAST ? rate : RATE_LEAST;
}

static double fullness(double level, double start, double stop)
{
    return stop > start ? (level - start) / (stop - start) : 0;
}

double pace_ns_per_byte(const struct pace_state *s, enum pace_reason *reason)
{
    const double memtable = (double)s->memtable_bytes;
    const double rates[PACE_REASONS] = {
        [PACE_FLUSH] = rate_at(
            fullness((double)s->unflushed, memtable, memtable * (1 + (double)s->sealed_most)),
            s->flush_rate),
        [PACE_LEVEL0] = rate_at(fullness(s->runs, s->runs_start, s->runs_stop), s->merge_rate),
        [PACE_DEBT] = rate_at(
            fullness((double)s->debt, (double)s->debt_start, (double)s->debt_stop), s->merge_rate),
    };
    *reason = PACE_FREE;
    for (int i = PACE_FLUSH; i < PACE_REASONS; i++)
        if (rates[i] > 0 && (*reason == PACE_FREE || rates[i] < rates[*reason]))
            *reason = (enum pace_reason)i;
    return *reason == PACE_FREE ? 0 : 1e9 / rates[*reason];
}

double pace_learn(double running, uint64_t bytes, uint64_t ns)
{
    if (ns == 0 || bytes == 0)
        return running;
    const double rate = (double)bytes * 1e9 / (double)ns;
    return running > 0 ? (running + rate) / 2 : rate;
}
