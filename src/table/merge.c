/* SPDX-License-Identifier: MIT */
#include "table/merge.h"

#include "base/buf.h"

/* How a source stands in the heap: the first sixteen bytes of its key decide most comparisons
 * without a look at the key. */
struct runner {
    uint64_t first8, next8;
    struct iter *it;
    uint32_t number; /* among the sources: decides where two show the same version */
};

/* Its source has moved. */
static inline void runner_look(struct runner *r)
{
    const struct slice key = r->it->key;
    r->first8 = slice_prefix8(key, 0);
    r->next8 = key.size > 8 ? slice_prefix8(key, 8) : 0;
}

static inline struct runner runner_of(struct iter *it, uint32_t number)
{
    struct runner r = {0, 0, it, number};
    runner_look(&r);
    return r;
}

struct merge {
    struct iter base;
    const struct alloc *alloc;
    struct iter **sources;
    struct runner *heap; /* of the valid sources; [0] is the current one */
    size_t n, alive;
    bool backward;
    struct buf target; /* what is sought: the caller's key may be borrowed from what moves */
};

static struct merge *merge_of(struct iter *it)
{
    return (struct merge *)it;
}

/* ---- the heap ---- */

/* Does a come before b in the direction of walking? */
static bool leads(const struct merge *m, const struct runner *a, const struct runner *b)
{
    if (a->first8 != b->first8)
        return (a->first8 < b->first8) != m->backward;
    if (a->next8 != b->next8)
        return (a->next8 < b->next8) != m->backward;
    int order = version_compare(a->it->key, a->it->stamp, b->it->key, b->it->stamp);
    if (order == 0)
        order = (a->number > b->number) - (a->number < b->number);
    return (order < 0) != m->backward;
}

static void sift_down(struct merge *m, size_t i)
{
    const struct runner moving = m->heap[i];
    for (size_t child; (child = 2 * i + 1) < m->alive; i = child) {
        if (child + 1 < m->alive && leads(m, &m->heap[child + 1], &m->heap[child]))
            child++;
        if (!leads(m, &m->heap[child], &moving))
            break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = moving;
}

/* The first may have moved: does it still come before all others? */
static inline bool first_leads(const struct merge *m)
{
    return m->alive < 2 || (!leads(m, &m->heap[1], &m->heap[0]) &&
                            (m->alive < 3 || !leads(m, &m->heap[2], &m->heap[0])));
}

static void fail(struct merge *m, tamiz_status status)
{
    m->alive = 0;
    m->base.valid = false;
    m->base.status = status;
}

/* The heap's first becomes what the merge shows. */
static void show(struct merge *m)
{
    m->base.status = TAMIZ_OK;
    m->base.valid = m->alive > 0;
    if (!m->alive)
        return;
    const struct iter *first = m->heap[0].it;
    m->base.key = first->key;
    m->base.stamp = first->stamp;
    m->base.value = first->value;
    m->base.walk = first->walk;
}

/* All sources stand where they should: heap from scratch. */
static void build(struct merge *m, bool backward)
{
    m->backward = backward;
    m->alive = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct iter *it = m->sources[i];
        if (it->status < 0) {
            fail(m, it->status);
            return;
        }
        if (it->valid)
            m->heap[m->alive++] = runner_of(it, (uint32_t)i);
    }
    for (size_t i = m->alive / 2; i-- > 0;)
        sift_down(m, i);
    show(m);
}

/* The current source has moved on. */
static void moved(struct merge *m)
{
    struct runner *first = &m->heap[0];
    struct iter *it = first->it;
    if (__builtin_expect(it->valid, 1)) {
        runner_look(first);
        if (!first_leads(m))
            sift_down(m, 0);
        show(m);
        return;
    }
    if (it->status < 0) {
        fail(m, it->status);
        return;
    }
    *first = m->heap[--m->alive];
    if (m->alive)
        sift_down(m, 0);
    show(m);
}

/* ---- turning round ---- */

static bool same_version(const struct iter *a, const struct iter *b)
{
    return a->valid && a->stamp == b->stamp && slice_equal(a->key, b->key);
}

/* Puts every other source on its last version before the current one, or its first behind; where
 * two show the same version, the one with the lower number counts as before. */
static void turn(struct merge *m, bool backward)
{
    const struct runner current = m->heap[0];
    for (size_t i = 0; i < m->n; i++) {
        struct iter *it = m->sources[i];
        if (it == current.it)
            continue;
        iter_seek(it, current.it->key, current.it->stamp);
        const bool same = same_version(it, current.it);
        const bool before = same && i < current.number;
        if (it->status < 0 || (backward ? before : !before))
            continue;
        if (backward)
            iter_seek_before(it, current.it->key, current.it->stamp);
        else
            iter_next(it);
    }
    /* Whoever moved away from where the heap had it: the current one leaves last, so that its key
       could be borrowed until here. */
    if (backward)
        iter_prev(current.it);
    else
        iter_next(current.it);
    build(m, backward);
}

/* ---- skipping ---- */

static bool is_past(const struct merge_past *past, size_t source)
{
    return source >= past->behind || past->newest[source] < past->seq;
}

static void move_past(struct iter *it, struct slice key, bool backward)
{
    if (backward)
        iter_seek_before(it, key, UINT64_MAX);
    else
        iter_seek(it, key, UINT64_MAX);
}

/* ---- the face ---- */

static void merge_next(struct iter *it)
{
    struct merge *m = merge_of(it);
    if (!it->valid)
        return;
    if (m->backward) {
        turn(m, false);
        return;
    }
    iter_next(m->heap[0].it);
    moved(m);
}

static void merge_prev(struct iter *it)
{
    struct merge *m = merge_of(it);
    if (!it->valid)
        return;
    if (!m->backward) {
        turn(m, true);
        return;
    }
    iter_prev(m->heap[0].it);
    moved(m);
}

static void merge_seek_first(struct iter *it)
{
    struct merge *m = merge_of(it);
    for (size_t i = 0; i < m->n; i++)
        iter_seek_first(m->sources[i]);
    build(m, false);
}

static void merge_seek_last(struct iter *it)
{
    struct merge *m = merge_of(it);
    for (size_t i = 0; i < m->n; i++)
        iter_seek_last(m->sources[i]);
    build(m, true);
}

/* The target's own copy; false: memory is out, and the iterator says so. */
static bool keep_target(struct merge *m, struct slice key)
{
    buf_clear(&m->target);
    buf_slice_append(&m->target, key);
    if (m->target.failed)
        fail(m, op_fail_memory(m->base.op));
    return !m->target.failed;
}

/* A seek waits for memory some four times over; all sources do it at the same time. */
static void approach_all(struct merge *m, uint64_t stamp)
{
    for (unsigned step = 0; step < ITER_STEPS; step++)
        for (size_t i = 0; i < m->n; i++)
            iter_approach(m->sources[i], buf_slice(&m->target), stamp, step);
}

static void merge_seek(struct iter *it, struct slice key, uint64_t stamp)
{
    struct merge *m = merge_of(it);
    if (!keep_target(m, key))
        return;
    approach_all(m, stamp);
    for (size_t i = 0; i < m->n; i++)
        iter_seek(m->sources[i], buf_slice(&m->target), stamp);
    build(m, false);
}

static void merge_seek_before(struct iter *it, struct slice key, uint64_t stamp)
{
    struct merge *m = merge_of(it);
    if (!keep_target(m, key))
        return;
    for (size_t i = 0; i < m->n; i++)
        iter_seek_before(m->sources[i], buf_slice(&m->target), stamp);
    build(m, true);
}

static void merge_close(struct iter *it)
{
    struct merge *m = merge_of(it);
    for (size_t i = 0; i < m->n; i++)
        iter_close(m->sources[i]);
    buf_free(&m->target);
    mem_free(m->alloc, m->sources, m->n * sizeof *m->sources);
    mem_free(m->alloc, m->heap, m->n * sizeof *m->heap);
    mem_free(m->alloc, m, sizeof *m);
}

static void merge_rest(struct iter *it)
{
    struct merge *m = merge_of(it);
    for (size_t i = 0; i < m->n; i++)
        iter_rest(m->sources[i]);
    m->alive = 0;
}

static void merge_refresh(struct iter *it)
{
    struct merge *m = merge_of(it);
    iter_refresh(m->heap[0].it);
    moved(m);
}

static const struct iter_ops merge_ops = {.seek_first = merge_seek_first,
                                          .seek_last = merge_seek_last,
                                          .seek = merge_seek,
                                          .seek_before = merge_seek_before,
                                          .next = merge_next,
                                          .prev = merge_prev,
                                          .close = merge_close,
                                          .rest = merge_rest,
                                          .refresh = merge_refresh};

struct merge_limit merge_limit(const struct iter *it)
{
    const struct merge *m = (const struct merge *)(const void *)it;
    if (it->ops != &merge_ops || m->alive < 2)
        return (struct merge_limit){false, 0, 0};
    const size_t next = m->alive > 2 && leads(m, &m->heap[2], &m->heap[1]) ? 2 : 1;
    return (struct merge_limit){true, m->heap[next].first8, m->heap[next].next8};
}

bool merge_skip(struct iter *it, const struct merge_past *past, struct slice key)
{
    struct merge *m = merge_of(it);
    if (it->ops != &merge_ops) { /* one as one: it knows of no direction, but the key tells */
        if (is_past(past, 0))
            move_past(it, key, slice_compare(it->key, key) >= 0);
        return is_past(past, 0);
    }
    /* Where a seek left it, it may face the other way: a single step turns it. */
    const bool backward = slice_compare(it->key, key) >= 0;
    if (!is_past(past, m->heap[0].number) || backward != m->backward)
        return false;
    for (size_t i = 0; i < m->alive; i++) {
        struct iter *source = m->heap[i].it;
        const bool before = slice_compare(source->key, key) < 0;
        if (is_past(past, m->heap[i].number) && before != m->backward)
            move_past(source, key, m->backward);
    }
    build(m, m->backward);
    return true;
}

struct iter *merge_iter(struct op *op, struct iter **sources, size_t n)
{
    if (n == 1)
        return sources[0]; /* one as one */
    struct merge *m = mem_new_array(op->alloc, 1, sizeof *m);
    struct iter **own = mem_new_array(op->alloc, n, sizeof *own);
    struct runner *heap = mem_new_array(op->alloc, n, sizeof *heap);
    if (!m || !own || !heap) {
        for (size_t i = 0; i < n; i++)
            iter_close(sources[i]);
        mem_free(op->alloc, m, sizeof *m);
        mem_free(op->alloc, own, n * sizeof *own);
        mem_free(op->alloc, heap, n * sizeof *heap);
        (void)op_fail_memory(op);
        return NULL;
    }
    if (n)
        memcpy(own, sources, n * sizeof *own);
    m->base.ops = &merge_ops;
    m->base.op = op;
    m->alloc = op->alloc;
    m->sources = own;
    m->heap = heap;
    m->n = n;
    m->target = buf_init(op->alloc);
    return &m->base;
}
