/* SPDX-License-Identifier: MIT */
#include "base/skyline.h"

#include <assert.h>

#include "base/hash.h"

struct skyline {
    struct cover piece; /* first: what is handed out */
    uint64_t priority;  /* not below that of its children */
    const struct skyline *left, *right;
};

/* What is on its way: memory may be out in the middle of it. */
struct work {
    struct arena *arena;
    bool failed;
};

static struct skyline *copy_of(struct work *w, const struct skyline *node)
{
    struct skyline *n = arena_new(w->arena, sizeof *n);
    if (n)
        *n = *node;
    w->failed |= !n;
    return n;
}

/* Spreads sequence and place: any order of ranges makes a tree of about the same depth, and so do
 * the many pieces of one range that others cut up. */
static uint64_t priority_of(const struct cover *piece)
{
    uint64_t x = piece->seq + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) ^ hash_key(piece->from);
}

/* All of `a` lies below all of `b`. */
static const struct skyline *join(struct work *w, const struct skyline *a, const struct skyline *b)
{
    if (!a || !b || w->failed)
        return a ? a : b;
    struct skyline *n = copy_of(w, a->priority >= b->priority ? a : b);
    if (!n)
        return NULL;
    if (a->priority >= b->priority)
        n->right = join(w, a->right, b);
    else
        n->left = join(w, a, b->left);
    return n;
}

/* Cuts at `key`: what lies below goes left, the rest right; a piece across it is cut in two. */
static void split(struct work *w, const struct skyline *t, struct slice key,
                  const struct skyline **left, const struct skyline **right)
{
    *left = *right = NULL;
    if (!t || w->failed)
        return;
    struct skyline *n = copy_of(w, t);
    if (!n)
        return;
    if (slice_compare(key, t->piece.from) <= 0) {
        split(w, t->left, key, left, &n->left);
        *right = n;
    } else if (slice_compare(key, t->piece.to) >= 0) {
        split(w, t->right, key, &n->right, right);
        *left = n;
    } else {
        struct skyline *above = copy_of(w, t);
        if (!above)
            return;
        n->piece.to = above->piece.from = key;
        n->right = above->left = above->right = NULL;
        above->priority = priority_of(&above->piece);
        *left = n;
        *right = join(w, above, t->right);
    }
}

const struct skyline *skyline_add(struct arena *arena, const struct skyline *under,
                                  const struct cover *piece)
{
    assert(slice_compare(piece->from, piece->to) < 0);
    struct work w = {arena, false};
    const struct skyline fresh = {.piece = *piece, .priority = priority_of(piece)};
    const struct skyline *below, *rest, *hidden, *above;
    split(&w, under, piece->from, &below, &rest);
    split(&w, rest, piece->to, &hidden, &above);
    const struct skyline *top = join(&w, join(&w, below, copy_of(&w, &fresh)), above);
    return w.failed ? NULL : top;
}

const struct cover *skyline_find(const struct skyline *s, struct slice key)
{
    while (s) {
        if (slice_compare(key, s->piece.from) < 0)
            s = s->left;
        else if (slice_compare(key, s->piece.to) >= 0)
            s = s->right;
        else
            return &s->piece;
    }
    return NULL;
}

const struct cover *skyline_around(const struct skyline *s, struct slice key, struct slice *end)
{
    const struct cover *best = NULL;
    *end = (struct slice){NULL, 0};
    while (s) {
        if (slice_compare(key, s->piece.to) < 0) {
            best = &s->piece;
            s = s->left;
        } else {
            *end = s->piece.to;
            s = s->right;
        }
    }
    return best;
}

const struct cover *skyline_from(const struct skyline *s, struct slice key)
{
    struct slice end;
    return skyline_around(s, key, &end);
}

void skyline_walk(const struct skyline *s, void (*see)(void *ctx, const struct cover *piece),
                  void *ctx)
{
    for (; s; s = s->right) {
        skyline_walk(s->left, see, ctx);
        see(ctx, &s->piece);
    }
}
