/* SPDX-License-Identifier: MIT */
#include "db/background.h"

#include <assert.h>
#include <stdio.h>

#include "db/idle.h"
#include "db/snapshot.h"

enum {
    RETRY_FIRST_MS = 50, /* doubled with each failure in a row */
    RETRY_LAST_MS = 5000,
    IDLE_US =
        200 *
        1000, /* an idle thread looks up so often: for retries and files that were still read */
};

/* How tables of a level are written, as a number. Where filters differ by level, no two are equal:
 * a table that sank unchanged would take the memory that its old level was meant to have. */
static uint32_t recipe_of(const tamiz_options *o, int level)
{
    const uint32_t codec =
        o->compression[level] == TAMIZ_COMPRESSION_NONE ? 0 : (uint32_t)o->compression_level[level];
    const uint32_t filter =
        o->filter_memory == TAMIZ_FILTER_MONKEY ? (uint32_t)(level + 1) << 8 : 0;
    return codec | filter;
}

struct pick_options pick_options_of(const struct tamiz *db)
{
    const struct store *s = db->store;
    const tamiz_options *o = &db->options;
    struct pick_options p = {.policy = o->compaction,
                             .size_ratio = o->size_ratio,
                             .level0_runs = o->level0_runs,
                             .memtable_bytes = o->memtable,
                             .table_bytes = o->table,
                             .oldest_snapshot =
                                 s->oldest_snapshot ? s->oldest_snapshot->seq : UINT64_MAX};
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        p.recipe[i] = recipe_of(o, i);
    return p;
}

static bool is_busy(const void *ctx, uint64_t number)
{
    const struct tamiz *db = ctx;
    for (size_t i = 0; i < db->busy.size; i += sizeof number)
        if (memcmp(db->busy.data + i, &number, sizeof number) == 0)
            return true;
    return false;
}

struct pick_busy pick_busy_of(const struct tamiz *db)
{
    return (struct pick_busy){is_busy, db, db->running, db->merging};
}

static bool busy_add(struct tamiz *db, const struct job *j)
{
    const size_t before = db->busy.size;
    for (size_t i = 0; i < job_count(j); i++)
        buf_append(&db->busy, &job_input(j, i)->number, sizeof(uint64_t));
    if (!db->busy.failed)
        return true;
    db->busy.size = before;
    db->busy.failed = false;
    return false;
}

static void busy_remove(struct tamiz *db, const struct job *j)
{
    for (size_t i = 0; i < job_count(j); i++) {
        const uint64_t number = job_input(j, i)->number;
        for (size_t at = 0; at < db->busy.size; at += sizeof number)
            if (memcmp(db->busy.data + at, &number, sizeof number) == 0) {
                db->busy.size -= sizeof number;
                memmove(db->busy.data + at, db->busy.data + at + sizeof number, db->busy.size - at);
                break;
            }
    }
}

/* ---- flush ---- */

static void stand(struct store *s, struct standing_error *e, const struct op *op, tamiz_status st,
                  const char *what)
{
    e->status = st;
    (void)snprintf(e->text, sizeof e->text, "%s", op->text);
    store_event(s, TAMIZ_EVENT_BACKGROUND_ERROR, "%s: %s: %s", what, tamiz_status_name(st),
                op->text);
}

/* Not before so long, doubling with each failure in a row. */
static uint64_t retry_at(const struct store *s, uint32_t failures)
{
    uint64_t ms = RETRY_FIRST_MS;
    for (uint32_t i = 1; i < failures && ms < RETRY_LAST_MS; i++)
        ms *= 2;
    return env_monotonic_ns(s->env) + (ms < RETRY_LAST_MS ? ms : RETRY_LAST_MS) * 1000000;
}

static bool flush_wanted(const struct tamiz *db)
{
    const struct store *s = db->store;
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    return !db->flushing && !db->dropped && v->memtable_count > 1 &&
           (db->retry_flush_ns == 0 || env_monotonic_ns(s->env) >= db->retry_flush_ns ||
            s->options.threads == 0);
}

/* The sealed memtables that go together, each with a reference. */
struct flush_job {
    struct sealed one;   /* needs no memory of its own … */
    struct sealed *many; /* … or owned, room of them; NULL: one */
    struct sealed *list; /* whichever it is */
    size_t count, room;
    uint64_t bytes;
};

/* The `most` oldest of one keyspace. */
static void take_sealed(struct flush_job *j, struct tamiz *db, uint32_t most)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    for (uint32_t i = v->memtable_count; i-- > 1 && most > 0; most--) {
        struct mem_ref *m = v->memtables[i];
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
        j->list[j->count++] = (struct sealed){db, m};
        j->bytes += memtable_bytes(m->memtable);
        db->flushing = true;
    }
}

/* One memtable of the first keyspace, from the turn on, that has one. */
static void pick_one(struct store *s, struct flush_job *j)
{
    for (size_t i = 0; i < s->keyspace_count && j->count == 0; i++) {
        struct tamiz *db = s->keyspaces[(s->flush_turn + i) % s->keyspace_count];
        if (!flush_wanted(db))
            continue;
        take_sealed(j, db, 1);
        s->flush_turn = (s->flush_turn + i + 1) % s->keyspace_count;
    }
}

/* A log lost a sync: what it had may be nowhere but in memory, and of a batch one keyspace's part
 * must not be on the disk without the others'. So all of it goes at once, when all is sealed. */
static void pick_all(struct store *s, struct flush_job *j)
{
    bool ready = !s->moving_on;
    for (size_t i = 0; i < s->keyspace_count; i++) {
        const struct tamiz *db = s->keyspaces[i];
        const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
        ready &= v->memtable_count == 1 || flush_wanted(db);
    }
    for (size_t i = 0; ready && i < s->keyspace_count; i++)
        take_sealed(j, s->keyspaces[i], VIEW_ROOM);
}

/* What its status means for the flushes of a keyspace to come. mutex held. */
static void flush_judge(struct tamiz *db, const struct op *op, tamiz_status st)
{
    struct store *s = db->store;
    db->flushing = false;
    if (st == TAMIZ_OK) {
        db->flush_error.status = TAMIZ_OK;
        db->flush_failures = 0;
        db->retry_flush_ns = 0;
        return;
    }
    db->flush_failures++;
    db->retry_flush_ns = retry_at(s, db->flush_failures);
    if (st != TAMIZ_CLOSED)
        stand(s, &db->flush_error, op, st, "flush");
}

static void flush_job_free(struct store *s, struct flush_job *j)
{
    if (j->many)
        mem_free(&s->alloc, j->many, j->room * sizeof *j->many);
    j->many = NULL;
}

/* Where all must go together and there is no memory to say what all is: that is a flush that
 * failed, or whoever waits for it would wait for ever. */
static void fail_all(struct store *s, struct op *op)
{
    const tamiz_status st = op_fail_memory(op);
    for (size_t i = 0; i < s->keyspace_count; i++)
        if (flush_wanted(s->keyspaces[i]))
            flush_judge(s->keyspaces[i], op, st);
}

/* false: there is nothing to flush now, or no memory. mutex held. */
static bool pick_flush(struct store *s, struct flush_job *j, struct op *op)
{
    bool wanted = false;
    *j = (struct flush_job){.room = s->keyspace_count * VIEW_ROOM};
    for (size_t i = 0; i < s->keyspace_count && !wanted; i++)
        wanted = flush_wanted(s->keyspaces[i]);
    if (!wanted)
        return false;
    j->list = &j->one;
    if (!s->log_lost || s->keyspace_count == 1) {
        pick_one(s, j);
        return j->count > 0;
    }
    j->list = j->many = mem_new_array(&s->alloc, j->room, sizeof *j->many);
    if (j->many)
        pick_all(s, j);
    else
        fail_all(s, op);
    if (j->count == 0)
        flush_job_free(s, j);
    return j->count > 0;
}

/* mutex held; given up during the work. */
static bool flush_run(struct store *s, struct flush_job *j, struct op *op)
{
    mutex_unlock(&s->mutex);
    env_point(s->env, "flush.pick");
    const uint64_t from = env_monotonic_ns(s->env);
    const tamiz_status st = flush_memtables(op, s, j->list, j->count, 0);
    const uint64_t took = env_monotonic_ns(s->env) - from;
    for (size_t i = 0; i < j->count; i++)
        mem_ref_unref(s, j->list[i].memtable);
    mutex_lock(&s->mutex);
    for (size_t i = 0; i < j->count; i++) {
        struct tamiz *db = j->list[i].db;
        if (i > 0 && j->list[i - 1].db == db)
            continue;
        flush_judge(db, op, st);
        if (st == TAMIZ_OK)
            db->pace.flush_rate = pace_learn(db->pace.flush_rate, j->bytes, took);
    }
    flush_job_free(s, j);
    idle_yield(s);
    return st == TAMIZ_OK;
}

/* ---- merge ---- */

static uint32_t merges_at_once(const struct store *s)
{
    return s->options.threads > 1 ? s->options.threads - 1
                                  : 1; /* one thread stays free for flushes */
}

/* Whether the background ever merges it unasked, as the keyspace was opened. mutex held. */
static bool merges_unasked(const struct tamiz *db)
{
    return db->named && db->options.compaction != TAMIZ_COMPACTION_OFF &&
           !db->store->options.read_only;
}

static bool merge_wanted(const struct tamiz *db)
{
    const struct store *s = db->store;
    return merges_unasked(db) && db->paused == 0 && !db->dropped &&
           s->merging < merges_at_once(s) && db->merge_error.status != TAMIZ_CORRUPTION &&
           (db->retry_merge_ns == 0 || env_monotonic_ns(s->env) >= db->retry_merge_ns);
}

void merging_judge(struct tamiz *db, const struct op *op, tamiz_status st)
{
    if (st == TAMIZ_OK) {
        db->merge_error.status = TAMIZ_OK;
        db->merge_failures = 0;
        db->retry_merge_ns = 0;
    } else if (st != TAMIZ_CLOSED) {
        db->merge_failures++;
        db->retry_merge_ns = retry_at(db->store, db->merge_failures);
        stand(db->store, &db->merge_error, op, st, "compaction");
        db->pace.since = UINT64_MAX; /* what failed is nothing to be slowed for */
    }
}

/* A picked job, its tables busy, over a version that is held. mutex held. */
bool merging_begin(struct tamiz *db, struct version **base, struct job *j)
{
    if (db->merging == STORE_JOBS_MAX || !busy_add(db, j))
        return false;
    version_ref(*base);
    db->running[db->merging++] = j;
    db->store->merging++;
    if (j->idle) {
        db->store->idle_merging = true;
        atomic_store_explicit(&db->store->hurry, false, memory_order_relaxed);
    }
    return true;
}

/* mutex held. */
void merging_end(struct tamiz *db, struct version *base, struct job *j)
{
    struct store *s = db->store;
    for (uint32_t i = 0; i < db->merging; i++)
        if (db->running[i] == j)
            db->running[i] = db->running[db->merging - 1];
    db->merging--;
    s->merging--;
    if (j->idle)
        s->idle_merging = false;
    busy_remove(db, j);
    job_free(j);
    condition_broadcast(&s->progress);
    store_call_work(s); /* its tables, and its place among the merges, are free */
    mutex_unlock(&s->mutex);
    version_unref(base); /* may close tables: not under the mutex */
    mutex_lock(&s->mutex);
}

/* Bytes that a job takes from their level to the next: not those that they join. */
static uint64_t bytes_leaving(const struct job *j)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < job_count(j); i++)
        if (job_input(j, i)->level != j->output_level)
            sum += job_input(j, i)->file_size;
    return sum;
}

/* Nobody writes: the tree may be merged on until it is at rest. mutex held. */
static bool is_quiet(struct tamiz *db)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    return idle_is(db) && v->memtable_count == 1;
}

/* What is picked of what can wait, where nobody writes or reads have paid for so much. mutex held.
 */
static tamiz_status pick_idle(struct tamiz *db, struct op *op, const struct version *v,
                              struct job *j)
{
    struct quiet *q = &db->quiet;
    struct pick_options o = pick_options_of(db);
    const struct pick_busy busy = pick_busy_of(db);
    const bool quiet = is_quiet(db);
    const uint64_t paid = quiet ? 0 : idle_paid(db), most = pick_level_limit(&o, 0);
    o.idle = true;
    o.idle_most = paid < most ? paid : most;
    tamiz_status st = pick_auto(op, v, &o, &busy, db->cursors, j);
    if (st == TAMIZ_OK && j->idle && !quiet) {
        toll_spend(&q->toll, job_bytes(j));
        j->idle = db->store->options.threads == 1; /* with more it is in nobody's way */
    } else if (st == TAMIZ_NOT_FOUND) {
        o.idle_most = 0;
        if (quiet || pick_auto(op, v, &o, &busy, db->cursors, j) == TAMIZ_NOT_FOUND)
            idle_rest(db);
        else
            toll_in_vain(&q->toll);
    }
    return st;
}

/* false: nothing is to be merged, or no memory. mutex held. */
static bool pick_in(struct tamiz *db, bool idle, struct op *op, struct version **base,
                    struct job *j)
{
    struct store *s = db->store;
    *base = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    const struct pick_options o = pick_options_of(db);
    const struct pick_busy busy = pick_busy_of(db);
    job_init(j, &s->alloc);
    const tamiz_status st =
        idle ? pick_idle(db, op, *base, j) : pick_auto(op, *base, &o, &busy, db->cursors, j);
    if (st == TAMIZ_OK && merging_begin(db, base, j))
        return true;
    job_free(j);
    op_forgive(op);
    return false;
}

/* Whether a merge that can wait has waited long enough, and nothing else is going on. */
static bool idle_wanted(struct tamiz *db)
{
    return db->options.idle_merge > 0 && (is_quiet(db) || idle_paid(db) > 0) && !idle_at_rest(db) &&
           !db->store->idle_merging && db->merging == 0;
}

/* A merge of the first keyspace, from the turn on, that wants one; NULL: none does. mutex held. */
static struct tamiz *pick_merge(struct store *s, struct op *op, struct version **base,
                                struct job *j)
{
    for (int idle = 0; idle < 2; idle++)
        for (size_t i = 0; i < s->keyspace_count; i++) {
            struct tamiz *db = s->keyspaces[(s->merge_turn + i) % s->keyspace_count];
            if (!merge_wanted(db) || (idle && !idle_wanted(db)) || !pick_in(db, idle, op, base, j))
                continue;
            s->merge_turn = (s->merge_turn + i + 1) % s->keyspace_count;
            return db;
        }
    return NULL;
}

/* mutex held; given up during the work. */
static bool merge_run(struct tamiz *db, struct version *base, struct job *j, struct op *op)
{
    struct store *s = db->store;
    mutex_unlock(&s->mutex);
    env_point(s->env, "compact.pick");
    const uint64_t bytes = bytes_leaving(j), from = env_monotonic_ns(s->env);
    const tamiz_status st = db_merge(op, db, base, j);
    const uint64_t took = env_monotonic_ns(s->env) - from;
    mutex_lock(&s->mutex);
    merging_judge(db, op, st);
    if (st == TAMIZ_OK && !j->move && !j->idle)
        db->pace.merge_rate = pace_learn(db->pace.merge_rate, bytes, took);
    const bool gave_up = j->idle && st == TAMIZ_CLOSED; /* for something else */
    merging_end(db, base, j);
    return st == TAMIZ_OK || gave_up;
}

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
    if (pick_flush(s, &flush, &op)) {
        slot = slot_change(slot, flush.list[0].db, &op);
        did = flush_run(s, &flush, &op);
    }
    op_forgive(&op);
    struct tamiz *merging = did ? NULL : pick_merge(s, &op, &base, &merge);
    if (merging) {
        slot = slot_change(slot, merging, &op);
        did = merge_run(merging, base, &merge, &op);
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
    const struct pick_options o = pick_options_of(db);
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    const struct pick_busy busy = pick_busy_of(db);
    bool pending = flush_wanted(db) || (merge_wanted(db) && pick_dead(v->version, &o, &busy));
    for (uint32_t level = 0; !pending && merge_wanted(db) && level < TAMIZ_LEVELS; level++)
        pending = pick_score(v->version, &o, level) >= 1;
    return pending || (merge_wanted(db) && idle_wanted(db));
}

bool background_settled(struct tamiz *db)
{
    mutex_lock(&db->store->mutex);
    const bool settled = !db->flushing && db->merging == 0 && !work_pending(db) &&
                         (!merges_unasked(db) || idle_at_rest(db));
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

/* Any level with something to do has a job unless another job has its tables, or the places are
 * taken, and then one runs. */
static bool merge_comes(const struct tamiz *db)
{
    const struct pick_options o = pick_options_of(db);
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    bool comes = db->store->merging > 0 || db->retry_merge_ns != 0;
    for (uint32_t level = 0; !comes && level < TAMIZ_LEVELS; level++)
        comes = pick_score(v->version, &o, level) >= 1;
    return comes;
}

bool background_frees(const struct tamiz *db, enum pace_reason why)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    assert(mutex_held(&db->store->mutex));
    return why == PACE_FLUSH ? db->flushing || v->memtable_count > 1 : merge_comes(db);
}

static void thread_run(void *ctx)
{
    struct store *s = ctx;
    uint64_t answered = 0; /* calls before the last step */
    while (!atomic_load_explicit(&s->closing, memory_order_relaxed)) {
        if (background_step(s))
            continue;
        mutex_lock(&s->mutex);
        if (!atomic_load_explicit(&s->closing, memory_order_relaxed) && s->work_calls == answered)
            (void)condition_wait_us(&s->work, &s->mutex, IDLE_US);
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
