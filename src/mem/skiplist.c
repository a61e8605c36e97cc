/* SPDX-License-Identifier: MIT */
#include "mem/skiplist.h"

#include <assert.h>

static_assert(sizeof(struct skip_node) == 24, "as drawn");
static_assert(KEY_SIZE_MAX <= UINT16_MAX && VALUE_SIZE_MAX <= UINT32_MAX, "sizes fit the node");

typedef _Atomic(struct skip_node *) link;

/* The tower grows downwards from the node, so that a pointer to the node finds both its links and
 * its key. */
static inline link *tower(const struct skip_node *node, unsigned level)
{
    return (link *)(uintptr_t)node - 1 - level;
}

static inline struct skip_node *follow(const struct skip_node *node, unsigned level)
{
    return atomic_load_explicit(tower(node, level), memory_order_acquire);
}

/* What a walk looks for, its first 8 bytes taken out once. */
struct target {
    struct slice key;
    uint64_t first8;
    uint64_t stamp;
};

static inline struct target target_of(struct slice key, uint64_t stamp)
{
    return (struct target){key, slice_prefix8(key, 0), stamp};
}

/* The first 8 bytes are equal, zeroes behind short keys included. */
static bool node_is_below_rest(const struct skip_node *node, const struct target *t)
{
    const size_t least = node->key_size < t->key.size ? node->key_size : t->key.size;
    const int order = least > SKIP_KEY_LEAST
                          ? memcmp(node->key + SKIP_KEY_LEAST, t->key.data + SKIP_KEY_LEAST,
                                   least - SKIP_KEY_LEAST)
                          : 0;
    if (order)
        return order < 0;
    if (node->key_size != t->key.size)
        return node->key_size < t->key.size;
    return node->stamp > t->stamp; /* newer versions come first */
}

static inline bool node_is_below(const struct skip_node *node, const struct target *t)
{
    const uint64_t first8 = slice_prefix8(slice_of(node->key, SKIP_KEY_LEAST), 0);
    return first8 != t->first8 ? first8 < t->first8 : node_is_below_rest(node, t);
}

/*
 * The last node below the target (the head: there is none), and in *after the first that is not.
 * A bound found above is linked below as well: a level ends at the bound or, while there is none,
 * at the end of the list, and no walk runs past it. Where `splice` is given, its before[] and
 * after[] are filled for the levels in use.
 */
static struct skip_node *walk(const struct skiplist *list, const struct target *t,
                              struct skiplist *splice, struct skip_node **after)
{
    struct skip_node *at = list->head;
    struct skip_node *bound = NULL; /* known not to be below the target */
    for (unsigned level = atomic_load_explicit(&list->height, memory_order_relaxed); level-- > 0;) {
        struct skip_node *next = follow(at, level);
        while (next != bound) {
            if (level)
                __builtin_prefetch(follow(at, level - 1));
            if (!node_is_below(next, t))
                break;
            at = next;
            next = follow(at, level);
        }
        bound = next;
        if (splice) {
            splice->before[level] = at;
            splice->after[level] = bound;
        }
    }
    *after = bound;
    return at;
}

static struct skip_node *node_new(struct arena *arena, unsigned height, struct slice key,
                                  uint64_t stamp, struct slice value)
{
    const size_t room = key.size > SKIP_KEY_LEAST ? key.size : SKIP_KEY_LEAST;
    uint8_t *piece =
        arena_new(arena, height * sizeof(link) + sizeof(struct skip_node) + room + value.size);
    if (!piece)
        return NULL;
    struct skip_node *node = (struct skip_node *)(void *)(piece + height * sizeof(link));
    node->stamp = stamp;
    atomic_init(&node->prev, NULL);
    node->value_size = (uint32_t)value.size;
    node->key_size = (uint16_t)key.size;
    node->height = (uint16_t)height;
    memset(node->key, 0, SKIP_KEY_LEAST);
    if (key.size)
        memcpy(node->key, key.data, key.size);
    if (value.size)
        memcpy(node->key + room, value.data, value.size);
    return node;
}

bool skiplist_init(struct skiplist *list, struct arena *arena)
{
    *list = (struct skiplist){.arena = arena, .random = UINT64_C(0x9e3779b97f4a7c15)};
    list->head = node_new(arena, SKIP_HEIGHT_MAX, slice_of(NULL, 0), 0, slice_of(NULL, 0));
    if (!list->head)
        return false;
    atomic_init(&list->height, 1);
    for (unsigned level = 0; level < SKIP_HEIGHT_MAX; level++) {
        atomic_init(tower(list->head, level), NULL);
        list->before[level] = list->head;
    }
    return true;
}

/* One node in four reaches the next level: xorshift64, two bits a level. */
static unsigned random_height(struct skiplist *list)
{
    list->random ^= list->random << 13;
    list->random ^= list->random >> 7;
    list->random ^= list->random << 17;
    const unsigned zeros = (unsigned)__builtin_ctzll(list->random | UINT64_C(1) << 63);
    const unsigned height = 1 + zeros / 2;
    return height < SKIP_HEIGHT_MAX ? height : SKIP_HEIGHT_MAX;
}

/* Whether the target belongs where the last node went: behind it, before its successor. */
static bool splice_holds(const struct skiplist *list, const struct target *t)
{
    const struct skip_node *before = list->before[0], *after = list->after[0];
    return before != list->head && node_is_below(before, t) && !(after && node_is_below(after, t));
}

static void splice_in(struct skiplist *list, struct skip_node *node)
{
    struct skip_node *const first = list->before[0];
    struct skip_node *const behind = list->after[0];
    atomic_store_explicit(&node->prev, first == list->head ? NULL : first, memory_order_relaxed);
    for (unsigned level = 0; level < node->height; level++) {
        atomic_store_explicit(tower(node, level), list->after[level], memory_order_relaxed);
        atomic_store_explicit(tower(list->before[level], level), node, memory_order_release);
        list->before[level] = node;
    }
    if (behind)
        atomic_store_explicit(&behind->prev, node, memory_order_release);
}

bool skiplist_add(struct skiplist *list, struct slice key, uint64_t stamp, struct slice value)
{
    const struct target t = target_of(key, stamp);
    const unsigned tall = atomic_load_explicit(&list->height, memory_order_relaxed);
    const unsigned height = random_height(list);
    struct skip_node *node = node_new(list->arena, height, key, stamp, value);
    if (!node)
        return false;
    if (!splice_holds(list, &t)) {
        struct skip_node *after;
        (void)walk(list, &t, list, &after);
    }
    for (unsigned level = tall; level < height; level++) {
        list->before[level] = list->head;
        list->after[level] = NULL;
    }
    splice_in(list, node);
    if (height > tall)
        atomic_store_explicit(&list->height, height, memory_order_relaxed);
    return true;
}

struct skip_node *skiplist_at_or_after(const struct skiplist *list, struct slice key,
                                       uint64_t stamp)
{
    const struct target t = target_of(key, stamp);
    struct skip_node *after;
    (void)walk(list, &t, NULL, &after);
    return after;
}

struct skip_node *skiplist_before(const struct skiplist *list, struct slice key, uint64_t stamp)
{
    const struct target t = target_of(key, stamp);
    struct skip_node *after;
    struct skip_node *before = walk(list, &t, NULL, &after);
    return before == list->head ? NULL : before;
}

struct skip_node *skiplist_first(const struct skiplist *list)
{
    return follow(list->head, 0);
}

struct skip_node *skiplist_last(const struct skiplist *list)
{
    struct skip_node *at = list->head;
    for (unsigned level = atomic_load_explicit(&list->height, memory_order_relaxed); level-- > 0;)
        for (struct skip_node *next; (next = follow(at, level)) != NULL;)
            at = next;
    return at == list->head ? NULL : at;
}

struct skip_node *skip_next(const struct skip_node *node)
{
    return follow(node, 0);
}

struct skip_node *skip_prev(const struct skip_node *node)
{
    return atomic_load_explicit(&node->prev, memory_order_acquire);
}
