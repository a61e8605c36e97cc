/* SPDX-License-Identifier: MIT
 *
 * Filters that change own their image and write to its payload; header and checksum are brought up
 * to date only when the image is asked for.
 */
#include <string.h>

#include "filter/family.h"

static void live_point(struct filter_live *live)
{
    live->payload = live->image + FILTER_HEADER_SIZE;
    live->view.payload = live->payload;
}

tamiz_status filter_live_adopt(struct op *op, uint8_t *image, size_t size,
                               const tamiz_filter_family *custom, struct filter_live *live)
{
    *live = (struct filter_live){.image = image, .size = size};
    const tamiz_status st = filter_view_open_custom(op, slice_of(image, size), custom, &live->view);
    if (st == TAMIZ_OK)
        live_point(live);
    else
        filter_live_free(op, live);
    return st;
}

tamiz_status filter_live_new(struct op *op, const tamiz_filter_policy *policy, uint64_t capacity,
                             struct filter_live *live)
{
    const struct filter_family *family;
    struct filter_plan plan;
    uint8_t *image = NULL;
    size_t size = 0;
    tamiz_status st;
    *live = (struct filter_live){.image = NULL};
    TRY(filter_policy_check(op, policy));
    family = policy->custom ? NULL : filter_family_by_name(policy->kind);
    if (!family || !family->add)
        TRY(op_fail(op, TAMIZ_NOT_SUPPORTED, "filter %s is built once", policy->kind));
    TRY(filter_plan_make(op, policy, capacity + capacity / 100 * family->spare_percent, &plan,
                         &family));
    size = FILTER_HEADER_SIZE + (size_t)plan.payload_bytes;
    image = mem_new_aligned(op->alloc, size, FILTER_ALIGN);
    if (!image)
        TRY(op_fail_memory(op));
    memset(image, 0, size);
    TRY(family->build(op, &plan, NULL, 0, image + FILTER_HEADER_SIZE));
    plan.keys = 0;
    plan.expected_fpr = 0;
    filter_header_write(family, &plan, image);
    st = filter_live_adopt(op, image, size, NULL, live);
    image = NULL;
done:
    mem_free_aligned(op->alloc, image, size, FILTER_ALIGN);
    return st;
}

tamiz_status filter_live_grow(struct op *op, struct filter_live *live, uint64_t payload_bytes)
{
    if (payload_bytes > FILTER_PAYLOAD_MAX || payload_bytes > SIZE_MAX / 2)
        return filter_too_large(op, live->view.keys,
                                (double)payload_bytes * 8 / (double)live->view.keys);
    const size_t size = FILTER_HEADER_SIZE + (size_t)payload_bytes;
    uint8_t *image = mem_new_aligned(op->alloc, size, FILTER_ALIGN);
    if (!image)
        return op_fail_memory(op);
    memcpy(image, live->image, live->size);
    memset(image + live->size, 0, size - live->size);
    mem_free_aligned(op->alloc, live->image, live->size, FILTER_ALIGN);
    live->image = image;
    live->size = size;
    live->view.payload_bytes = payload_bytes;
    live_point(live);
    return TAMIZ_OK;
}

void filter_header_refresh(const struct filter_view *view, uint8_t *image)
{
    if (!view->family || !view->family->add)
        return;
    struct filter_plan plan = {.keys = view->keys,
                               .payload_bytes = view->payload_bytes,
                               .expected_fpr = view->family->rate(view),
                               .seed = view->seed};
    memcpy(plan.parameters, view->parameters, sizeof plan.parameters);
    filter_header_write(view->family, &plan, image);
}

void filter_live_free(struct op *op, struct filter_live *live)
{
    mem_free_aligned(op->alloc, live->image, live->size, FILTER_ALIGN);
    *live = (struct filter_live){.image = NULL};
}
