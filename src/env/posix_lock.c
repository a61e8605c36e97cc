/* SPDX-License-Identifier: MIT
 *
 * The lock of a store's directory.
 *
 * It is flock(): it belongs to the open file, not to the process as fcntl's does. So it also
 * refuses a second handle of the same process, holds whatever the path was called when it was
 * opened, and is not lost when some other part of the program opens and closes the same file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "env/fs_posix.h"

/* "pid 4711, since 2026-01-31 12:00:00 UTC", for whoever is refused. Not being able to say it does
 * not make the lock less held. */
static void write_holder(int fd)
{
    char text[64];
    struct tm tm;
    const time_t now = time(NULL);
    if (!gmtime_r(&now, &tm))
        return;
    const int pid = snprintf(text, sizeof text, "pid %ld, since ", (long)getpid());
    const size_t size = (size_t)pid + strftime(text + pid, sizeof text - (size_t)pid,
                                               "%Y-%m-%d %H:%M:%S UTC\n", &tm);
    if (ftruncate(fd, 0) == 0)
        (void)(pwrite(fd, text, size, 0) < 0);
}

static void read_holder(int fd, char *holder, size_t holder_size)
{
    if (holder_size == 0)
        return;
    const ssize_t n = pread(fd, holder, holder_size - 1, 0);
    size_t end = n > 0 ? (size_t)n : 0;
    for (size_t i = 0; i < end; i++) /* a file of a stranger: one line of plain text at most */
        if (holder[i] < ' ' || holder[i] > '~')
            end = i;
    holder[end] = 0;
    if (end > 4 && strncmp(holder, "pid ", 4) == 0 &&
        strtol(holder + 4, NULL, 10) == (long)getpid())
        (void)snprintf(holder + end, holder_size - end, " (this process)");
}

/* Whether `path` still leads to the file that is locked: its last holder may have removed it. */
static bool still_there(int fd, const char *path)
{
    struct stat locked, named;
    return fstat(fd, &locked) == 0 && stat(path, &named) == 0 && locked.st_dev == named.st_dev &&
           locked.st_ino == named.st_ino;
}

/* 0 and *fd, or a negative errno; -ESTALE: worth another try. */
static int lock_once(const char *path, int *fd, char *holder, size_t holder_size)
{
    const int mode = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
    int result;
    POSIX_RETRY(*fd, open(path, mode, 0600));
    if (*fd < 0)
        return -errno;
    int error = posix_check_regular(*fd);
    if (!error) {
        POSIX_RETRY(result, flock(*fd, LOCK_EX | LOCK_NB));
        error = posix_error(result);
    }
    if (error == -EWOULDBLOCK)
        read_holder(*fd, holder, holder_size);
    else if (!error && !still_there(*fd, path))
        error = -ESTALE;
    if (error) {
        (void)close(*fd);
        *fd = -1;
    }
    return error;
}

int posix_lock(void *ctx, const char *path, void **lock, char *holder, size_t holder_size)
{
    (void)ctx;
    enum { TRIES = 100 }; /* each failed one means that another store was just removed there */
    int fd = -1;
    int error = -ESTALE;
    *lock = NULL;
    for (int i = 0; i < TRIES && error == -ESTALE; i++)
        error = lock_once(path, &fd, holder, holder_size);
    if (error)
        return error;
    write_holder(fd);
    *lock = posix_handle(fd, false);
    return 0;
}

/* Unlocked by name, not only closed: a forked child may still have the descriptor. */
int posix_unlock(void *ctx, void *lock)
{
    const int error = posix_error(flock(posix_fd(lock), LOCK_UN));
    const int closed = posix_close(ctx, lock);
    return error ? error : closed;
}
