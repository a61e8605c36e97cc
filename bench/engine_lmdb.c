/* SPDX-License-Identifier: MIT
 *
 * LMDB: a B+ tree in a memory map. One transaction a write, handed to the system without a sync
 * (MDB_NOSYNC with MDB_WRITEMAP: what is in the map survives the process, as the others' log does).
 * A session keeps one read transaction, reset and renewed for each read, and a cursor. It has no
 * cache of its own, no background thread and no filter.
 */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

struct store {
    MDB_env *env;
    MDB_dbi dbi;
};

struct session {
    struct store *store;
    MDB_txn *txn; /* for reading; reset between reads */
    MDB_cursor *cursor;
};

struct iter {
    struct session *session;
    MDB_val key, value;
    bool valid;
};

static int answer(int error, const char *what)
{
    if (error == 0)
        return ENGINE_OK;
    return error == MDB_NOTFOUND ? ENGINE_ABSENT : engine_fail(what, mdb_strerror(error));
}

static const char *version(void)
{
    return mdb_version(NULL, NULL, NULL);
}

static int store_close(void *p)
{
    struct store *s = p;
    mdb_env_close(s->env);
    free(s);
    return ENGINE_OK;
}

/* The map is made large enough for a tree whose pages are half full, and for its free list. */
static int store_open(const struct engine_options *o, void **out)
{
    struct store *s = calloc(1, sizeof *s);
    MDB_txn *txn = NULL;
    unsigned flags = MDB_NOSYNC | MDB_WRITEMAP | MDB_NOTLS;
    *out = NULL;
    if (!s)
        return engine_fail("open", "out of memory");
    if (o->direct)
        flags |= MDB_NORDAHEAD;
    if (strcmp(o->extra, "nowritemap") == 0)
        flags &= ~(unsigned)MDB_WRITEMAP;
    int error = mdb_env_create(&s->env);
    if (!error)
        error = mdb_env_set_mapsize(s->env, (size_t)(4 * o->data_bytes + (UINT64_C(1) << 30)));
    if (!error)
        error = mdb_env_set_maxreaders(s->env, 126);
    if (!error)
        error = mdb_env_open(s->env, o->path, flags, 0600);
    if (!error)
        error = mdb_txn_begin(s->env, NULL, 0, &txn);
    if (!error)
        error = mdb_dbi_open(txn, NULL, 0, &s->dbi);
    if (!error)
        error = mdb_txn_commit(txn);
    if (error) {
        (void)store_close(s);
        return answer(error, "open");
    }
    *out = s;
    return ENGINE_OK;
}

static void session_close(void *p)
{
    struct session *s = p;
    if (s->cursor)
        mdb_cursor_close(s->cursor);
    if (s->txn)
        mdb_txn_abort(s->txn);
    free(s);
}

static void *session_open(void *store)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->store = store;
    int error = mdb_txn_begin(s->store->env, NULL, MDB_RDONLY, &s->txn);
    if (!error)
        error = mdb_cursor_open(s->txn, s->store->dbi, &s->cursor);
    if (error) {
        (void)answer(error, "session");
        session_close(s);
        return NULL;
    }
    mdb_txn_reset(s->txn);
    return s;
}

/* LMDB's interface takes what it only reads as non-const. */
static MDB_val val_of(const void *data, size_t size)
{
    MDB_val v = {size, NULL};
    memcpy(&v.mv_data, &data, sizeof data);
    return v;
}

static int put(void *p, const void *key, size_t key_size, const void *value, size_t value_size,
               bool sync)
{
    struct session *s = p;
    MDB_txn *txn;
    MDB_val k = val_of(key, key_size), v = val_of(value, value_size);
    int error = mdb_txn_begin(s->store->env, NULL, 0, &txn);
    if (error)
        return answer(error, "put");
    error = mdb_put(txn, s->store->dbi, &k, &v, 0);
    if (error) {
        mdb_txn_abort(txn);
        return answer(error, "put");
    }
    error = mdb_txn_commit(txn);
    if (!error && sync)
        error = mdb_env_sync(s->store->env, 1);
    return answer(error, "put");
}

static int delete_key(void *p, const void *key, size_t key_size)
{
    struct session *s = p;
    MDB_txn *txn;
    MDB_val k = val_of(key, key_size);
    int error = mdb_txn_begin(s->store->env, NULL, 0, &txn);
    if (error)
        return answer(error, "delete");
    error = mdb_del(txn, s->store->dbi, &k, NULL);
    if (error) {
        mdb_txn_abort(txn);
        return answer(error, "delete");
    }
    return answer(mdb_txn_commit(txn), "delete");
}

static int get(void *p, const void *key, size_t key_size, void *buffer, size_t capacity,
               size_t *size)
{
    struct session *s = p;
    MDB_val k = val_of(key, key_size), v;
    int error = mdb_txn_renew(s->txn);
    if (error)
        return answer(error, "get");
    error = mdb_get(s->txn, s->store->dbi, &k, &v);
    if (!error) {
        *size = v.mv_size;
        memcpy(buffer, v.mv_data, v.mv_size < capacity ? v.mv_size : capacity);
    }
    mdb_txn_reset(s->txn);
    return answer(error, "get");
}

static void iter_move(struct iter *it, MDB_cursor_op op)
{
    const int error = mdb_cursor_get(it->session->cursor, &it->key, &it->value, op);
    if (error && error != MDB_NOTFOUND)
        (void)answer(error, "iterator");
    it->valid = error == 0;
}

static void *iter_open(void *p)
{
    struct iter *it = calloc(1, sizeof *it);
    if (!it)
        return NULL;
    it->session = p;
    int error = mdb_txn_renew(it->session->txn);
    if (!error)
        error = mdb_cursor_renew(it->session->txn, it->session->cursor);
    if (error) {
        (void)answer(error, "iterator");
        free(it);
        return NULL;
    }
    return it;
}

static void iter_seek(void *p, const void *key, size_t key_size)
{
    struct iter *it = p;
    it->key = val_of(key, key_size);
    iter_move(it, MDB_SET_RANGE);
}

static void iter_seek_first(void *p)
{
    iter_move(p, MDB_FIRST);
}

static void iter_seek_last(void *p)
{
    iter_move(p, MDB_LAST);
}

static void iter_next(void *p)
{
    iter_move(p, MDB_NEXT);
}

static void iter_prev(void *p)
{
    iter_move(p, MDB_PREV);
}

static bool iter_valid(void *p)
{
    const struct iter *it = p;
    return it->valid;
}

static const void *iter_key(void *p, size_t *size)
{
    const struct iter *it = p;
    *size = it->key.mv_size;
    return it->key.mv_data;
}

static const void *iter_value(void *p, size_t *size)
{
    const struct iter *it = p;
    *size = it->value.mv_size;
    return it->value.mv_data;
}

static void iter_close(void *p)
{
    struct iter *it = p;
    mdb_txn_reset(it->session->txn);
    free(it);
}

static int flush(void *p)
{
    struct store *s = p;
    return answer(mdb_env_sync(s->env, 1), "flush");
}

extern const struct engine engine_lmdb;
const struct engine engine_lmdb = {
    .name = "lmdb",
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
