/* SPDX-License-Identifier: MIT
 *
 * Removing a store: every file that is one of ours by its name, in a directory that is one by its
 * signature, and then the directory if nothing else is in it.
 */
#include "db/life.h"
#include "version/signature.h"

struct doomed {
    struct buf names; /* NUL-terminated, one behind the other */
};

static void doom(void *ctx, const char *name)
{
    struct doomed *d = ctx;
    uint64_t number;
    if (filename_parse(name, &number) != FILE_OTHER)
        buf_append(&d->names, name, strlen(name) + 1);
}

/* CURRENT goes first: without it there is no store, whatever else is left after a crash. Manifests
 * go last: by them the rest is known as a store's (store_signature) when it is destroyed again. */
enum turn { FIRST, MIDDLE, LAST, TURNS };

static enum turn turn_of(enum file_kind kind)
{
    return kind == FILE_CURRENT ? FIRST : kind == FILE_MANIFEST ? LAST : MIDDLE;
}

static tamiz_status remove_named(struct op *op, const tamiz_env *env, const char *directory,
                                 const struct doomed *d, enum turn turn)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t at = 0; st == TAMIZ_OK && at < d->names.size;
         at += strlen((const char *)d->names.data + at) + 1) {
        uint64_t number = 0;
        const enum file_kind kind = filename_parse((const char *)d->names.data + at, &number);
        if (turn_of(kind) != turn || kind == FILE_LOCK)
            continue;
        char *path = filename_path(&alloc_libc, directory, kind, number);
        st = path ? env_remove(op, env, path) : op_fail_memory(op);
        mem_free_text(&alloc_libc, path);
    }
    return st;
}

static tamiz_status destroy(struct op *op, const tamiz_env *env, const char *directory)
{
    struct doomed d = {.names = buf_init(&alloc_libc)};
    void *lock = NULL;
    char *lock_path = NULL;
    bool exists = false;
    tamiz_file_info info;
    tamiz_status st = TAMIZ_OK;
    TRY(env_path_info(op, env, directory, &exists, &info));
    if (!exists || !info.is_directory) {
        st = exists ? op_fail(op, TAMIZ_INVALID_ARGUMENT, "%s: not a directory", directory)
                    : op_fail(op, TAMIZ_NOT_FOUND, "%s: no store here", directory);
        goto done;
    }
    st = store_signature(op, env, directory);
    if (st != TAMIZ_OK)
        goto done;
    TRY(env_list(op, env, directory, doom, &d));
    lock_path = filename_path(&alloc_libc, directory, FILE_LOCK, 0);
    TRY(lock_path ? TAMIZ_OK : op_fail_memory(op));
    TRY(env_lock(op, env, lock_path, &lock));
    TRY(d.names.failed ? op_fail_memory(op) : TAMIZ_OK);
    for (int turn = FIRST; turn < TURNS; turn++)
        TRY(remove_named(op, env, directory, &d, (enum turn)turn));
    TRY(env_remove(op, env, lock_path));
    if (env_remove_directory(op, env, directory) != TAMIZ_OK)
        op_forgive(op); /* something in it is not ours */
done:
    if (lock)
        (void)env_unlock(op, env, lock);
    mem_free_text(&alloc_libc, lock_path);
    buf_free(&d.names);
    return st;
}

tamiz_status tamiz_destroy(const char *path)
{
    if (!path || !*path)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "path: %s", path ? "empty" : "NULL");
    struct loose_op *l = loose_op_new(&alloc_libc);
    if (!l)
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    tamiz_status st = destroy(&l->op, tamiz_env_posix(), path);
    st = op_publish(&l->op, st);
    mem_free(&alloc_libc, l, sizeof *l);
    return st;
}
