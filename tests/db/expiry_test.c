/* SPDX-License-Identifier: MIT
 *
 * Values for a time, by the simulated machine's clock: from its moment on a value is as good as
 * deleted, wherever it has got to, and nothing older ever shows in its place.
 *
 * LABEL: threads
 */
#define _POSIX_C_SOURCE 200809L
#include "kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "table/table_build.h"

#define SECOND UINT64_C(1000000)
#define SMALL  "threads=0 compaction=off memtable=1MiB table=16KiB block=1KiB "

static void put_for(tamiz *db, const char *key, const char *value, uint64_t ttl)
{
    tamiz_write_options o = TAMIZ_WRITE_OPTIONS_INIT;
    o.ttl = ttl;
    assert_public(tamiz_put(db, key, strlen(key), value, strlen(value), &o), TAMIZ_OK);
}

static void flush(tamiz *db)
{
    assert_public(tamiz_flush(db), TAMIZ_OK);
}

static void compact(tamiz *db)
{
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
}

static uint64_t table_bytes(tamiz *db)
{
    tamiz_stats s = TAMIZ_STATS_INIT;
    uint64_t sum = 0;
    assert_public(tamiz_stats_get(db, &s), TAMIZ_OK);
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        sum += s.level[i].bytes;
    return sum;
}

static void verify(tamiz *db)
{
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_verify(db, &report), TAMIZ_OK);
}

/* All ways to read agree that `keys` (one letter each, in order) have the value, and no others. */
static void expect_all(tamiz *db, const char *keys, const char *value, const tamiz_snapshot *at)
{
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    o.snapshot = at;
    const void *asked[26];
    size_t sizes[26], got_sizes[26];
    void *values[26];
    tamiz_status statuses[26];
    char letters[26];
    for (int i = 0; i < 26; i++) {
        letters[i] = (char)('a' + i);
        asked[i] = &letters[i];
        sizes[i] = 1;
    }
    assert_public(tamiz_multi_get(db, 26, asked, sizes, values, got_sizes, statuses, &o), TAMIZ_OK);
    for (int i = 0; i < 26; i++) {
        const bool there = strchr(keys, letters[i]) != NULL;
        assert_int_equal(statuses[i], there ? TAMIZ_OK : TAMIZ_NOT_FOUND);
        assert_int_equal(tamiz_exists(db, &letters[i], 1, &o), there ? TAMIZ_OK : TAMIZ_NOT_FOUND);
        test_expect(db, (char[]){letters[i], 0}, there ? value : NULL, at);
        if (there) {
            assert_int_equal(got_sizes[i], strlen(value));
            assert_memory_equal(values[i], value, strlen(value));
        }
        tamiz_free(values[i]);
    }
    tamiz_iter *it;
    assert_public(tamiz_iter_open(db, &o, &it), TAMIZ_OK);
    size_t n = 0, size;
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it), n++) {
        assert_true(*(const char *)tamiz_iter_key(it, &size) == keys[n] && size == 1);
        assert_memory_equal(tamiz_iter_value(it, &size), value, strlen(value));
        assert_int_equal(size, strlen(value));
    }
    assert_int_equal(n, strlen(keys));
    for (tamiz_iter_seek_last(it); tamiz_iter_valid(it); tamiz_iter_prev(it)) {
        assert_true(n > 0 && *(const char *)tamiz_iter_key(it, &size) == keys[--n]);
        assert_memory_equal(tamiz_iter_value(it, &size), value, strlen(value));
        assert_int_equal(size, strlen(value));
    }
    assert_int_equal(n, 0);
    assert_public(tamiz_iter_status(it), TAMIZ_OK);
    tamiz_iter_close(it);
}

static void start(void **state, struct world *w, tamiz **db, const char *options)
{
    (void)state;
    *w = world_new(7);
    *db = test_open("s", options, w->env);
}

static void finish(struct world *w, tamiz *db)
{
    verify(db);
    test_close(db);
    tamiz_env_sim_free(w->sim);
}

static void again(struct world *w, tamiz **db, const char *options)
{
    test_close(*db);
    *db = test_open("s", options, w->env);
}

/* Where the versions are when they are read: memtable, level 0, merged; reopened from log or
 * tables. */
enum { MEMTABLE, TABLE, MERGED, FROM_LOG, FROM_TABLE, WHERES };

static void go_to(int where, struct world *w, tamiz **db, const char *options)
{
    if (where == TABLE || where == MERGED || where == FROM_TABLE)
        flush(*db);
    if (where == MERGED)
        compact(*db);
    if (where == FROM_LOG || where == FROM_TABLE)
        again(w, db, options);
}

static void it_expires_wherever_it_is_and_nothing_older_shows(void **state)
{
    for (int older = MEMTABLE; older < FROM_LOG; older++)
        for (int where = MEMTABLE; where < WHERES; where++) {
            struct world w;
            tamiz *db;
            start(state, &w, &db, SMALL);
            for (const char *k = "abcd"; *k; k++)
                test_put(db, (char[]){*k, 0}, "val");
            go_to(older, &w, &db, SMALL);
            put_for(db, "b", "val", 10);
            put_for(db, "c", "val", 10);
            put_for(db, "e", "val", 10);
            go_to(where, &w, &db, SMALL);
            expect_all(db, "abcde", "val", NULL);
            tamiz_env_sim_clock_advance(w.sim, 9 * SECOND);
            expect_all(db, "abcde", "val", NULL);
            tamiz_env_sim_clock_advance(w.sim, 1 * SECOND);
            expect_all(db, "ad", "val", NULL);
            flush(db);
            expect_all(db, "ad", "val", NULL);
            again(&w, &db, SMALL);
            expect_all(db, "ad", "val", NULL);
            compact(db);
            expect_all(db, "ad", "val", NULL);
            finish(&w, db);
        }
}

/* Table after table goes down by itself, with a snapshot that needs what is older, and without. */
static void nothing_older_shows_after_partial_merges(void **state)
{
    for (int held = 0; held < 2; held++) {
        struct world w;
        tamiz *db;
        tamiz_snapshot *before = NULL;
        start(state, &w, &db, SMALL);
        for (const char *k = "abcd"; *k; k++)
            test_put(db, (char[]){*k, 0}, "val");
        flush(db);
        assert_public(tamiz_compact_table(db, 0, 0), TAMIZ_OK);
        assert_public(tamiz_compact_table(db, 1, 0), TAMIZ_OK);
        for (const char *k = "abc"; *k; k++)
            test_put(db, (char[]){*k, 0}, "val");
        flush(db);
        assert_public(tamiz_compact_table(db, 0, 0), TAMIZ_OK);
        if (held)
            assert_public(tamiz_snapshot_take(db, &before), TAMIZ_OK);
        put_for(db, "a", "val", 5);
        put_for(db, "b", "val", 5);
        flush(db);
        tamiz_env_sim_clock_advance(w.sim, 6 * SECOND);
        expect_all(db, "cd", "val", NULL);
        for (int level = 0; level < 3; level++) {
            const tamiz_status st = tamiz_compact_table(db, (unsigned)level, 0);
            assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
            expect_all(db, "cd", "val", NULL);
            if (held)
                expect_all(db, "abcd", "val", before);
        }
        if (held)
            tamiz_snapshot_release(before);
        compact(db);
        expect_all(db, "cd", "val", NULL);
        again(&w, &db, SMALL);
        expect_all(db, "cd", "val", NULL);
        finish(&w, db);
    }
}

/* By the time of reading, whatever the snapshot; what the snapshot sees beside it stays. */
static void a_snapshot_does_not_stop_the_clock(void **state)
{
    for (int where = MEMTABLE; where < FROM_LOG; where++) {
        struct world w;
        tamiz *db;
        tamiz_snapshot *old, *with;
        start(state, &w, &db, SMALL);
        test_put(db, "a", "val");
        test_put(db, "b", "val");
        assert_public(tamiz_snapshot_take(db, &old), TAMIZ_OK);
        put_for(db, "a", "val", 5);
        assert_public(tamiz_snapshot_take(db, &with), TAMIZ_OK);
        test_put(db, "a", "val");
        go_to(where, &w, &db, SMALL);
        expect_all(db, "ab", "val", with);
        tamiz_env_sim_clock_advance(w.sim, 6 * SECOND);
        for (int round = 0; round < 2; round++) {
            expect_all(db, "ab", "val", old);
            expect_all(db, "b", "val", with);
            expect_all(db, "ab", "val", NULL);
            compact(db);
        }
        tamiz_snapshot_release(old), tamiz_snapshot_release(with);
        compact(db);
        expect_all(db, "ab", "val", NULL);
        finish(&w, db);
    }
}

/* Stepped back while the store is open: what has expired stays so. Reopened with the clock set
 * back: what was dropped is gone, and what is still there counts by the new clock. */
static void a_clock_that_steps_back_harms_nothing(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, SMALL);
    test_put(db, "a", "val");
    test_put(db, "b", "old");
    flush(db);
    put_for(db, "b", "val", 10);
    tamiz_env_sim_clock_advance(w.sim, 11 * SECOND);
    expect_all(db, "a", "val", NULL);
    tamiz_env_sim_clock_step(w.sim, -3600 * (int64_t)SECOND);
    expect_all(db, "a", "val", NULL);
    flush(db);
    expect_all(db, "a", "val", NULL);
    put_for(db, "c", "val", 10); /* counts from the latest time seen */
    expect_all(db, "ac", "val", NULL);
    again(&w, &db, SMALL); /* the clock is an hour back: b is a tombstone by now */
    expect_all(db, "ac", "val", NULL);
    compact(db);
    expect_all(db, "ac", "val", NULL);
    tamiz_env_sim_clock_advance(w.sim, 3700 * SECOND);
    expect_all(db, "a", "val", NULL);
    finish(&w, db);
}

static void compaction_gives_the_space_back(void **state)
{
    enum { KEYS = 2000 };
    struct world w;
    tamiz *db;
    char value[100];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    start(state, &w, &db, SMALL);
    for (int i = 0; i < KEYS; i++)
        put_for(db, key_of(i), value, 60);
    test_put(db, "stays", "1");
    flush(db);
    compact(db);
    const uint64_t full = table_bytes(db);
    assert_true(full > KEYS * 100);
    compact(db);
    assert_true(table_bytes(db) > KEYS * 100);
    tamiz_env_sim_clock_advance(w.sim, 61 * SECOND);
    compact(db);
    assert_true(table_bytes(db) < 2000);
    assert_string_equal(test_scan(db, NULL), "stays=1");
    finish(&w, db);
}

static void puts_and_deletes_over_it_count_as_ever(void **state)
{
    for (int where = MEMTABLE; where < WHERES; where++) {
        struct world w;
        tamiz *db;
        start(state, &w, &db, SMALL);
        for (const char *k = "abcdef"; *k; k++)
            put_for(db, (char[]){*k, 0}, "val", 5);
        go_to(where, &w, &db, SMALL);
        test_put(db, "a", "val");
        put_for(db, "b", "val", 50);
        assert_public(tamiz_delete(db, "c", 1, NULL), TAMIZ_OK);
        assert_public(tamiz_delete_range(db, "d", 1, "f", 1, NULL), TAMIZ_OK);
        go_to(where, &w, &db, SMALL);
        expect_all(db, "abf", "val", NULL);
        tamiz_env_sim_clock_advance(w.sim, 6 * SECOND);
        expect_all(db, "ab", "val", NULL);
        compact(db);
        expect_all(db, "ab", "val", NULL);
        tamiz_env_sim_clock_advance(w.sim, 60 * SECOND);
        expect_all(db, "a", "val", NULL);
        finish(&w, db);
    }
}

static void a_batch_takes_the_time_of_its_write_and_the_store_has_one_of_its_own(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, SMALL "ttl=20");
    tamiz_write_options five = TAMIZ_WRITE_OPTIONS_INIT, never = TAMIZ_WRITE_OPTIONS_INIT;
    five.ttl = 5;
    never.ttl = TAMIZ_TTL_NEVER;
    tamiz_batch *batch = tamiz_batch_new();
    static const char *const keys[] = {"ab", "cd", "ef"};
    const tamiz_write_options *const options[] = {&five, NULL, &never};
    for (int i = 0; i < 3; i++) {
        tamiz_batch_clear(batch);
        assert_public(tamiz_batch_put(batch, NULL, keys[i], 1, "val", 3), TAMIZ_OK);
        assert_public(tamiz_batch_delete(batch, NULL, "z", 1), TAMIZ_OK);
        assert_public(tamiz_batch_put(batch, NULL, keys[i] + 1, 1, "val", 3), TAMIZ_OK);
        assert_public(tamiz_write(db, batch, options[i]), TAMIZ_OK);
    }
    put_for(db, "g", "val", 5);
    put_for(db, "h", "val", 0);
    put_for(db, "i", "val", TAMIZ_TTL_NEVER);
    again(&w, &db, SMALL);
    expect_all(db, "abcdefghi", "val", NULL);
    tamiz_env_sim_clock_advance(w.sim, 6 * SECOND);
    expect_all(db, "cdefhi", "val", NULL);
    tamiz_env_sim_clock_advance(w.sim, 15 * SECOND);
    expect_all(db, "efi", "val", NULL);
    tamiz_batch_clear(batch); /* an empty one is fine as well */
    assert_public(tamiz_write(db, batch, &five), TAMIZ_OK);
    tamiz_batch_free(batch);
    finish(&w, db);
}

static tamiz *keyspace_with(tamiz *db, const char *name, const char *text, const struct world *w)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *k;
    assert_public(tamiz_options_set(&o, text), TAMIZ_OK);
    o.env = w->env;
    assert_public(tamiz_keyspace_open(db, name, &o, &k), TAMIZ_OK);
    return k;
}

/* One batch, written to each of three keyspaces that have a time each, and to the named ones. */
static void each_keyspace_has_its_own_time(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, SMALL "ttl=20");
    tamiz *five = keyspace_with(db, "five", SMALL "ttl=5", &w);
    tamiz *none = keyspace_with(db, "none", SMALL, &w);
    tamiz_batch *batch = tamiz_batch_new();
    assert_public(tamiz_batch_put(batch, NULL, "a", 1, "val", 3), TAMIZ_OK);
    assert_public(tamiz_batch_put(batch, five, "b", 1, "val", 3), TAMIZ_OK);
    assert_public(tamiz_batch_put(batch, none, "c", 1, "val", 3), TAMIZ_OK);
    assert_public(tamiz_batch_put(batch, db, "d", 1, "val", 3), TAMIZ_OK);
    assert_public(tamiz_write(none, batch, NULL), TAMIZ_OK);
    tamiz_batch_free(batch);
    test_put(five, "e", "val");
    again(&w, &db, SMALL "ttl=20");
    five = keyspace_with(db, "five", SMALL "ttl=5", &w);
    none = keyspace_with(db, "none", SMALL, &w);
    expect_all(db, "d", "val", NULL);
    expect_all(five, "be", "val", NULL);
    expect_all(none, "ac", "val", NULL);
    tamiz_env_sim_clock_advance(w.sim, 6 * SECOND);
    expect_all(db, "d", "val", NULL);
    expect_all(five, "", "val", NULL);
    tamiz_env_sim_clock_advance(w.sim, 20 * SECOND);
    expect_all(db, "", "val", NULL);
    expect_all(none, "ac", "val", NULL);
    finish(&w, db);
}

/* What was found once is found again until it is closed. */
static void an_iterator_has_one_moment(void **state)
{
    struct world w;
    tamiz *db;
    tamiz_iter *it;
    start(state, &w, &db, SMALL);
    put_for(db, "a", "val", 5);
    put_for(db, "b", "val", 50);
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    tamiz_iter_seek_first(it);
    tamiz_env_sim_clock_advance(w.sim, 6 * SECOND);
    expect_all(db, "b", "val", NULL);
    tamiz_iter_next(it);
    tamiz_iter_prev(it);
    size_t size;
    assert_true(tamiz_iter_valid(it) && *(const char *)tamiz_iter_key(it, &size) == 'a');
    tamiz_iter_close(it);
    expect_all(db, "b", "val", NULL); /* also by the one that was parked */
    finish(&w, db);
}

static void what_is_no_time_is_refused_and_an_older_caller_is_served(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, SMALL);
    tamiz_write_options o = TAMIZ_WRITE_OPTIONS_INIT;
    o.ttl = UINT64_C(3155760001);
    assert_public(tamiz_put(db, "k", 1, "v", 1, &o), TAMIZ_INVALID_ARGUMENT);
    assert_non_null(strstr(tamiz_error_detail(), "ttl=3155760001: want 0..3155760000"));
    memset(&o.ttl, 0xaa, sizeof o.ttl); /* what stands behind an older caller's struct */
    o.struct_size = offsetof(tamiz_write_options, ttl);
    assert_public(tamiz_put(db, "k", 1, "val", 3, &o), TAMIZ_OK);
    tamiz_env_sim_clock_advance(w.sim, 1000000 * SECOND);
    expect_all(db, "k", "val", NULL);
    tamiz_options bad = TAMIZ_OPTIONS_INIT;
    assert_public(tamiz_options_set(&bad, "ttl=3155760001"), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_options_set(&bad, "ttl=1h"), TAMIZ_INVALID_ARGUMENT);
    bad.ttl = UINT64_MAX;
    tamiz *none;
    assert_public(tamiz_open("t", &bad, &none), TAMIZ_INVALID_ARGUMENT);
    finish(&w, db);
}

static void explain_says_that_it_has_expired(void **state)
{
    struct world w;
    tamiz *db;
    char *text;
    start(state, &w, &db, SMALL);
    put_for(db, "a", "val", 5);
    flush(db);
    tamiz_env_sim_clock_advance(w.sim, 6 * SECOND);
    assert_public(tamiz_explain(db, "a", 1, NULL, &text), TAMIZ_OK);
    assert_non_null(strstr(text, "expired: the search ends"));
    assert_non_null(strstr(text, "found a value that has expired in"));
    assert_non_null(strstr(text, "absent"));
    tamiz_free(text);
    finish(&w, db);
}

/* From a table that somebody else made. */
static void a_value_too_short_for_its_moment_is_damage(void **state)
{
    struct world w;
    struct test_op t;
    tamiz *db;
    struct table_builder *b;
    const struct table_build_options how = {.block_bytes = 1024, .filter = {"none", 0, 0, NULL}};
    start(state, &w, &db, SMALL);
    test_op_init(&t);
    struct table_summary summary = {.smallest = buf_init(t.op.alloc),
                                    .largest = buf_init(t.op.alloc)};
    assert_status(&t.op, table_builder_open(&t.op, w.env, t.op.alloc, "bad", &how, &b), TAMIZ_OK);
    assert_status(&t.op,
                  table_builder_add(&t.op, b, slice_of_text("a"), stamp_of(0, KIND_EXPIRING),
                                    slice_of_text("7 bytes")),
                  TAMIZ_OK);
    assert_status(&t.op, table_builder_finish(&t.op, b, &summary), TAMIZ_OK);
    buf_free(&summary.smallest), buf_free(&summary.largest);
    (void)tamiz_ingest(db, (const char *const[]){"bad"}, 1);
    test_put(db, "b", "val");
    char buffer[8];
    size_t size;
    void *value;
    tamiz_status status;
    assert_public(tamiz_get_into(db, "a", 1, buffer, 8, &size, NULL), TAMIZ_CORRUPTION);
    assert_non_null(strstr(tamiz_error_detail(), "expected at least 8 bytes, found 7"));
    assert_public(tamiz_multi_get(db, 1, (const void *const[]){"a"}, (const size_t[]){1}, &value,
                                  &size, &status, NULL),
                  TAMIZ_CORRUPTION);
    tamiz_iter *it;
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    tamiz_iter_seek_first(it);
    assert_public(tamiz_iter_status(it), TAMIZ_CORRUPTION);
    tamiz_iter_seek_last(it);
    assert_true(tamiz_iter_valid(it));
    tamiz_iter_prev(it);
    assert_public(tamiz_iter_status(it), TAMIZ_CORRUPTION);
    tamiz_iter_close(it);
    assert_int_equal(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_CORRUPTION);
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_int_equal(tamiz_verify(db, &report), TAMIZ_CORRUPTION);
    test_expect(db, "b", "val", NULL);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* Readers and merges judge by one clock: what one of them saw expired, nobody sees any more. */
struct racers {
    tamiz *db;
    _Atomic bool done;
};

static void *read_on(void *arg)
{
    struct racers *r = arg;
    bool gone[26] = {false};
    while (!atomic_load(&r->done))
        for (int i = 0; i < 26; i++) {
            const char key = (char)('a' + i);
            const tamiz_status st = tamiz_exists(r->db, &key, 1, NULL);
            assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
            assert_false(gone[i] && st == TAMIZ_OK);
            gone[i] |= st == TAMIZ_NOT_FOUND;
        }
    return NULL;
}

static void threads_agree_while_the_clock_jumps(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, "threads=2 memtable=64KiB");
    for (const char *k = "abcdefghijklmnopqrstuvwxyz"; *k; k++)
        put_for(db, (char[]){*k, 0}, "val", (uint64_t)(*k - 'a' + 1) * 2);
    struct racers r = {.db = db};
    pthread_t readers[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_on, &r), 0);
    for (int i = 0; i < 40; i++) {
        tamiz_env_sim_clock_advance(w.sim, 2 * SECOND);
        tamiz_env_sim_clock_step(w.sim, i % 2 ? 500000 : -500000);
        put_for(db, "0", "val", 1000);
        if (i % 8 == 3)
            flush(db);
        if (i % 8 == 7)
            compact(db);
    }
    atomic_store(&r.done, true);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_string_equal(test_scan(db, NULL), "0=val");
    finish(&w, db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_expires_wherever_it_is_and_nothing_older_shows),
        cmocka_unit_test(nothing_older_shows_after_partial_merges),
        cmocka_unit_test(a_snapshot_does_not_stop_the_clock),
        cmocka_unit_test(a_clock_that_steps_back_harms_nothing),
        cmocka_unit_test(compaction_gives_the_space_back),
        cmocka_unit_test(puts_and_deletes_over_it_count_as_ever),
        cmocka_unit_test(a_batch_takes_the_time_of_its_write_and_the_store_has_one_of_its_own),
        cmocka_unit_test(each_keyspace_has_its_own_time),
        cmocka_unit_test(an_iterator_has_one_moment),
        cmocka_unit_test(what_is_no_time_is_refused_and_an_older_caller_is_served),
        cmocka_unit_test(explain_says_that_it_has_expired),
        cmocka_unit_test(a_value_too_short_for_its_moment_is_damage),
        cmocka_unit_test(threads_agree_while_the_clock_jumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
