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
    struct tamiz_snapshot *older, *newer; /* guarded by store->mutex */
};

/* All sequences somebody reads at, ascending, as u64 appended to `out`. */
void snapshot_list(struct store *s, struct buf *out);

#endif
