/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* getline, fstat */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "progress.h"

static bool take_line(struct record *r, char *line, size_t size)
{
    text_add(&r->key, line, size);
    text_printf(&r->value, "%llu", (unsigned long long)r->number);
    return true;
}

static bool no_nul(struct record *r, const char *line, size_t size)
{
    if (!memchr(line, 0, size))
        return true;
    text_word(&r->why, "a NUL byte; want it written as \\x00");
    return false;
}

static bool take_tsv(struct record *r, char *line, size_t size)
{
    if (!no_nul(r, line, size))
        return false;
    char *tab = strchr(line, '\t');
    if (!tab) {
        text_word(&r->why, "want KEY, a tab, VALUE");
        return false;
    }
    *tab = 0;
    return bytes_parse(line, r->hex, &r->key, &r->why) &&
           bytes_parse(tab + 1, r->hex, &r->value, &r->why);
}

static bool take_json(struct record *r, char *line, size_t size)
{
    struct text key = {0}, value = {0};
    const bool fine = no_nul(r, line, size) && json_member(line, "key", &key, &r->why) &&
                      json_member(line, "value", &value, &r->why) &&
                      bytes_parse(key.data, r->hex, &r->key, &r->why) &&
                      bytes_parse(value.data, r->hex, &r->value, &r->why);
    text_free(&key);
    text_free(&value);
    return fine;
}

record_take *record_format(const char *name)
{
    if (!name || strcmp(name, "lines") == 0)
        return take_line;
    if (strcmp(name, "tsv") == 0)
        return take_tsv;
    return strcmp(name, "jsonl") == 0 ? take_json : NULL;
}

void record_free(struct record *r)
{
    text_free(&r->key);
    text_free(&r->value);
    text_free(&r->why);
}

/* Bytes of a regular file, for the bar; 0 where nobody knows. */
static uint64_t file_bytes(FILE *file)
{
    struct stat info;
    return fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

int records_read(const struct call *call, FILE *file, const char *name, const char *verb,
                 record_take *take, struct record *r, record_each *each, void *ctx)
{
    struct progress bar = progress_start(verb, file_bytes(file));
    char *line = NULL;
    size_t capacity = 0;
    uint64_t read_bytes = 0;
    ssize_t size;
    int status = EXIT_DONE;
    r->hex = call->hex;
    while (status == EXIT_DONE && (size = getline(&line, &capacity, file)) >= 0) {
        read_bytes += (uint64_t)size;
        if (size && line[size - 1] == '\n')
            line[--size] = 0;
        r->number++;
        text_clear(&r->key);
        text_clear(&r->value);
        status = each(ctx, r, take(r, line, (size_t)size));
        if (r->number % 256 == 0)
            progress_at(&bar, read_bytes & ~UINT64_C(255));
    }
    if (status == EXIT_DONE && ferror(file))
        status = fail(call, "%s: %s", name, strerror(errno));
    progress_end(&bar);
    free(line);
    return status;
}

FILE *records_open(const struct call *call, const char *name)
{
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
    if (!file)
        (void)fail(call, "%s: %s", name, strerror(errno));
    return file;
}
