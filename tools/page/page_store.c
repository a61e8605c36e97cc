/* SPDX-License-Identifier: MIT
 *
 * The store for the page: one directory on a disk in memory, all work done inside calls.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "db/view.h"
#include "page_inside.h"
#include "tamiz/env.h"

static int not_open(void)
{
    return op_refuse(TAMIZ_CLOSED, "no store is open");
}

struct page_store *page_store_new(void)
{
    struct page_store *s = mem_new_array(&alloc_libc, 1, sizeof *s);
    if (!s)
        return NULL;
    s->env = tamiz_env_memory_new();
    if (s->env && s->env->ops->make_directory(s->env->ctx, PAGE_DIRECTORY) == 0)
        return s;
    page_store_free(s);
    return NULL;
}

void page_store_free(struct page_store *s)
{
    if (!s)
        return;
    (void)tamiz_close(s->db); /* its disk goes with it */
    if (s->env)
        tamiz_env_memory_free(s->env);
    mem_free(&alloc_libc, s, sizeof *s);
}

int page_store_file(struct page_store *s, const char *name, const void *data, size_t size)
{
    const tamiz_env_ops *ops = s->env->ops;
    char path[FILE_NAME_MAX + sizeof PAGE_DIRECTORY];
    uint64_t number;
    void *file;
    if (filename_parse(name, &number) == FILE_OTHER)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "%.60s: not the name of a store's file", name);
    (void)snprintf(path, sizeof path, PAGE_DIRECTORY "/%s", name);
    int error = ops->open(s->env->ctx, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file);
    if (!error) {
        error = ops->write(s->env->ctx, file, 0, data, size);
        const int closed = ops->close(s->env->ctx, file);
        error = error ? error : closed;
    }
    return error ? op_refuse(TAMIZ_IO_ERROR, "%s: %s", name, strerror(-error)) : TAMIZ_OK;
}

int page_store_open(struct page_store *s, const char *options)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_status st = tamiz_options_set(&o, options);
    if (st != TAMIZ_OK)
        return st;
    o.threads = 0;
    o.env = s->env;
    st = tamiz_close(s->db);
    s->db = NULL;
    return st ? st : tamiz_open(PAGE_DIRECTORY, &o, &s->db);
}

int page_store_put(struct page_store *s, const char *key, size_t key_size, const char *value,
                   size_t value_size)
{
    return s->db ? tamiz_put(s->db, key, key_size, value, value_size, NULL) : not_open();
}

int page_store_delete(struct page_store *s, const char *key, size_t key_size)
{
    return s->db ? tamiz_delete(s->db, key, key_size, NULL) : not_open();
}

int page_store_fill(struct page_store *s, const char *text, size_t size, uint32_t first)
{
    struct slice left = slice_of(text, size), line;
    tamiz_status st = s->db ? TAMIZ_OK : not_open();
    for (; st == TAMIZ_OK && page_line_next(&left, &line); first++) {
        char value[16];
        const int length = snprintf(value, sizeof value, "%u", first);
        st = tamiz_put(s->db, line.data, line.size, value, (size_t)length, NULL);
    }
    return st;
}

static tamiz_read_options reading(int filters)
{
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    o.use_filters = filters != 0;
    return o;
}

int page_store_get(struct page_store *s, const char *key, size_t key_size, int filters,
                   struct page_bytes *value)
{
    const tamiz_read_options o = reading(filters);
    *value = (struct page_bytes){0};
    return s->db ? tamiz_get(s->db, key, key_size, &value->data, &value->size, &o) : not_open();
}

int page_store_explain(struct page_store *s, const char *key, size_t key_size, int filters,
                       struct page_bytes *json)
{
    const tamiz_read_options o = reading(filters);
    char *text = NULL;
    const tamiz_status st =
        s->db ? tamiz_explain_json(s->db, key, key_size, &o, &text) : not_open();
    *json = (struct page_bytes){text, text ? strlen(text) : 0};
    return st;
}

int page_store_ask(struct page_store *s, const char *text, size_t size, int filters,
                   uint32_t *found)
{
    const tamiz_read_options o = reading(filters);
    struct slice left = slice_of(text, size), line;
    tamiz_status st = s->db ? TAMIZ_OK : not_open();
    *found = 0;
    while (st >= TAMIZ_OK && page_line_next(&left, &line)) {
        size_t value_size;
        st = tamiz_get_into(s->db, line.data, line.size, NULL, 0, &value_size, &o);
        *found += st == TAMIZ_OK;
    }
    return st < 0 ? st : TAMIZ_OK;
}

int page_store_flush(struct page_store *s)
{
    return s->db ? tamiz_flush(s->db) : not_open();
}

int page_store_compact(struct page_store *s)
{
    return s->db ? tamiz_compact(s->db, NULL, 0, NULL, 0) : not_open();
}

int page_store_step(struct page_store *s, uint32_t *more)
{
    bool left = false;
    const tamiz_status st = s->db ? tamiz_step(s->db, 1, &left) : not_open();
    *more = left;
    return st;
}

/* The words of the first find. */
static void keep_find(void *ctx, const char *text)
{
    char *first = ctx;
    if (!first[0])
        (void)snprintf(first, OP_TEXT_MAX, "%s", text);
}

int page_store_verify(struct page_store *s)
{
    char first[OP_TEXT_MAX] = "";
    tamiz_report report = TAMIZ_REPORT_INIT;
    report.find = keep_find;
    report.ctx = first;
    const tamiz_status st = s->db ? tamiz_verify(s->db, &report) : not_open();
    return st == TAMIZ_CORRUPTION && first[0] ? op_refuse(st, "%s", first) : st;
}

int page_store_property(struct page_store *s, const char *name, struct page_bytes *text)
{
    char *words = NULL;
    const tamiz_status st = s->db ? tamiz_property(s->db, name, &words) : not_open();
    *text = (struct page_bytes){words, words ? strlen(words) : 0};
    return st;
}

/* ---- pictures ---- */

/* Bytes that are no printable ASCII are written \xNN, as the tool does, so that it is text. */
void page_string_json(struct buf *out, struct slice text)
{
    buf_text(out, "\"");
    for (size_t i = 0; i < text.size && i < 200; i++) {
        const uint8_t c = text.data[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\u%04x", c);
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\\\x%02x", c);
        else
            buf_append(out, &text.data[i], 1);
    }
    buf_text(out, "\"");
}

static tamiz_status table_json(struct op *op, struct buf *out, const struct table_meta *m)
{
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    const tamiz_status st = table_load(op, m->table);
    if (st != TAMIZ_OK)
        return st;
    filter_view_info(table_filter(m->table), &info);
    buf_printf(out,
               "{\"table\":%llu,\"bytes\":%llu,\"entries\":%llu,\"tombstones\":%llu,\"blocks\":%u,"
               "\"smallest\":",
               (unsigned long long)m->number, (unsigned long long)m->file_size,
               (unsigned long long)m->entries, (unsigned long long)m->tombstones,
               table_blocks(m->table));
    page_string_json(out, m->smallest);
    buf_text(out, ",\"largest\":");
    page_string_json(out, m->largest);
    buf_text(out, ",\"missing\":");
    const char *missing = table_filter_missing(m->table);
    page_string_json(out, slice_of(missing, strlen(missing)));
    buf_text(out, ",\"filter\":{");
    page_info_json(out, &info);
    buf_printf(out, "},\"keys\":%llu}", (unsigned long long)m->keys);
    return TAMIZ_OK;
}

static tamiz_status runs_json(struct op *op, struct buf *out, const struct version *v)
{
    tamiz_status st = TAMIZ_OK;
    for (uint32_t r = 0; r < v->run_count && st == TAMIZ_OK; r++) {
        const struct run *run = &v->runs[r];
        buf_printf(out, "%s{\"level\":%u,\"run\":%llu,\"tables\":[", r ? "," : "", run->level,
                   (unsigned long long)run->id);
        for (uint32_t i = 0; i < run->count && st == TAMIZ_OK; i++) {
            buf_text(out, i ? "," : "");
            st = table_json(op, out, run->tables[i]);
        }
        buf_text(out, "]}");
    }
    return st;
}

int page_store_tables(struct page_store *s, struct page_bytes *json)
{
    *json = (struct page_bytes){0};
    if (!s->db)
        return not_open();
    struct store *store = s->db->store;
    struct buf out = buf_init(&alloc_libc);
    struct op op;
    uint64_t seq;
    struct epoch_slot *slot = epoch_enter(&store->epoch);
    struct view *view = view_acquire(s->db, &seq);
    epoch_stay_outside(slot);
    op_init(&op, &store->alloc, &slot->count);
    buf_text(&out, "{\"memtables\":[");
    for (uint32_t i = 0; i < view->memtable_count; i++)
        buf_printf(&out, "%s%zu", i ? "," : "", memtable_bytes(view->memtables[i]->memtable));
    buf_text(&out, "],\"runs\":[");
    const tamiz_status st = runs_json(&op, &out, view->version);
    buf_text(&out, "]}");
    epoch_leave(slot);
    view_unref(view);
    if (st == TAMIZ_OK)
        return page_hand(&out, json);
    buf_free(&out);
    return op_publish(&op, st);
}

/* ---- files ---- */

struct listing {
    struct buf out;
    const tamiz_env *env;
    bool any;
};

static void list_file(void *ctx, const char *name)
{
    struct listing *l = ctx;
    char path[FILE_NAME_MAX + sizeof PAGE_DIRECTORY];
    tamiz_file_info info;
    uint64_t number;
    const enum file_kind kind = filename_parse(name, &number);
    if (kind == FILE_OTHER || kind == FILE_LOCK)
        return;
    (void)snprintf(path, sizeof path, PAGE_DIRECTORY "/%s", name);
    if (l->env->ops->path_info(l->env->ctx, path, &info) != 0)
        return;
    buf_printf(&l->out, "%s{\"name\":\"%s\",\"size\":%llu}", l->any ? "," : "", name,
               (unsigned long long)info.size);
    l->any = true;
}

int page_store_files(struct page_store *s, struct page_bytes *json)
{
    struct listing l = {buf_init(&alloc_libc), s->env, false};
    buf_text(&l.out, "[");
    const int error = s->env->ops->list(s->env->ctx, PAGE_DIRECTORY, list_file, &l);
    buf_text(&l.out, "]");
    if (!error)
        return page_hand(&l.out, json);
    buf_free(&l.out);
    *json = (struct page_bytes){0};
    return op_refuse(TAMIZ_IO_ERROR, "%s", strerror(-error));
}

int page_store_read(struct page_store *s, const char *name, struct page_bytes *bytes)
{
    const tamiz_env_ops *ops = s->env->ops;
    char path[FILE_NAME_MAX + sizeof PAGE_DIRECTORY];
    tamiz_file_info info = {0};
    void *file;
    *bytes = (struct page_bytes){0};
    (void)snprintf(path, sizeof path, PAGE_DIRECTORY "/%.*s", FILE_NAME_MAX - 1, name);
    const int error = ops->open(s->env->ctx, path, TAMIZ_OPEN_READ, &file);
    if (error)
        return op_refuse(TAMIZ_IO_ERROR, "%s: %s", name, strerror(-error));
    int64_t got = ops->file_info(s->env->ctx, file, &info);
    void *data = got ? NULL : page_alloc((size_t)info.size);
    if (data)
        got = ops->read(s->env->ctx, file, 0, data, (size_t)info.size);
    (void)ops->close(s->env->ctx, file); /* only read */
    if (!data || got != (int64_t)info.size) {
        page_free(data);
        return op_refuse(TAMIZ_IO_ERROR, "%s: could not be read whole", name);
    }
    *bytes = (struct page_bytes){data, (size_t)got};
    return TAMIZ_OK;
}
