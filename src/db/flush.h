/* SPDX-License-Identifier: MIT
 *
 * Flushes: which sealed memtables go to the disk next, and their way there. Each becomes a run of
 * level 0 with its filter; then one edit of the manifest has all of them, and the logs that nobody
 * needs any more may go.
 */
#ifndef TAMIZ_DB_FLUSH_H
#define TAMIZ_DB_FLUSH_H

#include "db/view.h"

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

/* The sealed memtables that go together, each with a reference. */
struct flush_job {
    struct sealed one;   /* needs no memory of its own … */
    struct sealed *many; /* … or owned, room of them; NULL: one */
    struct sealed *list; /* whichever it is */
    size_t count, room;
    uint64_t bytes;
};

/* mutex held in all of them. */

/* Is there a sealed memtable of the keyspace to be flushed now? */
bool flush_wanted(const struct tamiz *db);
/* false: there is nothing to flush now, or no memory. */
bool flush_job_pick(struct store *s, struct flush_job *j, struct op *op);
/* Does it, and frees `j`; false: it failed, and that stands. The mutex is given up during the work.
 */
bool flush_job_run(struct store *s, struct flush_job *j, struct op *op);

#endif
