/* SPDX-License-Identifier: MIT
 *
 * The work of a job: versions in, tables out, and the tree changed to have them. What to work on
 * and when is background.c's.
 */
#include <assert.h>

#include "compact/compact.h"
#include "compact/monkey.h"
#include "db/background.h"
#include "db/expiry.h"
#include "db/install.h"
#include "db/logs.h"
#include "db/options.h"
#include "db/snapshot.h"
#include "db/write.h"
#include "table/merge.h"

/* What may be cancelled. */
struct at_work {
    const struct tamiz *db;
    const struct job *job;
};

/* Of a store that is being closed, or a keyspace that is being dropped; or it can wait, and
 * something else cannot. */
static bool cancelled(void *ctx)
{
    const struct at_work *m = ctx;
    const struct store *s = m->db->store;
    return atomic_load_explicit(&s->closing, memory_order_relaxed) ||
           atomic_load_explicit(&m->db->dropped, memory_order_relaxed) ||
           (m->job->idle && atomic_load_explicit(&s->hurry, memory_order_relaxed));
}

static struct compact_output output_of(struct tamiz *db, uint32_t level, uint64_t run,
                                       enum io_purpose purpose)
{
    struct store *s = db->store;
    const tamiz_options *o = &db->options;
    struct compact_output out = {.env = s->env,
                                 .alloc = &s->alloc,
                                 .directory = s->directory,
                                 .table_bytes = o->table,
                                 .level = level,
                                 .run = run,
                                 .next_file = store_next_file,
                                 .next_file_ctx = s};
    out.build = options_recipe(o, level, purpose);
    out.build.keyspace = db->id;
    out.build.keyspace_name = slice_of_text(db->id ? db->name : "");
    return out;
}

/* The filters of what job `j` writes; NULL: of a flush of `keys`. */
static tamiz_status choose_filter(struct op *op, struct tamiz *db, const struct job *j,
                                  uint64_t keys, tamiz_filter_policy *filter)
{
    struct store *s = db->store;
    *filter = db->options.filter;
    if (db->options.filter_memory != TAMIZ_FILTER_MONKEY)
        return TAMIZ_OK;
    mutex_lock(&s->mutex);
    struct version *v = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    version_ref(v);
    mutex_unlock(&s->mutex);
    const tamiz_status st = monkey_policy(op, v, j, keys, &db->options.filter, filter);
    version_unref(v);
    return st;
}

uint64_t background_next_run(struct store *s)
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

/* Range deletes in memory show what lies inside them and can go. What fails here fails again, and
 * is told, where the table is read. */
static void load_ranges(struct store *s, const struct op *op, struct table_meta *meta)
{
    struct op quiet;
    op_init(&quiet, &s->alloc, op->count);
    if (meta->ranges)
        (void)table_load(&quiet, meta->table);
}

static struct version_edit edit_of(const struct buf *removed, const struct buf *added)
{
    return (struct version_edit){.removed =
                                     removed ? (const uint64_t *)(const void *)removed->data : NULL,
                                 .removed_count = removed ? removed->size / sizeof(uint64_t) : 0,
                                 .added = (struct table_meta *const *)(const void *)added->data,
                                 .added_count = added->size / sizeof(struct table_meta *)};
}

/* They are installed: the versions have references of their own. */
static void forget_tables(const struct op *op, struct store *s, struct buf *tables)
{
    struct table_meta **list = (struct table_meta **)(void *)tables->data;
    for (size_t i = 0; i < tables->size / sizeof *list; i++) {
        load_ranges(s, op, list[i]);
        table_meta_unref(&s->alloc, list[i]);
    }
    buf_clear(tables);
}

/* ---- flushes ---- */

/* One sealed memtable as tables: appended to `tables`. */
static tamiz_status write_memtable(struct op *op, const struct sealed *sealed, struct buf *tables)
{
    struct store *s = sealed->db->store;
    struct memtable *m = sealed->memtable->memtable;
    struct buf snapshots = buf_init(&s->alloc), ranges = buf_init(&s->alloc);
    struct iter *source = NULL;
    tamiz_status st = TAMIZ_OK;
    snapshot_list(s, &snapshots);
    memtable_ranges_list(m, &ranges);
    TRY(snapshots.failed || ranges.failed ? op_fail_memory(op) : TAMIZ_OK);
    source = memtable_iter(op, m);
    TRY(source ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    const struct compact_input in = {.source = source,
                                     .ranges = (const struct range_delete *)(void *)ranges.data,
                                     .range_count = ranges.size / sizeof(struct range_delete),
                                     .now_us = store_now(s),
                                     .snapshots = (const uint64_t *)(const void *)snapshots.data,
                                     .snapshot_count = snapshots.size / sizeof(uint64_t)};
    struct compact_output out = output_of(sealed->db, 0, background_next_run(s), IO_DATA);
    TRY(choose_filter(op, sealed->db, NULL, memtable_count(m), &out.build.filter));
    env_point(s->env, "flush.build");
    TRY(compact_run(op, &in, &out, tables));
done:
    iter_close(source);
    buf_free(&snapshots);
    buf_free(&ranges);
    return st;
}

/* A flush of one or more memtables of one keyspace. */
struct flushing {
    struct buf tables;    /* struct table_meta * */
    struct buf memtables; /* struct mem_ref * */
    uint64_t bytes_in, bytes_out;
};

/* A table that holds part of a batch must not outlive the rest of it: what another keyspace has of
 * the same writes is in a memtable, and after a crash in the log, as far as that is durable. Where
 * a log lost a sync this fails, unless list[0..n) is all that there is. */
static tamiz_status secure_logs(struct op *op, struct store *s, const struct sealed *list, size_t n)
{
    mutex_lock(&s->mutex);
    bool shared = false;
    for (size_t i = 0; i < s->keyspace_count; i++) {
        const struct tamiz *db = s->keyspaces[i];
        const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
        bool flushed = false;
        for (size_t k = 0; k < n; k++)
            flushed |= list[k].db == db;
        for (uint32_t k = 0; v && !flushed && k < v->memtable_count; k++)
            shared |= memtable_count(v->memtables[k]->memtable) > 0;
    }
    mutex_unlock(&s->mutex);
    if (!shared)
        return TAMIZ_OK;
    mutex_lock(&s->log_mutex);
    const tamiz_status st = store_sync_logs(op, s);
    mutex_unlock(&s->log_mutex);
    if (st != TAMIZ_OK)
        store_log_failed(op, s);
    return st;
}

/* Writes the tables of list[0..n), one `flushing` a keyspace; *count of them. */
static tamiz_status write_all(struct op *op, const struct sealed *list, size_t n,
                              struct flushing *flushes, struct tree_change *changes, size_t *count)
{
    tamiz_status st = TAMIZ_OK;
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        struct tamiz *db = list[i].db;
        if (i == 0 || list[i - 1].db != db) {
            changes[*count].db = db;
            flushes[*count].tables = flushes[*count].memtables = buf_init(&db->store->alloc);
            ++*count;
        }
        struct flushing *f = &flushes[*count - 1];
        buf_append(&f->memtables, &list[i].memtable, sizeof(struct mem_ref *));
        TRY(f->memtables.failed ? op_fail_memory(op) : TAMIZ_OK);
        f->bytes_in += memtable_bytes(list[i].memtable->memtable);
        TRY(write_memtable(op, &list[i], &f->tables));
    }
    for (size_t i = 0; i < *count; i++) {
        flushes[i].bytes_out = tables_bytes(&flushes[i].tables);
        changes[i].tables = edit_of(NULL, &flushes[i].tables);
        changes[i].flushed = (struct mem_ref *const *)(const void *)flushes[i].memtables.data;
        changes[i].flushed_count = flushes[i].memtables.size / sizeof(struct mem_ref *);
    }
done:
    return st;
}

static void tell_flush(struct op *op, const struct store *s, const struct flushing *f,
                       size_t memtables)
{
    counter_add(&op->count->flushes, memtables);
    counter_add(&op->count->flush_bytes_in, f->bytes_in);
    counter_add(&op->count->flush_bytes_out, f->bytes_out);
    store_event(s, TAMIZ_EVENT_FLUSH, "memtable of %llu bytes to %llu bytes in level 0",
                (unsigned long long)f->bytes_in, (unsigned long long)f->bytes_out);
}

tamiz_status flush_memtables(struct op *op, struct store *s, const struct sealed *list, size_t n,
                             uint64_t log_number)
{
    const uint64_t from = env_monotonic_ns(s->env);
    struct flushing *flushes = mem_new_array(&s->alloc, n, sizeof *flushes);
    struct tree_change *changes = mem_new_array(&s->alloc, n, sizeof *changes);
    size_t count = 0, tables = 0;
    tamiz_status st = flushes && changes ? TAMIZ_OK : op_fail_memory(op);
    TRY(st);
    TRY(write_all(op, list, n, flushes, changes, &count));
    for (size_t i = 0; i < count; i++)
        tables += changes[i].tables.added_count;
    if (tables)
        TRY(env_sync_directory(op, s->env, s->directory));
    env_point(s->env, "flush.install");
    TRY(secure_logs(op, s, list, n));
    TRY(install(op, s, changes, count, log_number));
    for (size_t i = 0; i < count; i++) {
        forget_tables(op, s, &flushes[i].tables);
        tell_flush(op, s, &flushes[i], changes[i].flushed_count);
    }
    counter_add(&op->count->background_us, (env_monotonic_ns(s->env) - from) / 1000);
    store_drop_logs(op, s);
done:
    for (size_t i = 0; i < count; i++) {
        discard_tables(op, s, &flushes[i].tables); /* none, where they were installed */
        buf_free(&flushes[i].tables);
        buf_free(&flushes[i].memtables);
    }
    mem_free(&s->alloc, flushes, n * sizeof *flushes);
    mem_free(&s->alloc, changes, n * sizeof *changes);
    return st;
}

/* ---- a merge ---- */

/* All range deletes of the inputs, appended to `list`. */
static tamiz_status job_ranges(struct op *op, const struct job *j, struct buf *list)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < job_count(j); i++) {
        const struct ranges *ranges;
        if (job_input(j, i)->ranges == 0)
            continue;
        TRY(table_ranges(op, job_input(j, i)->table, &ranges));
        ranges_list(ranges, list);
    }
    if (list->failed)
        st = op_fail_memory(op);
done:
    return st;
}

/* What a range delete hides from everyone goes unread. */
static tamiz_status drop_tables(struct op *op, struct tamiz *db, const struct job *j)
{
    struct store *s = db->store;
    struct buf removed = buf_init(&s->alloc), none = buf_init(&s->alloc);
    uint64_t bytes = 0;
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < job_count(j); i++) {
        buf_append(&removed, &job_input(j, i)->number, sizeof(uint64_t));
        bytes += job_input(j, i)->file_size;
    }
    TRY(removed.failed ? op_fail_memory(op) : TAMIZ_OK);
    const struct version_edit edit = edit_of(&removed, &none);
    TRY(install_tables(op, db, &edit));
    counter_add(&op->count->tables_dropped, job_count(j));
    store_event(s, TAMIZ_EVENT_COMPACTION, "%zu tables, %llu bytes, inside deleted ranges: dropped",
                job_count(j), (unsigned long long)bytes);
done:
    buf_free(&removed);
    return st;
}

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
                                    .keyspace = m->keyspace,
                                    .level = j->output_level,
                                    .run = run,
                                    .entries = m->entries,
                                    .keys = m->keys,
                                    .tombstones = m->tombstones,
                                    .seq_min = m->seq_min,
                                    .seq_max = m->seq_max,
                                    .ranges = m->ranges,
                                    .filter_bytes = m->filter_bytes,
                                    .smallest = m->smallest,
                                    .largest = m->largest};
    struct table_meta *moved = table_meta_new(op, &s->alloc, &like);
    if (!moved)
        return TAMIZ_OUT_OF_MEMORY;
    moved->table = table_share(m->table);
    const struct version_edit edit = {
        .removed = &moved->number, .removed_count = 1, .added = &moved, .added_count = 1};
    const tamiz_status st = install_tables(op, db, &edit);
    table_meta_unref(&s->alloc, moved);
    return st;
}

/* What a merge reads and writes. */
struct merging {
    struct buf removed;   /* u64: the inputs' numbers */
    struct buf ranges;    /* struct range_delete */
    struct buf snapshots; /* u64 */
    struct buf tables;    /* struct table_meta * */
    uint64_t bytes_in, bytes_out;
    struct judge judge; /* with no filter: not asked */
};

static void merging_free(struct op *op, struct store *s, struct merging *m)
{
    discard_tables(op, s, &m->tables); /* none, where they were installed */
    buf_free(&m->removed);
    buf_free(&m->ranges);
    buf_free(&m->snapshots);
    buf_free(&m->tables);
    judge_free(&m->judge);
}

/* The inputs of `j` as tables in m->tables, and these into the tree in their place. TAMIZ_BUSY: a
 * snapshot was taken that sees otherwise what the compaction filter judged. */
static tamiz_status merge_tables(struct op *op, struct tamiz *db, const struct job *j, uint64_t run,
                                 struct merging *m)
{
    struct store *s = db->store;
    struct iter *source = NULL;
    struct at_work work = {db, j};
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < job_count(j); i++) {
        buf_append(&m->removed, &job_input(j, i)->number, sizeof(uint64_t));
        m->bytes_in += job_input(j, i)->file_size;
    }
    const uint64_t ticket = snapshot_list(s, &m->snapshots);
    TRY(m->snapshots.failed || m->removed.failed ? op_fail_memory(op) : TAMIZ_OK);
    TRY(job_ranges(op, j, &m->ranges));
    source = job_iter(op, j);
    TRY(source ? TAMIZ_OK : op->status);
    const struct compact_input in = {.source = source,
                                     .snapshots = (const uint64_t *)(const void *)m->snapshots.data,
                                     .snapshot_count = m->snapshots.size / sizeof(uint64_t),
                                     .ranges = (const struct range_delete *)(void *)m->ranges.data,
                                     .range_count = m->ranges.size / sizeof(struct range_delete),
                                     .now_us = store_now(s),
                                     .bottom = j->bottom,
                                     .judge = m->judge.filter.judge ? &m->judge : NULL,
                                     .cancelled = cancelled,
                                     .cancel_ctx = &work};
    struct compact_output out = output_of(db, j->output_level, run, IO_COMPACTION);
    TRY(choose_filter(op, db, j, 0, &out.build.filter));
    env_point(s->env, "compact.output");
    TRY(compact_run(op, &in, &out, &m->tables));
    m->bytes_out = tables_bytes(&m->tables);
    env_point(s->env, "compact.install");
    if (m->tables.size)
        TRY(env_sync_directory(op, s->env, s->directory));
    const struct tree_change change = {.db = db,
                                       .tables = edit_of(&m->removed, &m->tables),
                                       .judged = m->judge.dropped + m->judge.changed > 0,
                                       .ticket = ticket};
    TRY(install(op, s, &change, 1, 0));
    forget_tables(op, s, &m->tables);
done:
    iter_close(source);
    return st;
}

static void tell_merge(struct op *op, const struct store *s, const struct job *j,
                       const struct merging *m, uint64_t took_ns)
{
    counter_add(&op->count->compactions, 1);
    counter_add(&op->count->compaction_bytes_in, m->bytes_in);
    counter_add(&op->count->compaction_bytes_out, m->bytes_out);
    counter_add(&op->count->background_us, took_ns / 1000);
    counter_add(&op->count->judged_dropped, m->judge.dropped);
    counter_add(&op->count->judged_changed, m->judge.changed);
    store_event(s, TAMIZ_EVENT_COMPACTION, "%zu tables, %llu bytes, to %llu bytes in level %u",
                job_count(j), (unsigned long long)m->bytes_in, (unsigned long long)m->bytes_out,
                j->output_level);
}

/* With the keyspace's compaction filter, or with none. */
static tamiz_status merge_once(struct op *op, struct tamiz *db, const struct job *j, uint64_t run,
                               const tamiz_compaction_filter *filter)
{
    struct store *s = db->store;
    const uint64_t from = env_monotonic_ns(s->env);
    struct merging m = {.removed = buf_init(&s->alloc),
                        .ranges = buf_init(&s->alloc),
                        .snapshots = buf_init(&s->alloc),
                        .tables = buf_init(&s->alloc),
                        .judge = judge_of(filter, db->name, j->output_level, &s->alloc)};
    const tamiz_status st = merge_tables(op, db, j, run, &m);
    if (st == TAMIZ_OK)
        tell_merge(op, s, j, &m, env_monotonic_ns(s->env) - from);
    merging_free(op, s, &m);
    return st;
}

tamiz_status db_merge(struct op *op, struct tamiz *db, struct version *base, struct job *j)
{
    (void)base; /* held by the caller for as long as the inputs are used */
    if (j->drop)
        return drop_tables(op, db, j);
    const uint64_t run =
        j->new_run || !j->output_run ? background_next_run(db->store) : j->output_run;
    if (j->move)
        return move_table(op, db, j, run);
    tamiz_status st = merge_once(op, db, j, run, &db->options.compaction_filter);
    if (st == TAMIZ_BUSY) {
        const tamiz_compaction_filter none = {NULL, NULL};
        op_forgive(op);
        counter_add(&op->count->judged_again, 1);
        st = merge_once(op, db, j, run, &none);
    }
    return st;
}
