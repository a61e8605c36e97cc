/* SPDX-License-Identifier: MIT
 *
 * The plain Bloom filter: m bits, k of them set for each key, anywhere. A query looks at its k bits
 * and stops at the first that is clear; a member's are all set.
 *
 *     key --> k places      . . 1 . . . 1 . . 1 . . . . 1 . .      m bits
 *
 * rate = (1 - e^(-kn/m))^k, least at k = m/n ln 2, where half of the bits are set: then a key costs
 * 1.44 log2(1/rate) bits, 44 % over the bound. Every probe is a cache line of its own, which is why
 * blocked.c exists; this is the one that everybody knows, and keys can be added later.
 *
 * B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7), 1970.
 *
 * Place i of a key is the mixed hash times the i-th power of an odd constant, spread over m by its
 * upper bits. All of it in 64 bits: a 32-bit hash or place puts a floor under the rate of large
 * filters.
 *
 *   payload: m/8 bytes; bit b is bit b % 8 of byte b / 8.    parameters: [0] k.
 */
#include <math.h>

#include "base/fetch.h"
#include "filter/family.h"
#include "filter/theory.h"

enum { WORD_BYTES = 8, K_MAX = 64, DEFAULT_BITS = 10 };

static double words_for(double bits)
{
    const double words = ceil(bits / (WORD_BYTES * 8) - 1e-9);
    return words < 1 ? 1 : words;
}

static unsigned best_k(double bits, double keys)
{
    return keys > 0 ? tamiz_bloom_hashes(bits, keys) : 1;
}

static tamiz_status bloom_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                               struct filter_plan *plan)
{
    const double n = (double)keys;
    const double per_key = policy->fpr > 0 ? theory_bloom_bits_for(n > 0 ? n : 1, policy->fpr)
                           : policy->bits_per_key > 0 ? policy->bits_per_key
                                                      : DEFAULT_BITS;
    const double words = words_for(n * per_key);
    if (words * WORD_BYTES > (double)FILTER_PAYLOAD_MAX)
        return filter_too_large(op, keys, per_key);
    plan->payload_bytes = (uint64_t)words * WORD_BYTES;
    const double bits = words * WORD_BYTES * 8;
    const unsigned k = best_k(n * per_key, n);
    plan->parameters[0] = k;
    plan->expected_fpr = theory_line_fpr(n, bits, k);
    return TAMIZ_OK;
}

static double fill_of(const uint8_t *payload, uint64_t payload_bytes)
{
    return (double)filter_count_bits(payload, payload_bytes) / (double)(payload_bytes * 8);
}

/* true: they were set already. */
static inline bool set_all(uint8_t *payload, uint64_t bits, unsigned k, uint64_t mixed)
{
    unsigned was = 1;
    for (; k; k--, mixed *= FILTER_MULTIPLIER) {
        const uint64_t bit = mul_high(mixed, bits);
        was &= (unsigned)payload[bit >> 3] >> (bit & 7);
        payload[bit >> 3] |= (uint8_t)(1u << (bit & 7));
    }
    return was;
}

static inline void touch_all(const uint8_t *payload, uint64_t bits, unsigned k, uint64_t mixed)
{
    for (; k; k--, mixed *= FILTER_MULTIPLIER)
        fetch_line_to_write(payload + (mul_high(mixed, bits) >> 3));
}

static tamiz_status bloom_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                size_t n, uint8_t *payload)
{
    (void)op;
    for (size_t i = 0; i < n; i++)
        (void)set_all(payload, plan->payload_bytes * 8, plan->parameters[0], mixed[i]);
    return TAMIZ_OK;
}

enum { AHEAD = 8 };

/* Some hashes ahead, their lines are fetched, as the next are waited for. */
static size_t bloom_build_loose(const struct alloc *alloc, const struct filter_plan *plan,
                                const uint64_t *hashes, size_t n, uint8_t *payload, uint64_t *seen,
                                size_t room)
{
    (void)alloc; /* all it needs is the payload */
    const uint64_t bits = plan->payload_bytes * 8;
    const unsigned k = plan->parameters[0];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            touch_all(payload, bits, k, filter_mix(hashes[i + AHEAD], plan->seed));
        if (set_all(payload, bits, k, filter_mix(hashes[i], plan->seed)) && count++ < room)
            seen[count - 1] = hashes[i];
    }
    return count;
}

static tamiz_status bloom_open(struct op *op, struct filter_view *view)
{
    if (view->payload_bytes == 0 || view->payload_bytes % WORD_BYTES)
        return op_fail(op, TAMIZ_CORRUPTION, "filter bloom: %llu bytes: want a multiple of %d",
                       (unsigned long long)view->payload_bytes, WORD_BYTES);
    if (view->parameters[0] < 1 || view->parameters[0] > K_MAX)
        return op_fail(op, TAMIZ_CORRUPTION, "filter bloom: k=%u: want 1..%d", view->parameters[0],
                       K_MAX);
    return TAMIZ_OK;
}

static bool bloom_may_contain(const struct filter_view *view, uint64_t hash)
{
    const uint64_t bits = view->payload_bytes * 8;
    uint64_t mixed = filter_mix(hash, view->seed);
    for (unsigned k = view->parameters[0]; k; k--, mixed *= FILTER_MULTIPLIER) {
        const uint64_t bit = mul_high(mixed, bits);
        if (!(view->payload[bit >> 3] >> (bit & 7) & 1))
            return false;
    }
    return true;
}

/* The first two places: half of the absent keys end at the first, a quarter at the second. */
static void bloom_prefetch(const struct filter_view *view, uint64_t hash)
{
    const uint64_t bits = view->payload_bytes * 8;
    const uint64_t mixed = filter_mix(hash, view->seed);
    fetch_line(view->payload + (mul_high(mixed, bits) >> 3));
    fetch_line(view->payload + (mul_high(mixed * FILTER_MULTIPLIER, bits) >> 3));
}

static void bloom_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    struct filter_bits_story story = {0};
    uint64_t mixed = filter_mix(hash, view->seed);
    buf_printf(out, "of %llu bits", (unsigned long long)view->payload_bytes * 8);
    for (unsigned k = view->parameters[0]; k; k--, mixed *= FILTER_MULTIPLIER) {
        const uint64_t bit = mul_high(mixed, view->payload_bytes * 8);
        filter_story_bit(&story, out, bit, view->payload[bit >> 3] >> (bit & 7) & 1);
    }
    filter_story_bits_end(&story, out);
}

static double bloom_rate(const struct filter_view *view)
{
    return theory_power(fill_of(view->payload, view->payload_bytes), view->parameters[0]);
}

static void bloom_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    info->hashes = view->parameters[0];
    info->fill = fill_of(view->payload, view->payload_bytes);
}

static tamiz_status bloom_add(struct op *op, struct filter_live *live, uint64_t hash)
{
    (void)op;
    (void)set_all(live->payload, live->view.payload_bytes * 8, live->view.parameters[0],
                  filter_mix(hash, live->view.seed));
    live->view.keys++;
    return TAMIZ_OK;
}

const struct filter_family filter_bloom = {
    .name = "bloom",
    .id = 1,
    .version = 1,
    .plan = bloom_plan,
    .build = bloom_build,
    .build_loose = bloom_build_loose,
    .open = bloom_open,
    .may_contain = bloom_may_contain,
    .prefetch = bloom_prefetch,
    .rate = bloom_rate,
    .describe = bloom_describe,
    .story = bloom_story,
    .add = bloom_add,
};
