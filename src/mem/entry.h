/* SPDX-License-Identifier: MIT
 *
 * One version in a memtable: a single piece of the arena, frozen once it can be found.
 *
 *     stamp 8 | value_size 4 | key_size 2 | key | value
 */
#ifndef TAMIZ_MEM_ENTRY_H
#define TAMIZ_MEM_ENTRY_H

#include "base/arena.h"
#include "base/coding.h"
#include "base/key.h"

struct entry {
    uint64_t stamp;
    uint32_t value_size;
    uint16_t key_size;
    uint8_t key[];
};

static inline struct slice entry_key(const struct entry *e)
{
    return slice_of(e->key, e->key_size);
}

static inline struct slice entry_value(const struct entry *e)
{
    return slice_of(e->key + e->key_size, e->value_size);
}

/* NULL: memory is out. */
const struct entry *entry_new(struct arena *arena, struct slice key, uint64_t stamp,
                              struct slice value);

/* What a search looks for: a place in version order. */
struct target {
    struct slice key;
    uint64_t stamp;
    bool or_equal; /* an entry that is exactly there counts as below */
};

static inline struct target target_of(const struct entry *e, bool or_equal)
{
    return (struct target){entry_key(e), e->stamp, or_equal};
}

static inline bool entry_is_below(const struct entry *e, const struct target *t)
{
    const int order = version_compare(entry_key(e), e->stamp, t->key, t->stamp);
    return order < 0 || (order == 0 && t->or_equal);
}

static inline bool entry_less(const struct entry *a, const struct entry *b)
{
    return version_compare(entry_key(a), a->stamp, entry_key(b), b->stamp) < 0;
}

/*
 * Four bytes of a key from `skip` on, missing ones as 0, as a signed integer that orders as memcmp
 * does among keys with the same first `skip` bytes; equal ones are undecided. Nodes keep these in
 * arrays, so that most comparisons touch no key. Signed, since that is what 128-bit vectors
 * compare.
 */
static inline int32_t window_of(struct slice key, size_t skip)
{
    uint32_t word = 0;
    if (key.size >= skip + 4)
        word = __builtin_bswap32(load_u32(key.data + skip));
    else
        for (size_t i = skip; i < key.size; i++)
            word |= (uint32_t)key.data[i] << (24 - 8 * (i - skip));
    return (int32_t)(word ^ UINT32_C(0x80000000));
}

/* First bytes that all keys between two entries share; NULL: unbounded, none. */
static inline uint32_t fence_skip(const struct entry *low, const struct entry *high)
{
    return low && high ? (uint32_t)slice_common_prefix(entry_key(low), entry_key(high)) : 0;
}

/* Room for a node, at the start of a cache line. NULL: memory is out. */
void *mem_node_new(struct arena *arena, size_t size);

#endif
