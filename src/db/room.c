/* SPDX-License-Identifier: MIT */
#include "db/room.h"

#include <assert.h>

#include "db/background.h"
#include "db/merging.h"
#include "db/idle.h"

enum {
    WAIT_US = 100 * 1000,        /* a waiting writer looks up so often, whatever is signalled */
    SEALED_MAX = 2,              /* memtables that wait for their flush before writers do */
    PACE_EVERY = 64 << 10,       /* bytes after which the pace is worked out anew */
    PACE_SLACK_NS = 1000 * 1000, /* owed time that is worth a pause */
    PACE_PAUSE_NS = 50 * 1000 * 1000, /* the longest pause of one group */
    DEBT_START = 4, /* times what level 1 may have: bytes to be merged that slow writers down, */
    DEBT_STOP = 16, /* and that would stop them */
    LOGS_MEMTABLES = 2, /* logs are kept up to so many times what the memtables may have … */
    LOGS_LEAST = 8,     /* … and up to so many, and as many times more as there are keyspaces */
};

/* ---- sealing ---- */

static uint32_t sealed_count(const struct tamiz *db)
{
    return atomic_load_explicit(&db->view, memory_order_relaxed)->memtable_count - 1;
}

/* A fresh memtable in front of the active one. mutex held throughout: no flush can change the view
 * between reading and replacing it. */
static tamiz_status seal_one(struct op *op, struct tamiz *db, struct mem_ref *fresh)
{
    struct store *s = db->store;
    struct mem_ref *list[VIEW_ROOM];
    const struct view *now = atomic_load_explicit(&db->view, memory_order_relaxed);
    assert(now->memtable_count < VIEW_ROOM);
    list[0] = fresh;
    memcpy(list + 1, now->memtables, now->memtable_count * sizeof *list);
    struct view *next = view_new(op, s, list, now->memtable_count + 1, now->version);
    if (!next)
        return TAMIZ_OUT_OF_MEMORY;
    view_publish(db, next);
    return TAMIZ_OK;
}

/* Ends the active memtables of list[0..n): one new log, new memtables, new views. Called by the
 * leader; mutex held, given up in between. */
static tamiz_status seal(struct op *op, struct store *s, struct tamiz *const *list, size_t n)
{
    struct mem_ref **fresh = mem_new_array(&s->alloc, n, sizeof *fresh);
    uint64_t log = 0;
    tamiz_status st = fresh ? TAMIZ_OK : op_fail_memory(op);
    mutex_unlock(&s->mutex);
    TRY(st);
    TRY(store_switch_log(op, s, &log));
    for (size_t i = 0; i < n; i++) {
        fresh[i] = mem_ref_new(op, list[i], log);
        TRY(fresh[i] ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    }
    env_point(s->env, "wal.rotate");
done:
    mutex_lock(&s->mutex);
    s->moving_on |= atomic_load_explicit(&s->stray_log, memory_order_relaxed);
    for (size_t i = 0; i < n && st == TAMIZ_OK; i++)
        st = seal_one(op, list[i], fresh[i]);
    for (size_t i = 0; fresh && i < n; i++)
        mem_ref_unref(s, fresh[i]); /* the view has its own */
    mem_free(&s->alloc, fresh, n * sizeof *fresh);
    idle_yield(s);
    store_call_work(s);
    return st;
}

/* Bytes of all logs that are kept for a memtable. No lock held. */
static void logs_kept(struct store *s, uint64_t *bytes, size_t *count, uint64_t *oldest)
{
    mutex_lock(&s->log_mutex);
    *bytes = 0;
    *count = s->log_count;
    *oldest = s->log_count ? s->logs[0].number : 0;
    for (size_t i = 0; i < s->log_count; i++)
        *bytes += s->logs[i].writer.end;
    mutex_unlock(&s->log_mutex);
}

/* A keyspace that is seldom written holds a log with its few writes, and with it all logs that came
 * after. Where they are more than what all memtables together would fill twice, or very many, the
 * memtables that need the oldest one are sealed along with `db`. */
static bool holds_too_much(struct tamiz *const *all, size_t n, uint64_t bytes, size_t count)
{
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++)
        most += all[i]->options.memtable;
    return bytes / LOGS_MEMTABLES > most || count > LOGS_LEAST + LOGS_MEMTABLES * n;
}

/* `db`'s memtable, and those that hold the oldest log for too long. Leader; mutex held, given up in
 * between. */
static tamiz_status seal_memtable(struct op *op, struct tamiz *db)
{
    struct store *s = db->store;
    uint64_t bytes, oldest;
    size_t count, n = 0;
    mutex_unlock(&s->mutex);
    logs_kept(s, &bytes, &count, &oldest);
    mutex_lock(&s->mutex);
    struct tamiz **list = mem_new_array(&s->alloc, s->keyspace_count, sizeof(struct tamiz *));
    if (!list)
        return op_fail_memory(op);
    const size_t room = s->keyspace_count;
    const bool others = room > 1 && holds_too_much(s->keyspaces, room, bytes, count);
    list[n++] = db;
    for (size_t i = 0; others && i < room; i++) {
        struct tamiz *other = s->keyspaces[i];
        if (other != db && memtable_count(other->active->memtable) > 0 &&
            other->active->first_log <= oldest && sealed_count(other) < SEALED_MAX)
            list[n++] = other;
    }
    const tamiz_status st = seal(op, s, list, n);
    mem_free(&s->alloc, list, room * sizeof(struct tamiz *));
    return st;
}

/* A log failed: every memtable that has anything, of all keyspaces. Leader; mutex held, given up in
 * between. */
static tamiz_status seal_all(struct op *op, struct store *s)
{
    const size_t room = s->keyspace_count;
    size_t n = 0;
    struct tamiz **list = mem_new_array(&s->alloc, room, sizeof(struct tamiz *));
    if (!list)
        return op_fail_memory(op);
    for (size_t i = 0; i < room; i++) {
        struct tamiz *db = s->keyspaces[i];
        if ((i == 0 || memtable_count(db->active->memtable) > 0) &&
            sealed_count(db) + 1 < VIEW_ROOM)
            list[n++] = db;
    }
    const tamiz_status st = seal(op, s, list, n);
    if (st == TAMIZ_OK)
        s->moving_on = false;
    mem_free(&s->alloc, list, room * sizeof(struct tamiz *));
    return st;
}

/* ---- room ---- */

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

/* Waits for the background, or does its work; counts the stall. mutex held. */
static void wait_for_background(struct op *op, struct tamiz *db, enum pace_reason why)
{
    struct store *s = db->store;
    const uint64_t from = env_monotonic_ns(s->env);
    assert(background_frees(db, why));
    store_event(s, TAMIZ_EVENT_STALL, "writers wait: %s", stall_words[why]);
    if (s->options.threads == 0) {
        mutex_unlock(&s->mutex);
        const bool did = background_step(s);
        mutex_lock(&s->mutex);
        if (!did) /* another caller does it, or it failed */
            store_wait(s, &s->progress, 1000);
    } else {
        store_call_work(s);
        (void)condition_wait_us(&s->progress, &s->mutex, WAIT_US);
    }
    count_stall(op, why, (env_monotonic_ns(s->env) - from) / 1000);
}

static tamiz_status refuse_writing(struct op *op, const struct writer *w)
{
    const struct store *s = w->db->store;
    if (atomic_load_explicit(&s->closing, memory_order_relaxed))
        return op_fail(op, TAMIZ_CLOSED, "%s: the store is being closed", s->directory);
    if (s->options.read_only)
        return op_fail(op, TAMIZ_READ_ONLY, "%s: opened read-only", s->directory);
    if (s->write_error)
        return op_fail(
            op, TAMIZ_READ_ONLY,
            "%s: a write reached the log but not memory; reading goes on, writing after reopening",
            s->directory);
    for (size_t i = 0; i < w->tree_count; i++)
        if (w->trees[i]->dropped)
            return op_fail(op, TAMIZ_CLOSED, "%s: keyspace %s was dropped", s->directory,
                           w->trees[i]->name);
    return TAMIZ_OK;
}

/* Whether merges go on: nobody waits for one that will not come. */
static bool merges_come(const struct tamiz *db)
{
    return db->options.compaction != TAMIZ_COMPACTION_OFF && db->paused == 0 && db->named &&
           (db->merge_error.status == TAMIZ_OK || db->merging > 0);
}

static bool level0_full(const struct tamiz *db)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    return v->version->level_runs[0] >= db->options.level0_stop && merges_come(db);
}

/* ---- pace ---- */

/* mutex held. */
static void work_out_pace(struct tamiz *db)
{
    const struct store *s = db->store;
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    const struct pick_options o = pick_options_of(db);
    struct pace_state p = {.memtable_bytes = db->options.memtable,
                           .sealed_most = SEALED_MAX,
                           .flush_rate = db->pace.flush_rate,
                           .merge_rate = db->pace.merge_rate};
    for (uint32_t i = 0; i < v->memtable_count; i++) {
        const uint64_t bytes = memtable_bytes(v->memtables[i]->memtable);
        /* No flush makes the active one smaller: what one large value has it over its size is
         * nothing to wait for until it is sealed. */
        p.unflushed += i > 0 || bytes < p.memtable_bytes ? bytes : p.memtable_bytes;
    }
    if (merges_come(db)) {
        p.runs = v->version->level_runs[0];
        p.runs_start = db->options.level0_runs;
        p.runs_stop = db->options.level0_stop;
        p.debt = pick_debt(v->version, &o);
        p.debt_start = pick_level_limit(&o, 1) * DEBT_START;
        p.debt_stop = pick_level_limit(&o, 1) * DEBT_STOP;
    }
    const bool was = db->pace.ns_per_byte > 0;
    db->pace.ns_per_byte = pace_ns_per_byte(&p, &db->pace.reason);
    db->pace.since = 0;
    if (db->pace.ns_per_byte > 0 && !was)
        store_event(s, TAMIZ_EVENT_STALL, "writers are slowed to %.0f MB/s: %s",
                    1e3 / db->pace.ns_per_byte, stall_words[db->pace.reason]);
}

/* Pauses until what was written so far is paid for, or the background got on. Others may write and
 * owe more meanwhile: that is theirs. mutex held, given up in between. */
static void pause_writer(struct op *op, struct tamiz *db)
{
    struct store *s = db->store;
    const enum pace_reason why = db->pace.reason;
    const uint64_t from = env_monotonic_ns(s->env);
    if (db->pace.next_ns > from + PACE_PAUSE_NS)
        db->pace.next_ns = from + PACE_PAUSE_NS; /* the rest is forgiven */
    const uint64_t until = db->pace.next_ns;
    uint64_t now = from;
    bool waited = false; /* to the end */
    while (now < until && !waited && db->pace.ns_per_byte > 0 &&
           !atomic_load_explicit(&s->closing, memory_order_relaxed)) {
        assert(background_frees(db, db->pace.reason));
        waited = !condition_wait_us(&s->progress, &s->mutex, (until - now) / 1000 + 1);
        now = env_monotonic_ns(s->env);
        if (db->pace.since >= PACE_EVERY)
            work_out_pace(db);
    }
    if (waited && now < until) /* a clock that does not go by itself, as a simulation's */
        db->pace.next_ns -= until - now;
    if (db->pace.ns_per_byte <= 0)
        db->pace.next_ns = now;
    count_stall(op, why, (now - from) / 1000);
}

/* Whether writers of the keyspace owe time that is worth a pause. mutex held. */
static bool owes_time(struct tamiz *db)
{
    const struct store *s = db->store;
    if (s->options.threads == 0)
        return false; /* the work is done in this very thread */
    if (db->pace.since >= PACE_EVERY)
        work_out_pace(db);
    if (db->pace.ns_per_byte <= 0)
        return false;
    const uint64_t now = env_monotonic_ns(s->env);
    if (db->pace.next_ns < now)
        db->pace.next_ns = now;
    return db->pace.next_ns - now >= PACE_SLACK_NS;
}

/* The group's bytes onto the bill. mutex held. */
void room_charge(struct tamiz *db, uint64_t bytes)
{
    db->pace.next_ns += (uint64_t)((double)bytes * db->pace.ns_per_byte);
    if (db->pace.since < PACE_EVERY)
        db->pace.since += bytes;
}

bool room_is_free(const struct tamiz *db)
{
    return !db->dropped && db->pace.ns_per_byte <= 0 &&
           memtable_bytes(db->active->memtable) < db->options.memtable;
}

/* ---- room ---- */

/* After a lost sync: a keyspace whose sealed memtables are on their way to tables; NULL: no more,
 * and the log is gone. mutex held. */
static struct tamiz *still_lost(struct store *s)
{
    for (size_t i = 0; i < s->keyspace_count; i++)
        if (sealed_count(s->keyspaces[i]) > 0)
            return s->keyspaces[i];
    s->log_lost = false;
    return NULL;
}

/* What keeps `w` from writing to `db`; seals its memtable where that is all that is missing, and
 * then *sealed. mutex held, given up in between. */
static tamiz_status room_in(struct op *op, struct writer *w, struct tamiz *db,
                            struct room_wait *wait, bool *sealed)
{
    const struct memtable *active = db->active->memtable;
    const bool full = memtable_bytes(active) >= db->options.memtable;
    if (!full && !(w->seal && !w->sealed && memtable_count(active) > 0))
        return TAMIZ_OK;
    if (sealed_count(db) >= SEALED_MAX) {
        *wait = (struct room_wait){db, PACE_FLUSH, false};
        return TAMIZ_OK;
    }
    if (level0_full(db)) {
        *wait = (struct room_wait){db, PACE_LEVEL0, false};
        return TAMIZ_OK;
    }
    *sealed = w->sealed = true;
    return seal_memtable(op, db);
}

/* One look at everything that `w` needs. *again: something was sealed meanwhile. */
static tamiz_status look(struct op *op, struct writer *w, struct room_wait *wait, bool *again)
{
    struct store *s = w->db->store;
    const bool writes = w->single || w->batch;
    tamiz_status st = TAMIZ_OK;
    *again = false;
    TRY(refuse_writing(op, w));
    if (s->moving_on) {
        *again = w->sealed = true;
        return seal_all(op, s);
    }
    if (s->log_lost)
        wait->db = still_lost(s);
    if (wait->db) {
        wait->why = PACE_FLUSH;
        return TAMIZ_OK;
    }
    for (size_t i = 0; i < w->tree_count && writes && !w->paced; i++)
        if (owes_time(w->trees[i])) {
            *wait = (struct room_wait){w->trees[i], w->trees[i]->pace.reason, true};
            return TAMIZ_OK;
        }
    for (size_t i = 0; i < w->tree_count && !wait->db && !*again; i++)
        TRY(room_in(op, w, w->trees[i], wait, again));
done:
    return st;
}

tamiz_status room_make(struct op *op, struct writer *w, struct room_wait *wait)
{
    bool again = true;
    tamiz_status st = TAMIZ_OK;
    while (st == TAMIZ_OK && again)
        st = look(op, w, wait, &again);
    if (st == TAMIZ_OK && wait->db && w->no_wait)
        return refuse_waiting(op, w->db->store, wait->why);
    return st;
}

/* The flush's error is the writer's: it does not wait for what fails. mutex held. */
static tamiz_status flush_failed(struct op *op, const struct tamiz *db)
{
    return op_fail(op, db->flush_error.status, "%s", db->flush_error.text);
}

tamiz_status room_wait(struct op *op, struct writer *w, const struct room_wait *wait)
{
    struct tamiz *db = wait->db;
    const bool threads = db->store->options.threads != 0;
    if (wait->pause) {
        w->paced = true;
        pause_writer(op, db);
        return TAMIZ_OK;
    }
    if (wait->why == PACE_FLUSH && threads && db->flush_error.status != TAMIZ_OK &&
        db->flush_error.failures > 0)
        return flush_failed(op, db);
    wait_for_background(op, db, wait->why);
    if (wait->why == PACE_FLUSH && !threads && db->flush_error.status != TAMIZ_OK)
        return flush_failed(op, db);
    return TAMIZ_OK;
}
