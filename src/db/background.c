/* SPDX-License-Identifier: MIT */
#include "db/background.h"

#include <assert.h>
#include <stdio.h>

#include "compact/compact.h"
#include "compact/monkey.h"
#include "db/install.h"
#include "db/snapshot.h"
#include "db/write.h"
#include "table/merge.h"

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

static struct pick_busy busy_of(const struct store *s)
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

static bool cancelled(void *ctx)
{
    struct store *s = ctx;
    return atomic_load_explicit(&s->closing, memory_order_relaxed);
}

static struct compact_output output_of(struct store *s, uint32_t level, uint64_t run,
                                       enum io_purpose purpose)
{
    const tamiz_options *o = &s->options;
    struct compact_output out = {.env = s->env,
                                 .alloc = &s->alloc,
                                 .directory = s->directory,
                                 .table_bytes = o->table,
                                 .level = level,
                                 .run = run,
                                 .next_file = store_next_file,
                                 .next_file_ctx = s};
    out.build = (struct table_build_options){
        .block_bytes = (size_t)o->block,
        .filter = o->filter,
        .codec = o->compression[level] == TAMIZ_COMPRESSION_NONE ? CODEC_NONE : CODEC_ZSTD,
        .compression_level = o->compression_level[level],
        .purpose = purpose,
        .log = o->log};
    return out;
}

/* The filters of what job `j` writes; NULL: of a flush of `keys`. */
static tamiz_status choose_filter(struct op *op, struct tamiz *db, const struct job *j,
                                  uint64_t keys, tamiz_filter_policy *filter)
{
    struct store *s = db->store;
    *filter = s->options.filter;
    if (s->options.filter_memory != TAMIZ_FILTER_MONKEY)
        return TAMIZ_OK;
    mutex_lock(&s->mutex);
    struct version *v = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    version_ref(v);
    mutex_unlock(&s->mutex);
    const tamiz_status st = monkey_policy(op, v, j, keys, &s->options.filter, filter);
    version_unref(v);
    return st;
}

static uint64_t next_run(struct store *s)
{
    mutex_lock(&s->install_mutex);
    const uint64_t run = s->state.next_run++;
    mutex_unlock(&s->install_mutex);
    return run;
}

static uint64_t tables_bytes(const struct buf *tables)
{
    struct table_meta *const *list = (struct table_meta *const *)(const void *)tables->data;
    uint64_t sum = 0;
    for (size_t i = 0; i < tables->size / sizeof *list; i++)
        sum += list[i]->file_size;
    return sum;
}

/* Installs `tables` in the place of `removed`, or discards them. */
static tamiz_status install_tables(struct op *op, struct tamiz *db, struct buf *tables,
                                   const struct buf *removed, struct mem_ref *flushed,
                                   uint64_t log_number)
{
    struct store *s = db->store;
    tamiz_status st = TAMIZ_OK;
    if (tables->size)
        TRY(env_sync_directory(op, s->env, s->directory));
    const struct version_edit edit = {.removed = (const uint64_t *)(const void *)removed->data,
                                      .removed_count = removed->size / sizeof(uint64_t),
                                      .added =
                                          (struct table_meta *const *)(const void *)tables->data,
                                      .added_count = tables->size / sizeof(struct table_meta *)};
    TRY(install(op, db, &edit, flushed, log_number));
done:
    if (st != TAMIZ_OK) {
        discard_tables(op, s, tables);
    } else {
        struct table_meta **list = (struct table_meta **)(void *)tables->data;
        for (size_t i = 0; i < tables->size / sizeof *list; i++)
            table_meta_unref(&s->alloc, list[i]); /* the version has its own */
        buf_clear(tables);
    }
    return st;
}

/* ---- flush ---- */

tamiz_status flush_memtable(struct op *op, struct tamiz *db, struct mem_ref *m, uint64_t keep_from)
{
    struct store *s = db->store;
    struct buf snapshots = buf_init(&s->alloc), tables = buf_init(&s->alloc),
               none = buf_init(&s->alloc);
    struct iter *source = NULL;
    tamiz_status st = TAMIZ_OK;
    const uint64_t bytes = memtable_bytes(m->memtable);
    snapshot_list(s, &snapshots);
    TRY(snapshots.failed ? op_fail_memory(op) : TAMIZ_OK);
    source = memtable_iter(op, m->memtable);
    TRY(source ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    const struct compact_input in = {.source = source,
                                     .snapshots = (const uint64_t *)(const void *)snapshots.data,
                                     .snapshot_count = snapshots.size / sizeof(uint64_t)};
    struct compact_output out = output_of(s, 0, next_run(s), IO_DATA);
    TRY(choose_filter(op, db, NULL, memtable_count(m->memtable), &out.build.filter));
    TRY(compact_run(op, &in, &out, &tables));
    const uint64_t written = tables_bytes(&tables);
    TRY(install_tables(op, db, &tables, &none, m, keep_from));
    counter_add(&op->count->flushes, 1);
    counter_add(&op->count->flush_bytes_in, bytes);
    counter_add(&op->count->flush_bytes_out, written);
    store_event(s, TAMIZ_EVENT_FLUSH, "memtable of %llu bytes to %llu bytes in level 0",
                (unsigned long long)bytes, (unsigned long long)written);
    store_drop_logs(op, s, keep_from);
done:
    iter_close(source);
    buf_free(&snapshots);
    buf_free(&tables);
    return st;
}

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

/* Sources of a job: one iterator a table, newest run first. */
static struct iter *job_iter(struct op *op, const struct job *j)
{
    const size_t n = job_count(j);
    struct iter **sources = mem_new_array(op->alloc, n, sizeof *sources);
    struct iter *merged = NULL;
    size_t opened = 0;
    if (!sources) {
        op_fail_memory(op);
        return NULL;
    }
    for (; opened < n; opened++) {
        const struct table_read how = {.level = (int)job_input(j, opened)->level,
                                       .purpose = IO_COMPACTION};
        sources[opened] = table_iter(op, job_input(j, opened)->table, &how);
        if (!sources[opened])
            break;
    }
    if (opened == n)
        merged = merge_iter(op, sources, n);
    else
        while (opened > 0)
            iter_close(sources[--opened]);
    mem_free(op->alloc, sources, n * sizeof *sources);
    return merged;
}

/* The one input keeps its file and only changes its level. */
static tamiz_status move_table(struct op *op, struct tamiz *db, const struct job *j, uint64_t run)
{
    struct store *s = db->store;
    const struct table_meta *m = job_input(j, 0);
    const struct table_meta like = {.number = m->number,
                                    .file_id = m->file_id,
                                    .file_size = m->file_size,
                                    .level = j->output_level,
                                    .run = run,
                                    .entries = m->entries,
                                    .keys = m->keys,
                                    .tombstones = m->tombstones,
                                    .seq_min = m->seq_min,
                                    .seq_max = m->seq_max,
                                    .filter_bytes = m->filter_bytes,
                                    .smallest = m->smallest,
                                    .largest = m->largest};
    struct table_meta *moved = table_meta_new(op, &s->alloc, &like);
    if (!moved)
        return TAMIZ_OUT_OF_MEMORY;
    moved->table = table_share(m->table);
    const struct version_edit edit = {
        .removed = &moved->number, .removed_count = 1, .added = &moved, .added_count = 1};
    const tamiz_status st = install(op, db, &edit, NULL, 0);
    table_meta_unref(&s->alloc, moved);
    return st;
}

tamiz_status db_merge(struct op *op, struct tamiz *db, struct version *base, struct job *j)
{
    (void)base; /* held by the caller for as long as the inputs are used */
    struct store *s = db->store;
    struct buf snapshots = buf_init(&s->alloc), tables = buf_init(&s->alloc),
               removed = buf_init(&s->alloc);
    struct iter *source = NULL;
    uint64_t bytes_in = 0;
    tamiz_status st = TAMIZ_OK;
    const uint64_t run = j->new_run || !j->output_run ? next_run(s) : j->output_run;
    if (j->move)
        return move_table(op, db, j, run);
    for (size_t i = 0; i < job_count(j); i++) {
        buf_append(&removed, &job_input(j, i)->number, sizeof(uint64_t));
        bytes_in += job_input(j, i)->file_size;
    }
    snapshot_list(s, &snapshots);
    TRY(snapshots.failed || removed.failed ? op_fail_memory(op) : TAMIZ_OK);
    source = job_iter(op, j);
    TRY(source ? TAMIZ_OK : op->status);
    const struct compact_input in = {.source = source,
                                     .snapshots = (const uint64_t *)(const void *)snapshots.data,
                                     .snapshot_count = snapshots.size / sizeof(uint64_t),
                                     .bottom = j->bottom,
                                     .cancelled = cancelled,
                                     .cancel_ctx = s};
    struct compact_output out = output_of(s, j->output_level, run, IO_COMPACTION);
    TRY(choose_filter(op, db, j, 0, &out.build.filter));
    TRY(compact_run(op, &in, &out, &tables));
    const uint64_t bytes_out = tables_bytes(&tables);
    TRY(install_tables(op, db, &tables, &removed, NULL, 0));
    counter_add(&op->count->compactions, 1);
    counter_add(&op->count->compaction_bytes_in, bytes_in);
    counter_add(&op->count->compaction_bytes_out, bytes_out);
    store_event(s, TAMIZ_EVENT_COMPACTION, "%zu tables, %llu bytes, to %llu bytes in level %u",
                job_count(j), (unsigned long long)bytes_in, (unsigned long long)bytes_out,
                j->output_level);
done:
    iter_close(source);
    buf_free(&snapshots);
    buf_free(&tables);
    buf_free(&removed);
    return st;
}

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

static void merge_ended(struct store *s, const struct op *op, tamiz_status st)
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
static bool job_begin(struct store *s, struct version **base, struct job *j)
{
    if (s->merging == STORE_JOBS_MAX || !busy_add(s, j))
        return false;
    version_ref(*base);
    s->running[s->merging++] = j;
    return true;
}

/* mutex held. */
static void job_end(struct store *s, struct version *base, struct job *j)
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
    const struct pick_busy busy = busy_of(s);
    struct job j;
    job_init(&j, &s->alloc);
    tamiz_status st = pick_auto(op, base, &o, &busy, s->cursors, &j);
    if (st != TAMIZ_OK || !job_begin(s, &base, &j)) {
        job_free(&j);
        return false;
    }
    mutex_unlock(&s->mutex);
    const uint64_t bytes = bytes_leaving(&j), from = env_monotonic_ns(s->env);
    st = db_merge(op, db, base, &j);
    const uint64_t took = env_monotonic_ns(s->env) - from;
    mutex_lock(&s->mutex);
    merge_ended(s, op, st);
    if (st == TAMIZ_OK && !j.move)
        s->pace.merge_rate = pace_learn(s->pace.merge_rate, bytes, took);
    job_end(s, base, &j);
    return st == TAMIZ_OK;
}

/* ---- taking jobs ---- */

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

/* ---- asked for ---- */

/* Whether the memtable at `m` is still waiting to be flushed. mutex held. */
static bool still_sealed(const struct tamiz *db, const struct mem_ref *m)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    for (uint32_t i = 1; i < v->memtable_count; i++)
        if (v->memtables[i] == m)
            return true;
    return false;
}

tamiz_status db_flush(struct op *op, struct tamiz *db)
{
    struct store *s = db->store;
    struct writer w = {.db = db, .seal = true};
    tamiz_status st = db_write(op, &w);
    if (st != TAMIZ_OK)
        return st;
    mutex_lock(&s->mutex);
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    struct mem_ref *m = v->memtable_count > 1 ? v->memtables[1] : NULL;
    if (m)
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    const uint32_t failures = s->flush_failures;
    s->retry_flush_ns = 0; /* asked for: now */
    condition_broadcast(&s->work);
    while (m && st == TAMIZ_OK && still_sealed(db, m)) {
        if (s->flush_failures > failures)
            st = op_fail(op, s->flush_error.status, "%s", s->flush_error.text);
        else if (atomic_load_explicit(&s->closing, memory_order_relaxed))
            st = op_fail(op, TAMIZ_CLOSED, "%s: the store is being closed", s->directory);
        else if (s->options.threads == 0) {
            mutex_unlock(&s->mutex);
            const bool did = background_step(s);
            mutex_lock(&s->mutex);
            if (!did) /* another caller does it */
                (void)condition_wait_us(&s->progress, &s->mutex, 1000);
        } else {
            (void)condition_wait_us(&s->progress, &s->mutex, IDLE_US);
        }
    }
    mutex_unlock(&s->mutex);
    if (m)
        mem_ref_unref(s, m);
    return st;
}

/* Stops automatic merging and waits until none runs. mutex held. */
static void pause_merging(struct store *s)
{
    s->paused++;
    while (s->merging > 0 || s->exclusive)
        (void)condition_wait_us(&s->progress, &s->mutex, IDLE_US);
}

static void resume_merging(struct store *s)
{
    s->paused--;
    condition_broadcast(&s->work);
    condition_broadcast(&s->progress);
}

void merging_exclude(struct store *s)
{
    mutex_lock(&s->mutex);
    pause_merging(s);
    s->exclusive = true;
    mutex_unlock(&s->mutex);
}

void merging_include(struct store *s)
{
    mutex_lock(&s->mutex);
    s->exclusive = false;
    resume_merging(s);
    mutex_unlock(&s->mutex);
}

uint64_t background_next_run(struct store *s)
{
    return next_run(s);
}

/* Runs a job in the calling thread. mutex held; given up during the work. */
static tamiz_status run_asked(struct op *op, struct tamiz *db, struct version *base, struct job *j)
{
    struct store *s = db->store;
    if (!job_begin(s, &base, j)) {
        job_free(j);
        return op_fail_memory(op);
    }
    mutex_unlock(&s->mutex);
    const tamiz_status st = db_merge(op, db, base, j);
    mutex_lock(&s->mutex);
    if (st == TAMIZ_OK)
        merge_ended(s, op,
                    st); /* also after damage: automatic merges find out what is left of it */
    job_end(s, base, j);
    return st;
}

tamiz_status db_compact_range(struct op *op, struct tamiz *db, struct slice from, struct slice to,
                              bool to_unbounded)
{
    struct store *s = db->store;
    tamiz_status st = db_flush(op, db);
    if (st != TAMIZ_OK)
        return st;
    mutex_lock(&s->mutex);
    pause_merging(s);
    const struct pick_options o = pick_options_of(s);
    const struct pick_busy busy = busy_of(s);
    struct version *base = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    struct job j;
    job_init(&j, &s->alloc);
    st = pick_range(op, base, &o, &busy, from, to, to_unbounded, &j);
    if (st == TAMIZ_OK)
        st = run_asked(op, db, base, &j);
    else
        job_free(&j);
    resume_merging(s);
    mutex_unlock(&s->mutex);
    store_collect(s);
    return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : st;
}

tamiz_status db_compact_table(struct op *op, struct tamiz *db, uint32_t level, size_t index)
{
    struct store *s = db->store;
    mutex_lock(&s->mutex);
    pause_merging(s);
    const struct pick_options o = pick_options_of(s);
    const struct pick_busy busy = busy_of(s);
    struct version *base = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    struct job j;
    job_init(&j, &s->alloc);
    tamiz_status st = pick_table(op, base, &o, &busy, level, index, &j);
    if (st == TAMIZ_OK)
        st = run_asked(op, db, base, &j);
    else
        job_free(&j);
    resume_merging(s);
    mutex_unlock(&s->mutex);
    store_collect(s);
    return st;
}
