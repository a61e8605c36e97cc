/* SPDX-License-Identifier: MIT
 *
 * tamiz_env_posix() where no system is: every call is answered ENOSYS. A store there is opened on
 * an env in memory, or on the embedder's own. (fs_posix.c, posix_lock.c and uring.c are not part of
 * such a build.)
 */
#include "env/env.h"

#if defined(__wasi__)

#include <errno.h>

static int none_open(void *ctx, const char *path, int flags, void **file)
{
    (void)ctx, (void)path, (void)flags;
    *file = NULL;
    return -ENOSYS;
}

static int none_file(void *ctx, void *file)
{
    (void)ctx, (void)file;
    return -ENOSYS;
}

static int64_t none_read(void *ctx, void *file, uint64_t offset, void *buffer, size_t size)
{
    (void)ctx, (void)file, (void)offset, (void)buffer, (void)size;
    return -ENOSYS;
}

static int none_write(void *ctx, void *file, uint64_t offset, const void *data, size_t size)
{
    (void)ctx, (void)file, (void)offset, (void)data, (void)size;
    return -ENOSYS;
}

static int none_size(void *ctx, void *file, uint64_t size)
{
    (void)ctx, (void)file, (void)size;
    return -ENOSYS;
}

static int none_file_info(void *ctx, void *file, tamiz_file_info *info)
{
    (void)ctx, (void)file, (void)info;
    return -ENOSYS;
}

static int none_path_info(void *ctx, const char *path, tamiz_file_info *info)
{
    (void)ctx, (void)path, (void)info;
    return -ENOSYS;
}

static int none_list(void *ctx, const char *directory,
                     void (*each)(void *each_ctx, const char *name), void *each_ctx)
{
    (void)ctx, (void)directory, (void)each, (void)each_ctx;
    return -ENOSYS;
}

static int none_path(void *ctx, const char *path)
{
    (void)ctx, (void)path;
    return -ENOSYS;
}

static int none_two_paths(void *ctx, const char *from, const char *to)
{
    (void)ctx, (void)from, (void)to;
    return -ENOSYS;
}

static int none_lock(void *ctx, const char *path, void **lock, char *holder, size_t holder_size)
{
    (void)ctx, (void)path;
    *lock = NULL;
    if (holder_size)
        holder[0] = '\0';
    return -ENOSYS;
}

static uint64_t none_clock(void *ctx)
{
    (void)ctx;
    return 0;
}

static void none_sleep(void *ctx, uint64_t us)
{
    (void)ctx, (void)us;
}

static int none_random(void *ctx, void *buffer, size_t size)
{
    (void)ctx, (void)buffer, (void)size;
    return -ENOSYS;
}

const tamiz_env *tamiz_env_posix(void)
{
    static const tamiz_env_ops ops = {
        .struct_size = sizeof ops,
        .open = none_open,
        .close = none_file,
        .read = none_read,
        .write = none_write,
        .sync = none_file,
        .truncate = none_size,
        .allocate = none_size,
        .file_info = none_file_info,
        .path_info = none_path_info,
        .list = none_list,
        .make_directory = none_path,
        .remove_directory = none_path,
        .rename = none_two_paths,
        .link = none_two_paths,
        .remove = none_path,
        .sync_directory = none_path,
        .lock = none_lock,
        .unlock = none_file,
        .wall_us = none_clock,
        .monotonic_ns = none_clock,
        .sleep_us = none_sleep,
        .random = none_random,
        .boot_id = none_clock,
    };
    static const tamiz_env env = {&ops, NULL};
    return &env;
}

#endif
