/* SPDX-License-Identifier: MIT */
#include "db/merge_job.h"

#include "db/expiry.h"
#include "db/install.h"
#include "db/output.h"
#include "db/snapshot.h"
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
    const struct version_edit edit = output_edit(&removed, &none);
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
    TRY(output_filter(op, db, j, 0, &out.build.filter));
    env_point(s->env, "compact.output");
    TRY(compact_run(op, &in, &out, &m->tables));
    m->bytes_out = output_bytes(&m->tables);
    env_point(s->env, "compact.install");
    if (m->tables.size)
        TRY(env_sync_directory(op, s->env, s->directory));
    const struct tree_change change = {.db = db,
                                       .tables = output_edit(&m->removed, &m->tables),
                                       .judged = m->judge.dropped + m->judge.changed > 0,
                                       .ticket = ticket};
    TRY(install(op, s, &change, 1, 0));
    output_installed(op, s, &m->tables);
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

tamiz_status merge_job_run(struct op *op, struct tamiz *db, const struct job *j)
{
    if (j->drop)
        return drop_tables(op, db, j);
    const uint64_t run = j->new_run || !j->output_run ? output_next_run(db->store) : j->output_run;
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
