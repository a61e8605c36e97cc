/* SPDX-License-Identifier: MIT */
#include "db/misses.h"

#include <math.h>

enum { ALIKE_PERCENT = 5, SMALL_PART = 64 /* of a run: tables that need not be alike */ };

static double bits_per_key(uint64_t bytes, uint64_t keys)
{
    return keys ? (double)bytes * 8 / (double)keys : 0;
}

/* Of filters asked by line, which are of one family, bits a key decide the rate. */
static bool run_is_alike(const struct run *run)
{
    uint64_t keys = 0, bytes = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        keys += run->tables[i]->keys;
        bytes += run->tables[i]->filter_bytes;
    }
    const double mean = bits_per_key(bytes, keys);
    for (uint32_t i = 0; i < run->count; i++) {
        const struct table_meta *meta = run->tables[i];
        const double off = bits_per_key(meta->filter_bytes, meta->keys) - mean;
        if (meta->keys > keys / SMALL_PART && fabs(off) * 100 > mean * ALIKE_PERCENT)
            return false;
    }
    return true;
}

void misses_init(struct misses *m, const struct version *v)
{
    *m = (struct misses){.alike = true};
    for (uint32_t r = 0; m->alike && r < v->run_count; r++)
        m->alike = run_is_alike(&v->runs[r]);
}

/* Mean over the run's keys, as far as its tables were used. */
static double expected_rate(const struct run *run)
{
    double sum = 0, keys = 0;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct table_face *face = table_face(run->handles[i]);
        if (!table_is_loaded(run->handles[i]))
            continue;
        sum += (double)face->expected_fp_1e9 * (double)run->tables[i]->keys;
        keys += (double)run->tables[i]->keys;
    }
    return keys > 0 ? sum / keys : 0;
}

static void share_out(const struct version *v, double expected, struct counters *to)
{
    double rates[TAMIZ_LEVELS] = {0}, all = 0;
    for (uint32_t r = 0; r < v->run_count; r++) {
        const double rate = expected_rate(&v->runs[r]);
        rates[v->runs[r].level] += rate;
        all += rate;
    }
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        if (rates[i] > 0)
            counter_add(&to->level[i].expected_fp_1e9, (uint64_t)(expected * rates[i] / all + 0.5));
}

/* Of `reads` reads, from those that were looked at. */
static double expected_of(const struct miss_seat *seat, uint64_t reads)
{
    const uint64_t looked_at = (reads + MISSES_EXPECT - 1) / MISSES_EXPECT;
    const double sum = (double)counter_get(&seat->expected_fp_1e9);
    return looked_at ? sum * (double)reads / (double)looked_at : 0;
}

void misses_sum(const struct misses *m, const struct version *v, struct counters *to)
{
    uint64_t reads = 0;
    double expected = 0;
    for (size_t i = 0; i < EPOCH_SLOTS; i++) {
        const uint64_t here = counter_get(&m->seats[i].reads);
        reads += here;
        expected += expected_of(&m->seats[i], here);
    }
    if (!reads)
        return;
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        counter_add(&to->level[i].steps[TAMIZ_STEP_FILTER_NEGATIVE], reads * v->level_runs[i]);
    share_out(v, expected, to);
}
