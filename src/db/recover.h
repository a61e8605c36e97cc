/* SPDX-License-Identifier: MIT
 *
 * From a directory to a store that can be written: which tables, which logs, what to replay, what
 * is garbage.
 */
#ifndef TAMIZ_DB_RECOVER_H
#define TAMIZ_DB_RECOVER_H

#include "db/view.h"

/* Makes the keyspaces with their views, sequence, numbers and logs from what the directory holds.
 * TAMIZ_NOT_FOUND: no store there and none wanted. */
tamiz_status recover(struct op *op, struct store *s);

/* Logs that were opened while they had their names, oldest first. */
struct open_logs {
    const uint64_t *numbers; /* ascending */
    struct file *const *files;
    size_t count;
};

/* Fresh memtables, one a keyspace; the list is the caller's to free, also on failure. */
tamiz_status replay_memtables(struct op *op, struct tamiz *const *keyspaces, size_t n,
                              uint64_t first_log, struct mem_ref ***memtables);
void replay_memtables_free(struct store *s, struct mem_ref **memtables, size_t n);

/* What the manifest says that logs still have, into fresh memtables, one a tree of the state; *seq:
 * up to where all of it goes. TAMIZ_CORRUPTION also where a log was read while it was written. */
tamiz_status replay_open_logs(struct op *op, struct store *s, const struct manifest_state *state,
                              const struct open_logs *logs, struct mem_ref **into, uint64_t *seq);

/* Removes files of the store that nothing names: half-built tables, finished logs, old manifests.
 * What can't be removed is left. */
void remove_garbage(struct op *op, struct store *s);

#endif
