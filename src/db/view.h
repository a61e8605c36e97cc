/* SPDX-License-Identifier: MIT
 *
 * What a reader sees, frozen: memtables and a version, pinned together. A change of the tree makes
 * a new view; the old one lives on for those who look at it.
 *
 * A point read borrows the view inside an epoch and takes no reference; an iterator takes one. The
 * view's own, for being the current one, is given up through epoch_retire(), so that borrowers have
 * left by then.
 */
#ifndef TAMIZ_DB_VIEW_H
#define TAMIZ_DB_VIEW_H

#include "db/misses.h"
#include "db/store.h"
#include "mem/memtable.h"

/* A memtable and what the log needs to know of it. Shared by views. */
struct mem_ref {
    _Atomic uint32_t refs;
    struct memtable *memtable;
    uint64_t first_log; /* the oldest log that has a write of it, where it has any */
    bool unlogged;      /* it has writes that are in no log. Guarded by store->mutex */
};

struct view {
    struct misses misses;
    struct retired retired;
    struct tamiz *db;           /* whose it is; NULL: not published yet */
    struct view *older, *newer; /* of db's views; guarded by store->views_mutex */
    _Atomic uint32_t refs;
    struct store *store;
    struct version *version;
    uint32_t memtable_count;
    uint32_t room;               /* of memtables[] */
    struct mem_ref *memtables[]; /* newest first; [0] is written, the others are sealed */
};

struct mem_ref *mem_ref_new(struct op *op, const struct tamiz *db, uint64_t first_log);
void mem_ref_unref(struct store *s, struct mem_ref *m);

/* A view over `memtables` (newest first) and `version`, each referenced again. One reference. NULL:
 * memory is out (recorded). */
struct view *view_new(struct op *op, struct store *s, struct mem_ref *const *memtables,
                      uint32_t count, struct version *version);
/* Room for a view whose contents are decided later, when failing is out of the question. NULL:
 * memory is out (recorded). Freed by view_unref, filled or not. */
struct view *view_reserve(struct op *op, struct store *s);
/* As many memtables as fit into any view: the active one, those that wait, one more. */
enum { VIEW_ROOM = 8 };
void view_fill(struct view *v, struct mem_ref *const *memtables, uint32_t count,
               struct version *version);
/* A view of no memtable and no table. NULL: memory is out (recorded). */
struct view *view_nothing(struct op *op, struct store *s);
void view_ref(struct view *v);
void view_unref(struct view *v);

/* Whether a memtable of it has writes that are in no log. store->mutex held. */
bool view_unlogged(const struct view *v);

/* Puts `next` (whose reference passes over) in the place of the current view. store->mutex held. */
void view_publish(struct tamiz *db, struct view *next);

/* Adds to `sum` what was counted with the keyspace's views, those that are gone as well. Any
 * thread. */
void views_sum(struct tamiz *db, struct counters *sum);

/* The current view with a reference, and the sequence up to which it is complete. Inside an epoch.
 */
struct view *view_acquire(struct tamiz *db, uint64_t *seq);

/* The same without a reference: good until the epoch is left. */
static inline struct view *view_borrow(struct tamiz *db, uint64_t *seq)
{
    for (;;) {
        struct view *v = atomic_load_explicit(&db->view, memory_order_seq_cst);
        *seq = atomic_load_explicit(&db->store->seq, memory_order_acquire);
        /* A memtable that came between the two loads could hold versions below *seq that this view
         * lacks. */
        if (__builtin_expect(v == atomic_load_explicit(&db->view, memory_order_acquire), 1))
            return v;
    }
}

#endif
