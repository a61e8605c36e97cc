/* SPDX-License-Identifier: MIT
 *
 * Merges that can wait. A keyspace that nobody wrote to for options.idle_merge milliseconds is
 * merged on until few runs are left (compact/rest.c), one job at a time in the whole store.
 *
 *     writes        |||| ||        ||||||||
 *     idle_merge          [------]         [------]
 *     merges                      ###               ##### ###
 *
 * Where reads have paid for it, that is done while it is written, too; then it is a merge like any
 * other.
 *
 * Writers pay nothing for it: that somebody wrote is seen by the active memtable's count. When they
 * are back and the background has something urgent for which it has no thread, such a job is given
 * up, and its output is removed.
 */
#ifndef TAMIZ_DB_IDLE_H
#define TAMIZ_DB_IDLE_H

#include "db/view.h"

/* store->mutex held in all of them. */

/* Whether nobody wrote for long enough. Looks, and remembers when it saw a write. */
bool idle_is(struct tamiz *db);
/* Bytes that may be merged though it is written to, for its reads have paid for it
 * (compact/toll.h); 0: none. Looks, and remembers what it saw. */
uint64_t idle_paid(struct tamiz *db);
/* Nothing is left to be merged, as long as nothing changes. */
void idle_rest(struct tamiz *db);
/* Whether that was found out, or idle_merge is 0. */
bool idle_at_rest(const struct tamiz *db);
/* A merge that can wait gives up if it is in the way of what cannot. To be called when there may be
 * more work. */
void idle_yield(struct store *s);

#endif
