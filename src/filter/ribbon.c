/* SPDX-License-Identifier: MIT
 *
 * The ribbon filter: a key is a linear equation over 128 neighbouring unknowns, and the filter is
 * the solution (banding.h, where the idea is drawn). An absent key's equation holds by chance: the
 * rate is 2^-columns. Where fuse needs 12 % more than the bound of log2(1/rate) bits, this needs
 * 3 to 4 %, for a slower build and a query that reads up to 2 * columns words side by side.
 *
 * The equations cannot be solved where too many keys start close together, and how much room makes
 * that rare grows with the number of keys. So large sets are cut into shards of some 32,768 keys,
 * by the upper bits of the hash, and each has as many blocks as its own keys turned out to need:
 *
 *     shards       |    0    |     1     |   2    | ...       of about as many keys
 *     first block  0         258         519      775
 *
 * Bits per key need not be whole: a part of the blocks has one column more.
 *
 * P. C. Dillinger, S. Walzer, "Ribbon filter: practically smaller than Bloom and xor", 2021.
 *
 *   payload: blocks of 16 bytes a column (banding.h); for each shard, and for one that is not there
 *   behind the last, its first block (4 bytes).
 *   parameters: [0] columns; [1] shards; [2] blocks; [3] the first block with one column more,
 *   = blocks where none has.
 */
#include <math.h>

#include "filter/banding.h"

enum { ATTEMPTS = 64, DEFAULT_BITS = 7, SHARD_KEYS = 32768, SHARD_TRIES = 8 };

/* Slots that `keys` keys fit into nine times of ten; measured. `eager`: a little less, for a shard,
 * which can have a block more and try again. */
static double slots_for(double keys, bool eager)
{
    const double spare = 0.030 + 0.011 * log10(fmax(keys, 1) / 1e5);
    return keys * (1 + fmax(spare, 0.024) - (eager ? 0.002 : 0)) + (keys < 1000 ? 4 : 0);
}

static double shards_for(double keys)
{
    return fmax(floor(keys / SHARD_KEYS), 1);
}

/* Of several shards: rounding up costs each half a block, and some need more than they thought. */
static double blocks_for(double keys)
{
    const double shards = shards_for(keys);
    if (shards == 1)
        return ceil(slots_for(keys, false) / BLOCK_SLOTS);
    const double each = slots_for(keys / shards, true) / BLOCK_SLOTS;
    return ceil(shards * (each + 0.7) + 1.2 * sqrt(shards));
}

struct ribbon_shape {
    struct band_shape band;
    uint32_t shards;
    uint64_t shards_at;
};

static inline struct ribbon_shape shape_of(const uint32_t parameters[4])
{
    struct ribbon_shape s = {
        .band = {.blocks = parameters[2], .cut = parameters[3], .columns = parameters[0]},
        .shards = parameters[1]};
    s.shards_at = band_bytes(&s.band);
    return s;
}

static inline uint64_t bytes_of(const struct ribbon_shape *s)
{
    return s->shards_at + ((uint64_t)s->shards + 1) * 4;
}

static tamiz_status ribbon_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                                struct filter_plan *plan)
{
    const double n = keys ? (double)keys : 1, blocks = blocks_for(n);
    if (blocks >= (double)UINT32_MAX)
        return filter_too_large(op, keys, policy->bits_per_key);
    struct band_shape band = {.blocks = (uint64_t)blocks};
    const double bits = policy->bits_per_key > 0 ? policy->bits_per_key : DEFAULT_BITS;
    /* The last shard is a little larger than the others, and has more of the narrower blocks or
     * more of the wider: what that can change is held back. */
    if (policy->fpr > 0)
        band_columns_for_rate(policy->fpr * (shards_for(n) > 1 ? 0.997 : 1), &band);
    else
        band_columns_for_bits(bits * n / (blocks * BLOCK_SLOTS), &band);
    plan->parameters[0] = band.columns;
    plan->parameters[1] = (uint32_t)shards_for(n);
    plan->parameters[2] = (uint32_t)band.blocks;
    plan->parameters[3] = (uint32_t)band.cut;
    const struct ribbon_shape s = shape_of(plan->parameters);
    plan->payload_bytes = bytes_of(&s);
    plan->expected_fpr = band_rate(&band);
    return TAMIZ_OK;
}

/* Keys of a shard that are yet to enter, and how far the first of them has come. */
struct entering {
    const uint64_t *next, *end;
    struct band_key key;
};

static inline __attribute__((always_inline)) struct entering
entering_from(const uint64_t *next, const uint64_t *end, uint64_t shards, uint64_t starts)
{
    struct entering e = {next, end, {0, {0, 0}, 0}};
    if (next < end)
        e.key = band_key_of(*next, mul_high(*next * shards, starts));
    return e;
}

/* One step of one row; false: it contradicts. */
static inline __attribute__((always_inline)) bool
enter_step(struct banding *banding, struct entering *e, uint64_t shards, uint64_t starts)
{
    const int64_t at = banding_step(banding, &e->key);
    if (at != BAND_GOES_ON)
        *e = entering_from(e->next + 1, e->end, shards, starts);
    return at != BAND_CONTRADICTION;
}

/* Enters all keys; false: one contradicts. A row's steps wait for each other, so two rows are on
 * their way at a time, one of either half of the shard. Which slots are filled in the end, and with
 * that the solution, is the same in whatever order rows come. */
static inline __attribute__((always_inline)) bool
enter(struct banding *banding, uint64_t shards, uint64_t starts, const uint64_t *mixed, size_t n)
{
    struct entering a = entering_from(mixed, mixed + n / 2, shards, starts);
    struct entering b = entering_from(mixed + n / 2, mixed + n, shards, starts);
    while (a.next < a.end && b.next < b.end)
        if (!enter_step(banding, &a, shards, starts) || !enter_step(banding, &b, shards, starts))
            return false;
    while (a.next < a.end)
        if (!enter_step(banding, &a, shards, starts))
            return false;
    while (b.next < b.end)
        if (!enter_step(banding, &b, shards, starts))
            return false;
    return true;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("bmi,bmi2"))) static bool enter_bmi2(struct banding *banding, uint64_t shards,
                                                           uint64_t starts, const uint64_t *mixed,
                                                           size_t n)
{
    return enter(banding, shards, starts, mixed, n);
}
#endif

static bool enter_any(struct banding *banding, uint64_t shards, uint64_t starts,
                      const uint64_t *mixed, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (filter_has_bmi2())
        return enter_bmi2(banding, shards, starts, mixed, n);
#endif
    return enter(banding, shards, starts, mixed, n);
}

/* Solves the keys of one shard in `blocks` blocks or a few more, and says in how many. */
static bool solve_shard(struct banding *banding, const struct ribbon_shape *s, uint64_t first,
                        uint64_t blocks_max, const uint64_t *mixed, size_t n, uint64_t *blocks,
                        uint8_t *payload)
{
    for (int tries = 0; tries < SHARD_TRIES && *blocks <= blocks_max; tries++, ++*blocks) {
        banding_clear(banding);
        if (enter_any(banding, s->shards, band_starts(*blocks), mixed, n)) {
            banding_solve(banding, &s->band, first, *blocks, payload);
            return true;
        }
    }
    return false;
}

static uint64_t least_blocks(size_t keys)
{
    return (uint64_t)ceil(slots_for((double)keys, true) / BLOCK_SLOTS);
}

/* One shard after the other, each behind the one before; the last has what is left. */
static bool solve_all(struct banding *banding, uint64_t room, const struct ribbon_shape *s,
                      const uint64_t *mixed, size_t n, uint8_t *payload)
{
    uint64_t first = 0;
    size_t i = 0, end = 0;
    for (uint32_t shard = 0; shard < s->shards; shard++, i = end) {
        while (end < n && mul_high(mixed[end], s->shards) == shard)
            end++;
        const bool last = shard + 1 == s->shards;
        const uint64_t left = s->band.blocks - first;
        uint64_t blocks = last ? left : least_blocks(end - i);
        store_u32(payload + s->shards_at + 4 * (uint64_t)shard, (uint32_t)first);
        if (blocks == 0 || blocks > room ||
            !solve_shard(banding, s, first, left < room ? left : room, mixed + i, end - i, &blocks,
                         payload))
            return false;
        first += blocks;
    }
    store_u32(payload + s->shards_at + 4 * (uint64_t)s->shards, (uint32_t)s->band.blocks);
    return true;
}

static tamiz_status ribbon_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                 size_t n, uint8_t *payload)
{
    const struct ribbon_shape s = shape_of(plan->parameters);
    const uint64_t mean = s.band.blocks / s.shards;
    const uint64_t room = s.shards == 1 ? s.band.blocks : mean * 3 / 2;
    struct banding banding;
    if (!banding_new(op->alloc, room * BLOCK_SLOTS, &banding))
        return op_fail_memory(op);
    const bool solved = solve_all(&banding, room, &s, mixed, n, payload);
    banding_free(op->alloc, &banding);
    return solved ? TAMIZ_OK
                  : op_fail(op, TAMIZ_NOT_SUPPORTED,
                            "filter ribbon: the equations of %zu keys contradict each other", n);
}

static inline uint64_t shard_first(const struct ribbon_shape *s, const uint8_t *payload,
                                   uint64_t shard)
{
    return load_u32(payload + s->shards_at + 4 * shard);
}

static tamiz_status ribbon_open(struct op *op, struct filter_view *view)
{
    const struct ribbon_shape s = shape_of(view->parameters);
    if (!band_shape_is_proper(&s.band) || s.shards == 0 || view->payload_bytes != bytes_of(&s))
        return op_fail(op, TAMIZ_CORRUPTION,
                       "filter ribbon: %llu bytes cannot be %u blocks of %u columns, more from %u",
                       (unsigned long long)view->payload_bytes, view->parameters[2],
                       view->parameters[0], view->parameters[3]);
    bool ascending = shard_first(&s, view->payload, 0) == 0 &&
                     shard_first(&s, view->payload, s.shards) == s.band.blocks;
    for (uint64_t shard = 0; ascending && shard < s.shards; shard++)
        ascending =
            shard_first(&s, view->payload, shard) < shard_first(&s, view->payload, shard + 1);
    if (!ascending)
        return op_fail(op, TAMIZ_CORRUPTION, "filter ribbon: shards overlap");
    return TAMIZ_OK;
}

static inline uint64_t start_of(const struct ribbon_shape *s, const uint8_t *payload,
                                uint64_t mixed)
{
    const uint64_t shard = mul_high(mixed, s->shards);
    const uint64_t first = shard_first(s, payload, shard);
    const uint64_t starts = band_starts(shard_first(s, payload, shard + 1) - first);
    return first * BLOCK_SLOTS + mul_high(mixed * s->shards, starts);
}

static bool ribbon_may_contain(const struct filter_view *view, uint64_t hash)
{
    const struct ribbon_shape s = shape_of(view->parameters);
    const uint64_t mixed = filter_mix(hash, view->seed);
    return band_holds(&s.band, view->payload,
                      band_key_of(mixed, start_of(&s, view->payload, mixed)));
}

#if defined(BAND_AVX512)
BAND_AVX512 static bool may_contain_avx512(const struct filter_view *view, uint64_t hash)
{
    const struct ribbon_shape s = shape_of(view->parameters);
    const uint64_t mixed = filter_mix(hash, view->seed);
    return band_holds_avx512(&s.band, view->payload,
                             band_key_of(mixed, start_of(&s, view->payload, mixed)));
}

/* The equations are made once, when their lines are named. */
BAND_AVX512 static void many_avx512(const struct filter_view *view, const uint64_t *hashes,
                                    size_t n, bool *maybe)
{
    enum { BATCH = 32 };
    const struct ribbon_shape s = shape_of(view->parameters);
    struct band_key keys[BATCH];
    for (size_t done = 0; done < n; done += BATCH) {
        const size_t count = n - done < BATCH ? n - done : BATCH;
        for (size_t i = 0; i < count; i++) {
            const uint64_t mixed = filter_mix(hashes[done + i], view->seed);
            keys[i] = band_key_of(mixed, start_of(&s, view->payload, mixed));
            band_touch(&s.band, view->payload, keys[i].start);
        }
        for (size_t i = 0; i < count; i++)
            maybe[done + i] = band_holds_avx512(&s.band, view->payload, keys[i]);
    }
}
#endif

static void ribbon_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    const struct ribbon_shape s = shape_of(view->parameters);
    const uint64_t mixed = filter_mix(hash, view->seed);
    band_story(&s.band, band_key_of(mixed, start_of(&s, view->payload, mixed)),
               ribbon_may_contain(view, hash), out);
}

static void ribbon_prefetch(const struct filter_view *view, uint64_t hash)
{
    const struct ribbon_shape s = shape_of(view->parameters);
    band_touch(&s.band, view->payload, start_of(&s, view->payload, filter_mix(hash, view->seed)));
}

static double ribbon_rate(const struct filter_view *view)
{
    const struct ribbon_shape s = shape_of(view->parameters);
    double sum = 0;
    for (uint64_t shard = 0; shard < s.shards; shard++) {
        const uint64_t first = shard_first(&s, view->payload, shard);
        struct band_shape part = s.band;
        part.blocks = shard_first(&s, view->payload, shard + 1) - first;
        part.cut = s.band.cut > first ? s.band.cut - first : 0;
        sum += band_rate(&part);
    }
    return sum / s.shards;
}

static void ribbon_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    const struct ribbon_shape s = shape_of(view->parameters);
    info->hashes = band_block_columns(&s.band, s.band.blocks - 1);
    info->fingerprint_bits = info->hashes;
    info->fill = (double)view->keys / (double)(s.band.blocks * BLOCK_SLOTS);
}

#define RIBBON_FACES                                                                               \
    .name = "ribbon", .id = 10, .version = 1, .attempts = ATTEMPTS, .plan = ribbon_plan,           \
    .build = ribbon_build, .open = ribbon_open, .prefetch = ribbon_prefetch,                       \
    .story = ribbon_story, .rate = ribbon_rate, .describe = ribbon_describe

#if defined(BAND_AVX512)
static const struct filter_family ribbon_avx512 = {
    RIBBON_FACES,
    .may_contain = may_contain_avx512,
    .may_contain_many = many_avx512,
    .usable = filter_has_avx512_popcount,
};
#endif

const struct filter_family filter_ribbon = {
    RIBBON_FACES,
    .may_contain = ribbon_may_contain,
#if defined(BAND_AVX512)
    .better = &ribbon_avx512,
#endif
};
