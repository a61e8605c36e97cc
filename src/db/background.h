/* SPDX-License-Identifier: MIT
 *
 * Background work is jobs: flush a sealed memtable, merge tables, remove what nobody reads. Real
 * threads take them, or, with threads=0, the calls and tamiz_step() do, through the same functions.
 *
 * A job that fails changes nothing: its files are removed, its error stands (tamiz_health) and it
 * is tried again later, since space may return. Only a merge that met damaged data is not repeated
 * by itself.
 */
#ifndef TAMIZ_DB_BACKGROUND_H
#define TAMIZ_DB_BACKGROUND_H

#include "db/view.h"

/* Does one job if there is one; false: there was none. No lock held. */
bool background_step(struct store *s);
/* Does jobs until there are none that can be done. */
void background_run(struct store *s);
/* Is there a job that could be done now? */
bool background_pending(struct store *s);
/* Whether the keyspace's tree is as it will be if nobody writes: nothing runs, nothing waits. */
bool background_settled(struct tamiz *db);

/* Whether what writers of the keyspace are held back for has a job that runs or is next in turn, or
 * one that failed and will be tried again: nobody may wait for less. mutex held. */
bool background_frees(const struct tamiz *db, enum pace_reason why);

tamiz_status background_start(struct op *op, struct store *s);
/* Cancels what runs and waits for the threads. */
void background_stop(struct store *s);

/* Seals and flushes everything that was acknowledged before the call. */
tamiz_status db_flush(struct op *op, struct tamiz *db);
/* The same of every keyspace. */
tamiz_status db_flush_all(struct op *op, struct store *s);
/* Merges a picked job; the busy set has its tables already. */
tamiz_status db_merge(struct op *op, struct tamiz *db, struct version *base, struct job *j);
tamiz_status db_compact_range(struct op *op, struct tamiz *db, struct slice from, struct slice to,
                              bool to_unbounded);
tamiz_status db_compact_table(struct op *op, struct tamiz *db, uint32_t level, size_t index);

/* A sealed memtable, with a reference. */
struct sealed {
    struct tamiz *db;
    struct mem_ref *memtable;
};
/* Writes sealed memtables as runs of level 0, each its own, and makes all of them part of their
 * trees at once. Those of one keyspace stand together, oldest first, its oldest among them.
 * `log_number` as for install(). */
tamiz_status flush_memtables(struct op *op, struct store *s, const struct sealed *list, size_t n,
                             uint64_t log_number);

/* No merge of the keyspace runs between the two, nor one that a caller asks for: the tree changes
 * by flushes and by whoever asked for this. No lock held. */
void merging_exclude(struct tamiz *db);
void merging_include(struct tamiz *db);
/* A number for a new run, newer than all. No lock held. */
uint64_t background_next_run(struct store *s);

/* For who picks and runs merges; store->mutex held in all of them. */
struct pick_options pick_options_of(const struct tamiz *db);
struct pick_busy pick_busy_of(const struct tamiz *db);
/* A picked job begins: its tables are busy, *base is held. false: no memory, or too many at once.
 */
bool merging_begin(struct tamiz *db, struct version **base, struct job *j);
/* It is over, however it ended; `j` is freed. The mutex is given up for a moment. */
void merging_end(struct tamiz *db, struct version *base, struct job *j);
/* What its status means for the merges to come. */
void merging_judge(struct tamiz *db, const struct op *op, tamiz_status st);

#endif
