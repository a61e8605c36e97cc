/* SPDX-License-Identifier: MIT
 *
 * One sorted, immutable file and its filter. A table is known by its meta (what the manifest says
 * of it) and opened on first use; index and filter are then in memory until it is closed, its data
 * blocks come and go through the cache.
 */
#ifndef TAMIZ_TABLE_TABLE_H
#define TAMIZ_TABLE_TABLE_H

#include "base/iter.h"
#include "base/key.h"
#include "env/env.h"
#include "filter/filter.h"
#include "table/cache.h"
#include "table/format.h"
#include "table/index.h"
#include "tamiz/tamiz.h"

/* What all tables of a store share. Outlives them. */
struct table_world {
    const tamiz_env *env;
    const struct alloc *alloc;
    struct epoch *epoch;
    struct cache *cache;
    tamiz_event_log log;
    bool direct_io;
    bool verify;
};

struct table; /* safe for any number of threads */

/* How one read goes about it. */
struct table_read {
    int level; /* for counters and traces */
    bool use_filter;
    bool fill_cache;
    enum io_purpose purpose; /* of data blocks: IO_DATA or IO_COMPACTION */
};

/* Makes a handle; touches no file. `path` is copied. `number` and `file_id` are what the manifest
 * says: a file with another id is TAMIZ_CORRUPTION when it is opened. file_id 0: unknown, accept
 * what is there (tools, repair). */
struct table *table_new(struct op *op, const struct table_world *world, const char *path,
                        uint64_t number, uint64_t file_id, uint64_t file_size);
/* No reader can reach it any more. */
void table_free(struct table *t);

/* Opens the file now, if it is not: header, footer, properties, index, filter. A damaged or unknown
 * filter is an event, counted with each read, and no error. Every reading call below does this by
 * itself. */
tamiz_status table_load(struct op *op, struct table *t);

/* The answer of the filter, from memory; loads the table where needed. */
enum table_verdict { TABLE_NO, TABLE_MAYBE, TABLE_NO_FILTER };
tamiz_status table_ask(struct op *op, struct table *t, const struct lookup *lookup,
                       const struct table_read *how, enum table_verdict *verdict);

/* The newest version at or below lookup->stamp_max. Asks the filter first where how->use_filter.
 * TAMIZ_OK: *stamp and *value, which is borrowed until the epoch is left, or, where *pinned is set,
 * until that is unpinned. TAMIZ_NOT_FOUND. Inside an epoch. */
tamiz_status table_get(struct op *op, struct table *t, const struct lookup *lookup,
                       const struct table_read *how, uint64_t *stamp, struct slice *value,
                       struct cached_block **pinned);

/* In version order over the whole table. The table outlives it. NULL: recorded in op. */
struct iter *table_iter(struct op *op, struct table *t, const struct table_read *how);

/* Of a loaded table. Borrowed from it. */
const struct table_properties *table_properties(const struct table *t);
const struct filter_view *
table_filter(const struct table *t); /* family NULL: none; see table_filter_missing */
const char *table_filter_missing(const struct table *t); /* why there is none: "", or words */
uint64_t table_number(const struct table *t);
size_t table_memory(const struct table *t); /* index and filter in memory; 0 before loading */

/* Every block: checksum, order, counts, range, and that the filter denies no member. Finds go to
 * `report`. */
tamiz_status table_verify(struct op *op, struct table *t, tamiz_report *report);

#endif
