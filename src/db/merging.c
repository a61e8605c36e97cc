/* SPDX-License-Identifier: MIT */
#include "db/merging.h"

#include "db/idle.h"
#include "db/merge_job.h"
#include "db/snapshot.h"
#include "db/standing.h"

enum { LOOK_US = 200 * 1000 }; /* who waits looks up so often, whatever is signalled */

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

static uint32_t merges_at_once(const struct store *s)
{
    return s->options.threads > 1 ? s->options.threads - 1
                                  : 1; /* one thread stays free for flushes */
}

bool merging_unasked(const struct tamiz *db)
{
    return db->named && db->options.compaction != TAMIZ_COMPACTION_OFF &&
           !db->store->options.read_only;
}

/* Whether it may be merged at all now. */
static bool merge_allowed(const struct tamiz *db)
{
    const struct store *s = db->store;
    return merging_unasked(db) && db->paused == 0 && !db->dropped &&
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
    struct pick_options o = pick_options_of(db);
    const struct pick_busy busy = pick_busy_of(db);
    const bool quiet = is_quiet(db);
    const uint64_t paid = quiet ? 0 : idle_paid(db), most = pick_level_limit(&o, 0);
    o.idle = true;
    o.idle_most = paid < most ? paid : most;
    const tamiz_status st = pick_auto(op, v, &o, &busy, db->cursors, j);
    if (st == TAMIZ_OK && j->idle && !quiet) {
        toll_spend(&db->quiet.toll, job_bytes(j));
        j->idle = db->store->options.threads == 1; /* else it is in nobody's way */
    } else if (st == TAMIZ_NOT_FOUND) {
        o.idle_most = 0;
        if (quiet || pick_auto(op, v, &o, &busy, db->cursors, j) == TAMIZ_NOT_FOUND)
            idle_rest(db);
        else
            toll_in_vain(&db->quiet.toll);
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

struct tamiz *merging_pick(struct store *s, struct op *op, struct version **base, struct job *j)
{
    for (int idle = 0; idle < 2; idle++)
        for (size_t i = 0; i < s->keyspace_count; i++) {
            struct tamiz *db = s->keyspaces[(s->merge_turn + i) % s->keyspace_count];
            if (!merge_allowed(db) || (idle && !idle_wanted(db)) || !pick_in(db, idle, op, base, j))
                continue;
            s->merge_turn = (s->merge_turn + i + 1) % s->keyspace_count;
            return db;
        }
    return NULL;
}

bool merging_run(struct tamiz *db, struct version *base, struct job *j, struct op *op)
{
    struct store *s = db->store;
    mutex_unlock(&s->mutex);
    env_point(s->env, "compact.pick");
    const uint64_t bytes = bytes_leaving(j), from = env_monotonic_ns(s->env);
    const tamiz_status st = merge_job_run(op, db, j);
    const uint64_t took = env_monotonic_ns(s->env) - from;
    mutex_lock(&s->mutex);
    merging_judge(db, op, st);
    if (st == TAMIZ_OK && !j->move && !j->idle)
        db->pace.merge_rate = pace_learn(db->pace.merge_rate, bytes, took);
    const bool gave_up = j->idle && st == TAMIZ_CLOSED; /* for something else */
    merging_end(db, base, j);
    return st == TAMIZ_OK || gave_up;
}

bool merging_wanted(struct tamiz *db)
{
    const struct pick_options o = pick_options_of(db);
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    const struct pick_busy busy = pick_busy_of(db);
    if (!merge_allowed(db))
        return false;
    bool wanted = pick_dead(v->version, &o, &busy);
    for (uint32_t level = 0; !wanted && level < TAMIZ_LEVELS; level++)
        wanted = pick_score(v->version, &o, level) >= 1;
    return wanted || idle_wanted(db);
}

/* Any level with something to do has a job unless another job has its tables, or the places are
 * taken, and then one runs. */
bool merging_comes(const struct tamiz *db)
{
    const struct pick_options o = pick_options_of(db);
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    bool comes = db->store->merging > 0 || db->retry_merge_ns != 0;
    for (uint32_t level = 0; !comes && level < TAMIZ_LEVELS; level++)
        comes = pick_score(v->version, &o, level) >= 1;
    return comes;
}

/* ---- standing still ---- */

void merging_pause(struct tamiz *db)
{
    struct store *s = db->store;
    db->paused++;
    while (db->merging > 0 || db->exclusive)
        store_wait(s, &s->progress, LOOK_US);
}

void merging_resume(struct tamiz *db)
{
    db->paused--;
    store_call_work(db->store);
    condition_broadcast(&db->store->progress);
}

void merging_exclude(struct tamiz *db)
{
    mutex_lock(&db->store->mutex);
    merging_pause(db);
    db->exclusive = true;
    mutex_unlock(&db->store->mutex);
}

void merging_include(struct tamiz *db)
{
    mutex_lock(&db->store->mutex);
    db->exclusive = false;
    merging_resume(db);
    mutex_unlock(&db->store->mutex);
}
