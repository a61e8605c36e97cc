/* SPDX-License-Identifier: MIT
 *
 * A power cut for one flat directory: beside an env in memory (tests/log/fail_env.h) it keeps what
 * syncs have made durable, and makes images of what the disk may hold afterwards. What was not
 * synced, bytes of a file or an entry of the directory, survives or not, each for itself.
 */
#ifndef TAMIZ_TEST_POWER_H
#define TAMIZ_TEST_POWER_H

#include "env/env.h"
#include "log/fail_env.h"

enum { POWER_FILES = 64, POWER_NAME = 48 };

struct power_entry {
    char name[POWER_NAME];
    uint64_t inode;
};

struct power {
    struct fail_env fail; /* first */
    const char *directory;
    size_t file_count, entry_count;
    struct {
        uint64_t inode;
        struct buf durable;
    } files[POWER_FILES];
    struct power_entry entries[POWER_FILES]; /* as the last sync of the directory left them */
};

static inline struct buf *power_file(struct power *p, uint64_t inode)
{
    for (size_t i = 0; i < p->file_count; i++) {
        if (p->files[i].inode == inode)
            return &p->files[i].durable;
    }
    assert_true(p->file_count < POWER_FILES);
    p->files[p->file_count].inode = inode;
    p->files[p->file_count].durable = buf_init(&alloc_libc);
    return &p->files[p->file_count++].durable;
}

struct power_list {
    const tamiz_env *env;
    const char *directory;
    struct power_entry *entries;
    size_t count;
};

static inline void power_list_name(void *ctx, const char *name)
{
    struct power_list *l = ctx;
    char path[2 * POWER_NAME];
    tamiz_file_info info;
    if (name[0] == '.')
        return;
    assert_true(l->count < POWER_FILES && strlen(name) < POWER_NAME);
    (void)snprintf(path, sizeof path, "%s/%s", l->directory, name);
    assert_int_equal(l->env->ops->path_info(l->env->ctx, path, &info), 0);
    (void)snprintf(l->entries[l->count].name, POWER_NAME, "%s", name);
    l->entries[l->count++].inode = info.inode;
}

static inline size_t power_list(const struct power *p, struct power_entry entries[POWER_FILES])
{
    struct power_list l = {p->fail.inner, p->directory, entries, 0};
    assert_int_equal(l.env->ops->list(l.env->ctx, p->directory, power_list_name, &l), 0);
    return l.count;
}

/* The bytes of a file by its identity, as they are written now; false: no name leads to it. */
static inline bool power_written(const struct power *p, uint64_t inode, struct buf *out)
{
    const tamiz_env *env = p->fail.inner;
    struct power_entry now[POWER_FILES];
    const size_t n = power_list(p, now);
    char path[2 * POWER_NAME];
    struct test_op t;
    size_t i = 0;
    while (i < n && now[i].inode != inode)
        i++;
    if (i == n)
        return false;
    test_op_init(&t);
    (void)snprintf(path, sizeof path, "%s/%s", p->directory, now[i].name);
    assert_status(&t.op, env_read_file(&t.op, env, path, IO_META, (size_t)1 << 30, out), TAMIZ_OK);
    return true;
}

static inline void power_synced(struct fail_env *f, void *file)
{
    struct power *p = (struct power *)(void *)f;
    tamiz_file_info info;
    assert_int_equal(f->inner->ops->file_info(f->inner->ctx, file, &info), 0);
    assert_true(power_written(p, info.inode, power_file(p, info.inode)));
}

static inline void power_synced_directory(struct fail_env *f, const char *path)
{
    struct power *p = (struct power *)(void *)f;
    (void)path;
    p->entry_count = power_list(p, p->entries);
}

/* `inner` with an empty directory. */
static inline void power_init(struct power *p, const tamiz_env *inner, const char *directory)
{
    *p = (struct power){.directory = directory};
    fail_env_init(&p->fail, inner);
    p->fail.synced = power_synced;
    p->fail.synced_directory = power_synced_directory;
}

static inline void power_free(struct power *p)
{
    for (size_t i = 0; i < p->file_count; i++)
        buf_free(&p->files[i].durable);
}

static inline const struct power_entry *power_entry(const struct power_entry *list, size_t n,
                                                    const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    }
    return NULL;
}

static inline void power_put(tamiz_env *image, const char *path, const struct buf *bytes)
{
    void *file;
    assert_int_equal(
        image->ops->open(image->ctx, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file), 0);
    if (bytes->size)
        assert_int_equal(image->ops->write(image->ctx, file, 0, bytes->data, bytes->size), 0);
    assert_int_equal(image->ops->close(image->ctx, file), 0);
}

/* One file of the image: what was synced, or, by a coin, what was only written. */
static inline void power_copy(struct power *p, tamiz_env *image, const struct power_entry *e,
                              bool written)
{
    char path[2 * POWER_NAME];
    struct buf bytes = buf_init(&alloc_libc);
    written = written && power_written(p, e->inode, &bytes);
    (void)snprintf(path, sizeof path, "%s/%s", p->directory, e->name);
    power_put(image, path, written ? &bytes : power_file(p, e->inode));
    buf_free(&bytes);
}

/* What the disk may hold after a cut now. `random` NULL: nothing that was not synced. */
static inline tamiz_env *power_cut(struct power *p, struct test_random *random)
{
    tamiz_env *image = tamiz_env_memory_new();
    struct power_entry now[POWER_FILES];
    const size_t n = power_list(p, now);
    assert_non_null(image);
    assert_int_equal(image->ops->make_directory(image->ctx, p->directory), 0);
    for (size_t i = 0; i < p->entry_count + n; i++) {
        const bool old = i < p->entry_count;
        const char *name = old ? p->entries[i].name : now[i - p->entry_count].name;
        const struct power_entry *was = power_entry(p->entries, p->entry_count, name);
        if (!old && was)
            continue; /* decided already */
        const struct power_entry *is = power_entry(now, n, name);
        const struct power_entry *e = random && test_random_below(random, 2) ? is : was;
        if (e)
            power_copy(p, image, e, random && test_random_below(random, 2));
    }
    return image;
}

#endif
