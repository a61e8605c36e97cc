/* SPDX-License-Identifier: MIT
 *
 * The filter block of a table: an image over its keys and, where the options have a prefix rule,
 * one over their prefixes behind it. An image is asked for each hash that it was built from before
 * it counts; one that does not come out is an event, and the table then goes without.
 */
#ifndef TAMIZ_TABLE_FILTER_BLOCK_H
#define TAMIZ_TABLE_FILTER_BLOCK_H

#include "table/table_build.h"

/* What the filters are built from: u64 hashes, aligned as such, each key's and prefix's once. */
struct filter_keys {
    struct slice keys, prefixes;
};

struct filter_block {
    struct buf bytes;                  /* initialised by the caller; empty: there is no filter */
    struct prefix_filter_place prefix; /* where the image over prefixes is */
    tamiz_filter_info info;            /* of the image over the keys; kind "none" without one */
};

/* `path` is for the words of an event. On failure `block` has nothing of use. */
tamiz_status filter_block_build(struct op *op, const struct table_build_options *options,
                                const char *path, const struct filter_keys *keys,
                                struct filter_block *block);

#endif
