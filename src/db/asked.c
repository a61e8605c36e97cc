/* SPDX-License-Identifier: MIT */
#include "db/asked.h"

#include "db/background.h"
#include "db/keyspace.h"
#include "db/merge_job.h"
#include "db/merging.h"
#include "db/write.h"

enum { LOOK_US = 200 * 1000 }; /* who waits looks up so often, whatever is signalled */

/* Whether the memtable at `m` is still waiting to be flushed. mutex held. */
static bool still_sealed(const struct tamiz *db, const struct mem_ref *m)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    for (uint32_t i = 1; i < v->memtable_count; i++)
        if (v->memtables[i] == m)
            return true;
    return false;
}

/* A log failed under this flush: what is sealed goes with all the rest, which an empty write seals.
 * mutex held, given up in between. */
static tamiz_status move_on(struct op *op, struct tamiz *db)
{
    struct writer w = {.db = db, .trees = &w.db, .tree_count = 1, .seal = true};
    op_forgive(op);
    mutex_unlock(&db->store->mutex);
    const tamiz_status st = db_write(op, &w);
    mutex_lock(&db->store->mutex);
    db->flush_error.retry_ns = 0;
    return st;
}

/* Why what is waited for will not come; TAMIZ_OK: it may. mutex held. */
static tamiz_status flush_hindered(struct op *op, const struct tamiz *db, uint32_t failures)
{
    const struct store *s = db->store;
    if (db->flush_error.failures > failures)
        return op_fail(op, db->flush_error.status, "%s", db->flush_error.text);
    if (db->dropped)
        return op_fail(op, TAMIZ_CLOSED, "%s: keyspace %s was dropped", s->directory, db->name);
    if (atomic_load_explicit(&s->closing, memory_order_relaxed))
        return op_fail(op, TAMIZ_CLOSED, "%s: the store is being closed", s->directory);
    return TAMIZ_OK;
}

/* Does a step of the background's work, or waits for one. mutex held, given up in between. */
static void flush_wait(struct store *s)
{
    if (s->options.threads) {
        store_wait(s, &s->progress, LOOK_US);
        return;
    }
    mutex_unlock(&s->mutex);
    const bool did = background_step(s);
    mutex_lock(&s->mutex);
    if (!did) /* another caller does it */
        store_wait(s, &s->progress, 1000);
}

tamiz_status db_flush(struct op *op, struct tamiz *db)
{
    struct store *s = db->store;
    struct writer w = {.db = db, .trees = &w.db, .tree_count = 1, .seal = true};
    tamiz_status st = db_write(op, &w);
    if (st != TAMIZ_OK)
        return st;
    mutex_lock(&s->mutex);
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    struct mem_ref *m = v->memtable_count > 1 ? v->memtables[1] : NULL;
    if (m)
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    uint32_t failures = db->flush_error.failures;
    db->flush_error.retry_ns = 0; /* asked for: now */
    store_call_work(s);
    while (m && st == TAMIZ_OK && still_sealed(db, m)) {
        if (s->moving_on) {
            st = move_on(op, db);
            failures = db->flush_error.failures;
            continue;
        }
        st = flush_hindered(op, db, failures);
        if (st == TAMIZ_OK)
            flush_wait(s);
    }
    mutex_unlock(&s->mutex);
    if (m)
        mem_ref_unref(s, m);
    return st;
}

tamiz_status db_flush_all(struct op *op, struct store *s)
{
    struct buf list = buf_init(&s->alloc);
    tamiz_status st;
    TRY(keyspaces_list(op, s, &list));
    struct tamiz *const *all = (struct tamiz *const *)(const void *)list.data;
    for (size_t i = 0; i < list.size / sizeof(struct tamiz *); i++) {
        st = db_flush(op, all[i]);
        if (st == TAMIZ_CLOSED && atomic_load_explicit(&all[i]->dropped, memory_order_relaxed)) {
            op_forgive(op); /* meanwhile */
            st = TAMIZ_OK;
        }
        TRY(st);
    }
done:
    buf_free(&list);
    return st;
}

/* Runs a job in the calling thread. mutex held; given up during the work. */
static tamiz_status run_job(struct op *op, struct tamiz *db, struct version *base, struct job *j)
{
    struct store *s = db->store;
    if (db->dropped) {
        job_free(j);
        return op_fail(op, TAMIZ_CLOSED, "%s: keyspace %s was dropped", s->directory, db->name);
    }
    if (!merging_begin(db, &base, j)) {
        job_free(j);
        return op_fail_memory(op);
    }
    mutex_unlock(&s->mutex);
    const tamiz_status st = merge_job_run(op, db, j);
    mutex_lock(&s->mutex);
    if (st == TAMIZ_OK)
        merging_judge(db, op,
                      st); /* also after damage: automatic merges find out what is left of it */
    merging_end(db, base, j);
    return st;
}

/* What a caller asks to be merged: a range, or one table. */
struct asked {
    struct tamiz *db;
    bool table;
    struct slice from, to;
    bool to_unbounded;
    unsigned level;
    size_t index;
};

/* mutex held. */
static tamiz_status pick_asked(struct op *op, const struct asked *a, const struct version *base,
                               struct job *j)
{
    const struct pick_options o = pick_options_of(a->db);
    const struct pick_busy busy = pick_busy_of(a->db);
    return a->table ? pick_table(op, base, &o, &busy, a->level, a->index, j)
                    : pick_range(op, base, &o, &busy, a->from, a->to, a->to_unbounded, j);
}

static tamiz_status compact(struct op *op, const struct asked *a)
{
    struct tamiz *db = a->db;
    struct store *s = db->store;
    struct job j;
    mutex_lock(&s->mutex);
    merging_pause(db);
    struct version *base = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    job_init(&j, &s->alloc);
    tamiz_status st = pick_asked(op, a, base, &j);
    if (st == TAMIZ_OK)
        st = run_job(op, db, base, &j);
    else
        job_free(&j);
    merging_resume(db);
    mutex_unlock(&s->mutex);
    store_collect(s);
    return st;
}

/* ---- the calls ---- */

/* Runs `work` with a slot's counters. */
static tamiz_status run_asked(tamiz *db, tamiz_status (*work)(struct op *op, const struct asked *a),
                              struct asked a)
{
    const tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    if (db->store->options.read_only)
        return op_refuse(TAMIZ_READ_ONLY, "%s: opened read-only", db->store->directory);
    struct op op;
    struct epoch_slot *slot = epoch_enter_at(&db->store->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(&op, &db->store->alloc, &slot->count);
    a.db = db;
    const tamiz_status done = op_publish(&op, work(&op, &a));
    epoch_leave(slot);
    return done;
}

static tamiz_status ask_flush(struct op *op, const struct asked *a)
{
    return db_flush(op, a->db);
}

/* What is in memory first. Nothing to be merged is as good as merged. */
static tamiz_status ask_compact_range(struct op *op, const struct asked *a)
{
    tamiz_status st = db_flush(op, a->db);
    if (st == TAMIZ_OK)
        st = compact(op, a);
    return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : st;
}

tamiz_status tamiz_flush(tamiz *db)
{
    return run_asked(db, ask_flush, (struct asked){0});
}

tamiz_status tamiz_compact(tamiz *db, const void *from, size_t from_size, const void *to,
                           size_t to_size)
{
    if ((from && from_size > KEY_SIZE_MAX) || (to && to_size > KEY_SIZE_MAX))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compact: bounds of %zu and %zu bytes: want 0..%u",
                         from ? from_size : 0, to ? to_size : 0, KEY_SIZE_MAX);
    const struct slice lower = slice_of(from, from ? from_size : 0),
                       upper = slice_of(to, to ? to_size : 0);
    if (to && slice_compare(lower, upper) >= 0)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compact: the range is empty or backward");
    return run_asked(db, ask_compact_range,
                     (struct asked){.from = lower, .to = upper, .to_unbounded = to == NULL});
}

tamiz_status tamiz_compact_table(tamiz *db, unsigned level, size_t index)
{
    if (level >= TAMIZ_LEVELS)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "level %u: want 0..%d", level, TAMIZ_LEVELS - 1);
    return run_asked(db, compact, (struct asked){.table = true, .level = level, .index = index});
}
