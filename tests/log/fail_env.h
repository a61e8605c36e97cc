/* SPDX-License-Identifier: MIT
 *
 * An env that passes everything on to another, but for the n-th call of one kind (or, sticky, from
 * the n-th on), which fails. A write may happen in part first, or any call in whole ("after").
 * Sticky over all kinds it is a process that dies at its n-th call: look at what the inner env then
 * holds.
 */
#ifndef TAMIZ_TEST_FAIL_ENV_H
#define TAMIZ_TEST_FAIL_ENV_H

#include <errno.h>

#include "support/test.h"
#include "tamiz/env.h"

enum fail_kind {
    FAIL_OPEN = 1,
    FAIL_WRITE = 2,
    FAIL_SYNC = 4,
    FAIL_TRUNCATE = 8,
    FAIL_ALLOCATE = 16,
    FAIL_RENAME = 32,
    FAIL_REMOVE = 64,
    FAIL_SYNC_DIRECTORY = 128,
    FAIL_READ = 256,
    FAIL_LIST = 512,
    FAIL_ANY = 1023
};

struct fail_env {
    tamiz_env env;
    tamiz_env_ops ops;
    const tamiz_env *inner;
    unsigned kinds; /* which calls are counted */
    int nth;        /* 1: the next one; 0: none fails */
    int error;      /* negative errno */
    bool sticky, after;
    size_t short_write; /* bytes of the failing write that reach the file */
    int seen;           /* calls counted so far */
    int fired;
    /* Told of each sync that succeeded; NULL: nobody asks. */
    void (*synced)(struct fail_env *f, void *file);
    void (*synced_directory)(struct fail_env *f, const char *path);
};

static inline bool fail_now(struct fail_env *f, enum fail_kind kind)
{
    if (!(f->kinds & (unsigned)kind))
        return false;
    f->seen++;
    const bool now = f->nth && (f->sticky ? f->seen >= f->nth : f->seen == f->nth);
    f->fired += now;
    return now;
}

/* The call itself unless it fails before; its own error wins over the wanted one. */
#define FAIL_CALL(kind, call)                                                                      \
    struct fail_env *f = (struct fail_env *)ctx;                                                   \
    const tamiz_env_ops *in = f->inner->ops;                                                       \
    const bool now = fail_now(f, kind);                                                            \
    if (now && !f->after)                                                                          \
        return f->error;                                                                           \
    const int result = call;                                                                       \
    return now && !result ? f->error : result

static inline int fail_open(void *ctx, const char *path, int flags, void **file)
{
    struct fail_env *f = (struct fail_env *)ctx;
    if (fail_now(f, FAIL_OPEN)) {
        *file = NULL;
        if (f->after &&
            f->inner->ops->open(f->inner->ctx, path, flags | TAMIZ_OPEN_READ, file) == 0)
            (void)f->inner->ops->close(f->inner->ctx, *file);
        *file = NULL;
        return f->error;
    }
    return f->inner->ops->open(f->inner->ctx, path, flags | TAMIZ_OPEN_READ, file);
}

static inline int64_t fail_read(void *ctx, void *file, uint64_t offset, void *buffer, size_t size)
{
    struct fail_env *f = (struct fail_env *)ctx;
    return fail_now(f, FAIL_READ) ? f->error
                                  : f->inner->ops->read(f->inner->ctx, file, offset, buffer, size);
}

static inline int fail_write(void *ctx, void *file, uint64_t offset, const void *data, size_t size)
{
    struct fail_env *f = (struct fail_env *)ctx;
    const bool now = fail_now(f, FAIL_WRITE);
    if (now && !f->after && f->short_write)
        (void)f->inner->ops->write(f->inner->ctx, file, offset, data,
                                   f->short_write < size ? f->short_write : size);
    if (now && !f->after)
        return f->error;
    const int result = f->inner->ops->write(f->inner->ctx, file, offset, data, size);
    return now && !result ? f->error : result;
}

static inline int fail_sync(void *ctx, void *file)
{
    struct fail_env *f = (struct fail_env *)ctx;
    const bool now = fail_now(f, FAIL_SYNC);
    const int result = now && !f->after ? f->error : f->inner->ops->sync(f->inner->ctx, file);
    if (result == 0 && f->synced)
        f->synced(f, file);
    return now && !result ? f->error : result;
}

static inline int fail_truncate(void *ctx, void *file, uint64_t size)
{
    FAIL_CALL(FAIL_TRUNCATE, in->truncate(f->inner->ctx, file, size));
}

static inline int fail_allocate(void *ctx, void *file, uint64_t size)
{
    FAIL_CALL(FAIL_ALLOCATE, in->allocate(f->inner->ctx, file, size));
}

static inline int fail_rename(void *ctx, const char *from, const char *to)
{
    FAIL_CALL(FAIL_RENAME, in->rename(f->inner->ctx, from, to));
}

static inline int fail_remove(void *ctx, const char *path)
{
    FAIL_CALL(FAIL_REMOVE, in->remove(f->inner->ctx, path));
}

static inline int fail_sync_directory(void *ctx, const char *path)
{
    struct fail_env *f = (struct fail_env *)ctx;
    const bool now = fail_now(f, FAIL_SYNC_DIRECTORY);
    const int result =
        now && !f->after ? f->error : f->inner->ops->sync_directory(f->inner->ctx, path);
    if (result == 0 && f->synced_directory)
        f->synced_directory(f, path);
    return now && !result ? f->error : result;
}

static inline int fail_list(void *ctx, const char *path,
                            void (*each)(void *each_ctx, const char *name), void *each_ctx)
{
    FAIL_CALL(FAIL_LIST, in->list(f->inner->ctx, path, each, each_ctx));
}

static inline int fail_close(void *ctx, void *file)
{
    struct fail_env *f = (struct fail_env *)ctx;
    return f->inner->ops->close(f->inner->ctx, file);
}

static inline int fail_file_info(void *ctx, void *file, tamiz_file_info *info)
{
    struct fail_env *f = (struct fail_env *)ctx;
    return f->inner->ops->file_info(f->inner->ctx, file, info);
}

static inline int fail_path_info(void *ctx, const char *path, tamiz_file_info *info)
{
    struct fail_env *f = (struct fail_env *)ctx;
    return f->inner->ops->path_info(f->inner->ctx, path, info);
}

static inline int fail_make_directory(void *ctx, const char *path)
{
    struct fail_env *f = (struct fail_env *)ctx;
    return f->inner->ops->make_directory(f->inner->ctx, path);
}

static inline int fail_random(void *ctx, void *buffer, size_t size)
{
    struct fail_env *f = (struct fail_env *)ctx;
    return f->inner->ops->random(f->inner->ctx, buffer, size);
}

static inline uint64_t fail_boot_id(void *ctx)
{
    struct fail_env *f = (struct fail_env *)ctx;
    return f->inner->ops->boot_id(f->inner->ctx);
}

/* Nothing fails until `nth` is set. `f` stays where it is. */
static inline void fail_env_init(struct fail_env *f, const tamiz_env *inner)
{
    *f = (struct fail_env){.inner = inner, .error = -EIO, .kinds = FAIL_ANY};
    f->ops = *inner->ops;
    f->ops.read_many = NULL;
    f->ops.open = fail_open;
    f->ops.close = fail_close;
    f->ops.read = fail_read;
    f->ops.write = fail_write;
    f->ops.sync = fail_sync;
    f->ops.truncate = fail_truncate;
    f->ops.allocate = fail_allocate;
    f->ops.file_info = fail_file_info;
    f->ops.path_info = fail_path_info;
    f->ops.list = fail_list;
    f->ops.make_directory = fail_make_directory;
    f->ops.rename = fail_rename;
    f->ops.remove = fail_remove;
    f->ops.sync_directory = fail_sync_directory;
    f->ops.random = fail_random;
    f->ops.boot_id = fail_boot_id;
    f->env = (tamiz_env){&f->ops, f};
}

/* The nth call of `kinds` from now on fails with `error`. */
static inline void fail_at(struct fail_env *f, unsigned kinds, int nth, int error)
{
    f->kinds = kinds;
    f->nth = nth;
    f->error = error;
    f->seen = f->fired = 0;
    f->sticky = f->after = false;
    f->short_write = 0;
}

#endif
