/* SPDX-License-Identifier: MIT
 *
 * Closed iterators that are opened again: nobody can tell, but by the allocations that are missing.
 */
#include <string.h>

#include "support/alloc_fail.h"
#include "support/store.h"

#define OPTIONS "threads=0 memtable=64KiB compaction=off"

struct world {
    struct alloc_fail alloc;
    tamiz_env *env;
    tamiz *db;
};

static void world_begin_with(struct world *w, const char *more)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    alloc_fail_init(&w->alloc);
    w->env = tamiz_env_memory_new();
    assert_non_null(w->env);
    assert_public(tamiz_options_set(&o, OPTIONS), TAMIZ_OK);
    assert_public(tamiz_options_set(&o, more), TAMIZ_OK);
    o.env = w->env;
    o.allocator = w->alloc.alloc.hook;
    assert_public(tamiz_open("s", &o, &w->db), TAMIZ_OK);
}

static void world_begin(struct world *w)
{
    world_begin_with(w, "");
}

static void world_end(struct world *w)
{
    test_close(w->db);
    tamiz_env_memory_free(w->env);
    alloc_fail_done(&w->alloc);
}

static tamiz_iter *open_iter(struct world *w, const tamiz_read_options *options)
{
    tamiz_iter *it;
    assert_public(tamiz_iter_open(w->db, options, &it), TAMIZ_OK);
    assert_false(tamiz_iter_valid(it));
    assert_int_equal(tamiz_iter_steps(it), 0);
    return it;
}

/* The first key from `at` on; closes. "": none. */
static const char *first_from(struct world *w, const char *at, const tamiz_read_options *options)
{
    static char found[32];
    tamiz_iter *it = open_iter(w, options);
    tamiz_iter_seek(it, at, strlen(at));
    size_t size = 0;
    const void *key = tamiz_iter_key(it, &size);
    assert_true(size < sizeof found);
    if (size)
        memcpy(found, key, size);
    found[size] = 0;
    tamiz_iter_close(it);
    return found;
}

static void the_second_one_allocates_nothing(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    test_put(w.db, "a", "1");
    assert_public(tamiz_flush(w.db), TAMIZ_OK);
    test_put(w.db, "b", "2");
    assert_string_equal(first_from(&w, "b", NULL), "b");
    const uint64_t asked = w.alloc.asked;
    for (int i = 0; i < 10; i++)
        assert_string_equal(first_from(&w, "b", NULL), "b");
    assert_int_equal(w.alloc.asked, asked);
    world_end(&w);
}

static void each_sees_what_was_written_before_it_was_opened(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    char key[8];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(key, sizeof key, "k%02d", 99 - i);
        test_put(w.db, key, "v");
        tamiz_snapshot *before;
        assert_public(tamiz_snapshot_take(w.db, &before), TAMIZ_OK);
        tamiz_read_options then = TAMIZ_READ_OPTIONS_INIT;
        then.snapshot = before;
        assert_string_equal(first_from(&w, "k", NULL), key);
        test_delete(w.db, key);
        assert_string_equal(first_from(&w, key, &then), key);
        assert_string_not_equal(first_from(&w, "k", NULL), key);
        tamiz_snapshot_release(before);
        if (i % 7 == 3)
            assert_public(tamiz_flush(w.db), TAMIZ_OK);
        if (i % 13 == 5)
            assert_public(tamiz_compact(w.db, NULL, 0, NULL, 0), TAMIZ_OK);
        test_put(w.db, key, "v");
    }
    world_end(&w);
}

/* The memtable is no source while it is empty, and is asked about again. */
static void an_empty_memtable_is_not_forgotten(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    test_put(w.db, "m", "1");
    assert_public(tamiz_flush(w.db), TAMIZ_OK);
    assert_string_equal(first_from(&w, "a", NULL), "m");
    tamiz_iter *before = open_iter(&w, NULL);
    test_put(w.db, "c", "2");
    assert_string_equal(first_from(&w, "a", NULL), "c");
    tamiz_iter_seek(before, "a", 1); /* it was opened before */
    assert_memory_equal(tamiz_iter_key(before, NULL), "m", 1);
    tamiz_iter_prev(before);
    assert_false(tamiz_iter_valid(before));
    tamiz_iter_close(before);
    assert_string_equal(first_from(&w, "a", NULL), "c");
    assert_public(tamiz_delete_range(w.db, "b", 1, "d", 1, NULL), TAMIZ_OK);
    assert_string_equal(first_from(&w, "a", NULL), "m");
    assert_public(tamiz_flush(w.db), TAMIZ_OK);
    assert_string_equal(first_from(&w, "a", NULL), "m");
    test_put(w.db, "c", "3");
    assert_string_equal(first_from(&w, "a", NULL), "c");
    world_end(&w);
}

/* … of a single table: there is nothing to merge, and nobody else who copies it. */
static void what_is_shown_can_be_sought(void **state)
{
    (void)state;
    struct world w;
    world_begin_with(&w, "cache=0 table=64KiB");
    char key[16], value[2000];
    memset(value, 'x', sizeof value);
    for (int i = 0; i < 200; i++) { /* some 100 blocks; each value begins with the key far ahead */
        (void)snprintf(key, sizeof key, "k%03d", i);
        (void)snprintf(value, sizeof value, "k%03d", i * 37 % 200);
        value[4] = 'x';
        assert_public(tamiz_put(w.db, key, 4, value, sizeof value, NULL), TAMIZ_OK);
    }
    assert_public(tamiz_compact(w.db, NULL, 0, NULL, 0), TAMIZ_OK);
    tamiz_iter *it = open_iter(&w, NULL);
    tamiz_iter_seek(it, "k001", 4);
    for (int at = 1, i = 0; i < 30; i++) {
        assert_true(tamiz_iter_valid(it));
        at = at * 37 % 200;
        (void)snprintf(key, sizeof key, "k%03d", at);
        const void *next = tamiz_iter_value(it, NULL);
        (i % 3 == 2 ? tamiz_iter_seek_for_prev : tamiz_iter_seek)(it, next, 4);
        assert_true(tamiz_iter_valid(it));
        assert_memory_equal(tamiz_iter_key(it, NULL), key, 4);
        tamiz_iter_seek(it, tamiz_iter_key(it, NULL), 4);
        assert_memory_equal(tamiz_iter_key(it, NULL), key, 4);
    }
    tamiz_iter_close(it);
    world_end(&w);
}

static void nothing_of_the_one_before_is_left(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    test_put(w.db, "a", "1");
    test_put(w.db, "b", "2");
    test_put(w.db, "c", "3");
    tamiz_read_options bounded = TAMIZ_READ_OPTIONS_INIT;
    bounded.lower = "b";
    bounded.lower_size = 1;
    bounded.upper = "c";
    bounded.upper_size = 1;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(first_from(&w, "", &bounded), "b");
        assert_string_equal(first_from(&w, "c", &bounded), "");
        assert_string_equal(first_from(&w, "c", NULL), "c");
        assert_string_equal(first_from(&w, "", NULL), "a");
        tamiz_iter *it = open_iter(&w, NULL); /* closed while it goes backwards */
        tamiz_iter_seek_last(it);
        tamiz_iter_prev(it);
        assert_true(tamiz_iter_valid(it));
        tamiz_iter_close(it);
        it = open_iter(&w, NULL);
        tamiz_iter_next(it); /* of one that stands nowhere */
        assert_false(tamiz_iter_valid(it));
        tamiz_iter_close(it);
    }
    world_end(&w);
}

/* More at once than wait, and in any order. */
static void many_are_open_at_once(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    test_put(w.db, "a", "1");
    tamiz_iter *its[40];
    for (size_t round = 1; round <= 3; round++) {
        for (size_t i = 0; i < 40; i++) {
            its[i] = open_iter(&w, NULL);
            tamiz_iter_seek_first(its[i]);
        }
        for (size_t i = 0; i < 40; i++) {
            const size_t at = i * (2 * round + 1) % 40; /* 3, 5 (with 8 twice), 7 */
            if (its[at])
                assert_memory_equal(tamiz_iter_key(its[at], NULL), "a", 1);
            tamiz_iter_close(its[at]);
            its[at] = NULL;
        }
        for (size_t i = 0; i < 40; i++)
            tamiz_iter_close(its[i]);
    }
    world_end(&w);
}

static void those_that_wait_keep_no_memtable_and_no_file(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    uint64_t least = UINT64_MAX, most = 0;
    char key[16], value[1000];
    memset(value, 'v', sizeof value);
    for (int i = 0; i < 600; i++) {
        (void)snprintf(key, sizeof key, "k%04d", i % 50);
        assert_public(tamiz_put(w.db, key, strlen(key), value, sizeof value, NULL), TAMIZ_OK);
        assert_string_equal(first_from(&w, key, NULL), key);
        if (i % 50 != 49)
            continue;
        assert_public(tamiz_compact(w.db, NULL, 0, NULL, 0), TAMIZ_OK);
        assert_int_equal(test_count_files(w.env, "s", ".sst"), 1);
        if (i < 100)
            continue;
        least = w.alloc.bytes < least ? w.alloc.bytes : least;
        most = w.alloc.bytes > most ? w.alloc.bytes : most;
    }
    assert_in_range(most - least, 0, 64 << 10); /* not one memtable */
    world_end(&w);
}

static void only_open_ones_keep_a_store_from_closing(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    test_put(w.db, "a", "1");
    tamiz_iter *it = open_iter(&w, NULL);
    assert_string_equal(first_from(&w, "", NULL), "a");
    assert_int_equal(tamiz_close(w.db), TAMIZ_BUSY);
    tamiz_iter_close(it);
    world_end(&w);
}

static void what_they_counted_stays_counted(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    test_put(w.db, "a", "1");
    assert_public(tamiz_flush(w.db), TAMIZ_OK);
    uint64_t before = 0;
    for (int i = 0; i < 5; i++) {
        tamiz_stats stats = TAMIZ_STATS_INIT;
        assert_string_equal(first_from(&w, "", NULL), "a");
        assert_public(tamiz_stats_get(w.db, &stats), TAMIZ_OK);
        const uint64_t blocks = stats.total.block_cache_hits + stats.total.block_cache_misses;
        assert_true(blocks > before);
        before = blocks;
        if (i == 2) { /* those that waited are gone now */
            test_put(w.db, "b", "1");
            assert_public(tamiz_flush(w.db), TAMIZ_OK);
        }
    }
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_one_allocates_nothing),
        cmocka_unit_test(each_sees_what_was_written_before_it_was_opened),
        cmocka_unit_test(an_empty_memtable_is_not_forgotten),
        cmocka_unit_test(what_is_shown_can_be_sought),
        cmocka_unit_test(nothing_of_the_one_before_is_left),
        cmocka_unit_test(many_are_open_at_once),
        cmocka_unit_test(those_that_wait_keep_no_memtable_and_no_file),
        cmocka_unit_test(only_open_ones_keep_a_store_from_closing),
        cmocka_unit_test(what_they_counted_stays_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
