/* SPDX-License-Identifier: MIT
 *
 * R22, R29, R30: crafted files; writers that wait; leaks.
 *
 * R29 in this file has no threads: writers then do the background's work themselves, so that a wait
 * for nobody would be an endless loop here and end by the test's time limit. With threads it runs
 * in model_threads.
 *
 * R30 (leaks on error paths) is the sweep of faults_fault, faults_memory and faults_crash: each
 * call and each allocation fails in turn, under LeakSanitizer, with descriptors and memory counted.
 */
#include "cases/kit.h"

#include "log/log.h"
#include "support/alloc_fail.h"
#include "table/repair.h"

enum { MEMBERS = 300 };

static void make_store(void)
{
    open_with("threads=0 memtable=16KiB block=512 table=4KiB size_ratio=2 level0_runs=2 "
              "compression=none,zstd:1,none filter=blocked:10");
    for (int i = 0; i < MEMBERS; i++)
        put(k(i * 7 % MEMBERS), v(i * 7 % MEMBERS, 60));
    for (int i = 0; i < MEMBERS; i += 10)
        put(k(i), v(i, 60));
}

static bool is_sane(tamiz_status st)
{
    return st == TAMIZ_OK || st == TAMIZ_NOT_FOUND || st == TAMIZ_CORRUPTION ||
           st == TAMIZ_NOT_SUPPORTED || st == TAMIZ_IO_ERROR || st == TAMIZ_INVALID_ARGUMENT ||
           st == TAMIZ_OUT_OF_MEMORY || st == TAMIZ_READ_ONLY;
}

/* Everything that reads is tried: no crash, no wrong value where the checksums are not repaired, no
 * more memory than the files account for. */
static void use_damaged(bool repaired)
{
    struct alloc_fail memory;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    alloc_fail_init(&memory);
    OK(tamiz_options_set(&o, "threads=0 cache=64KiB memtable=64KiB"));
    o.env = env;
    o.allocator = memory.alloc.hook;
    tamiz_status st = tamiz_open("store", &o, &db);
    assert_true(is_sane(st));
    if (db) {
        tamiz_report report = TAMIZ_REPORT_INIT;
        for (int i = 0; i < MEMBERS; i += 3) {
            void *value = NULL;
            size_t size = 0;
            st = tamiz_get(db, k(i), 9, &value, &size, NULL);
            assert_true(is_sane(st));
            if (st == TAMIZ_OK && !repaired) {
                assert_int_equal(size, 60);
                assert_memory_equal(value, v(i, 60), 60);
            }
            /* Never silently missing, where the file is the checksum's to judge. */
            assert_true(st != TAMIZ_NOT_FOUND || repaired);
            tamiz_free(value);
        }
        tamiz_iter *it = NULL;
        if (tamiz_iter_open(db, NULL, &it) == TAMIZ_OK) {
            uint64_t steps = 0;
            for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it))
                assert_true(++steps < 100000);
            assert_true(is_sane(tamiz_iter_status(it)));
            for (tamiz_iter_seek_last(it); tamiz_iter_valid(it); tamiz_iter_prev(it))
                assert_true(++steps < 200000);
            assert_true(is_sane(tamiz_iter_status(it)));
        }
        tamiz_iter_close(it);
        assert_true(is_sane(tamiz_verify(db, &report)));
        assert_true(is_sane(tamiz_compact(db, NULL, 0, NULL, 0)));
        assert_true(is_sane(tamiz_close(db)));
        db = NULL;
    }
    assert_true(memory.most_bytes < 20 << 20);
    alloc_fail_done(&memory);
}

static void store_value(struct buf *bytes, size_t at, int which)
{
    static const uint64_t values[] = {0,          1,         INT32_MAX, UINT64_C(1) << 31,
                                      UINT32_MAX, INT64_MAX, UINT64_MAX};
    static const uint8_t varints[][12] = {
        {0xff, 0xff, 0xff, 0xff, 0x0f},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
        {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}};
    const size_t left = bytes->size - at;
    if (which < 7)
        memcpy(bytes->data + at, &values[which], left < 8 ? left : 8);
    else if (which < 11)
        memcpy(bytes->data + at, varints[which - 7], left < 12 ? left : 12);
    else
        bytes->data[at] = (uint8_t)(which == 11 ? bytes->data[at] + 1 : bytes->data[at] - 1);
}
enum { VALUES = 13 };

/* R22: a crafted block handle, key or batch length kills the process (LevelDB issue 1318). */
static void R22_crafted_tables_are_refused_or_read(void **state)
{
    (void)state;
    struct test_random r = test_random_start(22);
    const int rounds = test_long() ? 20000 : 250;
    make_store();
    compact();
    put("a", "1"), flush();
    close_it();
    tamiz_env_sim *image = remember();
    for (int round = 0; round < rounds; round++) {
        restore(image);
        char path[80];
        struct test_op t;
        test_op_init(&t);
        (void)snprintf(path, sizeof path, "%s", path_of(FILE_TABLE, round & 1));
        struct buf bytes = file_get(path);
        const bool tail = test_random_below(&r, 2); /* index, properties, footer */
        const size_t span = tail && bytes.size > 600 ? 600 : bytes.size;
        const size_t place = bytes.size - span + (size_t)test_random_below(&r, span);
        const bool repaired = test_random_below(&r, 4) != 0;
        store_value(&bytes, place, (int)test_random_below(&r, VALUES));
        if (repaired)
            repair_table(&t.op, bytes.data, bytes.size, &alloc_libc);
        file_set(path, bytes.data, bytes.size);
        buf_free(&bytes);
        use_damaged(repaired);
    }
    tamiz_env_sim_free(image);
}

/* The seal says that all before it was durable: damage is told and never read over. */
static void R22_damaged_logs_and_manifests_are_told(void **state)
{
    (void)state;
    struct test_random r = test_random_start(23);
    const int rounds = test_long() ? 20000 : 250;
    make_store();
    close_it();
    tamiz_env_sim *image = remember();
    for (int round = 0; round < rounds; round++) {
        restore(image);
        char path[80];
        (void)snprintf(path, sizeof path, "%s",
                       path_of(round & 1 ? FILE_LOG : FILE_MANIFEST, false));
        struct buf bytes = file_get(path);
        struct buf before = file_get(path);
        /* The last record is the seal itself: losing it loses nothing. */
        const size_t end = bytes.size - LOG_RECORD_HEADER_SIZE;
        const size_t place = (size_t)test_random_below(&r, end);
        store_value(&bytes, place, (int)test_random_below(&r, VALUES));
        const bool same = memcmp(before.data, bytes.data, end) == 0;
        file_set(path, bytes.data, bytes.size);
        buf_free(&bytes);
        buf_free(&before);
        tamiz *store = NULL;
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        o.env = env;
        o.threads = 0;
        const tamiz_status st = tamiz_open("store", &o, &store);
        if (!same && st != TAMIZ_CORRUPTION && st != TAMIZ_NOT_SUPPORTED)
            print_error("%s, offset %zu: %s\n", path, place, tamiz_status_name(st));
        assert_true(same || st == TAMIZ_CORRUPTION || st == TAMIZ_NOT_SUPPORTED);
        OK(tamiz_close(store));
        use_damaged(false);
    }
    tamiz_env_sim_free(image);
}

/* R29: writers wait for a compaction that nobody scheduled (Pebble). */
static void R29_writers_at_the_limit_of_level_0_get_through(void **state)
{
    (void)state;
    static const unsigned limits[][2] = {{1, 2}, {2, 3}, {4, 5}, {4, 12}};
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    assert_int_equal(tamiz_options_set(&o, "level0_runs=8 level0_stop=4"), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_options_set(&o, "level0_runs=1 level0_stop=1"), TAMIZ_INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (int way = 0; way < 4; way++) {
            char off[100], on[100];
            start_over();
            (void)snprintf(off, sizeof off, "threads=0 memtable=32KiB compaction=off");
            (void)snprintf(on, sizeof on, "threads=0 memtable=32KiB level0_runs=%u level0_stop=%u",
                           limits[i][0], limits[i][1]);
            open_with(way == 0 ? on : off);
            for (int n = 0; n < 20; n++) { /* far beyond the limit with compaction off */
                put(k(n), "1");
                put(k(1000 - n), "1");
                flush();
                if (way == 2) { /* by recovery */
                    crash(TAMIZ_SIM_KEEP, NULL, 0);
                    open_with(off);
                }
            }
            if (way)
                reopen(on);
            tamiz_snapshot *s = way == 3 ? snap() : NULL;
            if (way == 3) { /* while merges fail for a while */
                fault(TAMIZ_SIM_CREATE, "*.sst", 1, EIO, true);
                for (int n = 0; n < 50; n++)
                    put(k(n), "2");
                tamiz_env_sim_clear(sim);
                tamiz_env_sim_clock_advance(sim, 10000000); /* it is tried again by then */
            }
            for (int n = 0; n < 2000; n++)
                put(k(n), v(n, 60));
            tamiz_snapshot_release(s);
            bool more = true;
            for (int n = 0; more && n < 1000; n++)
                OK(tamiz_step(db, 1000, &more));
            assert_false(more);
            for (int n = 0; n < 2000; n += 17)
                expect(k(n), v(n, 60));
            close_it();
        }
}

/* Also: a merge that never will be, for its input is damaged, is not waited for. */
static void R29_writers_do_not_wait_for_a_merge_that_cannot_be(void **state)
{
    (void)state;
    open_with("threads=0 memtable=32KiB level0_runs=2 level0_stop=4 cache=0 compaction=off");
    for (int run = 0; run < 3; run++) {
        for (int n = 0; n < 100; n++)
            put(k(n), v(run, 60));
        flush();
    }
    char path[80];
    (void)snprintf(path, sizeof path, "%s", path_of(FILE_TABLE, true));
    reopen("threads=0 memtable=32KiB level0_runs=2 level0_stop=4 cache=0");
    assert_true(tamiz_env_sim_flip(sim, path, 8 * 200)); /* in its first block */
    for (int n = 0; n < 2000; n++)
        put(k(1000 + n), v(n, 60));
    assert_int_equal(tamiz_health(db), TAMIZ_CORRUPTION);
    assert_non_null(strstr(tamiz_error_detail(), ".sst"));
    for (int n = 0; n < 2000; n += 17)
        expect(k(1000 + n), v(n, 60));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(R22_crafted_tables_are_refused_or_read),
        CASE(R22_damaged_logs_and_manifests_are_told),
        CASE(R29_writers_at_the_limit_of_level_0_get_through),
        CASE(R29_writers_do_not_wait_for_a_merge_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
