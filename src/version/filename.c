/* SPDX-License-Identifier: MIT */
#include "version/filename.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* prefix, six digits or more, suffix; a kind without digits has its whole name as prefix. */
static const struct {
    const char *prefix, *suffix;
    bool numbered;
} shape[] = {
    [FILE_OTHER] = {"", "", false},
    [FILE_CURRENT] = {"CURRENT", "", false},
    [FILE_CURRENT_NEW] = {"CURRENT.new", "", false},
    [FILE_LOCK] = {"LOCK", "", false},
    [FILE_MANIFEST] = {"MANIFEST-", "", true},
    [FILE_LOG] = {"", ".log", true},
    [FILE_TABLE] = {"", ".sst", true},
};

void filename_format(enum file_kind kind, uint64_t number, char *out)
{
    if (shape[kind].numbered)
        (void)snprintf(out, FILE_NAME_MAX, "%s%06" PRIu64 "%s", shape[kind].prefix, number,
                       shape[kind].suffix);
    else
        (void)snprintf(out, FILE_NAME_MAX, "%s", shape[kind].prefix);
}

/* The first digits of `text` as a number; 0: none, or too large. */
static uint64_t leading_number(const char *text)
{
    uint64_t n = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        n = n * 10 + (uint64_t)(*text - '0');
        if (n >= FILE_NUMBER_END)
            return 0;
    }
    return n;
}

/* A name is ours if it is exactly what we would write, so that 12.log or 0000012.log is not. */
enum file_kind filename_parse(const char *name, uint64_t *number)
{
    *number = 0;
    for (int kind = FILE_CURRENT; kind <= FILE_TABLE; kind++) {
        char ours[FILE_NAME_MAX];
        const size_t skip = strlen(shape[kind].prefix);
        uint64_t n = 0;
        if (shape[kind].numbered) {
            if (strncmp(name, shape[kind].prefix, skip) != 0)
                continue;
            n = leading_number(name + skip);
            if (n == 0)
                continue;
        }
        filename_format((enum file_kind)kind, n, ours);
        if (strcmp(name, ours) == 0) {
            *number = n;
            return (enum file_kind)kind;
        }
    }
    return FILE_OTHER;
}

char *filename_path(const struct alloc *alloc, const char *directory, enum file_kind kind,
                    uint64_t number)
{
    char name[FILE_NAME_MAX];
    filename_format(kind, number, name);
    const size_t size = strlen(directory) + 1 + strlen(name) + 1;
    char *path = mem_new(alloc, size);
    if (path)
        (void)snprintf(path, size, "%s/%s", directory, name);
    return path;
}
