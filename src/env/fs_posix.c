/* SPDX-License-Identifier: MIT
 *
 * The real file system. Each call is repeated where a signal interrupted it and continued where it
 * did less than it was asked for, so that nobody above has to.
 *
 * What is opened may come from a stranger: a fifo or a device in place of a file is refused without
 * waiting for it, and nothing is written through a symbolic link.
 */
#define _GNU_SOURCE /* O_DIRECT, fallocate, getrandom */
#include "env/fs_posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/random.h>
#endif

#include "base/hash.h"

enum { MOST_AT_ONCE = 1 << 30 }; /* one pread or pwrite; Linux stops at 2 GiB - 4096 */

/* ---- opening ---- */

static int open_flags(int flags)
{
    int mode = O_RDONLY;
    if (flags & TAMIZ_OPEN_WRITE)
        mode = flags & TAMIZ_OPEN_READ ? O_RDWR : O_WRONLY;
    if (flags & TAMIZ_OPEN_CREATE)
        mode |= O_CREAT | O_EXCL;
    if (flags & (TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE))
        mode |= O_NOFOLLOW;
    return mode | O_CLOEXEC | O_NOCTTY | O_NONBLOCK; /* the last, so that a fifo answers at once */
}

int posix_check_regular(int fd)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return -errno;
    if (S_ISDIR(info.st_mode))
        return -EISDIR;
    return S_ISREG(info.st_mode) ? 0 : -ENXIO;
}

/* After opening, not while: a file system that refuses O_DIRECT may do so after it has created the
 * file. */
static int make_direct(int fd)
{
#if defined(O_DIRECT)
    const int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0 ? -errno : 0;
#else
    (void)fd;
    return -EINVAL;
#endif
}

static int posix_open(void *ctx, const char *path, int flags, void **file)
{
    (void)ctx;
    *file = NULL;
    int fd;
    POSIX_RETRY(fd, open(path, open_flags(flags), 0600));
    if (fd < 0)
        return -errno;
    const bool direct = (flags & TAMIZ_OPEN_DIRECT) != 0;
    int error = posix_check_regular(fd);
    if (!error && direct)
        error = make_direct(fd);
    if (error) {
        (void)close(fd); /* nothing was written to it */
        if (flags & TAMIZ_OPEN_CREATE)
            (void)unlink(path); /* a failed creation leaves nothing */
        return error;
    }
#if defined(POSIX_FADV_SEQUENTIAL)
    if (flags & TAMIZ_OPEN_SEQUENTIAL)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint */
#endif
    *file = posix_handle(fd, direct);
    return 0;
}

/* EINTR from close means closed on Linux, and closing again might hit another thread's file. */
int posix_close(void *ctx, void *file)
{
    (void)ctx;
    return close(posix_fd(file)) < 0 && errno != EINTR ? -errno : 0;
}

/* ---- reading and writing ---- */

int64_t posix_read(void *ctx, void *file, uint64_t offset, void *buffer, size_t size)
{
    (void)ctx;
    const int fd = posix_fd(file);
    size_t done = 0;
    if (offset > INT64_MAX || size > INT64_MAX - offset)
        return -EINVAL;
    while (done < size) {
        const size_t part = size - done < MOST_AT_ONCE ? size - done : MOST_AT_ONCE;
        ssize_t n;
        POSIX_RETRY(n, pread(fd, (uint8_t *)buffer + done, part, (off_t)(offset + done)));
        if (n < 0)
            return -errno;
        done += (size_t)n;
        /* A direct read that ends inside a unit met the end of the file; asking for the rest would
         * be refused as unaligned. */
        if (n == 0 || (posix_is_direct(file) && n % POSIX_DIRECT_ALIGN != 0))
            break;
    }
    return (int64_t)done;
}

static int posix_write(void *ctx, void *file, uint64_t offset, const void *data, size_t size)
{
    (void)ctx;
    const int fd = posix_fd(file);
    if (offset > INT64_MAX || size > INT64_MAX - offset)
        return -EFBIG;
    for (size_t done = 0; done < size;) {
        const size_t part = size - done < MOST_AT_ONCE ? size - done : MOST_AT_ONCE;
        ssize_t n;
        POSIX_RETRY(n, pwrite(fd, (const uint8_t *)data + done, part, (off_t)(offset + done)));
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    return 0;
}

/* fdatasync leaves out only what reading back does not need: times. A changed size is written. */
static int posix_sync(void *ctx, void *file)
{
    (void)ctx;
    int result;
#if defined(__APPLE__)
    POSIX_RETRY(result, fcntl(posix_fd(file), F_FULLFSYNC));
#else
    POSIX_RETRY(result, fdatasync(posix_fd(file)));
#endif
    return posix_error(result);
}

static int posix_truncate(void *ctx, void *file, uint64_t size)
{
    (void)ctx;
    int result;
    if (size > INT64_MAX)
        return -EFBIG;
    POSIX_RETRY(result, ftruncate(posix_fd(file), (off_t)size));
    return posix_error(result);
}

static int posix_allocate(void *ctx, void *file, uint64_t size)
{
    (void)ctx;
#if defined(__linux__)
    int result;
    if (size > INT64_MAX)
        return -EFBIG;
    if (size == 0)
        return 0;
    POSIX_RETRY(result, fallocate(posix_fd(file), FALLOC_FL_KEEP_SIZE, 0, (off_t)size));
    return posix_error(result);
#else
    (void)file;
    (void)size;
    return -ENOTSUP;
#endif
}

/* Only where the room is really reserved: a store into a hole of a full file system would end in a
 * signal, not in an error. */
static int posix_map(void *ctx, void *file, uint64_t offset, size_t size, void **address)
{
    (void)ctx;
#if defined(__linux__)
    int result;
    if (offset > INT64_MAX - size)
        return -EFBIG;
    POSIX_RETRY(result, fallocate(posix_fd(file), 0, (off_t)offset, (off_t)size));
    if (result < 0)
        return -errno;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, posix_fd(file), (off_t)offset);
    if (at == MAP_FAILED)
        return -errno;
    *address = at;
    return 0;
#else
    (void)file;
    (void)offset;
    (void)size;
    (void)address;
    return -ENOTSUP;
#endif
}

static void posix_unmap(void *ctx, void *address, size_t size)
{
    (void)ctx;
    (void)munmap(address, size);
}

/* ---- names ---- */

static void info_of(const struct stat *from, tamiz_file_info *info)
{
    *info = (tamiz_file_info){.size = S_ISREG(from->st_mode) ? (uint64_t)from->st_size : 0,
                              .device = (uint64_t)from->st_dev,
                              .inode = (uint64_t)from->st_ino,
                              .is_directory = S_ISDIR(from->st_mode)};
}

static int posix_file_info(void *ctx, void *file, tamiz_file_info *info)
{
    (void)ctx;
    struct stat s;
    if (fstat(posix_fd(file), &s) < 0)
        return -errno;
    info_of(&s, info);
    return 0;
}

static int posix_path_info(void *ctx, const char *path, tamiz_file_info *info)
{
    (void)ctx;
    struct stat s;
    if (stat(path, &s) < 0)
        return -errno;
    info_of(&s, info);
    return 0;
}

static int posix_list(void *ctx, const char *directory,
                      void (*each)(void *each_ctx, const char *name), void *each_ctx)
{
    (void)ctx;
    DIR *d = opendir(directory);
    if (!d)
        return -errno;
    const struct dirent *entry;
    for (errno = 0; (entry = readdir(d)) != NULL; errno = 0)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(each_ctx, entry->d_name);
    const int error = -errno;
    (void)closedir(d); /* was only read */
    return error;
}

static int posix_make_directory(void *ctx, const char *path)
{
    (void)ctx;
    return posix_error(mkdir(path, 0700));
}

static int posix_remove_directory(void *ctx, const char *path)
{
    (void)ctx;
    return posix_error(rmdir(path));
}

static int posix_rename(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    return posix_error(rename(from, to));
}

static int posix_link(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    /* What a symbolic link stands for, not the link: it must not lead anywhere else later. */
    return posix_error(linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW));
}

static int posix_remove(void *ctx, const char *path)
{
    (void)ctx;
    return posix_error(unlink(path));
}

static int posix_sync_directory(void *ctx, const char *path)
{
    (void)ctx;
    int fd, result;
    POSIX_RETRY(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return -errno;
    POSIX_RETRY(result, fsync(fd));
    const int error = posix_error(result);
    (void)close(fd);                     /* was only read */
    return error == -EINVAL ? 0 : error; /* a file system that has nothing to sync here says so */
}

/* ---- clocks, randomness, the boot ---- */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(clock, &t); /* cannot fail for the two clocks used here */
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t posix_wall_us(void *ctx)
{
    (void)ctx;
    return clock_ns(CLOCK_REALTIME) / 1000;
}

static uint64_t posix_monotonic_ns(void *ctx)
{
    (void)ctx;
    return clock_ns(CLOCK_MONOTONIC);
}

static void posix_sleep_us(void *ctx, uint64_t us)
{
    (void)ctx;
    struct timespec left = {(time_t)(us / 1000000), (long)(us % 1000000 * 1000)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static int read_small(const char *path, void *buffer, size_t size)
{
    int fd;
    POSIX_RETRY(fd, open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return -errno;
    ssize_t n;
    POSIX_RETRY(n, read(fd, buffer, size));
    const int error = n < 0 ? -errno : (int)n;
    (void)close(fd);
    return error;
}

static int posix_random(void *ctx, void *buffer, size_t size)
{
    (void)ctx;
    enum { MOST = 256 }; /* so much comes whole, whatever the source */
    for (size_t done = 0; done < size;) {
        const size_t part = size - done < MOST ? size - done : MOST;
        uint8_t *to = (uint8_t *)buffer + done;
        ssize_t n;
#if defined(__linux__)
        POSIX_RETRY(n, getrandom(to, part, 0));
        if (n < 0 && errno == ENOSYS)
            n = read_small("/dev/urandom", to, part);
        else if (n < 0)
            n = -errno;
#else
        n = read_small("/dev/urandom", to, part);
#endif
        if (n <= 0)
            return n < 0 ? (int)n : -EIO;
        done += (size_t)n;
    }
    return 0;
}

static uint64_t posix_boot_id(void *ctx)
{
    (void)ctx;
    char text[64];
    const int n = read_small("/proc/sys/kernel/random/boot_id", text, sizeof text);
    return n > 0 ? hash_key(slice_of(text, (size_t)n)) : 0;
}

static int posix_absolute_path(void *ctx, const char *path, char *absolute, size_t size)
{
    (void)ctx;
    size_t at = 0;
    if (path[0] != '/') {
        if (!getcwd(absolute, size))
            return -errno;
        at = strlen(absolute);
        if (at + 1 < size)
            absolute[at++] = '/';
    }
    const size_t rest = strlen(path) + 1;
    if (rest > size - at)
        return -ENAMETOOLONG;
    memcpy(absolute + at, path, rest);
    return 0;
}

static uint32_t posix_open_files_limit(void *ctx)
{
    (void)ctx;
    const long most = sysconf(_SC_OPEN_MAX);
    return most < 0 ? 0 : most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

static const tamiz_env_ops posix_ops = {
    .struct_size = sizeof(tamiz_env_ops),
    .open = posix_open,
    .close = posix_close,
    .read = posix_read,
    .write = posix_write,
    .sync = posix_sync,
    .truncate = posix_truncate,
    .allocate = posix_allocate,
    .map = posix_map,
    .unmap = posix_unmap,
    .file_info = posix_file_info,
    .path_info = posix_path_info,
    .list = posix_list,
    .make_directory = posix_make_directory,
    .remove_directory = posix_remove_directory,
    .rename = posix_rename,
    .link = posix_link,
    .remove = posix_remove,
    .sync_directory = posix_sync_directory,
    .lock = posix_lock,
    .unlock = posix_unlock,
    .wall_us = posix_wall_us,
    .monotonic_ns = posix_monotonic_ns,
    .sleep_us = posix_sleep_us,
    .random = posix_random,
    .boot_id = posix_boot_id,
    .read_many = posix_read_many,
    .read_many_name = posix_read_many_name,
    .read_each = posix_read_each,
    .absolute_path = posix_absolute_path,
    .open_files_limit = posix_open_files_limit,
};

const tamiz_env *tamiz_env_posix(void)
{
    static const tamiz_env env = {&posix_ops, NULL};
    return &env;
}
