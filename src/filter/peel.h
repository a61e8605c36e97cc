/* SPDX-License-Identifier: MIT
 *
 * Peeling: how xor and fuse filters are built. Each key has `arity` slots; a filter is right when
 * the exclusive or of a key's slots is the key's fingerprint. That is a system of equations, and
 * it is solved with no algebra where it can be peeled: find a slot that only one key uses, set the
 * key aside, take it out of its other slots, which may leave one of those with one key, and so on.
 * Then give the keys their slots in the reverse order: each still has one that no later key uses.
 *
 *     keys a b c over slots     a: 0 1 3    b: 1 2 3    c: 1 3 4
 *     slot 0 has only a:  set a aside        slot 2 has only b: set b aside     then c
 *     assign  c (slot 4),  b (slot 2),  a (slot 0)
 *
 * It fails when every slot that is left has two keys or more: with few enough keys to the slot
 * that is rare, and another seed is tried.
 *
 * M. Molloy, "Cores in random hypergraphs and Boolean formulas", 2005; for filters: B. Chazelle et
 * al., "The Bloomier filter", 2004.
 *
 * The functions are inlined into the family's file, so that its `place` is, too.
 */
#ifndef TAMIZ_FILTER_PEEL_H
#define TAMIZ_FILTER_PEEL_H

#include "filter/family.h"

enum { ARITY_MAX = 4 };

/* Where the slots are, and how wide. One shape, one family. */
struct peel_shape {
    unsigned arity;
    unsigned width;         /* bits of a slot and of a fingerprint, 1..16    */
    unsigned segment_shift; /* fuse: log2 of a segment's slots               */
    uint64_t starts;        /* fuse: slots a key's first may be; xor: slots of a third */
    uint64_t slots;
};

typedef void peel_place(const struct peel_shape *shape, uint64_t mixed, uint64_t at[ARITY_MAX]);

enum { SLOT_PAD = 4 }; /* a slot is read as four bytes, whatever its width */

static inline uint64_t slots_bytes(uint64_t slots, unsigned width)
{
    return (slots * width + 7) / 8 + SLOT_PAD;
}

/* Slot i is bits i * width and on, lowest bit first. */
static inline uint32_t slot_get(const uint8_t *slots, unsigned width, uint64_t i)
{
    if (width == 8)
        return slots[i];
    const uint64_t bit = i * width;
    return load_u32(slots + (bit >> 3)) >> (bit & 7) & ((UINT32_C(1) << width) - 1);
}

/* Into a slot that is 0. */
static inline void slot_set(uint8_t *slots, unsigned width, uint64_t i, uint32_t value)
{
    const uint64_t bit = i * width;
    uint8_t *at = slots + (bit >> 3);
    store_u32(at, load_u32(at) | value << (bit & 7));
}

static inline uint32_t peel_fingerprint(uint64_t mixed, unsigned width)
{
    return (uint32_t)(mixed ^ mixed >> 32) & ((UINT32_C(1) << width) - 1);
}

/* The keys of a slot: how many, the exclusive or of their hashes, and of which of its own slots
 * (0..3) this is for each. With one key left, the last two are that key's. */
struct peel_work {
    uint64_t *hashes;      /* by slot */
    uint8_t *counts;       /* by slot: number * 4 + places */
    uint64_t *order;       /* keys set aside: hashes ... */
    uint8_t *order_places; /* ... and which of their slots is their own */
    uint64_t *alone;       /* slots to look at */
    size_t bytes;          /* of the one allocation, which begins at hashes */
};

static inline bool peel_work_new(const struct alloc *alloc, uint64_t slots, uint64_t keys,
                                 struct peel_work *work)
{
    const uint64_t bytes = slots * 17 + keys * 9 + 8;
    *work = (struct peel_work){.bytes = (size_t)bytes};
    if (bytes > SIZE_MAX / 2 || !(work->hashes = mem_new_aligned(alloc, work->bytes, FILTER_ALIGN)))
        return false;
    work->alone = work->hashes + slots;
    work->order = work->alone + slots;
    work->counts = (uint8_t *)(work->order + keys);
    work->order_places = work->counts + slots;
    memset(work->hashes, 0, (size_t)slots * sizeof *work->hashes);
    memset(work->counts, 0, (size_t)slots);
    return true;
}

/* false: a slot has more keys than can be counted, which no good hash does. */
static inline __attribute__((always_inline)) bool peel_enter(const struct peel_shape *shape,
                                                             peel_place *place,
                                                             const uint64_t *mixed, size_t n,
                                                             struct peel_work *work)
{
    bool fits = true;
    for (size_t i = 0; i < n; i++) {
        uint64_t at[ARITY_MAX];
        place(shape, mixed[i], at);
        for (unsigned j = 0; j < shape->arity; j++) {
            work->hashes[at[j]] ^= mixed[i];
            work->counts[at[j]] = (uint8_t)((work->counts[at[j]] + 4) ^ j);
            fits &= work->counts[at[j]] >= 4;
        }
    }
    return fits;
}

/* Sets aside all keys that can be reached from slot `first`; `aside` of them were before. */
static inline __attribute__((always_inline)) size_t peel_from(const struct peel_shape *shape,
                                                              peel_place *place, uint64_t first,
                                                              size_t aside, struct peel_work *work)
{
    size_t left = 0;
    work->alone[left++] = first;
    while (left) {
        const uint64_t slot = work->alone[--left];
        if (work->counts[slot] >> 2 != 1)
            continue;
        const uint64_t mixed = work->hashes[slot];
        const unsigned own = work->counts[slot] & 3;
        uint64_t at[ARITY_MAX];
        place(shape, mixed, at);
        work->order[aside] = mixed;
        work->order_places[aside++] = (uint8_t)own;
        for (unsigned j = 0; j < shape->arity; j++) {
            work->hashes[at[j]] ^= mixed;
            work->counts[at[j]] = (uint8_t)((work->counts[at[j]] - 4) ^ j);
            work->alone[left] = at[j];
            left += work->counts[at[j]] >> 2 == 1;
        }
    }
    return aside;
}

static inline __attribute__((always_inline)) void peel_assign(const struct peel_shape *shape,
                                                              peel_place *place, size_t n,
                                                              const struct peel_work *work,
                                                              uint8_t *slots)
{
    for (size_t i = n; i-- > 0;) {
        uint64_t at[ARITY_MAX];
        place(shape, work->order[i], at);
        uint32_t value = peel_fingerprint(work->order[i], shape->width);
        for (unsigned j = 0; j < shape->arity; j++)
            value ^= slot_get(slots, shape->width, at[j]);
        slot_set(slots, shape->width, at[work->order_places[i]], value);
    }
}

static inline __attribute__((always_inline)) tamiz_status
peel_build(struct op *op, const struct peel_shape *shape, peel_place *place, const uint64_t *mixed,
           size_t n, uint8_t *slots)
{
    struct peel_work work;
    size_t aside = 0;
    if (!peel_work_new(op->alloc, shape->slots, n, &work))
        return op_fail_memory(op);
    if (peel_enter(shape, place, mixed, n, &work))
        for (uint64_t slot = 0; slot < shape->slots; slot++)
            if (work.counts[slot] >> 2 == 1)
                aside = peel_from(shape, place, slot, aside, &work);
    if (aside == n)
        peel_assign(shape, place, n, &work, slots);
    mem_free_aligned(op->alloc, work.hashes, work.bytes, FILTER_ALIGN);
    return aside == n ? TAMIZ_OK
                      : op_fail(op, TAMIZ_NOT_SUPPORTED,
                                "filter: %zu of %zu keys could not be peeled", n - aside, n);
}

static inline __attribute__((always_inline)) bool
peel_holds(const struct peel_shape *shape, peel_place *place, uint64_t mixed, const uint8_t *slots)
{
    uint64_t at[ARITY_MAX];
    place(shape, mixed, at);
    uint32_t value = peel_fingerprint(mixed, shape->width);
    for (unsigned j = 0; j < shape->arity; j++)
        value ^= slot_get(slots, shape->width, at[j]);
    return value == 0;
}

static inline void peel_story(const struct peel_shape *shape, peel_place *place, uint64_t mixed,
                              const uint8_t *slots, struct buf *out)
{
    uint64_t at[ARITY_MAX];
    uint32_t sum = 0;
    place(shape, mixed, at);
    buf_printf(out, "fingerprint 0x%x of %u bits; slots", peel_fingerprint(mixed, shape->width),
               shape->width);
    for (unsigned j = 0; j < shape->arity; j++) {
        buf_printf(out, " %llu", (unsigned long long)at[j]);
        sum ^= slot_get(slots, shape->width, at[j]);
    }
    buf_printf(out, " give 0x%x", sum);
}

#endif
