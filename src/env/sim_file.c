/* SPDX-License-Identifier: MIT
 *
 * The bytes of one file of the simulated machine.
 *
 * A sync brings whole sectors of the cache to the disk, those that a change touched. A crash may
 * leave any sector as it was after any number of the changes to it, and the size likewise; changes
 * to one sector keep their order, as a disk's do.
 */
#include <errno.h>
#include <string.h>

#include "env/sim.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t node_charge(const struct node *n)
{
    return n->is_directory ? 0 : larger(n->cache.size, n->allocated);
}

/* ---- changing the cache ---- */

static bool reserve(struct buf *b, size_t size)
{
    const bool fits = size <= b->size || buf_reserve(b, size - b->size);
    b->failed = false;
    return fits;
}

static struct change *change_new(uint64_t offset, const void *data, size_t size)
{
    struct change *c = mem_new(&alloc_libc, sizeof *c + size);
    if (!c)
        return NULL;
    *c = (struct change){NULL, offset, size, data == NULL};
    if (data)
        memcpy(c->data, data, size);
    return c;
}

static void change_append(struct node *n, struct change *c)
{
    *n->changes_end = c;
    n->changes_end = &c->next;
}

static void changes_forget(struct node *n)
{
    while (n->changes) {
        struct change *c = n->changes;
        n->changes = c->next;
        mem_free(&alloc_libc, c, sizeof *c + c->size);
    }
    n->changes_end = &n->changes;
}

/* Room in memory and a record of the change, or nothing. */
static int prepare(tamiz_env_sim *s, struct node *n, uint64_t offset, const void *data, size_t size)
{
    const uint64_t end = offset + size;
    if (end > SIZE_MAX / 4)
        return -EFBIG;
    if (!reserve(&n->cache, (size_t)end) || (s->tracks && !reserve(&n->disk, (size_t)end)))
        return -ENOMEM;
    if (!s->tracks)
        return 0;
    struct change *c = change_new(offset, data, size);
    if (!c)
        return -ENOMEM;
    change_append(n, c);
    return 0;
}

static void cache_resize(tamiz_env_sim *s, struct node *n, size_t size)
{
    const uint64_t before = node_charge(n);
    if (size > n->cache.size)
        memset(n->cache.data + n->cache.size, 0, size - n->cache.size);
    n->cache.size = size;
    s->disk_used = s->disk_used - before + node_charge(n);
}

/* The largest size that the file may have. */
static uint64_t size_limit(const tamiz_env_sim *s, const struct node *n)
{
    const uint64_t others = s->disk_used - node_charge(n);
    return s->disk_limit > others ? larger(s->disk_limit - others, node_charge(n)) : node_charge(n);
}

int node_write(tamiz_env_sim *s, struct node *n, uint64_t offset, const void *data, size_t size)
{
    if (offset > UINT64_MAX - size)
        return -EFBIG;
    const uint64_t most = size_limit(s, n);
    const bool fits = offset + size <= most;
    if (!fits)
        size = most > offset ? (size_t)(most - offset) : 0;
    if (size) {
        const int error = prepare(s, n, offset, data, size);
        if (error)
            return error;
        if (offset + size > n->cache.size)
            cache_resize(s, n, (size_t)(offset + size));
        memcpy(n->cache.data + offset, data, size);
        n->touched = ++s->last_touch;
    }
    return fits ? 0 : -ENOSPC;
}

int node_truncate(tamiz_env_sim *s, struct node *n, uint64_t size)
{
    if (size > size_limit(s, n))
        return -ENOSPC;
    const int error = prepare(s, n, size, NULL, 0);
    if (error)
        return error;
    const uint64_t before = node_charge(n);
    n->allocated = 0;
    s->disk_used = s->disk_used - before + node_charge(n);
    cache_resize(s, n, (size_t)size);
    return 0;
}

int node_allocate(tamiz_env_sim *s, struct node *n, uint64_t size)
{
    if (size > size_limit(s, n))
        return -ENOSPC;
    const uint64_t before = node_charge(n);
    n->allocated = larger(n->allocated, size);
    s->disk_used = s->disk_used - before + node_charge(n);
    return 0;
}

/* ---- to the disk ---- */

/* How far the disk's buffer is in use while changes are applied; the part behind its size is
 * zeroed. There is room: prepare() saw to it. */
static size_t disk_open(struct node *n)
{
    size_t end = n->disk.size;
    for (const struct change *c = n->changes; c; c = c->next)
        end = (size_t)larger(end, c->offset + c->size);
    end = (size_t)larger(end, n->cache.size);
    if (end > n->disk.size)
        memset(n->disk.data + n->disk.size, 0, end - n->disk.size);
    return end;
}

static void sync_change(struct node *n, const struct change *c, size_t end)
{
    if (c->truncates) {
        if (c->offset < end)
            memset(n->disk.data + c->offset, 0, end - (size_t)c->offset);
        return;
    }
    const uint64_t first = c->offset / SECTOR * SECTOR;
    const uint64_t last = (c->offset + c->size + SECTOR - 1) / SECTOR * SECTOR;
    const uint64_t stop = smaller(last, n->cache.size);
    if (first < stop)
        memcpy(n->disk.data + first, n->cache.data + first, (size_t)(stop - first));
}

void node_sync(struct node *n)
{
    if (!n->changes)
        return;
    const size_t end = disk_open(n);
    for (const struct change *c = n->changes; c; c = c->next)
        sync_change(n, c, end);
    n->disk.size = n->cache.size;
    changes_forget(n);
}

static void cache_from_disk(struct node *n)
{
    if (n->disk.size)
        memcpy(n->cache.data, n->disk.data, n->disk.size);
    n->cache.size = n->disk.size;
}

void node_lose(struct node *n, bool revert)
{
    changes_forget(n);
    if (revert)
        cache_from_disk(n);
}

void node_power_cut(struct node *n)
{
    changes_forget(n);
    cache_from_disk(n);
    n->allocated = 0; /* no size: nothing promises that it was kept */
}

/* ---- legal damage ---- */

/* How many of `count` changes this sector has seen: none and all are as likely as anything between.
 */
static uint64_t sector_cut(uint64_t seed, uint64_t sector, uint64_t count)
{
    const uint64_t draw = sim_mix(sim_mix(seed) ^ sector);
    switch (draw & 3) {
    case 0: return 0;
    case 1: return count;
    default: return (draw >> 8) % (count + 1);
    }
}

/* The part of a change that lies in one sector. */
static void change_sector(struct node *n, const struct change *c, uint64_t sector, size_t end)
{
    const uint64_t first = larger(sector * SECTOR, c->offset);
    const uint64_t sector_end = smaller((sector + 1) * SECTOR, end);
    const uint64_t stop = c->truncates ? sector_end : smaller(sector_end, c->offset + c->size);
    if (first >= stop)
        return;
    uint8_t *to = n->disk.data + first;
    if (c->truncates)
        memset(to, 0, (size_t)(stop - first));
    else
        memcpy(to, c->data + (first - c->offset), (size_t)(stop - first));
}

void node_reorder(struct node *n, uint64_t seed)
{
    uint64_t count = 0, index = 0;
    for (const struct change *c = n->changes; c; c = c->next)
        count++;
    if (!count)
        return;
    seed ^= sim_mix(n->inode);
    const size_t end = disk_open(n);
    const uint64_t size_cut = sector_cut(seed, UINT64_MAX, count);
    size_t size = n->disk.size;
    for (const struct change *c = n->changes; c; c = c->next, index++) {
        const uint64_t last = c->truncates ? end : c->offset + c->size;
        for (uint64_t at = c->offset / SECTOR; at * SECTOR < last; at++)
            if (index < sector_cut(seed, at, count))
                change_sector(n, c, at, end);
        if (index < size_cut)
            size = (size_t)(c->truncates ? c->offset : larger(size, c->offset + c->size));
    }
    n->disk.size = size;
    changes_forget(n);
}

/* Where the last `count` bytes begin that are not on the disk as they are in the cache. */
static size_t unsynced_from(const struct node *n, uint64_t count)
{
    size_t at = n->cache.size;
    for (; at && count; at--)
        if (at > n->disk.size || n->disk.data[at - 1] != n->cache.data[at - 1])
            count--;
    return at;
}

void node_tear(struct node *n, uint64_t size)
{
    const uint64_t kept = n->cache.size > size ? n->cache.size - size : 0;
    const size_t least = (size_t)smaller(n->disk.size, n->cache.size);
    node_sync(n);
    n->disk.size = (size_t)smaller(n->disk.size, larger(kept, least));
}

void node_scribble(struct node *n, uint64_t size, bool junk, uint64_t seed)
{
    const size_t from = unsynced_from(n, size);
    const size_t disk_size = n->disk.size;
    /* A byte that is not on the disk gets scribbled on in the cache, which then becomes the disk.
     */
    for (size_t at = from; at < n->cache.size; at++)
        if (at >= disk_size || n->disk.data[at] != n->cache.data[at])
            n->cache.data[at] = junk ? (uint8_t)sim_mix(seed + at) : 0;
    node_sync(n);
}

/* ---- whole nodes ---- */

static bool copy_buf(struct buf *to, const struct buf *from)
{
    if (!reserve(to, from->capacity))
        return false;
    if (from->size)
        memcpy(to->data, from->data, from->size);
    to->size = from->size;
    return true;
}

bool node_copy_bytes(struct node *to, const struct node *from)
{
    if (!copy_buf(&to->cache, &from->cache) || !copy_buf(&to->disk, &from->disk))
        return false;
    to->allocated = from->allocated;
    for (const struct change *c = from->changes; c; c = c->next) {
        struct change *copy = change_new(c->offset, c->truncates ? NULL : c->data, c->size);
        if (!copy)
            return false;
        change_append(to, copy);
    }
    return true;
}

void node_free_bytes(struct node *n)
{
    changes_forget(n);
    buf_free(&n->cache);
    buf_free(&n->disk);
}
