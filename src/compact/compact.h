/* SPDX-License-Identifier: MIT
 *
 * Merging: versions in order in, tables out. What nobody can see is dropped on the way: of each
 * key, a version is kept if it is the newest that some snapshot (or now) sees; a tombstone that
 * would be the oldest thing left of its key goes where nothing older can lie below. Outputs never
 * split a user key.
 */
#ifndef TAMIZ_COMPACT_COMPACT_H
#define TAMIZ_COMPACT_COMPACT_H

#include "table/table_build.h"
#include "version/version.h"

struct compact_input {
    struct iter *source;       /* in version order; stays the caller's */
    const uint64_t *snapshots; /* sequences somebody reads at, ascending */
    size_t snapshot_count;
    bool bottom;                  /* nothing older lies below the inputs' range */
    bool (*cancelled)(void *ctx); /* asked now and then; NULL: never */
    void *cancel_ctx;
};

struct compact_output {
    const tamiz_env *env;
    const struct alloc *alloc;
    const char *directory;
    struct table_build_options build;
    uint64_t table_bytes;
    uint32_t level;
    uint64_t run;
    /* Hands out a fresh file number; any thread. */
    uint64_t (*next_file)(void *ctx);
    void *next_file_ctx;
};

/* Appends one struct table_meta * (referenced, no handle attached) to `tables` for each table
 * written; possibly none. Source error, cancellation (TAMIZ_CLOSED) or failure: what was written is
 * removed again and `tables` is as it was. */
tamiz_status compact_run(struct op *op, const struct compact_input *in,
                         const struct compact_output *out, struct buf *tables);

#endif
