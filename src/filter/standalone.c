/* SPDX-License-Identifier: MIT
 *
 * tamiz/filter.h: filters that stand alone. A tamiz_filter owns one image and a view of it; memory
 * is libc's, aligned, and advised to be huge pages where it is large.
 */
#include <string.h>

#include "base/hash_short.h"
#include "filter/family.h"

struct tamiz_filter {
    struct filter_live live;
};

/* An op for calls that belong to no store. */
struct call {
    struct op op;
    struct counters count;
};

static struct op *call_begin(struct call *call)
{
    memset(&call->count, 0, sizeof call->count);
    op_init(&call->op, &alloc_libc, &call->count);
    return &call->op;
}

tamiz_status tamiz_filter_policy_parse(const char *text, tamiz_filter_policy *policy)
{
    struct call call;
    struct op *op = call_begin(&call);
    if (!text || !policy)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "filter policy: an argument is NULL");
    return op_publish(op, filter_policy_parse(op, text, policy));
}

/* Takes over `image`, whatever happens. */
static tamiz_status adopt(struct op *op, uint8_t *image, size_t size,
                          const tamiz_filter_family *custom, tamiz_filter **filter)
{
    tamiz_filter *made = mem_new(op->alloc, sizeof *made);
    if (!made) {
        mem_free_aligned(op->alloc, image, size, FILTER_ALIGN);
        return op_fail_memory(op);
    }
    const tamiz_status st = filter_live_adopt(op, image, size, custom, &made->live);
    if (st == TAMIZ_OK)
        *filter = made;
    else
        mem_free(op->alloc, made, sizeof *made);
    return st;
}

tamiz_status tamiz_filter_build(const tamiz_filter_policy *policy, const uint64_t *hashes, size_t n,
                                tamiz_filter **filter)
{
    struct call call;
    struct op *op = call_begin(&call);
    uint8_t *image = NULL;
    size_t size = 0;
    tamiz_status st;
    if (filter)
        *filter = NULL;
    if (!filter || !policy || (n && !hashes))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "filter build: an argument is NULL");
    TRY(filter_image_make(op, policy, hashes, n, &image, &size));
    TRY(adopt(op, image, size, policy->custom, filter));
done:
    return op_publish(op, st);
}

tamiz_status tamiz_filter_new(const tamiz_filter_policy *policy, uint64_t capacity,
                              tamiz_filter **filter)
{
    struct call call;
    struct op *op = call_begin(&call);
    if (filter)
        *filter = NULL;
    if (!filter || !policy)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "filter new: an argument is NULL");
    tamiz_filter *made = mem_new(op->alloc, sizeof *made);
    if (!made)
        return op_publish(op, op_fail_memory(op));
    const tamiz_status st = filter_live_new(op, policy, capacity, &made->live);
    if (st == TAMIZ_OK)
        *filter = made;
    else
        mem_free(op->alloc, made, sizeof *made);
    return op_publish(op, st);
}

static const char *kind_of(const tamiz_filter *filter)
{
    return filter->live.view.family ? filter->live.view.family->name : "none";
}

tamiz_status tamiz_filter_add(tamiz_filter *filter, uint64_t hash)
{
    struct call call;
    struct op *op = call_begin(&call);
    if (!filter)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "filter add: no filter");
    const struct filter_family *family = filter->live.view.family;
    if (!family || !family->add)
        return op_refuse(TAMIZ_NOT_SUPPORTED, "filter %s is built once", kind_of(filter));
    return op_publish(op, family->add(op, &filter->live, hash));
}

tamiz_status tamiz_filter_remove(tamiz_filter *filter, uint64_t hash)
{
    struct call call;
    struct op *op = call_begin(&call);
    if (!filter)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "filter remove: no filter");
    const struct filter_family *family = filter->live.view.family;
    if (!family || !family->remove)
        return op_refuse(TAMIZ_NOT_SUPPORTED, "filter %s cannot remove", kind_of(filter));
    return op_publish(op, family->remove(op, &filter->live, hash));
}

bool tamiz_filter_may_contain(const tamiz_filter *filter, uint64_t hash)
{
    return !filter || filter_view_may_contain(&filter->live.view, hash);
}

bool tamiz_filter_may_contain_key(const tamiz_filter *filter, const void *key, size_t size)
{
    return !filter ||
           filter_view_may_contain(&filter->live.view, hash_key_short(slice_of(key, size)));
}

void tamiz_filter_may_contain_many(const tamiz_filter *filter, const uint64_t *hashes, size_t n,
                                   bool *maybe)
{
    if (!maybe || (n && !hashes))
        return;
    if (filter)
        filter_view_may_contain_many(&filter->live.view, hashes, n, maybe);
    else
        memset(maybe, true, n * sizeof *maybe);
}

tamiz_status tamiz_filter_serialize(const tamiz_filter *filter, void **bytes, size_t *size)
{
    if (bytes)
        *bytes = NULL;
    if (size)
        *size = 0;
    if (!filter || !bytes || !size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "filter serialize: an argument is NULL");
    *bytes = mem_handout(&alloc_libc, filter->live.size);
    if (!*bytes)
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    memcpy(*bytes, filter->live.image, filter->live.size);
    filter_header_refresh(&filter->live.view, *bytes);
    *size = filter->live.size;
    return TAMIZ_OK;
}

tamiz_status tamiz_filter_deserialize_custom(const void *bytes, size_t size,
                                             const tamiz_filter_family *custom,
                                             tamiz_filter **filter)
{
    struct call call;
    struct op *op = call_begin(&call);
    if (filter)
        *filter = NULL;
    if (!filter || (size && !bytes))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "filter deserialize: an argument is NULL");
    uint8_t *image = mem_new_aligned(op->alloc, size, FILTER_ALIGN);
    if (!image)
        return op_publish(op, op_fail_memory(op));
    if (size)
        memcpy(image, bytes, size);
    return op_publish(op, adopt(op, image, size, custom, filter));
}

tamiz_status tamiz_filter_deserialize(const void *bytes, size_t size, tamiz_filter **filter)
{
    return tamiz_filter_deserialize_custom(bytes, size, NULL, filter);
}

/* Fills no more of the caller's struct than the caller knows of. */
static void info_give(const tamiz_filter_info *from, tamiz_filter_info *to)
{
    const size_t known = to->struct_size < sizeof *to ? to->struct_size : sizeof *to;
    if (known > sizeof to->struct_size)
        memcpy((uint8_t *)to + sizeof to->struct_size,
               (const uint8_t *)from + sizeof from->struct_size, known - sizeof to->struct_size);
}

void tamiz_filter_info_get(const tamiz_filter *filter, tamiz_filter_info *info)
{
    tamiz_filter_info full = TAMIZ_FILTER_INFO_INIT;
    if (!info)
        return;
    if (filter)
        filter_view_info(&filter->live.view, &full);
    info_give(&full, info);
}

tamiz_status tamiz_filter_plan(const tamiz_filter_policy *policy, uint64_t n,
                               tamiz_filter_info *info)
{
    struct call call;
    struct op *op = call_begin(&call);
    const struct filter_family *family;
    struct filter_plan plan;
    tamiz_filter_info full = TAMIZ_FILTER_INFO_INIT;
    if (!policy || !info)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "filter plan: an argument is NULL");
    const tamiz_status st = filter_plan_make(op, policy, n, &plan, &family);
    if (st == TAMIZ_OK) {
        filter_info_fill(family, &plan, &full);
        info_give(&full, info);
    }
    return op_publish(op, st);
}

void tamiz_filter_free(tamiz_filter *filter)
{
    if (!filter)
        return;
    struct call call;
    filter_live_free(call_begin(&call), &filter->live);
    mem_free(&alloc_libc, filter, sizeof *filter);
}
