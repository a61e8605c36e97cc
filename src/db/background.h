/* SPDX-License-Identifier: MIT
 *
 * Background work is jobs: flush sealed memtables (flush.h), merge tables (merging.h). Real threads
 * take them, or, with threads=0, the calls and tamiz_step() do, through the same functions.
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

#endif
