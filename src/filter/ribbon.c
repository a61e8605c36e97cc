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
 * The solution does not depend on the order of the keys, so they are not sorted, only dealt out to
 * their shards, of which the rows fit into a core's cache; a repeat is seen when its row says
 * nothing new.
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

/* The most shards that hashes are dealt out to without sorting: for each, a page is being written.
 */
enum { SHARDS_DEALT = 2048 };

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

/* Rows that said nothing new, as mixed hashes: repeats, or by chance. */
struct redundant {
    uint64_t *mixed;
    size_t count, room; /* there may be more than there is room for */
};

/* What entering a shard's keys needs, beside the keys. */
struct entry {
    struct banding *banding;
    uint64_t shards, starts;
    struct redundant *redundant;
};

/* Keys of a shard that are yet to enter, and how far the first of them has come. */
struct entering {
    const uint64_t *next, *end;
    struct band_key key;
};

static inline __attribute__((always_inline)) struct entering
entering_from(const struct entry *entry, const uint64_t *next, const uint64_t *end)
{
    struct entering e = {next, end, {0, {0, 0}, 0}};
    if (next < end)
        e.key = band_key_of(*next, mul_high(*next * entry->shards, entry->starts));
    return e;
}

/* One step of one row; false: it contradicts. */
static inline __attribute__((always_inline)) bool enter_step(const struct entry *entry,
                                                             struct entering *e)
{
    const int64_t at = banding_step(entry->banding, &e->key);
    if (at == BAND_GOES_ON)
        return true;
    if (__builtin_expect(at == BAND_REDUNDANT, 0)) {
        struct redundant *r = entry->redundant;
        if (r->count++ < r->room)
            r->mixed[r->count - 1] = *e->next;
    }
    *e = entering_from(entry, e->next + 1, e->end);
    return at != BAND_CONTRADICTION;
}

/* Enters all keys; false: one contradicts. A row's steps wait for each other, so two rows are on
 * their way at a time, one of either half of the shard. Which slots are filled in the end, and with
 * that the solution, is the same in whatever order rows come. */
static inline __attribute__((always_inline)) bool enter(const struct entry *entry,
                                                        const uint64_t *mixed, size_t n)
{
    struct entering a = entering_from(entry, mixed, mixed + n / 2);
    struct entering b = entering_from(entry, mixed + n / 2, mixed + n);
    while (a.next < a.end && b.next < b.end)
        if (!enter_step(entry, &a) || !enter_step(entry, &b))
            return false;
    while (a.next < a.end)
        if (!enter_step(entry, &a))
            return false;
    while (b.next < b.end)
        if (!enter_step(entry, &b))
            return false;
    return true;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("bmi,bmi2"))) static bool enter_bmi2(const struct entry *entry,
                                                           const uint64_t *mixed, size_t n)
{
    return enter(entry, mixed, n);
}
#endif

static bool enter_any(const struct entry *entry, const uint64_t *mixed, size_t n)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (filter_has_bmi2())
        return enter_bmi2(entry, mixed, n);
#endif
    return enter(entry, mixed, n);
}

/* The keys of all shards, shard by shard: of shard i up to ends[i]. */
struct dealt {
    const uint64_t *mixed;
    const size_t *ends;
    struct redundant redundant;
};

/* Solves the keys of one shard in `blocks` blocks or a few more, and says in how many. */
static bool solve_shard(struct banding *banding, const struct ribbon_shape *s, uint64_t first,
                        uint64_t blocks_max, struct dealt *keys, uint32_t shard, uint64_t *blocks,
                        uint8_t *payload)
{
    const size_t from = shard ? keys->ends[shard - 1] : 0;
    const size_t redundant = keys->redundant.count;
    for (int tries = 0; tries < SHARD_TRIES && *blocks <= blocks_max; tries++, ++*blocks) {
        const struct entry entry = {banding, s->shards, band_starts(*blocks), &keys->redundant};
        banding_clear(banding);
        keys->redundant.count = redundant;
        if (enter_any(&entry, keys->mixed + from, keys->ends[shard] - from)) {
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
static bool solve_each(struct banding *banding, uint64_t room, const struct ribbon_shape *s,
                       struct dealt *keys, uint8_t *payload)
{
    uint64_t first = 0;
    for (uint32_t shard = 0; shard < s->shards; shard++) {
        const bool last = shard + 1 == s->shards;
        const uint64_t left = s->band.blocks - first;
        uint64_t blocks =
            last ? left : least_blocks(keys->ends[shard] - (shard ? keys->ends[shard - 1] : 0));
        store_u32(payload + s->shards_at + 4 * (uint64_t)shard, (uint32_t)first);
        if (blocks == 0 || blocks > room ||
            !solve_shard(banding, s, first, left < room ? left : room, keys, shard, &blocks,
                         payload))
            return false;
        first += blocks;
    }
    store_u32(payload + s->shards_at + 4 * (uint64_t)s->shards, (uint32_t)s->band.blocks);
    return true;
}

/* TAMIZ_NOT_SUPPORTED: a contradiction. */
static tamiz_status solve_all(const struct alloc *alloc, const struct ribbon_shape *s,
                              struct dealt *keys, uint8_t *payload)
{
    const uint64_t mean = s->band.blocks / s->shards;
    const uint64_t room = s->shards == 1 ? s->band.blocks : mean * 3 / 2;
    struct banding banding;
    if (!banding_new(alloc, room * BLOCK_SLOTS, &banding))
        return TAMIZ_OUT_OF_MEMORY;
    const bool solved = solve_each(&banding, room, s, keys, payload);
    banding_free(alloc, &banding);
    return solved ? TAMIZ_OK : TAMIZ_NOT_SUPPORTED;
}

static tamiz_status ribbon_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                 size_t n, uint8_t *payload)
{
    const struct ribbon_shape s = shape_of(plan->parameters);
    size_t *ends = mem_new_array(op->alloc, s.shards, sizeof *ends), end = 0;
    struct dealt keys = {mixed, ends, {NULL, 0, 0}};
    if (!ends)
        return op_fail_memory(op);
    for (uint32_t shard = 0; shard < s.shards; shard++) {
        while (end < n && mul_high(mixed[end], s.shards) == shard)
            end++;
        ends[shard] = end;
    }
    const tamiz_status st = solve_all(op->alloc, &s, &keys, payload);
    mem_free(op->alloc, ends, s.shards * sizeof *ends);
    if (st == TAMIZ_OUT_OF_MEMORY)
        return op_fail_memory(op);
    return st == TAMIZ_OK
               ? TAMIZ_OK
               : op_fail(op, st, "filter ribbon: the equations of %zu keys contradict each other",
                         n);
}

/* Deals the hashes out to their shards, in the order they come; ends[i]: where those of i end. */
static void deal(const struct filter_plan *plan, uint64_t shards, const uint64_t *hashes, size_t n,
                 uint64_t *mixed, size_t *ends)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        ends[mul_high(filter_mix(hashes[i], plan->seed), shards)]++;
    for (uint64_t shard = 0; shard < shards; shard++) {
        const size_t count = ends[shard];
        ends[shard] = at;
        at += count;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t x = filter_mix(hashes[i], plan->seed);
        mixed[ends[mul_high(x, shards)]++] = x;
    }
}

/* Puts the hashes behind redundant rows, mixed so far, into their place: into `seen`. */
static size_t name_redundant(const struct filter_plan *plan, const uint64_t *hashes, size_t n,
                             const struct redundant *redundant, uint64_t *seen, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < n && redundant->count; i++) {
        const uint64_t x = filter_mix(hashes[i], plan->seed);
        bool among = false;
        for (size_t j = 0; j < redundant->count; j++)
            among |= redundant->mixed[j] == x;
        if (among && count++ < room)
            seen[count - 1] = hashes[i];
    }
    return count;
}

/* Unsorted: in a shard the order does not matter. What a shard's blocks are counts on there being
 * no repeats, so with any, or many that look like one, sorting is left to do it. */
static size_t ribbon_build_loose(const struct alloc *alloc, const struct filter_plan *plan,
                                 const uint64_t *hashes, size_t n, uint8_t *payload, uint64_t *seen,
                                 size_t room)
{
    enum { REDUNDANT_MAX = 16 };
    const struct ribbon_shape s = shape_of(plan->parameters);
    uint64_t redundant[REDUNDANT_MAX];
    size_t known = SIZE_MAX;
    if (plan->keys != n || s.shards > SHARDS_DEALT)
        return SIZE_MAX;
    const size_t mixed_size = n * sizeof *hashes, ends_size = s.shards * sizeof(size_t);
    uint64_t *mixed = mem_new_aligned(alloc, mixed_size, FILTER_ALIGN);
    size_t *ends = mem_new_array(alloc, s.shards, sizeof *ends);
    struct dealt keys = {mixed, ends, {redundant, 0, REDUNDANT_MAX}};
    if (mixed && ends) {
        deal(plan, s.shards, hashes, n, mixed, ends);
        const bool solved = solve_all(alloc, &s, &keys, payload) == TAMIZ_OK;
        if (keys.redundant.count > REDUNDANT_MAX)
            known = room + 1;
        else if (solved)
            known = name_redundant(plan, hashes, n, &keys.redundant, seen, room);
    }
    mem_free(alloc, ends, ends_size);
    mem_free_aligned(alloc, mixed, mixed_size, FILTER_ALIGN);
    return known;
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
    .build = ribbon_build, .build_loose = ribbon_build_loose, .open = ribbon_open,                 \
    .prefetch = ribbon_prefetch, .story = ribbon_story, .rate = ribbon_rate,                       \
    .describe = ribbon_describe

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
