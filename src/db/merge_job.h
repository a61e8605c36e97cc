/* SPDX-License-Identifier: MIT
 *
 * The work of a merge: tables in, tables out, and the tree changed to have these in their place.
 * Which tables, and when, is merging.c's.
 */
#ifndef TAMIZ_DB_MERGE_JOB_H
#define TAMIZ_DB_MERGE_JOB_H

#include "db/view.h"

/* The caller holds the version that `j` was picked from, and the busy set has its tables.
 * TAMIZ_CLOSED: given up, since the store is being closed, the keyspace dropped, or, of a job that
 * can wait, since something else cannot. No lock held. */
tamiz_status merge_job_run(struct op *op, struct tamiz *db, const struct job *j);

#endif
