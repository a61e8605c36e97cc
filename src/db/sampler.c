/* SPDX-License-Identifier: MIT */
#include "db/sampler.h"

#include <math.h>
#include <stdlib.h>

enum {
    RATE_READS = 2048,  /* followed at one rate, until it is halved        */
    ONE_IN_MOST = 4096, /* reads for each that is followed, in the long run … */
    SPACE_MOST = 256,   /* … and cells */
    GHOST_LEAST = 2048, /* names */
    CELL_BLOCKS = 4,    /* of all data in a cell */
    CELLS_LEAST = 32,   /* that are followed */
    SEEN_ONE_IN = 50,   /* reads that meet a new block: nearly all were met before */
};

/* ---- choosing the numbers ---- */

/* The largest power of two that is not above `x`: 1..most. */
static uint32_t power_of_two(double x, uint32_t most)
{
    uint32_t p = 1;
    while (p < most && (double)p * 2 <= x)
        p *= 2;
    return p;
}

/* The whole range of keys, borrowed from the version. */
static void key_range(const struct version *v, struct slice *smallest, struct slice *largest)
{
    *smallest = v->runs[0].tables[0]->smallest;
    *largest = v->runs[0].tables[0]->largest;
    for (uint32_t r = 0; r < v->run_count; r++) {
        const struct run *run = &v->runs[r];
        const struct slice low = run->tables[0]->smallest,
                           high = run->tables[run->count - 1]->largest;
        if (slice_compare(low, *smallest) < 0)
            *smallest = low;
        if (slice_compare(high, *largest) > 0)
            *largest = high;
    }
}

static uint64_t table_bytes(const struct version *v)
{
    uint64_t sum = 0;
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        sum += v->level_bytes[i];
    return sum;
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Fences of all loaded tables, evenly, as distances. */
static void fences_take(struct sampler *s, const struct version *v)
{
    const uint64_t lowest = atomic_load_explicit(&s->lowest, memory_order_relaxed);
    const size_t skip = sampler_load(&s->skip);
    const uint64_t stride = (uint64_t)(s->blocks / SAMPLER_FENCES) + 1;
    uint64_t block = 0;
    s->fence_count = 0;
    for (uint32_t t = 0; t < v->table_count; t++) {
        const struct table *table = v->tables[t]->table;
        for (uint32_t i = 0; table_is_loaded(table) && i < table_blocks(table); i++) {
            if (block++ % stride || s->fence_count == SAMPLER_FENCES)
                continue;
            const uint64_t at = table_fence8(table, i, skip);
            s->fences[s->fence_count++] = at > lowest ? at - lowest : 0;
        }
    }
    qsort(s->fences, s->fence_count, sizeof *s->fences, compare_u64);
}

/* In how many cells the fences are, were they cut so. */
static uint32_t cells_at(const struct sampler *s, uint32_t shift)
{
    uint32_t count = s->fence_count > 0;
    for (uint32_t i = 1; i < s->fence_count; i++)
        count += s->fences[i] >> shift != s->fences[i - 1] >> shift;
    return count;
}

/* Keys seldom fill their space evenly (digits are ten of 256 bytes), so the cells are cut by the
 * fences of the tables: about CELL_BLOCKS of all blocks in each, as far as these can tell. */
static void cut_cells(struct sampler *s, const struct version *v)
{
    fences_take(s, v);
    const double by_blocks = s->blocks / CELL_BLOCKS, by_fences = s->fence_count / 2.0;
    const double wanted = by_blocks < by_fences ? by_blocks : by_fences;
    uint32_t shift = 63;
    while (shift > 0 && cells_at(s, shift) < wanted)
        shift--;
    s->cells = cells_at(s, shift);
    const uint32_t most = power_of_two(s->cells / CELLS_LEAST, SPACE_MOST);
    if (s->one_in_space_most > most)
        s->one_in_space_most = most;
    atomic_store_explicit(&s->shift, shift, memory_order_relaxed);
}

/* Where cells are counted from. */
static void take_range(struct sampler *s, const struct version *v)
{
    struct slice smallest, largest;
    key_range(v, &smallest, &largest);
    const size_t skip = slice_common_prefix(smallest, largest);
    atomic_store_explicit(&s->skip, (uint32_t)skip, memory_order_relaxed);
    atomic_store_explicit(&s->lowest, slice_prefix8(smallest, skip), memory_order_relaxed);
}

/* Bytes that a block takes in the cache: as the loaded tables' blocks are, on average. */
static double block_memory(const struct sampler *s, const struct version *v)
{
    double bytes = 0, blocks = 0, entries = 0;
    for (uint32_t i = 0; i < v->table_count; i++) {
        const struct table *t = v->tables[i]->table;
        if (!table_is_loaded(t))
            continue;
        const struct table_properties *p = table_properties(t);
        const double n = (double)p->data_blocks, most = (double)p->block_raw_max;
        double raw = n > 0 ? (double)p->data_bytes / n : 0;
        raw = raw > (double)s->block_bytes ? raw : (double)s->block_bytes; /* may be packed */
        bytes += n * (raw < most ? raw : most);
        entries += (double)p->entries;
        blocks += n;
    }
    if (blocks == 0)
        return (double)cached_block_cost((size_t)s->block_bytes, 0);
    return (double)cached_block_cost((size_t)(bytes / blocks), (size_t)(entries / blocks));
}

/* Blocks that the cache holds: it keeps a sixteenth free (table/cache.c). */
static double cached_blocks(double capacity, double block)
{
    const double ahead = capacity / 16 > block ? capacity / 16 : block;
    return floor((capacity - block >= ahead ? capacity - ahead : capacity) / block);
}

/* How the rate is made of space and time. */
static void apply_rate(struct sampler *s, const struct version *v)
{
    if (s->one_in == 2 && s->one_in_space == 1)
        cut_cells(s, v);
    s->one_in_space = s->one_in < s->one_in_space_most ? s->one_in : s->one_in_space_most;
    const uint32_t in_time = s->one_in / s->one_in_space;
    const uint32_t end =
        s->one_in_space > 1 ? (uint32_t)((UINT64_C(1) << 32) / s->one_in_space) : 0;
    s->followed = s->missed = 0;
    atomic_store_explicit(&s->cells_end, end, memory_order_relaxed);
    atomic_store_explicit(&s->period, in_time > 1 ? SAMPLER_ROW * in_time : 0,
                          memory_order_relaxed);
}

bool sampler_configure(struct sampler *s, const struct version *v)
{
    const uint64_t bytes = s->bytes = table_bytes(v);
    if (v->run_count == 0 || (s->configured_bytes && bytes <= s->configured_bytes * 2 &&
                              bytes >= s->configured_bytes / 2))
        return false;
    const double block = block_memory(s, v), blocks = (double)bytes / block + 1;
    take_range(s, v);
    s->blocks = blocks;
    s->cached = cached_blocks((double)s->cache_bytes, block);
    s->all_fits = s->cached >= blocks * 1.05;
    s->one_in_space_most =
        s->all_fits ? SPACE_MOST : power_of_two(s->cached / GHOST_LEAST, SPACE_MOST);
    s->configured_bytes = bytes;
    s->one_in = s->one_in_space = 1;
    apply_rate(s, v);
    return true;
}

/* The rate for the reads to come, after RATE_READS at this one. Where all fits, what counts are
 * first reads of blocks; most of those are over before less time is looked at, and where new ones
 * begin, all of it is once more. */
static uint32_t next_rate(const struct sampler *s)
{
    const bool in_space = s->one_in < s->one_in_space_most;
    if (s->all_fits && !in_space && s->missed * SEEN_ONE_IN > RATE_READS)
        return s->missed * SEEN_ONE_IN > 2 * RATE_READS ? s->one_in_space : s->one_in;
    return s->one_in < ONE_IN_MOST ? s->one_in * 2 : s->one_in;
}

bool sampler_count(struct sampler *s, const struct version *v, bool missed)
{
    s->missed += missed;
    if (++s->followed < RATE_READS)
        return false;
    const uint32_t next = next_rate(s);
    const bool changed = next != s->one_in;
    s->one_in = next;
    if (changed)
        apply_rate(s, v);
    s->followed = s->missed = 0;
    return changed;
}

/* ---- what its numbers mean ---- */

uint64_t sampler_quiet(const struct sampler *s, uint64_t gets)
{
    const uint32_t period = sampler_load(&s->period);
    uint64_t until = gets + 1;
    if (!sampler_in_row(s, until))
        until += period - sampler_place(until, period);
    if (s->audit && until > gets - gets % s->audit + s->audit)
        until = gets - gets % s->audit + s->audit;
    return until < gets + SAMPLER_QUIET ? until : gets + SAMPLER_QUIET;
}

double sampler_share(struct sampler *s, const struct run *run)
{
    if (s->one_in_space <= 1)
        return 1;
    struct sampler_share *known = &s->shares[(run->bytes >> 12) % SAMPLER_SHARES];
    if (known->run_bytes == run->bytes && known->bytes == s->bytes &&
        known->one_in_space == s->one_in_space)
        return known->share;
    const double blocks = s->blocks * (double)run->bytes / (double)(s->bytes + 1);
    const double cells = 1 + s->cells / (blocks + 1);
    *known = (struct sampler_share){run->bytes, s->bytes, s->one_in_space,
                                    1 - pow(1 - 1.0 / s->one_in_space, cells)};
    return known->share;
}
