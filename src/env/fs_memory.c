/* SPDX-License-Identifier: MIT
 *
 * A file system in memory: a tree of nodes below a root that is always there. A node is a file's
 * bytes or a directory's entries; it lives as long as an entry or an open file leads to it. Paths
 * are taken from the root, whether they begin with a slash or not. The clock stands still but for
 * a little step with each look at it, and for sleeping.
 */
#include "tamiz/env.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "env/thread.h"

enum { NAME_BYTES = 256, TICK_NS = 1000 };
#define START_WALL_US UINT64_C(1577836800000000) /* 2020-01-01 */

struct entry {
    struct entry *next;
    struct node *node;
    char name[NAME_BYTES];
};

struct node {
    uint64_t inode;
    size_t references; /* entries, open files, locks, and one for the root */
    bool is_directory, locked;
    struct node *parent;   /* of a directory; not counted */
    struct entry *entries; /* of a directory, sorted by name */
    struct buf bytes;      /* of a file */
};

struct open_file {
    struct node *node;
    int flags;
};

struct memory {
    tamiz_env env;
    struct mutex mutex; /* guards all below */
    struct node *root;
    uint64_t last_inode, now_ns, random;
};

/* ---- nodes ---- */

static struct node *node_new(struct memory *m, bool is_directory)
{
    struct node *n = mem_new_array(&alloc_libc, 1, sizeof *n);
    if (!n)
        return NULL;
    n->inode = ++m->last_inode;
    n->references = 1;
    n->is_directory = is_directory;
    n->bytes = buf_init(&alloc_libc);
    return n;
}

static void node_release(struct node *n)
{
    if (--n->references)
        return;
    while (n->entries) { /* only at the very end, when the whole tree goes */
        struct entry *e = n->entries;
        n->entries = e->next;
        node_release(e->node);
        mem_free(&alloc_libc, e, sizeof *e);
    }
    buf_free(&n->bytes);
    mem_free(&alloc_libc, n, sizeof *n);
}

/* Where an entry of that name is, or would be put. */
static struct entry **entry_at(struct node *directory, const char *name)
{
    struct entry **at = &directory->entries;
    while (*at && strcmp((*at)->name, name) < 0)
        at = &(*at)->next;
    return at;
}

static struct entry *entry_find(struct node *directory, const char *name)
{
    struct entry *e = *entry_at(directory, name);
    return e && strcmp(e->name, name) == 0 ? e : NULL;
}

/* Takes over the caller's reference to `node`. */
static int entry_add(struct node *directory, const char *name, struct node *node)
{
    struct entry *e = mem_new_array(&alloc_libc, 1, sizeof *e);
    if (!e)
        return -ENOMEM;
    struct entry **at = entry_at(directory, name);
    memcpy(e->name, name, strlen(name) + 1);
    e->node = node;
    e->next = *at;
    *at = e;
    if (node->is_directory)
        node->parent = directory;
    return 0;
}

static void entry_remove(struct node *directory, const char *name)
{
    struct entry **at = entry_at(directory, name);
    struct entry *e = *at;
    *at = e->next;
    node_release(e->node);
    mem_free(&alloc_libc, e, sizeof *e);
}

/* ---- paths ---- */

/* A path's end: the directory it is in, its last name (empty: the path is `directory` itself), and
 * what is there now. */
struct place {
    struct node *directory;
    char name[NAME_BYTES];
    struct node *node; /* NULL: nothing */
};

static int next_name(const char **path, char *name)
{
    while (**path == '/')
        ++*path;
    size_t size = 0;
    while ((*path)[size] && (*path)[size] != '/')
        size++;
    if (size >= NAME_BYTES)
        return -ENAMETOOLONG;
    memcpy(name, *path, size);
    name[size] = 0;
    *path += size;
    while (**path == '/')
        ++*path;
    return 0;
}

static struct node *step(struct node *directory, const char *name)
{
    if (strcmp(name, ".") == 0 || name[0] == 0)
        return directory;
    if (strcmp(name, "..") == 0)
        return directory->parent ? directory->parent : directory;
    const struct entry *e = entry_find(directory, name);
    return e ? e->node : NULL;
}

static int find(struct memory *m, const char *path, struct place *place)
{
    struct node *at = m->root;
    if (!*path)
        return -ENOENT;
    for (;;) {
        const int error = next_name(&path, place->name);
        if (error)
            return error;
        if (!at->is_directory)
            return -ENOTDIR;
        place->directory = at;
        place->node = step(at, place->name);
        if (!*path)
            return 0;
        if (!place->node)
            return -ENOENT;
        at = place->node;
    }
}

static int find_there(struct memory *m, const char *path, struct place *place)
{
    const int error = find(m, path, place);
    return error ? error : place->node ? 0 : -ENOENT;
}

/* Whether the last name is one that an entry can have. */
static bool has_name(const struct place *p)
{
    return p->name[0] && strcmp(p->name, ".") != 0 && strcmp(p->name, "..") != 0;
}

/* ---- files ---- */

static int create(struct memory *m, struct place *place, bool is_directory)
{
    if (place->node)
        return -EEXIST;
    struct node *n = node_new(m, is_directory);
    if (!n)
        return -ENOMEM;
    const int error = entry_add(place->directory, place->name, n);
    if (error)
        node_release(n);
    else
        place->node = n;
    return error;
}

static int open_place(struct memory *m, const char *path, int flags, struct open_file *f)
{
    struct place place;
    int error = find(m, path, &place);
    if (!error && flags & TAMIZ_OPEN_CREATE)
        error = create(m, &place, false);
    if (error)
        return error;
    if (!place.node)
        return -ENOENT;
    if (place.node->is_directory)
        return -EISDIR;
    place.node->references++;
    *f = (struct open_file){place.node, flags};
    return 0;
}

static int memory_open(void *ctx, const char *path, int flags, void **file)
{
    struct memory *m = ctx;
    *file = NULL;
    struct open_file *f = mem_new(&alloc_libc, sizeof *f);
    if (!f)
        return -ENOMEM;
    mutex_lock(&m->mutex);
    const int error = open_place(m, path, flags, f);
    mutex_unlock(&m->mutex);
    if (error)
        mem_free(&alloc_libc, f, sizeof *f);
    else
        *file = f;
    return error;
}

static int memory_close(void *ctx, void *file)
{
    struct memory *m = ctx;
    struct open_file *f = file;
    mutex_lock(&m->mutex);
    node_release(f->node);
    mutex_unlock(&m->mutex);
    mem_free(&alloc_libc, f, sizeof *f);
    return 0;
}

static int64_t memory_read(void *ctx, void *file, uint64_t offset, void *buffer, size_t size)
{
    struct memory *m = ctx;
    const struct open_file *f = file;
    mutex_lock(&m->mutex);
    const struct buf *b = &f->node->bytes;
    size_t n = offset < b->size ? b->size - (size_t)offset : 0;
    if (n > size)
        n = size;
    if (n)
        memcpy(buffer, b->data + offset, n);
    mutex_unlock(&m->mutex);
    return (int64_t)n;
}

static int resize(struct node *n, uint64_t size)
{
    struct buf *b = &n->bytes;
    if (size > SIZE_MAX / 4)
        return -EFBIG;
    if (size > b->size) {
        if (!buf_reserve(b, (size_t)size - b->size)) {
            b->failed = false;
            return -ENOSPC;
        }
        memset(b->data + b->size, 0, (size_t)size - b->size);
    }
    b->size = (size_t)size;
    return 0;
}

static int memory_write(void *ctx, void *file, uint64_t offset, const void *data, size_t size)
{
    struct memory *m = ctx;
    struct open_file *f = file;
    if (!(f->flags & TAMIZ_OPEN_WRITE))
        return -EBADF;
    if (size == 0)
        return 0;
    mutex_lock(&m->mutex);
    int error = offset > UINT64_MAX - size ? -EFBIG : 0;
    if (!error && offset + size > f->node->bytes.size)
        error = resize(f->node, offset + size);
    if (!error)
        memcpy(f->node->bytes.data + offset, data, size);
    mutex_unlock(&m->mutex);
    return error;
}

static int memory_sync(void *ctx, void *file)
{
    (void)ctx;
    (void)file;
    return 0;
}

static int memory_truncate(void *ctx, void *file, uint64_t size)
{
    struct memory *m = ctx;
    struct open_file *f = file;
    if (!(f->flags & TAMIZ_OPEN_WRITE))
        return -EINVAL;
    mutex_lock(&m->mutex);
    const int error = resize(f->node, size);
    mutex_unlock(&m->mutex);
    return error;
}

static int memory_allocate(void *ctx, void *file, uint64_t size)
{
    (void)ctx;
    (void)file;
    (void)size;
    return 0;
}

static tamiz_file_info info_of(const struct node *n)
{
    return (tamiz_file_info){n->bytes.size, 1, n->inode, n->is_directory};
}

static int memory_file_info(void *ctx, void *file, tamiz_file_info *info)
{
    struct memory *m = ctx;
    const struct open_file *f = file;
    mutex_lock(&m->mutex);
    *info = info_of(f->node);
    mutex_unlock(&m->mutex);
    return 0;
}

/* ---- names ---- */

static int memory_path_info(void *ctx, const char *path, tamiz_file_info *info)
{
    struct memory *m = ctx;
    struct place place;
    mutex_lock(&m->mutex);
    const int error = find_there(m, path, &place);
    if (!error)
        *info = info_of(place.node);
    mutex_unlock(&m->mutex);
    return error;
}

/* A copy of the names first: `each` may call the env. */
static int names_of(struct memory *m, const char *path, struct buf *names)
{
    struct place place;
    const int error = find_there(m, path, &place);
    if (error)
        return error;
    if (!place.node->is_directory)
        return -ENOTDIR;
    for (const struct entry *e = place.node->entries; e; e = e->next)
        buf_append(names, e->name, strlen(e->name) + 1);
    return names->failed ? -ENOMEM : 0;
}

static int memory_list(void *ctx, const char *directory,
                       void (*each)(void *each_ctx, const char *name), void *each_ctx)
{
    struct memory *m = ctx;
    struct buf names = buf_init(&alloc_libc);
    mutex_lock(&m->mutex);
    const int error = names_of(m, directory, &names);
    mutex_unlock(&m->mutex);
    for (size_t at = 0; !error && at < names.size;) {
        const char *name = (const char *)names.data + at;
        each(each_ctx, name);
        at += strlen(name) + 1;
    }
    buf_free(&names);
    return error;
}

static int memory_make_directory(void *ctx, const char *path)
{
    struct memory *m = ctx;
    struct place place;
    mutex_lock(&m->mutex);
    int error = find(m, path, &place);
    if (!error)
        error = create(m, &place, true);
    mutex_unlock(&m->mutex);
    return error;
}

static int remove_place(struct memory *m, const char *path, bool is_directory)
{
    struct place place;
    const int error = find_there(m, path, &place);
    if (error)
        return error;
    if (place.node->is_directory != is_directory)
        return is_directory ? -ENOTDIR : -EISDIR;
    if (!has_name(&place))
        return -EINVAL;
    if (place.node->entries)
        return -ENOTEMPTY;
    entry_remove(place.directory, place.name);
    return 0;
}

static int memory_remove_directory(void *ctx, const char *path)
{
    struct memory *m = ctx;
    mutex_lock(&m->mutex);
    const int error = remove_place(m, path, true);
    mutex_unlock(&m->mutex);
    return error;
}

static int memory_remove(void *ctx, const char *path)
{
    struct memory *m = ctx;
    mutex_lock(&m->mutex);
    const int error = remove_place(m, path, false);
    mutex_unlock(&m->mutex);
    return error;
}

static bool is_inside(const struct node *node, const struct node *directory)
{
    for (; node; node = node->parent)
        if (node == directory)
            return true;
    return false;
}

/* Whether `from` may take the place of what is at `to`. */
static int may_replace(const struct place *from, const struct place *to)
{
    if (!has_name(from) || !has_name(to))
        return -EINVAL;
    if (from->node->is_directory && is_inside(to->directory, from->node))
        return -EINVAL;
    if (!to->node)
        return 0;
    if (from->node->is_directory && !to->node->is_directory)
        return -ENOTDIR;
    if (!from->node->is_directory && to->node->is_directory)
        return -EISDIR;
    return to->node->entries ? -ENOTEMPTY : 0;
}

/* The new entry first, so that running out of memory changes nothing. */
static int rename_place(struct memory *m, const char *from_path, const char *to_path)
{
    struct place from, to;
    int error = find_there(m, from_path, &from);
    if (!error)
        error = find(m, to_path, &to);
    if (!error)
        error = may_replace(&from, &to);
    if (error || from.node == to.node)
        return error;
    if (to.node) {
        struct entry *e = entry_find(to.directory, to.name);
        node_release(e->node);
        e->node = from.node;
        if (from.node->is_directory)
            from.node->parent = to.directory;
    } else {
        error = entry_add(to.directory, to.name, from.node);
    }
    if (error)
        return error;
    from.node->references++;
    entry_remove(from.directory, from.name);
    return 0;
}

static int memory_rename(void *ctx, const char *from, const char *to)
{
    struct memory *m = ctx;
    mutex_lock(&m->mutex);
    const int error = rename_place(m, from, to);
    mutex_unlock(&m->mutex);
    return error;
}

static int link_place(struct memory *m, const char *from_path, const char *to_path)
{
    struct place from, to;
    int error = find_there(m, from_path, &from);
    if (!error)
        error = find(m, to_path, &to);
    if (!error && from.node->is_directory)
        error = -EPERM;
    if (!error && to.node)
        error = -EEXIST;
    if (!error)
        error = entry_add(to.directory, to.name, from.node);
    if (!error)
        from.node->references++;
    return error;
}

static int memory_link(void *ctx, const char *from, const char *to)
{
    struct memory *m = ctx;
    mutex_lock(&m->mutex);
    const int error = link_place(m, from, to);
    mutex_unlock(&m->mutex);
    return error;
}

static int memory_sync_directory(void *ctx, const char *path)
{
    struct memory *m = ctx;
    struct place place;
    mutex_lock(&m->mutex);
    int error = find_there(m, path, &place);
    if (!error && !place.node->is_directory)
        error = -ENOTDIR;
    mutex_unlock(&m->mutex);
    return error;
}

/* ---- the lock: a mark on the node, whatever the path to it ---- */

static int lock_place(struct memory *m, const char *path, struct node **node)
{
    struct place place;
    int error = find(m, path, &place);
    if (!error && !place.node)
        error = create(m, &place, false);
    if (error)
        return error;
    if (place.node->is_directory)
        return -EISDIR;
    if (place.node->locked)
        return -EWOULDBLOCK;
    place.node->locked = true;
    place.node->references++;
    *node = place.node;
    return 0;
}

static int memory_lock(void *ctx, const char *path, void **lock, char *holder, size_t holder_size)
{
    struct memory *m = ctx;
    struct node *node = NULL;
    mutex_lock(&m->mutex);
    const int error = lock_place(m, path, &node);
    mutex_unlock(&m->mutex);
    if (error == -EWOULDBLOCK && holder_size)
        (void)snprintf(holder, holder_size, "another handle (this process)");
    *lock = node;
    return error;
}

static int memory_unlock(void *ctx, void *lock)
{
    struct memory *m = ctx;
    struct node *node = lock;
    mutex_lock(&m->mutex);
    node->locked = false;
    node_release(node);
    mutex_unlock(&m->mutex);
    return 0;
}

/* ---- clock, randomness ---- */

static uint64_t look_at_clock(struct memory *m)
{
    mutex_lock(&m->mutex);
    m->now_ns += TICK_NS;
    const uint64_t now = m->now_ns;
    mutex_unlock(&m->mutex);
    return now;
}

static uint64_t memory_wall_us(void *ctx)
{
    return START_WALL_US + look_at_clock(ctx) / 1000;
}

static uint64_t memory_monotonic_ns(void *ctx)
{
    return look_at_clock(ctx);
}

static void memory_sleep_us(void *ctx, uint64_t us)
{
    struct memory *m = ctx;
    mutex_lock(&m->mutex);
    m->now_ns += us * 1000;
    mutex_unlock(&m->mutex);
    thread_yield();
}

/* splitmix64: the same numbers in every run, each only once. */
static int memory_random(void *ctx, void *buffer, size_t size)
{
    struct memory *m = ctx;
    uint8_t *to = buffer;
    mutex_lock(&m->mutex);
    while (size) {
        uint64_t z = (m->random += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        const size_t part = size < sizeof z ? size : sizeof z;
        memcpy(to, &z, part);
        to += part;
        size -= part;
    }
    mutex_unlock(&m->mutex);
    return 0;
}

static uint64_t memory_boot_id(void *ctx)
{
    (void)ctx;
    return 1;
}

static const tamiz_env_ops memory_ops = {
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
};

tamiz_env *tamiz_env_memory_new(void)
{
    struct counters unused;
    struct op op;
    struct memory *m = mem_new_array(&alloc_libc, 1, sizeof *m);
    if (!m)
        return NULL;
    op_init(&op, &alloc_libc, &unused);
    m->env = (tamiz_env){&memory_ops, m};
    m->root = node_new(m, true);
    if (m->root && mutex_init(&op, &m->mutex) == TAMIZ_OK)
        return &m->env;
    if (m->root)
        node_release(m->root);
    mem_free(&alloc_libc, m, sizeof *m);
    return NULL;
}

void tamiz_env_memory_free(tamiz_env *env)
{
    if (!env)
        return;
    struct memory *m = env->ctx;
    node_release(m->root);
    mutex_free(&m->mutex);
    mem_free(&alloc_libc, m, sizeof *m);
}
