/* SPDX-License-Identifier: MIT
 *
 * A store around tables that came without one: their own headers and properties say all that a
 * manifest wants to know. Each becomes a run of level 0, so that they may overlap; the one with the
 * highest number is the newest.
 */
#include <stdlib.h>
#include <string.h>

#include "page_inside.h"
#include "version/manifest.h"

struct adoption {
    struct op op;
    const tamiz_env *env;
    struct buf numbers; /* u64 */
    struct buf metas;   /* struct table_meta *, owned */
};

static void note_table(void *ctx, const char *name)
{
    struct adoption *a = ctx;
    uint64_t number;
    if (filename_parse(name, &number) == FILE_TABLE)
        buf_append(&a->numbers, &number, sizeof number);
}

static tamiz_status properties_read(struct op *op, struct slice file, const char *path,
                                    struct table_footer *footer, struct table_properties *p)
{
    tamiz_status st;
    uint64_t file_id;
    struct slice payload;
    enum codec codec;
    if (file.size < TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE)
        return op_fail(op, TAMIZ_CORRUPTION, "%s: %zu bytes: too short for a table", path,
                       file.size);
    TRY(table_header_decode(op, slice_of(file.data, TABLE_HEADER_SIZE), path, &file_id));
    TRY(table_footer_decode(op,
                            slice_of(file.data + file.size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE),
                            file.size, path, footer));
    TRY(block_unseal(
        op,
        slice_of(file.data + footer->properties.offset, (size_t)extent_whole(footer->properties)),
        file_id, footer->properties.offset, path, true, &payload, &codec));
    TRY(table_properties_decode(op, payload, path, p));
done:
    return st;
}

static tamiz_status adopt_one(struct adoption *a, uint64_t number)
{
    struct op *op = &a->op;
    struct table_footer footer;
    struct table_properties p;
    struct buf content = buf_init(op->alloc);
    tamiz_status st;
    char *path = filename_path(op->alloc, PAGE_DIRECTORY, FILE_TABLE, number);
    TRY(path ? TAMIZ_OK : op_fail_memory(op));
    TRY(env_read_file(op, a->env, path, IO_META, (size_t)1 << 30, &content));
    TRY(properties_read(op, slice_of(content.data, content.size), path, &footer, &p));
    const struct table_meta from = {
        .number = number,
        .file_id = footer.file_id,
        .file_size = content.size,
        .run = number,
        .entries = p.entries,
        .keys = p.keys,
        .tombstones = p.tombstones,
        .seq_min = p.seq_min,
        .seq_max = p.seq_max,
        .filter_bytes = footer.filter.size,
        .smallest = p.smallest,
        .largest = p.largest,
    };
    struct table_meta *meta = table_meta_new(op, op->alloc, &from);
    TRY(meta ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    buf_append(&a->metas, &meta, sizeof meta);
    if (a->metas.failed)
        table_meta_unref(op->alloc, meta);
    TRY(a->metas.failed ? op_fail_memory(op) : TAMIZ_OK);
done:
    mem_free_text(op->alloc, path);
    buf_free(&content);
    return st;
}

static struct manifest_state state_of(struct table_meta *const *metas, size_t count,
                                      struct manifest_tree *tree)
{
    struct manifest_state state = {
        .log_number = 1, .next_keyspace = 1, .trees = tree, .tree_count = 1};
    for (size_t i = 0; i < count; i++) {
        state.next_file = metas[i]->number > state.next_file ? metas[i]->number : state.next_file;
        state.last_seq = metas[i]->seq_max > state.last_seq ? metas[i]->seq_max : state.last_seq;
    }
    state.next_run = ++state.next_file;
    return state;
}

static tamiz_status manifest_make(struct adoption *a)
{
    struct op *op = &a->op;
    struct table_meta *const *metas = (struct table_meta *const *)(void *)a->metas.data;
    const size_t count = a->metas.size / sizeof *metas;
    const struct version_edit edit = {.added = metas, .added_count = count};
    const struct manifest_edit nothing = {0};
    struct manifest_tree tree = {.version = NULL};
    struct manifest m = {0};
    tamiz_status st;
    TRY(version_apply(op, op->alloc, NULL, &edit, &tree.version));
    struct manifest_state state = state_of(metas, count, &tree);
    TRY(manifest_init(op, a->env, op->alloc, PAGE_DIRECTORY, &m));
    TRY(manifest_write(op, &m, &nothing, &state));
done:
    if (m.directory)
        manifest_close(op, &m);
    version_unref(tree.version);
    return st;
}

int page_store_adopt(struct page_store *s)
{
    struct counters count;
    struct adoption a = {.env = s->env};
    tamiz_status st;
    memset(&count, 0, sizeof count);
    op_init(&a.op, &alloc_libc, &count);
    a.numbers = buf_init(&alloc_libc);
    a.metas = buf_init(&alloc_libc);
    TRY(env_list(&a.op, s->env, PAGE_DIRECTORY, note_table, &a));
    const uint64_t *numbers = (const uint64_t *)(const void *)a.numbers.data;
    for (size_t i = 0; i < a.numbers.size / sizeof *numbers; i++)
        TRY(adopt_one(&a, numbers[i]));
    TRY(manifest_make(&a));
done:
    for (size_t i = 0; i < a.metas.size / sizeof(struct table_meta *); i++)
        table_meta_unref(&alloc_libc, ((struct table_meta **)(void *)a.metas.data)[i]);
    buf_free(&a.metas);
    buf_free(&a.numbers);
    return op_publish(&a.op, st);
}
