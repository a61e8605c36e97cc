/* SPDX-License-Identifier: MIT
 *
 * Range deletes through the public calls: a range delete covers exactly [from, to) below its own
 * sequence, wherever it and what it covers have got to.
 */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "kit.h"
#include "support/alloc_fail.h"

#include <stdlib.h>

enum { KEYS = 1000 };

#define SMALL "threads=0 compaction=off memtable=1MiB table=16KiB block=1KiB "

static void delete_range(tamiz *db, const char *from, const char *to)
{
    assert_public(tamiz_delete_range(db, from, strlen(from), to, strlen(to), NULL), TAMIZ_OK);
}

static void flush(tamiz *db)
{
    assert_public(tamiz_flush(db), TAMIZ_OK);
}

static void work_off(tamiz *db)
{
    bool more = true;
    while (more)
        assert_public(tamiz_step(db, 0, &more), TAMIZ_OK);
}

static tamiz_stats stats_of(tamiz *db)
{
    tamiz_stats s = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &s), TAMIZ_OK);
    return s;
}

static void verify(tamiz *db)
{
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_verify(db, &report), TAMIZ_OK);
}

static void start(void **state, struct world *w, tamiz **db, const char *options)
{
    (void)state;
    *w = world_new(7);
    *db = test_open("s", options, w->env);
}

static void finish(struct world *w, tamiz *db)
{
    test_close(db);
    tamiz_env_sim_free(w->sim);
}

static void what_is_no_range_is_refused_and_the_empty_key_is_a_key(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, SMALL);
    tamiz_batch *batch = tamiz_batch_new();
    static const char *const bad[][2] = {{"b", "b"}, {"c", "b"}, {"b", ""}, {"", ""}};
    for (int i = 0; i < 4; i++) {
        const char *from = bad[i][0], *to = bad[i][1];
        assert_public(tamiz_delete_range(db, from, strlen(from), to, strlen(to), NULL),
                      TAMIZ_INVALID_ARGUMENT);
        assert_non_null(strstr(tamiz_error_detail(), "above the beginning"));
        assert_public(tamiz_batch_delete_range(batch, NULL, from, strlen(from), to, strlen(to)),
                      TAMIZ_INVALID_ARGUMENT);
    }
    assert_public(tamiz_delete_range(db, NULL, 1, "b", 1, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_delete_range(db, "a", 1, NULL, 1, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_batch_count(batch), 0);
    tamiz_batch_free(batch);
    test_put(db, "", "0");
    test_put(db, "a", "1");
    test_put(db, "b", "2");
    delete_range(db, "", "b");
    assert_string_equal(test_scan(db, NULL), "b=2");
    finish(&w, db);
}

/* The same story told to a memtable, a sealed one, a table, and after a restart. */
static void exactly_the_range_is_deleted_below_its_own_sequence(void **state)
{
    for (int where = 0; where < 4; where++) {
        struct world w;
        tamiz *db;
        tamiz_snapshot *before, *between;
        start(state, &w, &db, SMALL);
        for (const char *k = "abcdefg"; *k; k++)
            test_put(db, (char[]){*k, 0}, "1");
        if (where == 2)
            flush(db);
        assert_public(tamiz_snapshot_take(db, &before), TAMIZ_OK);
        delete_range(db, "b", "f");
        assert_public(tamiz_snapshot_take(db, &between), TAMIZ_OK);
        test_put(db, "c", "2");
        if (where == 1 || where == 2)
            flush(db);
        if (where == 3) {
            tamiz_snapshot_release(before), tamiz_snapshot_release(between);
            test_close(db);
            db = test_open("s", SMALL, w.env);
            before = between = NULL;
        }
        assert_string_equal(test_scan(db, NULL), "a=1 c=2 f=1 g=1");
        test_expect(db, "b", NULL, NULL);
        test_expect(db, "c", "2", NULL);
        test_expect(db, "e", NULL, NULL);
        test_expect(db, "f", "1", NULL);
        if (before) {
            assert_string_equal(test_scan(db, before), "a=1 b=1 c=1 d=1 e=1 f=1 g=1");
            assert_string_equal(test_scan(db, between), "a=1 f=1 g=1");
            test_expect(db, "c", "1", before);
            test_expect(db, "c", NULL, between);
        }
        assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
        assert_string_equal(test_scan(db, NULL), "a=1 c=2 f=1 g=1");
        if (before) {
            assert_string_equal(test_scan(db, before), "a=1 b=1 c=1 d=1 e=1 f=1 g=1");
            assert_string_equal(test_scan(db, between), "a=1 f=1 g=1");
        }
        tamiz_snapshot_release(before), tamiz_snapshot_release(between);
        verify(db);
        finish(&w, db);
    }
}

static void writes_of_one_batch_come_in_their_order(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, SMALL);
    tamiz_batch *batch = tamiz_batch_new();
    assert_public(tamiz_batch_put(batch, NULL, "a", 1, "1", 1), TAMIZ_OK);
    assert_public(tamiz_batch_put(batch, NULL, "b", 1, "1", 1), TAMIZ_OK);
    assert_public(tamiz_batch_delete_range(batch, NULL, "a", 1, "c", 1), TAMIZ_OK);
    assert_public(tamiz_batch_put(batch, NULL, "b", 1, "2", 1), TAMIZ_OK);
    assert_int_equal(tamiz_batch_count(batch), 4);
    assert_public(tamiz_write(db, batch, NULL), TAMIZ_OK);
    tamiz_batch_free(batch);
    assert_string_equal(test_scan(db, NULL), "b=2");
    finish(&w, db);
}

/* The filter of the table with the range delete knows none of the keys that lie below. */
static void a_filter_that_denies_a_key_does_not_hide_its_range_delete(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, SMALL "filter=blocked:16");
    put_some(db, 0, KEYS, "old");
    flush(db);
    delete_range(db, "k000100", "k000900");
    test_put(db, "k000500", "new");
    flush(db);
    for (int i = 0; i < KEYS; i++)
        test_expect(db, key_of(i), i < 100 || i >= 900 ? "old" : i == 500 ? "new" : NULL, NULL);
    bool maybe = true;
    assert_public(tamiz_may_contain(db, "k000300", 7, &maybe, NULL), TAMIZ_OK);
    assert_false(maybe);
    char *story;
    assert_public(tamiz_explain(db, "k000300", 7, NULL, &story), TAMIZ_OK);
    assert_non_null(strstr(story, "deleted here with its range"));
    tamiz_free(story);
    finish(&w, db);
}

/* A table of nothing but range deletes has no filter that could be told. */
static void a_range_delete_alone_in_its_table_is_told_with_no_filter(void **state)
{
    struct world w;
    tamiz *db;
    char *story;
    start(state, &w, &db, SMALL "filter=blocked:16 compaction=off");
    put_some(db, 0, 10, "old");
    flush(db);
    delete_range(db, "k000000", "k000100");
    flush(db);
    assert_public(tamiz_explain(db, "k000003", 7, NULL, &story), TAMIZ_OK);
    assert_non_null(strstr(story, "deleted here with its range"));
    assert_null(strstr(story, "blocked"));
    tamiz_free(story);
    finish(&w, db);
}

/* Sums up what a multi_get of all keys finds. */
static size_t found_together(tamiz *db)
{
    enum { N = KEYS };
    const void *keys[N];
    size_t sizes[N], value_sizes[N], found = 0;
    void *values[N];
    tamiz_status statuses[N];
    for (int i = 0; i < N; i++) {
        keys[i] = strdup(key_of(i));
        sizes[i] = 7;
    }
    assert_public(tamiz_multi_get(db, N, keys, sizes, values, value_sizes, statuses, NULL),
                  TAMIZ_OK);
    for (int i = 0; i < N; i++) {
        found += statuses[i] == TAMIZ_OK;
        assert_int_equal(statuses[i],
                         i < 200 || i >= 800 || i % 100 == 0 ? TAMIZ_OK : TAMIZ_NOT_FOUND);
        tamiz_free(values[i]);
        union {
            const void *borrowed;
            void *owned;
        } key = {keys[i]};
        free(key.owned);
    }
    return found;
}

static void multi_get_sees_what_get_sees(void **state)
{
    for (int flushed = 0; flushed < 3; flushed++) {
        struct world w;
        tamiz *db;
        start(state, &w, &db, SMALL "filter=bloom:10");
        put_some(db, 0, KEYS, "old");
        flush(db);
        delete_range(db, "k000200", "k000800");
        if (flushed == 2)
            flush(db);
        for (int i = 200; i < 800; i += 100)
            test_put(db, key_of(i), "new");
        if (flushed)
            flush(db);
        assert_int_equal(found_together(db), 200 + 200 + 6);
        finish(&w, db);
    }
}

static uint64_t steps_over(tamiz *db, bool forwards)
{
    tamiz_iter *it;
    uint64_t steps = 0;
    int seen = 0;
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    if (forwards)
        tamiz_iter_seek_first(it);
    else
        tamiz_iter_seek_last(it);
    while (tamiz_iter_valid(it)) {
        steps += tamiz_iter_steps(it);
        seen++;
        if (forwards)
            tamiz_iter_next(it);
        else
            tamiz_iter_prev(it);
    }
    steps += tamiz_iter_steps(it);
    assert_public(tamiz_iter_status(it), TAMIZ_OK);
    tamiz_iter_close(it);
    assert_int_equal(seen, 21);
    return steps;
}

/* A thousand dead keys between twenty living ones, in the same memtable, a memtable above tables,
 * and tables above tables. */
static void iterators_pass_a_deleted_range_without_walking_it(void **state)
{
    for (int where = 0; where < 3; where++) {
        struct world w;
        tamiz *db;
        start(state, &w, &db, SMALL);
        put_some(db, 0, KEYS, "old");
        if (where == 0)
            test_put(db, "z", "old"); /* in one memtable only what is older all over is passed */
        if (where)
            flush(db);
        delete_range(db, "k000010", "k000990");
        if (where)
            test_put(db, "k000500", "new"); /* newer than the range delete */
        if (where == 2)
            flush(db);
        assert_true(steps_over(db, true) < 100);
        assert_true(steps_over(db, false) < 100);
        finish(&w, db);
    }
}

/* What opening an iterator and a seek take does not grow with the deletes they never come near. */
static void opening_an_iterator_asks_no_range_delete(void **state)
{
    (void)state;
    size_t asked[2];
    for (int many = 0; many < 2; many++) {
        struct alloc_fail memory;
        struct world w = world_new(7);
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        tamiz *db;
        tamiz_iter *it;
        alloc_fail_init(&memory);
        o.env = w.env;
        o.allocator = memory.alloc.hook;
        o.threads = 0;
        assert_public(tamiz_open("s", &o, &db), TAMIZ_OK);
        test_put(db, "k9", "1");
        for (int i = 0; i < (many ? 1000 : 10); i++) {
            char from[16], to[16];
            snprintf(from, sizeof from, "k%05d", 10 * i);
            snprintf(to, sizeof to, "k%05d", 10 * i + 5);
            delete_range(db, from, to);
        }
        const size_t before = memory.bytes;
        assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
        tamiz_iter_seek(it, "k9", 2);
        assert_true(tamiz_iter_valid(it));
        asked[many] = memory.bytes - before;
        tamiz_iter_close(it);
        finish(&w, db);
        alloc_fail_done(&memory);
    }
    assert_int_equal(asked[0], asked[1]);
}

/* A tombstone of sequence 0, the oldest version that there can be: a value for a time that had got
 * to the bottom, and that expired before a merge above something deeper. */
static void make_oldest_tombstone(tamiz *db, struct world *w, const char *key)
{
    tamiz_write_options o = TAMIZ_WRITE_OPTIONS_INIT;
    o.ttl = 1; /* a second */
    test_put(db, "x", "1");
    flush(db);
    for (unsigned level = 0; level < 3; level++)
        assert_public(tamiz_compact_table(db, level, 0), TAMIZ_OK);
    for (int half = 0; half < 2; half++) {
        for (const char *k = "bcdefghi"; *k; k++)
            test_put(db, (char[]){*k, 0}, "1");
        if (half)
            assert_public(tamiz_put(db, key, strlen(key), "1", 1, &o), TAMIZ_OK);
        flush(db);
    }
    assert_public(tamiz_compact_table(db, 0, 0), TAMIZ_OK);
    tamiz_env_sim_clock_advance(w->sim, 2000000);
    test_put(db, "a", "1");
    test_put(db, "z", "1");
    flush(db);
    assert_public(tamiz_compact_table(db, 0, 0), TAMIZ_OK);
}

/* Seeking backwards to a key whose version is of sequence 0 leaves a merge that faces forwards; the
 * range delete over it is passed none the less. (Once it was not, and the iterator stood for ever.)
 */
static void the_oldest_version_under_a_range_delete_is_passed_both_ways(void **state)
{
    struct world w;
    tamiz *db;
    tamiz_iter *it;
    start(state, &w, &db, SMALL);
    make_oldest_tombstone(db, &w, "k");
    delete_range(db, "b", "m");
    assert_string_equal(test_scan(db, NULL), "a=1 x=1 z=1");
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    for (int round = 0; round < 3; round++) {
        for (const char *from = "xmlkji"; *from; from++) {
            tamiz_iter_seek_for_prev(it, from, 1);
            if (*from == 'x') {
                assert_true(tamiz_iter_valid(it));
                tamiz_iter_prev(it);
            }
            assert_true(tamiz_iter_valid(it));
            assert_memory_equal(tamiz_iter_key(it, NULL), "a", 1);
            tamiz_iter_seek(it, from, 1);
            assert_true(tamiz_iter_valid(it));
            assert_memory_equal(tamiz_iter_key(it, NULL), "x", 1);
        }
        tamiz_iter_seek_first(it);
        tamiz_iter_next(it);
        assert_memory_equal(tamiz_iter_key(it, NULL), "x", 1);
    }
    tamiz_iter_close(it);
    verify(db);
    finish(&w, db);
}

static void a_snapshot_older_than_a_range_delete_sees_past_it_in_both_directions(void **state)
{
    struct world w;
    tamiz *db;
    tamiz_snapshot *s;
    start(state, &w, &db, "threads=0 compaction=off memtable=64KiB");
    for (int i = 0; i < 10; i++)
        test_put(db, (char[]){(char)('a' + i), 0}, "1");
    assert_public(tamiz_snapshot_take(db, &s), TAMIZ_OK);
    delete_range(db, "c", "i");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(test_scan(db, s), "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1");
        assert_string_equal(test_scan(db, NULL), "a=1 b=1 i=1 j=1");
        if (i == 0)
            flush(db);
        else
            assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    }
    tamiz_snapshot_release(s);
    finish(&w, db);
}

/* R05 of the collected reports: partial merges, with keys that lie across tables. */
static void R05_a_range_delete_stays_within_its_bounds_through_partial_merges(void **state)
{
    struct test_random r = test_random_start(505);
    for (int round = 0; round < 20; round++) {
        struct world w;
        tamiz *db;
        tamiz_snapshot *s1;
        char value[2048];
        memset(value, 'v', sizeof value - 1);
        value[sizeof value - 1] = 0;
        start(state, &w, &db, "threads=0 compaction=off table=8KiB block=1KiB");
        for (const char *k = "bcdefghijmnopqr"; *k; k++)
            test_put(db, (char[]){*k, 0}, value);
        test_put(db, "f", "x70");
        assert_public(tamiz_snapshot_take(db, &s1), TAMIZ_OK);
        test_put(db, "f", "x100");
        flush(db);
        for (unsigned level = 0; level < 3; level++)
            while (tamiz_compact_table(db, level, 0) == TAMIZ_OK)
                ;
        delete_range(db, "c", "p");
        test_put(db, "o", "new");
        flush(db);
        for (int i = 0; i < 30; i++) {
            const tamiz_status st = tamiz_compact_table(db, (unsigned)test_random_below(&r, 6),
                                                        test_random_below(&r, 5));
            assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
            test_expect(db, "o", "new", NULL);
            test_expect(db, "f", NULL, NULL);
            test_expect(db, "n", NULL, NULL);
            test_expect(db, "b", value, NULL);
            test_expect(db, "p", value, NULL);
            test_expect(db, "r", value, NULL);
            test_expect(db, "f", "x70", s1);
            test_expect(db, "o", value, s1);
        }
        verify(db);
        tamiz_snapshot_release(s1);
        test_close(db);
        db = test_open("s", "threads=0 compaction=off table=8KiB block=1KiB", w.env);
        test_expect(db, "o", "new", NULL);
        test_expect(db, "c", NULL, NULL);
        test_expect(db, "p", value, NULL);
        finish(&w, db);
    }
}

#define LEVELED "threads=0 memtable=1MiB table=16KiB block=1KiB "

static void fill_deep(tamiz *db)
{
    char value[200];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = 0;
    put_some(db, 0, KEYS, value);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    assert_true(stats_of(db).total.tables > 8);
}

static void tables_inside_a_range_delete_go_without_being_read(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, LEVELED);
    fill_deep(db);
    const tamiz_stats before = stats_of(db);
    delete_range(db, "k", "l");
    flush(db);
    work_off(db);
    const tamiz_stats after = stats_of(db);
    assert_true(after.total.bytes < before.total.bytes / 10);
    assert_int_equal(after.compaction.read_bytes, before.compaction.read_bytes);
    assert_int_equal(after.data.read_bytes, before.data.read_bytes);
    assert_string_equal(test_scan(db, NULL), "");
    test_expect(db, key_of(5), NULL, NULL);
    finish(&w, db);
}

static void a_snapshot_keeps_the_tables_that_it_still_sees(void **state)
{
    struct world w;
    tamiz *db;
    tamiz_snapshot *s;
    start(state, &w, &db, LEVELED);
    fill_deep(db);
    assert_public(tamiz_snapshot_take(db, &s), TAMIZ_OK);
    const tamiz_stats before = stats_of(db);
    delete_range(db, "k", "l");
    flush(db);
    work_off(db);
    assert_true(stats_of(db).total.bytes >= before.total.bytes);
    size_t size;
    void *value;
    tamiz_read_options at = TAMIZ_READ_OPTIONS_INIT;
    at.snapshot = s;
    assert_public(tamiz_get(db, "k000007", 7, &value, &size, &at), TAMIZ_OK);
    tamiz_free(value);
    tamiz_snapshot_release(s);
    work_off(db);
    assert_true(stats_of(db).total.bytes < before.total.bytes / 10);
    finish(&w, db);
}

/* What only snapshots kept goes once they have gone, and with it the range delete itself. */
static void nothing_is_left_of_a_range_delete_at_the_bottom(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, LEVELED);
    fill_deep(db);
    delete_range(db, "k", "l");
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    assert_int_equal(stats_of(db).total.tables, 0);
    finish(&w, db);
}

static void build(const struct world *w, const char *path, int from, int to, const char *value)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_table_writer *writer;
    o.env = w->env;
    assert_public(tamiz_table_writer_open(path, &o, &writer), TAMIZ_OK);
    for (int i = from; i < to; i++)
        assert_public(tamiz_table_writer_put(writer, key_of(i), 7, value, strlen(value)), TAMIZ_OK);
    assert_public(tamiz_table_writer_finish(writer, NULL, NULL), TAMIZ_OK);
}

static void what_is_ingested_after_a_range_delete_is_newer(void **state)
{
    for (int flushed = 0; flushed < 4; flushed++) {
        struct world w;
        tamiz *db;
        start(state, &w, &db, LEVELED);
        put_some(db, 0, 100, "old");
        if (flushed >= 2)
            assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
        delete_range(db, "k", "l");
        if (flushed == 1 || flushed == 2) /* 3: in memory there is nothing but the range delete */
            flush(db);
        build(&w, "in", 40, 60, "new");
        assert_public(tamiz_ingest(db, (const char *const[]){"in"}, 1), TAMIZ_OK);
        for (int pass = 0; pass < 2; pass++) {
            expect_some(db, 40, 60, "new");
            test_expect(db, key_of(39), NULL, NULL);
            test_expect(db, key_of(60), NULL, NULL);
            assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
        }
        delete_range(db, "k000050", "k000055");
        expect_some(db, 40, 50, "new");
        test_expect(db, key_of(50), NULL, NULL);
        expect_some(db, 55, 60, "new");
        finish(&w, db);
    }
}

static void a_copy_and_a_reader_beside_the_writer_have_them_too(void **state)
{
    struct world w;
    tamiz *db;
    start(state, &w, &db, SMALL);
    put_some(db, 0, 100, "1");
    flush(db);
    tamiz *reader = test_open("s", SMALL "read_only=true", w.env);
    delete_range(db, "k000010", "k000090");
    assert_public(tamiz_sync(db), TAMIZ_OK);
    test_expect(reader, key_of(50), "1", NULL);
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    test_expect(reader, key_of(50), NULL, NULL);
    flush(db);
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    test_expect(reader, key_of(50), NULL, NULL);
    test_expect(reader, key_of(90), "1", NULL);
    test_close(reader);
    assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
    tamiz *copy = test_open("copy", SMALL, w.env);
    test_expect(copy, key_of(50), NULL, NULL);
    expect_some(copy, 0, 10, "1");
    test_close(copy);
    finish(&w, db);
}

static void repair_keeps_deleted_ranges_deleted(void **state)
{
    for (int flushed = 0; flushed < 2; flushed++) {
        struct world w;
        tamiz *db;
        start(state, &w, &db, SMALL);
        put_some(db, 0, 100, "1");
        flush(db);
        delete_range(db, "k000010", "k000090");
        put_some(db, 20, 30, "2");
        if (flushed)
            flush(db);
        test_close(db);
        assert_int_equal(w.env->ops->remove(w.env->ctx, "s/CURRENT"), 0);
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        o.env = w.env;
        assert_public(tamiz_repair("s", &o, NULL), TAMIZ_OK);
        db = test_open("s", SMALL, w.env);
        expect_some(db, 0, 10, "1");
        test_expect(db, key_of(10), NULL, NULL);
        expect_some(db, 20, 30, "2");
        test_expect(db, key_of(89), NULL, NULL);
        expect_some(db, 90, 100, "1");
        finish(&w, db);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_range_is_refused_and_the_empty_key_is_a_key),
        cmocka_unit_test(exactly_the_range_is_deleted_below_its_own_sequence),
        cmocka_unit_test(writes_of_one_batch_come_in_their_order),
        cmocka_unit_test(a_filter_that_denies_a_key_does_not_hide_its_range_delete),
        cmocka_unit_test(a_range_delete_alone_in_its_table_is_told_with_no_filter),
        cmocka_unit_test(multi_get_sees_what_get_sees),
        cmocka_unit_test(iterators_pass_a_deleted_range_without_walking_it),
        cmocka_unit_test(opening_an_iterator_asks_no_range_delete),
        cmocka_unit_test(the_oldest_version_under_a_range_delete_is_passed_both_ways),
        cmocka_unit_test(a_snapshot_older_than_a_range_delete_sees_past_it_in_both_directions),
        cmocka_unit_test(R05_a_range_delete_stays_within_its_bounds_through_partial_merges),
        cmocka_unit_test(tables_inside_a_range_delete_go_without_being_read),
        cmocka_unit_test(a_snapshot_keeps_the_tables_that_it_still_sees),
        cmocka_unit_test(nothing_is_left_of_a_range_delete_at_the_bottom),
        cmocka_unit_test(what_is_ingested_after_a_range_delete_is_newer),
        cmocka_unit_test(a_copy_and_a_reader_beside_the_writer_have_them_too),
        cmocka_unit_test(repair_keeps_deleted_ranges_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
