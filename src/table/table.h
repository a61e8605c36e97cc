/* SPDX-License-Identifier: MIT
 *
 * One sorted, immutable file and its filter. A table is known by its meta (what the manifest says
 * of it) and opened on first use; index and filter are then in memory until it is closed, its data
 * blocks come and go through the cache.
 */
#ifndef TAMIZ_TABLE_TABLE_H
#define TAMIZ_TABLE_TABLE_H

#include "base/iter.h"
#include "base/key.h"
#include "base/ranges.h"
#include "env/env.h"
#include "env/file_pool.h"
#include "filter/filter.h"
#include "filter/lines.h"
#include "table/cache.h"
#include "table/format.h"
#include "table/index.h"
#include "tamiz/tamiz.h"

/* What all tables of a store share. Outlives them. */
struct table_world {
    const tamiz_env *env;
    const struct alloc *alloc;
    struct epoch *epoch;
    struct cache *cache;
    struct file_pool *files; /* opens and closes table files as they are read */
    tamiz_event_log log;
    const tamiz_filter_family *custom_filter; /* the embedder's own family, or NULL */
    bool direct_io;
    bool verify;
};

struct table; /* safe for any number of threads */

/* What a point read wants of a table before anything else, in one cache line: each table begins
 * with it. */
struct table_face {
    _Alignas(64) _Atomic(struct table_loaded *) loaded; /* NULL until the first use */
    /* Written before `loaded`, frozen from then on: */
    struct filter_lines filter; /* payload NULL: ask with table_ask */
    uint64_t expected_fp_1e9;   /* of the filter, × 1e9; 0: there is none */
    /* The filter was caught: asked no more. Whoever finds it false a moment late asks once more. */
    _Atomic bool quarantined;
};

static inline const struct table_face *table_face(const struct table *t)
{
    return (const struct table_face *)(const void *)t;
}

/* Can its filter be asked by line, now? */
static inline bool table_has_lines(const struct table *t)
{
    return atomic_load_explicit(&table_face(t)->loaded, memory_order_acquire) &&
           table_face(t)->filter.payload &&
           !atomic_load_explicit(&table_face(t)->quarantined, memory_order_relaxed);
}

/* How one read goes about it. */
struct table_read {
    int level; /* for counters and traces */
    bool use_filter;
    bool fill_cache;
    enum io_purpose purpose; /* of data blocks: IO_DATA or IO_COMPACTION. Walks for compaction take
                                what is in the cache, change nothing there, and count no steps */
    bool asked; /* table_ask was called for this read: table_get does not ask again (use_filter or
                   not), but counts whether the filter's "maybe" was true */
    uint32_t located; /* table_expect() of this table and key; 0: not called */
};

/* Makes a handle; touches no file. `path` is copied. `number` and `file_id` are what the manifest
 * says: a file with another id or size is TAMIZ_CORRUPTION when it is opened. file_id 0, file_size
 * 0: unknown, accept what is there (tools, repair). */
struct table *table_new(struct op *op, const struct table_world *world, const char *path,
                        uint64_t number, uint64_t file_id, uint64_t file_size);
/*
 * The sequence of all its entries, where they have none of their own. A table built with no store
 * has sequence 0 on all of them; which moment it belongs to is decided when it is ingested, and
 * said by the manifest: its sequences there are not the 0 that the file says. What is read of such
 * a table has that sequence in its stamps. Called before the first use; of no effect on a table
 * whose entries have sequences.
 */
void table_set_sequence(struct table *t, uint64_t seq);
/* Opens the file and keeps it open, also where its name goes. TAMIZ_BUSY (nothing recorded): there
 * is no room for one more such file. Called by one thread at a time. */
tamiz_status table_pin(struct op *op, struct table *t);
/* Another holder of the same handle: a table that only changes its level keeps what is in memory.
 */
struct table *table_share(struct table *t);
/* Somebody else holds it, too. Once false, it stays so unless the one holder shares it. */
bool table_is_shared(const struct table *t);
/* The last holder closes it: no reader can reach it any more. */
void table_free(struct table *t);

/* Opens the file now, if it is not: header, footer, properties, index, filter. A damaged or unknown
 * filter is an event, counted with each read, and no error. Every reading call below does this by
 * itself. */
tamiz_status table_load(struct op *op, struct table *t);

/* The answer of the filter, from memory; loads the table where needed. */
enum table_verdict { TABLE_NO, TABLE_MAYBE, TABLE_NO_FILTER };
tamiz_status table_ask(struct op *op, struct table *t, const struct lookup *lookup,
                       const struct table_read *how, enum table_verdict *verdict);

/* Counts and tells an answer that was got by line, as table_ask does its own. */
void table_answered(struct op *op, const struct table *t, const struct table_read *how, bool maybe);

/* The same with nothing loaded and nothing counted, of a loaded table. */
enum table_verdict table_peek(const struct table *t, const struct lookup *lookup);

/* What the filter of a table was found to say, of the distinct keys of sampled reads. Of counters:
 * written under the ledger's mutex. */
struct table_tally {
    counter negatives, false_positives, true_positives;
    counter drifted; /* the rate has left what the filter promises, and that was told */
};
struct table_tally *table_tally(struct table *t);

/* The filter was caught denying a member: it is not asked any more until the table is opened anew.
 */
void table_quarantine(struct table *t);
bool table_is_quarantined(const struct table *t);

/* May the table have a key in `range`? Asks the filter over prefixes where the range leaves but one
 * prefix by the table's own rule: TABLE_NO is certain, of its points (keys and their tombstones).
 * Counts and tells; loads the table where needed. */
tamiz_status table_ask_range(struct op *op, struct table *t, const struct table_read *how,
                             const struct read_range *range, enum table_verdict *verdict);
/* TABLE_MAYBE was the answer, and there was no key in the range. */
void table_range_was_empty(struct op *op, const struct table_read *how);
/* Of a loaded table, borrowed; family NULL: none. */
const struct filter_view *table_prefix_filter(const struct table *t);

bool table_is_loaded(const struct table *t);
/* Which data block could have the key, from memory. false: none, or the table is not loaded. */
bool table_locate(const struct table *t, struct slice key, uint32_t *block);

/* Starts fetching what table_locate and table_expect will wait for. Inside an epoch. */
void table_approach(const struct table *t, struct slice key);

/* Finds the block that could have the key and starts fetching what a search of it begins with, if
 * it is in the cache: for who goes on to table_get soon, or expects to and does not want to wait
 * for what the filter says. One more than its number, for `located` of struct table_read; 0: there
 * is none, or the table is not loaded. Inside an epoch; touches no file. */
uint32_t table_expect(const struct table *t, struct slice key);

/* Of a loaded table: eight bytes of the fence of `block`, from `skip` on, as slice_prefix8 takes
 * them. */
uint64_t table_fence8(const struct table *t, uint32_t block, size_t skip);

/* Starts fetching the filter's lines for this lookup, if the table is loaded. */
void table_prefetch(const struct table *t, const struct lookup *lookup);

/* The newest version at or below lookup->stamp_max. Asks the filter first where how->use_filter.
 * TAMIZ_OK: *stamp and *value, which is borrowed until the epoch is left, or, where *pinned is set,
 * until that is unpinned. TAMIZ_NOT_FOUND. Inside an epoch. */
tamiz_status table_get(struct op *op, struct table *t, const struct lookup *lookup,
                       const struct table_read *how, uint64_t *stamp, struct slice *value,
                       struct cached_block **pinned);

/*
 * The same in two halves, so that many reads can be under way at once (file_read_many).
 *
 * table_get_begin does all up to the device: where wait->request.file is NULL, its status is the
 * answer, as table_get's. Else the request is to be read (status and nanoseconds go into *wait) and
 * table_get_end called, once, also after a failure; TAMIZ_OK is then no answer yet. The lookup
 * lives until then; all inside one epoch.
 */
struct table_wait {
    bool impatient; /* in: the caller has other reads under way, and must end those before it may
                       wait for one more open file */
    bool starved;   /* out: it would have had to; to be asked again later */
    struct file_request request;
    uint64_t nanoseconds; /* that the read took; 0: not measured */
    struct table *table;
    const struct lookup *lookup;
    struct table_read how;
    uint32_t block;
    bool judged;                 /* the filter said maybe: whether truly is counted at the end */
    struct cached_block *target; /* where the block will be */
    uint8_t *packed;             /* where it is read to before; NULL: straight into target */
};

tamiz_status table_get_begin(struct op *op, struct table *t, const struct lookup *lookup,
                             const struct table_read *how, uint64_t *stamp, struct slice *value,
                             struct table_wait *wait);
tamiz_status table_get_end(struct op *op, struct table_wait *wait, uint64_t *stamp,
                           struct slice *value, struct cached_block **pinned);

/* Its range deletes, frozen for as long as the table; perhaps none. Loads it. TAMIZ_CORRUPTION:
 * they can't be read, and so nothing of the table can be trusted to be there still. */
tamiz_status table_ranges(struct op *op, struct table *t, const struct ranges **ranges);
/* The same with nothing loaded and no failure: NULL where they are not in memory. */
const struct ranges *table_ranges_near(const struct table *t);
/* The newest of them that covers the lookup's key and that it sees: *seq, or 0. *all: nothing that
 * the table has of any key is newer. A filter knows nothing of them, so its "no" does not answer
 * this. */
tamiz_status table_cover(struct op *op, struct table *t, const struct lookup *lookup, uint64_t *seq,
                         bool *all);
/* Tells that the search ends by one of them. */
void table_covered(struct op *op, const struct table *t, const struct table_read *how);

/* In version order over the whole table, which outlives it; range deletes are not shown. Loads it;
 * NULL: recorded in op. Inside an epoch or not. A walk that goes on forwards reads ahead, up to
 * TABLE_READ_AHEAD at once, and no longer fills the cache once it has gone over TABLE_LONG_SCAN
 * blocks. */
enum { TABLE_READ_AHEAD = 256 << 10, TABLE_LONG_SCAN = 64 };
struct iter *table_iter(struct op *op, struct table *t, const struct table_read *how);
/* The same iterator over another table, invalid until a seek; on failure it is over the old one. */
tamiz_status table_iter_move(struct iter *it, struct table *t);

/* What can still be read of a damaged table, which outlives it: forwards only (iter_seek_first,
 * iter_next). A block that can't be read, and an entry that is out of order, is told to `report`
 * and left out; only memory that runs out ends the walk. NULL: not even the index can be read
 * (recorded in op). */
struct iter *table_salvage(struct op *op, struct table *t, tamiz_report *report);

/* Of a loaded table. Borrowed from it. */
const struct table_properties *table_properties(const struct table *t);
const struct filter_view *
table_filter(const struct table *t); /* family NULL: none; see table_filter_missing */
const char *table_filter_missing(const struct table *t); /* why there is none: "", or words */
const char *table_path(const struct table *t);
uint64_t table_file_id(const struct table *t);      /* of a loaded table: what the file says */
uint64_t table_file_size(const struct table *t);    /* of a loaded table */
uint64_t table_filter_bytes(const struct table *t); /* of a loaded table: of one in use, else 0 */
uint32_t table_blocks(const struct table *t);       /* of a loaded table */
size_t table_memory(const struct table *t); /* index and filter in memory; 0 before loading */

/* Every block, from the device: checksum, order, tags, counts, range, and that the filter denies no
 * member. Finds go to `report`, whose numbers grow; TAMIZ_CORRUPTION where there were some. A block
 * that cannot be read is a find like any other; TAMIZ_NOT_SUPPORTED where one is newer. */
tamiz_status table_verify(struct op *op, struct table *t, tamiz_report *report);

#endif
