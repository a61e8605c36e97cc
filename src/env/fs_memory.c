/* SPDX-License-Identifier: MIT
 *
 * The simulated machine's table of functions: each call begins (counted, and perhaps met by a
 * fault), does its work on the tree, and ends. tamiz_env_memory_new() is such a machine that keeps
 * no record of what is synced.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "env/sim.h"

enum { DIRECT_UNIT = 4096 };
#define START_WALL_US UINT64_C(1577836800000000) /* 2020-01-01 */

/* ---- files ---- */

static int open_path(tamiz_env_sim *s, const char *path, struct handle *h)
{
    struct place place;
    int error = tree_find(s, path, &place);
    if (error)
        return error;
    if (s->files_open >= s->files_limit)
        return -EMFILE; /* before anything is created */
    if (h->flags & TAMIZ_OPEN_CREATE)
        error = tree_create(s, &place, false);
    else if (!place.node)
        error = -ENOENT;
    return error ? error : handle_take(s, h, place.node);
}

static int memory_open(void *ctx, const char *path, int flags, void **file)
{
    tamiz_env_sim *s = ctx;
    struct call call;
    *file = NULL;
    struct handle *h = handle_new(path, flags);
    if (!h)
        return -ENOMEM;
    int error = call_begin_at(s, &call,
                              flags & TAMIZ_OPEN_CREATE ? TAMIZ_SIM_CREATE : TAMIZ_SIM_OPEN, path);
    if (!error)
        error = open_path(s, path, h);
    if (!error && call.error)
        handle_drop(s, h);
    error = call_end(s, &call, error);
    if (error)
        handle_free(h);
    else
        *file = h;
    return error;
}

/* Also where the call fails, the file is closed, as on a real system. */
static int memory_close(void *ctx, void *file)
{
    tamiz_env_sim *s = ctx;
    struct handle *h = file;
    struct call call;
    int error = call_begin_on(s, &call, TAMIZ_SIM_CLOSE, h);
    handle_drop(s, h);
    error = call_end(s, &call, error);
    handle_free(h);
    return error;
}

static bool is_misaligned(const struct handle *h, uint64_t offset, const void *buffer, size_t size)
{
    return (h->flags & TAMIZ_OPEN_DIRECT) &&
           (offset % DIRECT_UNIT || size % DIRECT_UNIT || (uintptr_t)buffer % DIRECT_UNIT);
}

static uint64_t misdirected(const struct call *call, uint64_t offset)
{
    if (call->effect != TAMIZ_SIM_MISDIRECT)
        return offset;
    return offset + (call->argument ? call->argument : 4096);
}

/* What SHORT leaves of `size`. */
static size_t shortened(const struct call *call, size_t size)
{
    if (call->effect != TAMIZ_SIM_SHORT)
        return size;
    if (call->argument)
        return call->argument < size ? (size_t)call->argument : size;
    return size / 2;
}

static size_t read_node(const struct call *call, const struct node *n, uint64_t offset,
                        uint8_t *buffer, size_t size)
{
    const struct buf *b = call->effect == TAMIZ_SIM_STALE ? &n->disk : &n->cache;
    const uint64_t from = misdirected(call, offset);
    const uint64_t there = from < b->size ? b->size - from : 0;
    const size_t count = shortened(call, there < size ? (size_t)there : size);
    if (count)
        memcpy(buffer, b->data + from, count);
    if (count && call->effect == TAMIZ_SIM_FLIP) {
        const size_t bit = (size_t)(call->argument % ((uint64_t)count * 8));
        buffer[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    return count;
}

static int64_t memory_read(void *ctx, void *file, uint64_t offset, void *buffer, size_t size)
{
    tamiz_env_sim *s = ctx;
    struct handle *h = file;
    struct call call;
    size_t count = 0;
    int error = call_begin_on(s, &call, TAMIZ_SIM_READ, h);
    if (!error && !(h->flags & TAMIZ_OPEN_READ) && h->flags & TAMIZ_OPEN_WRITE)
        error = -EBADF;
    if (!error && is_misaligned(h, offset, buffer, size))
        error = -EINVAL;
    if (!error)
        count = read_node(&call, h->node, offset, buffer, size);
    error = call_end(s, &call, error);
    return error ? error : (int64_t)count;
}

static int memory_write(void *ctx, void *file, uint64_t offset, const void *data, size_t size)
{
    tamiz_env_sim *s = ctx;
    struct handle *h = file;
    struct call call;
    int error = call_begin_on(s, &call, TAMIZ_SIM_WRITE, h);
    if (!error && !(h->flags & TAMIZ_OPEN_WRITE))
        error = -EBADF;
    if (!error && is_misaligned(h, offset, data, size))
        error = -EINVAL;
    if (!error && size && call.effect != TAMIZ_SIM_STALE)
        error = node_write(s, h->node, misdirected(&call, offset), data, shortened(&call, size));
    return call_end(s, &call, error);
}

static int memory_sync(void *ctx, void *file)
{
    tamiz_env_sim *s = ctx;
    struct handle *h = file;
    struct call call;
    const int error = call_begin_on(s, &call, TAMIZ_SIM_FSYNC, h);
    if (!error && call.effect == TAMIZ_SIM_LOSE)
        node_lose(h->node, call.argument == 1);
    else if (!error)
        node_sync(h->node);
    return call_end(s, &call, error);
}

static int memory_truncate(void *ctx, void *file, uint64_t size)
{
    tamiz_env_sim *s = ctx;
    struct handle *h = file;
    struct call call;
    int error = call_begin_on(s, &call, TAMIZ_SIM_TRUNCATE, h);
    if (!error && !(h->flags & TAMIZ_OPEN_WRITE))
        error = -EINVAL;
    if (!error)
        error = node_truncate(s, h->node, size);
    return call_end(s, &call, error);
}

static int memory_allocate(void *ctx, void *file, uint64_t size)
{
    tamiz_env_sim *s = ctx;
    struct handle *h = file;
    struct call call;
    int error = call_begin_on(s, &call, TAMIZ_SIM_ALLOCATE, h);
    if (!error && !(h->flags & TAMIZ_OPEN_WRITE))
        error = -EBADF;
    if (!error)
        error = node_allocate(s, h->node, size);
    return call_end(s, &call, error);
}

static tamiz_file_info info_of(const struct node *n)
{
    return (tamiz_file_info){n->cache.size, 1, n->inode, n->is_directory};
}

static int memory_file_info(void *ctx, void *file, tamiz_file_info *info)
{
    tamiz_env_sim *s = ctx;
    struct handle *h = file;
    struct call call;
    const int error = call_begin_on(s, &call, TAMIZ_SIM_INFO, h);
    if (!error)
        *info = info_of(h->node);
    return call_end(s, &call, error);
}

/* ---- names ---- */

static int memory_path_info(void *ctx, const char *path, tamiz_file_info *info)
{
    tamiz_env_sim *s = ctx;
    struct call call;
    struct place place;
    int error = call_begin_at(s, &call, TAMIZ_SIM_INFO, path);
    if (!error)
        error = tree_find_there(s, path, &place);
    if (!error)
        *info = info_of(place.node);
    return call_end(s, &call, error);
}

static int names_of(tamiz_env_sim *s, const char *path, struct buf *names)
{
    struct place place;
    const int error = tree_find_there(s, path, &place);
    if (error)
        return error;
    if (!place.node->is_directory)
        return -ENOTDIR;
    if (s->files_open >= s->files_limit)
        return -EMFILE; /* a directory is opened to be read */
    for (const struct entry *e = place.node->entries; e; e = e->next)
        if (e->now)
            buf_append(names, e->name, strlen(e->name) + 1);
    return names->failed ? -ENOMEM : 0;
}

/* The names are copied first: `each` may call the env. */
static int memory_list(void *ctx, const char *directory,
                       void (*each)(void *each_ctx, const char *name), void *each_ctx)
{
    tamiz_env_sim *s = ctx;
    struct call call;
    struct buf names = buf_init(&alloc_libc);
    int error = call_begin_at(s, &call, TAMIZ_SIM_LIST, directory);
    if (!error)
        error = names_of(s, directory, &names);
    error = call_end(s, &call, error);
    for (size_t at = 0; !error && at < names.size;) {
        const char *name = (const char *)names.data + at;
        at += strlen(name) + 1;
        each(each_ctx, name);
    }
    buf_free(&names);
    return error;
}

static int memory_make_directory(void *ctx, const char *path)
{
    tamiz_env_sim *s = ctx;
    struct call call;
    struct place place;
    int error = call_begin_at(s, &call, TAMIZ_SIM_MKDIR, path);
    if (!error)
        error = tree_find(s, path, &place);
    if (!error)
        error = tree_create(s, &place, true);
    return call_end(s, &call, error);
}

static int memory_remove_directory(void *ctx, const char *path)
{
    tamiz_env_sim *s = ctx;
    struct call call;
    int error = call_begin_at(s, &call, TAMIZ_SIM_RMDIR, path);
    if (!error)
        error = tree_remove(s, path, true);
    return call_end(s, &call, error);
}

static int memory_remove(void *ctx, const char *path)
{
    tamiz_env_sim *s = ctx;
    struct call call;
    int error = call_begin_at(s, &call, TAMIZ_SIM_UNLINK, path);
    if (!error)
        error = tree_remove(s, path, false);
    return call_end(s, &call, error);
}

static int memory_rename(void *ctx, const char *from, const char *to)
{
    tamiz_env_sim *s = ctx;
    struct call call = {.kind = TAMIZ_SIM_RENAME, .name = path_last(from), .other = path_last(to)};
    int error = call_begin(s, &call);
    if (!error)
        error = tree_rename(s, from, to);
    return call_end(s, &call, error);
}

static int memory_link(void *ctx, const char *from, const char *to)
{
    tamiz_env_sim *s = ctx;
    struct call call = {.kind = TAMIZ_SIM_LINK, .name = path_last(from), .other = path_last(to)};
    int error = call_begin(s, &call);
    if (!error)
        error = tree_link(s, from, to);
    return call_end(s, &call, error);
}

static int memory_sync_directory(void *ctx, const char *path)
{
    tamiz_env_sim *s = ctx;
    struct call call;
    int error = call_begin_at(s, &call, TAMIZ_SIM_DIRSYNC, path);
    if (!error && s->files_open >= s->files_limit)
        error = -EMFILE; /* a directory is opened to be synced */
    if (!error)
        error = tree_sync(s, path);
    return call_end(s, &call, error);
}

/* ---- the lock: a mark on the node, whatever the path to it ---- */

static int lock_path(tamiz_env_sim *s, const char *path, struct handle *h)
{
    struct place place;
    int error = tree_find(s, path, &place);
    if (error)
        return error;
    if (s->files_open >= s->files_limit)
        return -EMFILE;
    if (!place.node)
        error = tree_create(s, &place, false);
    if (!error && place.node->locked)
        error = -EWOULDBLOCK;
    if (!error)
        error = handle_take(s, h, place.node);
    if (!error)
        place.node->locked = true;
    return error;
}

static void lock_drop(tamiz_env_sim *s, struct handle *h)
{
    if (handle_lives(s, h))
        h->node->locked = false;
    handle_drop(s, h);
}

static int memory_lock(void *ctx, const char *path, void **lock, char *holder, size_t holder_size)
{
    tamiz_env_sim *s = ctx;
    struct call call;
    *lock = NULL;
    struct handle *h = handle_new(path, 0);
    if (!h)
        return -ENOMEM;
    int error = call_begin_at(s, &call, TAMIZ_SIM_LOCK, path);
    if (!error)
        error = lock_path(s, path, h);
    if (!error && call.error)
        lock_drop(s, h);
    error = call_end(s, &call, error);
    if (error == -EWOULDBLOCK && holder_size)
        (void)snprintf(holder, holder_size, "another handle (this process)");
    if (error)
        handle_free(h);
    else
        *lock = h;
    return error;
}

static int memory_unlock(void *ctx, void *lock)
{
    tamiz_env_sim *s = ctx;
    struct handle *h = lock;
    struct call call;
    int error = call_begin_on(s, &call, TAMIZ_SIM_UNLOCK, h);
    lock_drop(s, h);
    error = call_end(s, &call, error);
    handle_free(h);
    return error;
}

/* ---- clock, randomness: no calls, no faults ---- */

static uint64_t look_at_clock(tamiz_env_sim *s, bool wall)
{
    mutex_lock(&s->mutex);
    s->now_ns += s->tick_ns;
    uint64_t now = s->now_ns;
    if (wall)
        now = START_WALL_US + now / 1000 + (uint64_t)s->wall_step_us;
    mutex_unlock(&s->mutex);
    return now;
}

static uint64_t memory_wall_us(void *ctx)
{
    return look_at_clock(ctx, true);
}

static uint64_t memory_monotonic_ns(void *ctx)
{
    return look_at_clock(ctx, false);
}

/* Takes no time but the machine's own. Others get a chance to run, as in a real sleep. */
static void memory_sleep_us(void *ctx, uint64_t us)
{
    tamiz_env_sim_clock_advance(ctx, us);
    thread_yield();
}

static int memory_random(void *ctx, void *buffer, size_t size)
{
    tamiz_env_sim *s = ctx;
    uint8_t *to = buffer;
    mutex_lock(&s->mutex);
    while (size) {
        const uint64_t word = sim_mix(s->random++);
        const size_t part = size < sizeof word ? size : sizeof word;
        memcpy(to, &word, part);
        to += part;
        size -= part;
    }
    mutex_unlock(&s->mutex);
    return 0;
}

static uint64_t memory_boot_id(void *ctx)
{
    tamiz_env_sim *s = ctx;
    mutex_lock(&s->mutex);
    const uint64_t boot = s->boot;
    mutex_unlock(&s->mutex);
    return boot;
}

const tamiz_env_ops *sim_ops(void)
{
    static const tamiz_env_ops ops = {
        .struct_size = sizeof(tamiz_env_ops),
        .open = memory_open,
        .close = memory_close,
        .read = memory_read,
        .write = memory_write,
        .sync = memory_sync,
        .truncate = memory_truncate,
        .allocate = memory_allocate,
        .file_info = memory_file_info,
        .path_info = memory_path_info,
        .list = memory_list,
        .make_directory = memory_make_directory,
        .remove_directory = memory_remove_directory,
        .rename = memory_rename,
        .link = memory_link,
        .remove = memory_remove,
        .sync_directory = memory_sync_directory,
        .lock = memory_lock,
        .unlock = memory_unlock,
        .wall_us = memory_wall_us,
        .monotonic_ns = memory_monotonic_ns,
        .sleep_us = memory_sleep_us,
        .random = memory_random,
        .boot_id = memory_boot_id,
        .point = sim_point,
    };
    return &ops;
}
