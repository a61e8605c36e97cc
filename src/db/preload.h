/* SPDX-License-Identifier: MIT
 *
 * Tables opened ahead: once a store is open, its idle threads read filters and indexes of the
 * tables that are there, so that reads need not. At most as many bytes of them as the block cache
 * may have (and a table a thread); the others are opened by the reads that want them, as all are
 * with threads=0.
 */
#ifndef TAMIZ_DB_PRELOAD_H
#define TAMIZ_DB_PRELOAD_H

#include "db/view.h"

/* A table that is not open yet, newest runs first, and the keyspace that it is of, which is not
 * dropped before preload_end. NULL: there is none left, or no room. mutex held. */
struct table_meta *preload_pick(struct store *s, struct tamiz **db);
/* Opens it. Where that fails nobody is told: a read that wants it will fail itself. No lock
 * held. */
void preload_run(struct op *op, struct table_meta *table);
/* No lock held. */
void preload_end(struct tamiz *db, struct table_meta *table);
/* A keyspace more is read from now on. mutex held. */
void preload_again(struct store *s);

#endif
