/* SPDX-License-Identifier: MIT
 *
 * Moments that somebody reads at. Taken and listed under the store's mutex, so that no compaction
 * can miss one.
 */
#ifndef TAMIZ_DB_SNAPSHOT_H
#define TAMIZ_DB_SNAPSHOT_H

#include "db/store.h"

struct tamiz_snapshot {
    struct store *store;
    uint64_t seq;
    uint64_t ticket;                      /* so many were taken before and with it */
    struct tamiz_snapshot *older, *newer; /* guarded by store->mutex */
};

/* All sequences somebody reads at, ascending, as u64 appended to `out`; how many were taken so far.
 */
uint64_t snapshot_list(struct store *s, struct buf *out);

/* Values change under those who read them, and of all snapshots only those up to `ticket` are known
 * not to. true: there are no others, and until snapshots_admit none is taken. mutex held; one at a
 * time. */
bool snapshots_bar(struct store *s, uint64_t ticket);
void snapshots_admit(struct store *s); /* mutex held */

#endif
