/* SPDX-License-Identifier: MIT
 *
 * R01, R02, R18, R34: iterators and keys of odd shapes.
 */
#include "cases/kit.h"

/* R01: Prev() returns the wrong entry across a deleted key (LevelDB issue 35). */
static void R01_prev_across_a_deleted_key(void **state)
{
    (void)state;
    for (int where = 0; where < 3; where++) {
        start_over();
        open_with("threads=0 compaction=off");
        put("a", "va"), put("b", "vb"), put("c", "vc");
        if (where == 2)
            flush();
        del("b");
        if (where == 1)
            flush();
        tamiz_iter *i = iter();
        tamiz_iter_seek(i, "c", 1);
        assert_string_equal(at(i), "c/vc");
        tamiz_iter_prev(i);
        assert_string_equal(at(i), "a/va");
        tamiz_iter_next(i);
        assert_string_equal(at(i), "c/vc");
        tamiz_iter_prev(i);
        assert_string_equal(at(i), "a/va");
        tamiz_iter_prev(i);
        assert_string_equal(at(i), "-");
        tamiz_iter_seek_last(i);
        tamiz_iter_prev(i);
        assert_string_equal(at(i), "a/va");
        tamiz_iter_next(i);
        tamiz_iter_next(i);
        assert_string_equal(at(i), "-");
        tamiz_iter_close(i);
    }
}

/* The whole family: random calls against an array of five keys. */
static void R01_random_steps_over_five_keys_agree_with_an_array(void **state)
{
    (void)state;
    struct test_random r = test_random_start(101);
    const int rounds = test_long() ? 1000 : 60;
    for (int round = 0; round < rounds; round++) {
        char value[5] = {0};
        start_over();
        open_with(SMALL "compaction=off");
        for (int i = 0; i < 14; i++) {
            const int key = (int)test_random_below(&r, 5);
            const char name[2] = {(char)('a' + key), 0}, text[2] = {(char)('0' + i), 0};
            value[key] = test_random_below(&r, 3) ? text[0] : 0;
            if (value[key])
                put(name, text);
            else
                del(name);
            if (test_random_below(&r, 5) == 0)
                flush();
        }
        tamiz_iter *it = iter();
        int stand = -1;
        for (int step = 0; step < 200; step++) {
            const int move = (int)test_random_below(&r, 6), to = (int)test_random_below(&r, 5);
            const char target = (char)('a' + to);
            int d = 1;
            switch (move) {
            case 0: tamiz_iter_seek_first(it), stand = 0; break;
            case 1: tamiz_iter_seek_last(it), stand = 4, d = -1; break;
            case 2: tamiz_iter_seek(it, &target, 1), stand = to; break;
            case 3: tamiz_iter_seek_for_prev(it, &target, 1), stand = to, d = -1; break;
            case 4:
                if (stand < 0)
                    continue;
                tamiz_iter_next(it), stand++;
                break;
            default:
                if (stand < 0)
                    continue;
                tamiz_iter_prev(it), stand--, d = -1;
            }
            while (stand >= 0 && stand < 5 && !value[stand])
                stand += d;
            if (stand >= 5)
                stand = -1;
            char want[4] = "-";
            if (stand >= 0)
                (void)snprintf(want, sizeof want, "%c/%c", 'a' + stand, value[stand]);
            assert_string_equal(at(it), want);
        }
        tamiz_iter_close(it);
    }
}

/* Also: an upper bound and a change of direction (RocksDB pull 3989). */
static void R01_no_key_at_or_above_the_upper_bound_is_shown(void **state)
{
    (void)state;
    open_with(SMALL);
    for (int i = 0; i < 100; i++)
        put(k(i), "1");
    for (int stage = 0; stage < 2; stage++) {
        tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
        tamiz_iter *i;
        o.upper = k(50), o.upper_size = 9;
        OK(tamiz_iter_open(db, &o, &i));
        tamiz_iter_seek(i, k(49), 9);
        tamiz_iter_next(i);
        assert_string_equal(at(i), "-");
        tamiz_iter_seek(i, k(49), 9);
        tamiz_iter_prev(i);
        assert_string_equal(at(i), "k00000048/1");
        tamiz_iter_next(i);
        tamiz_iter_next(i);
        assert_string_equal(at(i), "-");
        tamiz_iter_seek(i, k(77), 9);
        assert_string_equal(at(i), "-");
        tamiz_iter_seek_for_prev(i, k(77), 9);
        assert_string_equal(at(i), "k00000049/1");
        tamiz_iter_close(i);
        compact();
    }
}

static const char *const kinds[] = {"none",  "bloom",  "blocked", "split", "ribbon", "bumped",
                                    "fuse8", "fuse16", "fuse4",   "xor8",  "xor16",  "cuckoo"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *options_for(const char *kind)
{
    static char text[200];
    (void)snprintf(text, sizeof text, SMALL "compaction=off filter=%s", kind);
    return text;
}

/* R02: Seek consults a point filter and skips files (TidesDB issue 490). */
static void R02_filters_never_affect_ordered_positioning(void **state)
{
    (void)state;
    static const char *const keys[] = {"foo", "foobar", "foobaz"};
    for (int kind = 0; kind < KINDS; kind++) {
        start_over();
        for (int i = 0; i < 3; i++) {
            open_with(options_for(kinds[kind]));
            put(keys[i], "1");
            flush();
            close_it();
        }
        open_with(options_for(kinds[kind]));
        assert_int_equal(count_files(FILE_TABLE), 3);
        tamiz_iter *i = iter();
        tamiz_iter_seek(i, "foo", 3);
        assert_string_equal(at(i), "foo/1");
        tamiz_iter_next(i);
        assert_string_equal(at(i), "foobar/1");
        tamiz_iter_next(i);
        assert_string_equal(at(i), "foobaz/1");
        tamiz_iter_next(i);
        assert_string_equal(at(i), "-");
        tamiz_iter_seek(i, "foob", 4);
        assert_string_equal(at(i), "foobar/1");
        tamiz_iter_seek_for_prev(i, "fooz", 4);
        assert_string_equal(at(i), "foobaz/1");
        tamiz_iter_seek(i, "", 0);
        assert_string_equal(at(i), "foo/1");
        tamiz_iter_close(i);
        for (int n = 0; n < 50; n++) {
            put(k(2 * n), "1");
            flush();
        }
        i = iter();
        for (int n = 0; n < 49; n++) {
            tamiz_iter_seek(i, k(2 * n + 1), 9);
            assert_memory_equal(tamiz_iter_key(i, NULL), k(2 * n + 2), 9);
        }
        tamiz_iter_close(i);
        close_it();
    }
}

struct odd {
    const char *bytes;
    size_t size;
};

/* In byte order. */
static const struct odd odd_keys[] = {{"", 0},       {"\0", 1},      {"\0\0", 2}, {"a", 1},
                                      {"a\0", 2},    {"a\0b", 3},    {"a\0c", 3}, {"\xff", 1},
                                      {"\xff\0", 2}, {"\xff\xff", 2}};
enum { ODD = sizeof odd_keys / sizeof *odd_keys };

static void expect_odd(int first)
{
    tamiz_iter *it = iter();
    tamiz_iter_seek_first(it);
    for (int i = first; i < ODD; i++) {
        char *value = NULL;
        size_t size = 0, key_size = 0;
        OK(tamiz_get(db, odd_keys[i].bytes, odd_keys[i].size, (void **)&value, &size, NULL));
        assert_int_equal(size, odd_keys[i].size + 1);
        assert_memory_equal(value + 1, odd_keys[i].bytes, odd_keys[i].size);
        tamiz_free(value);
        assert_true(tamiz_iter_valid(it));
        const void *key = tamiz_iter_key(it, &key_size);
        assert_int_equal(key_size, odd_keys[i].size);
        assert_memory_equal(key, odd_keys[i].bytes, key_size);
        tamiz_iter_next(it);
        if (i == 6)
            tamiz_iter_next(it); /* the key "e", with no value */
    }
    assert_false(tamiz_iter_valid(it));
    tamiz_iter_close(it);
    expect("e", "");
    assert_int_equal(tamiz_exists(db, "b", 1, NULL), TAMIZ_NOT_FOUND);
    assert_int_equal(tamiz_exists(db, "\0\1", 2, NULL), TAMIZ_NOT_FOUND);
}

/* R18: the empty key never enters the filter; odd key bytes (RocksDB pull 3776). */
static void R18_the_empty_key_and_zero_bytes_are_keys_on_all_paths(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        start_over();
        open_with(options_for(kinds[kind]));
        for (int i = 0; i < ODD; i++) {
            char value[8] = "v";
            memcpy(value + 1, odd_keys[i].bytes, odd_keys[i].size);
            OK(tamiz_put(db, odd_keys[i].bytes, odd_keys[i].size, value, odd_keys[i].size + 1,
                         NULL));
        }
        put("e", "");
        expect_odd(0);
        flush();
        expect_odd(0);
        compact();
        expect_odd(0);
        reopen(options_for(kinds[kind]));
        expect_odd(0);
        tamiz_iter *i = iter();
        tamiz_iter_seek_for_prev(i, "", 0);
        assert_true(tamiz_iter_valid(i));
        size_t size = 7;
        (void)tamiz_iter_key(i, &size);
        assert_int_equal(size, 0);
        tamiz_iter_close(i);
        OK(tamiz_delete(db, "", 0, NULL));
        flush();
        compact();
        assert_int_equal(tamiz_exists(db, "", 0, NULL), TAMIZ_NOT_FOUND);
        expect_odd(1);
        close_it();
    }
}

static void R18_the_empty_key_in_a_batch_larger_than_the_memtable(void **state)
{
    (void)state;
    open_with(SMALL);
    tamiz_batch *b = tamiz_batch_new();
    OK(tamiz_batch_put(b, NULL, "", 0, "x", 1));
    for (int i = 0; i < 60; i++)
        OK(tamiz_batch_put(b, NULL, k(i), 9, v(i, 90000), 90000));
    OK(tamiz_write(db, b, NULL));
    tamiz_batch_free(b);
    for (int stage = 0; stage < 3; stage++) {
        expect("", "x");
        expect(k(59), v(59, 90000));
        assert_int_equal(scan_count(NULL), 61);
        if (stage == 0)
            flush();
        else
            reopen(SMALL);
    }
}

/* R34: seek crawls over a field of tombstones (RocksDB issue 10300). */
static void R34_bounds_stop_a_walk_over_dead_entries(void **state)
{
    (void)state;
    const int n = test_long() ? 100000 : 5000;
    open_with("threads=0 memtable=64MiB");
    for (int i = 0; i < n; i++)
        put(k(i), "1");
    for (int i = 0; i < n; i++)
        del(k(i));
    put("zz", "1");
    for (int stage = 0; stage < 3; stage++) {
        tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
        tamiz_iter *i;
        o.upper = k(10), o.upper_size = 9;
        OK(tamiz_iter_open(db, &o, &i));
        tamiz_iter_seek(i, k(0), 9);
        assert_string_equal(at(i), "-");
        assert_true(tamiz_iter_steps(i) <= 64);
        tamiz_iter_close(i);
        o = (tamiz_read_options)TAMIZ_READ_OPTIONS_INIT;
        o.lower = k(n - 10), o.lower_size = 9;
        OK(tamiz_iter_open(db, &o, &i));
        tamiz_iter_seek_for_prev(i, k(n), 9);
        assert_string_equal(at(i), "-");
        assert_true(tamiz_iter_steps(i) <= 64);
        tamiz_iter_close(i);
        i = iter();
        tamiz_iter_seek(i, k(0), 9);
        assert_string_equal(at(i), "zz/1");
        print_message("stage %d: %llu steps over %d dead keys\n", stage,
                      (unsigned long long)tamiz_iter_steps(i), n);
        if (stage == 2)
            assert_true(tamiz_iter_steps(i) <= 64);
        tamiz_iter_close(i);
        if (stage == 0)
            flush();
        else
            compact();
    }
}

/* The queue: what is put at one end is taken at the other. Steps, not time, are what is bounded. */
static void R34_a_queue_does_not_slow_down(void **state)
{
    (void)state;
    const int n = test_long() ? 100000 : 3000;
    uint64_t first = 0, last = 0;
    open_with(SMALL);
    for (int i = 0; i < n; i++) {
        put(k(i), "1");
        tamiz_iter *it = iter();
        tamiz_iter_seek_first(it);
        assert_memory_equal(tamiz_iter_key(it, NULL), k(i), 9);
        if (i < n / 10)
            first += tamiz_iter_steps(it);
        if (i >= n - n / 10)
            last += tamiz_iter_steps(it);
        tamiz_iter_close(it);
        del(k(i));
    }
    print_message("steps of the first tenth %llu, of the last %llu\n", (unsigned long long)first,
                  (unsigned long long)last);
    assert_true(last <= 5 * first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(R01_prev_across_a_deleted_key),
        CASE(R01_random_steps_over_five_keys_agree_with_an_array),
        CASE(R01_no_key_at_or_above_the_upper_bound_is_shown),
        CASE(R02_filters_never_affect_ordered_positioning),
        CASE(R18_the_empty_key_and_zero_bytes_are_keys_on_all_paths),
        CASE(R18_the_empty_key_in_a_batch_larger_than_the_memtable),
        CASE(R34_bounds_stop_a_walk_over_dead_entries),
        CASE(R34_a_queue_does_not_slow_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
