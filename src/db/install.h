/* SPDX-License-Identifier: MIT
 *
 * Changing the tree, one change at a time: apply the edit to the newest version, make it durable in
 * the manifest, show it to readers as a new view.
 */
#ifndef TAMIZ_DB_INSTALL_H
#define TAMIZ_DB_INSTALL_H

#include "db/view.h"

/* What changes in one keyspace. `flushed`: memtables whose contents the added tables have, which
 * leave the view. */
struct tree_change {
    struct tamiz *db;
    struct version_edit tables;
    struct mem_ref *const *flushed;
    size_t flushed_count;
    bool judged;     /* a compaction filter dropped or changed what no snapshot saw … */
    uint64_t ticket; /* … of those up to this one */
};

/*
 * All changes, each of another keyspace, with one edit of the manifest. `log_number`: 0, or all
 * logs below it are not needed any more, as who just recovered from them knows; else it is worked
 * out from the memtables that are left. On failure nothing changed for readers; the added tables'
 * files may be named by the manifest (a failed sync) and are left for the next open to judge unless
 * the manifest is settled. TAMIZ_BUSY: one was judged, and a younger snapshot is held; nothing
 * happened.
 */
tamiz_status install(struct op *op, struct store *s, const struct tree_change *changes, size_t n,
                     uint64_t log_number);
/* Of one keyspace, tables only. */
tamiz_status install_tables(struct op *op, struct tamiz *db, const struct version_edit *tables);

/* For who changes which keyspaces there are; install_mutex held in all of them. */

/* Fills in the counters that every edit has, and makes it durable; store->state is the picture
 * after it. */
tamiz_status install_record(struct op *op, struct store *s, struct manifest_edit *record);
/* After that failed and store->state is as it was before: makes that the picture in force. */
void install_settle(struct op *op, struct store *s);
/* Into store->state: which logs are needed by all keyspaces but `without`. */
void install_advance_logs(struct store *s, const struct tamiz *without);
/* A drop or an ingestion was told to have failed, and may be in force where that was not settled:
 * writes that were acknowledged in front of a crash would be followed by it. Any thread. */
void install_doubt(struct store *s);
/* Before the next write: settles it, or that write fails too. No lock held. */
tamiz_status install_leave_doubt(struct op *op, struct store *s);
/* References to the tables of a version, to be remembered until nobody reads them. */
tamiz_status obsolete_add(struct op *op, struct store *s, struct table_meta *meta,
                          struct obsolete **list);
void obsolete_free(struct store *s, struct obsolete *list);
/* mutex held. */
void obsolete_join(struct store *s, struct obsolete *list);

/* Removes the files of tables that were built but never installed. */
void discard_tables(struct op *op, struct store *s, struct buf *tables);

#endif
