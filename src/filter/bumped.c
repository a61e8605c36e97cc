/* SPDX-License-Identifier: MIT
 *
 * The bumped ribbon filter: as many slots as keys, and whoever does not fit is bumped to a second,
 * small ribbon. ribbon.c pays for the worst stretch of its band everywhere; here a stretch that is
 * too full sends some of its keys away, and the overhead over log2(1/rate) falls below 1 %.
 *
 *     buckets of 512 starts   |............|####........|............|######......|
 *                                           \__/ bumped: starts below the bucket's threshold
 *
 * Buckets are filled from left to right, the keys of one from right to left. What does not fit then
 * are the first starts of a bucket, which the bucket before flows over into. So two bits a bucket
 * say which of its keys are elsewhere: those of its first 0, 64, 128 or 512 starts. About one key
 * in 200 is bumped; a query is the ribbon's plus a look at two bits.
 *
 * P. C. Dillinger, L. Huebschle-Schneider, P. Sanders, S. Walzer, "Fast succinct retrieval and
 * approximate membership using ribbon", SEA 2022. Simplified: 128 wide, one layer for the bumped.
 *
 *   payload: the blocks of the first ribbon; those of the second, which all have as many columns as
 *   the first's widest; two bits a bucket, lowest first, padded to 16 bytes.
 *   parameters: [0] columns; [1] blocks of the second; [2] blocks of the first; [3] the first block
 *   with one column more, = blocks where none has.
 */
#include <math.h>

#include "base/fetch.h"
#include "filter/banding.h"

enum { BUCKET = 512, BUCKET_KEYS_MAX = 1024, ATTEMPTS = 64, DEFAULT_BITS = 8 };

static const uint32_t thresholds[4] = {0, 64, 128, BUCKET};

struct bumped_shape {
    struct band_shape first, second;
    uint64_t starts; /* of the first */
    uint64_t buckets_at;
    uint64_t bytes;
};

static inline struct bumped_shape shape_of(const uint32_t parameters[4])
{
    struct bumped_shape s;
    s.first = (struct band_shape){
        .blocks = parameters[2], .cut = parameters[3], .columns = parameters[0]};
    s.second.columns = s.first.columns + (s.first.cut < s.first.blocks);
    s.second.blocks = s.second.cut = parameters[1];
    s.starts = band_starts(s.first.blocks);
    s.buckets_at = band_bytes(&s.first) + band_bytes(&s.second);
    s.bytes = s.buckets_at + ((s.starts / BUCKET + 1 + 63) / 64) * 16;
    return s;
}

/* Bumped are some 0.55 % of many keys, and the spread of a few; measured. */
static double second_blocks_for(double keys)
{
    const double bumped = keys * 0.0056;
    return ceil((bumped * 1.04 + 5 * sqrt(bumped + 1) + 16) / BLOCK_SLOTS);
}

static void columns_for(const tamiz_filter_policy *policy, double keys, struct bumped_shape *s)
{
    const double slots = (double)(s->first.blocks + s->second.blocks) * BLOCK_SLOTS;
    const double bits = policy->bits_per_key > 0 ? policy->bits_per_key : DEFAULT_BITS;
    if (policy->fpr > 0)
        band_columns_for_rate(policy->fpr, &s->first);
    else
        band_columns_for_bits((bits * keys - 2 * keys / BUCKET) / slots, &s->first);
}

static tamiz_status bumped_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                                struct filter_plan *plan)
{
    const double n = keys ? (double)keys : 1;
    const double blocks = ceil(n / BLOCK_SLOTS);
    if (blocks >= (double)UINT32_MAX)
        return filter_too_large(op, keys, policy->bits_per_key);
    struct bumped_shape s = {.first = {.blocks = (uint64_t)blocks},
                             .second = {.blocks = (uint64_t)second_blocks_for(n)}};
    columns_for(policy, (double)keys, &s);
    plan->parameters[0] = s.first.columns;
    plan->parameters[1] = (uint32_t)s.second.blocks;
    plan->parameters[2] = (uint32_t)s.first.blocks;
    plan->parameters[3] = (uint32_t)s.first.cut;
    plan->payload_bytes = shape_of(plan->parameters).bytes;
    plan->expected_fpr = band_rate(&s.first);
    return TAMIZ_OK;
}

static inline uint32_t threshold_of(const struct bumped_shape *s, const uint8_t *payload,
                                    uint64_t bucket)
{
    return thresholds[payload[s->buckets_at + bucket / 4] >> bucket % 4 * 2 & 3];
}

static inline struct band_key second_key(const struct bumped_shape *s, uint64_t mixed)
{
    const uint64_t again = filter_mix(mixed, FILTER_MULTIPLIER);
    return band_key_of(again, mul_high(again, band_starts(s->second.blocks)));
}

static unsigned code_for(uint64_t offset)
{
    unsigned code = 0;
    while (offset >= thresholds[code])
        code++;
    return code;
}

/* Enters keys from the last to the first until one contradicts; how many went in. */
static inline __attribute__((always_inline)) size_t
enter(struct banding *band, uint64_t starts, const uint64_t *mixed, size_t n, int64_t *filled)
{
    size_t entered = 0;
    for (; entered < n; entered++) {
        const uint64_t one = mixed[n - 1 - entered];
        filled[entered] = banding_add(band, band_key_of(one, mul_high(one, starts)));
        if (filled[entered] == BAND_CONTRADICTION)
            break;
    }
    return entered;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("bmi,bmi2"))) static size_t
enter_bmi2(struct banding *band, uint64_t starts, const uint64_t *mixed, size_t n, int64_t *filled)
{
    return enter(band, starts, mixed, n, filled);
}
#endif

static size_t enter_any(struct banding *band, uint64_t starts, const uint64_t *mixed, size_t n,
                        int64_t *filled)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (filter_has_bmi2())
        return enter_bmi2(band, starts, mixed, n, filled);
#endif
    return enter(band, starts, mixed, n, filled);
}

/* Enters the keys of one bucket, last first, and returns the code of its threshold: keys below are
 * not, or no more, in the band. */
static unsigned enter_bucket(struct banding *band, const struct bumped_shape *s, uint64_t bucket,
                             const uint64_t *mixed, size_t n)
{
    int64_t filled[BUCKET_KEYS_MAX];
    if (n > BUCKET_KEYS_MAX)
        return code_for(BUCKET - 1);
    size_t entered = enter_any(band, s->starts, mixed, n, filled);
    if (entered == n)
        return 0;
    const uint64_t first = bucket * BUCKET;
    const unsigned code = code_for(mul_high(mixed[n - 1 - entered], s->starts) - first);
    /* Rows entered last were added to no other: taking them out leaves the rest as it was. */
    while (entered && mul_high(mixed[n - entered], s->starts) < first + thresholds[code])
        if (filled[--entered] >= 0)
            band->rows[filled[entered]].low = 0;
    return code;
}

/* Enters into the second band those of a bucket that its threshold sends there. */
static bool enter_bumped(struct banding *band, const struct bumped_shape *s, uint64_t end,
                         const uint64_t *mixed, size_t n)
{
    for (size_t i = 0; i < n && mul_high(mixed[i], s->starts) < end; i++)
        if (banding_add(band, second_key(s, mixed[i])) == BAND_CONTRADICTION)
            return false;
    return true;
}

static bool enter_all(struct banding *first, struct banding *second, const struct bumped_shape *s,
                      const uint64_t *mixed, size_t n, uint8_t *payload)
{
    uint8_t *codes = payload + s->buckets_at;
    for (size_t i = 0, end; i < n; i = end) {
        const uint64_t bucket = mul_high(mixed[i], s->starts) / BUCKET;
        for (end = i + 1; end < n && mul_high(mixed[end], s->starts) / BUCKET == bucket;)
            end++;
        const unsigned code = enter_bucket(first, s, bucket, mixed + i, end - i);
        codes[bucket / 4] |= (uint8_t)(code << bucket % 4 * 2);
        if (!enter_bumped(second, s, bucket * BUCKET + thresholds[code], mixed + i, end - i))
            return false;
    }
    return true;
}

static tamiz_status bumped_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                 size_t n, uint8_t *payload)
{
    const struct bumped_shape s = shape_of(plan->parameters);
    struct banding first = {.rows = NULL}, second = {.rows = NULL};
    tamiz_status st = TAMIZ_OK;
    if (!banding_new(op->alloc, s.first.blocks * BLOCK_SLOTS, &first) ||
        !banding_new(op->alloc, s.second.blocks * BLOCK_SLOTS, &second))
        TRY(op_fail_memory(op));
    if (!enter_all(&first, &second, &s, mixed, n, payload))
        TRY(op_fail(op, TAMIZ_NOT_SUPPORTED, "filter bumped: the second ribbon is too full"));
    banding_solve(&first, &s.first, 0, s.first.blocks, payload);
    banding_solve(&second, &s.second, 0, s.second.blocks, payload + band_bytes(&s.first));
done:
    banding_free(op->alloc, &first);
    banding_free(op->alloc, &second);
    return st;
}

static tamiz_status bumped_open(struct op *op, struct filter_view *view)
{
    const struct bumped_shape s = shape_of(view->parameters);
    if (!band_shape_is_proper(&s.first) || !band_shape_is_proper(&s.second) ||
        view->payload_bytes != s.bytes)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "filter bumped: %llu bytes cannot be %u and %u blocks of %u columns",
                       (unsigned long long)view->payload_bytes, view->parameters[2],
                       view->parameters[1], view->parameters[0]);
    return TAMIZ_OK;
}

typedef bool band_ask(const struct band_shape *shape, const uint8_t *payload, struct band_key key);

/* With one way of asking a band or another. */
static inline __attribute__((always_inline)) bool ask(band_ask *holds, const struct bumped_shape *s,
                                                      const struct filter_view *view,
                                                      uint64_t mixed, struct band_key key)
{
    if (__builtin_expect(key.start % BUCKET < threshold_of(s, view->payload, key.start / BUCKET),
                         0))
        return holds(&s->second, view->payload + band_bytes(&s->first), second_key(s, mixed));
    return holds(&s->first, view->payload, key);
}

static bool bumped_may_contain(const struct filter_view *view, uint64_t hash)
{
    const struct bumped_shape s = shape_of(view->parameters);
    const uint64_t mixed = filter_mix(hash, view->seed);
    return ask(band_holds, &s, view, mixed, band_key_of(mixed, mul_high(mixed, s.starts)));
}

static inline void touch(const struct bumped_shape *s, const struct filter_view *view,
                         uint64_t start)
{
    band_touch(&s->first, view->payload, start);
    fetch_line(view->payload + s->buckets_at + start / BUCKET / 4);
}

#if defined(BAND_AVX512)
BAND_AVX512 static bool may_contain_avx512(const struct filter_view *view, uint64_t hash)
{
    const struct bumped_shape s = shape_of(view->parameters);
    const uint64_t mixed = filter_mix(hash, view->seed);
    return ask(band_holds_avx512, &s, view, mixed, band_key_of(mixed, mul_high(mixed, s.starts)));
}

/* The equations are made once, when their lines are named. */
BAND_AVX512 static void many_avx512(const struct filter_view *view, const uint64_t *hashes,
                                    size_t n, bool *maybe)
{
    enum { BATCH = 32 };
    const struct bumped_shape s = shape_of(view->parameters);
    struct band_key keys[BATCH];
    uint64_t mixed[BATCH];
    for (size_t done = 0; done < n; done += BATCH) {
        const size_t count = n - done < BATCH ? n - done : BATCH;
        for (size_t i = 0; i < count; i++) {
            mixed[i] = filter_mix(hashes[done + i], view->seed);
            keys[i] = band_key_of(mixed[i], mul_high(mixed[i], s.starts));
            touch(&s, view, keys[i].start);
        }
        for (size_t i = 0; i < count; i++)
            maybe[done + i] = ask(band_holds_avx512, &s, view, mixed[i], keys[i]);
    }
}
#endif

static void bumped_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    const struct bumped_shape s = shape_of(view->parameters);
    const uint64_t mixed = filter_mix(hash, view->seed);
    const struct band_key key = band_key_of(mixed, mul_high(mixed, s.starts));
    const bool bumped = key.start % BUCKET < threshold_of(&s, view->payload, key.start / BUCKET);
    buf_text(out, bumped ? "bumped to the second ribbon: " : "");
    band_story(bumped ? &s.second : &s.first, bumped ? second_key(&s, mixed) : key,
               bumped_may_contain(view, hash), out);
}

static void bumped_prefetch(const struct filter_view *view, uint64_t hash)
{
    const struct bumped_shape s = shape_of(view->parameters);
    touch(&s, view, mul_high(filter_mix(hash, view->seed), s.starts));
}

/* By start: those that are bumped have the second's rate, the others that of their block. */
static double bumped_rate(const struct filter_view *view)
{
    const struct bumped_shape s = shape_of(view->parameters);
    double sum = 0;
    for (uint64_t start = 0, end; start < s.starts; start = end) {
        const uint64_t bucket = start / BUCKET;
        const bool away = start % BUCKET < threshold_of(&s, view->payload, bucket);
        end =
            start + 64 < s.starts ? start + 64 : s.starts; /* thresholds and blocks are multiples */
        const unsigned columns =
            away ? s.second.columns : band_block_columns(&s.first, start / BLOCK_SLOTS);
        sum += (double)(end - start) * ldexp(1, -(int)columns);
    }
    return sum / (double)s.starts;
}

static void bumped_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    const struct bumped_shape s = shape_of(view->parameters);
    info->hashes = s.second.columns;
    info->fingerprint_bits = s.second.columns;
    info->fill = (double)view->keys / (double)((s.first.blocks + s.second.blocks) * BLOCK_SLOTS);
}

#define BUMPED_FACES                                                                               \
    .name = "bumped", .id = 11, .version = 1, .attempts = ATTEMPTS, .plan = bumped_plan,           \
    .build = bumped_build, .open = bumped_open, .prefetch = bumped_prefetch,                       \
    .story = bumped_story, .rate = bumped_rate, .describe = bumped_describe

#if defined(BAND_AVX512)
static const struct filter_family bumped_avx512 = {
    BUMPED_FACES,
    .may_contain = may_contain_avx512,
    .may_contain_many = many_avx512,
    .usable = filter_has_avx512_popcount,
};
#endif

const struct filter_family filter_bumped = {
    BUMPED_FACES,
    .may_contain = bumped_may_contain,
#if defined(BAND_AVX512)
    .better = &bumped_avx512,
#endif
};
