/* SPDX-License-Identifier: MIT
 *
 * R12, R13, R16, R17: the manifest, CURRENT, syncs that fail, disks that fill up.
 */
#include "cases/kit.h"

#define MODEL_KEYS 60

/* The model of these scripts: value of k(i) is v(model[i], 300), 0: absent. */
static int model[MODEL_KEYS];

static tamiz_status model_put(int i, int value, bool sync)
{
    const tamiz_status st = tamiz_put(db, k(i), 9, v(value, 300), 300, sync ? &synced : NULL);
    if (st == TAMIZ_OK)
        model[i] = value;
    return st;
}

static void expect_model(void)
{
    size_t there = 0;
    for (int i = 0; i < MODEL_KEYS; i++) {
        expect(k(i), model[i] ? v(model[i], 300) : NULL);
        there += model[i] != 0;
    }
    assert_int_equal(scan_count(NULL), there);
}

/* R12: a failed manifest append leaves a bad record in the middle (RocksDB issue 6316). */
static void R12_after_a_failed_append_the_next_edits_go_elsewhere(void **state)
{
    (void)state;
    bool fired = true;
    for (uint64_t nth = 1; fired; nth++)
        for (int effect = 0; effect < 3; effect++) {
            start_over();
            memset(model, 0, sizeof model);
            open_with("threads=0 compaction=off");
            tamiz_sim_fault f = TAMIZ_SIM_FAULT_INIT;
            f.call = effect == 2 ? TAMIZ_SIM_FSYNC : TAMIZ_SIM_WRITE;
            f.name = "MANIFEST-*";
            f.nth = nth;
            f.error = effect == 2 ? EIO : ENOSPC;
            f.effect = effect == 0 ? TAMIZ_SIM_SHORT : TAMIZ_SIM_FAIL;
            assert_true(tamiz_env_sim_fault(sim, &f));
            int failed = 0;
            for (int i = 0; i < 8; i++) {
                OK(model_put(i, 1 + i, false));
                const tamiz_status st = tamiz_flush(db);
                if (st != TAMIZ_OK)
                    assert_int_equal(st, effect == 2 ? TAMIZ_IO_ERROR : TAMIZ_NO_SPACE);
                failed += st != TAMIZ_OK;
            }
            fired = tamiz_env_sim_faults_acted(sim) > 0;
            assert_true(failed <= (fired ? 1 : 0)); /* with no threads a flush tries twice */
            flush();
            OK(tamiz_health(db));
            crash(TAMIZ_SIM_DROP, NULL, 0);
            open_with("threads=0 compaction=off");
            expect_model();
        }
}

/* Also: the record reached the file but its sync failed (LevelDB). */
static void R12_outputs_that_may_be_named_are_not_deleted(void **state)
{
    (void)state;
    for (int n = 0; n < 2 * (TAMIZ_SIM_REORDER + 1); n++) {
        const int mode = n / 2;
        start_over();
        open_with("threads=0 compaction=off");
        put("foo", "bar");
        compact();
        put("foo2", "bar2");
        flush();
        fault(TAMIZ_SIM_FSYNC, "MANIFEST-*", 1, EIO, false);
        if (n & 1) /* nor can a new manifest say that the edit is not in force */
            fault(TAMIZ_SIM_CREATE, "MANIFEST-*", 1, EIO, true);
        assert_int_equal(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_IO_ERROR);
        tamiz_env_sim_clear(sim);
        bool more;
        (void)tamiz_step(db, 1000, &more);
        tamiz_env_sim *image = remember();
        crash((tamiz_sim_crash)mode, NULL, 5);
        open_with("threads=0");
        assert_string_equal(test_scan(db, NULL), "foo=bar foo2=bar2");
        restore(image);
        tamiz_env_sim_free(image);
        crash(TAMIZ_SIM_KEEP, NULL, 0);
        open_with("threads=0");
        put("foo3", "bar3");
        compact();
        reopen("threads=0");
        assert_string_equal(test_scan(db, NULL), "foo=bar foo2=bar2 foo3=bar3");
        assert_int_equal(count_files(FILE_TABLE), 1);
    }
}

static uint64_t stop_call;
static tamiz_env_sim *stopped;

static void stop_here(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    (void)ctx, (void)kind, (void)name;
    if (number == stop_call)
        stopped = tamiz_env_sim_copy(sim);
}

/* R13: the switch of CURRENT is not durable before old files are unlinked (LevelDB issue 195). */
static void R13_opening_may_be_stopped_at_any_call(void **state)
{
    (void)state;
    memset(model, 0, sizeof model);
    open_with(SMALL);
    for (int i = 0; i < MODEL_KEYS; i++)
        OK(model_put(i, i + 1, true));
    close_it();
    tamiz_env_sim *image = remember();
    bool reached = true;
    for (stop_call = 1; reached; stop_call++) {
        restore(image);
        stopped = NULL;
        tamiz_env_sim_on_call(sim, stop_here, NULL);
        open_with(SMALL);
        tamiz_env_sim_on_call(sim, NULL, NULL);
        tamiz_env_sim *at_stop = stopped;
        reached = at_stop != NULL;
        for (uint64_t r = 1; reached && r <= (test_long() ? 50 : 6); r++) {
            restore(at_stop);
            crash(TAMIZ_SIM_REORDER, NULL, r);
            open_with(SMALL);
            expect_model();
        }
        tamiz_env_sim_free(at_stop);
    }
    print_message("%llu calls\n", (unsigned long long)stop_call - 2);
    tamiz_env_sim_free(image);
}

static void R13_the_first_opening_may_be_stopped_at_any_call(void **state)
{
    (void)state;
    bool reached = true;
    for (stop_call = 1; reached; stop_call++) {
        start_over();
        stopped = NULL;
        tamiz_env_sim_on_call(sim, stop_here, NULL);
        open_with(SMALL);
        tamiz_env_sim_on_call(sim, NULL, NULL);
        tamiz_env_sim *at_stop = stopped;
        reached = at_stop != NULL;
        for (uint64_t r = 1; reached && r <= 20; r++) {
            restore(at_stop);
            crash(TAMIZ_SIM_REORDER, NULL, r);
            open_with(SMALL);
            assert_int_equal(scan_count(NULL), 0);
            put("a", "1");
        }
        tamiz_env_sim_free(at_stop);
    }
}

/* Names and bytes of the whole directory, as one hash. */
static void hash_name(void *ctx, const char *name)
{
    struct buf *names = ctx;
    buf_append(names, name, strlen(name) + 1);
}

static uint64_t directory_hash(void)
{
    struct buf names = buf_init(&alloc_libc);
    uint64_t hash = 0;
    assert_int_equal(env->ops->list(env->ctx, "store", hash_name, &names), 0);
    for (size_t i = 0; i < names.size; i += strlen((char *)names.data + i) + 1) {
        char path[100];
        (void)snprintf(path, sizeof path, "store/%s", (char *)names.data + i);
        struct buf bytes = file_get(path);
        hash += tamiz_hash(path, strlen(path)) * 31 + tamiz_hash(bytes.data, bytes.size);
        buf_free(&bytes);
    }
    buf_free(&names);
    return hash;
}

static void R13_a_damaged_or_missing_current_is_told_and_nothing_is_touched(void **state)
{
    (void)state;
    static const char *const contents[] = {"MANIFEST-999999\n", "",  "MANIFEST-", "\n",
                                           "../etc/passwd\n",   NULL};
    open_with(SMALL);
    for (int i = 0; i < 100; i++)
        put(k(i), v(i, 300));
    close_it();
    for (int i = 0; i < 6; i++) {
        if (contents[i])
            file_set("store/CURRENT", contents[i], strlen(contents[i]));
        else
            assert_int_equal(env->ops->remove(env->ctx, "store/CURRENT"), 0);
        const uint64_t before = directory_hash();
        assert_int_equal(try_open("threads=0"), TAMIZ_CORRUPTION);
        assert_null(db);
        assert_true(before == directory_hash());
        assert_int_equal(try_open("threads=0 read_only=true"), TAMIZ_CORRUPTION);
        assert_true(before == directory_hash());
    }
}

/* R16: the store stays failed after space returns (RocksDB issue 919). */
static void R16_writing_goes_on_when_there_is_space_again(void **state)
{
    (void)state;
    static char acked[20000];
    for (uint64_t limit = 200; limit <= 1000; limit += 90) {
        int i = 0, refused = 0;
        start_over();
        memset(acked, 0, sizeof acked);
        open_with("threads=0 memtable=64KiB table=64KiB level0_runs=2 level0_stop=4");
        tamiz_env_sim_limit_disk(sim, limit << 10);
        for (; i < 4000 && refused < 5; i++) {
            const tamiz_status st = tamiz_put(db, k(i), 9, v(i, 1000), 1000, &synced);
            acked[i] = st == TAMIZ_OK;
            if (st != TAMIZ_OK && st != TAMIZ_NO_SPACE)
                print_error("%s\n", tamiz_error_detail());
            assert_true(st == TAMIZ_OK || st == TAMIZ_NO_SPACE);
            refused += st != TAMIZ_OK;
        }
        assert_int_equal(refused, 5);
        for (int n = 0; n < i; n++)
            expect(k(n), acked[n] ? v(n, 1000) : NULL);
        tamiz_env_sim *full = remember();
        tamiz_env_sim_limit_disk(sim, 64 << 20);
        tamiz_env_sim_clock_advance(sim, 10000000);
        OK(tamiz_put(db, "x", 1, "1", 1, &synced));
        flush();
        compact();
        OK(tamiz_health(db));
        crash(TAMIZ_SIM_KEEP, NULL, 0);
        open_with("threads=0");
        expect("x", "1");
        for (int n = 0; n < i; n++)
            expect(k(n), acked[n] ? v(n, 1000) : NULL);
        compact();
        assert_int_equal(count_files(FILE_LOG), 1);
        assert_int_equal(count_files(FILE_MANIFEST), 1);
        /* On the full disk, opening returns; with a little room it opens. */
        restore(full);
        tamiz_env_sim_free(full);
        const tamiz_status st = try_open("threads=0");
        assert_true(st == TAMIZ_OK || st == TAMIZ_NO_SPACE);
        if (db)
            (void)tamiz_close(db);
        db = NULL;
        OK(try_open("threads=0 read_only=true"));
        for (int n = 0; n < i; n++)
            expect(k(n), acked[n] ? v(n, 1000) : NULL);
        close_it();
        tamiz_env_sim_limit_disk(sim, 64 << 20);
        open_with("threads=0");
        for (int n = 0; n < i; n++)
            expect(k(n), acked[n] ? v(n, 1000) : NULL);
        close_it();
    }
}

/* Deleting frees space on a disk that was full, without any help. */
static void R16_deletes_free_the_space_they_need(void **state)
{
    (void)state;
    open_with("threads=0 memtable=64KiB table=64KiB level0_runs=2 level0_stop=4");
    tamiz_env_sim_limit_disk(sim, 1500 << 10);
    int n = 0;
    while (tamiz_put(db, k(n), 9, v(n, 1000), 1000, NULL) == TAMIZ_OK)
        n++;
    tamiz_env_sim_limit_disk(sim, 2000 << 10); /* a merge needs room to write what is left */
    int deleted = 0;
    for (int round = 0; round < 20 && deleted < n; round++) {
        tamiz_env_sim_clock_advance(sim, 6000000);
        while (deleted < n && tamiz_delete(db, k(deleted), 9, NULL) == TAMIZ_OK)
            deleted++;
        bool more = true;
        for (int i = 0; more && i < 100; i++)
            (void)tamiz_step(db, 100000, &more);
    }
    assert_int_equal(deleted, n);
    compact();
    assert_true(tamiz_env_sim_disk_used(sim) < 300 << 10);
    OK(tamiz_health(db));
}

/* Also: the failed write's sequence must not be used twice in one log (RocksDB pull 12873). */
static void R16_a_failed_write_and_its_successor_share_no_sequence(void **state)
{
    (void)state;
    static const tamiz_sim_call calls[] = {TAMIZ_SIM_WRITE, TAMIZ_SIM_FSYNC, TAMIZ_SIM_DIRSYNC};
    for (int c = 0; c < 3; c++)
        for (int after = 0; after < 2; after++)
            for (int mode = 0; mode < 2; mode++) {
                start_over();
                open_with("threads=0");
                tamiz_sim_fault f = TAMIZ_SIM_FAULT_INIT;
                f.call = calls[c];
                f.error = ENOSPC;
                f.after = after != 0;
                f.name = calls[c] == TAMIZ_SIM_DIRSYNC ? NULL : "*.log";
                assert_true(tamiz_env_sim_fault(sim, &f));
                const tamiz_status st = tamiz_put(db, "k", 1, "1", 1, &synced);
                assert_true(st == TAMIZ_NO_SPACE || st == TAMIZ_OK);
                tamiz_env_sim_clear(sim);
                put_synced("k", "2");
                crash(mode ? TAMIZ_SIM_DROP : TAMIZ_SIM_KEEP, NULL, 0);
                open_with("threads=0");
                expect("k", "2");
            }
}

/* R17: flush ignores the result of fsync (RocksDB pull 2495). */
static void R17_nothing_depends_on_a_file_whose_sync_failed(void **state)
{
    (void)state;
    static const struct {
        tamiz_sim_call call;
        const char *name;
        tamiz_sim_effect effect;
    } faults[] = {{TAMIZ_SIM_FSYNC, "*.sst", TAMIZ_SIM_FAIL},
                  {TAMIZ_SIM_FSYNC, "*.sst", TAMIZ_SIM_LOSE},
                  {TAMIZ_SIM_FSYNC, "MANIFEST-*", TAMIZ_SIM_FAIL},
                  {TAMIZ_SIM_FSYNC, "MANIFEST-*", TAMIZ_SIM_LOSE},
                  {TAMIZ_SIM_FSYNC, "CURRENT.new", TAMIZ_SIM_LOSE},
                  {TAMIZ_SIM_FSYNC, "*.log", TAMIZ_SIM_LOSE},
                  {TAMIZ_SIM_DIRSYNC, NULL, TAMIZ_SIM_FAIL}};
    for (size_t n = 0; n < sizeof faults / sizeof *faults; n++)
        for (uint64_t nth = 1; nth <= 10; nth++) {
            start_over();
            memset(model, 0, sizeof model);
            open_with("threads=0");
            for (int i = 0; i < MODEL_KEYS / 2; i++)
                OK(model_put(i, i + 1, true));
            tamiz_sim_fault f = TAMIZ_SIM_FAULT_INIT;
            f.call = faults[n].call;
            f.name = faults[n].name;
            f.effect = faults[n].effect;
            f.argument = nth & 1;
            f.nth = (nth + 1) / 2;
            assert_true(tamiz_env_sim_fault(sim, &f));
            int failures = 0;
            for (int i = MODEL_KEYS / 2; i < MODEL_KEYS; i++) {
                if (i % 10 == 0)
                    failures += tamiz_flush(db) != TAMIZ_OK;
                failures += model_put(i, i + 1, true) != TAMIZ_OK;
            }
            const bool fired = tamiz_env_sim_faults_acted(sim) > 0;
            assert_true(fired || failures == 0);
            tamiz_env_sim_clear(sim);
            expect_model();
            crash(TAMIZ_SIM_DROP, NULL, 0);
            open_with("threads=0");
            expect_model();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(R12_after_a_failed_append_the_next_edits_go_elsewhere),
        CASE(R12_outputs_that_may_be_named_are_not_deleted),
        CASE(R13_opening_may_be_stopped_at_any_call),
        CASE(R13_the_first_opening_may_be_stopped_at_any_call),
        CASE(R13_a_damaged_or_missing_current_is_told_and_nothing_is_touched),
        CASE(R16_writing_goes_on_when_there_is_space_again),
        CASE(R16_deletes_free_the_space_they_need),
        CASE(R16_a_failed_write_and_its_successor_share_no_sequence),
        CASE(R17_nothing_depends_on_a_file_whose_sync_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
