/* SPDX-License-Identifier: MIT
 *
 * The xor filter: three tables of fingerprints, a slot in each for every key, and the exclusive or
 * of a key's three slots is its fingerprint. The rate is 2^-width.
 *
 *     key -->   table 0 | ....x...... |  ^  table 1 | .x......... |  ^  table 2 | ........x.. |
 *
 * Peeling (peel.h) needs 1.23 slots a key here. It was the first filter with fingerprints that was
 * both smaller and faster to ask than Bloom's; fuse.c, its successor, is smaller and built faster
 * in every case. It is here to compare with.
 *
 * T. M. Graf, D. Lemire, "Xor filters: faster and smaller than Bloom and cuckoo filters", JEA 25,
 * 2020.
 *
 *   payload: slots of `width` bits, lowest bit first; four bytes of 0.
 *   parameters: [0] width, 8 or 16; [1] 0; [2],[3] slots of one table, low and high half.
 */
#include <math.h>

#include "base/fetch.h"
#include "filter/peel.h"

enum { ATTEMPTS = 100, TABLES = 3, SPARE_SLOTS = 32 };

static tamiz_status plan_for(struct op *op, uint64_t keys, unsigned width, struct filter_plan *plan)
{
    if (keys > FILTER_PAYLOAD_MAX / 4)
        return filter_too_large(op, keys, width * 1.23);
    const uint64_t table = (uint64_t)ceil((SPARE_SLOTS + 1.23 * (double)keys) / TABLES);
    plan->parameters[0] = width;
    plan->parameters[2] = (uint32_t)table;
    plan->parameters[3] = (uint32_t)(table >> 32);
    plan->payload_bytes = slots_bytes(table * TABLES, width);
    plan->expected_fpr = ldexp(1, -(int)width);
    return TAMIZ_OK;
}

static tamiz_status xor8_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                              struct filter_plan *plan)
{
    (void)policy;
    return plan_for(op, keys, 8, plan);
}

static tamiz_status xor16_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                               struct filter_plan *plan)
{
    (void)policy;
    return plan_for(op, keys, 16, plan);
}

static inline struct peel_shape shape_of(const uint32_t parameters[4])
{
    const uint64_t table = parameters[2] | (uint64_t)parameters[3] << 32;
    return (struct peel_shape){
        .arity = TABLES, .width = parameters[0], .starts = table, .slots = table * TABLES};
}

static inline void xor_place(const struct peel_shape *shape, uint64_t mixed, uint64_t at[ARITY_MAX])
{
    at[0] = mul_high(mixed, shape->starts);
    at[1] = mul_high(mixed * FILTER_MULTIPLIER, shape->starts) + shape->starts;
    at[2] = mul_high(mixed * UINT64_C(0xc2b2ae3d27d4eb4f), shape->starts) + 2 * shape->starts;
}

static tamiz_status xor_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                              size_t n, uint8_t *payload)
{
    const struct peel_shape shape = shape_of(plan->parameters);
    return peel_build(op, &shape, xor_place, mixed, n, payload);
}

static bool xor_may_contain(const struct filter_view *view, uint64_t hash)
{
    const struct peel_shape shape = shape_of(view->parameters);
    return peel_holds(&shape, xor_place, filter_mix(hash, view->seed), view->payload);
}

static void xor_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    const struct peel_shape shape = shape_of(view->parameters);
    peel_story(&shape, xor_place, filter_mix(hash, view->seed), view->payload, out);
}

static void xor_prefetch(const struct filter_view *view, uint64_t hash)
{
    const struct peel_shape shape = shape_of(view->parameters);
    uint64_t at[ARITY_MAX];
    xor_place(&shape, filter_mix(hash, view->seed), at);
    for (unsigned j = 0; j < TABLES; j++)
        fetch_line(view->payload + (at[j] * shape.width >> 3));
}

static tamiz_status xor_open(struct op *op, struct filter_view *view)
{
    const uint64_t table = view->parameters[2] | (uint64_t)view->parameters[3] << 32;
    const unsigned width = view->parameters[0];
    if ((width != 8 && width != 16) || table == 0 || table > FILTER_PAYLOAD_MAX ||
        view->payload_bytes != slots_bytes(table * TABLES, width))
        return op_fail(op, TAMIZ_CORRUPTION,
                       "filter xor: %llu bytes cannot be three tables of %llu slots of %u bits",
                       (unsigned long long)view->payload_bytes, (unsigned long long)table, width);
    return TAMIZ_OK;
}

static void xor_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    const struct peel_shape shape = shape_of(view->parameters);
    info->hashes = TABLES;
    info->fingerprint_bits = shape.width;
    info->fill = (double)view->keys / (double)shape.slots;
}

#define XOR(name_, id_, plan_)                                                                     \
    {                                                                                              \
        .name = name_, .id = id_, .version = 1, .attempts = ATTEMPTS, .plan = plan_,               \
        .build = xor_build, .open = xor_open, .may_contain = xor_may_contain,                      \
        .prefetch = xor_prefetch, .describe = xor_describe, .story = xor_story,                    \
    }

const struct filter_family filter_xor8 = XOR("xor8", 8, xor8_plan);
const struct filter_family filter_xor16 = XOR("xor16", 9, xor16_plan);
