/* SPDX-License-Identifier: MIT
 *
 * The binary fuse filter: a table of fingerprints in which every key has three slots (four in
 * fuse4), and the exclusive or of a key's slots is its fingerprint. An absent key's is that only by
 * chance: the rate is 2^-width, exactly.
 *
 *     segments   |  0   |  1   |  2   |  3   |  4   |  5   | ...
 *     a key             | .x.. | x... | ..x. |                three neighbours
 *     another                  | ...x | .x.. | x... |
 *
 * A key's slots lie in consecutive segments. Keys of the outer segments have fewer rivals, so
 * peeling (peel.h) begins there and runs inwards like a fuse; it works with less room than when a
 * key's slots are anywhere: 1.125 slots a key for three, 1.075 for four, where xor needs 1.23.
 * Small sets need more. Built once; a query is three (four) independent cache misses.
 *
 * T. M. Graf, D. Lemire, "Binary fuse filters: fast and smaller than xor filters", JEA 27, 2022,
 * from where the sizes of segments are.
 *
 *   payload: slots of `width` bits, lowest bit first; four bytes of 0.
 *   parameters: [0] width, 4..16; [1] log2 of a segment's slots; [2],[3] segments in which a key's
 *   first slot may be, low and high half.
 */
#include <math.h>

#include "base/fetch.h"
#include "filter/peel.h"

enum { WIDTH_MIN = 4, WIDTH_MAX = 16, SHIFT_MIN = 2, SHIFT_MAX = 18, DEFAULT_WIDTH = 8 };
enum { ATTEMPTS = 100 };

/* Segments and their size for `keys`: the paper's formulas, which were fitted. */
static struct peel_shape shape_for(uint64_t keys, unsigned arity)
{
    const double n = keys > 1 ? (double)keys : 2;
    const double log_size = arity == 3 ? log(n) / log(3.33) + 1.5 : log(n) / log(2.91) - 0.5;
    const double factor = arity == 3 ? fmax(1.125, 0.875 + 0.25 * log(1e6) / log(n))
                                     : fmax(1.075, 0.77 + 0.305 * log(6e5) / log(n));
    struct peel_shape shape = {.arity = arity};
    shape.segment_shift = log_size < SHIFT_MIN   ? SHIFT_MIN
                          : log_size > SHIFT_MAX ? SHIFT_MAX
                                                 : (unsigned)log_size;
    const double wanted = ceil(round(n * factor) / ldexp(1, (int)shape.segment_shift));
    const uint64_t segments = (uint64_t)fmax(wanted, arity) - (arity - 1);
    shape.starts = segments << shape.segment_shift;
    shape.slots = shape.starts + ((uint64_t)(arity - 1) << shape.segment_shift);
    return shape;
}

static unsigned width_within(double width)
{
    return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : (unsigned)width;
}

static unsigned width_for(const tamiz_filter_policy *policy, double slots_per_key)
{
    if (policy->fpr > 0)
        return width_within(ceil(-log2(policy->fpr) - 1e-9));
    if (policy->bits_per_key > 0)
        return width_within(floor(policy->bits_per_key / slots_per_key + 0.5));
    return DEFAULT_WIDTH;
}

/* width 0: by the policy. */
static tamiz_status plan_for(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                             unsigned arity, unsigned width, struct filter_plan *plan)
{
    if (keys > FILTER_PAYLOAD_MAX / 4)
        return filter_too_large(op, keys, policy->bits_per_key);
    const struct peel_shape shape = shape_for(keys, arity);
    if (!width)
        width = width_for(policy, keys ? (double)shape.slots / (double)keys : 1);
    const uint64_t segments = shape.starts >> shape.segment_shift;
    plan->parameters[0] = width;
    plan->parameters[1] = shape.segment_shift;
    plan->parameters[2] = (uint32_t)segments;
    plan->parameters[3] = (uint32_t)(segments >> 32);
    plan->payload_bytes = slots_bytes(shape.slots, width);
    plan->expected_fpr = ldexp(1, -(int)width);
    return TAMIZ_OK;
}

static tamiz_status fuse_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                              struct filter_plan *plan)
{
    return plan_for(op, policy, keys, 3, 0, plan);
}

static tamiz_status fuse8_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                               struct filter_plan *plan)
{
    return plan_for(op, policy, keys, 3, 8, plan);
}

static tamiz_status fuse16_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                                struct filter_plan *plan)
{
    return plan_for(op, policy, keys, 3, 16, plan);
}

static tamiz_status fuse4_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                               struct filter_plan *plan)
{
    return plan_for(op, policy, keys, 4, 0, plan);
}

static inline struct peel_shape shape_of(const uint32_t parameters[4], unsigned arity)
{
    const uint64_t segments = parameters[2] | (uint64_t)parameters[3] << 32;
    struct peel_shape shape = {.arity = arity,
                               .width = parameters[0],
                               .segment_shift = parameters[1],
                               .starts = segments << parameters[1]};
    shape.slots = shape.starts + ((uint64_t)(arity - 1) << parameters[1]);
    return shape;
}

/* The first slot by the upper bits, so that sorted keys come in the order of their segments; in the
 * others, 18 bits each of a product that depends on all bits. */
static inline void fuse_place(const struct peel_shape *shape, uint64_t mixed,
                              uint64_t at[ARITY_MAX])
{
    const uint64_t more = mixed * FILTER_MULTIPLIER;
    const uint64_t size = UINT64_C(1) << shape->segment_shift;
    at[0] = mul_high(mixed, shape->starts);
    at[1] = (at[0] + size) ^ (more >> 46 & (size - 1));
    at[2] = (at[0] + 2 * size) ^ (more >> 28 & (size - 1));
    if (shape->arity == 4)
        at[3] = (at[0] + 3 * size) ^ (more >> 10 & (size - 1));
}

static tamiz_status fuse_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                               size_t n, uint8_t *payload)
{
    const struct peel_shape shape = shape_of(plan->parameters, 3);
    return peel_build(op, &shape, fuse_place, mixed, n, payload);
}

static tamiz_status fuse4_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                size_t n, uint8_t *payload)
{
    const struct peel_shape shape = shape_of(plan->parameters, 4);
    return peel_build(op, &shape, fuse_place, mixed, n, payload);
}

static inline __attribute__((always_inline)) bool query(const struct filter_view *view,
                                                        uint64_t hash, unsigned arity)
{
    const struct peel_shape shape = shape_of(view->parameters, arity);
    return peel_holds(&shape, fuse_place, filter_mix(hash, view->seed), view->payload);
}

static bool fuse_may_contain(const struct filter_view *view, uint64_t hash)
{
    return query(view, hash, 3);
}

static bool fuse4_may_contain(const struct filter_view *view, uint64_t hash)
{
    return query(view, hash, 4);
}

static void fuse_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    const struct peel_shape shape = shape_of(view->parameters, 3);
    peel_story(&shape, fuse_place, filter_mix(hash, view->seed), view->payload, out);
}

static void fuse4_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    const struct peel_shape shape = shape_of(view->parameters, 4);
    peel_story(&shape, fuse_place, filter_mix(hash, view->seed), view->payload, out);
}

static inline void touch(const struct filter_view *view, uint64_t hash, unsigned arity)
{
    const struct peel_shape shape = shape_of(view->parameters, arity);
    uint64_t at[ARITY_MAX];
    fuse_place(&shape, filter_mix(hash, view->seed), at);
    for (unsigned j = 0; j < arity; j++)
        fetch_line(view->payload + (at[j] * shape.width >> 3));
}

static void fuse_prefetch(const struct filter_view *view, uint64_t hash)
{
    touch(view, hash, 3);
}

static void fuse4_prefetch(const struct filter_view *view, uint64_t hash)
{
    touch(view, hash, 4);
}

static tamiz_status open_as(struct op *op, const struct filter_view *view, unsigned arity)
{
    const uint64_t segments = view->parameters[2] | (uint64_t)view->parameters[3] << 32;
    if (view->parameters[0] < WIDTH_MIN || view->parameters[0] > WIDTH_MAX)
        return op_fail(op, TAMIZ_CORRUPTION, "filter fuse: %u bits wide: want %d..%d",
                       view->parameters[0], WIDTH_MIN, WIDTH_MAX);
    if (view->parameters[1] < SHIFT_MIN || view->parameters[1] > SHIFT_MAX || segments == 0 ||
        segments > FILTER_PAYLOAD_MAX >> view->parameters[1])
        return op_fail(op, TAMIZ_CORRUPTION, "filter fuse: %llu segments of 2^%u slots",
                       (unsigned long long)segments, view->parameters[1]);
    const struct peel_shape shape = shape_of(view->parameters, arity);
    if (view->payload_bytes != slots_bytes(shape.slots, shape.width))
        return op_fail(op, TAMIZ_CORRUPTION, "filter fuse: %llu bytes: want %llu",
                       (unsigned long long)view->payload_bytes,
                       (unsigned long long)slots_bytes(shape.slots, shape.width));
    return TAMIZ_OK;
}

static tamiz_status fuse_open(struct op *op, struct filter_view *view)
{
    return open_as(op, view, 3);
}

static tamiz_status fuse4_open(struct op *op, struct filter_view *view)
{
    return open_as(op, view, 4);
}

static void describe_as(const struct filter_view *view, unsigned arity, tamiz_filter_info *info)
{
    const struct peel_shape shape = shape_of(view->parameters, arity);
    info->hashes = arity;
    info->fingerprint_bits = shape.width;
    info->fill = (double)view->keys / (double)shape.slots;
}

static void fuse_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    describe_as(view, 3, info);
}

static void fuse4_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    describe_as(view, 4, info);
}

#define FUSE(name_, id_, plan_)                                                                    \
    {                                                                                              \
        .name = name_, .id = id_, .version = 1, .attempts = ATTEMPTS, .plan = plan_,               \
        .build = fuse_build, .open = fuse_open, .may_contain = fuse_may_contain,                   \
        .prefetch = fuse_prefetch, .describe = fuse_describe, .story = fuse_story,                 \
    }

const struct filter_family filter_fuse = FUSE("fuse", 4, fuse_plan);
const struct filter_family filter_fuse8 = FUSE("fuse8", 5, fuse8_plan);
const struct filter_family filter_fuse16 = FUSE("fuse16", 6, fuse16_plan);
const struct filter_family filter_fuse4 = {
    .name = "fuse4",
    .id = 7,
    .version = 1,
    .attempts = ATTEMPTS,
    .plan = fuse4_plan,
    .build = fuse4_build,
    .open = fuse4_open,
    .may_contain = fuse4_may_contain,
    .prefetch = fuse4_prefetch,
    .story = fuse4_story,
    .describe = fuse4_describe,
};
