/* SPDX-License-Identifier: MIT
 *
 * What the tests of this folder share. Each test is a public bug report of a store like this one,
 * told as a script and named by its case, R01 to R35; a case that does not apply says why in its
 * file. One store at a time, on a simulated machine that each test gets fresh.
 *
 * Header only: it belongs to the programs of this folder.
 */
#ifndef TAMIZ_TESTS_CASES_KIT_H
#define TAMIZ_TESTS_CASES_KIT_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "env/env.h"
#include "support/store.h"
#include "tamiz/env_sim.h"
#include "version/filename.h"

static tamiz_env_sim *sim;
static const tamiz_env *env;
static tamiz *db;
static const tamiz_write_options synced = {sizeof(tamiz_write_options), true, false, false, 0};

#define SMALL "threads=0 memtable=16KiB block=512 table=8KiB level0_runs=2 level0_stop=6 "

static inline int setup(void **state)
{
    (void)state;
    sim = tamiz_env_sim_new(1);
    env = tamiz_env_sim_env(sim);
    return sim ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    if (db)
        (void)tamiz_close(db);
    db = NULL;
    tamiz_env_sim_free(sim);
    return 0;
}

#define CASE(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)
#define OK(call) assert_public((call), TAMIZ_OK)

/* ---- opening, closing, crashing */

static inline void open_with(const char *options)
{
    assert_null(db);
    db = test_open("store", options, env);
}

static inline tamiz_status try_open(const char *options)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    assert_null(db);
    OK(tamiz_options_set(&o, options));
    o.env = env;
    return tamiz_open("store", &o, &db);
}

static inline void close_it(void)
{
    OK(tamiz_close(db));
    db = NULL;
}

static inline void reopen(const char *options)
{
    close_it();
    open_with(options);
}

/* The process image is dropped, the machine is what `mode` leaves of it. */
static inline void crash(tamiz_sim_crash mode, const char *name, uint64_t n)
{
    tamiz_env_sim *after = tamiz_env_sim_copy(sim);
    assert_non_null(after);
    tamiz_env_sim_crash(after, mode, name, n);
    if (db)
        (void)tamiz_close(db); /* on the old machine, which nobody looks at any more */
    db = NULL;
    tamiz_env_sim_free(sim);
    sim = after;
    env = tamiz_env_sim_env(sim);
}

/* A second machine from this moment on; `crash` ends the branch, `restore` goes back to it. */
static inline tamiz_env_sim *remember(void)
{
    tamiz_env_sim *copy = tamiz_env_sim_copy(sim);
    assert_non_null(copy);
    return copy;
}

static inline void restore(tamiz_env_sim *remembered)
{
    if (db)
        (void)tamiz_close(db);
    db = NULL;
    tamiz_env_sim_free(sim);
    sim = tamiz_env_sim_copy(remembered);
    assert_non_null(sim);
    env = tamiz_env_sim_env(sim);
}

static inline void start_over(void)
{
    teardown(NULL);
    assert_int_equal(setup(NULL), 0);
}

/* ---- keys and values */

static inline const char *k(int i)
{
    static char text[4][16];
    static int next;
    char *out = text[next++ & 3];
    (void)snprintf(out, 16, "k%08d", i);
    return out;
}

/* n bytes that follow from `seed`, none of them 0. Static. */
static inline const char *v(int seed, int n)
{
    static char text[2][200001];
    static int next;
    char *out = text[next++ & 1];
    struct test_random r = {(uint64_t)seed};
    for (int i = 0; i < n; i++)
        out[i] = (char)('a' + test_random_below(&r, 26));
    out[n] = 0;
    return out;
}

static inline void put(const char *key, const char *value)
{
    test_put(db, key, value);
}

static inline void put_synced(const char *key, const char *value)
{
    OK(tamiz_put(db, key, strlen(key), value, strlen(value), &synced));
}

static inline void del(const char *key)
{
    test_delete(db, key);
}

static inline void expect(const char *key, const char *value)
{
    test_expect(db, key, value, NULL);
}

static inline void expect_at(const char *key, const char *value, const tamiz_snapshot *s)
{
    test_expect(db, key, value, s);
}

static inline tamiz_snapshot *snap(void)
{
    tamiz_snapshot *s = NULL;
    OK(tamiz_snapshot_take(db, &s));
    return s;
}

static inline void flush(void)
{
    OK(tamiz_flush(db));
}

static inline void compact(void)
{
    OK(tamiz_compact(db, NULL, 0, NULL, 0));
}

static inline void compact_range(const char *from, const char *to)
{
    OK(tamiz_compact(db, from, strlen(from), to, strlen(to)));
}

static inline tamiz_iter *iter(void)
{
    tamiz_iter *it = NULL;
    OK(tamiz_iter_open(db, NULL, &it));
    return it;
}

/* Where the iterator stands; "-": nowhere. Static. */
static inline const char *at(const tamiz_iter *it)
{
    static char text[300];
    if (!tamiz_iter_valid(it)) {
        assert_int_equal(tamiz_iter_status(it), TAMIZ_OK);
        return "-";
    }
    size_t ks, vs;
    const char *key = tamiz_iter_key(it, &ks), *value = tamiz_iter_value(it, &vs);
    (void)snprintf(text, sizeof text, "%.*s/%.*s", (int)ks, key, (int)vs, value);
    return text;
}

static inline size_t scan_count(const tamiz_snapshot *s)
{
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    tamiz_iter *it;
    size_t there = 0, back = 0;
    o.snapshot = s;
    OK(tamiz_iter_open(db, &o, &it));
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it))
        there++;
    OK(tamiz_iter_status(it));
    for (tamiz_iter_seek_last(it); tamiz_iter_valid(it); tamiz_iter_prev(it))
        back++;
    OK(tamiz_iter_status(it));
    assert_int_equal(there, back);
    tamiz_iter_close(it);
    return there;
}

/* ---- files */

struct newest {
    enum file_kind kind;
    uint64_t number;
    size_t count;
    bool oldest;
};

static inline void see_newest(void *ctx, const char *name)
{
    struct newest *n = ctx;
    uint64_t number;
    if (filename_parse(name, &number) != n->kind)
        return;
    if (n->count == 0 || (n->oldest ? number < n->number : number > n->number))
        n->number = number;
    n->count++;
}

static inline size_t count_files(enum file_kind kind)
{
    struct newest n = {.kind = kind};
    assert_int_equal(env->ops->list(env->ctx, "store", see_newest, &n), 0);
    return n.count;
}

/* The path of the newest (or oldest) file of a kind. Static. */
static inline const char *path_of(enum file_kind kind, bool oldest)
{
    static char path[80];
    struct newest n = {.kind = kind, .oldest = oldest};
    char name[FILE_NAME_MAX];
    assert_int_equal(env->ops->list(env->ctx, "store", see_newest, &n), 0);
    assert_true(n.count > 0);
    filename_format(kind, n.number, name);
    (void)snprintf(path, sizeof path, "store/%s", name);
    return path;
}

static inline struct buf file_get(const char *path)
{
    struct test_op t;
    struct buf bytes = buf_init(&alloc_libc);
    test_op_init(&t);
    assert_status(&t.op, env_read_file(&t.op, env, path, IO_DATA, (size_t)1 << 30, &bytes),
                  TAMIZ_OK);
    return bytes;
}

/* The file's bytes become these; durable. */
static inline void file_set(const char *path, const void *bytes, size_t size)
{
    void *file = NULL;
    (void)env->ops->remove(env->ctx, path);
    assert_int_equal(env->ops->open(env->ctx, path,
                                    TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file),
                     0);
    assert_int_equal(env->ops->write(env->ctx, file, 0, bytes, size), 0);
    assert_int_equal(env->ops->sync(env->ctx, file), 0);
    assert_int_equal(env->ops->close(env->ctx, file), 0);
    assert_int_equal(env->ops->sync_directory(env->ctx, "store"), 0);
}

/* A fault that fails the nth call of a kind on files of that name. */
static inline void fault(tamiz_sim_call call, const char *name, uint64_t nth, int error,
                         bool sticky)
{
    tamiz_sim_fault f = TAMIZ_SIM_FAULT_INIT;
    f.call = call;
    f.name = name;
    f.nth = nth;
    f.error = error;
    f.sticky = sticky;
    assert_true(tamiz_env_sim_fault(sim, &f));
}

static inline bool test_long(void)
{
    const char *text = getenv("TAMIZ_LONG");
    return text && *text && *text != '0';
}

#endif
