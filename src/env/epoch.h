/* SPDX-License-Identifier: MIT
 *
 * Reclaiming memory that readers may still look at, with no lock and no shared cache line on the
 * reader's side (epoch-based reclamation, K. Fraser, "Practical lock-freedom", 2004, chapter 5).
 *
 * A reader enters with one compare-and-swap on a slot of its own and leaves with one store. Slots
 * are claimed for one operation, not for a thread's life, so that threads may come and go
 * unannounced; a thread finds its last slot free again in practice. The slot also carries the
 * operation's counters, which are so never shared between two writers.
 *
 * Who unlinks an object retires it; it is freed once every reader that could have seen it has left.
 */
#ifndef TAMIZ_ENV_EPOCH_H
#define TAMIZ_ENV_EPOCH_H

#include "base/op.h"
#include "env/thread.h"

enum { EPOCH_SLOTS = 128 };

struct epoch_slot {
    _Alignas(
        128) _Atomic uint64_t entered; /* 0: free; else the epoch in which its operation began */
    uint32_t seat;                     /* its number: 0..EPOCH_SLOTS - 1 */
    struct counters count;
};

/* An object waiting: embedded in what is retired, or allocated beside it. */
struct retired {
    struct retired *next;
    uint64_t epoch;
    void (*free)(struct retired *self, void *ctx);
    void *ctx;
};

/* Further slots, lent to whoever wants counters of its own: as good as the first ones. */
struct epoch_annex {
    struct epoch_slot *slots;
    bool lent;
    struct epoch_annex *next;
};

struct epoch {
    const struct alloc *alloc;
    _Atomic uint64_t now; /* starts at 1 */
    struct epoch_slot *slots;
    struct epoch_annex *annexes; /* guarded by mutex */
    struct mutex mutex;
    struct retired *waiting; /* oldest first; guarded by mutex */
    struct retired **waiting_end;
};

tamiz_status epoch_init(struct op *op, struct epoch *e, const struct alloc *alloc);
/* Nobody is inside any more: frees all that waits. */
void epoch_free(struct epoch *e);

/* Enters; yields where all slots are taken. Never fails. Not to be nested by one thread more than
 * EPOCH_SLOTS deep. */
struct epoch_slot *epoch_enter(struct epoch *e);
/* The same in one of EPOCH_SLOTS slots that were lent. */
struct epoch_slot *epoch_enter_at(struct epoch *e, struct epoch_slot *slots);
/* EPOCH_SLOTS slots with counters at 0; NULL: memory is out, recorded. They stay valid, and may be
 * entered, until epoch_free, also after they were given back; then they are lent again. */
struct epoch_slot *epoch_lend(struct op *op, struct epoch *e);
void epoch_give_back(struct epoch *e, struct epoch_slot *slots);
/* Keeps the slot, for its counters, but gives up the protection: an operation that waits long, or
 * looks at nothing that is reclaimed, must not hold back what others retired. */
static inline void epoch_stay_outside(struct epoch_slot *slot)
{
    atomic_store_explicit(&slot->entered, UINT64_MAX, memory_order_release);
}

static inline void epoch_leave(struct epoch_slot *slot)
{
    atomic_store_explicit(&slot->entered, 0, memory_order_release);
}

/* The object is unlinked already: no reader that enters from now on can reach it. Frees whatever
 * may be freed. Any thread, inside an operation of its own or not; never waits. */
void epoch_retire(struct epoch *e, struct retired *object);
/* Frees what may be freed now; returns whether something still waits. */
bool epoch_reclaim(struct epoch *e);
/* Adds the counters of EPOCH_SLOTS slots to `sum`. */
void epoch_counters(const struct epoch_slot *slots, struct counters *sum);

#endif
