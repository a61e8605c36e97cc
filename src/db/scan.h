/* SPDX-License-Identifier: MIT
 *
 * Ordered reads, forwards and back. The merge below shows every version; here the versions above
 * the snapshot, the older ones of a key, and tombstones are skipped, and the bounds are looked at
 * on every step, so that a field of dead entries beyond a bound is never walked. What lies under a
 * range delete is passed with a seek to its end, after a few steps have shown that it is worth one.
 */
#ifndef TAMIZ_DB_SCAN_H
#define TAMIZ_DB_SCAN_H

#include "db/covers.h"
#include "table/block_walk.h"
#include "table/merge.h"

/*
 * Forwards, the merge stands on the current entry, and key and value are its own. Backwards, the
 * merge stands before all versions of the current key, which was copied.
 *
 * Where the next entries of the current one's block are known to be the next ones to be shown, the
 * block's walk is stepped (docs/adr/0030-walks-are-lent.md): the merge then stays behind, and
 * saved_key too.
 */
struct tamiz_iter {
    struct tamiz *db;
    struct store *store;
    struct tamiz_iter *previous, *following; /* all open ones; guarded by store->mutex */
    struct view *view;
    struct counters count;
    struct op op;
    struct iter *merge;
    struct covers covers; /* range deletes; most iterators see none */
    uint64_t passing;     /* the stretch (covers.h) whose keys are being passed, so many so far */
    uint32_t passed;
    uint64_t stamp_max;
    uint64_t now_us; /* when its values for a time are judged; 0: it has met none yet */
    bool left_out;   /* the newest memtable is no source: it was empty */
    bool plain;      /* its sources suit whoever asks for nothing special: can wait in the park */
    bool has_lower, has_upper;
    struct buf lower, upper;
    struct read_range range; /* the same, for the runs; borrows them */
    bool valid, backwards;
    tamiz_status status;
    struct slice key, value;
    struct buf saved_key, saved_value;
    struct block_walk *walk;  /* the merge's, to be stepped; NULL: every version is looked at */
    struct merge_limit limit; /* up to here */
    uint64_t steps;
};

/* A call that moves it begins. */
static inline void iter_begin(struct tamiz_iter *it)
{
    it->valid = false;
    it->walk = NULL;
    it->status = TAMIZ_OK;
    it->steps = 0;
    op_forgive(&it->op);
}

/* Frees the iterators that wait in the keyspace's park, those over `view` or, where it is NULL,
 * all. store->mutex held. */
void iters_forget(struct tamiz *db, const struct view *view);

#endif
