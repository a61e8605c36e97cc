/* SPDX-License-Identifier: MIT
 *
 * Which merges run, and when: every keyspace's in turn, as many at once as the threads allow, none
 * of tables that another one has. What a merge then does is merge_job.c's.
 */
#ifndef TAMIZ_DB_MERGING_H
#define TAMIZ_DB_MERGING_H

#include "db/view.h"

/* store->mutex held in all of them, but for the last two. */

struct pick_options pick_options_of(const struct tamiz *db);
struct pick_busy pick_busy_of(const struct tamiz *db);

/* Whether the background ever merges it unasked, as the keyspace was opened. */
bool merging_unasked(const struct tamiz *db);
/* Is there a merge of the keyspace to be done now? */
bool merging_wanted(struct tamiz *db);
/* Whether one runs, or is next in turn, or failed and will be tried again. */
bool merging_comes(const struct tamiz *db);

/* A merge of the first keyspace, from the turn on, that wants one, begun; NULL: none does. */
struct tamiz *merging_pick(struct store *s, struct op *op, struct version **base, struct job *j);
/* Does it, and ends it; false: it failed, and that stands. The mutex is given up during the work.
 */
bool merging_run(struct tamiz *db, struct version *base, struct job *j, struct op *op);

/* A picked job begins: its tables are busy, *base is held. false: no memory, or too many at once.
 */
bool merging_begin(struct tamiz *db, struct version **base, struct job *j);
/* It is over, however it ended; `j` is freed. The mutex is given up for a moment. */
void merging_end(struct tamiz *db, struct version *base, struct job *j);
/* What its status means for the merges to come. */
void merging_judge(struct tamiz *db, const struct op *op, tamiz_status st);

/* Stops automatic merging of a keyspace and waits until none runs. The mutex is given up meanwhile.
 */
void merging_pause(struct tamiz *db);
void merging_resume(struct tamiz *db);

/* No merge of the keyspace runs between the two, nor one that a caller asks for: the tree changes
 * by flushes and by whoever asked for this. No lock held. */
void merging_exclude(struct tamiz *db);
void merging_include(struct tamiz *db);

#endif
