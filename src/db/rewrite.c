/* SPDX-License-Identifier: MIT
 *
 * The work of a job: versions in, tables out, and the tree changed to have them. What to work on
 * and when is background.c's.
 */
#include <assert.h>

#include "compact/compact.h"
#include "compact/monkey.h"
#include "db/background.h"
#include "db/install.h"
#include "db/logs.h"
#include "db/options.h"
#include "db/snapshot.h"
#include "table/merge.h"

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
    out.build = options_recipe(o, level, purpose);
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

/* ---- a flush ---- */

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
    struct compact_output out = output_of(s, 0, background_next_run(s), IO_DATA);
    TRY(choose_filter(op, db, NULL, memtable_count(m->memtable), &out.build.filter));
    env_point(s->env, "flush.build");
    TRY(compact_run(op, &in, &out, &tables));
    const uint64_t written = tables_bytes(&tables);
    env_point(s->env, "flush.install");
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

/* ---- a merge ---- */

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
    const uint64_t run = j->new_run || !j->output_run ? background_next_run(s) : j->output_run;
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
    env_point(s->env, "compact.output");
    TRY(compact_run(op, &in, &out, &tables));
    const uint64_t bytes_out = tables_bytes(&tables);
    env_point(s->env, "compact.install");
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
