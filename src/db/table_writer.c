/* SPDX-License-Identifier: MIT
 *
 * Tables built with no store: the builder that flushes and merges use, with sequence 0 on every
 * entry. Ingestion decides what they are newer than.
 */
#include "db/options.h"
#include "table/table_build.h"
#include "tamiz/tamiz.h"

struct tamiz_table_writer {
    tamiz_options options;
    struct alloc alloc;
    struct counters count;
    struct table_builder *builder;
    char *path; /* absolute */
};

static void writer_free(struct tamiz_table_writer *w)
{
    const struct alloc alloc = w->alloc;
    mem_free_text(&alloc, w->path);
    mem_free(&alloc, w, sizeof *w);
}

tamiz_status tamiz_table_writer_open(const char *path, const tamiz_options *options,
                                     tamiz_table_writer **writer)
{
    if (!writer)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "writer: NULL where the handle should go");
    *writer = NULL;
    if (!path || !*path)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "path: %s", path ? "empty" : "NULL");
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_status st = options_take(options, &o);
    if (st != TAMIZ_OK)
        return st;
    const struct alloc alloc = {o.allocator, NULL};
    struct tamiz_table_writer *w = mem_new_array(&alloc, 1, sizeof *w);
    if (!w)
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    w->options = o;
    w->alloc = alloc;
    struct op op;
    op_init(&op, &w->alloc, &w->count);
    /* As the last level of a store with these options would have it. */
    const struct table_build_options build = options_recipe(&o, TAMIZ_LEVELS - 1, IO_DATA);
    TRY(env_absolute_path(&op, o.env, &w->alloc, path, &w->path));
    TRY(table_builder_open(&op, o.env, &w->alloc, w->path, &build, &w->builder));
    *writer = w;
    return TAMIZ_OK;
done:
    st = op_publish(&op, st);
    writer_free(w);
    return st;
}

static tamiz_status writer_add(tamiz_table_writer *w, enum kind kind, struct slice key,
                               struct slice value)
{
    if (!w)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "no table writer given (NULL)");
    if ((!key.data && key.size) || (!value.data && value.size))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "key or value: NULL with a size");
    const struct slice last = table_builder_last_key(w->builder);
    if (table_builder_entries(w->builder) && slice_compare(last, key) >= 0) {
        char a[64], b[64];
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "%s: expected a key above %s, found %s", w->path,
                         slice_print(last, a, sizeof a), slice_print(key, b, sizeof b));
    }
    struct op op;
    op_init(&op, &w->alloc, &w->count);
    return op_publish(&op, table_builder_add(&op, w->builder, key, stamp_of(0, kind), value));
}

tamiz_status tamiz_table_writer_put(tamiz_table_writer *writer, const void *key, size_t key_size,
                                    const void *value, size_t value_size)
{
    return writer_add(writer, KIND_PUT, slice_of(key, key_size), slice_of(value, value_size));
}

tamiz_status tamiz_table_writer_delete(tamiz_table_writer *writer, const void *key, size_t key_size)
{
    return writer_add(writer, KIND_DELETE, slice_of(key, key_size), slice_of(NULL, 0));
}

uint64_t tamiz_table_writer_size(const tamiz_table_writer *writer)
{
    return writer ? table_builder_size(writer->builder) : 0;
}

tamiz_status tamiz_table_writer_finish(tamiz_table_writer *w, uint64_t *keys, uint64_t *bytes)
{
    if (keys)
        *keys = 0;
    if (bytes)
        *bytes = 0;
    if (!w)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "no table writer given (NULL)");
    struct op op;
    struct table_summary summary = {.smallest = buf_init(&w->alloc),
                                    .largest = buf_init(&w->alloc)};
    op_init(&op, &w->alloc, &w->count);
    tamiz_status st = table_builder_finish(&op, w->builder, &summary);
    if (st == TAMIZ_OK)
        st = env_sync_parent(&op, w->options.env, w->path);
    if (st == TAMIZ_OK && keys)
        *keys = summary.keys;
    if (st == TAMIZ_OK && bytes)
        *bytes = summary.file_size;
    buf_free(&summary.smallest);
    buf_free(&summary.largest);
    st = op_publish(&op, st);
    writer_free(w);
    return st;
}

void tamiz_table_writer_abandon(tamiz_table_writer *w)
{
    if (!w)
        return;
    struct op op;
    op_init(&op, &w->alloc, &w->count);
    table_builder_abandon(&op, w->builder);
    writer_free(w);
}
