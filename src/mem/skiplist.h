/* SPDX-License-Identifier: MIT
 *
 * A skip list of versions (W. Pugh, "Skip Lists: A Probabilistic Alternative to Balanced Trees",
 * 1990): one writer, any number of readers without locks, nothing ever removed.
 *
 * Why readers need no lock: a node is complete before it is linked, and it is linked with a release
 * store that the walk's acquire load pairs with. A reader meets the list with the new node or
 * without it, at each level on its own; missing it above only means walking a little longer below.
 *
 * What an insertion costs is cache misses: some twenty nodes are looked at, one after the other. So
 * all that a look needs stands together, tower, stamp and key; the first 8 bytes of the key are
 * compared as one integer; and the node that would be next on the level below is fetched while the
 * one on this level is compared.
 */
#ifndef TAMIZ_MEM_SKIPLIST_H
#define TAMIZ_MEM_SKIPLIST_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/key.h"

enum { SKIP_HEIGHT_MAX = 12, SKIP_KEY_LEAST = 8 };

/*
 * One version, one piece of memory, in front of it its tower:
 *
 *     link[height-1] … link[1] link[0] | node, 24 bytes | key, at least 8 bytes | value
 *
 * A key shorter than 8 bytes is padded with zeroes, so that its first 8 can be loaded at once.
 */
struct skip_node {
    uint64_t stamp;
    _Atomic(struct skip_node *) prev; /* neighbour at the bottom; NULL: the first */
    uint32_t value_size;
    uint16_t key_size;
    uint16_t height;
    uint8_t key[];
};

struct skiplist {
    struct arena *arena; /* borrowed */
    struct skip_node *head;
    _Atomic unsigned height; /* levels in use */
    /* The writer's own: */
    uint64_t random;
    /* Where the last node went: its neighbours at each level, itself where it reaches. The next key
     * of an ascending load goes right there. */
    struct skip_node *before[SKIP_HEIGHT_MAX];
    struct skip_node *after[SKIP_HEIGHT_MAX];
};

/* false: memory is out. Everything lies in `arena`, which outlives the list. */
bool skiplist_init(struct skiplist *list, struct arena *arena);
/* The writer only. No two versions are equal in key and stamp. false: memory is out, and the list
 * is as it was. */
bool skiplist_add(struct skiplist *list, struct slice key, uint64_t stamp, struct slice value);

/* For readers. NULL: there is none. Nodes are frozen but for their links, and live as long as the
 * arena. */
struct skip_node *skiplist_at_or_after(const struct skiplist *list, struct slice key,
                                       uint64_t stamp);
struct skip_node *skiplist_before(const struct skiplist *list, struct slice key, uint64_t stamp);
struct skip_node *skiplist_first(const struct skiplist *list);
struct skip_node *skiplist_last(const struct skiplist *list);
struct skip_node *skip_next(const struct skip_node *node);
struct skip_node *skip_prev(const struct skip_node *node);

static inline struct slice skip_key(const struct skip_node *node)
{
    return slice_of(node->key, node->key_size);
}

static inline struct slice skip_value(const struct skip_node *node)
{
    const size_t room = node->key_size > SKIP_KEY_LEAST ? node->key_size : SKIP_KEY_LEAST;
    return slice_of(node->key + room, node->value_size);
}

#endif
