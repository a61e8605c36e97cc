/* SPDX-License-Identifier: MIT
 *
 * tamiz, as any embedder would use it: through tamiz/tamiz.h and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "tamiz/tamiz.h"

static int answer(tamiz_status st, const char *what)
{
    if (st == TAMIZ_OK)
        return ENGINE_OK;
    return st == TAMIZ_NOT_FOUND ? ENGINE_ABSENT : engine_fail(what, tamiz_error_detail());
}

static int store_open(const struct engine_options *o, void **store)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz *db = NULL;
    char text[400], filter[40] = "none";
    if (o->filter_bits > 0)
        (void)snprintf(filter, sizeof filter, "blocked:%g", o->filter_bits);
    (void)snprintf(text, sizeof text,
                   "filter=%s cache=%llu memtable=%llu block=%llu direct_io=%s compression=%s "
                   "threads=%u",
                   filter, (unsigned long long)o->cache, (unsigned long long)o->memtable,
                   (unsigned long long)o->block, o->direct ? "true" : "false",
                   o->zstd ? "zstd:1" : "none", o->threads);
    *store = NULL;
    if (tamiz_options_set(&options, text) != TAMIZ_OK)
        return engine_fail("options", tamiz_error_detail());
    if (o->extra[0] && tamiz_options_set(&options, o->extra) != TAMIZ_OK)
        return engine_fail("options", tamiz_error_detail());
    options.create_if_missing = o->create;
    if (tamiz_open(o->path, &options, &db) != TAMIZ_OK)
        return engine_fail("open", tamiz_error_detail());
    *store = db;
    return ENGINE_OK;
}

static int check(const char *extra)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    return tamiz_options_set(&options, extra) == TAMIZ_OK
               ? ENGINE_OK
               : engine_fail("options", tamiz_error_detail());
}

static int store_close(void *store)
{
    return answer(tamiz_close(store), "close");
}

/* Nothing is kept per thread: the store itself is the session. */
static void *session_open(void *store)
{
    return store;
}

static void session_close(void *session)
{
    (void)session;
}

static int put(void *session, const void *key, size_t key_size, const void *value,
               size_t value_size, bool sync)
{
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    options.sync = true;
    return answer(tamiz_put(session, key, key_size, value, value_size, sync ? &options : NULL),
                  "put");
}

static int delete_key(void *session, const void *key, size_t key_size)
{
    return answer(tamiz_delete(session, key, key_size, NULL), "delete");
}

static int delete_range(void *session, const void *from, size_t from_size, const void *to,
                        size_t to_size)
{
    return answer(tamiz_delete_range(session, from, from_size, to, to_size, NULL), "delete_range");
}

static int get(void *session, const void *key, size_t key_size, void *buffer, size_t capacity,
               size_t *size)
{
    return answer(tamiz_get_into(session, key, key_size, buffer, capacity, size, NULL), "get");
}

enum { MULTI_MAX = 256 };

static int multi_get(void *session, size_t n, const void *const keys[], const size_t key_sizes[],
                     void *const buffers[], size_t capacity, size_t sizes[])
{
    void *values[MULTI_MAX];
    tamiz_status statuses[MULTI_MAX];
    if (n > MULTI_MAX)
        return engine_fail("multi_get", "too many keys");
    if (tamiz_multi_get(session, n, keys, key_sizes, values, sizes, statuses, NULL) != TAMIZ_OK)
        return engine_fail("multi_get", tamiz_error_detail());
    for (size_t i = 0; i < n; i++) {
        if (statuses[i] == TAMIZ_OK)
            memcpy(buffers[i], values[i], sizes[i] < capacity ? sizes[i] : capacity);
        else
            sizes[i] = SIZE_MAX;
        tamiz_free(values[i]);
    }
    return ENGINE_OK;
}

static void *iter_open(void *session)
{
    tamiz_iter *iter;
    if (tamiz_iter_open(session, NULL, &iter) != TAMIZ_OK)
        (void)engine_fail("iterator", tamiz_error_detail());
    return iter;
}

static void *prefix_open(void *session, const void *prefix, size_t size)
{
    tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    tamiz_iter *iter;
    options.prefix = prefix;
    options.prefix_size = size;
    if (tamiz_iter_open(session, &options, &iter) != TAMIZ_OK)
        (void)engine_fail("iterator", tamiz_error_detail());
    return iter;
}

static void iter_seek(void *iter, const void *key, size_t key_size)
{
    tamiz_iter_seek(iter, key, key_size);
}

static void iter_seek_first(void *iter)
{
    tamiz_iter_seek_first(iter);
}

static void iter_seek_last(void *iter)
{
    tamiz_iter_seek_last(iter);
}

static void iter_next(void *iter)
{
    tamiz_iter_next(iter);
}

static void iter_prev(void *iter)
{
    tamiz_iter_prev(iter);
}

static bool iter_valid(void *iter)
{
    return tamiz_iter_valid(iter);
}

static const void *iter_key(void *iter, size_t *size)
{
    return tamiz_iter_key(iter, size);
}

static const void *iter_value(void *iter, size_t *size)
{
    return tamiz_iter_value(iter, size);
}

static void iter_close(void *iter)
{
    tamiz_iter_close(iter);
}

static int flush(void *store)
{
    return answer(tamiz_flush(store), "flush");
}

static bool settled(void *store)
{
    char *text = NULL;
    const bool is = tamiz_property(store, "settled", &text) != TAMIZ_OK || text[0] == 't';
    tamiz_free(text);
    return is;
}

static int compact(void *store)
{
    return answer(tamiz_compact(store, NULL, 0, NULL, 0), "compact");
}

static void counts(void *store, struct engine_counts *c)
{
    tamiz_stats stats = TAMIZ_STATS_INIT;
    c->known = tamiz_stats_get(store, &stats) == TAMIZ_OK;
    c->device_reads = stats.total.device_reads;
    c->device_read_bytes = stats.total.device_read_bytes;
    c->memory_bytes = stats.memory_bytes;
}

static char *describe(void *store)
{
    static const char *const names[] = {"options", "levels", "stats"};
    size_t size = 0;
    char *all = calloc(1, 1);
    for (size_t i = 0; all && i < sizeof names / sizeof names[0]; i++) {
        char *text = NULL;
        if (tamiz_property(store, names[i], &text) != TAMIZ_OK)
            continue;
        const size_t more = strlen(text);
        char *longer = realloc(all, size + more + 2);
        if (longer) {
            all = longer;
            memcpy(all + size, text, more);
            size += more;
            all[size++] = '\n';
            all[size] = 0;
        }
        tamiz_free(text);
    }
    return all;
}

extern const struct engine engine_tamiz;
const struct engine engine_tamiz = {
    .name = "tamiz",
    .version = tamiz_version,
    .check = check,
    .open = store_open,
    .close = store_close,
    .session_open = session_open,
    .session_close = session_close,
    .put = put,
    .remove = delete_key,
    .remove_range = delete_range,
    .get = get,
    .multi_get = multi_get,
    .iter_open = iter_open,
    .prefix_open = prefix_open,
    .iter_seek = iter_seek,
    .iter_seek_first = iter_seek_first,
    .iter_seek_last = iter_seek_last,
    .iter_next = iter_next,
    .iter_prev = iter_prev,
    .iter_valid = iter_valid,
    .iter_key = iter_key,
    .iter_value = iter_value,
    .iter_close = iter_close,
    .flush = flush,
    .settled = settled,
    .compact = compact,
    .counts = counts,
    .describe = describe,
};
