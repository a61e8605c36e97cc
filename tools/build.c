/* SPDX-License-Identifier: MIT
 *
 * Tables from text with no store (build), and taking tables into one (ingest). Any number of
 * builds may run at once, on any machines: what they make is ingested afterwards.
 */
#define _POSIX_C_SOURCE 200809L /* access, mkdir */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "record.h"
#include "sorter.h"

enum { MEMORY_DEFAULT = 256 << 20, MEMORY_LEAST = 64 << 10 };

const struct flag build_flags[] = {
    {"--format", "FORMAT", RECORD_FORMATS},
    {"--name", "NAME", "tables are DIR/NAME-000001.sst and on; part without it"},
    {"--memory", "SIZE", "for sorting, such as 1GiB; 256MiB without it"},
    {"--sorted", NULL, "the keys rise already: no sorting, no memory"},
    {"--replace", NULL, "tables of that NAME in DIR, from an attempt before, give way"},
    {NULL, NULL, NULL},
};

struct build {
    const struct call *call;
    tamiz_options options;
    const char *directory, *name;
    bool sorted, replace;
    struct sorter sorter;
    tamiz_table_writer *writer;
    uint64_t tables, keys, bytes;
};

/* ---- tables ---- */

static void table_path(const struct build *b, uint64_t number, struct text *path)
{
    text_clear(path);
    text_printf(path, "%s/%s-%06llu.sst", b->directory, b->name, (unsigned long long)number);
}

static int table_begin(struct build *b)
{
    struct text path = {0};
    table_path(b, b->tables + 1, &path);
    if (b->replace)
        (void)unlink(path.data); /* what stays is told by the open */
    const tamiz_status st = tamiz_table_writer_open(path.data, &b->options, &b->writer);
    text_free(&path);
    return st == TAMIZ_OK ? EXIT_DONE : fail_status(b->call, st, NULL);
}

static int table_end(struct build *b)
{
    uint64_t keys, bytes;
    tamiz_table_writer *writer = b->writer;
    b->writer = NULL;
    const tamiz_status st = tamiz_table_writer_finish(writer, &keys, &bytes);
    if (st != TAMIZ_OK)
        return fail_status(b->call, st, NULL);
    b->tables++;
    b->keys += keys;
    b->bytes += bytes;
    return EXIT_DONE;
}

static int table_put(struct build *b, const struct text *key, const struct text *value)
{
    int status = b->writer ? EXIT_DONE : table_begin(b);
    if (status != EXIT_DONE)
        return status;
    const tamiz_status st =
        tamiz_table_writer_put(b->writer, key->data, key->size, value->data, value->size);
    if (st != TAMIZ_OK)
        return fail_status(b->call, st, NULL);
    return tamiz_table_writer_size(b->writer) >= b->options.table ? table_end(b) : EXIT_DONE;
}

/* A job that failed leaves no table of its own: it can be started again. */
static void tables_remove(const struct build *b)
{
    struct text path = {0};
    for (uint64_t i = 1; i <= b->tables; i++) {
        table_path(b, i, &path);
        (void)unlink(path.data);
    }
    text_free(&path);
}

/* Those of an attempt before that made more of them. */
static void rest_remove(const struct build *b)
{
    struct text path = {0};
    uint64_t number = b->tables;
    do
        table_path(b, ++number, &path);
    while (unlink(path.data) == 0);
    text_free(&path);
}

/* ---- lines ---- */

static int line_take(void *ctx, struct record *r, bool fine)
{
    struct build *b = ctx;
    if (!fine)
        return fail(b->call, "line %llu: %s", (unsigned long long)r->number, r->why.data);
    if (r->key.size > 65535)
        return fail(b->call, "line %llu: a key of %zu bytes: want at most 65535",
                    (unsigned long long)r->number, r->key.size);
    if (b->sorted)
        return table_put(b, &r->key, &r->value);
    if (!sorter_add(&b->sorter, r->key.data, r->key.size, r->value.data, r->value.size))
        return fail(b->call, "%s", b->sorter.why.data);
    return EXIT_DONE;
}

static int files_read(struct build *b)
{
    struct record r = {0};
    int status = EXIT_DONE;
    static const char *const standard_input = "-";
    const int files = b->call->count > 1 ? b->call->count - 1 : 1;
    for (int i = 0; i < files && status == EXIT_DONE; i++) {
        const char *name = b->call->count > 1 ? b->call->operands[i + 1] : standard_input;
        FILE *file = records_open(b->call, name);
        status = file
                     ? records_read(b->call, file, name, "reading",
                                    record_format(call_flag(b->call, "--format")), &r, line_take, b)
                     : EXIT_FAILED;
        if (file && file != stdin)
            (void)fclose(file);
    }
    record_free(&r);
    return status;
}

static int sorted_write(struct build *b)
{
    bool more = true;
    if (!sorter_end(&b->sorter))
        return fail(b->call, "%s", b->sorter.why.data);
    while (more) {
        if (!sorter_next(&b->sorter, &more))
            return fail(b->call, "%s", b->sorter.why.data);
        const int status = more ? table_put(b, &b->sorter.key, &b->sorter.value) : EXIT_DONE;
        if (status != EXIT_DONE)
            return status;
    }
    return EXIT_DONE;
}

static int built_print(const struct build *b)
{
    struct text out = {0};
    if (b->call->json) {
        struct json j = json_to(&out);
        json_open(&j, NULL, '{');
        json_u64(&j, "tables", b->tables);
        json_u64(&j, "keys", b->keys);
        json_u64(&j, "bytes", b->bytes);
        json_close(&j, '}');
        return deliver_json(b->call, &out);
    }
    count_show(&out, b->keys);
    text_word(&out, " keys in ");
    count_show(&out, b->tables);
    text_word(&out, " tables, ");
    size_show(&out, b->bytes);
    text_word(&out, "\n");
    return deliver(b->call, &out);
}

/* ---- the commands ---- */

static bool memory_take(const struct call *call, uint64_t *memory)
{
    /* A size as an option would take it. */
    const char *typed = call_flag(call, "--memory");
    tamiz_options scratch = TAMIZ_OPTIONS_INIT;
    struct text setting = {0};
    *memory = MEMORY_DEFAULT;
    if (!typed)
        return true;
    text_printf(&setting, "cache=%s", typed);
    const bool fine =
        tamiz_options_set(&scratch, setting.data) == TAMIZ_OK && scratch.cache >= MEMORY_LEAST;
    text_free(&setting);
    *memory = scratch.cache;
    if (!fine)
        (void)misuse(call, "--memory %s: want a size of 64KiB or more", typed);
    return fine;
}

static bool directory_make(const struct call *call, const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return true;
    (void)fail(call, "%s: %s", path, strerror(errno));
    return false;
}

int build_run(struct call *call, tamiz *db)
{
    struct build b = {.call = call, .options = TAMIZ_OPTIONS_INIT};
    uint64_t memory;
    (void)db;
    if (!record_format(call_flag(call, "--format")))
        return misuse(call, "--format %s: want lines, tsv or jsonl", call_flag(call, "--format"));
    if (call->options.size && tamiz_options_set(&b.options, call->options.data) != TAMIZ_OK)
        return fail_status(call, TAMIZ_INVALID_ARGUMENT, "-o");
    if (!memory_take(call, &memory))
        return EXIT_USAGE;
    b.directory = call->operands[0];
    b.name = call_flag(call, "--name") ? call_flag(call, "--name") : "part";
    b.sorted = call_flag(call, "--sorted") != NULL;
    b.replace = call_flag(call, "--replace") != NULL;
    if (!directory_make(call, b.directory))
        return EXIT_FAILED;
    sorter_init(&b.sorter, b.directory, memory);
    int status = files_read(&b);
    if (status == EXIT_DONE && !b.sorted)
        status = sorted_write(&b);
    if (status == EXIT_DONE && b.writer)
        status = table_end(&b);
    tamiz_table_writer_abandon(b.writer);
    if (status != EXIT_DONE)
        tables_remove(&b);
    else if (b.replace)
        rest_remove(&b);
    if (status == EXIT_DONE)
        status = built_print(&b);
    sorter_free(&b.sorter);
    return status;
}

int ingest_run(struct call *call, tamiz *db)
{
    struct text out = {0};
    const char *const *paths = (const char *const *)(call->operands + 1);
    const size_t n = (size_t)call->count - 1;
    const tamiz_status st = tamiz_ingest(db, paths, n);
    if (st != TAMIZ_OK)
        return fail_status(call, st, NULL);
    if (call->json) {
        text_printf(&out, "{\"tables\":%zu}", n);
        return deliver_json(call, &out);
    }
    count_show(&out, n);
    text_word(&out, n == 1 ? " table ingested\n" : " tables ingested\n");
    return deliver(call, &out);
}
