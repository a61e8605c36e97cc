/* SPDX-License-Identifier: MIT
 *
 * Room for the next write: the memtable sealed when it is full, writers paced by what the
 * background drains, and refused where writing is over. Whoever waits has a job running that will
 * free it.
 */
#ifndef TAMIZ_DB_ROOM_H
#define TAMIZ_DB_ROOM_H

#include "db/write.h"

/* Until the active memtable has room for `w`. Leader only; mutex held, given up in between. */
tamiz_status room_make(struct op *op, struct writer *w);
/* `bytes` were written: what the pace counts. mutex held. */
void room_charge(struct store *s, uint64_t bytes);

#endif
