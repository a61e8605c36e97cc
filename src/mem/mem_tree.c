/* SPDX-License-Identifier: MIT */
#include "mem/mem_tree.h"

#include "base/fetch.h"

#include <assert.h>

/* Each inner node is born of a split with at least 28 children. */
enum { TREE_HEIGHT_MAX = 14, AHEAD = 6 };

static struct mem_node *root_of(const struct mem_tree *tree)
{
    return atomic_load_explicit(&tree->root, memory_order_acquire);
}

/* The leaf with the last entry below the target. */
static struct leaf *descend(const struct mem_tree *tree, const struct target *t)
{
    struct mem_node *n = root_of(tree);
    while (n->level)
        n = inner_child((const struct inner *)(const void *)n, t);
    return (struct leaf *)(void *)n;
}

bool mem_tree_init(struct mem_tree *tree, struct arena *arena)
{
    struct leaf *l = leaf_new(arena, NULL, NULL, NULL, 0);
    *tree = (struct mem_tree){.arena = arena, .last = l};
    atomic_init(&tree->root, (struct mem_node *)(void *)l);
    return l != NULL;
}

/* ---- adding ---- */

/* From the root to the parent of a leaf; cell[i] is the place in node[i] that was followed. */
struct path {
    uint32_t depth;
    struct inner *node[TREE_HEIGHT_MAX];
    cell *cell[TREE_HEIGHT_MAX];
};

static void path_find(struct mem_tree *tree, const struct target *t, struct path *p)
{
    p->depth = 0;
    for (struct mem_node *n = root_of(tree); n->level; p->depth++) {
        assert(p->depth < TREE_HEIGHT_MAX);
        p->node[p->depth] = (struct inner *)(void *)n;
        p->cell[p->depth] = inner_cell(p->node[p->depth], t);
        n = atomic_load_explicit(p->cell[p->depth], memory_order_relaxed);
    }
}

static void publish(cell *at, struct mem_node *n)
{
    atomic_store_explicit(at, n, memory_order_release);
}

/* How many of the items go left, all where one node can have them. In an ascending load what
 * follows goes right, so that nothing but two does now. */
static uint32_t share_of_left(const struct item *items, uint32_t n, const struct entry *added)
{
    if (n <= INNER_SEPS + 1)
        return n;
    if (items[n - 1].sep != added)
        return n / 2;
    return n - 2 < INNER_SEPS + 1 ? n - 2 : INNER_SEPS + 1;
}

/* Two nodes in the place of one; what must be replaced above is made before anything is published.
 */
static bool replace(struct mem_tree *tree, const struct path *p, struct mem_node *left,
                    const struct entry *sep, struct mem_node *right)
{
    for (uint32_t d = p->depth; d-- > 0;) {
        struct inner *in = p->node[d];
        if (inner_append(in, sep, right)) {
            publish(p->cell[d], left);
            return true;
        }
        struct item items[INNER_ITEMS];
        const uint32_t n = inner_items(in, p->cell[d], left, sep, right, items);
        const uint32_t half = share_of_left(items, n, sep);
        const struct entry *middle = half < n ? items[half].sep : in->high;
        left = (void *)inner_new(tree->arena, in->level, in->low, middle, items, half);
        if (!left)
            return false;
        if (half == n) {
            publish(d ? p->cell[d - 1] : &tree->root, left);
            return true;
        }
        right = (void *)inner_new(tree->arena, in->level, middle, in->high, items + half, n - half);
        if (!right)
            return false;
        sep = middle;
    }
    const struct item items[2] = {{NULL, left}, {sep, right}};
    struct inner *top = inner_new(tree->arena, left->level + 1, NULL, NULL, items, 2);
    if (top)
        publish(&tree->root, (struct mem_node *)(void *)top);
    return top != NULL;
}

/*
 * Two leaves for a full one, the new entry in where it belongs: halves, or, where it belongs behind
 * all others, as in an ascending load, all of them and the new one alone. A leaf has its fences
 * from birth, and by them what its keys share; so the full one is made anew in that case too.
 */
static bool add_to_full(struct mem_tree *tree, const struct leaf *l, const struct entry *e)
{
    const struct target t = target_of(e, false);
    const struct entry *sorted[LEAF_MAX + 1];
    struct path p;
    path_find(tree, &t, &p);
    leaf_sort(l, LEAF_MAX, sorted);
    sorted[LEAF_MAX] = e;
    const bool behind_all = entry_is_below(sorted[LEAF_MAX - 1], &t);
    const uint32_t half = behind_all ? LEAF_MAX : LEAF_MAX / 2;
    const uint32_t rest = behind_all ? 1 : LEAF_MAX - half;
    const struct entry *sep = sorted[half];
    struct leaf *left = leaf_new(tree->arena, l->low, sep, sorted, half);
    struct leaf *right = leaf_new(tree->arena, sep, l->high, sorted + half, rest);
    if (!left || !right)
        return false;
    struct leaf *place = entry_is_below(sep, &t) || behind_all ? right : left;
    if (!replace(tree, &p, (struct mem_node *)(void *)left, sep, (struct mem_node *)(void *)right))
        return false;
    if (!behind_all)
        leaf_append(place, e);
    tree->last = place;
    return true;
}

/* Whether the target belongs where the last two entries went, as in an ascending load. Were it
 * asked each time, the fences would be two more cache misses of every random insertion. */
static bool last_holds(const struct mem_tree *tree, const struct target *t)
{
    const struct leaf *l = tree->last;
    return tree->again && (!l->low || entry_is_below(l->low, t)) &&
           (!l->high || !entry_is_below(l->high, t));
}

bool mem_tree_add(struct mem_tree *tree, struct slice key, uint64_t stamp, struct slice value)
{
    const struct target t = {key, stamp, false};
    struct leaf *l = last_holds(tree, &t) ? tree->last : descend(tree, &t);
    const struct entry *e = entry_new(tree->arena, key, stamp, value);
    if (!e)
        return false;
    tree->again = l == tree->last;
    if (leaf_count(l) == LEAF_MAX)
        return add_to_full(tree, l, e);
    leaf_append(l, e);
    tree->last = l;
    return true;
}

/* ---- reading ---- */

const struct entry *mem_tree_find(const struct mem_tree *tree, struct slice key, uint64_t stamp)
{
    const struct target t = {key, stamp, false};
    const struct leaf *l = descend(tree, &t);
    const struct entry *e = leaf_find(l, &t);
    if (e)
        return e;
    /* Its versions may begin with the next leaf. */
    e = l->high;
    return e && slice_equal(entry_key(e), key) && e->stamp <= stamp ? e : NULL;
}

static void cursor_enter(struct cursor *c, const struct leaf *l)
{
    c->count = leaf_count(l);
    c->low = l->low;
    c->high = l->high;
    leaf_sort(l, c->count, c->entries);
}

static const struct entry *cursor_at(struct cursor *c, uint32_t at)
{
    c->at = at;
    return at < c->count ? c->entries[at] : NULL;
}

static uint32_t cursor_below(const struct cursor *c, const struct target *t)
{
    uint32_t from = 0;
    for (uint32_t n = c->count; n > 0;) {
        const uint32_t half = n / 2;
        const bool below = entry_is_below(c->entries[from + half], t);
        from = below ? from + half + 1 : from;
        n = below ? n - half - 1 : half;
    }
    return from;
}

/* Into the leaf that begins with the fence. */
static const struct entry *cursor_beyond(struct cursor *c)
{
    if (!c->high)
        return cursor_at(c, c->count);
    const struct target t = target_of(c->high, true);
    cursor_enter(c, descend(c->tree, &t));
    assert(c->count > 0 && c->entries[0] == c->low);
    return cursor_at(c, 0);
}

const struct entry *cursor_seek(struct cursor *c, const struct target *t)
{
    cursor_enter(c, descend(c->tree, t));
    const uint32_t at = cursor_below(c, t);
    return at < c->count ? cursor_at(c, at) : cursor_beyond(c);
}

const struct entry *cursor_seek_before(struct cursor *c, const struct target *t)
{
    cursor_enter(c, descend(c->tree, t));
    return cursor_at(c, cursor_below(c, t) - 1); /* none below: no index */
}

const struct entry *cursor_first(struct cursor *c)
{
    const struct target t = {slice_of(NULL, 0), UINT64_MAX, false};
    return cursor_seek(c, &t);
}

const struct entry *cursor_last(struct cursor *c)
{
    struct mem_node *n = root_of(c->tree);
    while (n->level)
        n = inner_last((const struct inner *)(const void *)n);
    cursor_enter(c, (const struct leaf *)(const void *)n);
    return cursor_at(c, c->count - 1);
}

const struct entry *cursor_next(struct cursor *c)
{
    if (c->at + AHEAD < c->count)
        fetch_line(c->entries[c->at + AHEAD]);
    return c->at + 1 < c->count ? cursor_at(c, c->at + 1) : cursor_beyond(c);
}

const struct entry *cursor_prev(struct cursor *c)
{
    if (c->at >= AHEAD)
        fetch_line(c->entries[c->at - AHEAD]);
    if (c->at > 0)
        return cursor_at(c, c->at - 1);
    if (!c->low)
        return cursor_at(c, c->count);
    const struct target t = target_of(c->low, false);
    return cursor_seek_before(c, &t);
}
