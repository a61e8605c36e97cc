/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700 /* nftw */
#include "process.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* The number behind `name` in a file of "name: number" lines. */
static bool read_number(const char *path, const char *name, uint64_t *number)
{
    char line[128];
    bool found = false;
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) {
            *number = strtoull(line + strlen(name), NULL, 10);
            found = true;
        }
    (void)fclose(file);
    return found;
}

struct process_io process_io_now(void)
{
    struct process_io io = {0};
    io.known = read_number("/proc/self/io", "read_bytes:", &io.read_bytes) &&
               read_number("/proc/self/io", "write_bytes:", &io.write_bytes) &&
               read_number("/proc/self/io", "wchar:", &io.written_chars);
    return io;
}

void process_memory(uint64_t *rss_bytes, uint64_t *peak_bytes)
{
    *rss_bytes = *peak_bytes = 0;
    (void)read_number("/proc/self/status", "VmRSS:", rss_bytes);
    (void)read_number("/proc/self/status", "VmHWM:", peak_bytes);
    *rss_bytes *= 1024;
    *peak_bytes *= 1024;
}

/* nftw has no context; the tool walks one directory at a time. */
static uint64_t walked_bytes;

static int add_bytes(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)path;
    (void)walk;
    if (kind == FTW_F)
        walked_bytes += (uint64_t)info->st_blocks * 512;
    return 0;
}

uint64_t directory_bytes(const char *path)
{
    walked_bytes = 0;
    (void)nftw(path, add_bytes, 16, FTW_PHYS);
    return walked_bytes;
}

static int remove_below(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    return walk->level == 0 ? 0 : remove(path);
}

bool directory_empty(const char *path)
{
    if (mkdir(path, 0700) == 0)
        return true;
    return errno == EEXIST && nftw(path, remove_below, 16, FTW_DEPTH | FTW_PHYS) == 0;
}

double wait_until_idle(bool (*settled)(void *ctx), void *ctx)
{
    const struct timespec pause = {0, 50000000};
    const uint64_t begin = now_ns();
    uint64_t quiet_since = begin;
    uint64_t cpu = cpu_ns(), written = process_io_now().written_chars;
    while (now_ns() - quiet_since < 400000000u || (settled && !settled(ctx))) {
        (void)nanosleep(&pause, NULL);
        const uint64_t cpu_then = cpu_ns(), written_then = process_io_now().written_chars;
        if (cpu_then - cpu > 2000000u || written_then != written)
            quiet_since = now_ns();
        cpu = cpu_then;
        written = written_then;
    }
    return (double)(quiet_since - begin) / 1e9;
}
