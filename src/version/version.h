/* SPDX-License-Identifier: MIT
 *
 * Which tables exist: an immutable list of runs. A run is a set of tables that do not overlap, in
 * key order; runs are ordered newest first, so that the first one that knows a key decides. Level 0
 * has a run a flush; a leveled tree has one run in each deeper level; a tiered one has several. One
 * user key never stands in two tables of one run.
 */
#ifndef TAMIZ_VERSION_VERSION_H
#define TAMIZ_VERSION_VERSION_H

#include "base/key.h"
#include "base/op.h"
#include "table/table.h"

/* What the manifest says of a table, and the handle to read it. Frozen but for `refs`; shared by
 * all versions that have it. */
struct table_meta {
    _Atomic uint32_t refs;
    uint64_t number, file_id, file_size;
    uint64_t keyspace; /* whose table it is; 0: the default one's */
    uint32_t level;
    uint64_t run; /* which run of the level: larger is newer */
    uint64_t entries, keys, tombstones, seq_min, seq_max, filter_bytes;
    uint64_t ranges; /* range deletes: the table is asked of keys that only they cover */
    struct slice smallest,
        largest;         /* user keys, both inclusive, of entries and range deletes; owned */
    struct table *table; /* owned share; NULL until version_attach */
};

struct run {
    uint32_t level;
    uint64_t id;
    uint32_t count;
    /* In key order, and beside each table what a read needs of it: the words (run_word) of its
     * largest and smallest key, which decide nearly always, and its handle. All borrowed from the
     * version. */
    struct table_meta **tables;
    uint64_t *largest8;
    uint64_t *smallest8;
    struct table **handles;         /* filled in by version_attach */
    struct slice prefix;            /* what all keys of the version begin with */
    uint64_t prefix8, prefix8_mask; /* its first eight bytes as a word, and where those are */
    uint64_t bytes;
};

struct version {
    _Atomic uint32_t refs;
    const struct alloc *alloc;
    bool ranged; /* some table has range deletes */
    uint32_t run_count;
    struct run *runs; /* newest first: by level ascending, then id descending */
    /* All runs' tables one behind the other, in the order of the runs. Owned, room for `room`. */
    uint32_t table_count, room;
    struct table_meta **tables;
    uint64_t *largest8, *smallest8;
    struct table **handles;
    struct slice prefix; /* borrowed from a table's key */
    uint64_t level_bytes[TAMIZ_LEVELS];
    uint32_t level_tables[TAMIZ_LEVELS];
    uint32_t level_runs[TAMIZ_LEVELS];
};

/* A table_meta with one reference and no handle; keys are copied. NULL: memory is out, recorded. */
struct table_meta *table_meta_new(struct op *op, const struct alloc *alloc,
                                  const struct table_meta *from);
void table_meta_ref(struct table_meta *m);
/* The last reference closes the table handle: no reader can reach it any more, for versions are let
 * go only after the epoch of the last reader has passed. NULL is fine. */
void table_meta_unref(const struct alloc *alloc, struct table_meta *m);

/* One change: tables out by number, tables in. */
struct version_edit {
    const uint64_t *removed;
    size_t removed_count;
    struct table_meta *const *added; /* referenced by the new version, stay the caller's too */
    size_t added_count;
};

/* `base` NULL: an empty store. Removals come first, so that a table may be removed and added again
 * at another level. Checks that tables of one run do not overlap, that removed ones exist, added
 * numbers are new, levels below TAMIZ_LEVELS and smallest keys not above largest: TAMIZ_CORRUPTION
 * with words that lack the file. A version is of one keyspace, and the edit speaks of its tables
 * only. The result has one reference; *result is NULL on failure. */
tamiz_status version_apply(struct op *op, const struct alloc *alloc, const struct version *base,
                           const struct version_edit *edit, struct version **result);
void version_ref(struct version *v);
void version_unref(struct version *v); /* NULL is fine */

/* A key as runs are searched for it: its first 8 bytes behind what all keys of the version begin
 * with. Words order as their keys do, but for ties. The same for all runs of a version. */
static inline uint64_t run_word(const struct run *run, struct slice key)
{
    const struct slice prefix = run->prefix;
    if (prefix.size <= 8 && key.size >= prefix.size + 8 &&
        ((load_u64_ordered(key.data) ^ run->prefix8) & run->prefix8_mask) == 0)
        return load_u64_ordered(key.data + prefix.size); /* nearly always */
    if (prefix.size == 0 || slice_has_prefix(key, prefix))
        return slice_prefix8(key, prefix.size);
    return slice_compare(key, prefix) < 0 ? 0 : UINT64_MAX;
}
/* run_word() of `n` keys. */
void run_words(const struct run *run, const struct slice *keys, size_t n, uint64_t *words);

/* Index of the first table whose largest key is not below `key`: 0..count. `word`: run_word(). */
uint32_t run_lower_bound(const struct run *run, struct slice key, uint64_t word);
/* Index of the only table of `run` that can have `key`; count: none. */
uint32_t run_place(const struct run *run, struct slice key, uint64_t word);
/* run_place() of `n` keys, side by side: their searches wait for memory together. */
void run_places(const struct run *run, const struct slice *keys, const uint64_t *words, size_t n,
                uint32_t *places);
/* That table, or NULL. */
struct table_meta *run_find(const struct run *run, struct slice key, uint64_t word);
/* Table by number, or NULL. */
struct table_meta *version_table(const struct version *v, uint64_t number);

/*
 * A run as one ordered iterator: opens one table at a time. The version outlives it, `how` is
 * copied. NULL: memory is out, recorded.
 *
 * With a range (NULL: all of the run; borrowed for as long as the iterator lives) tables are left
 * out that have nothing in it: by their keys, and where their filter over prefixes says so. What it
 * shows beyond the range may then have holes; within it is all there is.
 */
struct iter *run_iter(struct op *op, const struct run *run, const struct table_read *how,
                      const struct read_range *range);

#endif
