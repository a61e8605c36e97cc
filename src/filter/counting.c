/* SPDX-License-Identifier: MIT
 *
 * The counting Bloom filter: a counter of four bits where the plain one has a bit, so that a key
 * can be taken out again: its k counters go up when it comes and down when it goes.
 *
 *     key --> k places      0 0 2 0 0 1 0 . . 3 0 0 1      a query asks whether all are above 0
 *
 * It costs four times the memory of bloom.c for the same rate. A counter that reaches 15 stays
 * there: it no longer knows how many keys it has, and would deny one if it went down. With half of
 * the counters above 0 that happens to one in 10^15.
 *
 * L. Fan, P. Cao, J. Almeida, A. Broder, "Summary cache", IEEE/ACM ToN 8(3), 2000.
 *
 *   payload: counters of 4 bits, the even one of a byte in its lower half; a multiple of 8 bytes.
 *   parameters: [0] k.
 */
#include <math.h>

#include "base/fetch.h"
#include "filter/family.h"
#include "filter/theory.h"

enum { COUNTER_BITS = 4, STUCK = 15, WORD_BYTES = 8, K_MAX = 64, DEFAULT_BITS = 40 };

static tamiz_status counting_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                                  struct filter_plan *plan)
{
    const double n = keys ? (double)keys : 1;
    double per_key = (policy->bits_per_key > 0 ? policy->bits_per_key : DEFAULT_BITS) /
                     COUNTER_BITS; /* counters */
    if (policy->fpr > 0)
        per_key = theory_bloom_bits_for(n, policy->fpr);
    const double words = fmax(ceil(n * per_key * COUNTER_BITS / 8 / WORD_BYTES - 1e-9), 1);
    if (words * WORD_BYTES > (double)FILTER_PAYLOAD_MAX)
        return filter_too_large(op, keys, per_key * COUNTER_BITS);
    plan->payload_bytes = (uint64_t)words * WORD_BYTES;
    plan->parameters[0] = tamiz_bloom_hashes(n * per_key, n);
    plan->expected_fpr =
        theory_line_fpr((double)keys, (double)plan->payload_bytes * 2, plan->parameters[0]);
    return TAMIZ_OK;
}

static inline uint64_t place_of(uint64_t mixed, uint64_t payload_bytes)
{
    return mul_high(mixed, payload_bytes * 2);
}

static inline unsigned counter_at(const uint8_t *payload, uint64_t place)
{
    return payload[place >> 1] >> (place & 1) * COUNTER_BITS & 15;
}

/* Up by one, or down; stuck ones stay. */
static inline void counter_move(uint8_t *payload, uint64_t place, bool up)
{
    const unsigned count = counter_at(payload, place);
    const unsigned one = 1u << (place & 1) * COUNTER_BITS;
    if (count != STUCK)
        payload[place >> 1] = (uint8_t)(up ? payload[place >> 1] + one : payload[place >> 1] - one);
}

static void move_all(uint8_t *payload, uint64_t payload_bytes, unsigned k, uint64_t mixed, bool up)
{
    for (; k; k--, mixed *= FILTER_MULTIPLIER)
        counter_move(payload, place_of(mixed, payload_bytes), up);
}

static bool holds(const struct filter_view *view, uint64_t mixed)
{
    for (unsigned k = view->parameters[0]; k; k--, mixed *= FILTER_MULTIPLIER)
        if (!counter_at(view->payload, place_of(mixed, view->payload_bytes)))
            return false;
    return true;
}

static tamiz_status counting_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                   size_t n, uint8_t *payload)
{
    (void)op;
    for (size_t i = 0; i < n; i++)
        move_all(payload, plan->payload_bytes, plan->parameters[0], mixed[i], true);
    return TAMIZ_OK;
}

static tamiz_status counting_open(struct op *op, struct filter_view *view)
{
    if (view->payload_bytes == 0 || view->payload_bytes % WORD_BYTES || view->parameters[0] < 1 ||
        view->parameters[0] > K_MAX)
        return op_fail(op, TAMIZ_CORRUPTION, "filter counting: %llu bytes with k=%u",
                       (unsigned long long)view->payload_bytes, view->parameters[0]);
    return TAMIZ_OK;
}

static bool counting_may_contain(const struct filter_view *view, uint64_t hash)
{
    return holds(view, filter_mix(hash, view->seed));
}

static void counting_prefetch(const struct filter_view *view, uint64_t hash)
{
    const uint64_t mixed = filter_mix(hash, view->seed);
    fetch_line(view->payload + place_of(mixed, view->payload_bytes) / 2);
    fetch_line(view->payload + place_of(mixed * FILTER_MULTIPLIER, view->payload_bytes) / 2);
}

static double fill_of(const struct filter_view *view)
{
    uint64_t above = 0;
    for (uint64_t at = 0; at < view->payload_bytes; at++)
        above += (unsigned)((view->payload[at] & 15) != 0) + (view->payload[at] > 15);
    return (double)above / (double)(view->payload_bytes * 2);
}

static double counting_rate(const struct filter_view *view)
{
    return theory_power(fill_of(view), view->parameters[0]);
}

static void counting_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    info->hashes = view->parameters[0];
    info->fill = fill_of(view);
}

static tamiz_status counting_add(struct op *op, struct filter_live *live, uint64_t hash)
{
    (void)op;
    move_all(live->payload, live->view.payload_bytes, live->view.parameters[0],
             filter_mix(hash, live->view.seed), true);
    live->view.keys++;
    return TAMIZ_OK;
}

static tamiz_status counting_remove(struct op *op, struct filter_live *live, uint64_t hash)
{
    (void)op;
    const uint64_t mixed = filter_mix(hash, live->view.seed);
    if (!holds(&live->view, mixed))
        return TAMIZ_NOT_FOUND;
    move_all(live->payload, live->view.payload_bytes, live->view.parameters[0], mixed, false);
    live->view.keys -= live->view.keys > 0;
    return TAMIZ_OK;
}

const struct filter_family filter_counting = {
    .name = "counting",
    .id = 13,
    .version = 1,
    .plan = counting_plan,
    .build = counting_build,
    .open = counting_open,
    .may_contain = counting_may_contain,
    .prefetch = counting_prefetch,
    .rate = counting_rate,
    .describe = counting_describe,
    .add = counting_add,
    .remove = counting_remove,
};
