/* SPDX-License-Identifier: MIT */
#include "db/background.h"

#include <assert.h>

#include "db/flush.h"
#include "db/idle.h"
#include "db/merging.h"
#include "db/preload.h"

enum {
    /* An idle thread looks up so often: for retries and files that were still read. */
    IDLE_US = 200 * 1000,
    /* So long after an opening nothing is opened ahead: who wants one answer and leaves shall not
     * wait for the system to find memory for more. */
    AHEAD_US = 20 * 1000
};

/* ---- taking jobs ---- */

void store_wait(struct store *s, struct condition *c, uint64_t us)
{
    if (s->options.threads == 0 && ENV_HAS(s->env, point)) {
        mutex_unlock(&s->mutex);
        env_point(s->env, "wait");
        mutex_lock(&s->mutex);
    } else {
        (void)condition_wait_us(c, &s->mutex, us);
    }
}

void store_call_work(struct store *s)
{
    assert(mutex_held(&s->mutex));
    s->work_calls++;
    condition_broadcast(&s->work);
}

/* A slot of the keyspace that work is done for: its counters are that keyspace's. */
static struct epoch_slot *slot_for(struct tamiz *db, struct op *op)
{
    struct epoch_slot *slot = epoch_enter_at(&db->store->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(op, &db->store->alloc, &slot->count);
    return slot;
}

static struct epoch_slot *slot_change(struct epoch_slot *slot, struct tamiz *db, struct op *op)
{
    epoch_leave(slot);
    return slot_for(db, op);
}

bool background_step(struct store *s)
{
    struct op op;
    struct epoch_slot *slot = slot_for(s->first, &op);
    struct flush_job flush;
    struct version *base;
    struct job merge;
    bool did = false;
    mutex_lock(&s->mutex);
    if (flush_job_pick(s, &flush, &op)) {
        slot = slot_change(slot, flush.list[0].db, &op);
        did = flush_job_run(s, &flush, &op);
    }
    op_forgive(&op);
    struct tamiz *merging = did ? NULL : merging_pick(s, &op, &base, &merge);
    if (merging) {
        slot = slot_change(slot, merging, &op);
        did = merging_run(merging, base, &merge, &op);
    }
    condition_broadcast(&s->progress);
    mutex_unlock(&s->mutex);
    epoch_leave(slot);
    store_collect(s);
    return did;
}

void background_run(struct store *s)
{
    while (!atomic_load_explicit(&s->closing, memory_order_relaxed) && background_step(s))
        ;
}

/* mutex held. */
static bool work_pending(struct tamiz *db)
{
    return flush_wanted(db) || merging_wanted(db);
}

bool background_settled(struct tamiz *db)
{
    mutex_lock(&db->store->mutex);
    const bool settled = !db->flushing && db->merging == 0 && !work_pending(db) &&
                         (!merging_unasked(db) || idle_at_rest(db));
    mutex_unlock(&db->store->mutex);
    return settled;
}

bool background_pending(struct store *s)
{
    bool pending = false;
    mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->keyspace_count && !pending; i++)
        pending = work_pending(s->keyspaces[i]);
    mutex_unlock(&s->mutex);
    return pending;
}

bool background_frees(const struct tamiz *db, enum pace_reason why)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    assert(mutex_held(&db->store->mutex));
    return why == PACE_FLUSH ? db->flushing || v->memtable_count > 1 : merging_comes(db);
}

/* What an idle thread does rather than sleep; false: nothing. No lock held. */
static bool open_ahead(struct store *s)
{
    struct op op;
    struct tamiz *db;
    struct epoch_slot *slot = NULL;
    mutex_lock(&s->mutex);
    struct table_meta *table = preload_pick(s, &db);
    if (table)
        slot = slot_for(db, &op);
    mutex_unlock(&s->mutex);
    if (!table)
        return false;
    preload_run(&op, table);
    epoch_leave(slot);
    preload_end(db, table);
    store_collect(s); /* it may have been merged away meanwhile */
    return true;
}

static void thread_run(void *ctx)
{
    struct store *s = ctx;
    uint64_t answered = 0; /* calls before the last step */
    bool slept = false;
    while (!atomic_load_explicit(&s->closing, memory_order_relaxed)) {
        if (background_step(s) || (slept && open_ahead(s)))
            continue;
        mutex_lock(&s->mutex);
        if (!atomic_load_explicit(&s->closing, memory_order_relaxed) && s->work_calls == answered) {
            (void)condition_wait_us(&s->work, &s->mutex, slept ? IDLE_US : AHEAD_US);
            slept = true;
        }
        answered = s->work_calls;
        mutex_unlock(&s->mutex);
    }
}

/* With sync=interval: the log reaches the disk at least so often. */
static void syncer_run(void *ctx)
{
    struct store *s = ctx;
    while (!atomic_load_explicit(&s->closing, memory_order_relaxed)) {
        mutex_lock(&s->mutex);
        if (!atomic_load_explicit(&s->closing, memory_order_relaxed))
            (void)condition_wait_us(&s->work, &s->mutex,
                                    (uint64_t)s->options.sync_interval_ms * 1000);
        mutex_unlock(&s->mutex);
        const uint64_t due = atomic_load_explicit(&s->last_sync_ns, memory_order_relaxed) +
                             (uint64_t)s->options.sync_interval_ms * 1000000;
        if (env_monotonic_ns(s->env) >= due &&
            !atomic_load_explicit(&s->closing, memory_order_relaxed))
            (void)tamiz_sync(s->first); /* a failure stands in the log and meets the next writer */
    }
}

tamiz_status background_start(struct op *op, struct store *s)
{
    if (s->options.read_only)
        return TAMIZ_OK;
    if (s->options.sync == TAMIZ_SYNC_INTERVAL && s->options.threads) {
        const tamiz_status st = thread_start(op, &s->syncer, "tamiz-sync", syncer_run, s);
        if (st != TAMIZ_OK)
            return st;
        s->has_syncer = true;
    }
    if (!s->options.threads)
        return TAMIZ_OK;
    s->threads = mem_new_array(&s->alloc, s->options.threads, sizeof *s->threads);
    if (!s->threads)
        return op_fail_memory(op);
    for (; s->thread_count < s->options.threads; s->thread_count++) {
        const tamiz_status st =
            thread_start(op, &s->threads[s->thread_count], "tamiz-work", thread_run, s);
        if (st != TAMIZ_OK)
            return st;
    }
    return TAMIZ_OK;
}

void background_stop(struct store *s)
{
    mutex_lock(&s->mutex);
    atomic_store_explicit(&s->closing, true, memory_order_relaxed);
    condition_broadcast(&s->work);
    condition_broadcast(&s->progress);
    mutex_unlock(&s->mutex);
    for (uint32_t i = 0; i < s->thread_count; i++)
        thread_join(&s->threads[i]);
    if (s->has_syncer)
        thread_join(&s->syncer);
    mem_free(&s->alloc, s->threads, s->options.threads * sizeof *s->threads);
    s->threads = NULL;
    s->thread_count = 0;
    s->has_syncer = false;
}
