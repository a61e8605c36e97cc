/* SPDX-License-Identifier: MIT
 *
 * Arguments no caller should give: each has its status, and what comes out is empty.
 */
#include <string.h>

#include "support/store.h"
#include "support/test.h"
#include "tamiz/env_sim.h"

static tamiz_env *env;
static tamiz *db;

static int setup(void **state)
{
    (void)state;
    env = tamiz_env_memory_new();
    db = env ? test_open("s", "threads=0", env) : NULL;
    return db ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    test_close(db);
    tamiz_env_memory_free(env);
    return 0;
}

static void refused(tamiz_options o, const char *words)
{
    tamiz *other = db;
    assert_int_equal(tamiz_open("t", &o, &other), TAMIZ_INVALID_ARGUMENT);
    assert_null(other);
    if (!strstr(tamiz_error_detail(), words))
        fail_msg("wanted \"%s\", the detail is \"%s\"", words, tamiz_error_detail());
}

static void fields_that_text_could_not_set_are_refused(void **state)
{
    (void)state;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = env;
    tamiz_options wrong = o;
    wrong.sync = TAMIZ_SYNC_INTERVAL;
    refused(wrong, "sync=interval:0: want MS 1..3600000");
    wrong = o;
    wrong.filter_memory = (tamiz_filter_memory)2;
    refused(wrong, "filter_memory=2");
    wrong = o;
    wrong.compression[3] = (tamiz_compression)3;
    refused(wrong, "compression of level 3");
    wrong = o;
    wrong.compression[7] = TAMIZ_COMPRESSION_ZSTD;
    wrong.compression_level[7] = 20;
    refused(wrong, "zstd:20: want 1..19");
    char *text = (char *)"something";
    assert_int_equal(tamiz_options_text(&wrong, &text), TAMIZ_INVALID_ARGUMENT);
    assert_null(text);
}

static void options_of_an_older_caller_can_be_set_from_text(void **state)
{
    (void)state;
    struct {
        tamiz_options options;
    } older;
    memset(&older, 0xa5, sizeof older);
    const tamiz_options defaults = TAMIZ_OPTIONS_INIT;
    const size_t known = offsetof(tamiz_options, threads);
    memcpy(&older, &defaults, known);
    older.options.struct_size = known;
    assert_int_equal(tamiz_options_set(&older.options, "cache=1MiB threads=7"), TAMIZ_OK);
    assert_int_equal(older.options.cache, 1 << 20);
    assert_int_equal(older.options.struct_size, known);
    assert_int_equal(older.options.threads, 0xa5a5a5a5); /* beyond its end nothing was written */
}

static void an_env_without_a_function_is_refused(void **state)
{
    (void)state;
    tamiz_env_ops ops = *env->ops;
    const tamiz_env incomplete = {&ops, env->ctx}, empty = {NULL, NULL};
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = &incomplete;
    ops.sync_directory = NULL;
    refused(o, "env:");
    ops = *env->ops;
    ops.struct_size = offsetof(tamiz_env_ops, boot_id);
    refused(o, "env:");
    o.env = &empty;
    refused(o, "env:");
}

/* Fields of an env that a newer library has: what stands there is not the older caller's. */
static void functions_beyond_an_envs_size_are_not_called(void **state)
{
    (void)state;
    tamiz_env_ops ops;
    memset(&ops, 0xa5, sizeof ops);
    memcpy(&ops, env->ops, offsetof(tamiz_env_ops, read_many));
    ops.struct_size = offsetof(tamiz_env_ops, read_many);
    const tamiz_env older = {&ops, env->ctx};
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *other;
    const void *keys[2] = {"a", "b"};
    const size_t sizes[2] = {1, 1};
    void *values[2];
    size_t value_sizes[2];
    tamiz_status statuses[2];
    char *text;
    o.env = &older;
    assert_public(tamiz_open("t", &o, &other), TAMIZ_OK);
    assert_public(tamiz_put(other, "a", 1, "1", 1, NULL), TAMIZ_OK);
    assert_public(tamiz_flush(other), TAMIZ_OK);
    assert_public(tamiz_multi_get(other, 2, keys, sizes, values, value_sizes, statuses, NULL),
                  TAMIZ_OK);
    assert_int_equal(statuses[1], TAMIZ_NOT_FOUND);
    tamiz_free(values[0]);
    assert_public(tamiz_property(other, "options", &text), TAMIZ_OK);
    tamiz_free(text);
    test_close(other);
}

static void what_comes_out_of_a_refused_call_is_empty(void **state)
{
    (void)state;
    char *text = (char *)"something";
    assert_int_equal(tamiz_property(NULL, "levels", &text), TAMIZ_INVALID_ARGUMENT);
    assert_null(text);
    text = (char *)"something";
    assert_int_equal(tamiz_property(db, NULL, &text), TAMIZ_INVALID_ARGUMENT);
    assert_null(text);
    const tamiz_trace deaf = {NULL, NULL};
    tamiz_read_options r = TAMIZ_READ_OPTIONS_INIT;
    void *value = &r;
    size_t size = 1;
    r.trace = &deaf;
    assert_int_equal(tamiz_get(db, "a", 1, &value, &size, &r), TAMIZ_INVALID_ARGUMENT);
    assert_null(value);
    assert_int_equal(size, 0);
}

static void null_is_the_empty_key_only_with_size_0(void **state)
{
    (void)state;
    static char large[65536];
    tamiz_iter *it;
    assert_public(tamiz_put(db, NULL, 0, "v", 1, NULL), TAMIZ_OK);
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    tamiz_iter_seek(it, NULL, 4);
    assert_false(tamiz_iter_valid(it));
    assert_int_equal(tamiz_iter_status(it), TAMIZ_INVALID_ARGUMENT);
    tamiz_iter_seek(it, NULL, 0);
    assert_true(tamiz_iter_valid(it));
    assert_int_equal(tamiz_iter_status(it), TAMIZ_OK);
    tamiz_iter_seek_for_prev(it, NULL, 4);
    assert_false(tamiz_iter_valid(it));
    assert_int_equal(tamiz_iter_status(it), TAMIZ_INVALID_ARGUMENT);
    tamiz_iter_close(it);
    assert_int_equal(tamiz_compact(db, large, sizeof large, NULL, 0), TAMIZ_INVALID_ARGUMENT);
}

static void a_filter_that_is_null_denies_nothing(void **state)
{
    (void)state;
    const uint64_t hashes[2] = {1, 2};
    bool maybe[2] = {false, false};
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    assert_true(tamiz_filter_may_contain(NULL, 1));
    tamiz_filter_may_contain_many(NULL, hashes, 2, maybe);
    assert_true(maybe[0] && maybe[1]);
    info.keys = 7;
    tamiz_filter_info_get(NULL, &info);
    assert_int_equal(info.keys, 0);
    tamiz_filter_info_get(NULL, NULL);
}

#define IN_STORE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_STORE(fields_that_text_could_not_set_are_refused),
        IN_STORE(options_of_an_older_caller_can_be_set_from_text),
        IN_STORE(an_env_without_a_function_is_refused),
        IN_STORE(functions_beyond_an_envs_size_are_not_called),
        IN_STORE(what_comes_out_of_a_refused_call_is_empty),
        IN_STORE(null_is_the_empty_key_only_with_size_0),
        IN_STORE(a_filter_that_is_null_denies_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
