/* SPDX-License-Identifier: MIT
 *
 * Removing a store: every file that is one of ours by its name, in a directory that is one by its
 * signature, and then the directory if nothing else is in it.
 */
#include "db/life.h"
#include "version/listing.h"
#include "version/signature.h"

static tamiz_status destroy(struct op *op, const tamiz_env *env, const char *directory)
{
    /* CURRENT goes first: without it there is no store, whatever else is left after a crash.
     * Manifests go last: by them the rest is known as a store's (store_signature) when it is
     * destroyed again. */
    static const enum file_kind turns[] = {FILE_CURRENT, FILE_CURRENT_NEW, FILE_LOG, FILE_TABLE,
                                           FILE_MANIFEST};
    struct listing files;
    void *lock = NULL;
    char *lock_path = NULL;
    bool exists = false;
    tamiz_file_info info;
    tamiz_status st = TAMIZ_OK;
    listing_init(&files, &alloc_libc);
    TRY(env_path_info(op, env, directory, &exists, &info));
    if (!exists || !info.is_directory) {
        st = exists ? op_fail(op, TAMIZ_INVALID_ARGUMENT, "%s: not a directory", directory)
                    : op_fail(op, TAMIZ_NOT_FOUND, "%s: no store here", directory);
        goto done;
    }
    st = store_signature(op, env, directory);
    if (st != TAMIZ_OK)
        goto done;
    TRY(listing_take(op, env, directory, &files));
    lock_path = filename_path(&alloc_libc, directory, FILE_LOCK, 0);
    TRY(lock_path ? TAMIZ_OK : op_fail_memory(op));
    TRY(env_lock(op, env, lock_path, &lock));
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        TRY(listing_remove(op, env, directory, &files, turns[i]));
    TRY(env_remove(op, env, lock_path));
    if (env_remove_directory(op, env, directory) != TAMIZ_OK)
        op_forgive(op); /* something in it is not ours */
done:
    if (lock)
        (void)env_unlock(op, env, lock);
    mem_free_text(&alloc_libc, lock_path);
    listing_free(&files);
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
