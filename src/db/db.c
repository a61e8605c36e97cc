/* SPDX-License-Identifier: MIT
 *
 * Opening and closing a store.
 */
#include "db/asked.h"
#include "db/background.h"
#include "db/follow.h"
#include "db/keyspace.h"
#include "db/life.h"
#include "db/recover.h"
#include "db/scan.h"
#include "db/write.h"
#include "tamiz/tamiz.h"
#include "version/signature.h"

enum { CLOSE_FLUSH_BYTES = 256 << 10 }; /* a closing store flushes what would take long to replay */

/* ---- opening ---- */

/* The directory, made where it is wanted; *path must be one or become one. */
static tamiz_status reach_directory(struct op *op, struct store *s)
{
    bool exists = false;
    tamiz_file_info info;
    tamiz_status st = env_path_info(op, s->env, s->directory, &exists, &info);
    if (st != TAMIZ_OK)
        return st;
    if (exists && !info.is_directory)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT,
                       "%s: a file stands here, not a store's directory", s->directory);
    if (exists)
        return TAMIZ_OK;
    if (!s->options.create_if_missing || s->options.read_only) {
        op_fail(op, TAMIZ_NOT_FOUND, "%s: no store here", s->directory);
        return TAMIZ_NOT_FOUND;
    }
    return env_make_directory(op, s->env, s->directory);
}

/* The open was refused. Where the directory is somebody else's, nothing of ours stays in it. */
static void leave_foreign(struct store *s)
{
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, &s->alloc, &nowhere);
    if (!s->lock_made || store_signature(&op, s->env, s->directory) != TAMIZ_NOT_FOUND)
        return;
    char *path = store_path(&op, s, FILE_LOCK, 0);
    if (path)
        (void)env_remove(&op, s->env, path);
    mem_free_text(&s->alloc, path);
}

static tamiz_status store_start(struct op *op, struct store *s)
{
    tamiz_status st = TAMIZ_OK;
    TRY(reach_directory(op, s));
    if (st == TAMIZ_OK)
        TRY(store_lock(op, s));
    if (st == TAMIZ_OK)
        TRY(manifest_init(op, s->env, &s->alloc, s->directory, &s->manifest));
    if (st == TAMIZ_OK)
        TRY(s->options.read_only ? follow_open(op, s) : recover(op, s));
    if (st != TAMIZ_OK || s->options.read_only)
        goto done;
    remove_garbage(op, s);
    TRY(background_start(op, s));
done:
    return st;
}

tamiz_status tamiz_open(const char *path, const tamiz_options *options, tamiz **db)
{
    if (!db)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "db: NULL where the handle should go");
    *db = NULL;
    tamiz_options taken = TAMIZ_OPTIONS_INIT;
    tamiz_status st = store_options(path, options, &taken);
    if (st != TAMIZ_OK)
        return st;
    struct loose_op *l = NULL;
    struct store *s = NULL;
    st = store_make(path, &taken, &l, &s);
    if (!s)
        return st;
    if (st == TAMIZ_OK)
        st = store_start(&l->op, s);
    if (st == TAMIZ_OK) {
        counters_sum(&s->first->ended, &l->count);
        *db = s->first;
        store_event(s, TAMIZ_EVENT_OPEN, "%s opened", s->directory);
    } else {
        if (s->epoch.slots)
            background_stop(s);
        st = op_publish(&l->op, st);
        if (st == TAMIZ_NOT_FOUND)
            op_refuse(st, "%s: no store here", path);
        leave_foreign(s);
        store_free(&l->op, s);
    }
    mem_free(&alloc_libc, l, sizeof *l);
    return st;
}

/* ---- closing ---- */

/* Writes in memory, of all keyspaces. mutex held. */
struct in_memory {
    bool active, sealed, unlogged;
};

static struct in_memory look_at_memory(const struct store *s)
{
    struct in_memory m = {false, false, false};
    for (size_t i = 0; i < s->keyspace_count; i++) {
        const struct view *v = atomic_load_explicit(&s->keyspaces[i]->view, memory_order_relaxed);
        m.active |= memtable_count(v->memtables[0]->memtable) > 0;
        m.sealed |= v->memtable_count > 1;
        m.unlogged |= view_unlogged(v);
    }
    return m;
}

/* What would take long to replay goes to a table; the rest stays in a log that says where it ends.
 */
static tamiz_status settle(struct op *op, struct store *s)
{
    if (s->options.read_only)
        return TAMIZ_OK;
    bool broken = false;
    mutex_lock(&s->log_mutex);
    for (size_t i = 0; i < s->log_count; i++)
        broken |= s->logs[i].writer.broken;
    const bool large = s->logs[s->log_count - 1].writer.end > CLOSE_FLUSH_BYTES;
    mutex_unlock(&s->log_mutex);
    mutex_lock(&s->mutex);
    const struct in_memory m = look_at_memory(s);
    mutex_unlock(&s->mutex);
    const bool nowhere = (broken && (m.active || m.sealed)) || m.unlogged;
    return nowhere || (m.active && (large || m.sealed)) ? db_flush_all(op, s) : TAMIZ_OK;
}

/* The last record of a clean close: all before it is on the disk. */
static tamiz_status seal_logs(struct op *op, struct store *s)
{
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->log_mutex);
    TRY(store_sync_logs(op, s));
    if (!s->logs[s->log_count - 1].writer.broken)
        TRY(log_seal(op, &s->logs[s->log_count - 1].writer));
done:
    mutex_unlock(&s->log_mutex);
    return st;
}

tamiz_status tamiz_close(tamiz *db)
{
    if (!db)
        return TAMIZ_OK;
    struct store *s = db->store;
    if (!atomic_load_explicit(s->fork_guard, memory_order_relaxed))
        return store_check(db); /* a child must not flush or delete what is its parent's */
    if (db != s->first)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "%s: keyspace %s is closed with its store, by the handle of tamiz_open",
                         s->directory, db->name);
    mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->keyspace_count; i++)
        iters_forget(s->keyspaces[i], NULL);
    const bool held = s->iters || s->oldest_snapshot;
    const bool iterators = s->iters != NULL;
    mutex_unlock(&s->mutex);
    if (held)
        return op_refuse(TAMIZ_BUSY, "%s: %s still open; nothing was closed", s->directory,
                         iterators ? "iterators are" : "snapshots are");
    struct loose_op *l = loose_op_new(&s->alloc);
    if (!l)
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    tamiz_status st = settle(&l->op, s);
    env_point(s->env, "close.wait");
    background_stop(s);
    if (st == TAMIZ_OK && !s->options.read_only)
        st = seal_logs(&l->op, s);
    st = op_publish(&l->op, st);
    store_free(&l->op, s);
    mem_free(&alloc_libc, l, sizeof *l);
    return st;
}

/* ---- health ---- */

static const struct standing_error *standing_of(const struct tamiz *db)
{
    return db->flush_error.status != TAMIZ_OK ? &db->flush_error : &db->merge_error;
}

tamiz_status tamiz_health(tamiz *db)
{
    const tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    mutex_lock(&s->mutex);
    const struct standing_error *e = standing_of(db);
    for (size_t i = 0; i < s->keyspace_count && e->status == TAMIZ_OK; i++)
        e = standing_of(s->keyspaces[i]);
    const tamiz_status standing = s->write_error ? TAMIZ_READ_ONLY : e->status;
    if (standing < 0)
        op_refuse(standing, "%s",
                  s->write_error ? "a write reached the log but not memory" : e->text);
    mutex_unlock(&s->mutex);
    return standing;
}

tamiz_status tamiz_step(tamiz *db, uint64_t budget_us, bool *more)
{
    if (!more)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "more: NULL where the answer should go");
    *more = false;
    const tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    const uint64_t now = env_monotonic_ns(s->env), most = UINT64_MAX - now;
    const uint64_t end = budget_us < most / 1000 ? now + budget_us * 1000 : UINT64_MAX;
    if (s->options.sync == TAMIZ_SYNC_INTERVAL && !s->options.read_only && write_sync_is_due(s))
        (void)tamiz_sync(db); /* a failure stands in the log and meets the next writer */
    while (background_step(s) && env_monotonic_ns(s->env) < end)
        ;
    *more = background_pending(s);
    return tamiz_health(db);
}
