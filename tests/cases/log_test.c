/* SPDX-License-Identifier: MIT
 *
 * R07 to R11, R19: the write-ahead log.
 *
 * Logs are neither continued after a reopening nor recycled: each opening begins a new file, and
 * what it replayed is written again to it or flushed. So "append behind the torn tail" (R07) and "a
 * record of the file's former life" (R08) can only be made by hand, and are: see log_test for the
 * latter, where records of one file are put into another.
 */
#include "cases/kit.h"

static uint64_t size_of_file(const char *path)
{
    tamiz_file_info info;
    assert_int_equal(env->ops->path_info(env->ctx, path, &info), 0);
    return info.size;
}

/* R07: appending after a torn tail loses later, acknowledged writes (cqlite issue 1390). */
static void R07_writes_after_a_torn_tail_survive_the_next_recovery(void **state)
{
    (void)state;
    open_with(SMALL);
    put_synced("a", "1");
    put("b", "2");
    tamiz_env_sim *image = remember();
    for (uint64_t n = 0; n <= 40; n++) {
        restore(image);
        if (n == 0) { /* one byte more in place of some less */
            crash(TAMIZ_SIM_KEEP, NULL, 0);
            struct buf log = file_get(path_of(FILE_LOG, false));
            buf_u8(&log, 1);
            file_set(path_of(FILE_LOG, false), log.data, log.size);
            buf_free(&log);
        } else {
            crash(TAMIZ_SIM_TEAR, "*.log", n);
        }
        open_with(SMALL);
        expect("a", "1");
        if (n)
            expect("b", NULL);
        put_synced("c", "3");
        put_synced("d", "4");
        crash(TAMIZ_SIM_KEEP, NULL, 0);
        open_with(SMALL);
        expect("a", "1");
        expect("c", "3");
        expect("d", "4");
        close_it();
    }
    tamiz_env_sim_free(image);
}

/* R08: a preallocated (zero) tail breaks replay (Pebble). */
static void R08_zeros_behind_the_end_are_no_damage(void **state)
{
    (void)state;
    static const size_t pads[] = {1, 6, 7, 8, 4095, 4096, 32767, 32768, 1 << 20};
    open_with(SMALL);
    put_synced("a", "1");
    crash(TAMIZ_SIM_KEEP, NULL, 0); /* the log has its reserved room now */
    open_with(SMALL);
    expect("a", "1");
    for (size_t i = 0; i < sizeof pads / sizeof *pads; i++) {
        close_it();
        const char *path = path_of(FILE_LOG, false);
        struct buf log = file_get(path);
        static const uint8_t zeros[1 << 20];
        buf_append(&log, zeros, pads[i]);
        file_set(path, log.data, log.size);
        buf_free(&log);
        open_with(SMALL);
        expect("a", "1");
        put_synced("b", k((int)i));
        crash(TAMIZ_SIM_ZERO, "*.log", 9);
        open_with(SMALL);
        expect("a", "1");
        expect("b", k((int)i));
    }
    del("a");
    flush();
    crash(TAMIZ_SIM_KEEP, NULL, 0);
    open_with(SMALL);
    expect("a", NULL);
}

/* Two logs that are both needed: the first one's memtable is sealed, its flush fails. */
static void two_logs(void)
{
    open_with("threads=0 memtable=64KiB");
    fault(TAMIZ_SIM_CREATE, "*.sst", 1, EIO, true);
    for (int i = 0; i < 59; i++) {
        const tamiz_status st = tamiz_put(db, k(i), 9, v(i, 1000), 1000, &synced);
        if (st != TAMIZ_OK)
            assert_true(i > 50);
    }
    (void)tamiz_flush(db);
    for (int i = 50; i < 60; i++)
        put_synced(k(i), v(i, 1000));
    tamiz_env_sim_clear(sim);
    assert_int_equal(count_files(FILE_LOG), 2);
}

/* R09: damage in an older log silently leaves a hole (RocksDB pull 7701). */
static void R09_damage_in_an_older_log_leaves_no_hole(void **state)
{
    (void)state;
    two_logs();
    tamiz_env_sim *image = remember();
    for (int how = 0; how < 20; how++) {
        restore(image);
        crash(TAMIZ_SIM_DROP, NULL, 0);
        char path[80];
        (void)snprintf(path, sizeof path, "%s", path_of(FILE_LOG, true));
        struct buf log = file_get(path);
        size_t end = log.size;
        while (end && log.data[end - 1] == 0)
            end--;
        if (how < 3)
            log.size = end - (how == 0 ? 1 : how == 1 ? 20 : 1024);
        else if (how == 3)
            memset(log.data + end / 2, 0, 512);
        else if (how == 4)
            memset(log.data + end / 2, 'J', 512);
        else
            log.data[70 + (size_t)(how - 5) * (end - 80) / 15] ^= 4;
        file_set(path, log.data, log.size);
        buf_free(&log);
        const tamiz_status st = try_open("threads=0");
        if (st != TAMIZ_CORRUPTION)
            print_error("how %d: %s\n", how, tamiz_status_name(st));
        assert_int_equal(st, TAMIZ_CORRUPTION);
        assert_non_null(strstr(tamiz_error_detail(), ".log"));
    }
    restore(image);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    open_with("threads=0");
    for (int i = 0; i < 60; i++)
        expect(k(i), v(i, 1000));
    close_it();
    tamiz_env_sim_free(image);
}

/* Also: garbage or zeros inside the record that was being written (LevelDB issue 251). */
static void R09_an_unsynced_value_is_absent_or_exact(void **state)
{
    (void)state;
    open_with("threads=0");
    put_synced("a", "1");
    put("x", v(1, 100000));
    tamiz_env_sim *image = remember();
    for (int mode = TAMIZ_SIM_TEAR; mode <= TAMIZ_SIM_REORDER; mode++)
        for (uint64_t n = 1; n <= 100000; n += test_long() ? 997 : 9973) {
            restore(image);
            crash((tamiz_sim_crash)mode, "*.log", n);
            open_with("threads=0");
            expect("a", "1");
            if (tamiz_exists(db, "x", 1, NULL) == TAMIZ_OK)
                expect("x", v(1, 100000));
            close_it();
        }
    tamiz_env_sim_free(image);
}

static void big_batch(void)
{
    tamiz_batch *b = tamiz_batch_new();
    OK(tamiz_batch_put(b, NULL, "a", 1, "1", 1));
    OK(tamiz_batch_put(b, NULL, "b", 1, v(1, 70000), 70000));
    OK(tamiz_batch_delete(b, NULL, "c", 1));
    OK(tamiz_batch_put(b, NULL, "d", 1, "4", 1));
    OK(tamiz_write(db, b, NULL));
    tamiz_batch_free(b);
}

static void expect_whole_or_none(void)
{
    const bool is_new = tamiz_exists(db, "a", 1, NULL) == TAMIZ_OK;
    expect("a", is_new ? "1" : NULL);
    expect("b", is_new ? v(1, 70000) : NULL);
    expect("c", is_new ? NULL : "old");
    expect("d", is_new ? "4" : NULL);
}

/* R10: a batch is logged item by item, recovery replays half of it (mini-lsm issue 74). */
static void R10_a_batch_is_there_whole_or_not_at_all(void **state)
{
    (void)state;
    open_with("threads=0");
    put_synced("c", "old");
    big_batch();
    tamiz_env_sim *image = remember();
    for (uint64_t n = 1; n <= 70200; n += n < 100 || test_long() ? 7 : 1777) {
        restore(image);
        crash(TAMIZ_SIM_TEAR, "*.log", n);
        open_with("threads=0");
        expect_whole_or_none();
        close_it();
    }
    for (uint64_t r = 1; r <= (test_long() ? 2000 : 60); r++) {
        restore(image);
        crash(TAMIZ_SIM_REORDER, NULL, r);
        open_with("threads=0");
        expect_whole_or_none();
        close_it();
    }
    tamiz_env_sim_free(image);
}

/* Batches of odd sizes: empty, the same key three times, one that fills or rotates the memtable. */
static void R10_batches_of_every_size_are_recovered(void **state)
{
    (void)state;
    for (size_t size = 15000; size < 17500; size += 100) {
        tamiz_batch *b = tamiz_batch_new();
        start_over();
        open_with(SMALL);
        OK(tamiz_write(db, b, NULL));
        OK(tamiz_batch_put(b, NULL, "k", 1, "1", 1));
        OK(tamiz_batch_delete(b, NULL, "k", 1));
        OK(tamiz_batch_put(b, NULL, "k", 1, "3", 1));
        OK(tamiz_batch_put(b, NULL, "big", 3, v(7, 17500), size));
        OK(tamiz_write(db, b, NULL));
        OK(tamiz_write(db, b, NULL));
        tamiz_batch_free(b);
        put("after", "1");
        crash(TAMIZ_SIM_KEEP, NULL, 0);
        open_with(SMALL);
        expect("k", "3");
        expect("after", "1");
        assert_int_equal(scan_count(NULL), 3);
        close_it();
    }
}

/* R11: a commit drops a log write error, a later sync claims durability (fjall issue 304). */
static void R11_a_failed_append_is_told_and_not_visible(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC, 0};
    for (int e = 0; e < 3; e++)
        for (uint64_t nth = 1; nth <= 6; nth++) {
            start_over();
            open_with("threads=0");
            put_synced("base", "1");
            tamiz_sim_fault f = TAMIZ_SIM_FAULT_INIT;
            f.call = TAMIZ_SIM_WRITE;
            f.name = "*.log";
            f.nth = nth;
            f.error = errors[e] ? errors[e] : ENOSPC;
            f.effect = errors[e] ? TAMIZ_SIM_FAIL : TAMIZ_SIM_SHORT;
            assert_true(tamiz_env_sim_fault(sim, &f));
            bool ok[8];
            for (int i = 0; i < 8; i++) {
                tamiz_batch *b = tamiz_batch_new();
                char key[3][16];
                const uint64_t before = tamiz_env_sim_faults_acted(sim);
                for (int n = 0; n < 3; n++) {
                    (void)snprintf(key[n], sizeof key[n], "%d%c", i, 'a' + n);
                    OK(tamiz_batch_put(b, NULL, key[n], 2, "v", 1));
                }
                ok[i] = tamiz_write(db, b, NULL) == TAMIZ_OK;
                tamiz_batch_free(b);
                assert_true(ok[i] || tamiz_env_sim_faults_acted(sim) > before);
                assert_false(ok[i] && tamiz_env_sim_faults_acted(sim) > before);
                for (int n = 0; n < 3; n++)
                    expect(key[n], ok[i] ? "v" : NULL);
            }
            tamiz_env_sim_clear(sim);
            const bool durable = tamiz_sync(db) == TAMIZ_OK;
            crash(TAMIZ_SIM_DROP, NULL, 0);
            open_with("threads=0");
            expect("base", "1");
            assert_true(durable);
            for (int i = 0; i < 8; i++) {
                const char key[3] = {(char)('0' + i), 'c', 0};
                expect(key, ok[i] ? "v" : NULL);
            }
        }
}

/* Also: after a sync that lost data the store does not wait for a second failure: what was
 * acknowledged goes to a table first, and then the next write is durable. */
static void R11_a_sync_that_fails_costs_one_write(void **state)
{
    (void)state;
    for (int effect = 0; effect < 2; effect++)
        for (int i = 0; i < 3; i++) {
            start_over();
            open_with("threads=0");
            put_synced("base", "1");
            put("unsynced", "1");
            tamiz_sim_fault f = TAMIZ_SIM_FAULT_INIT;
            f.call = TAMIZ_SIM_FSYNC;
            f.name = "*.log";
            f.effect = effect ? TAMIZ_SIM_LOSE : TAMIZ_SIM_FAIL;
            assert_true(tamiz_env_sim_fault(sim, &f));
            assert_int_equal(tamiz_put(db, "failed", 6, "1", 1, &synced), TAMIZ_IO_ERROR);
            expect("failed", NULL);
            if (i == 0)
                put_synced("next", "1");
            else if (i == 1)
                OK(tamiz_sync(db));
            else
                close_it();
            crash(TAMIZ_SIM_DROP, NULL, 0);
            open_with("threads=0");
            assert_string_equal(test_scan(db, NULL),
                                i == 0 ? "base=1 next=1 unsynced=1" : "base=1 unsynced=1");
        }
}

/* R19: values past 4 GB corrupt the store (LevelDB issue 718). */
static void R19_what_is_too_large_is_refused_whole_before_anything_is_logged(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {(UINT64_C(1) << 30) + 1, (UINT64_C(1) << 31) - 1,
                                     UINT64_C(1) << 31,       (UINT64_C(1) << 32) - 1,
                                     UINT64_C(1) << 32,       UINT64_C(4300000000)};
    open_with("threads=0");
    put_synced("s", "1");
    const char *path = path_of(FILE_LOG, false);
    const uint64_t before = size_of_file(path);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tamiz_batch *b = tamiz_batch_new();
        /* The address is never read: the size is refused first. */
        assert_int_equal(tamiz_put(db, "big", 3, "h", (size_t)sizes[i], NULL),
                         TAMIZ_INVALID_ARGUMENT);
        OK(tamiz_batch_put(b, NULL, "u", 1, "1", 1));
        assert_int_equal(tamiz_batch_put(b, NULL, "big", 3, "h", (size_t)sizes[i]),
                         TAMIZ_INVALID_ARGUMENT);
        assert_int_equal(tamiz_batch_count(b), 1);
        tamiz_batch_free(b);
    }
    assert_int_equal(tamiz_put(db, v(1, 65536), 65536, "", 0, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(size_of_file(path), before);
    expect("s", "1");
    expect("big", NULL);
}

static void R19_sizes_up_to_the_limit_are_exact(void **state)
{
    (void)state;
    static const int short_sizes[] = {65535, 65536, 1 << 20};
    open_with("threads=0");
    char *big = malloc((size_t)1 << 30);
    assert_non_null(big);
    memset(big, 'h', test_long() ? (size_t)1 << 30 : (size_t)2 << 20);
    for (int i = 0; i < (test_long() ? 5 : 3); i++) {
        const size_t size = i < 3    ? (size_t)short_sizes[i]
                            : i == 3 ? ((size_t)1 << 30) - 1
                                     : (size_t)1 << 30;
        OK(tamiz_put(db, "big", 3, big, size, NULL));
        OK(tamiz_put(db, v(9, 65535), 65535, "k", 1, NULL));
        put_synced("t", k(i));
        for (int stage = 0; stage < 4; stage++) {
            void *value = NULL;
            size_t got = 0;
            OK(tamiz_get(db, "big", 3, &value, &got, NULL));
            assert_int_equal(got, size);
            assert_memory_equal(value, big, size);
            tamiz_free(value);
            expect(v(9, 65535), "k");
            expect("t", k(i));
            if (stage == 0)
                flush();
            else if (stage == 1)
                compact();
            else {
                crash(TAMIZ_SIM_KEEP, NULL, 0);
                open_with("threads=0");
            }
        }
    }
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(R07_writes_after_a_torn_tail_survive_the_next_recovery),
        CASE(R08_zeros_behind_the_end_are_no_damage),
        CASE(R09_damage_in_an_older_log_leaves_no_hole),
        CASE(R09_an_unsynced_value_is_absent_or_exact),
        CASE(R10_a_batch_is_there_whole_or_not_at_all),
        CASE(R10_batches_of_every_size_are_recovered),
        CASE(R11_a_failed_append_is_told_and_not_visible),
        CASE(R11_a_sync_that_fails_costs_one_write),
        CASE(R19_what_is_too_large_is_refused_whole_before_anything_is_logged),
        CASE(R19_sizes_up_to_the_limit_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
