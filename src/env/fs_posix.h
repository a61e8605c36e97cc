/* SPDX-License-Identifier: MIT
 *
 * Shared by the parts of the real file system: plain calls (fs_posix.c), the lock (posix_lock.c)
 * and many reads at once (uring.c).
 *
 * An open file is its descriptor and one bit, packed into the pointer that the table of functions
 * hands around: nothing to allocate, nothing to free.
 */
#ifndef TAMIZ_ENV_FS_POSIX_H
#define TAMIZ_ENV_FS_POSIX_H

#include <errno.h>

#include "tamiz/env.h"

enum { POSIX_DIRECT_ALIGN = 4096 };

/* Never NULL: the descriptor counts from 1. */
static inline void *posix_handle(int fd, bool direct)
{
    return (void *)(((uintptr_t)fd + 1) << 1 | (direct ? 1 : 0));
}

static inline int posix_fd(const void *file)
{
    return (int)(((uintptr_t)file >> 1) - 1);
}

static inline bool posix_is_direct(const void *file)
{
    return (uintptr_t)file & 1;
}

/* Repeats a call that a signal interrupted. */
#define POSIX_RETRY(result, call)                                                                  \
    do {                                                                                           \
        (result) = (call);                                                                         \
    } while ((result) < 0 && errno == EINTR)

/* Of a call that returns -1 and sets errno: 0 or a negative errno. */
static inline int posix_error(int result)
{
    return result < 0 ? -errno : 0;
}

/* 0, or a negative errno where the descriptor is no plain file. */
int posix_check_regular(int fd);

/* tamiz_env_ops.close, .read, .lock, .unlock */
int posix_close(void *ctx, void *file);
int64_t posix_read(void *ctx, void *file, uint64_t offset, void *buffer, size_t size);

int posix_lock(void *ctx, const char *path, void **lock, char *holder, size_t holder_size);
int posix_unlock(void *ctx, void *lock);

/* tamiz_env_ops.read_many: io_uring where the library was built with it and the kernel allows it,
 * else pread. */
void posix_read_many(void *ctx, tamiz_read_request *requests, size_t n);
void posix_read_each(void *ctx, tamiz_read_request *requests, size_t n,
                     void (*done)(void *done_ctx, size_t i), void *done_ctx);
const char *posix_read_many_name(void *ctx);

#endif
