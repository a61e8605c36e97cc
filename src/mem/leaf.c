/* SPDX-License-Identifier: MIT */
#include "mem/leaf.h"

#include <assert.h>

struct leaf *leaf_new(struct arena *arena, const struct entry *low, const struct entry *high,
                      const struct entry *const *sorted, uint32_t n)
{
    struct leaf *l = mem_node_new(arena, sizeof *l);
    if (!l)
        return NULL;
    l->level = 0;
    l->sorted = n;
    l->skip = fence_skip(low, high);
    l->low = low;
    l->high = high;
    for (uint32_t i = 0; i < n; i++) {
        l->window[i] = window_of(entry_key(sorted[i]), l->skip);
        l->entries[i] = sorted[i];
    }
    atomic_init(&l->count, n);
    return l;
}

void leaf_append(struct leaf *l, const struct entry *e)
{
    const uint32_t n = atomic_load_explicit(&l->count, memory_order_relaxed);
    assert(n < LEAF_MAX);
    l->window[n] = window_of(entry_key(e), l->skip);
    l->entries[n] = e;
    atomic_store_explicit(&l->count, n + 1, memory_order_release);
}

/* Whether any of eight windows is `w`: one branch for eight comparisons. */
static inline bool any_of_eight(const int32_t *window, int32_t w)
{
    int any = 0;
    for (int i = 0; i < 8; i++)
        any |= window[i] == w;
    return any;
}

const struct entry *leaf_find(const struct leaf *l, const struct target *t)
{
    const uint32_t n = leaf_count(l);
    const int32_t w = window_of(t->key, l->skip);
    const struct entry *best = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (i % 8 == 0 && i + 8 <= n && !any_of_eight(&l->window[i], w)) {
            i += 7;
            continue;
        }
        if (l->window[i] != w)
            continue;
        const struct entry *e = l->entries[i];
        if (slice_equal(entry_key(e), t->key) && e->stamp <= t->stamp &&
            (!best || e->stamp > best->stamp))
            best = e;
    }
    return best;
}

/* Where among `n` sorted ones an entry goes. */
static uint32_t place_of(const struct entry *const *sorted, const int32_t *windows, uint32_t n,
                         const struct entry *e, int32_t w)
{
    uint32_t from = 0;
    while (n > 0) {
        const uint32_t half = n / 2, middle = from + half;
        const bool below =
            windows[middle] != w ? windows[middle] < w : entry_less(sorted[middle], e);
        from = below ? middle + 1 : from;
        n = below ? n - half - 1 : half;
    }
    return from;
}

void leaf_sort(const struct leaf *l, uint32_t n, const struct entry *out[LEAF_MAX])
{
    int32_t windows[LEAF_MAX];
    const uint32_t sorted = l->sorted < n ? l->sorted : n;
    memcpy(out, l->entries, sorted * sizeof *out);
    memcpy(windows, l->window, sorted * sizeof *windows);
    for (uint32_t i = sorted; i < n; i++) {
        const uint32_t at = place_of(out, windows, i, l->entries[i], l->window[i]);
        memmove(&out[at + 1], &out[at], (i - at) * sizeof *out);
        memmove(&windows[at + 1], &windows[at], (i - at) * sizeof *windows);
        out[at] = l->entries[i];
        windows[at] = l->window[i];
    }
}
