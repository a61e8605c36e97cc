/* SPDX-License-Identifier: MIT */
#include "mem/inner.h"

#include <assert.h>

struct inner *inner_new(struct arena *arena, uint32_t level, const struct entry *low,
                        const struct entry *high, const struct item *items, uint32_t n)
{
    assert(n >= 2 && n <= INNER_SEPS + 1);
    struct inner *in = mem_node_new(arena, sizeof *in);
    if (!in)
        return NULL;
    in->level = level;
    in->seps = n - 1;
    in->low = low;
    in->high = high;
    /* One separator alone would share all of itself, and nobody anything with it. */
    in->skip = n > 2 ? fence_skip(items[1].sep, items[n - 1].sep) : fence_skip(low, high);
    in->guarded = in->skip > fence_skip(low, high);
    atomic_init(&in->tail, 0);
    atomic_init(&in->child[0], items[0].child);
    for (uint32_t i = 0; i < INNER_SEPS; i++) {
        const bool there = i + 1 < n;
        in->window[i] = there ? window_of(entry_key(items[i + 1].sep), in->skip) : INT32_MAX;
        in->sep[i] = there ? items[i + 1].sep : NULL;
        atomic_init(&in->child[i + 1], there ? items[i + 1].child : NULL);
    }
    return in;
}

static bool shares_skip(const struct inner *in, struct slice key)
{
    return key.size >= in->skip && memcmp(key.data, in->sep[0]->key, in->skip) == 0;
}

/* By whole keys. */
static const cell *search_keys(const struct inner *in, const struct target *t, uint32_t tail)
{
    uint32_t from = 0;
    for (uint32_t n = in->seps; n > 0;) {
        const uint32_t half = n / 2;
        const bool below = entry_is_below(in->sep[from + half], t);
        from = below ? from + half + 1 : from;
        n = below ? n - half - 1 : half;
    }
    const struct entry *best = from ? in->sep[from - 1] : NULL;
    const cell *found = &in->child[from];
    for (uint32_t i = 0; i < tail; i++)
        if (entry_is_below(in->tail_sep[i], t) && (!best || entry_less(best, in->tail_sep[i]))) {
            best = in->tail_sep[i];
            found = &in->tail_child[i];
        }
    return found;
}

/* By windows, which decide nearly always: no separator is looked at. */
static const cell *search(const struct inner *in, const struct target *t, uint32_t tail)
{
    if (in->guarded && !shares_skip(in, t->key))
        return search_keys(in, t, tail);
    const int32_t w = window_of(t->key, in->skip);
    int32_t below = 0;
    for (int i = 0; i < INNER_SEPS; i++)
        below += in->window[i] < w;
    if ((uint32_t)below < in->seps && in->window[below] == w)
        return search_keys(in, t, tail);
    const cell *found = &in->child[below];
    int32_t best = below ? in->window[below - 1] : INT32_MIN;
    bool tie = false, any = below > 0;
    for (uint32_t i = 0; i < tail; i++) {
        const int32_t at = in->tail_window[i];
        tie |= at == w || (any && at == best);
        if (at < w && (!any || at > best)) {
            best = at;
            any = true;
            found = &in->tail_child[i];
        }
    }
    return tie ? search_keys(in, t, tail) : found;
}

/*
 * A child is replaced by its left half only after its right half was published: a reader that met
 * the left half sees, asking again, the tail that has the other, and goes back for it.
 */
struct mem_node *inner_child(const struct inner *in, const struct target *t)
{
    uint32_t tail = atomic_load_explicit(&in->tail, memory_order_acquire);
    for (;;) {
        struct mem_node *child = atomic_load_explicit(search(in, t, tail), memory_order_acquire);
        const uint32_t again = atomic_load_explicit(&in->tail, memory_order_acquire);
        if (again == tail)
            return child;
        tail = again; /* grows eight times at the most */
    }
}

static const cell *search_last(const struct inner *in, uint32_t tail)
{
    const struct entry *best = in->sep[in->seps - 1];
    const cell *found = &in->child[in->seps];
    for (uint32_t i = 0; i < tail; i++)
        if (entry_less(best, in->tail_sep[i])) {
            best = in->tail_sep[i];
            found = &in->tail_child[i];
        }
    return found;
}

struct mem_node *inner_last(const struct inner *in)
{
    uint32_t tail = atomic_load_explicit(&in->tail, memory_order_acquire);
    for (;;) {
        struct mem_node *child = atomic_load_explicit(search_last(in, tail), memory_order_acquire);
        const uint32_t again = atomic_load_explicit(&in->tail, memory_order_acquire);
        if (again == tail)
            return child;
        tail = again;
    }
}

cell *inner_cell(struct inner *in, const struct target *t)
{
    const cell *found = search(in, t, atomic_load_explicit(&in->tail, memory_order_relaxed));
    return found >= in->tail_child ? &in->tail_child[found - in->tail_child]
                                   : &in->child[found - in->child];
}

bool inner_append(struct inner *in, const struct entry *sep, struct mem_node *child)
{
    const uint32_t n = atomic_load_explicit(&in->tail, memory_order_relaxed);
    if (n == INNER_TAIL || !shares_skip(in, entry_key(sep)))
        return false;
    in->tail_window[n] = window_of(entry_key(sep), in->skip);
    in->tail_sep[n] = sep;
    atomic_init(&in->tail_child[n], child);
    atomic_store_explicit(&in->tail, n + 1, memory_order_release);
    return true;
}

static uint32_t insert_item(struct item *items, uint32_t n, const struct entry *sep,
                            struct mem_node *child)
{
    uint32_t at = n;
    while (at > 1 && entry_less(sep, items[at - 1].sep))
        at--;
    memmove(&items[at + 1], &items[at], (n - at) * sizeof *items);
    items[at] = (struct item){sep, child};
    return n + 1;
}

static struct mem_node *child_or(const cell *c, const cell *at, struct mem_node *left)
{
    return c == at ? left : atomic_load_explicit(c, memory_order_relaxed);
}

uint32_t inner_items(const struct inner *in, const cell *at, struct mem_node *left,
                     const struct entry *sep, struct mem_node *right, struct item out[INNER_ITEMS])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i <= in->seps; i++)
        out[n++] = (struct item){i ? in->sep[i - 1] : in->low, child_or(&in->child[i], at, left)};
    for (uint32_t i = 0; i < atomic_load_explicit(&in->tail, memory_order_relaxed); i++)
        n = insert_item(out, n, in->tail_sep[i], child_or(&in->tail_child[i], at, left));
    return insert_item(out, n, sep, right);
}
