/* SPDX-License-Identifier: MIT
 *
 * Opening, closing, destroying: the store's life.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "db/background.h"
#include "db/follow.h"
#include "db/install.h"
#include "db/keyspace.h"
#include "db/life.h"
#include "db/options.h"
#include "db/recover.h"
#include "db/scan.h"
#include "db/write.h"
#include "tamiz/tamiz.h"
#include "version/signature.h"

enum { CLOSE_FLUSH_BYTES = 256 << 10 }; /* a closing store flushes what would take long to replay */

void store_event(const struct store *s, tamiz_event_kind kind, const char *format, ...)
{
    if (!s->options.log.event)
        return;
    char text[OP_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->options.log.event(s->options.log.ctx, kind, text);
}

uint64_t store_next_file(void *store)
{
    struct store *s = store;
    return atomic_fetch_add_explicit(&s->next_file, 1, memory_order_relaxed);
}

char *store_path(struct op *op, const struct store *s, enum file_kind kind, uint64_t number)
{
    char *path = filename_path(&s->alloc, s->directory, kind, number);
    if (!path)
        op_fail_memory(op);
    return path;
}

/* ---- making and unmaking ---- */

/* Of the open files a store may have, some are not tables: log, manifest, lock, one being written,
 * a directory. */
static uint32_t open_files_limit(const struct store *s)
{
    enum { OTHERS = 8, WHERE_NOT_KNOWN = 1024 };
    uint32_t most = s->options.max_open_files;
    if (!most) {
        most = env_open_files_limit(s->env);
        most = most ? most / 2 : WHERE_NOT_KNOWN;
    }
    return most > 2 * OTHERS ? most - OTHERS : OTHERS;
}

/* What needs no disk: memory, locks, caches. */
tamiz_status store_init(struct op *op, struct store *s)
{
    tamiz_status st = TAMIZ_OK;
    TRY(mutex_init(op, &s->install_mutex));
    TRY(mutex_init(op, &s->log_mutex));
    TRY(mutex_init(op, &s->mutex));
    TRY(mutex_init(op, &s->views_mutex));
    TRY(condition_init(op, &s->progress));
    TRY(condition_init(op, &s->work));
    TRY(epoch_init(op, &s->epoch, &s->alloc));
    TRY(file_pool_init(op, &s->files, s->env, open_files_limit(s)));
    s->opened_ns = env_monotonic_ns(s->env);
    s->fork_guard = fork_guard_new();
    s->cache = cache_new(&s->alloc, &s->epoch, (size_t)s->options.cache);
    TRY(s->fork_guard && s->cache ? TAMIZ_OK : op_fail_memory(op));
    TRY(keyspaces_reserve(op, s, 1));
    s->first = keyspace_new(op, s, 0, NULL, &s->options);
    TRY(s->first ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    keyspace_enlist(s, s->first);
done:
    return st;
}

/* All handles, those of dropped keyspaces too. */
static void keyspaces_free(struct store *s)
{
    for (size_t i = 0; i < s->keyspace_count; i++)
        keyspace_free(s->keyspaces[i]);
    while (s->dropped) {
        struct tamiz *next = s->dropped->next_dropped;
        keyspace_free(s->dropped);
        s->dropped = next;
    }
    mem_free(&s->alloc, s->keyspaces, s->keyspace_room * sizeof(struct tamiz *));
}

/* Frees everything; nothing runs any more. Safe at any stage of opening. */
void store_free(struct op *op, struct store *s)
{
    for (size_t i = 0; i < s->log_count; i++)
        (void)log_close(op, &s->logs[i].writer);
    mem_free(&s->alloc, s->logs, s->log_capacity * sizeof *s->logs);
    if (s->manifest.directory)
        manifest_close(op, &s->manifest);
    for (size_t i = 0; i < s->keyspace_count; i++)
        view_unref(s->keyspaces[i]->view);
    for (struct tamiz *db = s->dropped; db; db = db->next_dropped)
        view_unref(db->view);
    manifest_state_free(&s->alloc, &s->state);
    if (s->epoch.slots) {
        (void)epoch_reclaim(&s->epoch);
        store_collect(s);
    }
    obsolete_free(s, s->obsolete); /* what must not be removed yet: the next opening does */
    cache_free(s->cache); /* hands what readers held to the epoch */
    if (s->epoch.slots)
        keyspaces_free(s);
    epoch_free(&s->epoch);
    file_pool_free(&s->files);
    fork_guard_free(s->fork_guard);
    condition_free(&s->work);
    condition_free(&s->progress);
    mutex_free(&s->views_mutex);
    mutex_free(&s->mutex);
    mutex_free(&s->log_mutex);
    mutex_free(&s->install_mutex);
    if (s->lock)
        (void)env_unlock(op, s->env, s->lock);
    mem_free_text(&s->alloc, s->directory);
    const struct alloc alloc = {s->alloc.hook, NULL};
    mem_free(&alloc, s, sizeof *s);
}

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

tamiz_status store_lock(struct op *op, struct store *s)
{
    if (s->options.read_only)
        return TAMIZ_OK;
    char *path = store_path(op, s, FILE_LOCK, 0);
    if (!path)
        return TAMIZ_OUT_OF_MEMORY;
    bool exists = true;
    tamiz_file_info info;
    tamiz_status st = env_path_info(op, s->env, path, &exists, &info);
    if (st == TAMIZ_OK)
        st = env_lock(op, s->env, path, &s->lock);
    s->lock_made = st == TAMIZ_OK && !exists;
    mem_free_text(&s->alloc, path);
    return st;
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

tamiz_status store_options(const char *path, const tamiz_options *options, tamiz_options *taken)
{
    if (!path || !*path)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "path: %s", path ? "empty" : "NULL");
    return options_take(options, taken);
}

struct loose_op *loose_op_new(const struct alloc *alloc)
{
    struct loose_op *l = mem_new_array(&alloc_libc, 1, sizeof *l);
    if (l)
        op_init(&l->op, alloc, &l->count);
    return l;
}

tamiz_status store_make(const char *path, const tamiz_options *options, struct loose_op **loose,
                        struct store **store)
{
    const struct alloc alloc = {options->allocator, NULL}; /* its own count is in the store */
    struct loose_op *l = loose_op_new(&alloc);
    struct store *s = l ? mem_new_array(&alloc, 1, sizeof *s) : NULL;
    if (!s) {
        mem_free(&alloc_libc, l, sizeof *l);
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    }
    *loose = l;
    *store = s;
    s->options = *options;
    s->alloc = (struct alloc){options->allocator, &s->memory};
    s->env = options->env;
    l->op.alloc = &s->alloc;
    tamiz_status st = env_absolute_path(&l->op, s->env, &s->alloc, path, &s->directory);
    if (st == TAMIZ_OK)
        st = store_init(&l->op, s);
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

/* ---- destroying ---- */

struct doomed {
    struct buf names; /* NUL-terminated, one behind the other */
};

static void doom(void *ctx, const char *name)
{
    struct doomed *d = ctx;
    uint64_t number;
    if (filename_parse(name, &number) != FILE_OTHER)
        buf_append(&d->names, name, strlen(name) + 1);
}

/* CURRENT goes first: without it there is no store, whatever else is left after a crash. Manifests
 * go last: by them the rest is known as a store's (store_signature) when it is destroyed again. */
enum turn { FIRST, MIDDLE, LAST, TURNS };

static enum turn turn_of(enum file_kind kind)
{
    return kind == FILE_CURRENT ? FIRST : kind == FILE_MANIFEST ? LAST : MIDDLE;
}

static tamiz_status remove_named(struct op *op, const tamiz_env *env, const char *directory,
                                 const struct doomed *d, enum turn turn)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t at = 0; st == TAMIZ_OK && at < d->names.size;
         at += strlen((const char *)d->names.data + at) + 1) {
        uint64_t number = 0;
        const enum file_kind kind = filename_parse((const char *)d->names.data + at, &number);
        if (turn_of(kind) != turn || kind == FILE_LOCK)
            continue;
        char *path = filename_path(&alloc_libc, directory, kind, number);
        st = path ? env_remove(op, env, path) : op_fail_memory(op);
        mem_free_text(&alloc_libc, path);
    }
    return st;
}

static tamiz_status destroy(struct op *op, const tamiz_env *env, const char *directory)
{
    struct doomed d = {.names = buf_init(&alloc_libc)};
    void *lock = NULL;
    char *lock_path = NULL;
    bool exists = false;
    tamiz_file_info info;
    tamiz_status st = TAMIZ_OK;
    TRY(env_path_info(op, env, directory, &exists, &info));
    if (!exists || !info.is_directory) {
        st = exists ? op_fail(op, TAMIZ_INVALID_ARGUMENT, "%s: not a directory", directory)
                    : op_fail(op, TAMIZ_NOT_FOUND, "%s: no store here", directory);
        goto done;
    }
    st = store_signature(op, env, directory);
    if (st != TAMIZ_OK)
        goto done;
    TRY(env_list(op, env, directory, doom, &d));
    lock_path = filename_path(&alloc_libc, directory, FILE_LOCK, 0);
    TRY(lock_path ? TAMIZ_OK : op_fail_memory(op));
    TRY(env_lock(op, env, lock_path, &lock));
    TRY(d.names.failed ? op_fail_memory(op) : TAMIZ_OK);
    for (int turn = FIRST; turn < TURNS; turn++)
        TRY(remove_named(op, env, directory, &d, (enum turn)turn));
    TRY(env_remove(op, env, lock_path));
    if (env_remove_directory(op, env, directory) != TAMIZ_OK)
        op_forgive(op); /* something in it is not ours */
done:
    if (lock)
        (void)env_unlock(op, env, lock);
    mem_free_text(&alloc_libc, lock_path);
    buf_free(&d.names);
    return st;
}

tamiz_status tamiz_destroy(const char *path)
{
    if (!path || !*path)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "path: %s", path ? "empty" : "NULL");
    struct loose_op *l = loose_op_new(&alloc_libc);
    if (!l)
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    tamiz_status st = destroy(&l->op, tamiz_env_posix(), path);
    st = op_publish(&l->op, st);
    mem_free(&alloc_libc, l, sizeof *l);
    return st;
}

/* ---- asked for ---- */

/* Runs `work` with a slot's counters. */
struct asked {
    tamiz *db;
    struct slice from, to;
    bool to_unbounded;
    unsigned level;
    size_t index;
};

static tamiz_status run_asked(tamiz *db, tamiz_status (*work)(struct op *op, const struct asked *a),
                              struct asked a)
{
    const tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    if (db->store->options.read_only)
        return op_refuse(TAMIZ_READ_ONLY, "%s: opened read-only", db->store->directory);
    struct op op;
    struct epoch_slot *slot = epoch_enter_at(&db->store->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(&op, &db->store->alloc, &slot->count);
    a.db = db;
    const tamiz_status done = op_publish(&op, work(&op, &a));
    epoch_leave(slot);
    return done;
}

static tamiz_status ask_flush(struct op *op, const struct asked *a)
{
    return db_flush(op, a->db);
}

static tamiz_status ask_compact(struct op *op, const struct asked *a)
{
    return db_compact_range(op, a->db, a->from, a->to, a->to_unbounded);
}

static tamiz_status ask_compact_table(struct op *op, const struct asked *a)
{
    return db_compact_table(op, a->db, a->level, a->index);
}

tamiz_status tamiz_flush(tamiz *db)
{
    return run_asked(db, ask_flush, (struct asked){0});
}

tamiz_status tamiz_compact(tamiz *db, const void *from, size_t from_size, const void *to,
                           size_t to_size)
{
    if ((from && from_size > KEY_SIZE_MAX) || (to && to_size > KEY_SIZE_MAX))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compact: bounds of %zu and %zu bytes: want 0..%u",
                         from ? from_size : 0, to ? to_size : 0, KEY_SIZE_MAX);
    const struct slice lower = slice_of(from, from ? from_size : 0),
                       upper = slice_of(to, to ? to_size : 0);
    if (to && slice_compare(lower, upper) >= 0)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compact: the range is empty or backward");
    return run_asked(db, ask_compact,
                     (struct asked){.from = lower, .to = upper, .to_unbounded = to == NULL});
}

tamiz_status tamiz_compact_table(tamiz *db, unsigned level, size_t index)
{
    if (level >= TAMIZ_LEVELS)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "level %u: want 0..%d", level, TAMIZ_LEVELS - 1);
    return run_asked(db, ask_compact_table, (struct asked){.level = level, .index = index});
}

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
    const uint64_t end = env_monotonic_ns(s->env) + budget_us * 1000;
    if (s->options.sync == TAMIZ_SYNC_INTERVAL && !s->options.read_only && write_sync_is_due(s))
        (void)tamiz_sync(db); /* a failure stands in the log and meets the next writer */
    while (background_step(s) && env_monotonic_ns(s->env) < end)
        ;
    *more = background_pending(s);
    return tamiz_health(db);
}
