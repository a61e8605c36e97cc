/* SPDX-License-Identifier: MIT
 *
 * R03, R04, R05, R06, R27: versions, tombstones and sequences through flushes, compactions and
 * reopening.
 *
 * The scripts' pause points of R27 do not exist in this store: there is no moment between reading a
 * sequence and listing it (both happen under one lock), and no rotation that another writer can see
 * half done (only the leader of the write queue rotates). Their threads run in model_threads, under
 * ThreadSanitizer; here is the part that needs one thread only.
 */
#include "cases/kit.h"

/* R03: compaction moves the newer half of a user key below the older half (LevelDB issue 320).
 * Form B: exactly one file at a time. */
static void R03_versions_of_one_key_are_never_split(void **state)
{
    (void)state;
    for (unsigned choice = 0; choice < 3; choice++) {
        tamiz_snapshot *s[41] = {NULL};
        start_over();
        open_with("threads=0 memtable=256KiB table=16KiB block=1KiB compaction=off");
        put("a", v(0, 100));
        for (int i = 1; i <= 40; i++) {
            put("k", v(i, 4000));
            s[i] = snap();
        }
        put("z", v(99, 100));
        flush();
        for (unsigned level = 0; level < 4; level++) {
            const tamiz_status st = tamiz_compact_table(db, level, choice);
            assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
            expect("k", v(40, 4000));
            for (int i = 1; i <= 40; i++)
                expect_at("k", v(i, 4000), s[i]);
        }
        del("k");
        tamiz_snapshot *t = snap();
        flush();
        for (unsigned level = 0; level < 5; level++) {
            const tamiz_status st = tamiz_compact_table(db, level, choice);
            assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
            expect("k", NULL);
            expect_at("k", NULL, t);
            for (int i = 1; i <= 40; i++)
                expect_at("k", v(i, 4000), s[i]);
        }
        for (int i = 1; i <= 40; i++)
            tamiz_snapshot_release(s[i]);
        tamiz_snapshot_release(t);
        compact();
        expect("k", NULL);
        reopen(SMALL);
        expect("k", NULL);
        expect("z", v(99, 100));
    }
}

struct shape {
    int keys, size, snaps, steps;
};

static void stress(const struct shape *shape, uint64_t seed)
{
    struct test_random r = {seed};
    const int steps = test_long() ? shape->steps * 20 : shape->steps;
    int *now = calloc((size_t)shape->keys, sizeof *now);
    int **then = calloc((size_t)shape->snaps, sizeof *then);
    tamiz_snapshot **snaps = calloc((size_t)shape->snaps, sizeof(tamiz_snapshot *));
    open_with("threads=0 memtable=64KiB table=64KiB size_ratio=2 level0_runs=2 level0_stop=6");
    for (int i = 1; i <= steps; i++) {
        const int key = (int)test_random_below(&r, (uint64_t)shape->keys);
        now[key] = test_random_below(&r, 5) ? i : 0;
        if (now[key])
            put(k(key), v(i, shape->size));
        else
            del(k(key));
        if (test_random_below(&r, 50) == 0) {
            const int n = (int)test_random_below(&r, (uint64_t)shape->snaps);
            tamiz_snapshot_release(snaps[n]);
            snaps[n] = snap();
            free(then[n]);
            then[n] = malloc((size_t)shape->keys * sizeof **then);
            memcpy(then[n], now, (size_t)shape->keys * sizeof *now);
        }
        if (i % 10)
            continue;
        const int n = (int)test_random_below(&r, (uint64_t)shape->snaps);
        const int asked = (int)test_random_below(&r, (uint64_t)shape->keys);
        expect(k(asked), now[asked] ? v(now[asked], shape->size) : NULL);
        if (snaps[n])
            expect_at(k(asked), then[n][asked] ? v(then[n][asked], shape->size) : NULL, snaps[n]);
    }
    for (int n = 0; n < shape->snaps; n++) {
        for (int i = 0; snaps[n] && i < shape->keys; i++)
            expect_at(k(i), then[n][i] ? v(then[n][i], shape->size) : NULL, snaps[n]);
        tamiz_snapshot_release(snaps[n]);
        free(then[n]);
    }
    free(now), free(then), free(snaps);
    close_it();
}

/* Form A: many snapshots, few keys, much rewriting. */
static void R03_snapshots_keep_their_values_under_stress(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {300, 500, 20, 4000}, {20, 4000, 40, 1500}, {200, 2000, 40, 1500}};
    struct test_random seed = test_random_start(303);
    for (int i = 0; i < 3; i++) {
        start_over();
        stress(&shapes[i], seed.state + (uint64_t)i);
    }
}

/* Also: a snapshot at sequence 0 (RocksDB pull 13155). Documented rule: it sees nothing. */
static void R03_a_snapshot_of_the_empty_store_stays_empty(void **state)
{
    (void)state;
    open_with(SMALL);
    tamiz_snapshot *s0 = snap();
    put("k", "1");
    for (int i = 0; i < 3; i++) {
        expect("k", "1");
        expect_at("k", NULL, s0);
        assert_int_equal(scan_count(s0), 0);
        if (i == 0)
            flush();
        else
            compact();
    }
    tamiz_snapshot_release(s0);
    compact();
    expect("k", "1");
    s0 = snap();
    expect_at("k", "1", s0);
    tamiz_snapshot_release(s0);
}

/* R04: the level-0 picker does not grow its range, a delete sinks below the value (LevelDB). */
static void R04_a_delete_never_sinks_below_its_value(void **state)
{
    (void)state;
    for (unsigned one = 0; one < 4; one++) {
        start_over();
        open_with("threads=0 compaction=off");
        put("a", "1"), put("d", "old");
        flush();
        put("c", "2"), del("d"), put("g", "3");
        flush();
        put("f", "4"), put("j", "5");
        flush();
        if (one == 3)
            compact_range("h", "k");
        else
            OK(tamiz_compact_table(db, 0, one));
        expect("d", NULL);
        assert_string_equal(test_scan(db, NULL), "a=1 c=2 f=4 g=3 j=5");
        compact();
        expect("d", NULL);
        reopen("threads=0");
        expect("d", NULL);
        assert_string_equal(test_scan(db, NULL), "a=1 c=2 f=4 g=3 j=5");
    }
}

/* Also: a lone delete in level 0 over several files in level 1 (Badger). There are no parallel
 * ranges within one compaction here; single files are compacted instead. */
static void R04_a_lone_delete_meets_its_key_in_the_level_below(void **state)
{
    (void)state;
    open_with("threads=0 compaction=off table=4KiB block=512");
    for (char c = 'A'; c <= 'D'; c++) {
        const char key[2] = {c, 0};
        put(key, v(c, 4000));
    }
    flush();
    OK(tamiz_compact_table(db, 0, 0));
    del("C");
    flush();
    OK(tamiz_compact_table(db, 0, 0));
    expect("C", NULL);
    assert_int_equal(scan_count(NULL), 3);
    compact();
    expect("C", NULL);
    assert_int_equal(scan_count(NULL), 3);
}

/* Also: volume (LevelDB issue 184). */
static void R04_all_deleted_means_nothing_left(void **state)
{
    (void)state;
    const int n = test_long() ? 1100000 : 4000;
    open_with(SMALL);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < n; i++)
            put(k(i), "12345678");
    for (int i = 0; i < n; i++)
        del(k(i));
    assert_int_equal(scan_count(NULL), 0);
    flush();
    assert_int_equal(scan_count(NULL), 0);
    compact();
    assert_int_equal(scan_count(NULL), 0);
    assert_int_equal(count_files(FILE_TABLE), 0);
}

/* R06: the highest sequence is not recovered, fresh snapshots see nothing (fjall pull 266). */
static void R06_new_writes_win_over_old_files_after_reopening(void **state)
{
    (void)state;
    open_with(SMALL);
    for (int i = 0; i < 100; i++)
        put(k(i), "v1");
    flush();
    compact();
    reopen(SMALL);
    tamiz_snapshot *s = snap();
    assert_int_equal(scan_count(s), 100);
    put(k(0), "v2");
    expect(k(0), "v2");
    expect_at(k(0), "v1", s);
    tamiz_snapshot *t = snap();
    expect_at(k(0), "v2", t);
    del(k(1));
    flush();
    tamiz_snapshot_release(s);
    tamiz_snapshot_release(t);
    reopen(SMALL);
    expect(k(1), NULL);
    expect(k(0), "v2");
    for (int i = 0; i < 20; i++) {
        reopen(SMALL);
        put(k(0), v(i, 8));
        expect(k(0), v(i, 8));
        if (i % 3 == 0)
            flush();
        if (i % 5 == 0)
            compact();
        crash(i % 2 ? TAMIZ_SIM_KEEP : TAMIZ_SIM_DROP, NULL, 0);
        open_with(SMALL);
        put(k(0), v(100 + i, 8));
        expect(k(0), v(100 + i, 8));
    }
}

/* R27, what of it needs one thread: a delete and a compaction right behind a snapshot. */
static void R27_a_snapshot_is_counted_by_the_next_compaction(void **state)
{
    (void)state;
    open_with(SMALL);
    for (int i = 0; i < 60; i++) {
        put("k", v(i, 8));
        tamiz_snapshot *s = snap();
        del("k");
        flush();
        compact();
        expect_at("k", v(i, 8), s);
        expect("k", NULL);
        tamiz_snapshot_release(s);
    }
    crash(TAMIZ_SIM_KEEP, NULL, 0);
    open_with(SMALL);
    expect("k", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(R03_versions_of_one_key_are_never_split),
        CASE(R03_snapshots_keep_their_values_under_stress),
        CASE(R03_a_snapshot_of_the_empty_store_stays_empty),
        CASE(R04_a_delete_never_sinks_below_its_value),
        CASE(R04_a_lone_delete_meets_its_key_in_the_level_below),
        CASE(R04_all_deleted_means_nothing_left),
        CASE(R06_new_writes_win_over_old_files_after_reopening),
        CASE(R27_a_snapshot_is_counted_by_the_next_compaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
