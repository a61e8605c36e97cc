/* SPDX-License-Identifier: MIT
 *
 * WiredTiger: a B+ tree in a cache, with a write-ahead log that is written and not synced. One
 * session and cursor a thread; leaf pages of 4 KiB would cost it, so they keep its default.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wiredtiger.h>

#include "engine.h"

struct session {
    WT_SESSION *session;
    WT_CURSOR *cursor;  /* for puts and gets */
    WT_SESSION *synced; /* whose writes wait for the disk; opened with the first */
    WT_CURSOR *synced_cursor;
};

struct iter {
    WT_CURSOR *cursor;
    bool valid;
};

static int answer(int error, const char *what)
{
    if (error == 0)
        return ENGINE_OK;
    return error == WT_NOTFOUND ? ENGINE_ABSENT : engine_fail(what, wiredtiger_strerror(error));
}

static const char *version(void)
{
    return wiredtiger_version(NULL, NULL, NULL);
}

static int table_create(WT_CONNECTION *connection, const struct engine_options *o)
{
    WT_SESSION *session;
    char text[200];
    (void)snprintf(text, sizeof text, "key_format=u,value_format=u,access_pattern_hint=random%s%s",
                   o->extra[0] ? "," : "", o->extra);
    int error = connection->open_session(connection, NULL, NULL, &session);
    if (error)
        return error;
    error = session->create(session, "table:bench", text);
    (void)session->close(session, NULL);
    return error;
}

static int store_open(const struct engine_options *o, void **out)
{
    WT_CONNECTION *connection = NULL;
    char text[300];
    *out = NULL;
    if (o->zstd)
        return engine_fail("options", "this WiredTiger has no zstd");
    const uint64_t cache = o->cache < (1 << 20) ? 1 << 20 : o->cache;
    (void)snprintf(text, sizeof text,
                   "%scache_size=%llu,session_max=100,log=(enabled=true,file_max=64MB),"
                   "transaction_sync=(enabled=false),checkpoint=(log_size=512MB),"
                   "eviction=(threads_min=1,threads_max=%u)%s",
                   o->create ? "create," : "", (unsigned long long)cache,
                   o->threads ? o->threads : 1, o->direct ? ",direct_io=(data)" : "");
    int error = wiredtiger_open(o->path, NULL, text, &connection);
    if (!error)
        error = table_create(connection, o);
    if (error)
        return answer(error, "open");
    *out = connection;
    return ENGINE_OK;
}

static int store_close(void *p)
{
    WT_CONNECTION *connection = p;
    return answer(connection->close(connection, NULL), "close");
}

static int open_cursor(WT_CONNECTION *connection, const char *config, WT_SESSION **session,
                       WT_CURSOR **cursor)
{
    int error = connection->open_session(connection, NULL, config, session);
    if (!error)
        error = (*session)->open_cursor(*session, "table:bench", NULL, "overwrite=true", cursor);
    return error;
}

static void session_close(void *p)
{
    struct session *s = p;
    if (s->synced)
        (void)s->synced->close(s->synced, NULL);
    if (s->session)
        (void)s->session->close(s->session, NULL);
    free(s);
}

static void *session_open(void *store)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    int error = open_cursor(store, NULL, &s->session, &s->cursor);
    if (!error)
        error = open_cursor(store, NULL, &s->synced, &s->synced_cursor);
    if (error) {
        (void)answer(error, "session");
        session_close(s);
        return NULL;
    }
    return s;
}

static void cursor_key(WT_CURSOR *cursor, const void *key, size_t size)
{
    const WT_ITEM item = {.data = key, .size = size};
    cursor->set_key(cursor, &item);
}

static int put(void *p, const void *key, size_t key_size, const void *value, size_t value_size,
               bool sync)
{
    struct session *s = p;
    WT_CURSOR *cursor = sync ? s->synced_cursor : s->cursor;
    const WT_ITEM item = {.data = value, .size = value_size};
    if (sync && s->synced->begin_transaction(s->synced, "sync=true") != 0)
        return engine_fail("put", "no transaction");
    cursor_key(cursor, key, key_size);
    cursor->set_value(cursor, &item);
    int error = cursor->insert(cursor);
    if (sync && error)
        (void)s->synced->rollback_transaction(s->synced, NULL);
    else if (sync)
        error = s->synced->commit_transaction(s->synced, NULL);
    return answer(error, "put");
}

static int delete_key(void *p, const void *key, size_t key_size)
{
    struct session *s = p;
    cursor_key(s->cursor, key, key_size);
    return answer(s->cursor->remove(s->cursor), "delete");
}

static int get(void *p, const void *key, size_t key_size, void *buffer, size_t capacity,
               size_t *size)
{
    struct session *s = p;
    WT_ITEM value;
    cursor_key(s->cursor, key, key_size);
    int error = s->cursor->search(s->cursor);
    if (!error)
        error = s->cursor->get_value(s->cursor, &value);
    if (!error) {
        *size = value.size;
        memcpy(buffer, value.data, value.size < capacity ? value.size : capacity);
    }
    (void)s->cursor->reset(s->cursor);
    return answer(error, "get");
}

static void *iter_open(void *p)
{
    struct session *s = p;
    struct iter *it = calloc(1, sizeof *it);
    if (!it)
        return NULL;
    const int error = s->session->open_cursor(s->session, "table:bench", NULL, NULL, &it->cursor);
    if (error) {
        (void)answer(error, "iterator");
        free(it);
        return NULL;
    }
    return it;
}

static void iter_next(void *p)
{
    struct iter *it = p;
    it->valid = it->cursor->next(it->cursor) == 0;
}

static void iter_prev(void *p)
{
    struct iter *it = p;
    it->valid = it->cursor->prev(it->cursor) == 0;
}

static void iter_seek(void *p, const void *key, size_t key_size)
{
    struct iter *it = p;
    int exact = 0;
    cursor_key(it->cursor, key, key_size);
    it->valid = it->cursor->search_near(it->cursor, &exact) == 0;
    if (it->valid && exact < 0)
        iter_next(it);
}

static void iter_seek_first(void *p)
{
    struct iter *it = p;
    (void)it->cursor->reset(it->cursor);
    iter_next(it);
}

static void iter_seek_last(void *p)
{
    struct iter *it = p;
    (void)it->cursor->reset(it->cursor);
    iter_prev(it);
}

static bool iter_valid(void *p)
{
    const struct iter *it = p;
    return it->valid;
}

static const void *iter_key(void *p, size_t *size)
{
    struct iter *it = p;
    WT_ITEM item = {.data = "", .size = 0};
    (void)it->cursor->get_key(it->cursor, &item);
    *size = item.size;
    return item.data;
}

static const void *iter_value(void *p, size_t *size)
{
    struct iter *it = p;
    WT_ITEM item = {.data = "", .size = 0};
    (void)it->cursor->get_value(it->cursor, &item);
    *size = item.size;
    return item.data;
}

static void iter_close(void *p)
{
    struct iter *it = p;
    (void)it->cursor->close(it->cursor);
    free(it);
}

static int flush(void *p)
{
    WT_CONNECTION *connection = p;
    WT_SESSION *session;
    int error = connection->open_session(connection, NULL, NULL, &session);
    if (error)
        return answer(error, "flush");
    error = session->checkpoint(session, NULL);
    (void)session->close(session, NULL);
    return answer(error, "flush");
}

extern const struct engine engine_wiredtiger;
const struct engine engine_wiredtiger = {
    .name = "wiredtiger",
    .version = version,
    .open = store_open,
    .close = store_close,
    .session_open = session_open,
    .session_close = session_close,
    .put = put,
    .remove = delete_key,
    .get = get,
    .iter_open = iter_open,
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
};
