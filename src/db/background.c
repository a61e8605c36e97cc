/* SPDX-License-Identifier: MIT */
#include "db/background.h"

#include <assert.h>
#include <stdio.h>

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

struct pick_options pick_options_of(const struct store *s)
{
    const tamiz_options *o = &s->options;
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
    const struct store *s = ctx;
    for (size_t i = 0; i < s->busy.size; i += sizeof number)
        if (memcmp(s->busy.data + i, &number, sizeof number) == 0)
            return true;
    return false;
}

struct pick_busy pick_busy_of(const struct store *s)
{
    return (struct pick_busy){is_busy, s, s->running, s->merging};
}

static bool busy_add(struct store *s, const struct job *j)
{
    const size_t before = s->busy.size;
    for (size_t i = 0; i < job_count(j); i++)
        buf_append(&s->busy, &job_input(j, i)->number, sizeof(uint64_t));
    if (!s->busy.failed)
        return true;
    s->busy.size = before;
    s->busy.failed = false;
    return false;
}

static void busy_remove(struct store *s, const struct job *j)
{
    for (size_t i = 0; i < job_count(j); i++) {
        const uint64_t number = job_input(j, i)->number;
        for (size_t at = 0; at < s->busy.size; at += sizeof number)
            if (memcmp(s->busy.data + at, &number, sizeof number) == 0) {
                s->busy.size -= sizeof number;
                memmove(s->busy.data + at, s->busy.data + at + sizeof number, s->busy.size - at);
                break;
            }
    }
}

/* ---- flush ---- */

/* The oldest sealed memtable with a reference, and which logs the rest needs; NULL: none. mutex
 * held. */
static struct mem_ref *oldest_sealed(struct tamiz *db, uint64_t *keep_from)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    if (v->memtable_count < 2)
        return NULL;
    struct mem_ref *m = v->memtables[v->memtable_count - 1];
    *keep_from = v->memtables[v->memtable_count - 2]->first_log;
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

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

static bool flush_wanted(const struct store *s)
{
    const struct view *v = atomic_load_explicit(&s->keyspace->view, memory_order_relaxed);
    return !s->flushing && v->memtable_count > 1 &&
           (s->retry_flush_ns == 0 || env_monotonic_ns(s->env) >= s->retry_flush_ns ||
            s->options.threads == 0);
}

/* mutex held; given up during the work. */
static bool flush_one(struct store *s, struct op *op)
{
    uint64_t keep_from;
    struct mem_ref *m = flush_wanted(s) ? oldest_sealed(s->keyspace, &keep_from) : NULL;
    if (!m)
        return false;
    s->flushing = true;
    mutex_unlock(&s->mutex);
    env_point(s->env, "flush.pick");
    const uint64_t bytes = memtable_bytes(m->memtable), from = env_monotonic_ns(s->env);
    const tamiz_status st = flush_memtable(op, s->keyspace, m, keep_from);
    const uint64_t took = env_monotonic_ns(s->env) - from;
    mem_ref_unref(s, m);
    mutex_lock(&s->mutex);
    s->flushing = false;
    if (st == TAMIZ_OK)
        s->pace.flush_rate = pace_learn(s->pace.flush_rate, bytes, took);
    if (st == TAMIZ_OK) {
        s->flush_error.status = TAMIZ_OK;
        s->flush_failures = 0;
        s->retry_flush_ns = 0;
    } else {
        s->flush_failures++;
        s->retry_flush_ns = retry_at(s, s->flush_failures);
        if (st != TAMIZ_CLOSED)
            stand(s, &s->flush_error, op, st, "flush");
    }
    return st == TAMIZ_OK;
}

/* ---- merge ---- */

static uint32_t merges_at_once(const struct store *s)
{
    return s->options.threads > 1 ? s->options.threads - 1
                                  : 1; /* one thread stays free for flushes */
}

static bool merge_wanted(const struct store *s)
{
    return s->paused == 0 && s->merging < merges_at_once(s) &&
           s->options.compaction != TAMIZ_COMPACTION_OFF &&
           s->merge_error.status != TAMIZ_CORRUPTION && !s->options.read_only &&
           (s->retry_merge_ns == 0 || env_monotonic_ns(s->env) >= s->retry_merge_ns);
}

void merging_judge(struct store *s, const struct op *op, tamiz_status st)
{
    if (st == TAMIZ_OK) {
        s->merge_error.status = TAMIZ_OK;
        s->merge_failures = 0;
        s->retry_merge_ns = 0;
    } else if (st != TAMIZ_CLOSED) {
        s->merge_failures++;
        s->retry_merge_ns = retry_at(s, s->merge_failures);
        stand(s, &s->merge_error, op, st, "compaction");
    }
}

/* A picked job, its tables busy, over a version that is held. mutex held. */
bool merging_begin(struct store *s, struct version **base, struct job *j)
{
    if (s->merging == STORE_JOBS_MAX || !busy_add(s, j))
        return false;
    version_ref(*base);
    s->running[s->merging++] = j;
    return true;
}

/* mutex held. */
void merging_end(struct store *s, struct version *base, struct job *j)
{
    for (uint32_t i = 0; i < s->merging; i++)
        if (s->running[i] == j)
            s->running[i] = s->running[s->merging - 1];
    s->merging--;
    busy_remove(s, j);
    job_free(j);
    condition_broadcast(&s->progress);
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

/* mutex held; given up during the work. */
static bool merge_one(struct store *s, struct op *op)
{
    if (!merge_wanted(s))
        return false;
    struct tamiz *db = s->keyspace;
    struct version *base = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    const struct pick_options o = pick_options_of(s);
    const struct pick_busy busy = pick_busy_of(s);
    struct job j;
    job_init(&j, &s->alloc);
    tamiz_status st = pick_auto(op, base, &o, &busy, s->cursors, &j);
    if (st != TAMIZ_OK || !merging_begin(s, &base, &j)) {
        job_free(&j);
        return false;
    }
    mutex_unlock(&s->mutex);
    env_point(s->env, "compact.pick");
    const uint64_t bytes = bytes_leaving(&j), from = env_monotonic_ns(s->env);
    st = db_merge(op, db, base, &j);
    const uint64_t took = env_monotonic_ns(s->env) - from;
    mutex_lock(&s->mutex);
    merging_judge(s, op, st);
    if (st == TAMIZ_OK && !j.move)
        s->pace.merge_rate = pace_learn(s->pace.merge_rate, bytes, took);
    merging_end(s, base, &j);
    return st == TAMIZ_OK;
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

bool background_step(struct store *s)
{
    struct op op;
    struct epoch_slot *slot = epoch_enter(&s->epoch);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    mutex_lock(&s->mutex);
    bool did = flush_one(s, &op);
    if (!did) {
        op_forgive(&op);
        did = merge_one(s, &op);
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

bool background_pending(struct store *s)
{
    mutex_lock(&s->mutex);
    const struct pick_options o = pick_options_of(s);
    const struct view *v = atomic_load_explicit(&s->keyspace->view, memory_order_relaxed);
    bool pending = flush_wanted(s);
    for (uint32_t level = 0; !pending && merge_wanted(s) && level < TAMIZ_LEVELS; level++)
        pending = pick_score(v->version, &o, level) >= 1;
    mutex_unlock(&s->mutex);
    return pending;
}

static void thread_run(void *ctx)
{
    struct store *s = ctx;
    while (!atomic_load_explicit(&s->closing, memory_order_relaxed)) {
        if (background_step(s))
            continue;
        mutex_lock(&s->mutex);
        if (!atomic_load_explicit(&s->closing, memory_order_relaxed))
            (void)condition_wait_us(&s->work, &s->mutex, IDLE_US);
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
            (void)tamiz_sync(
                s->keyspace); /* a failure stands in the log and meets the next writer */
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
