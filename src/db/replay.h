/* SPDX-License-Identifier: MIT
 *
 * Reading the write-ahead logs again, into memtables. One rule: the replayed writes are a prefix of
 * those that were made. A log ends where the next one begins (records beyond the next log's first
 * sequence are of a group that failed); a gap between two logs ends the replay, and is damage where
 * the missing writes were known to be durable.
 */
#ifndef TAMIZ_DB_REPLAY_H
#define TAMIZ_DB_REPLAY_H

#include "db/view.h"

/* Replayed bytes up to which the new log of a recovery takes them over. */
enum { REPLAY_KEPT_MAX = 256 << 10 };

struct replay {
    struct store *s;
    const struct manifest_state *state;
    const uint64_t *numbers;   /* of all logs there are, ascending; borrowed */
    struct file *const *files; /* the same, open; NULL: they are opened by name */
    size_t count;
    struct mem_ref **memtables; /* one a tree of the state: fresh, or what was replayed */
    uint64_t log;               /* number of the one that is replayed */
    bool skipped;               /* writes that are in tables already: they must not come back */
    struct buf records; /* bodies of replayed records, each after its u64 size: for the new log */
    uint64_t next_seq;  /* behind the last write replayed; 0: none yet */
    uint64_t bytes;
    bool stopped; /* a tail was torn: nothing after it counts */
    bool leapt;   /* over an ingestion that the state has not heard of: it is still to come there,
                     or failed */
};

/* What the state says that logs still have, into r->memtables. TAMIZ_CORRUPTION: a hole, or a
 * record that can't be, with the log's name and the place. */
tamiz_status replay_logs(struct op *op, struct replay *r);
/* Up to where the replayed logs and the tables go. */
uint64_t replay_seq(const struct replay *r);

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

/* Up to where the state and its logs go, and whether over an ingestion, see struct replay. */
struct replayed {
    uint64_t seq;
    bool leapt;
};

/* What the manifest says that logs still have, into fresh memtables, one a tree of the state.
 * TAMIZ_CORRUPTION also where a log was read while it was written. */
tamiz_status replay_open_logs(struct op *op, struct store *s, const struct manifest_state *state,
                              const struct open_logs *logs, struct mem_ref **into,
                              struct replayed *replayed);

#endif
