/* SPDX-License-Identifier: MIT */
#include "db/view.h"

#include <assert.h>

#include "db/scan.h"

struct mem_ref *mem_ref_new(struct op *op, const struct tamiz *db, uint64_t first_log)
{
    struct store *s = db->store;
    struct mem_ref *m = mem_new_array(&s->alloc, 1, sizeof *m);
    if (m)
        m->memtable = memtable_new(&s->alloc, (size_t)db->options.memtable);
    if (!m || !m->memtable) {
        mem_free(&s->alloc, m, sizeof *m);
        op_fail_memory(op);
        return NULL;
    }
    atomic_init(&m->refs, 1);
    m->first_log = first_log;
    return m;
}

void mem_ref_unref(struct store *s, struct mem_ref *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    memtable_free(m->memtable);
    mem_free(&s->alloc, m, sizeof *m);
}

static size_t view_bytes(uint32_t room)
{
    return sizeof(struct view) + room * sizeof(struct mem_ref *);
}

static void view_retired(struct retired *self, void *ctx)
{
    (void)self;
    view_unref(ctx);
}

static struct view *view_empty(struct op *op, struct store *s, uint32_t room)
{
    struct view *v = mem_new_aligned(&s->alloc, view_bytes(room), _Alignof(struct view));
    if (!v) {
        op_fail_memory(op);
        return NULL;
    }
    memset(v, 0, sizeof *v);
    v->store = s;
    v->room = room;
    v->retired.free = view_retired;
    v->retired.ctx = v;
    atomic_init(&v->refs, 1);
    return v;
}

struct view *view_reserve(struct op *op, struct store *s)
{
    return view_empty(op, s, VIEW_ROOM);
}

/* What readers count with it is part of the keyspace's sum from here on. */
static void list_view(struct tamiz *db, struct view *v)
{
    mutex_lock(&v->store->views_mutex);
    v->db = db;
    v->older = db->newest_view;
    if (v->older)
        v->older->newer = v;
    db->newest_view = v;
    mutex_unlock(&v->store->views_mutex);
}

/* It goes, what was counted with it stays. */
static void unlist_view(struct view *v)
{
    mutex_lock(&v->store->views_mutex);
    misses_sum(&v->misses, v->version, &v->db->gone);
    if (v->older)
        v->older->newer = v->newer;
    if (v->newer)
        v->newer->older = v->older;
    else
        v->db->newest_view = v->older;
    mutex_unlock(&v->store->views_mutex);
}

void views_sum(struct tamiz *db, struct counters *sum)
{
    mutex_lock(&db->store->views_mutex);
    counters_sum(sum, &db->gone);
    for (const struct view *v = db->newest_view; v; v = v->older)
        misses_sum(&v->misses, v->version, sum);
    mutex_unlock(&db->store->views_mutex);
}

void view_fill(struct view *v, struct mem_ref *const *memtables, uint32_t count,
               struct version *version)
{
    assert(count <= v->room && v->memtable_count == 0);
    v->version = version;
    v->memtable_count = count;
    for (uint32_t i = 0; i < count; i++) {
        v->memtables[i] = memtables[i];
        atomic_fetch_add_explicit(&memtables[i]->refs, 1, memory_order_relaxed);
    }
    version_ref(version);
    misses_init(&v->misses, version);
}

struct view *view_new(struct op *op, struct store *s, struct mem_ref *const *memtables,
                      uint32_t count, struct version *version)
{
    struct view *v = view_empty(op, s, count);
    if (v)
        view_fill(v, memtables, count, version);
    return v;
}

struct view *view_nothing(struct op *op, struct store *s)
{
    const struct version_edit nothing = {.removed_count = 0};
    struct version *version = NULL;
    struct view *v = NULL;
    if (version_apply(op, &s->alloc, NULL, &nothing, &version) == TAMIZ_OK)
        v = view_new(op, s, NULL, 0, version);
    version_unref(version);
    return v;
}

void view_ref(struct view *v)
{
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
}

void view_unref(struct view *v)
{
    if (!v || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct store *s = v->store;
    if (v->db)
        unlist_view(v);
    for (uint32_t i = 0; i < v->memtable_count; i++)
        mem_ref_unref(s, v->memtables[i]);
    version_unref(v->version);
    mem_free_aligned(&s->alloc, v, view_bytes(v->room), _Alignof(struct view));
}

bool view_unlogged(const struct view *v)
{
    assert(mutex_held(&v->store->mutex));
    bool unlogged = false;
    for (uint32_t i = 0; i < v->memtable_count; i++)
        unlogged |= v->memtables[i]->unlogged;
    return unlogged;
}

void view_publish(struct tamiz *db, struct view *next)
{
    assert(mutex_held(&db->store->mutex));
    list_view(db, next);
    struct mem_ref *active = next->memtable_count ? next->memtables[0] : NULL;
    if (db->active != active) /* else a writer may be looking, without the lock */
        db->active = active;
    db->view_changes++;
    struct view *old = atomic_exchange_explicit(&db->view, next, memory_order_seq_cst);
    if (!old)
        return;
    iters_forget(db, old);
    epoch_retire(&db->store->epoch, &old->retired);
}

struct view *view_acquire(struct tamiz *db, uint64_t *seq)
{
    struct view *v = view_borrow(db, seq);
    view_ref(v);
    return v;
}
