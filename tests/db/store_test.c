/* SPDX-License-Identifier: MIT
 *
 * The store through its public calls, on the memory env where no real file is needed.
 */
#include "support/store.h"

#include <stdlib.h>
#include <string.h>

#define QUIET "threads=0 memtable=64KiB"

static int env_setup(void **state)
{
    *state = tamiz_env_memory_new();
    return *state ? 0 : -1;
}

static int env_teardown(void **state)
{
    tamiz_env_memory_free(*state);
    return 0;
}

static void what_was_put_is_there_after_reopening(void **state)
{
    tamiz *db = test_open("s", QUIET, *state);
    test_put(db, "a", "1");
    test_put(db, "b", "2");
    test_delete(db, "a");
    test_expect(db, "a", NULL, NULL);
    test_expect(db, "b", "2", NULL);
    test_close(db);
    for (int i = 0; i < 3; i++) {
        db = test_open("s", QUIET, *state);
        assert_string_equal(test_scan(db, NULL), "b=2");
        test_expect(db, "a", NULL, NULL);
        test_close(db);
    }
    db = test_open("s", QUIET, *state);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_expect(db, "b", "2", NULL);
    test_close(db);
    db = test_open("s", QUIET, *state);
    assert_string_equal(test_scan(db, NULL), "b=2");
    assert_int_equal(test_count_files(*state, "s", ".sst"), 1);
    test_close(db);
}

static void an_empty_key_and_an_empty_value_are_a_key_and_a_value(void **state)
{
    tamiz *db = test_open("s", QUIET, *state);
    assert_public(tamiz_put(db, NULL, 0, "x", 1, NULL), TAMIZ_OK);
    test_put(db, "e", "");
    for (int stage = 0; stage < 3; stage++) {
        test_expect(db, "", "x", NULL);
        test_expect(db, "e", "", NULL);
        assert_public(tamiz_exists(db, "", 0, NULL), TAMIZ_OK);
        assert_public(stage == 0 ? tamiz_flush(db) : tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    }
    test_delete(db, "");
    test_expect(db, "", NULL, NULL);
    test_close(db);
}

static void snapshots_keep_their_moment_through_flush_and_compaction(void **state)
{
    tamiz *db = test_open("s", QUIET, *state);
    tamiz_snapshot *empty, *one, *gone;
    assert_public(tamiz_snapshot_take(db, &empty), TAMIZ_OK);
    test_put(db, "k", "1");
    assert_public(tamiz_snapshot_take(db, &one), TAMIZ_OK);
    test_put(db, "k", "2");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_delete(db, "k");
    assert_public(tamiz_snapshot_take(db, &gone), TAMIZ_OK);
    test_put(db, "k", "3");
    for (int stage = 0; stage < 3; stage++) {
        test_expect(db, "k", NULL, empty);
        test_expect(db, "k", "1", one);
        test_expect(db, "k", NULL, gone);
        test_expect(db, "k", "3", NULL);
        assert_string_equal(test_scan(db, one), "k=1");
        assert_string_equal(test_scan(db, gone), "");
        assert_public(stage == 0 ? tamiz_flush(db) : tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    }
    assert_int_equal(tamiz_close(db), TAMIZ_BUSY);
    tamiz_snapshot_release(empty);
    tamiz_snapshot_release(one);
    tamiz_snapshot_release(gone);
    test_close(db);
}

static void a_batch_happens_whole_and_its_later_writes_win(void **state)
{
    tamiz *db = test_open("s", QUIET, *state);
    tamiz_batch *b = tamiz_batch_new();
    assert_public(tamiz_batch_put(b, db, "a", 1, "1", 1), TAMIZ_OK);
    assert_public(tamiz_batch_put(b, NULL, "b", 1, "2", 1), TAMIZ_OK);
    assert_public(tamiz_batch_delete(b, NULL, "a", 1), TAMIZ_OK);
    assert_public(tamiz_batch_put(b, NULL, "b", 1, "3", 1), TAMIZ_OK);
    assert_int_equal(tamiz_batch_count(b), 4);
    assert_public(tamiz_write(db, b, NULL), TAMIZ_OK);
    assert_string_equal(test_scan(db, NULL), "b=3");
    tamiz_batch_clear(b);
    assert_public(tamiz_write(db, b, NULL), TAMIZ_OK);
    tamiz_batch_free(b);
    test_close(db);
    db = test_open("s", QUIET, *state);
    assert_string_equal(test_scan(db, NULL), "b=3");
    test_close(db);
}

/* R01: the entry before, across a deleted key, for every mix of memtable and files. */
static void stepping_back_across_a_deleted_key_lands_on_the_one_before(void **state)
{
    for (int mix = 0; mix < 3; mix++) {
        tamiz *db = test_open("s", "threads=0 compaction=off", *state);
        test_put(db, "a", "va");
        test_put(db, "b", "vb");
        test_put(db, "c", "vc");
        if (mix == 2)
            assert_public(tamiz_flush(db), TAMIZ_OK);
        test_delete(db, "b");
        if (mix == 1)
            assert_public(tamiz_flush(db), TAMIZ_OK);
        tamiz_iter *it;
        assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
        tamiz_iter_seek(it, "c", 1);
        assert_memory_equal(tamiz_iter_value(it, NULL), "vc", 2);
        tamiz_iter_prev(it);
        assert_memory_equal(tamiz_iter_value(it, NULL), "va", 2);
        tamiz_iter_next(it);
        assert_memory_equal(tamiz_iter_value(it, NULL), "vc", 2);
        tamiz_iter_prev(it);
        assert_memory_equal(tamiz_iter_value(it, NULL), "va", 2);
        tamiz_iter_prev(it);
        assert_false(tamiz_iter_valid(it));
        tamiz_iter_seek_last(it);
        assert_memory_equal(tamiz_iter_key(it, NULL), "c", 1);
        tamiz_iter_prev(it);
        tamiz_iter_next(it);
        assert_memory_equal(tamiz_iter_key(it, NULL), "c", 1);
        tamiz_iter_next(it);
        assert_false(tamiz_iter_valid(it));
        tamiz_iter_seek_for_prev(it, "bb", 2);
        assert_memory_equal(tamiz_iter_key(it, NULL), "a", 1);
        tamiz_iter_seek_for_prev(it, "c", 1);
        assert_memory_equal(tamiz_iter_key(it, NULL), "c", 1);
        tamiz_iter_close(it);
        test_close(db);
        tamiz_env_memory_free(*state);
        *state = tamiz_env_memory_new();
    }
}

static void bounds_and_prefix_hold_in_both_directions(void **state)
{
    tamiz *db = test_open("s", QUIET, *state);
    for (char c = 'a'; c <= 'z'; c++) {
        const char key[] = {'k', c};
        assert_public(tamiz_put(db, key, 2, &c, 1, NULL), TAMIZ_OK);
    }
    assert_public(tamiz_put(db, "\xff\xff", 2, "x", 1, NULL), TAMIZ_OK);
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    tamiz_iter *it;
    o.lower = "kd", o.lower_size = 2;
    o.upper = "kg", o.upper_size = 2;
    assert_public(tamiz_iter_open(db, &o, &it), TAMIZ_OK);
    char seen[16] = "";
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it))
        strncat(seen, tamiz_iter_value(it, NULL), 1);
    for (tamiz_iter_seek_last(it); tamiz_iter_valid(it); tamiz_iter_prev(it))
        strncat(seen, tamiz_iter_value(it, NULL), 1);
    assert_string_equal(seen, "deffed");
    tamiz_iter_seek(it, "ka", 2);
    assert_memory_equal(tamiz_iter_key(it, NULL), "kd", 2);
    tamiz_iter_seek_for_prev(it, "kz", 2);
    assert_memory_equal(tamiz_iter_key(it, NULL), "kf", 2);
    tamiz_iter_close(it);
    o = (tamiz_read_options)TAMIZ_READ_OPTIONS_INIT;
    o.prefix = "\xff", o.prefix_size = 1;
    assert_public(tamiz_iter_open(db, &o, &it), TAMIZ_OK);
    tamiz_iter_seek_first(it);
    assert_true(tamiz_iter_valid(it));
    tamiz_iter_next(it);
    assert_false(tamiz_iter_valid(it));
    tamiz_iter_close(it);
    test_close(db);
}

static void bad_arguments_get_a_status_and_words(void **state)
{
    tamiz *db = test_open("s", QUIET, *state);
    static const char big[65536];
    void *value;
    size_t size;
    assert_int_equal(tamiz_put(NULL, "k", 1, "v", 1, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_put(db, NULL, 3, "v", 1, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_put(db, "k", 1, NULL, 7, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_put(db, big, sizeof big, "v", 1, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_non_null(strstr(tamiz_error_detail(), "65536"));
    assert_int_equal(tamiz_put(db, "k", 1, "v", ((size_t)1 << 30) + 1, NULL),
                     TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_get(db, "k", 1, NULL, &size, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_get(db, big, sizeof big, &value, &size, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_compact(db, "b", 1, "a", 1), TAMIZ_INVALID_ARGUMENT);
    test_close(db);
    assert_int_equal(tamiz_open("", NULL, &db), TAMIZ_INVALID_ARGUMENT);
    assert_null(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, env_setup, env_teardown)
        IN_MEMORY(what_was_put_is_there_after_reopening),
        IN_MEMORY(an_empty_key_and_an_empty_value_are_a_key_and_a_value),
        IN_MEMORY(snapshots_keep_their_moment_through_flush_and_compaction),
        IN_MEMORY(a_batch_happens_whole_and_its_later_writes_win),
        IN_MEMORY(stepping_back_across_a_deleted_key_lands_on_the_one_before),
        IN_MEMORY(bounds_and_prefix_hold_in_both_directions),
        IN_MEMORY(bad_arguments_get_a_status_and_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
