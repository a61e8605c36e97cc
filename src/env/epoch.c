/* SPDX-License-Identifier: MIT
 *
 * Why it is right. Retiring takes the epoch E by advancing the clock, after the object was
 * unlinked. A reader that entered with more than E read the clock after that, so it finds the
 * object unlinked; a reader with E or less is waited for. A reader may read the clock, sleep, and
 * claim its slot late: then either the scan saw its slot, or the claim comes after the scan and so
 * after the unlinking, which the reader then sees. That needs the claim to be ordered before the
 * reader's loads, and the unlinking before the scan: both are locked instructions on x86, and get a
 * full fence elsewhere.
 */
#include "env/epoch.h"

#include <assert.h>
#include <string.h>

/* The slot that worked last time. A hint: any number is right. */
static _Thread_local unsigned last_slot = UINT32_MAX;

static void order_stores_before_loads(void)
{
#if !defined(__x86_64__) && !defined(__i386__)
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

tamiz_status epoch_init(struct op *op, struct epoch *e, const struct alloc *alloc)
{
    const size_t size = EPOCH_SLOTS * sizeof(struct epoch_slot);
    memset(e, 0, sizeof *e);
    e->alloc = alloc;
    e->waiting_end = &e->waiting;
    atomic_init(&e->now, 1);
    const tamiz_status st = mutex_init(op, &e->mutex);
    if (st < 0)
        return st;
    e->slots = mem_new_aligned(alloc, size, _Alignof(struct epoch_slot));
    if (!e->slots) {
        mutex_free(&e->mutex);
        return op_fail_memory(op);
    }
    memset(e->slots, 0, size);
    for (uint32_t i = 0; i < EPOCH_SLOTS; i++)
        e->slots[i].seat = i;
    return TAMIZ_OK;
}

static unsigned first_guess(void)
{
    const uint64_t spread = (uintptr_t)&last_slot * UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(spread >> 32) % EPOCH_SLOTS;
}

static bool claim(struct epoch_slot *slot, uint64_t now)
{
    uint64_t nobody = 0;
    return atomic_load_explicit(&slot->entered, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&slot->entered, &nobody, now,
                                                   memory_order_seq_cst, memory_order_relaxed);
}

struct epoch_slot *epoch_enter(struct epoch *e)
{
    if (last_slot >= EPOCH_SLOTS)
        last_slot = first_guess();
    for (unsigned tried = 1;; tried++) {
        struct epoch_slot *slot = &e->slots[last_slot];
        if (claim(slot, atomic_load_explicit(&e->now, memory_order_acquire))) {
            order_stores_before_loads();
            return slot;
        }
        last_slot = (last_slot + 1) % EPOCH_SLOTS;
        if (tried % EPOCH_SLOTS == 0)
            thread_yield();
    }
}

/* The epoch of the oldest reader; beyond all where there is none. */
static uint64_t oldest_reader(const struct epoch *e)
{
    uint64_t oldest = UINT64_MAX;
    for (size_t i = 0; i < EPOCH_SLOTS; i++) {
        const uint64_t entered = atomic_load_explicit(&e->slots[i].entered, memory_order_seq_cst);
        if (entered && entered < oldest)
            oldest = entered;
    }
    return oldest;
}

/* Takes what no reader can see off the list; the caller frees it outside of the lock. */
static struct retired *take_unseen(struct epoch *e)
{
    assert(mutex_held(&e->mutex));
    if (!e->waiting)
        return NULL;
    const uint64_t oldest = oldest_reader(e);
    struct retired *first = e->waiting;
    struct retired **end = &e->waiting;
    while (*end && (*end)->epoch < oldest)
        end = &(*end)->next;
    if (end == &e->waiting)
        return NULL;
    e->waiting = *end;
    *end = NULL;
    if (!e->waiting)
        e->waiting_end = &e->waiting;
    return first;
}

static void free_all(struct retired *object)
{
    while (object) {
        struct retired *next = object->next;
        object->free(object, object->ctx);
        object = next;
    }
}

void epoch_retire(struct epoch *e, struct retired *object)
{
    mutex_lock(&e->mutex);
    object->next = NULL;
    object->epoch = atomic_fetch_add_explicit(&e->now, 1, memory_order_seq_cst);
    order_stores_before_loads();
    *e->waiting_end = object;
    e->waiting_end = &object->next;
    struct retired *unseen = take_unseen(e);
    mutex_unlock(&e->mutex);
    free_all(unseen);
}

bool epoch_reclaim(struct epoch *e)
{
    mutex_lock(&e->mutex);
    struct retired *unseen = take_unseen(e);
    const bool more = e->waiting != NULL;
    mutex_unlock(&e->mutex);
    free_all(unseen);
    return more;
}

void epoch_counters(const struct epoch *e, struct counters *sum)
{
    for (size_t i = 0; i < EPOCH_SLOTS; i++)
        counters_sum(sum, &e->slots[i].count);
}

void epoch_free(struct epoch *e)
{
    if (!e->slots)
        return;
    while (e->waiting) { /* freeing one may retire another */
        struct retired *all = e->waiting;
        e->waiting = NULL;
        e->waiting_end = &e->waiting;
        free_all(all);
    }
    mem_free_aligned(e->alloc, e->slots, EPOCH_SLOTS * sizeof(struct epoch_slot),
                     _Alignof(struct epoch_slot));
    e->slots = NULL;
    mutex_free(&e->mutex);
}
