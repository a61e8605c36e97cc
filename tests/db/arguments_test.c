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
    const void *keys[] = {"a", "b"};
    const size_t sizes[] = {1, 1};
    void *values[] = {&r, &r};
    size_t value_sizes[] = {1, 1};
    tamiz_status statuses[] = {TAMIZ_OK, TAMIZ_OK};
    assert_int_equal(tamiz_multi_get(db, 2, keys, sizes, values, value_sizes, statuses, &r),
                     TAMIZ_INVALID_ARGUMENT);
    for (int i = 0; i < 2; i++) {
        assert_null(values[i]);
        assert_int_equal(value_sizes[i], 0);
        assert_int_equal(statuses[i], TAMIZ_INVALID_ARGUMENT);
    }
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

/* A key that can't be one fails alone. */
static void a_bad_key_among_many_fails_alone(void **state)
{
    static uint8_t large[65536];
    const void *const keys[] = {"a", NULL, "c", large, "b"};
    const size_t sizes[] = {1, 3, 1, sizeof large, 1};
    void *values[5];
    size_t value_sizes[5];
    tamiz_status statuses[5];
    (void)state;
    test_put(db, "a", "first");
    test_put(db, "b", "second");
    assert_int_equal(tamiz_multi_get(db, 5, keys, sizes, values, value_sizes, statuses, NULL),
                     TAMIZ_INVALID_ARGUMENT);
    assert_non_null(strstr(tamiz_error_detail(), "key: NULL with size 3"));
    const tamiz_status wanted[] = {TAMIZ_OK, TAMIZ_INVALID_ARGUMENT, TAMIZ_NOT_FOUND,
                                   TAMIZ_INVALID_ARGUMENT, TAMIZ_OK};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(statuses[i], wanted[i]);
        assert_int_equal(values[i] != NULL, wanted[i] == TAMIZ_OK);
    }
    assert_int_equal(value_sizes[4], 6);
    assert_memory_equal(values[4], "second", 6);
    tamiz_free(values[0]);
    tamiz_free(values[4]);
}

/* Structs of callers that knew fewer fields: they are told those, and nothing behind them. */
static void shorter_structs_are_told_what_they_have_room_for(void **state)
{
    (void)state;
    test_put(db, "a", "first");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    tamiz_report report = TAMIZ_REPORT_INIT;
    report.struct_size = offsetof(tamiz_report, keys);
    report.keys = 77;
    assert_public(tamiz_verify(db, &report), TAMIZ_OK);
    assert_true(report.files >= 1 && report.blocks >= 1);
    assert_int_equal(report.keys, 77);
    assert_int_equal(report.struct_size, offsetof(tamiz_report, keys));
    tamiz_backup_info info = TAMIZ_BACKUP_INFO_INIT;
    info.struct_size = offsetof(tamiz_backup_info, bytes_copied);
    info.bytes_copied = 77;
    assert_public(tamiz_backup(db, "copies", &info), TAMIZ_OK);
    assert_true(info.number == 1 && info.tables_copied >= 1 && info.bytes_copied == 77);
    info.struct_size = 3;
    assert_int_equal(tamiz_backup(db, "copies", &info), TAMIZ_INVALID_ARGUMENT);
    report.struct_size = 3;
    assert_int_equal(tamiz_verify(db, &report), TAMIZ_INVALID_ARGUMENT);
}

static void copies_and_ingestions_are_counted(void **state)
{
    tamiz_stats before = TAMIZ_STATS_INIT, s = TAMIZ_STATS_INIT;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_table_writer *w;
    uint64_t bytes = 0;
    const char *const path = "apart.sst";
    char *text;
    (void)state;
    o.env = env;
    assert_public(tamiz_stats_get(db, &before), TAMIZ_OK);
    assert_public(tamiz_table_writer_open(path, &o, &w), TAMIZ_OK);
    assert_public(tamiz_table_writer_put(w, "x", 1, "y", 1), TAMIZ_OK);
    assert_public(tamiz_table_writer_finish(w, NULL, &bytes), TAMIZ_OK);
    assert_public(tamiz_ingest(db, &path, 1), TAMIZ_OK);
    assert_public(tamiz_checkpoint(db, "moment"), TAMIZ_OK);
    assert_public(tamiz_backup(db, "copies", NULL), TAMIZ_OK);
    assert_public(tamiz_stats_get(db, &s), TAMIZ_OK);
    assert_int_equal(s.ingests - before.ingests, 1);
    assert_int_equal(s.ingested_tables - before.ingested_tables, 1);
    assert_int_equal(s.ingested_bytes_linked + s.ingested_bytes_copied -
                         before.ingested_bytes_linked - before.ingested_bytes_copied,
                     bytes);
    assert_int_equal(s.checkpoints - before.checkpoints, 1);
    assert_int_equal(s.backups - before.backups, 1);
    assert_true(s.copied_bytes + s.copied_bytes_linked >=
                before.copied_bytes + before.copied_bytes_linked + 2 * bytes);
    assert_public(tamiz_property(db, "stats.json", &text), TAMIZ_OK);
    assert_non_null(strstr(text, "\"ingested_tables\":1"));
    tamiz_free(text);
    assert_public(tamiz_property(db, "stats.prometheus", &text), TAMIZ_OK);
    assert_non_null(strstr(text, "tamiz_copied_bytes_linked{"));
    tamiz_free(text);
}

/* The reason stands at the end of the story, and a path of thousands of bytes must not push it out.
 */
static void a_long_path_leaves_room_for_the_reason(void **state)
{
    char path[3000];
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *other;
    (void)state;
    memset(path, 'p', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = 0;
    assert_true(tamiz_open(path, &o, &other) < 0);
    assert_non_null(strstr(tamiz_error_detail(), "/pppp"));
    assert_non_null(strstr(tamiz_error_detail(), " ... "));
    assert_non_null(strstr(tamiz_error_detail(), "errno"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_bad_key_among_many_fails_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(shorter_structs_are_told_what_they_have_room_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(copies_and_ingestions_are_counted, setup, teardown),
        cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
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
