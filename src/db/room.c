/* SPDX-License-Identifier: MIT */
#include "db/room.h"

#include <assert.h>

#include "db/background.h"

enum {
    WAIT_US = 100 * 1000,        /* a waiting writer looks up so often, whatever is signalled */
    SEALED_MAX = 2,              /* memtables that wait for their flush before writers do */
    PACE_EVERY = 64 << 10,       /* bytes after which the pace is worked out anew */
    PACE_SLACK_NS = 1000 * 1000, /* owed time that is worth a pause */
    PACE_PAUSE_NS = 50 * 1000 * 1000, /* the longest pause of one group */
    DEBT_START = 4, /* times what level 1 may have: bytes to be merged that slow writers down, */
    DEBT_STOP = 16, /* and that would stop them */
};

/* ---- sealing ---- */

/* Ends the active memtable: a new log, a new memtable, a new view. Called by the leader; mutex
 * held, given up in between. */
static tamiz_status seal_memtable(struct op *op, struct tamiz *db)
{
    struct store *s = db->store;
    struct mem_ref *fresh = NULL;
    struct mem_ref **list = NULL;
    struct view *next = NULL;
    uint32_t count = 0;
    uint64_t log = 0;
    tamiz_status st = TAMIZ_OK;
    mutex_unlock(&s->mutex);
    TRY(store_switch_log(op, s, &log));
    fresh = mem_ref_new(op, s, log);
    TRY(fresh ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    env_point(s->env, "wal.rotate");
done:
    mutex_lock(&s->mutex);
    if (st != TAMIZ_OK)
        return st;
    /* From here on the mutex is held: no flush can change the view between reading and replacing
     * it. */
    struct view *now = atomic_load_explicit(&db->view, memory_order_relaxed);
    count = now->memtable_count + 1;
    list = mem_new_array(&s->alloc, count, sizeof(struct mem_ref *));
    if (list) {
        list[0] = fresh;
        memcpy(list + 1, now->memtables, now->memtable_count * sizeof *list);
        next = view_new(op, s, list, count, now->version);
        mem_free(&s->alloc, list, count * sizeof *list);
    }
    mem_ref_unref(s, fresh); /* the view has its own */
    if (!next)
        return op_fail_memory(op);
    s->moving_on = false;
    view_publish(db, next);
    condition_broadcast(&s->work);
    return TAMIZ_OK;
}

/* ---- room ---- */

static uint32_t sealed_count(const struct view *v)
{
    return v->memtable_count - 1;
}

static void count_stall(struct op *op, enum pace_reason why, uint64_t us)
{
    counter *const by[PACE_REASONS] = {[PACE_FLUSH] = &op->count->stall_flush_us,
                                       [PACE_LEVEL0] = &op->count->stall_level0_us,
                                       [PACE_DEBT] = &op->count->stall_debt_us};
    counter_add(&op->count->stalls, 1);
    counter_add(&op->count->stall_us, us);
    if (by[why])
        counter_add(by[why], us);
}

static const char *const stall_words[PACE_REASONS] = {
    [PACE_FREE] = "",
    [PACE_FLUSH] = "memtables are not flushed yet",
    [PACE_LEVEL0] = "level 0 has too many runs",
    [PACE_DEBT] = "too much waits to be merged",
};

static tamiz_status refuse_waiting(struct op *op, const struct store *s, enum pace_reason why)
{
    return op_fail(op, TAMIZ_BUSY, "%s: a write would have to wait: %s", s->directory,
                   stall_words[why]);
}

/* Waits for the background, or does its work; counts the stall. mutex held. TAMIZ_BUSY with
 * no_wait. */
static tamiz_status wait_for_background(struct op *op, struct store *s, const struct writer *w,
                                        enum pace_reason why)
{
    if (w->no_wait)
        return refuse_waiting(op, s, why);
    const uint64_t from = env_monotonic_ns(s->env);
    store_event(s, TAMIZ_EVENT_STALL, "writers wait: %s", stall_words[why]);
    if (s->options.threads == 0) {
        mutex_unlock(&s->mutex);
        const bool did = background_step(s);
        mutex_lock(&s->mutex);
        if (!did) /* another caller does it, or it failed */
            store_wait(s, &s->progress, 1000);
    } else {
        condition_broadcast(&s->work);
        (void)condition_wait_us(&s->progress, &s->mutex, WAIT_US);
    }
    count_stall(op, why, (env_monotonic_ns(s->env) - from) / 1000);
    return TAMIZ_OK;
}

static tamiz_status refuse_writing(struct op *op, const struct store *s)
{
    if (atomic_load_explicit(&s->closing, memory_order_relaxed))
        return op_fail(op, TAMIZ_CLOSED, "%s: the store is being closed", s->directory);
    if (s->options.read_only)
        return op_fail(op, TAMIZ_READ_ONLY, "%s: opened read-only", s->directory);
    if (s->write_error)
        return op_fail(
            op, TAMIZ_READ_ONLY,
            "%s: a write reached the log but not memory; reading goes on, writing after reopening",
            s->directory);
    return TAMIZ_OK;
}

/* Whether merges go on: nobody waits for one that will not come. */
static bool merges_come(const struct store *s)
{
    return s->options.compaction != TAMIZ_COMPACTION_OFF && s->paused == 0 &&
           (s->merge_error.status == TAMIZ_OK || s->merging > 0);
}

static bool level0_full(const struct store *s, const struct view *v)
{
    return v->version->level_runs[0] >= s->options.level0_stop && merges_come(s);
}

/* ---- pace ---- */

/* mutex held. */
static void work_out_pace(struct store *s, const struct view *v)
{
    const struct pick_options o = pick_options_of(s);
    struct pace_state p = {.memtable_bytes = s->options.memtable,
                           .sealed_most = SEALED_MAX,
                           .flush_rate = s->pace.flush_rate,
                           .merge_rate = s->pace.merge_rate};
    for (uint32_t i = 0; i < v->memtable_count; i++)
        p.unflushed += memtable_bytes(v->memtables[i]->memtable);
    if (merges_come(s)) {
        p.runs = v->version->level_runs[0];
        p.runs_start = s->options.level0_runs;
        p.runs_stop = s->options.level0_stop;
        p.debt = pick_debt(v->version, &o);
        p.debt_start = pick_level_limit(&o, 1) * DEBT_START;
        p.debt_stop = pick_level_limit(&o, 1) * DEBT_STOP;
    }
    const bool was = s->pace.ns_per_byte > 0;
    s->pace.ns_per_byte = pace_ns_per_byte(&p, &s->pace.reason);
    s->pace.since = 0;
    if (s->pace.ns_per_byte > 0 && !was)
        store_event(s, TAMIZ_EVENT_STALL, "writers are slowed to %.0f MB/s: %s",
                    1e3 / s->pace.ns_per_byte, stall_words[s->pace.reason]);
}

/* Pauses until what was written so far is paid for, or the background got on. mutex held, given up
 * in between. */
static void pause_writer(struct op *op, struct writer *w, uint64_t from)
{
    struct store *s = w->db->store;
    const enum pace_reason why = s->pace.reason;
    const uint64_t owed = s->pace.next_ns - from;
    const uint64_t until = from + (owed < PACE_PAUSE_NS ? owed : PACE_PAUSE_NS);
    uint64_t now = from;
    while (now < until && s->pace.ns_per_byte > 0 &&
           !atomic_load_explicit(&s->closing, memory_order_relaxed)) {
        (void)condition_wait_us(&s->progress, &s->mutex, (until - now) / 1000 + 1);
        now = env_monotonic_ns(s->env);
        if (s->pace.since >= PACE_EVERY)
            work_out_pace(s, atomic_load_explicit(&w->db->view, memory_order_relaxed));
    }
    count_stall(op, why, (now - from) / 1000);
    if (s->pace.next_ns > until || s->pace.ns_per_byte <= 0)
        s->pace.next_ns = now; /* the rest is forgiven */
}

/* Holds writers to what the background can take. Leader only; mutex held. */
static tamiz_status keep_pace(struct op *op, struct writer *w)
{
    struct store *s = w->db->store;
    if (s->options.threads == 0)
        return TAMIZ_OK; /* the work is done in this very thread */
    if (s->pace.since >= PACE_EVERY)
        work_out_pace(s, atomic_load_explicit(&w->db->view, memory_order_relaxed));
    if (s->pace.ns_per_byte <= 0)
        return TAMIZ_OK;
    const uint64_t now = env_monotonic_ns(s->env);
    if (s->pace.next_ns < now)
        s->pace.next_ns = now;
    if (s->pace.next_ns - now < PACE_SLACK_NS)
        return TAMIZ_OK;
    if (w->no_wait)
        return refuse_waiting(op, s, s->pace.reason);
    pause_writer(op, w, now);
    return TAMIZ_OK;
}

/* The group's bytes onto the bill. mutex held. */
void room_charge(struct store *s, uint64_t bytes)
{
    s->pace.next_ns += (uint64_t)((double)bytes * s->pace.ns_per_byte);
    if (s->pace.since < PACE_EVERY)
        s->pace.since += bytes;
}

/* Too many sealed memtables, or one whose log lost a sync: acknowledged writes are then nowhere but
 * in memory, and no sync can say that all is durable. mutex held. */
static bool waits_for_flush(struct store *s, const struct view *v, bool sealing)
{
    if (s->log_lost && !s->moving_on && sealed_count(v) == 0)
        s->log_lost = false; /* it was flushed, and the log is gone */
    return (s->log_lost && !s->moving_on) || (sealing && sealed_count(v) >= SEALED_MAX);
}

/* mutex held. The flush's error is the writer's: it does not wait for what fails. */
static tamiz_status wait_for_flush(struct op *op, struct store *s, const struct writer *w)
{
    if (s->flush_error.status != TAMIZ_OK && s->flush_failures > 0 && s->options.threads != 0)
        return op_fail(op, s->flush_error.status, "%s", s->flush_error.text);
    const tamiz_status st = wait_for_background(op, s, w, PACE_FLUSH);
    if (st == TAMIZ_OK && s->options.threads == 0 && s->flush_error.status != TAMIZ_OK)
        return op_fail(op, s->flush_error.status, "%s", s->flush_error.text);
    return st;
}

/* Until the active memtable has room for `w`. Leader only; mutex held. */
tamiz_status room_make(struct op *op, struct writer *w)
{
    struct store *s = w->db->store;
    bool seal = w->seal;
    const bool writes = w->single || w->batch;
    const tamiz_status paced = writes ? keep_pace(op, w) : TAMIZ_OK;
    if (paced != TAMIZ_OK)
        return paced;
    for (;;) {
        const tamiz_status st = refuse_writing(op, s);
        if (st != TAMIZ_OK)
            return st;
        const struct view *v = atomic_load_explicit(&w->db->view, memory_order_relaxed);
        const struct memtable *active = v->memtables[0]->memtable;
        const bool full = memtable_bytes(active) >= s->options.memtable || s->moving_on;
        const bool sealing = full || (seal && memtable_count(active) > 0);
        if (waits_for_flush(s, v, sealing)) {
            const tamiz_status waited = wait_for_flush(op, s, w);
            if (waited != TAMIZ_OK)
                return waited;
        } else if (!sealing) {
            return TAMIZ_OK;
        } else if (level0_full(s, v)) {
            const tamiz_status waited = wait_for_background(op, s, w, PACE_LEVEL0);
            if (waited != TAMIZ_OK)
                return waited;
        } else {
            const tamiz_status sealed = seal_memtable(op, w->db);
            if (sealed != TAMIZ_OK)
                return sealed;
            seal = false;
        }
    }
}
