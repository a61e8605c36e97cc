/* SPDX-License-Identifier: MIT */
#include "table/filter_block.h"

#include <stdio.h>

#include "filter/filter.h"

/* For whom: the options' custom filter and event log, and the path for its words. */
struct recipient {
    const struct table_build_options *options;
    const char *path;
};

static void tell_ignored(const struct recipient *r, const char *why)
{
    const tamiz_event_log *log = &r->options->log;
    char text[2 * OP_TEXT_MAX];
    if (!log->event)
        return;
    (void)snprintf(text, sizeof text, "%s: written without a filter: %s", r->path, why);
    log->event(log->ctx, TAMIZ_EVENT_FILTER_IGNORED, text);
}

/* Opens the fresh image and asks it for every hash. */
static tamiz_status check_image(struct op *op, const struct table_build_options *options,
                                struct slice image, const uint64_t *hashes, size_t n,
                                tamiz_filter_info *info)
{
    enum { AT_ONCE = 256 };
    struct filter_view view;
    bool maybe[AT_ONCE];
    tamiz_status st;
    TRY(filter_view_open_custom(op, image, options->filter.custom, &view));
    for (size_t i = 0; i < n; i += AT_ONCE) {
        const size_t part = n - i < AT_ONCE ? n - i : AT_ONCE;
        filter_view_may_contain_many(&view, hashes + i, part, maybe);
        for (size_t j = 0; j < part; j++)
            if (!maybe[j])
                TRY(op_fail(op, TAMIZ_NOT_SUPPORTED, "filter %s denies a key it was built from",
                            options->filter.kind));
    }
    filter_view_info(&view, info);
done:
    return st;
}

static bool is_none(const tamiz_filter_policy *policy)
{
    return !policy->custom && strcmp(policy->kind, "none") == 0;
}

/* An image over `set` behind `bytes`, checked. Where it does not come out, `bytes` is as it was,
 * that is told, and `info` says none. */
static tamiz_status add_image(struct op *op, const struct recipient *r,
                              const tamiz_filter_policy *policy, struct slice set,
                              struct buf *bytes, tamiz_filter_info *info)
{
    const uint64_t *hashes = (const uint64_t *)(const void *)set.data;
    const size_t n = set.size / sizeof *hashes, before = bytes->size;
    uint8_t *image = NULL;
    size_t size = 0;
    tamiz_status st;
    *info = (tamiz_filter_info){.kind = "none", .expected_fpr = 1};
    if (is_none(policy))
        return TAMIZ_OK;
    TRY(filter_image_make(op, policy, hashes, n, &image, &size));
    TRY(check_image(op, r->options, slice_of(image, size), hashes, n, info));
    buf_append(bytes, image, size);
    if (bytes->failed)
        TRY(op_fail_memory(op));
done:
    mem_free_aligned(op->alloc, image, size, FILTER_ALIGN);
    if (st == TAMIZ_NOT_SUPPORTED) {
        tell_ignored(r, op->text);
        op_forgive(op);
        bytes->size = before;
        *info = (tamiz_filter_info){.kind = "none", .expected_fpr = 1};
        st = TAMIZ_OK;
    }
    return st;
}

/* Where there is no filter over the keys, an image that says so. */
static tamiz_status add_none(struct op *op, struct buf *bytes)
{
    static const tamiz_filter_policy none = {.kind = "none"};
    uint8_t *image = NULL;
    size_t size = 0;
    tamiz_status st;
    TRY(filter_image_make(op, &none, NULL, 0, &image, &size));
    buf_append(bytes, image, size);
    st = bytes->failed ? op_fail_memory(op) : TAMIZ_OK;
done:
    mem_free_aligned(op->alloc, image, size, FILTER_ALIGN);
    return st;
}

/* Behind the image over the keys, that over their prefixes. */
static tamiz_status add_prefix_image(struct op *op, const struct recipient *r,
                                     struct slice prefixes, struct filter_block *block)
{
    static const uint8_t zeros[PREFIX_IMAGE_ALIGN] = {0};
    struct buf *bytes = &block->bytes;
    const size_t before = bytes->size;
    tamiz_filter_info info;
    tamiz_status st;
    if (before == 0)
        TRY(add_none(op, bytes));
    const size_t keys_size = bytes->size;
    buf_append(bytes, zeros, (PREFIX_IMAGE_ALIGN - keys_size % PREFIX_IMAGE_ALIGN) % sizeof zeros);
    const size_t at = bytes->size;
    TRY(add_image(op, r, &r->options->prefix_filter, prefixes, bytes, &info));
    if (bytes->size > at)
        block->prefix = (struct prefix_filter_place){r->options->prefix, keys_size};
    else
        bytes->size = before;
done:
    return st;
}

tamiz_status filter_block_build(struct op *op, const struct table_build_options *options,
                                const char *path, const struct filter_keys *keys,
                                struct filter_block *block)
{
    const struct recipient r = {options, path};
    tamiz_status st;
    TRY(add_image(op, &r, &options->filter, keys->keys, &block->bytes, &block->info));
    if (options->prefix.kind != TAMIZ_PREFIX_NONE && !is_none(&options->prefix_filter))
        TRY(add_prefix_image(op, &r, keys->prefixes, block));
done:
    return st;
}
