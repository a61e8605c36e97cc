/* SPDX-License-Identifier: MIT
 *
 * tamiz: an embeddable, ordered, persistent key-value store. A log-structured merge tree in which
 * every sorted file carries its own filter, and no read touches the disk before the filter was
 * asked.
 *
 *     tamiz *db;
 *     if (tamiz_open("words", NULL, &db) != TAMIZ_OK)
 *         return puts(tamiz_error_detail());
 *     tamiz_put(db, "sieve", 5, "tamiz", 5, NULL);
 *     void *value; size_t size;
 *     if (tamiz_get(db, "sieve", 5, &value, &size, NULL) == TAMIZ_OK) {
 *         use(value, size);
 *         tamiz_free(value);
 *     }
 *     tamiz_close(db);
 *
 * Keys are 0 to 65,535 bytes, values 0 to 2^30 bytes, any bytes; the empty key is a key. Keys are
 * ordered as memcmp orders them, a prefix first. A larger one is TAMIZ_INVALID_ARGUMENT.
 *
 * Threads: every call on a `tamiz` may be made from any thread at the same time, except
 * tamiz_close. An iterator, a batch and a snapshot belong to one thread at a time. After fork(),
 * the child's calls return TAMIZ_INVALID_ARGUMENT.
 *
 * Errors: below 0 is wrong, above 0 an ordinary "no". No call prints, aborts or installs handlers.
 * On failure an out-parameter is empty. tamiz_error_detail() has the words. Besides what a call
 * names, any may return TAMIZ_INVALID_ARGUMENT (a NULL where none may be, a forked child's
 * handle), TAMIZ_IO_ERROR, TAMIZ_CORRUPTION of what it reads, and TAMIZ_OUT_OF_MEMORY.
 *
 * Bytes handed in are borrowed for the call and copied. Options, too, but for what they point to.
 */
#ifndef TAMIZ_TAMIZ_H
#define TAMIZ_TAMIZ_H

#include "tamiz/filter.h"
#include "tamiz/options.h"
#include "tamiz/trace.h"
#include "tamiz/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tamiz tamiz;                   /* one keyspace of an open store */
typedef struct tamiz_batch tamiz_batch;       /* writes that happen together   */
typedef struct tamiz_snapshot tamiz_snapshot; /* a moment to read at           */
typedef struct tamiz_iter tamiz_iter;

/* ---- opening ---- */

/*
 * Opens the store in directory `path`; options NULL: the defaults. *db is NULL on failure. The
 * parent directory must exist. TAMIZ_NOT_FOUND: no store and create_if_missing is false.
 * TAMIZ_BUSY: open elsewhere; the detail names the holder. TAMIZ_CORRUPTION: damage that would lose
 * acknowledged writes, nothing was changed. TAMIZ_NOT_SUPPORTED: newer format.
 */
TAMIZ_API tamiz_status tamiz_open(const char *path, const tamiz_options *options, tamiz **db);

/*
 * For a store opened with read_only, which another process may be writing: moves on to what is
 * there now. Until then reads see what was there when it was opened or last refreshed, whatever
 * the writer flushes, merges and removes: table files are held open. Nothing is locked, written or
 * removed. What a writer has put with no_log is seen once it is flushed.
 *
 * Open iterators go on over what they began with. TAMIZ_BUSY: a snapshot is held; release it first,
 * nothing changed. On any failure nothing changed. For other stores TAMIZ_OK and nothing to do.
 * Costs reading the manifest and the logs, up to a memtable's worth. Of more tables than three
 * quarters of max_open_files the rest is not held open: a read of one that the writer removed
 * meanwhile is TAMIZ_IO_ERROR, and a refresh away.
 */
TAMIZ_API tamiz_status tamiz_refresh(tamiz *db);

/* Stops background work and keeps all written data. NULL is fine. TAMIZ_BUSY with open iterators or
 * snapshots: nothing closed. After any other status the handle is gone; an error says what could
 * not be written. */
TAMIZ_API tamiz_status tamiz_close(tamiz *db);

/* Removes a store's own files and nothing else; the directory too if it is empty then. TAMIZ_BUSY:
 * it is open. TAMIZ_NOT_FOUND: no store, or another program's with the same names of files (the
 * detail says which file); nothing was touched. */
TAMIZ_API tamiz_status tamiz_destroy(const char *path);

/* The background's standing error, with its words, or OK. It is tried again by itself, with growing
 * pauses, and OK once that has succeeded. Cheap. */
TAMIZ_API tamiz_status tamiz_health(tamiz *db);

/* For threads=0: does background work for about budget_us microseconds (at least one job if there
 * is one; UINT64_MAX: all of it); *more: some is left. Returns what tamiz_health would. */
TAMIZ_API tamiz_status tamiz_step(tamiz *db, uint64_t budget_us, bool *more);

typedef struct tamiz_report {
    size_t struct_size;
    uint64_t files, blocks, keys;              /* looked at                                     */
    uint64_t damaged;                          /* finds                                         */
    uint64_t lost_bytes;                       /* that could not be read                        */
    void (*find)(void *ctx, const char *text); /* one line a find; may be NULL      */
    void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes); /* may be NULL */
    void *ctx;
} tamiz_report;
#define TAMIZ_REPORT_INIT                                                                          \
    {                                                                                              \
        sizeof(tamiz_report), 0, 0, 0, 0, 0, NULL, NULL, NULL                                      \
    }

/* Reads every block of every table: checksums, order of keys, ranges, counts, and that no filter
 * denies a member. TAMIZ_CORRUPTION where something was found; the report has the number.
 * TAMIZ_NOT_SUPPORTED: a table is of a newer format, or of a part not built in. */
TAMIZ_API tamiz_status tamiz_verify(tamiz *db, tamiz_report *report);

/* For a store that can't be opened, or that tamiz_verify finds damaged. Not open meanwhile
 * (TAMIZ_BUSY). Where all is well nothing is touched. Else all that can be read of tables and logs
 * is merged into new tables, which needs as much room again, and the old files go to the
 * subdirectory "lost": nothing is deleted. Newer values win and deletes stay deleted, also where
 * the manifest is lost; but a delete that stood where nothing can be read is lost with it. `report`
 * may be NULL: each find is told, with what it cost. TAMIZ_OK: the store can be opened again,
 * whatever report->damaged says. TAMIZ_NOT_FOUND: no store of tamiz. TAMIZ_NOT_SUPPORTED: some of
 * it is of a newer format, or of a part not built in. A failure leaves it as it was. */
TAMIZ_API tamiz_status tamiz_repair(const char *path, const tamiz_options *options,
                                    tamiz_report *report);

/* ---- writing ---- */

typedef struct tamiz_write_options {
    size_t struct_size;
    bool sync;    /* durable when the call returns, and all that was acknowledged before it */
    bool no_log;  /* not in the log: lost in a crash before the next flush                  */
    bool no_wait; /* TAMIZ_BUSY instead of waiting for the background                       */
    /* Seconds after which what is put here, all puts of a batch, is as good as deleted: at most 100
     * years. 0: as the keyspace's option `ttl` has it; TAMIZ_TTL_NEVER: whatever that says, never.
     * Deletes have none. docs/expiry.md */
    uint64_t ttl;
} tamiz_write_options;
#define TAMIZ_TTL_NEVER UINT64_MAX
#define TAMIZ_WRITE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tamiz_write_options), false, false, false, 0                                        \
    }

/* options NULL: defaults. TAMIZ_NO_SPACE: nothing of this write happened. TAMIZ_READ_ONLY: see
 * tamiz_health. */
TAMIZ_API tamiz_status tamiz_put(tamiz *db, const void *key, size_t key_size, const void *value,
                                 size_t value_size, const tamiz_write_options *options);
/* Deleting what is not there is TAMIZ_OK. */
TAMIZ_API tamiz_status tamiz_delete(tamiz *db, const void *key, size_t key_size,
                                    const tamiz_write_options *options);

/* Deletes every key in [from, to) that was written before; what is written after it stays. A single
 * entry, however many keys there are; tables that lie inside the range go without being read.
 * TAMIZ_INVALID_ARGUMENT: `to` is not above `from`. The empty key is a key: there is no "no end".
 */
TAMIZ_API tamiz_status tamiz_delete_range(tamiz *db, const void *from, size_t from_size,
                                          const void *to, size_t to_size,
                                          const tamiz_write_options *options);

/* All or nothing, for readers and after a crash. The same key twice: the later one wins. */
TAMIZ_API tamiz_batch *tamiz_batch_new(void); /* NULL: out of memory */
TAMIZ_API tamiz_status tamiz_batch_put(tamiz_batch *batch, tamiz *keyspace, const void *key,
                                       size_t key_size, const void *value, size_t value_size);
TAMIZ_API tamiz_status tamiz_batch_delete(tamiz_batch *batch, tamiz *keyspace, const void *key,
                                          size_t key_size);
/* What the batch had before it is deleted too. */
TAMIZ_API tamiz_status tamiz_batch_delete_range(tamiz_batch *batch, tamiz *keyspace,
                                                const void *from, size_t from_size, const void *to,
                                                size_t to_size);
TAMIZ_API size_t tamiz_batch_count(const tamiz_batch *batch);
TAMIZ_API void tamiz_batch_clear(tamiz_batch *batch);
TAMIZ_API void tamiz_batch_free(tamiz_batch *batch); /* NULL is fine */
TAMIZ_API tamiz_status
tamiz_write(tamiz *db, tamiz_batch *batch,
            const tamiz_write_options *options); /* the batch stays the caller's */

/* Memtables to tables; returns once they are durable. */
TAMIZ_API tamiz_status tamiz_flush(tamiz *db);
/* All acknowledged writes that went through the log are durable when this returns. */
TAMIZ_API tamiz_status tamiz_sync(tamiz *db);
/* Merges all that overlaps [from, to) into one run; NULL: unbounded. Flushes first. */
TAMIZ_API tamiz_status tamiz_compact(tamiz *db, const void *from, size_t from_size, const void *to,
                                     size_t to_size);
/* Merges one exact table, the index-th of its level in the order of tamiz_property "tables", one
 * level down, with whatever the automatic picker would add to it. TAMIZ_NOT_FOUND: no such table.
 * For tests and teaching. */
TAMIZ_API tamiz_status tamiz_compact_table(tamiz *db, unsigned level, size_t index);

/* ---- reading ---- */

typedef struct tamiz_read_options {
    size_t struct_size;
    const tamiz_snapshot *snapshot; /* NULL: now */
    const void *lower; /* iterators: inclusive; NULL: unbounded                            */
    size_t lower_size;
    const void *upper; /* exclusive; a pointer with size 0 is the empty key */
    size_t upper_size;
    const void *prefix; /* only keys that begin so; see the option prefix_filter */
    size_t prefix_size;
    bool fill_cache;  /* keep the blocks that are read                                          */
    bool use_filters; /* false: a filterless twin of this read                                  */
    const tamiz_trace *trace; /* receives each step of this read; NULL: none */
} tamiz_read_options;
#define TAMIZ_READ_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(tamiz_read_options), NULL, NULL, 0, NULL, 0, NULL, 0, true, true, NULL              \
    }

/* A copy; free it with tamiz_free. TAMIZ_NOT_FOUND leaves *value NULL. An empty value is a non-NULL
 * buffer of size 0. */
TAMIZ_API tamiz_status tamiz_get(tamiz *db, const void *key, size_t key_size, void **value,
                                 size_t *value_size, const tamiz_read_options *options);
/* No allocation; copies what fits into `buffer`, *value_size is the size of the whole value. */
TAMIZ_API tamiz_status tamiz_get_into(tamiz *db, const void *key, size_t key_size, void *buffer,
                                      size_t capacity, size_t *value_size,
                                      const tamiz_read_options *options);
/* One view for all n; each has its own status, value (tamiz_free it) and size: a key that can't be
 * one is TAMIZ_INVALID_ARGUMENT by itself, and the others are answered. Returns the first error,
 * else OK. */
TAMIZ_API tamiz_status tamiz_multi_get(tamiz *db, size_t n, const void *const keys[],
                                       const size_t key_sizes[], void *values[],
                                       size_t value_sizes[], tamiz_status statuses[],
                                       const tamiz_read_options *options);
/* TAMIZ_OK or TAMIZ_NOT_FOUND, always right. */
TAMIZ_API tamiz_status tamiz_exists(tamiz *db, const void *key, size_t key_size,
                                    const tamiz_read_options *options);
/* Memory only, never a device read for data; *maybe false is certain. */
TAMIZ_API tamiz_status tamiz_may_contain(tamiz *db, const void *key, size_t key_size, bool *maybe,
                                         const tamiz_read_options *options);

/* A moment: reads with it see all that was acknowledged before and nothing after. Released before
 * its store is closed. */
TAMIZ_API tamiz_status tamiz_snapshot_take(tamiz *db, tamiz_snapshot **snapshot);
TAMIZ_API void tamiz_snapshot_release(tamiz_snapshot *snapshot); /* NULL is fine */

/* An iterator sees the store as it was when opened. It starts invalid: seek first. Stepping off
 * either end, or an error, makes it invalid until the next seek; stepping an invalid iterator does
 * nothing. */
TAMIZ_API tamiz_status tamiz_iter_open(tamiz *db, const tamiz_read_options *options,
                                       tamiz_iter **iter);
TAMIZ_API void tamiz_iter_seek_first(tamiz_iter *iter);
TAMIZ_API void tamiz_iter_seek_last(tamiz_iter *iter);
TAMIZ_API void tamiz_iter_seek(tamiz_iter *iter, const void *key,
                               size_t key_size); /* first key >= key */
TAMIZ_API void tamiz_iter_seek_for_prev(tamiz_iter *iter, const void *key,
                                        size_t key_size); /* last key <= key  */
TAMIZ_API void tamiz_iter_next(tamiz_iter *iter);
TAMIZ_API void tamiz_iter_prev(tamiz_iter *iter);
TAMIZ_API bool tamiz_iter_valid(const tamiz_iter *iter);
TAMIZ_API const void *tamiz_iter_key(const tamiz_iter *iter,
                                     size_t *size); /* valid until the iterator moves */
TAMIZ_API const void *tamiz_iter_value(const tamiz_iter *iter, size_t *size);
TAMIZ_API tamiz_status
tamiz_iter_status(const tamiz_iter *iter); /* an error ends validity and shows here */
/* Internal entries that the last call touched: versions, tombstones and all. What a scan really
 * costs. */
TAMIZ_API uint64_t tamiz_iter_steps(const tamiz_iter *iter);
TAMIZ_API void tamiz_iter_close(tamiz_iter *iter); /* NULL is fine */

/* ---- keyspaces ---- */

/*
 * A keyspace is a tree of its own in the store: its own keys, memtables, tables, filters and
 * options; log, cache, threads, lock, sequence and limits are the store's. The handle of tamiz_open
 * is the keyspace "default". Batches may write to several: for readers and after a crash all of a
 * batch is there or nothing (after a crash only where it went through the log). A snapshot is of
 * all keyspaces. One whose writers have to wait does not stop the writers of others.
 *
 * Opens the keyspace `name`, which is made where it is missing; durable when this returns. `db` is
 * any handle of the store. The same name gives the same handle again. It is closed with its store,
 * not by itself: tamiz_close of it is TAMIZ_INVALID_ARGUMENT. A name has 1 to 255 bytes, none of
 * them a control byte, a quote or a backslash.
 *
 * Options (NULL: those of the store, but no compaction filter) are taken when it is opened for the
 * first time in this run, and are not kept in the store: memtable, block, table, filter,
 * filter_memory, prefix_filter, compression, compaction, size_ratio, level0_runs, level0_stop, ttl,
 * idle_merge and compaction_filter are its own, create_if_missing and error_if_exists are looked
 * at, for the rest the store's count. Until it is opened so it is read back and flushed, but not
 * merged.
 *
 * TAMIZ_NOT_FOUND: it is missing and may not be made. TAMIZ_INVALID_ARGUMENT: it is open with other
 * options, or error_if_exists. Costs about a megabyte of memory beside its memtable.
 */
TAMIZ_API tamiz_status tamiz_keyspace_open(tamiz *db, const char *name,
                                           const tamiz_options *options, tamiz **keyspace);

/*
 * Drops a keyspace with all it has, at once and durably: after a crash it is there whole or gone.
 * What was written to the store before is durable before it (but for no_log).
 * Calls on its handle are TAMIZ_CLOSED from then on, and a batch that names it as well; the handle
 * stays valid until the store is closed. Open iterators go on over what they began with; the room
 * on the disk comes back when the last of them is closed. Snapshots hold nothing of it. Its running
 * merges are cancelled, a running flush is waited for, and writers of all keyspaces meanwhile. The
 * name is free again. TAMIZ_NOT_FOUND: there is none. The default keyspace: TAMIZ_INVALID_ARGUMENT.
 */
TAMIZ_API tamiz_status tamiz_keyspace_drop(tamiz *db, const char *name);

/* ---- building tables with no store, and taking them in ---- */

typedef struct tamiz_table_writer tamiz_table_writer;

/*
 * A table file at `path`, which must not exist, from keys in ascending order; no store is needed,
 * nor made. Of the options (NULL: defaults) block, filter, the last level's compression, env, log
 * and allocator count. The table and its filter are as large as what is put; a store likes tables
 * of about its option `table`. One thread at a time.
 */
TAMIZ_API tamiz_status tamiz_table_writer_open(const char *path, const tamiz_options *options,
                                               tamiz_table_writer **writer);
/* A key must be above the one before: TAMIZ_INVALID_ARGUMENT, and nothing changed. After any other
 * failure only abandon, or finish, which fails too. */
TAMIZ_API tamiz_status tamiz_table_writer_put(tamiz_table_writer *writer, const void *key,
                                              size_t key_size, const void *value,
                                              size_t value_size);
/* What the store it is ingested into has of the key is deleted. */
TAMIZ_API tamiz_status tamiz_table_writer_delete(tamiz_table_writer *writer, const void *key,
                                                 size_t key_size);
/* Bytes the file would have by now; the filter is not counted. */
TAMIZ_API uint64_t tamiz_table_writer_size(const tamiz_table_writer *writer);
/* Ends the file and makes it durable; the writer is gone afterwards either way, and the file too
 * where this fails, as for a table without entries (TAMIZ_INVALID_ARGUMENT). *keys and *bytes (may
 * be NULL): what is in it. */
TAMIZ_API tamiz_status tamiz_table_writer_finish(tamiz_table_writer *writer, uint64_t *keys,
                                                 uint64_t *bytes);
TAMIZ_API void tamiz_table_writer_abandon(tamiz_table_writer *writer); /* NULL is fine */

/*
 * Takes n finished tables in at once: for readers and after a crash all of their entries are there
 * or none. They are newer than all that was written before, and of the same key in two of them the
 * later table's wins; snapshots taken before do not see them. Durable when it returns, and all
 * that was acknowledged before it.
 *
 * The files stay where they are, and are linked into the store, or copied on another file system:
 * they must not be changed afterwards. Each table goes into the deepest level where nothing older
 * would stand above it. Memtables that overlap are flushed first; merges are waited for, and
 * writers wait for as long as the manifest takes.
 *
 * TAMIZ_INVALID_ARGUMENT: not a table of tamiz_table_writer. TAMIZ_CORRUPTION: a damaged one.
 */
TAMIZ_API tamiz_status tamiz_ingest(tamiz *db, const char *const paths[], size_t n);

/* ---- copies ---- */

/*
 * An openable copy of the store at `path`, where nothing may stand yet: all that was acknowledged
 * before the call, and perhaps some of what was written during it, but never a write without those
 * before it. Tables are hard links where the file system can (they are never changed), copies
 * where not; the logs' tails are copied, so that nothing is flushed and writers go on. Only where
 * writes are in no log (no_log, or a log that failed) they are flushed first. PATH.partial is used
 * on the way. TAMIZ_BUSY: another checkpoint to the same path runs. A crash leaves nothing at
 * `path`, or all of it.
 */
TAMIZ_API tamiz_status tamiz_checkpoint(tamiz *db, const char *path);

typedef struct tamiz_backup_info {
    size_t struct_size;
    uint64_t number;        /* of the backup: 1 and up                             */
    uint64_t tables_kept;   /* that the backup before had already: they share its files */
    uint64_t tables_copied; /* and each block read back and checked                */
    uint64_t bytes_copied;  /* of tables and logs                                  */
} tamiz_backup_info;
#define TAMIZ_BACKUP_INFO_INIT                                                                     \
    {                                                                                              \
        sizeof(tamiz_backup_info), 0, 0, 0, 0                                                      \
    }

/*
 * The next numbered copy in `directory` (made where missing): DIRECTORY/000001, 000002, …, each a
 * store by itself, which the tools read. Only tables that the one before does not have are copied,
 * and verified; the others are links to its files, never to the store's. So any of them may be
 * removed (rm -r) and the others stay whole. `info` may be NULL.
 */
TAMIZ_API tamiz_status tamiz_backup(tamiz *db, const char *directory, tamiz_backup_info *info);

/* A store at `path`, where nothing may stand yet, from backup `number` (0: the newest) of
 * `directory`: copied, every table verified, and there as a whole or not at all. Of the options
 * (NULL: defaults) only how to read matters: env, allocator, max_open_files. TAMIZ_NOT_FOUND: no
 * such backup. */
TAMIZ_API tamiz_status tamiz_restore(const char *directory, uint64_t number, const char *path,
                                     const tamiz_options *options, tamiz_backup_info *info);

/* ---- seeing ---- */

/* Purposes of device reads and writes. */
typedef struct tamiz_io_stats {
    uint64_t reads, read_bytes, writes, write_bytes;
} tamiz_io_stats;

typedef struct tamiz_level_stats {
    uint64_t tables, bytes, keys; /* now */
    uint64_t filter_bytes; /* of the tables' filters, on disk                                  */
    uint64_t tables_considered; /* tables whose range spans a key that was asked for */
    /* Negatives, true and false positives; and where tamiz_may_contain heard "maybe", or a read
     * failed behind one, which nothing judged. */
    uint64_t filter_probes;
    uint64_t filter_negatives; /* probes avoided: "definitely absent" */
    uint64_t filter_true_positives;
    uint64_t filter_false_positives;
    double filter_expected_false_positives; /* theory: each probe of an absent key counts its
                                               filter's own rate */
    uint64_t filter_unavailable; /* table read because its filter was missing, damaged or unknown */
    uint64_t block_cache_hits, block_cache_misses;
    uint64_t device_reads, device_read_bytes; /* data blocks */
    uint64_t device_reads_avoided; /* estimate: device reads that a store without filters would have
                                      made */
    uint64_t device_reads_avoided_error; /* half of its 95 % interval */
    /* Filters not asked, and why: estimates, from the same sample. */
    uint64_t not_asked_outside_range;  /* no table of a run spans the key */
    uint64_t not_asked_answered_above; /* a newer table knew the key      */
} tamiz_level_stats;

/* Counters since opening; always on. filter_negatives are probes avoided, device_reads_avoided are
 * device reads that would have happened without filters: two numbers, never mixed. Measured rate:
 * FP / (FP + TN). */
typedef struct tamiz_stats {
    size_t struct_size;
    uint64_t gets, gets_found, memtable_hits;
    tamiz_level_stats total;
    tamiz_level_stats level[TAMIZ_LEVELS];
    tamiz_io_stats data, index, filter, meta, log,
        compaction; /* device reads and writes by purpose          */
    uint64_t syncs;
    uint64_t flushes, flush_bytes_in, flush_bytes_out;
    uint64_t compactions, compaction_bytes_in, compaction_bytes_out;
    uint64_t stalls, stall_us;
    uint64_t cache_bytes, memtable_bytes,
        table_memory_bytes;  /* now: blocks cached; memtables; indexes and filters in memory */
    uint64_t filter_audits;  /* negatives that the audit really looked into (option audit) */
    uint64_t filter_denials; /* … and found wrong: such a filter is not asked any more     */
    /* stall_us by what writers were slowed or stopped for: memtables that were not flushed yet,
     * runs in level 0, bytes that waited to be merged. */
    uint64_t stall_flush_us, stall_level0_us, stall_debt_us;
    uint64_t range_deletes;  /* now: in tables, as pieces that do not overlap */
    uint64_t range_deleted;  /* reads that a range delete ended */
    uint64_t tables_dropped; /* that lay inside a range delete, and went without being read */
    /* Filters over prefixes, of ordered reads with bounds (docs/prefixes.md): a probe is a table
     * that was asked about a range, a negative one that was not gone into. None of these is among
     * the filter_ fields, nor in device_reads_avoided. */
    uint64_t prefix_probes, prefix_negatives;
    uint64_t prefix_false_positives; /* maybe, and the table had nothing in the range */
    uint64_t prefix_unavailable;   /* gone into unasked: no such filter, or no one prefix to ask */
    uint64_t checkpoints, backups; /* made */
    uint64_t copied_bytes_linked;  /* by both: of tables that were linked …       */
    uint64_t copied_bytes;         /* … and of tables and logs that were copied   */
    uint64_t ingests, ingested_tables;
    uint64_t ingested_bytes_linked, ingested_bytes_copied; /* of their files */
    /* Time that flushes and compactions took, waiting included; and how much of it building and
     * checking filters took, that of other table builds (ingestion, repair) included. */
    uint64_t background_us, filter_build_us;
    /* Values that compaction filters dropped and changed; and merges that were done again without
     * one, because a snapshot was taken while they ran. docs/compaction-filter.md */
    uint64_t compaction_filter_dropped, compaction_filter_changed, compaction_filter_again;
    /* Now: all memory the store has of the system, its keyspaces together: cache_bytes,
     * memtable_bytes, table_memory_bytes, what stands around them and what is kept free for more.
     * Not: what is handed out to the caller, and batches; nor pages of the log that the system
     * keeps. */
    uint64_t memory_bytes;
} tamiz_stats;
#ifdef __cplusplus
#define TAMIZ_STATS_INIT tamiz_stats_init_value()
static inline tamiz_stats tamiz_stats_init_value(void)
{
    tamiz_stats stats = {};
    stats.struct_size = sizeof stats;
    return stats;
}
#else
#define TAMIZ_STATS_INIT                                                                           \
    {                                                                                              \
        .struct_size = sizeof(tamiz_stats)                                                         \
    }
#endif

/* stats->struct_size must be set (TAMIZ_STATS_INIT); fields beyond it are not written. */
TAMIZ_API tamiz_status tamiz_stats_get(tamiz *db, tamiz_stats *stats);
/* Of the keyspace: "levels", "tables", "stats", "stats.json", "stats.prometheus", "options",
 * "settled" (true: if nobody writes, the tree stays as it is; false: something is flushed or
 * merged, or will be, also when idle_merge is over); of the store: "keyspaces", a name a line,
 * "default" first. *text is freed with tamiz_free. */
TAMIZ_API tamiz_status tamiz_property(tamiz *db, const char *name, char **text);
/* One get, told as a story; *text is freed with tamiz_free. The get counts as one. */
TAMIZ_API tamiz_status tamiz_explain(tamiz *db, const void *key, size_t key_size,
                                     const tamiz_read_options *options, char **text);
TAMIZ_API tamiz_status tamiz_explain_json(tamiz *db, const void *key, size_t key_size,
                                          const tamiz_read_options *options, char **json);
/* Many gets in one view, as tamiz_multi_get makes them; `keys` as there. */
TAMIZ_API tamiz_status tamiz_explain_many(tamiz *db, size_t n, const void *const keys[],
                                          const size_t key_sizes[],
                                          const tamiz_read_options *options, char **text);
TAMIZ_API tamiz_status tamiz_explain_many_json(tamiz *db, size_t n, const void *const keys[],
                                               const size_t key_sizes[],
                                               const tamiz_read_options *options, char **json);
/* A seek to `key` and `limit` steps forwards: an ordered read, which filters over whole keys cannot
 * help; those over prefixes can, where the options' bounds leave but one. */
TAMIZ_API tamiz_status tamiz_explain_seek(tamiz *db, const void *key, size_t key_size,
                                          uint64_t limit, const tamiz_read_options *options,
                                          char **text);
TAMIZ_API tamiz_status tamiz_explain_seek_json(tamiz *db, const void *key, size_t key_size,
                                               uint64_t limit, const tamiz_read_options *options,
                                               char **json);

#ifdef __cplusplus
}
#endif
#endif
