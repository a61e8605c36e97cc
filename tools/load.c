/* SPDX-License-Identifier: MIT
 *
 * Many keys from a file (record.h), in batches. What stood in front of a bad line has been loaded,
 * and the message says which line it was.
 */
#define _POSIX_C_SOURCE 200809L /* access */
#include "record.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

const struct flag load_flags[] = {
    {"--format", "FORMAT", RECORD_FORMATS},
    {"--no-log", NULL, "not in the log: faster, and lost in a crash before it is flushed"},
    {NULL, NULL, NULL},
};

enum { BATCH_WRITES = 1000, BATCH_BYTES = 1 << 20 };

struct load {
    const struct call *call;
    tamiz *db;
    tamiz_write_options options;
    tamiz_batch *batch;
    size_t batch_bytes;
    uint64_t loaded;
};

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

static int line_refused(struct load *load, const struct record *r, const char *words)
{
    (void)batch_write(load);
    return fail(load->call, "line %llu: %s (%llu keys were loaded)", (unsigned long long)r->number,
                words, (unsigned long long)load->loaded);
}

static int line_load(void *ctx, struct record *r, bool fine)
{
    struct load *load = ctx;
    if (!fine)
        return line_refused(load, r, r->why.data);
    const tamiz_status st =
        tamiz_batch_put(load->batch, NULL, r->key.data, r->key.size, r->value.data, r->value.size);
    if (st != TAMIZ_OK)
        return line_refused(load, r, tamiz_error_detail());
    load->batch_bytes += r->key.size + r->value.size;
    const bool full =
        tamiz_batch_count(load->batch) >= BATCH_WRITES || load->batch_bytes >= BATCH_BYTES;
    return full ? batch_write(load) : EXIT_DONE;
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
    if (!record_format(call_flag(call, "--format")))
        return misuse(call, "--format %s: want lines, tsv or jsonl", call_flag(call, "--format"));
    if (strcmp(name, "-") != 0 && access(name, R_OK) != 0)
        return fail(call, "%s: %s", name, strerror(errno));
    return EXIT_DONE;
}

int load_run(struct call *call, tamiz *db)
{
    const char *name = source_name(call);
    struct load load = {.call = call, .db = db};
    struct record r = {0};
    load.options = (tamiz_write_options)TAMIZ_WRITE_OPTIONS_INIT;
    load.options.no_log = call_flag(call, "--no-log") != NULL;
    FILE *file = records_open(call, name);
    if (!file)
        return EXIT_FAILED;
    load.batch = tamiz_batch_new();
    int status =
        load.batch ? records_read(call, file, name, "loading",
                                  record_format(call_flag(call, "--format")), &r, line_load, &load)
                   : fail(call, "out of memory");
    if (status == EXIT_DONE)
        status = batch_write(&load);
    if (status == EXIT_DONE)
        status = loaded_print(&load);
    if (file != stdin)
        (void)fclose(file);
    tamiz_batch_free(load.batch);
    record_free(&r);
    return status;
}
