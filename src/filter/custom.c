/* SPDX-License-Identifier: MIT
 *
 * The embedder's own family (tamiz_filter_family), as one more family: its callbacks get the raw
 * hashes, sorted and distinct, and the payload. What they answer is checked where it could hurt.
 */
#include "filter/family.h"

static tamiz_status custom_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                                struct filter_plan *plan)
{
    const tamiz_filter_family *custom = policy->custom;
    const tamiz_status st =
        custom->plan(custom->ctx, policy, keys, &plan->payload_bytes, &plan->expected_fpr);
    if (st != TAMIZ_OK)
        return op_fail(op, st < 0 ? st : TAMIZ_INVALID_ARGUMENT, "filter %s: its plan says %s",
                       custom->name, tamiz_status_name(st));
    if (!(plan->expected_fpr >= 0 && plan->expected_fpr <= 1))
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "filter %s: its plan expects a rate of %g",
                       custom->name, plan->expected_fpr);
    return TAMIZ_OK;
}

static tamiz_status custom_build(struct op *op, struct filter_plan *plan, const uint64_t *hashes,
                                 size_t n, uint8_t *payload)
{
    const tamiz_filter_family *custom = plan->custom;
    const tamiz_status st = custom->build(custom->ctx, hashes, n, payload, plan->payload_bytes);
    if (st != TAMIZ_OK)
        return op_fail(op, st < 0 ? st : TAMIZ_NOT_SUPPORTED, "filter %s: its build says %s",
                       custom->name, tamiz_status_name(st));
    return TAMIZ_OK;
}

static tamiz_status custom_open(struct op *op, struct filter_view *view)
{
    const tamiz_filter_family *custom = view->custom;
    if (!custom->check(custom->ctx, view->payload, view->payload_bytes))
        return op_fail(op, TAMIZ_CORRUPTION, "filter %s: its check refuses the payload",
                       custom->name);
    return TAMIZ_OK;
}

static bool custom_may_contain(const struct filter_view *view, uint64_t hash)
{
    const tamiz_filter_family *custom = view->custom;
    return custom->may_contain(custom->ctx, view->payload, view->payload_bytes, hash);
}

const struct filter_family filter_custom = {
    .name = "custom",
    .unmixed = true,
    .plan = custom_plan,
    .build = custom_build,
    .open = custom_open,
    .may_contain = custom_may_contain,
};
