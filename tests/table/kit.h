/* SPDX-License-Identifier: MIT
 *
 * A world in memory for tables, and a plain sorted array that says what a table must answer.
 */
#ifndef TAMIZ_TEST_TABLE_KIT_H
#define TAMIZ_TEST_TABLE_KIT_H

#include <stdlib.h>

#include "support/test.h"
#include "table/table.h"
#include "table/table_build.h"

struct version {
    uint8_t key[24];
    size_t key_size;
    uint64_t stamp;
    uint8_t value[120];
    size_t value_size;
};

struct model {
    struct version *versions;
    size_t count, room;
};

static inline struct slice key_of(const struct version *v)
{
    return slice_of(v->key, v->key_size);
}

static inline struct slice value_of(const struct version *v)
{
    return slice_of(v->value, v->value_size);
}

static inline int version_order(const void *a, const void *b)
{
    const struct version *x = (const struct version *)a, *y = (const struct version *)b;
    return version_compare(key_of(x), x->stamp, key_of(y), y->stamp);
}

enum { KIT_SEQS = 50 };

/* Even numbers only: odd ones are keys between. Several versions of some. */
static inline void version_key(struct version *v, uint64_t number)
{
    v->key_size =
        (size_t)snprintf((char *)v->key, sizeof v->key, "user%08llu", (unsigned long long)number);
}

static inline void version_make(struct test_random *random, struct version *v, uint64_t keys)
{
    memset(v, 0, sizeof *v);
    version_key(v, 2 * test_random_below(random, keys));
    /* One after the other: C does not say which argument is made first. */
    const uint64_t seq = 1 + test_random_below(random, KIT_SEQS);
    const bool put = test_random_below(random, 5) != 0;
    v->stamp = stamp_of(seq, put ? KIND_PUT : KIND_DELETE);
    v->value_size = stamp_kind(v->stamp) ? test_random_below(random, sizeof v->value) : 0;
    for (size_t i = 0; i < v->value_size; i++)
        v->value[i] = (uint8_t)("abcd"[test_random_below(random, 4)]);
}

static inline void model_make(struct model *m, struct test_random *random, size_t count,
                              uint64_t keys)
{
    m->room = count;
    m->versions = (struct version *)mem_new_array(&alloc_libc, count, sizeof *m->versions);
    for (size_t i = 0; i < count; i++)
        version_make(random, &m->versions[i], keys);
    qsort(m->versions, count, sizeof *m->versions, version_order);
    m->count = 0;
    for (size_t i = 0; i < count; i++)
        if (m->count == 0 || version_order(&m->versions[m->count - 1], &m->versions[i]) != 0)
            m->versions[m->count++] = m->versions[i];
}

static inline void model_free(struct model *m)
{
    mem_free(&alloc_libc, m->versions, m->room * sizeof *m->versions);
}

static inline size_t model_lower_bound(const struct model *m, struct slice key, uint64_t stamp)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct version *v = &m->versions[middle];
        if (version_compare(key_of(v), v->stamp, key, stamp) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What a get must answer, or NULL. */
static inline const struct version *model_get(const struct model *m, const struct lookup *lookup)
{
    const size_t i = model_lower_bound(m, lookup->key, lookup->stamp_max);
    return i < m->count && slice_equal(key_of(&m->versions[i]), lookup->key) ? &m->versions[i]
                                                                             : NULL;
}

struct kit {
    struct test_op t;
    tamiz_env *env;
    struct epoch epoch;
    struct cache *cache;
    struct file_pool files;
    struct table_world world;
    unsigned events[TAMIZ_EVENT_NOTE + 1];
};

static inline void kit_event(void *ctx, tamiz_event_kind kind, const char *text)
{
    struct kit *k = (struct kit *)ctx;
    (void)text;
    k->events[kind]++;
}

static inline void kit_make(struct kit *k, size_t cache_bytes)
{
    memset(k, 0, sizeof *k);
    test_op_init(&k->t);
    k->env = tamiz_env_memory_new();
    assert_status(&k->t.op, epoch_init(&k->t.op, &k->epoch, &alloc_libc), TAMIZ_OK);
    k->cache = cache_new(&alloc_libc, &k->epoch, cache_bytes);
    assert_non_null(k->cache);
    assert_status(&k->t.op, file_pool_init(&k->t.op, &k->files, k->env, 4), TAMIZ_OK);
    k->world = (struct table_world){.env = k->env,
                                    .files = &k->files,
                                    .alloc = &alloc_libc,
                                    .epoch = &k->epoch,
                                    .cache = k->cache,
                                    .log = {kit_event, k},
                                    .verify = true};
}

static inline void kit_free(struct kit *k)
{
    cache_free(k->cache);
    epoch_free(&k->epoch);
    file_pool_free(&k->files);
    tamiz_env_memory_free(k->env);
}

static inline struct table_build_options kit_options(const char *filter, enum codec codec)
{
    struct table_build_options o = {.block_bytes = 512,
                                    .codec = codec,
                                    .compression_level = 3,
                                    .purpose = IO_DATA,
                                    .file_id = 0x1234,
                                    .created_us = 1000000};
    assert_public(tamiz_filter_policy_parse(filter, &o.filter), TAMIZ_OK);
    return o;
}

static inline void summary_init(struct table_summary *s)
{
    memset(s, 0, sizeof *s);
    s->smallest = buf_init(&alloc_libc);
    s->largest = buf_init(&alloc_libc);
}

static inline void summary_free(struct table_summary *s)
{
    buf_free(&s->smallest);
    buf_free(&s->largest);
}

/* Writes the model to `path`; the summary's bufs are freed, its numbers stay. */
static inline void kit_build(struct kit *k, const char *path, const struct model *m,
                             const struct table_build_options *options, struct table_summary *s)
{
    struct table_builder *b;
    struct op *op = &k->t.op;
    assert_status(op, table_builder_open(op, k->env, &alloc_libc, path, options, &b), TAMIZ_OK);
    for (size_t i = 0; i < m->count; i++) {
        const struct version *v = &m->versions[i];
        assert_status(op, table_builder_add(op, b, key_of(v), v->stamp, value_of(v)), TAMIZ_OK);
    }
    summary_init(s);
    assert_status(op, table_builder_finish(op, b, s), TAMIZ_OK);
    summary_free(s);
}

static inline struct table *kit_table(struct kit *k, const char *path)
{
    struct table *t = table_new(&k->t.op, &k->world, path, 7, 0, 0);
    assert_non_null(t);
    return t;
}

static inline void kit_read_file(struct kit *k, const char *path, struct buf *out)
{
    *out = buf_init(&alloc_libc);
    assert_status(&k->t.op, env_read_file(&k->t.op, k->env, path, IO_META, (size_t)1 << 30, out),
                  TAMIZ_OK);
}

/* Replaces the file. */
static inline void kit_write_file(struct kit *k, const char *path, const void *bytes, size_t size)
{
    struct op *op = &k->t.op;
    struct file *file;
    if (env_remove(op, k->env, path) != TAMIZ_OK)
        op_forgive(op);
    assert_status(op, file_open(op, k->env, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file),
                  TAMIZ_OK);
    assert_status(op, file_write(op, file, IO_META, 0, bytes, size), TAMIZ_OK);
    assert_status(op, file_close(op, file), TAMIZ_OK);
}

static const struct table_read kit_read = {
    .level = 1, .use_filter = true, .fill_cache = true, .purpose = IO_DATA};

/* What a get of the table answers, with the value copied. */
struct answer {
    tamiz_status status;
    uint64_t stamp;
    uint8_t value[120];
    size_t value_size;
};

static inline struct answer kit_get(struct kit *k, struct table *t, const struct lookup *lookup,
                                    const struct table_read *how)
{
    struct answer a = {TAMIZ_OK, 0, {0}, 0};
    struct slice value;
    struct cached_block *pinned;
    struct epoch_slot *slot = epoch_enter(&k->epoch);
    a.status = table_get(&k->t.op, t, lookup, how, &a.stamp, &value, &pinned);
    if (a.status == TAMIZ_OK && value.size <= sizeof a.value) {
        a.value_size = value.size;
        if (value.size)
            memcpy(a.value, value.data, value.size);
    }
    epoch_leave(slot);
    cached_block_unpin(pinned);
    return a;
}

/* Is `a` what the model says? */
static inline bool kit_right(const struct model *m, const struct lookup *lookup,
                             const struct answer *a)
{
    const struct version *v = model_get(m, lookup);
    if (!v)
        return a->status == TAMIZ_NOT_FOUND;
    return a->status == TAMIZ_OK && a->stamp == v->stamp &&
           slice_equal(value_of(v), slice_of(a->value, a->value_size));
}

#endif
