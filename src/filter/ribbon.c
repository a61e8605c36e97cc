/* SPDX-License-Identifier: MIT
 *
 * The ribbon filter: a key is a linear equation over 128 neighbouring unknowns, and the filter is
 * the solution (banding.h, where the idea is drawn). An absent key's equation holds by chance: the
 * rate is 2^-columns. Where fuse needs 12 % more than the bound of log2(1/rate) bits, this needs
 * 3 to 5 %, for a slower build and a query that reads up to 2 * columns words side by side.
 *
 * The equations cannot be solved where too many keys start close together. How much room makes
 * that rare grows slowly with the number of keys: 2.5 % at 10,000, 3 % at 100,000, 4 % at
 * 1,000,000; a failed attempt costs another seed. bumped.c does away with that.
 *
 * Bits per key need not be whole: a part of the blocks has one column more.
 *
 * P. C. Dillinger, S. Walzer, "Ribbon filter: practically smaller than Bloom and xor", 2021.
 *
 *   payload: blocks of 16 bytes a column (banding.h).
 *   parameters: [0] columns; [1] 0; [2] blocks; [3] the first block with one column more, = blocks
 *   where none has.
 */
#include <math.h>

#include "filter/banding.h"

enum { ATTEMPTS = 64, DEFAULT_BITS = 7 };

/* Slots that are solvable at the first attempt about nine times of ten; measured. */
static double slots_for(double keys)
{
    const double spare = 0.030 + 0.011 * log10(keys / 1e5);
    return keys * (1 + fmax(spare, 0.020)) + 4;
}

static tamiz_status ribbon_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                                struct filter_plan *plan)
{
    const double blocks = ceil(slots_for(keys ? (double)keys : 1) / BLOCK_SLOTS);
    if (blocks >= (double)UINT32_MAX)
        return filter_too_large(op, keys, policy->bits_per_key);
    struct band_shape shape = {.blocks = (uint64_t)blocks};
    if (policy->fpr > 0) {
        band_columns_for_rate(policy->fpr, &shape);
    } else {
        const double bits = policy->bits_per_key > 0 ? policy->bits_per_key : DEFAULT_BITS;
        band_columns_for_bits(bits * (double)keys / (blocks * BLOCK_SLOTS), &shape);
    }
    plan->parameters[0] = shape.columns;
    plan->parameters[2] = (uint32_t)shape.blocks;
    plan->parameters[3] = (uint32_t)shape.cut;
    plan->payload_bytes = band_bytes(&shape);
    plan->expected_fpr = band_rate(&shape);
    return TAMIZ_OK;
}

static inline struct band_shape shape_of(const uint32_t parameters[4])
{
    return (struct band_shape){
        .blocks = parameters[2], .cut = parameters[3], .columns = parameters[0]};
}

static tamiz_status ribbon_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed,
                                 size_t n, uint8_t *payload)
{
    const struct band_shape shape = shape_of(plan->parameters);
    const uint64_t starts = band_starts(shape.blocks);
    struct banding banding;
    size_t i = 0;
    if (!banding_new(op->alloc, shape.blocks * BLOCK_SLOTS, &banding))
        return op_fail_memory(op);
    while (i < n && banding_add(&banding, band_key_of(mixed[i], starts)) != BAND_CONTRADICTION)
        i++;
    if (i == n)
        banding_solve(&banding, &shape, payload);
    banding_free(op->alloc, &banding);
    return i == n ? TAMIZ_OK
                  : op_fail(op, TAMIZ_NOT_SUPPORTED,
                            "filter ribbon: key %zu of %zu contradicts those before", i, n);
}

static tamiz_status ribbon_open(struct op *op, struct filter_view *view)
{
    const struct band_shape shape = shape_of(view->parameters);
    if (!band_shape_is_proper(&shape) || view->payload_bytes != band_bytes(&shape))
        return op_fail(op, TAMIZ_CORRUPTION,
                       "filter ribbon: %llu bytes cannot be %u blocks of %u columns, more from %u",
                       (unsigned long long)view->payload_bytes, view->parameters[2],
                       view->parameters[0], view->parameters[3]);
    return TAMIZ_OK;
}

static bool ribbon_may_contain(const struct filter_view *view, uint64_t hash)
{
    const struct band_shape shape = shape_of(view->parameters);
    return band_holds(&shape, view->payload,
                      band_key_of(filter_mix(hash, view->seed), band_starts(shape.blocks)));
}

static void ribbon_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    const struct band_shape shape = shape_of(view->parameters);
    band_story(&shape, band_key_of(filter_mix(hash, view->seed), band_starts(shape.blocks)),
               ribbon_may_contain(view, hash), out);
}

static void ribbon_prefetch(const struct filter_view *view, uint64_t hash)
{
    const struct band_shape shape = shape_of(view->parameters);
    band_touch(&shape, view->payload,
               mul_high(filter_mix(hash, view->seed), band_starts(shape.blocks)));
}

static void ribbon_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    const struct band_shape shape = shape_of(view->parameters);
    info->hashes = band_block_columns(&shape, shape.blocks - 1);
    info->fingerprint_bits = info->hashes;
    info->fill = (double)view->keys / (double)(shape.blocks * BLOCK_SLOTS);
}

const struct filter_family filter_ribbon = {
    .name = "ribbon",
    .id = 10,
    .version = 1,
    .attempts = ATTEMPTS,
    .plan = ribbon_plan,
    .build = ribbon_build,
    .open = ribbon_open,
    .may_contain = ribbon_may_contain,
    .prefetch = ribbon_prefetch,
    .story = ribbon_story,
    .describe = ribbon_describe,
};
