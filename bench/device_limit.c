/* SPDX-License-Identifier: MIT
 *
 * What the device itself can do: random aligned reads of some files, around the page cache, by a
 * plain io_uring loop with no store above it. The limit that a multi_get over cold blocks is
 * measured against, in the same minutes, on the same files:
 *
 *     device_limit [--depth N] [--size BYTES] [--reads N] [--seed N] FILE...
 *
 * Two loops, for two questions. `batch` submits `depth` reads and waits for all of them before the
 * next batch, as any call must that returns with all its answers. `stream` sends the next read
 * whenever one comes back, so that there are always `depth` under way: what the device gives to who
 * never stops asking.
 *
 * A data block of 4 KiB and its trailer lie across two aligned units nearly always: --size 8192 is
 * what a store's read of one costs.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys.h"
#include "process.h"

enum { ALIGN = 4096, DEPTH_MOST = 1024, FILES_MOST = 1024, SIZE_MOST = 1 << 20 };

struct source {
    int fd;
    uint64_t units; /* places where a read may begin; running total over the files up to this one */
};

struct limit {
    struct source files[FILES_MOST];
    size_t file_count;
    unsigned depth, size;
    uint64_t reads;
    struct random random;
    struct io_uring ring;
    uint8_t *buffers; /* depth × size */
};

static int complain(const char *what, int error)
{
    fprintf(stderr, "device_limit: %s: %s\n", what, strerror(error));
    return -1;
}

/* Files without room for a single read are left out. */
static int file_add(struct limit *l, const char *path)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0)
        return complain(path, errno);
    if (fstat(fd, &about) != 0 || l->file_count == FILES_MOST) {
        const int error = l->file_count == FILES_MOST ? EMFILE : errno;
        close(fd);
        return complain(path, error);
    }
    if ((uint64_t)about.st_size < l->size) {
        close(fd);
        return 0;
    }
    const uint64_t before = l->file_count ? l->files[l->file_count - 1].units : 0;
    l->files[l->file_count++] =
        (struct source){fd, before + ((uint64_t)about.st_size - l->size) / ALIGN + 1};
    return 0;
}

/* A place anywhere in all files together. */
static int place(struct limit *l, uint64_t *offset)
{
    uint64_t at = random_below(&l->random, l->files[l->file_count - 1].units), before = 0;
    size_t i = 0;
    while (at >= l->files[i].units)
        before = l->files[i++].units;
    *offset = (at - before) * ALIGN;
    return l->files[i].fd;
}

static void send_one(struct limit *l, unsigned slot)
{
    uint64_t offset;
    const int fd = place(l, &offset);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ring); /* the ring has room for `depth` */
    io_uring_prep_read(sqe, fd, l->buffers + (size_t)slot * l->size, l->size, offset);
    io_uring_sqe_set_data64(sqe, slot);
}

/* Waits for one answer; *slot is free again. */
static int take_one(struct limit *l, unsigned *slot)
{
    struct io_uring_cqe *cqe;
    int error;
    do
        error = io_uring_wait_cqe(&l->ring, &cqe);
    while (error == -EINTR);
    if (error)
        return complain("wait", -error);
    const int result = cqe->res;
    *slot = (unsigned)io_uring_cqe_get_data64(cqe);
    io_uring_cqe_seen(&l->ring, cqe);
    if (result < 0)
        return complain("read", -result);
    return result == (int)l->size ? 0 : complain("read", EIO);
}

static int submit(struct limit *l, unsigned wait_for)
{
    const int sent = io_uring_submit_and_wait(&l->ring, wait_for);
    return sent < 0 ? complain("submit", -sent) : 0;
}

static int loop_batch(struct limit *l)
{
    for (uint64_t done = 0; done < l->reads; done += l->depth) {
        unsigned slot;
        for (unsigned i = 0; i < l->depth; i++)
            send_one(l, i);
        if (submit(l, l->depth) != 0)
            return -1;
        for (unsigned i = 0; i < l->depth; i++)
            if (take_one(l, &slot) != 0)
                return -1;
    }
    return 0;
}

static int loop_stream(struct limit *l)
{
    unsigned slot;
    uint64_t sent = 0;
    for (; sent < l->depth; sent++)
        send_one(l, (unsigned)sent);
    for (uint64_t done = 0; done < l->reads; done++) {
        if (submit(l, 1) != 0 || take_one(l, &slot) != 0)
            return -1;
        if (sent < l->reads) {
            send_one(l, slot);
            sent++;
        }
    }
    return 0;
}

static int measure(struct limit *l, const char *name, int (*loop)(struct limit *l))
{
    const uint64_t cpu = thread_cpu_ns(), begin = now_ns();
    if (loop(l) != 0)
        return -1;
    const double seconds = (double)(now_ns() - begin) / 1e9, reads = (double)l->reads;
    printf(
        "%-6s depth %u, %u bytes: %10.0f reads/s, %8.3f us a read, %6.3f us of CPU, %7.1f MB/s\n",
        name, l->depth, l->size, reads / seconds, seconds / reads * 1e6,
        (double)(thread_cpu_ns() - cpu) / reads / 1e3, reads * l->size / seconds / 1e6);
    return 0;
}

static bool number_option(int argc, char **argv, int *i, const char *name, uint64_t least,
                          uint64_t most, uint64_t *value)
{
    if (strcmp(argv[*i], name) != 0 || *i + 1 == argc)
        return false;
    char *end;
    errno = 0;
    *value = strtoull(argv[++*i], &end, 10);
    if (errno == 0 && *end == 0 && *value >= least && *value <= most)
        return true;
    fprintf(stderr, "device_limit: %s: want %llu..%llu\n", name, (unsigned long long)least,
            (unsigned long long)most);
    exit(2);
}

/* Options first, so that files are opened with the size known. Index of the first file. */
static int parse(struct limit *l, int argc, char **argv)
{
    uint64_t depth = 32, size = 2 * ALIGN, reads = 100000, seed = 1;
    int i = 1;
    while (i < argc && (number_option(argc, argv, &i, "--depth", 1, DEPTH_MOST, &depth) ||
                        number_option(argc, argv, &i, "--size", ALIGN, SIZE_MOST, &size) ||
                        number_option(argc, argv, &i, "--reads", 1, UINT32_MAX, &reads) ||
                        number_option(argc, argv, &i, "--seed", 0, UINT64_MAX, &seed)))
        i++;
    l->depth = (unsigned)depth;
    l->size = (unsigned)(size / ALIGN * ALIGN);
    l->reads = (reads + depth - 1) / depth * depth;
    l->random = (struct random){seed};
    return i;
}

static int run(struct limit *l, int argc, char **argv, int from)
{
    for (int i = from; i < argc; i++)
        if (file_add(l, argv[i]) != 0)
            return -1;
    if (l->file_count == 0) {
        fprintf(stderr, "usage: device_limit [--depth N] [--size BYTES] [--reads N] [--seed N] "
                        "FILE...   (files of --size bytes at least)\n");
        return -1;
    }
    l->buffers = aligned_alloc(ALIGN, (size_t)l->depth * l->size);
    if (!l->buffers)
        return complain("buffers", ENOMEM);
    const int error = io_uring_queue_init(l->depth, &l->ring, 0);
    if (error)
        return complain("io_uring", -error);
    int result = measure(l, "batch", loop_batch);
    if (result == 0)
        result = measure(l, "stream", loop_stream);
    io_uring_queue_exit(&l->ring);
    return result;
}

int main(int argc, char **argv)
{
    struct limit *l = calloc(1, sizeof *l);
    if (!l)
        return complain("memory", ENOMEM) ? 3 : 0;
    const int result = run(l, argc, argv, parse(l, argc, argv));
    for (size_t i = 0; i < l->file_count; i++)
        close(l->files[i].fd);
    free(l->buffers);
    free(l);
    return result == 0 ? 0 : 3;
}
