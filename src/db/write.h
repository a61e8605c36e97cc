/* SPDX-License-Identifier: MIT
 *
 * Writing: group commit. Writers queue; the first is the leader, writes the log once for all that
 * wait behind it, syncs once if any of them asked, puts everything into the memtable and publishes
 * one new sequence. An error of the leader reaches every follower, and nothing of a failed group
 * becomes visible.
 */
#ifndef TAMIZ_DB_WRITE_H
#define TAMIZ_DB_WRITE_H

#include "db/logs.h"
#include "db/view.h"
#include "log/batch.h"

/* One caller's writes, on its stack while it waits. */
struct writer {
    struct tamiz *db; /* as it was called, and whose counters count */
    /* The keyspaces that it writes to; a single write's is db. Borrowed. */
    struct tamiz *const *trees;
    size_t tree_count;
    /* One write, or a batch; neither: only the flags. */
    bool single;
    enum kind kind;
    struct slice key, value;
    const struct batch *batch;
    bool sync, no_log, no_wait;
    uint64_t ttl; /* seconds, of its puts, as the caller's options say it */
    bool seal;    /* end the memtables, if they have anything: for a flush */
    bool sealed;  /* out: that was done */
    bool paced;   /* it has paused already */
    /* Done by the writer alone, in its place among the others: nothing is written meanwhile. NULL:
     * none. No lock held. */
    tamiz_status (*work)(struct op *op, struct writer *w);
    void *work_ctx;

    struct op *op; /* gets the words of a failure */
    tamiz_status status;
    bool done;
    struct writer *next;
    bool waits; /* `ready` is initialised */
    struct condition ready;
};

tamiz_status db_write(struct op *op, struct writer *w);

/* The keyspace of a write of the writer's batch: mostly that of the write before, `last`. */
struct tamiz *writer_tree(const struct writer *w, uint64_t id, struct tamiz *last);

/* Whether the options want the log on the disk now. With threads, intervals are the syncer's. */
bool write_sync_is_due(const struct store *s);

/* From within `work`: sequences up to `seq` are taken, by what is not in the log. All logs are on
 * the disk afterwards. On failure nothing may have come of it. No lock held. */
tamiz_status store_log_skip(struct op *op, struct store *s, uint64_t seq);
/* All that was appended is on the disk; where that fails, the log is left for
 * good, and the next write goes to a new one. No lock held. */
tamiz_status store_secure_logs(struct op *op, struct store *s);

/* Writes that name no keyspace go to the one that the batch is written to; their id is 0, as is
 * that of the default one. Which of the two an id of 0 means changes at each of the `turns`. */
struct tamiz_batch {
    struct batch writes;
    struct store *store; /* of the first keyspace named; NULL: none yet */
    struct buf trees;    /* struct tamiz *: those named, each once */
    bool unnamed;        /* there are writes that name none */
    bool names_default;  /* the last write with id 0 named the default keyspace */
    struct buf turns;    /* u64 indexes of writes, ascending; the first ones name none */
};

#endif
