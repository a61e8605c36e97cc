/* SPDX-License-Identifier: MIT
 *
 * Sorted versions in, one table file out: blocks, filter, index, properties, footer. The filter is
 * sized by the distinct keys that were really added, tombstones too, and asked for each of them
 * before it is written: one that denied a member would not be.
 *
 * With a prefix rule the distinct prefixes of the keys get a filter as well, tombstones' too, by
 * the same checks.
 *
 * A block is ended where the next entry would make it larger than block_bytes and begins another
 * user key: the versions of a key are never parted. A filter that does not come out is an event,
 * and the table then has none.
 */
#ifndef TAMIZ_TABLE_TABLE_BUILD_H
#define TAMIZ_TABLE_TABLE_BUILD_H

#include "base/key.h"
#include "base/ranges.h"
#include "env/env.h"
#include "table/format.h"

struct table_build_options {
    size_t block_bytes;
    tamiz_filter_policy filter;
    uint64_t keyspace;          /* whose table it is … */
    struct slice keyspace_name; /* … and its name; empty for 0. Outlives the builder */
    struct prefix_rule prefix;  /* kind NONE: no filter over prefixes */
    tamiz_filter_policy prefix_filter;
    enum codec codec;
    int compression_level;
    enum io_purpose purpose; /* IO_DATA for a flush, IO_COMPACTION for a merge */
    tamiz_event_log log;
    uint64_t file_id;    /* 0: random; given by tests, whose files are the same each time */
    uint64_t created_us; /* microseconds since 1970, by the store's clock; 0: by env's, now */
};

struct table_builder;

/* Creates `path` (it must not exist). NULL in *builder on failure. */
tamiz_status table_builder_open(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                                const char *path, const struct table_build_options *options,
                                struct table_builder **builder);
/* In version order; TAMIZ_INVALID_ARGUMENT, with both keys, where that is broken, or for what is
 * too large or of an unknown kind. After a failure only finish (which fails) or abandon. */
tamiz_status table_builder_add(struct op *op, struct table_builder *b, struct slice key,
                               uint64_t stamp, struct slice value);
/* A range delete of keys in [from, to), its sequences newest first. Ranges come in key order and do
 * not overlap; when, between the entries, is all the same. TAMIZ_INVALID_ARGUMENT where that is
 * broken. */
tamiz_status table_builder_add_range(struct op *op, struct table_builder *b,
                                     const struct range *range);
/* Bytes the file would have by now; the filter is not counted. */
uint64_t table_builder_size(const struct table_builder *b);
uint64_t table_builder_entries(const struct table_builder *b);
/* The last key added, borrowed until the next add. */
struct slice table_builder_last_key(const struct table_builder *b);

/* What the manifest needs to know of a finished table. Keys owned by whoever owns the bufs. */
struct table_summary {
    uint64_t file_id, file_size;
    uint64_t entries, keys, tombstones, seq_min, seq_max;
    uint64_t ranges; /* range deletes */
    uint64_t filter_bytes;
    struct buf smallest, largest; /* initialised by the caller */
};

/* Writes what is left, syncs and closes; making the name durable (env_sync_directory) is the
 * caller's. The builder is gone afterwards either way; on failure its file is removed. A table with
 * neither entries nor range deletes is TAMIZ_INVALID_ARGUMENT. */
tamiz_status table_builder_finish(struct op *op, struct table_builder *b,
                                  struct table_summary *summary);
/* Closes and removes the file. NULL is fine. */
void table_builder_abandon(struct op *op, struct table_builder *b);

#endif
