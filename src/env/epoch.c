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

static const size_t slots_size = EPOCH_SLOTS * sizeof(struct epoch_slot);

static struct epoch_slot *slots_new(const struct alloc *alloc)
{
    struct epoch_slot *slots = mem_new_aligned(alloc, slots_size, _Alignof(struct epoch_slot));
    if (slots)
        memset(slots, 0, slots_size);
    for (uint32_t i = 0; slots && i < EPOCH_SLOTS; i++)
        slots[i].seat = i;
    return slots;
}

tamiz_status epoch_init(struct op *op, struct epoch *e, const struct alloc *alloc)
{
    memset(e, 0, sizeof *e);
    e->alloc = alloc;
    e->waiting_end = &e->waiting;
    atomic_init(&e->now, 1);
    const tamiz_status st = mutex_init(op, &e->mutex);
    if (st < 0)
        return st;
    e->slots = slots_new(alloc);
    if (!e->slots) {
        mutex_free(&e->mutex);
        return op_fail_memory(op);
    }
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

struct epoch_slot *epoch_enter_at(struct epoch *e, struct epoch_slot *slots)
{
    if (last_slot >= EPOCH_SLOTS)
        last_slot = first_guess();
    for (unsigned tried = 1;; tried++) {
        struct epoch_slot *slot = &slots[last_slot];
        if (claim(slot, atomic_load_explicit(&e->now, memory_order_acquire))) {
            order_stores_before_loads();
            return slot;
        }
        last_slot = (last_slot + 1) % EPOCH_SLOTS;
        if (tried % EPOCH_SLOTS == 0)
            thread_yield();
    }
}

struct epoch_slot *epoch_enter(struct epoch *e)
{
    return epoch_enter_at(e, e->slots);
}

static uint64_t oldest_of(const struct epoch_slot *slots, uint64_t oldest)
{
    for (size_t i = 0; i < EPOCH_SLOTS; i++) {
        const uint64_t entered = atomic_load_explicit(&slots[i].entered, memory_order_seq_cst);
        if (entered && entered < oldest)
            oldest = entered;
    }
    return oldest;
}

/* The epoch of the oldest reader; beyond all where there is none. A reader in slots that are lent
 * only now came after whatever waits was unlinked. */
static uint64_t oldest_reader(const struct epoch *e)
{
    uint64_t oldest = oldest_of(e->slots, UINT64_MAX);
    for (const struct epoch_annex *a = e->annexes; a; a = a->next)
        oldest = oldest_of(a->slots, oldest);
    return oldest;
}

/* ---- slots lent ---- */

static struct epoch_annex *annex_new(struct epoch *e)
{
    struct epoch_annex *a = mem_new_array(e->alloc, 1, sizeof *a);
    if (!a)
        return NULL;
    a->slots = slots_new(e->alloc);
    if (a->slots)
        return a;
    mem_free(e->alloc, a, sizeof *a);
    return NULL;
}

struct epoch_slot *epoch_lend(struct op *op, struct epoch *e)
{
    mutex_lock(&e->mutex);
    struct epoch_annex *a = e->annexes;
    while (a && a->lent)
        a = a->next;
    if (!a) {
        a = annex_new(e);
        if (a) {
            a->next = e->annexes;
            e->annexes = a;
        }
    }
    if (a)
        a->lent = true;
    mutex_unlock(&e->mutex);
    if (!a)
        op_fail_memory(op);
    return a ? a->slots : NULL;
}

void epoch_give_back(struct epoch *e, struct epoch_slot *slots)
{
    mutex_lock(&e->mutex);
    for (struct epoch_annex *a = e->annexes; a; a = a->next)
        if (a->slots == slots) {
            for (size_t i = 0; i < EPOCH_SLOTS; i++)
                counters_clear(&slots[i].count);
            a->lent = false;
        }
    mutex_unlock(&e->mutex);
}

/* ---- retiring ---- */

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

void epoch_counters(const struct epoch_slot *slots, struct counters *sum)
{
    for (size_t i = 0; i < EPOCH_SLOTS; i++)
        counters_sum(sum, &slots[i].count);
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
    while (e->annexes) {
        struct epoch_annex *next = e->annexes->next;
        mem_free_aligned(e->alloc, e->annexes->slots, slots_size, _Alignof(struct epoch_slot));
        mem_free(e->alloc, e->annexes, sizeof *e->annexes);
        e->annexes = next;
    }
    mem_free_aligned(e->alloc, e->slots, slots_size, _Alignof(struct epoch_slot));
    e->slots = NULL;
    mutex_free(&e->mutex);
}
