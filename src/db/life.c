/* SPDX-License-Identifier: MIT */
#include "db/life.h"

#include <stdarg.h>
#include <stdio.h>

#include "db/install.h"
#include "db/keyspace.h"
#include "db/options.h"
#include "db/view.h"

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

/* What needs no disk: memory, locks, caches. options, alloc and env are set. */
static tamiz_status store_init(struct op *op, struct store *s)
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
    cache_free(s->cache);          /* hands what readers held to the epoch */
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
