/* SPDX-License-Identifier: MIT
 *
 * The store as one thing. `struct store` is what all keyspaces share: directory, lock, log, cache,
 * sequence, background. `struct tamiz` is one keyspace: a tree of memtables and tables, seen
 * through its view.
 *
 * A write-ahead log has the writes of all keyspaces, and goes when none of them needs it. What must
 * hold between the two is in docs/adr/0022-keyspaces.md.
 *
 * Locks, in the order they are taken:
 *
 *     install_mutex   one change of the tree at a time: manifest, version, view
 *     log_mutex       the logs: appended, synced, switched, removed
 *     mutex           everything short: queue of writers, view pointers, jobs, snapshots, iterators
 *     views_mutex     what was counted with views
 *
 * No I/O happens under `mutex`. Readers take none of them.
 */
#ifndef TAMIZ_DB_STORE_H
#define TAMIZ_DB_STORE_H

#include "compact/pace.h"
#include "compact/pick.h"
#include "compact/toll.h"
#include "db/park.h"
#include "env/epoch.h"
#include "env/thread.h"
#include "log/log.h"
#include "tamiz/tamiz.h"
#include "version/manifest.h"

struct view;
struct writer;
struct ledger;

/* One write-ahead log that some memtable still needs. The last of the list is the one that is
 * written. */
struct store_log {
    uint64_t number;
    struct log_writer writer;
    uint64_t last_seq; /* highest sequence in it or in a log before it                      */
};

/* Background work that failed, see standing.h. */
struct standing_error {
    tamiz_status status; /* TAMIZ_OK: the last try went well */
    uint32_t failures;   /* in a row */
    uint64_t retry_ns;   /* monotonic: not before; 0: at once */
    char text[OP_TEXT_MAX];
};

enum {
    STORE_JOBS_MAX = 72
}; /* compactions at once: one a thread, and those that callers ask for */

/* A removed table that somebody may still read. */
struct obsolete {
    struct table_meta *meta; /* one reference: ours */
    struct obsolete *next;
};

/* Writers held to what the background can take. */
struct store_pace {
    double ns_per_byte; /* now; 0: nobody is slowed */
    enum pace_reason reason;
    uint64_t since;                /* bytes written since that was worked out */
    uint64_t next_ns;              /* monotonic: when the writes so far are paid for */
    double flush_rate, merge_rate; /* measured, see pace.h */
};

/* How far the tables are opened ahead, see preload.h. */
struct preload {
    size_t keyspace; /* of store->keyspaces */
    uint32_t table;  /* of its version */
    uint64_t bytes;  /* of filters and indexes, met or read so far */
};

struct store {
    tamiz_options options; /* as asked, env and limits resolved. Frozen */
    struct alloc alloc;
    struct alloc_count memory;
    const tamiz_env *env;
    char *directory;
    void *lock;     /* NULL: read-only */
    bool lock_made; /* its file was not there before */
    const _Atomic unsigned char *fork_guard;
    struct epoch epoch;
    struct cache *cache;
    struct file_pool files;
    struct tamiz *first; /* the default keyspace: the handle that opening gave */

    _Atomic uint64_t seq; /* published: all versions at or below are in their views */
    _Atomic uint64_t next_file;
    _Atomic uint64_t active_log; /* number of the log that is written; changed by the leader only */
    _Atomic bool closing;
    _Atomic bool hurry;     /* a merge that can wait gives up. Set under the mutex, read anywhere */
    _Atomic bool unsettled; /* the manifest's: nothing may be deleted */
    _Atomic bool in_doubt;  /* … and nothing written: see install_doubt */
    _Atomic uint64_t last_sync_ns; /* monotonic */
    _Atomic uint64_t now_us;       /* the latest wall clock that store_now saw */
    uint64_t opened_ns;            /* monotonic; frozen */

    /* install_mutex */
    struct mutex install_mutex;
    struct manifest manifest;
    struct manifest_state state; /* what the manifest says; the versions are the newest */

    /* log_mutex */
    struct mutex log_mutex;
    struct store_log *logs; /* oldest first */
    size_t log_count, log_capacity;
    _Atomic bool stray_log; /* a log that was given up may be there again after a power cut: nothing
                               more may be written before the next one stands */

    struct mutex views_mutex;

    /* mutex */
    struct mutex mutex;
    struct condition progress; /* a job ended, or the state of writing changed */
    struct condition work;     /* there may be a job */
    uint64_t work_calls;       /* how often that was said */
    struct writer *first_writer, *last_writer;
    _Atomic uint32_t queued;  /* writers from the first to the last; read anywhere */
    uint32_t expected;        /* how many they were when the last group ended, and it with them */
    uint32_t gather_pause;    /* groups for which no leader waits for others */
    uint64_t sync_ns;         /* how long the leader's last sync took; the leader's */
    struct tamiz **keyspaces; /* that can be used, ids ascending; [0] is the default one */
    size_t keyspace_count, keyspace_room;
    struct tamiz *dropped;         /* handles that answer TAMIZ_CLOSED until the store is closed */
    size_t flush_turn, merge_turn; /* whose jobs are looked for first: every keyspace's in turn */
    struct tamiz_snapshot *oldest_snapshot, *newest_snapshot;
    uint64_t snapshots_taken;
    bool snapshots_barred; /* a change is being installed that they must see wholly or not at all */
    struct tamiz_iter *iters; /* all open ones and those in the parks */
    bool moving_on;           /* memtables must be sealed before the next write: their log failed */
    bool log_lost;     /* a sync failed: no write before the memtables it covered are flushed */
    uint32_t merging;  /* compaction jobs that run, of all keyspaces */
    bool idle_merging; /* one of them can wait, see idle.h */
    bool write_error;  /* a group reached the log but not the memtable: writing is over until
                          reopened */
    struct obsolete *obsolete;
    struct preload preload;
    struct thread *threads;
    uint32_t thread_count;
    struct thread syncer;
    bool has_syncer;
};

/* Since when nobody wrote to a keyspace, what its reads paid, and whether its tree is at rest. */
struct quiet {
    const struct mem_ref *active; /* compared, never followed */
    uint64_t count;               /* of its versions when it was looked at last */
    uint64_t since_ns;            /* monotonic */
    uint64_t rest;                /* view_changes at which nothing was left to be merged */
    struct toll toll;
    bool counting;    /* the toll: not while there is nothing to be merged */
    uint64_t changes; /* view_changes when it was looked at last … */
    uint64_t look_ns; /* … and when that is done again; monotonic */
};

/* What a reader reads of it stands first; all of that is frozen but for view and guard. */
struct tamiz {
    _Atomic(struct view *) view;
    struct store *store;
    _Atomic(const _Atomic unsigned char *) guard; /* at 0: calls are refused */
    struct epoch_slot *slots;                     /* whose counters are this keyspace's */
    struct ledger *ledger;
    uint64_t id; /* never used again */
    char *name;  /* mem_text */
    struct table_world world;

    struct park park; /* closed iterators */

    /* store->views_mutex */
    struct view *newest_view; /* of those that were published and are not gone */
    struct counters gone;     /* counted with those that are */

    /* store->mutex */
    tamiz_options options; /* those of a tree count; changed while no job of it runs */
    bool named; /* opened by its name, or the default one; before that nothing is merged */
    _Atomic bool dropped;   /* or about to be: no new writes, no new jobs; read anywhere */
    struct mem_ref *active; /* borrowed from the view; changed by the leader only */
    struct store_pace pace;
    struct counters ended; /* of closed iterators and ended jobs */
    struct quiet quiet;
    uint64_t view_changes;                     /* how often the view was replaced, from 1 on */
    uint32_t opening;                          /* tables that are being opened ahead */
    bool flushing;                             /* a flush job runs */
    uint32_t merging;                          /* compaction jobs that run */
    uint32_t paused;                           /* > 0: no new automatic compactions */
    bool exclusive;                            /* nor any other: tables are being ingested */
    const struct job *running[STORE_JOBS_MAX]; /* as many as merging */
    struct buf busy;                           /* u64 numbers of tables in running jobs */
    struct buf cursors[TAMIZ_LEVELS];
    struct standing_error flush_error, merge_error;
    struct tamiz *next_dropped;
    bool ledger_lent; /* of a dropped one: another keyspace has its ledger now */
};

/* The words for a handle that must not be used. */
tamiz_status store_refuse(const struct tamiz *db) __attribute__((cold));

/* Checks what every public call checks: a handle, that it did not cross fork(), and that its
 * keyspace was not dropped. */
static inline tamiz_status store_check(const struct tamiz *db)
{
    if (__builtin_expect(!db, 0))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "no store given (NULL)");
    const _Atomic unsigned char *guard = atomic_load_explicit(&db->guard, memory_order_relaxed);
    if (__builtin_expect(!atomic_load_explicit(guard, memory_order_relaxed), 0))
        return store_refuse(db);
    return TAMIZ_OK;
}

/* Reports to the embedder's event log; silent without one. */
void store_event(const struct store *s, tamiz_event_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Waits until `c` is signalled or the time is over. mutex held, given up meanwhile. In a simulation
 * whose callers take turns, another one goes on. */
void store_wait(struct store *s, struct condition *c, uint64_t us);

/* There may be a job: a thread looks, also one that has just looked in vain. mutex held. */
void store_call_work(struct store *s);

uint64_t store_next_file(void *store); /* a number never used before; any thread */

/* "DIRECTORY/NAME" of a file of the store; TAMIZ_OUT_OF_MEMORY recorded where NULL. Freed with
 * mem_free_text. */
char *store_path(struct op *op, const struct store *s, enum file_kind kind, uint64_t number);

/* Removes obsolete tables nobody reads any more, and what epochs hold. Any thread, no lock held. */
void store_collect(struct store *s);

#endif
