/* SPDX-License-Identifier: MIT
 *
 * Room for the next write: the memtables sealed when they are full, writers paced by what the
 * background drains, each keyspace for itself, and refused where writing is over. Whoever waits has
 * a job running that will free it, and does not stand in the way of the writers of other keyspaces.
 */
#ifndef TAMIZ_DB_ROOM_H
#define TAMIZ_DB_ROOM_H

#include "db/write.h"

/* What a writer has to wait for, out of the queue: it is nothing to the writers of other keyspaces.
 */
struct room_wait {
    struct tamiz *db; /* NULL: nothing */
    enum pace_reason why;
    bool pause; /* its pace, not its room */
};

/* Until the active memtables have room for `w`, or *wait says what keeps them from it. Leader only;
 * mutex held, given up in between. */
tamiz_status room_make(struct op *op, struct writer *w, struct room_wait *wait);
/* Waits, or does the background's work; then the writer tries again. mutex held, given up in
 * between. */
tamiz_status room_wait(struct op *op, struct writer *w, const struct room_wait *wait);
/* Whether a write may go to the keyspace at once, with whoever leads. mutex held. */
bool room_is_free(const struct tamiz *db);
/* `bytes` were written: what the pace counts. mutex held. */
void room_charge(struct tamiz *db, uint64_t bytes);

#endif
