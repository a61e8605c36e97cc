/* SPDX-License-Identifier: MIT
 *
 * From what the manifest says of tables to the tables themselves.
 */
#include <inttypes.h>

#include "version/manifest.h"

static tamiz_status attach(struct op *op, const struct version *v, struct table_meta *t,
                           const struct table_world *world, const char *directory)
{
    char *path = filename_path(v->alloc, directory, FILE_TABLE, t->number);
    if (!path)
        return op_fail_memory(op);
    t->table = table_new(op, world, path, t->number, t->file_id, t->file_size);
    mem_free_text(v->alloc, path);
    if (t->table) {
        table_set_sequence(t->table, t->seq_min);
        return TAMIZ_OK;
    }
    return op->status < 0 ? op->status : op_fail_memory(op);
}

tamiz_status version_attach(struct op *op, struct version *v, const struct table_world *world,
                            const char *directory)
{
    for (uint32_t i = 0; i < v->table_count; i++) {
        struct table_meta *t = v->tables[i];
        if (!t->table) {
            const tamiz_status st = attach(op, v, t, world, directory);
            if (st != TAMIZ_OK)
                return st;
        }
        v->handles[i] = t->table;
    }
    return TAMIZ_OK;
}

static tamiz_status check_file(struct op *op, const struct table_meta *t, const tamiz_env *env,
                               const char *path)
{
    tamiz_file_info info;
    bool exists;
    const tamiz_status st = env_path_info(op, env, path, &exists, &info);
    if (st < 0)
        return st;
    if (!exists)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: expected a table that the manifest names, found no file", path);
    if (info.size != t->file_size)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: expected %" PRIu64 " bytes as the manifest says, found %" PRIu64, path,
                       t->file_size, info.size);
    return TAMIZ_OK;
}

tamiz_status version_check_files(struct op *op, const struct version *v, const tamiz_env *env,
                                 const char *directory)
{
    tamiz_status st = TAMIZ_OK;
    for (uint32_t i = 0; i < v->table_count && st >= 0; i++) {
        char *path = filename_path(v->alloc, directory, FILE_TABLE, v->tables[i]->number);
        st = path ? check_file(op, v->tables[i], env, path) : op_fail_memory(op);
        mem_free_text(v->alloc, path);
    }
    return st;
}
