/* SPDX-License-Identifier: MIT */
#include "mem/memtable.h"

#include <assert.h>

#include "base/arena.h"
#include "base/fetch.h"
#include "mem/mem_filter.h"
#include "mem/mem_range.h"
#include "mem/mem_tree.h"

enum {
    BYTES_PER_KEY = 96, /* guessed, for the size of the filter */
    CHUNK_LEAST = 1 << 10,
    CHUNK_MOST = (4 << 20) - 64, /* with its header 4 MiB: from there on pages are huge */
};

struct memtable {
    /* What a search that finds nothing touches: a line that writing does not. */
    _Alignas(64) struct mem_filter filter;
    atomic_bool used; /* there is a version: most reads meet an empty memtable or none */
    _Atomic(const struct mem_range *) ranges; /* the newest; NULL: no range was deleted */
    const struct alloc *alloc;
    /* The writer's. */
    _Alignas(64) struct arena arena;
    struct mem_tree tree;
    counter bytes, count, newest; /* for any thread */
};

/* A sixteenth of what is expected, so that a small memtable does not hold large chunks. */
static size_t chunk_bytes(size_t expected_bytes)
{
    const size_t part = expected_bytes / 16;
    return part < CHUNK_LEAST ? CHUNK_LEAST : part > CHUNK_MOST ? CHUNK_MOST : part & ~(size_t)63;
}

static void bytes_update(struct memtable *m)
{
    const size_t used =
        sizeof *m + mem_filter_bytes(&m->filter) + m->arena.total_bytes - m->arena.left;
    atomic_store_explicit(&m->bytes, used, memory_order_relaxed);
}

struct memtable *memtable_new(const struct alloc *alloc, size_t expected_bytes)
{
    struct memtable *m = mem_new_aligned(alloc, sizeof *m, _Alignof(struct memtable));
    if (!m)
        return NULL;
    const size_t chunk = chunk_bytes(expected_bytes);
    *m = (struct memtable){.alloc = alloc, .arena = arena_init(alloc, chunk, chunk)};
    if (!mem_tree_init(&m->tree, &m->arena) ||
        !mem_filter_init(&m->filter, alloc, expected_bytes / BYTES_PER_KEY)) {
        memtable_free(m);
        return NULL;
    }
    bytes_update(m);
    return m;
}

void memtable_free(struct memtable *m)
{
    if (!m)
        return;
    const struct alloc *alloc = m->alloc;
    mem_filter_free(&m->filter, alloc);
    arena_free(&m->arena);
    mem_free_aligned(alloc, m, sizeof *m, _Alignof(struct memtable));
}

static tamiz_status add_range(struct op *op, struct memtable *m, struct slice from, struct slice to,
                              uint64_t seq)
{
    const struct mem_range *r = mem_range_new(
        &m->arena, atomic_load_explicit(&m->ranges, memory_order_relaxed), from, to, seq);
    if (!r)
        return op_fail_memory(op);
    atomic_store_explicit(&m->ranges, r, memory_order_release);
    bytes_update(m);
    counter_add(&m->count, 1);
    return TAMIZ_OK;
}

tamiz_status memtable_add(struct op *op, struct memtable *m, struct slice key, uint64_t hash,
                          uint64_t stamp, struct slice value)
{
    assert(key.size <= KEY_SIZE_MAX && value.size <= VALUE_SIZE_MAX && hash == hash_key(key));
    if (__builtin_expect(stamp_kind(stamp) == KIND_RANGE_DELETE, 0))
        return add_range(op, m, key, value, stamp_seq(stamp));
    if (memtable_used(m))
        fetch_line(mem_filter_line(&m->filter, hash)); /* arrives while the tree is searched */
    if (!mem_tree_add(&m->tree, key, stamp, value))
        return op_fail_memory(op);
    mem_filter_add(&m->filter, hash);
    if (!memtable_used(m))
        atomic_store_explicit(&m->used, true, memory_order_relaxed);
    bytes_update(m);
    counter_add(&m->count, 1);
    atomic_store_explicit(&m->newest, stamp_seq(stamp), memory_order_relaxed);
    return TAMIZ_OK;
}

bool memtable_used(const struct memtable *m)
{
    return atomic_load_explicit(&m->used, memory_order_relaxed);
}

/* Where ranges were deleted: what the tree found (NULL: nothing) under them. */
static tamiz_status judge_ranges(struct op *op, const struct mem_range *ranges,
                                 const struct lookup *lookup, const struct entry *e,
                                 uint64_t *stamp, struct slice *value)
{
    const struct mem_range *r = mem_range_at(ranges, stamp_seq(lookup->stamp_max));
    const struct cover *c = r ? skyline_find(r->skyline, lookup->key) : NULL;
    if (c && (!e || c->seq > stamp_seq(e->stamp))) {
        op_step(op, &(const tamiz_step_info){
                        .kind = TAMIZ_STEP_RANGE_TOMBSTONE, .level = -1, .text = "", .filter = ""});
        *stamp = stamp_of(c->seq, KIND_DELETE);
        return TAMIZ_OK;
    }
    if (!e)
        return TAMIZ_NOT_FOUND;
    *stamp = e->stamp;
    *value = entry_value(e);
    return TAMIZ_OK;
}

tamiz_status memtable_get(struct op *op, const struct memtable *m, const struct lookup *lookup,
                          uint64_t *stamp, struct slice *value)
{
    *stamp = 0;
    *value = slice_of(NULL, 0);
    const bool maybe = memtable_used(m) && mem_filter_may_contain(&m->filter, lookup->hash);
    if (__builtin_expect(op->trace != NULL, 0)) /* no counter: no statistic is made of these */
        op_tell(op,
                &(const tamiz_step_info){
                    .kind = maybe ? TAMIZ_STEP_MEMTABLE : TAMIZ_STEP_MEMTABLE_FILTER, .level = -1});
    const struct mem_range *ranges = atomic_load_explicit(&m->ranges, memory_order_acquire);
    if (!maybe && __builtin_expect(!ranges, 1))
        return TAMIZ_NOT_FOUND;
    const struct entry *e = maybe ? mem_tree_find(&m->tree, lookup->key, lookup->stamp_max) : NULL;
    if (__builtin_expect(ranges != NULL, 0))
        return judge_ranges(op, ranges, lookup, e, stamp, value);
    if (!e)
        return TAMIZ_NOT_FOUND;
    *stamp = e->stamp;
    *value = entry_value(e);
    return TAMIZ_OK;
}

uint64_t memtable_sift(const struct memtable *m, const uint64_t *hashes, size_t n)
{
    uint64_t maybe = 0;
    assert(n <= 64);
    if (atomic_load_explicit(&m->ranges, memory_order_acquire))
        return UINT64_MAX; /* one of them may cover it */
    if (!memtable_used(m))
        return 0;
    for (size_t i = 0; i < n; i++)
        fetch_line(mem_filter_line(&m->filter, hashes[i]));
    for (size_t i = 0; i < n; i++)
        maybe |= (uint64_t)mem_filter_may_contain(&m->filter, hashes[i]) << i;
    return maybe;
}

size_t memtable_bytes(const struct memtable *m)
{
    return (size_t)counter_get(&m->bytes);
}

uint64_t memtable_count(const struct memtable *m)
{
    return counter_get(&m->count);
}

uint64_t memtable_newest(const struct memtable *m)
{
    return counter_get(&m->newest);
}

const struct skyline *memtable_skyline(const struct memtable *m, uint64_t seq)
{
    const struct mem_range *r =
        mem_range_at(atomic_load_explicit(&m->ranges, memory_order_acquire), seq);
    return r ? r->skyline : NULL;
}

void memtable_ranges_list(const struct memtable *m, struct buf *list)
{
    const struct mem_range *r = atomic_load_explicit(&m->ranges, memory_order_acquire);
    for (; r; r = r->below)
        buf_append(list, &r->is, sizeof r->is);
}

struct memtable_iter {
    struct iter base;
    const struct memtable *memtable;
    struct cursor cursor;
};

static struct cursor *cursor_of(struct iter *base)
{
    return &((struct memtable_iter *)base)->cursor;
}

static void show(struct iter *it, const struct entry *e)
{
    it->valid = e != NULL;
    it->key = e ? entry_key(e) : slice_of(NULL, 0);
    it->stamp = e ? e->stamp : 0;
    it->value = e ? entry_value(e) : slice_of(NULL, 0);
}

static void seek_first(struct iter *base)
{
    show(base, cursor_first(cursor_of(base)));
}

static void seek_last(struct iter *base)
{
    show(base, cursor_last(cursor_of(base)));
}

static void seek(struct iter *base, struct slice key, uint64_t stamp)
{
    const struct memtable *m = ((struct memtable_iter *)base)->memtable;
    const struct target t = {key, stamp, false};
    if (!memtable_used(m)) /* as of a store that is read only */
        base->valid = false;
    else
        show(base, cursor_seek(cursor_of(base), &t));
}

static void seek_before(struct iter *base, struct slice key, uint64_t stamp)
{
    const struct target t = {key, stamp, false};
    show(base, cursor_seek_before(cursor_of(base), &t));
}

static void step_next(struct iter *base)
{
    assert(base->valid);
    show(base, cursor_next(cursor_of(base)));
}

static void step_prev(struct iter *base)
{
    assert(base->valid);
    show(base, cursor_prev(cursor_of(base)));
}

static void close_iter(struct iter *base)
{
    struct memtable_iter *it = (struct memtable_iter *)base;
    mem_free(it->memtable->alloc, it, sizeof *it);
}

static const struct iter_ops memtable_iter_ops = {
    .seek_first = seek_first,
    .seek_last = seek_last,
    .seek = seek,
    .seek_before = seek_before,
    .next = step_next,
    .prev = step_prev,
    .close = close_iter,
};

struct iter *memtable_iter(struct op *op, const struct memtable *m)
{
    struct memtable_iter *it = mem_new(m->alloc, sizeof *it);
    if (!it) {
        (void)op_fail_memory(op);
        return NULL;
    }
    it->base = (struct iter){.ops = &memtable_iter_ops, .op = op};
    it->memtable = m;
    it->cursor.tree = &m->tree;
    it->cursor.count = 0;
    return &it->base;
}
