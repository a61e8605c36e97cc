/* SPDX-License-Identifier: MIT
 *
 * A leaf of a memtable's tree: up to 64 entries between two fences. Adding appends, wherever the
 * entry belongs, and then publishes the new count: slots below the count are frozen, so that
 * readers need no lock, and the writer needs to look at no other entry. Order is made when somebody
 * asks: a full leaf is sorted when it is split, an iterator sorts what it finds when it comes in.
 *
 *     sorted at birth | appended since | free
 *     0 ……… sorted      …… count         …… 64
 */
#ifndef TAMIZ_MEM_LEAF_H
#define TAMIZ_MEM_LEAF_H

#include <stdatomic.h>

#include "mem/entry.h"

enum { LEAF_MAX = 64 };

struct leaf {
    uint32_t level; /* 0: what tells it from an inner node */
    _Atomic uint32_t count;
    uint32_t sorted;
    uint32_t skip;            /* all keys here share so many bytes */
    const struct entry *low;  /* the first entry here; NULL: no bound */
    const struct entry *high; /* the first entry of the next leaf; NULL: no bound */
    _Alignas(64) int32_t window[LEAF_MAX];
    const struct entry *entries[LEAF_MAX];
};

/* A leaf of `n` sorted entries. NULL: memory is out. */
struct leaf *leaf_new(struct arena *arena, const struct entry *low, const struct entry *high,
                      const struct entry *const *sorted, uint32_t n);

static inline uint32_t leaf_count(const struct leaf *l)
{
    return atomic_load_explicit(&l->count, memory_order_acquire);
}

/* The writer only; count is below LEAF_MAX, and the entry belongs between the fences. */
void leaf_append(struct leaf *l, const struct entry *e);
/* The newest entry of the target's key that is not below the target, or NULL. */
const struct entry *leaf_find(const struct leaf *l, const struct target *t);
/* The first `n` entries in order. */
void leaf_sort(const struct leaf *l, uint32_t n, const struct entry *out[LEAF_MAX]);

#endif
