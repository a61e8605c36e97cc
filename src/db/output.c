/* SPDX-License-Identifier: MIT */
#include "db/output.h"

#include "compact/monkey.h"
#include "db/expiry.h"
#include "db/options.h"

struct compact_output output_of(struct tamiz *db, uint32_t level, uint64_t run,
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
    out.build.created_us = store_now(s);
    out.build.keyspace = db->id;
    out.build.keyspace_name = slice_of_text(db->id ? db->name : "");
    return out;
}

tamiz_status output_filter(struct op *op, struct tamiz *db, const struct job *j, uint64_t keys,
                           tamiz_filter_policy *filter)
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

uint64_t output_next_run(struct store *s)
{
    mutex_lock(&s->install_mutex);
    const uint64_t run = s->state.next_run++;
    mutex_unlock(&s->install_mutex);
    return run;
}

uint64_t output_bytes(const struct buf *tables)
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

struct version_edit output_edit(const struct buf *removed, const struct buf *added)
{
    return (struct version_edit){.removed =
                                     removed ? (const uint64_t *)(const void *)removed->data : NULL,
                                 .removed_count = removed ? removed->size / sizeof(uint64_t) : 0,
                                 .added = (struct table_meta *const *)(const void *)added->data,
                                 .added_count = added->size / sizeof(struct table_meta *)};
}

void output_installed(const struct op *op, struct store *s, struct buf *tables)
{
    struct table_meta **list = (struct table_meta **)(void *)tables->data;
    for (size_t i = 0; i < tables->size / sizeof *list; i++) {
        load_ranges(s, op, list[i]);
        table_meta_unref(&s->alloc, list[i]);
    }
    buf_clear(tables);
}
