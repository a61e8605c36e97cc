/* SPDX-License-Identifier: MIT */
#include "dump.h"

#include <errno.h>
#include <string.h>

#include "base/expiry.h"
#include "env/env.h"
#include "filter/filter.h"
#include "grid.h"
#include "log/log.h"
#include "table/format.h"
#include "version/filename.h"

const struct flag dump_flags[] = {
    {"--entries", NULL, "tables: each entry of each block as well"},
    {NULL, NULL, NULL},
};

enum { WORDS_SHOWN = 120 };

/* ---- saying it ---- */

void dump_item(struct dump *d, uint64_t offset, const char *what)
{
    d->first_field = true;
    if (d->call->json) {
        json_open(&d->json, NULL, '{');
        if (offset != NO_OFFSET)
            json_u64(&d->json, "offset", offset);
        json_text(&d->json, "item", what);
    } else if (offset != NO_OFFSET) {
        text_printf(&d->out, "%10llu  %-16s", (unsigned long long)offset, what);
    } else {
        text_printf(&d->out, "%10s    %-14s", "", what);
    }
}

void dump_end(struct dump *d)
{
    if (d->call->json)
        json_close(&d->json, '}');
    else
        text_word(&d->out, "\n");
}

static void field_name(struct dump *d, const char *name)
{
    text_printf(&d->out, "%s%s ", d->first_field ? "" : ", ", name);
    d->first_field = false;
}

void dump_number(struct dump *d, const char *name, uint64_t value)
{
    if (d->call->json) {
        json_u64(&d->json, name, value);
        return;
    }
    field_name(d, name);
    text_printf(&d->out, "%llu", (unsigned long long)value);
}

void dump_value(struct dump *d, unsigned kind, struct slice value)
{
    uint64_t expires_us;
    if (kind == KIND_EXPIRING && expiry_split(&value, &expires_us))
        dump_number(d, "expires_us", expires_us);
    if (kind == KIND_PUT || kind == KIND_EXPIRING)
        dump_bytes(d, "value", value);
}

void dump_id(struct dump *d, const char *name, uint64_t value)
{
    char hex[24];
    (void)snprintf(hex, sizeof hex, "0x%016llx", (unsigned long long)value);
    dump_words(d, name, hex);
}

void dump_real(struct dump *d, const char *name, double value)
{
    if (d->call->json) {
        json_real(&d->json, name, value);
        return;
    }
    field_name(d, name);
    text_printf(&d->out, "%.6g", value);
}

void dump_words(struct dump *d, const char *name, const char *value)
{
    if (d->call->json) {
        json_text(&d->json, name, value);
        return;
    }
    field_name(d, name);
    text_word(&d->out, value);
}

/* Lines for people are cut where they would get long; the document is whole. */
void dump_bytes(struct dump *d, const char *name, struct slice bytes)
{
    if (d->call->json) {
        json_bytes(&d->json, name, bytes.data, bytes.size, d->call->hex);
        return;
    }
    const bool cut = bytes.size > WORDS_SHOWN;
    field_name(d, name);
    text_word(&d->out, "\"");
    bytes_show(&d->out, bytes.data, cut ? WORDS_SHOWN : bytes.size, d->call->hex);
    text_word(&d->out, "\"");
    if (cut)
        text_printf(&d->out, "... (%zu bytes)", bytes.size);
}

/* ---- which file it is ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static tamiz_status dump_current(struct dump *d, struct slice content)
{
    const char *newline = content.size ? memchr(content.data, '\n', content.size) : NULL;
    const size_t size = newline ? (size_t)(newline - (const char *)content.data) : content.size;
    dump_item(d, 0, "current");
    dump_bytes(d, "manifest", slice_of(content.data, size));
    dump_end(d);
    return newline ? TAMIZ_OK
                   : op_fail(d->op, TAMIZ_CORRUPTION, "%s: want one line that names a manifest",
                             d->path);
}

/* By what is in the file where it says so, else by its name: a log that is still empty, say. */
static const char *kind_of(const char *path, struct slice content)
{
    uint64_t number;
    const bool long_enough = content.size >= 16;
    const enum file_kind kind = filename_parse(base_name(path), &number);
    if (long_enough && load_u64(content.data) == TABLE_MAGIC)
        return "table";
    if (long_enough && memcmp(content.data, "TAMIZLOG", 8) == 0)
        return load_u32(content.data + 12) == LOG_MANIFEST ? "manifest" : "log";
    if (kind == FILE_CURRENT || kind == FILE_CURRENT_NEW)
        return "current";
    if (kind == FILE_LOG)
        return "log";
    if (kind == FILE_MANIFEST)
        return "manifest";
    if (kind == FILE_TABLE)
        return "table";
    return kind == FILE_LOCK ? "lock" : "filter";
}

static tamiz_status dump_content(struct dump *d, const char *kind, struct buf *content)
{
    if (strcmp(kind, "log") == 0)
        return dump_log(d, content);
    if (strcmp(kind, "manifest") == 0)
        return dump_manifest(d, content);
    if (strcmp(kind, "table") == 0)
        return dump_table(d, buf_slice(content));
    if (strcmp(kind, "current") == 0)
        return dump_current(d, buf_slice(content));
    if (strcmp(kind, "lock") == 0)
        return TAMIZ_OK; /* its bytes mean nothing; holding it does */
    return dump_filter_image(d, buf_slice(content));
}

static void file_open_text(struct dump *d, const char *kind, uint64_t size)
{
    if (d->call->json) {
        json_open(&d->json, NULL, '{');
        json_text(&d->json, "file", d->path);
        json_text(&d->json, "kind", kind);
        json_u64(&d->json, "bytes", size);
        json_open(&d->json, "items", '[');
        return;
    }
    text_printf(&d->out, "%s: %s, ", d->path, kind);
    count_show(&d->out, size);
    text_word(&d->out, " bytes\n");
}

static void file_close_text(struct dump *d, tamiz_status st)
{
    if (!d->call->json)
        return;
    json_close(&d->json, ']');
    json_bool(&d->json, "damaged", st < 0);
    if (st < 0)
        json_text(&d->json, "damage", d->op->text);
    json_close(&d->json, '}');
}

static int file_dump(struct dump *d)
{
    struct counters count = {0};
    struct op op;
    op_init(&op, &alloc_libc, &count);
    d->op = &op;
    struct buf content = buf_init(&alloc_libc);
    tamiz_status st =
        env_read_file(&op, tamiz_env_posix(), d->path, IO_META, (size_t)1 << 40, &content);
    int status = EXIT_FAILED;
    if (st < 0) {
        (void)fail(d->call, "%s", op.text);
    } else {
        const char *kind = kind_of(d->path, buf_slice(&content));
        file_open_text(d, kind, content.size);
        st = dump_content(d, kind, &content);
        file_close_text(d, st);
        status = st < 0 ? EXIT_NO : EXIT_DONE;
        if (!d->call->json) {
            text_fold(&d->out, terminal_width());
            (void)text_flush(&d->out, stdout);
        }
        if (st < 0)
            (void)fail(d->call, "%s", op.text);
    }
    buf_free(&content);
    d->op = NULL;
    return status;
}

int dump_run(struct call *call, tamiz *db)
{
    struct dump d = {.call = call, .entries = call_flag(call, "--entries") != NULL};
    int worst = EXIT_DONE;
    (void)db;
    d.json = json_to(&d.out);
    if (call->json) {
        json_open(&d.json, NULL, '{');
        json_open(&d.json, "files", '[');
    }
    for (int i = 0; i < call->count; i++) {
        d.path = call->operands[i];
        const int status = file_dump(&d);
        if (status > worst)
            worst = status;
    }
    if (call->json) {
        json_close(&d.json, ']');
        json_close(&d.json, '}');
        text_word(&d.out, "\n");
    }
    const int status = deliver(call, &d.out);
    return status > worst ? status : worst;
}
