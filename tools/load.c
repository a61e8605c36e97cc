/* SPDX-License-Identifier: MIT
 *
 * Many keys from a file, in batches. A line is a key whose value is its number (lines), or
 * "key TAB value" as `scan` prints it (tsv), or an object with "key" and "value" (jsonl). What
 * stood in front of a bad line has been loaded, and the message says which line it was.
 */
#define _POSIX_C_SOURCE 200809L /* getline, fstat */
#include "json.h"
#include "progress.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct flag load_flags[] = {
    {"--format", "FORMAT", "lines (key is the line, value its number), tsv or jsonl"},
    {"--no-log", NULL, "not in the log: faster, and lost in a crash before it is flushed"},
    {NULL, NULL, NULL},
};

enum { BATCH_WRITES = 1000, BATCH_BYTES = 1 << 20 };

struct load;

/* Key and value of one line into load->key and load->value; false: load->why. */
typedef bool line_take(struct load *load, char *line, size_t size);

struct load {
    const struct call *call;
    tamiz *db;
    line_take *take;
    tamiz_write_options options;
    tamiz_batch *batch;
    size_t batch_bytes;
    uint64_t line_number, loaded, read_bytes;
    struct text key, value, why;
};

static bool take_line(struct load *load, char *line, size_t size)
{
    text_add(&load->key, line, size);
    text_printf(&load->value, "%llu", (unsigned long long)load->line_number);
    return true;
}

static bool no_nul(struct load *load, const char *line, size_t size)
{
    if (!memchr(line, 0, size))
        return true;
    text_word(&load->why, "a NUL byte; want it written as \\x00");
    return false;
}

static bool take_tsv(struct load *load, char *line, size_t size)
{
    if (!no_nul(load, line, size))
        return false;
    char *tab = strchr(line, '\t');
    if (!tab) {
        text_word(&load->why, "want KEY, a tab, VALUE");
        return false;
    }
    *tab = 0;
    return bytes_parse(line, load->call->hex, &load->key, &load->why) &&
           bytes_parse(tab + 1, load->call->hex, &load->value, &load->why);
}

static bool take_json(struct load *load, char *line, size_t size)
{
    struct text key = {0}, value = {0};
    const bool fine = no_nul(load, line, size) && json_member(line, "key", &key, &load->why) &&
                      json_member(line, "value", &value, &load->why) &&
                      bytes_parse(key.data, load->call->hex, &load->key, &load->why) &&
                      bytes_parse(value.data, load->call->hex, &load->value, &load->why);
    text_free(&key);
    text_free(&value);
    return fine;
}

static line_take *format_find(const char *name)
{
    if (!name || strcmp(name, "lines") == 0)
        return take_line;
    if (strcmp(name, "tsv") == 0)
        return take_tsv;
    return strcmp(name, "jsonl") == 0 ? take_json : NULL;
}

static int batch_write(struct load *load)
{
    const size_t count = tamiz_batch_count(load->batch);
    if (!count)
        return EXIT_DONE;
    const tamiz_status st = tamiz_write(load->db, load->batch, &load->options);
    tamiz_batch_clear(load->batch);
    load->batch_bytes = 0;
    if (st != TAMIZ_OK)
        return fail_status(load->call, st, NULL);
    load->loaded += count;
    return EXIT_DONE;
}

static int line_refused(struct load *load, const char *words)
{
    (void)batch_write(load);
    return fail(load->call, "line %llu: %s (%llu keys were loaded)",
                (unsigned long long)load->line_number, words, (unsigned long long)load->loaded);
}

static int line_load(struct load *load, char *line, size_t size)
{
    load->line_number++;
    text_clear(&load->key);
    text_clear(&load->value);
    if (!load->take(load, line, size))
        return line_refused(load, load->why.data);
    const tamiz_status st = tamiz_batch_put(load->batch, NULL, load->key.data, load->key.size,
                                            load->value.data, load->value.size);
    if (st != TAMIZ_OK)
        return line_refused(load, tamiz_error_detail());
    load->batch_bytes += load->key.size + load->value.size;
    const bool full =
        tamiz_batch_count(load->batch) >= BATCH_WRITES || load->batch_bytes >= BATCH_BYTES;
    return full ? batch_write(load) : EXIT_DONE;
}

/* Bytes of a regular file, for the bar; 0 where nobody knows. */
static uint64_t file_bytes(FILE *file)
{
    struct stat info;
    return fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

static int lines_load(struct load *load, FILE *file, const char *name)
{
    struct progress bar = progress_start("loading", file_bytes(file));
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    int status = EXIT_DONE;
    while (status == EXIT_DONE && (size = getline(&line, &capacity, file)) >= 0) {
        load->read_bytes += (uint64_t)size;
        if (size && line[size - 1] == '\n')
            line[--size] = 0;
        status = line_load(load, line, (size_t)size);
        if (load->line_number % 256 == 0)
            progress_at(&bar, load->read_bytes & ~UINT64_C(255));
    }
    if (status == EXIT_DONE && ferror(file))
        status = fail(load->call, "%s: %s", name, strerror(errno));
    if (status == EXIT_DONE)
        status = batch_write(load);
    progress_end(&bar);
    free(line);
    return status;
}

static int loaded_print(const struct load *load)
{
    struct text out = {0};
    if (load->call->json) {
        text_printf(&out, "{\"loaded\":%llu}", (unsigned long long)load->loaded);
        return deliver_json(load->call, &out);
    }
    count_show(&out, load->loaded);
    text_word(&out, " keys loaded\n");
    return deliver(load->call, &out);
}

static const char *source_name(const struct call *call)
{
    return call->count > 1 ? call->operands[1] : "-";
}

int load_check(const struct call *call)
{
    const char *name = source_name(call);
    if (!format_find(call_flag(call, "--format")))
        return misuse(call, "--format %s: want lines, tsv or jsonl", call_flag(call, "--format"));
    if (strcmp(name, "-") != 0 && access(name, R_OK) != 0)
        return fail(call, "%s: %s", name, strerror(errno));
    return EXIT_DONE;
}

int load_run(struct call *call, tamiz *db)
{
    const char *name = source_name(call);
    struct load load = {.call = call, .db = db};
    load.take = format_find(call_flag(call, "--format"));
    load.options = (tamiz_write_options)TAMIZ_WRITE_OPTIONS_INIT;
    load.options.no_log = call_flag(call, "--no-log") != NULL;
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
    if (!file)
        return fail(call, "%s: %s", name, strerror(errno));
    load.batch = tamiz_batch_new();
    int status = load.batch ? lines_load(&load, file, name) : fail(call, "out of memory");
    if (status == EXIT_DONE)
        status = loaded_print(&load);
    if (file != stdin)
        (void)fclose(file);
    tamiz_batch_free(load.batch);
    text_free(&load.key);
    text_free(&load.value);
    text_free(&load.why);
    return status;
}
