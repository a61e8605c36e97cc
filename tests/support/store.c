/* SPDX-License-Identifier: MIT */
#include "support/store.h"

#include <string.h>

tamiz *test_open(const char *path, const char *options, const tamiz_env *env)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *db = NULL;
    assert_public(tamiz_options_set(&o, options), TAMIZ_OK);
    o.env = env;
    assert_public(tamiz_open(path, &o, &db), TAMIZ_OK);
    assert_non_null(db);
    return db;
}

void test_close(tamiz *db)
{
    assert_public(tamiz_close(db), TAMIZ_OK);
}

void test_put(tamiz *db, const char *key, const char *value)
{
    assert_public(tamiz_put(db, key, strlen(key), value, strlen(value), NULL), TAMIZ_OK);
}

void test_delete(tamiz *db, const char *key)
{
    assert_public(tamiz_delete(db, key, strlen(key), NULL), TAMIZ_OK);
}

void test_expect(tamiz *db, const char *key, const char *value, const tamiz_snapshot *snapshot)
{
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    o.snapshot = snapshot;
    void *got = NULL;
    size_t size = 0;
    const tamiz_status st = tamiz_get(db, key, strlen(key), &got, &size, &o);
    if (!value) {
        if (st != TAMIZ_NOT_FOUND)
            print_error("%s: %s, wanted it absent\n", key, tamiz_status_name(st));
        assert_int_equal(st, TAMIZ_NOT_FOUND);
        assert_null(got);
        return;
    }
    if (st != TAMIZ_OK)
        print_error("%s: %s: %s\n", key, tamiz_status_name(st), tamiz_error_detail());
    assert_int_equal(st, TAMIZ_OK);
    assert_int_equal(size, strlen(value));
    assert_memory_equal(got, value, size);
    tamiz_free(got);
}

static void append(char *text, size_t capacity, const tamiz_iter *it)
{
    size_t ks, vs;
    const char *k = tamiz_iter_key(it, &ks), *v = tamiz_iter_value(it, &vs);
    const size_t at = strlen(text);
    (void)snprintf(text + at, capacity - at, "%s%.*s=%.*s", at ? " " : "", (int)ks, k, (int)vs, v);
}

const char *test_scan(tamiz *db, const tamiz_snapshot *snapshot)
{
    static char forwards[4096];
    size_t there = 0, back = 0;
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    tamiz_iter *it;
    o.snapshot = snapshot;
    forwards[0] = 0;
    assert_public(tamiz_iter_open(db, &o, &it), TAMIZ_OK);
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it)) {
        append(forwards, sizeof forwards, it);
        there++;
    }
    assert_int_equal(tamiz_iter_status(it), TAMIZ_OK);
    for (tamiz_iter_seek_last(it); tamiz_iter_valid(it); tamiz_iter_prev(it)) {
        char one[1024] = "";
        append(one, sizeof one, it);
        assert_non_null(strstr(forwards, one));
        back++;
    }
    assert_int_equal(tamiz_iter_status(it), TAMIZ_OK);
    assert_int_equal(there, back);
    tamiz_iter_close(it);
    return forwards;
}

struct counting {
    const char *suffix;
    size_t count;
};

static void count_one(void *ctx, const char *name)
{
    struct counting *c = ctx;
    const size_t n = strlen(name), s = strlen(c->suffix);
    c->count += n >= s && strcmp(name + n - s, c->suffix) == 0;
}

size_t test_count_files(const tamiz_env *env, const char *directory, const char *suffix)
{
    struct counting c = {suffix, 0};
    if (!env)
        env = tamiz_env_posix();
    assert_int_equal(env->ops->list(env->ctx, directory, count_one, &c), 0);
    return c.count;
}
