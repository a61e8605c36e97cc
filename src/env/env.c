/* SPDX-License-Identifier: MIT
 *
 * Whole files, names, the lock, clocks: the embedder's functions with an error that says what was
 * done to which path.
 */
#include "env/env.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool env_is_complete(const tamiz_env *env)
{
    const tamiz_env_ops *o = env->ops;
    if (!o || o->struct_size < offsetof(tamiz_env_ops, read_many))
        return false;
    const bool files = o->open && o->close && o->read && o->write && o->sync && o->truncate &&
                       o->allocate && o->file_info;
    const bool names = o->path_info && o->list && o->make_directory && o->remove_directory &&
                       o->rename && o->link && o->remove && o->sync_directory;
    const bool rest = o->lock && o->unlock && o->wall_us && o->monotonic_ns && o->sleep_us &&
                      o->random && o->boot_id;
    return files && names && rest;
}

/* ---- whole files ---- */

tamiz_status env_read_file(struct op *op, const tamiz_env *env, const char *path,
                           enum io_purpose purpose, size_t most, struct buf *out)
{
    struct file *file = NULL;
    uint64_t size = 0;
    size_t got = 0;
    tamiz_status st;
    buf_clear(out);
    TRY(file_open(op, env, path, TAMIZ_OPEN_READ, &file));
    TRY(file_size(op, file, &size));
    if (size > most)
        TRY(op_fail(op, TAMIZ_CORRUPTION, "%s: %llu bytes, want at most %zu", path,
                    (unsigned long long)size, most));
    if (size && !buf_reserve(out, (size_t)size))
        TRY(op_fail_memory(op));
    TRY(file_read_some(op, file, purpose, 0, out->data, (size_t)size, &got));
    out->size = got;
done:;
    const tamiz_status closed = file_close(op, file);
    if (st >= 0)
        st = closed;
    if (st < 0)
        buf_clear(out);
    return st;
}

/* Written and synced, under its temporary name. */
static tamiz_status write_whole(struct op *op, const tamiz_env *env, const char *path,
                                enum io_purpose purpose, struct slice content)
{
    struct file *file = NULL;
    tamiz_status st;
    TRY(file_open(op, env, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file));
    TRY(file_write(op, file, purpose, 0, content.data, content.size));
    TRY(file_sync(op, file));
done:;
    const tamiz_status closed = file_close(op, file);
    return st < 0 ? st : closed;
}

tamiz_status env_replace_file(struct op *op, const tamiz_env *env, const char *directory,
                              const char *temporary, const char *path, enum io_purpose purpose,
                              struct slice content)
{
    tamiz_status st;
    const int left_over = env->ops->remove(env->ctx, temporary);
    if (left_over && left_over != -ENOENT)
        return op_fail_os(op, left_over, "remove", temporary);
    TRY(write_whole(op, env, temporary, purpose, content));
    TRY(env_rename(op, env, temporary, path));
    return env_sync_directory(op, env, directory);
done:
    (void)env->ops->remove(env->ctx, temporary); /* the story is told; may not be there */
    return st;
}

/* ---- copies ---- */

tamiz_status file_copy(struct op *op, struct file *from, const tamiz_env *env, const char *path,
                       enum io_purpose purpose, uint64_t size, void *buffer)
{
    struct file *to = NULL;
    tamiz_status st;
    TRY(file_open(op, env, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &to));
    for (uint64_t at = 0; at < size;) {
        const size_t piece = size - at < COPY_BYTES ? (size_t)(size - at) : COPY_BYTES;
        TRY(file_read(op, from, purpose, at, buffer, piece));
        TRY(file_write(op, to, purpose, at, buffer, piece));
        at += piece;
    }
    TRY(file_sync(op, to));
done:;
    const bool made = to != NULL;
    const tamiz_status closed = file_close(op, to);
    if (st >= 0)
        st = closed;
    if (st < 0 && made)
        (void)env->ops->remove(env->ctx, path); /* the story is told */
    return st;
}

tamiz_status env_copy_file(struct op *op, const tamiz_env *env, const char *from, const char *to,
                           enum io_purpose purpose)
{
    struct file *file = NULL;
    uint64_t size = 0;
    void *buffer = mem_new(op->alloc, COPY_BYTES);
    tamiz_status st;
    TRY(buffer ? TAMIZ_OK : op_fail_memory(op));
    TRY(file_open(op, env, from, TAMIZ_OPEN_READ, &file));
    TRY(file_size(op, file, &size));
    TRY(file_copy(op, file, env, to, purpose, size, buffer));
done:
    if (file) {
        struct op quiet; /* it was only read */
        op_init(&quiet, op->alloc, op->count);
        (void)file_close(&quiet, file);
    }
    mem_free(op->alloc, buffer, COPY_BYTES);
    return st;
}

/* Errors that say that this pair of places can't be linked, not that something is wrong. */
static bool cannot_link(int error)
{
    return error == -EXDEV || error == -EMLINK || error == -EPERM || error == -ENOSYS ||
           error == -ENOTSUP || error == -EOPNOTSUPP;
}

tamiz_status env_link_or_copy(struct op *op, const tamiz_env *env, const char *from, const char *to,
                              enum io_purpose purpose, bool *linked)
{
    const int error = env->ops->link(env->ctx, from, to);
    *linked = error == 0;
    if (error && !cannot_link(error))
        return op_fail_os(op, error, "link", from);
    return error ? env_copy_file(op, env, from, to, purpose) : TAMIZ_OK;
}

/* ---- names ---- */

tamiz_status env_path_info(struct op *op, const tamiz_env *env, const char *path, bool *exists,
                           tamiz_file_info *info)
{
    *info = (tamiz_file_info){0};
    const int error = env->ops->path_info(env->ctx, path, info);
    *exists = error == 0;
    return error && error != -ENOENT ? op_fail_os(op, error, "look at", path) : TAMIZ_OK;
}

tamiz_status env_list(struct op *op, const tamiz_env *env, const char *directory,
                      void (*each)(void *ctx, const char *name), void *ctx)
{
    const int error = env->ops->list(env->ctx, directory, each, ctx);
    return error ? op_fail_os(op, error, "list", directory) : TAMIZ_OK;
}

/* The directory that `path` is an entry of: "a/b/" is in "a", "b" in ".", "/b" in "/". */
static size_t parent_size(const char *path)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/')
        size--;
    while (size && path[size - 1] != '/')
        size--;
    while (size > 1 && path[size - 1] == '/')
        size--;
    return size;
}

char *env_parent_path(const struct alloc *alloc, const char *path)
{
    const size_t size = parent_size(path);
    char *parent = size ? mem_new(alloc, size + 1) : mem_text(alloc, ".");
    if (parent && size) {
        memcpy(parent, path, size);
        parent[size] = 0;
    }
    return parent;
}

tamiz_status env_sync_parent(struct op *op, const tamiz_env *env, const char *path)
{
    char *parent = env_parent_path(op->alloc, path);
    if (!parent)
        return op_fail_memory(op);
    const tamiz_status st = env_sync_directory(op, env, parent);
    mem_free_text(op->alloc, parent);
    return st;
}

tamiz_status env_make_directory(struct op *op, const tamiz_env *env, const char *path)
{
    const int error = env->ops->make_directory(env->ctx, path);
    return error ? op_fail_os(op, error, "make the directory", path)
                 : env_sync_parent(op, env, path);
}

tamiz_status env_remove_directory(struct op *op, const tamiz_env *env, const char *path)
{
    const int error = env->ops->remove_directory(env->ctx, path);
    return error ? op_fail_os(op, error, "remove the directory", path) : TAMIZ_OK;
}

static tamiz_status fail_two(struct op *op, int error, const char *what, const char *from,
                             const char *to)
{
    char words[OP_TEXT_MAX / 2];
    (void)snprintf(words, sizeof words, "%s %s", what, to);
    return op_fail_os(op, error, words, from);
}

tamiz_status env_rename(struct op *op, const tamiz_env *env, const char *from, const char *to)
{
    const int error = env->ops->rename(env->ctx, from, to);
    return error ? fail_two(op, error, "rename to", from, to) : TAMIZ_OK;
}

tamiz_status env_link(struct op *op, const tamiz_env *env, const char *from, const char *to)
{
    const int error = env->ops->link(env->ctx, from, to);
    return error ? fail_two(op, error, "link as", from, to) : TAMIZ_OK;
}

tamiz_status env_remove(struct op *op, const tamiz_env *env, const char *path)
{
    const int error = env->ops->remove(env->ctx, path);
    return error ? op_fail_os(op, error, "remove", path) : TAMIZ_OK;
}

tamiz_status env_sync_directory(struct op *op, const tamiz_env *env, const char *path)
{
    counter_add(&op->count->syncs, 1);
    const int error = env->ops->sync_directory(env->ctx, path);
    return error ? op_fail_os(op, error, "sync the directory", path) : TAMIZ_OK;
}

/* ---- the lock, randomness, clocks ---- */

tamiz_status env_lock(struct op *op, const tamiz_env *env, const char *path, void **lock)
{
    char holder[160] = "";
    *lock = NULL;
    const int error = env->ops->lock(env->ctx, path, lock, holder, sizeof holder);
    if (error == 0)
        return TAMIZ_OK;
    *lock = NULL;
    if (error == -EWOULDBLOCK)
        return op_fail(op, TAMIZ_BUSY, "%s: locked by %s", path,
                       holder[0] ? holder : "an unknown holder");
    return op_fail_os(op, error, "lock", path);
}

tamiz_status env_unlock(struct op *op, const tamiz_env *env, void *lock)
{
    if (!lock)
        return TAMIZ_OK;
    const int error = env->ops->unlock(env->ctx, lock);
    return error ? op_fail_os(op, error, "unlock", "lock file") : TAMIZ_OK;
}

tamiz_status env_random_u64(struct op *op, const tamiz_env *env, uint64_t *value)
{
    enum { TRIES = 16 }; /* a source that gives only zeros is broken, not unlucky */
    *value = 0;
    for (int i = 0; i < TRIES && *value == 0; i++) {
        const int error = env->ops->random(env->ctx, value, sizeof *value);
        if (error)
            return op_fail_os(op, error, "read", "random numbers");
    }
    return *value ? TAMIZ_OK : op_fail_os(op, EIO, "read", "random numbers");
}

uint64_t env_wall_us(const tamiz_env *env)
{
    return env->ops->wall_us(env->ctx);
}

uint64_t env_monotonic_ns(const tamiz_env *env)
{
    return env->ops->monotonic_ns(env->ctx);
}

void env_sleep_us(const tamiz_env *env, uint64_t us)
{
    env->ops->sleep_us(env->ctx, us);
}

uint64_t env_boot_id(const tamiz_env *env)
{
    return env->ops->boot_id(env->ctx);
}

const char *env_read_many_name(const tamiz_env *env)
{
    return ENV_HAS(env, read_many) && ENV_HAS(env, read_many_name)
               ? env->ops->read_many_name(env->ctx)
               : "read";
}

tamiz_status env_absolute_path(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                               const char *path, char **absolute)
{
    char room[4096];
    *absolute = NULL;
    if (ENV_HAS(env, absolute_path)) {
        const int error = env->ops->absolute_path(env->ctx, path, room, sizeof room);
        if (error)
            return op_fail_os(op, error, "find the directory", path);
        path = room;
    }
    *absolute = mem_text(alloc, path);
    return *absolute ? TAMIZ_OK : op_fail_memory(op);
}

uint32_t env_open_files_limit(const tamiz_env *env)
{
    return ENV_HAS(env, open_files_limit) ? env->ops->open_files_limit(env->ctx) : 0;
}
