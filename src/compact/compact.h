/* SPDX-License-Identifier: MIT
 *
 * Merging: versions in order in, tables out. What nobody can see is dropped on the way. The
 * sequences somebody reads at cut time into stripes, and of each key one version a stripe is left,
 * the newest:
 *
 *     snapshots           20           40              kept at the bottom   above older versions
 *     versions of k  12 17 | 23 25  29 | 51            51 29 0              51 29 17
 *     versions of l  12 17 | 23    †29 | 51 †56        †29 0                †29 17
 *     versions of m    †17 |       †29 |               nothing              †17
 *
 * Of tombstones that follow each other the oldest says it all; and where nothing older lies below,
 * a tombstone with nothing older beside it says nothing. What every reader sees at the bottom needs
 * no sequence: it becomes 0, one byte in the table, and a reader's own sequence is never below it.
 *
 * A value whose time has come is a tombstone, at its own stamp, before any of this is looked at: so
 * nothing older ever shows in its place. What is left and no snapshot sees is shown to the
 * program's compaction filter (judge.h); what that drops is a tombstone at its own stamp as well.
 *
 * Range deletes are versions of all keys they cover: of those in one stripe the newest is left,
 * what they cover in their stripe is dropped, and at the bottom the oldest stripe's have nothing
 * left to do. Where a table ends at key k, a piece that goes on is cut at k and a zero byte, the
 * first key behind k: so no two tables of a run cover one key.
 *
 *     piece         [c, p) 30                  keys of the output  d  g | m  r
 *     tables        d g, [c, g0) 30: c..g      m r, [g0, p) 30: g0..r
 *
 * So much is only right if a reader takes its sequence after it pinned the tables it reads, and a
 * snapshot takes its own in one step with being listed.
 */
#ifndef TAMIZ_COMPACT_COMPACT_H
#define TAMIZ_COMPACT_COMPACT_H

#include "compact/judge.h"
#include "table/table_build.h"
#include "version/version.h"

struct compact_input {
    struct iter *source;               /* in version order; stays the caller's */
    const struct range_delete *ranges; /* of all inputs, in any order; keys borrowed */
    size_t range_count;
    const uint64_t *snapshots; /* sequences somebody reads at, ascending */
    size_t snapshot_count;
    uint64_t now_us;     /* values whose time has come by then become tombstones in their places */
    bool bottom;         /* nothing older lies below the inputs' range */
    struct judge *judge; /* NULL: none; stays the caller's */
    bool (*cancelled)(void *ctx); /* asked every few hundred versions; NULL: never */
    void *cancel_ctx;
};

struct compact_output {
    const tamiz_env *env;
    const struct alloc *alloc;
    const char *directory;
    struct table_build_options build;
    uint64_t table_bytes; /* a table ends with the first user key beyond */
    uint32_t level;
    uint64_t run;
    /* Hands out a fresh file number; any thread. */
    uint64_t (*next_file)(void *ctx);
    void *next_file_ctx;
};

/* Appends one struct table_meta * (referenced, no handle attached) to `tables` for each table
 * written; possibly none. The files are synced, their directory is not. Source error, cancellation
 * (TAMIZ_CLOSED) or failure: what was written is removed again and `tables` is as it was. */
tamiz_status compact_run(struct op *op, const struct compact_input *in,
                         const struct compact_output *out, struct buf *tables);

#endif
