/* SPDX-License-Identifier: MIT
 *
 * Checkpoints and backups: the copy is a store, it has all that was acknowledged, it shares nothing
 * that changes, and a crash in the middle leaves nothing that opens.
 *
 * LABEL: threads
 */
#include <errno.h>

#include "env/thread.h"
#include "db/kit.h"

static bool stands(const tamiz_env *env, const char *path)
{
    tamiz_file_info info;
    return env->ops->path_info(env->ctx, path, &info) == 0;
}

static uint64_t inode_of(const tamiz_env *env, const char *path)
{
    tamiz_file_info info;
    assert_int_equal(env->ops->path_info(env->ctx, path, &info), 0);
    return info.inode;
}

/* The number of a table of the store. */
static int a_table(const tamiz_env *env, const char *directory)
{
    for (int number = 1; number < 100; number++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/%06d.sst", directory, number);
        if (stands(env, path))
            return number;
    }
    fail();
    return 0;
}

/* ---- checkpoints ---- */

static void a_checkpoint_has_tables_and_the_tail_of_the_log(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("s", "threads=0", w.env);
    put_some(db, 0, 50, "table");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    put_some(db, 40, 100, "log");
    test_delete(db, key_of(0));
    tamiz_stats before = TAMIZ_STATS_INIT, after = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &before), TAMIZ_OK);
    assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
    assert_public(tamiz_stats_get(db, &after), TAMIZ_OK);
    assert_int_equal(before.flushes, after.flushes); /* nothing was flushed for it */
    put_some(db, 0, 200, "later");
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    test_close(db);
    tamiz *copy = test_open("copy", "threads=0 create_if_missing=false", w.env);
    test_expect(copy, key_of(0), NULL, NULL);
    expect_some(copy, 1, 40, "table");
    expect_some(copy, 40, 100, "log");
    test_expect(copy, key_of(100), NULL, NULL);
    put_some(copy, 0, 10, "own"); /* it is written on its own */
    test_close(copy);
    db = test_open("s", "threads=0", w.env);
    expect_some(db, 0, 200, "later");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void tables_are_linked_and_copied_where_that_is_refused(void **state)
{
    (void)state;
    const int refusals[] = {0, EXDEV, EMLINK, EPERM, EOPNOTSUPP};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct world w = world_new(2 + i);
        tamiz *db = test_open("s", "threads=0", w.env);
        put_some(db, 0, 50, "v");
        assert_public(tamiz_flush(db), TAMIZ_OK);
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.call = TAMIZ_SIM_LINK;
        fault.error = refusals[i];
        fault.sticky = true;
        if (refusals[i])
            assert_true(tamiz_env_sim_fault(w.sim, &fault));
        assert_public(tamiz_checkpoint(db, "copy/"), TAMIZ_OK);
        test_close(db);
        assert_int_equal(test_count_files(w.env, "copy", ".sst"), 1);
        char in_store[64], in_copy[64];
        const int number = a_table(w.env, "s");
        (void)snprintf(in_store, sizeof in_store, "s/%06d.sst", number);
        (void)snprintf(in_copy, sizeof in_copy, "copy/%06d.sst", number);
        assert_int_equal(inode_of(w.env, in_store) == inode_of(w.env, in_copy), refusals[i] == 0);
        tamiz *copy = test_open("copy", "threads=0 create_if_missing=false", w.env);
        expect_some(copy, 0, 50, "v");
        tamiz_report report = TAMIZ_REPORT_INIT;
        assert_public(tamiz_verify(copy, &report), TAMIZ_OK);
        test_close(copy);
        tamiz_env_sim_free(w.sim);
    }
}

static void writes_without_a_log_are_in_the_checkpoint_too(void **state)
{
    (void)state;
    struct world w = world_new(8);
    tamiz *db = test_open("s", "threads=0", w.env);
    tamiz_write_options no_log = TAMIZ_WRITE_OPTIONS_INIT;
    no_log.no_log = true;
    assert_public(tamiz_put(db, "a", 1, "1", 1, &no_log), TAMIZ_OK);
    test_put(db, "b", "2");
    assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
    test_close(db);
    tamiz *copy = test_open("copy", "threads=0", w.env);
    assert_string_equal(test_scan(copy, NULL), "a=1 b=2");
    test_close(copy);
    tamiz_env_sim_free(w.sim);
}

static void nothing_is_overwritten_and_bad_arguments_are_told(void **state)
{
    (void)state;
    struct world w = world_new(9);
    tamiz *db = test_open("s", "threads=0", w.env);
    test_put(db, "a", "1");
    assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
    assert_int_equal(tamiz_checkpoint(db, "copy"), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_checkpoint(db, "s"), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_checkpoint(db, ""), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_checkpoint(db, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_checkpoint(db, "missing/copy"), TAMIZ_IO_ERROR);
    assert_false(stands(w.env, "copy.partial"));
    test_close(db);
    tamiz *reader = test_open("s", "read_only=true", w.env);
    assert_int_equal(tamiz_checkpoint(reader, "other"), TAMIZ_READ_ONLY);
    test_close(reader);
    tamiz_env_sim_free(w.sim);
}

/* Whatever call the machine stops at, and however the power goes: nothing at "copy", or all of it;
 * and the store itself is whole, and a second attempt succeeds. */
static void a_crash_at_any_call_leaves_nothing_or_all(void **state)
{
    (void)state;
    uint64_t finished = 0;
    for (uint64_t call = 1; !finished; call++) {
        struct world w = world_new(10);
        tamiz *db = test_open("s", "threads=0", w.env);
        put_some(db, 0, 20, "table");
        assert_public(tamiz_flush(db), TAMIZ_OK);
        put_some(db, 20, 30, "log");
        assert_public(tamiz_sync(db), TAMIZ_OK);
        tamiz_env_sim_stop_at(w.sim, tamiz_env_sim_calls(w.sim, TAMIZ_SIM_ANY) + call);
        const tamiz_status st = tamiz_checkpoint(db, "copy");
        if (st == TAMIZ_OK && !tamiz_env_sim_stopped(w.sim))
            finished = call;
        tamiz_env_sim_stop_at(w.sim, 0);
        (void)tamiz_close(db);
        tamiz_env_sim_crash(w.sim, call % 2 ? TAMIZ_SIM_DROP : TAMIZ_SIM_REORDER, NULL, call);
        if (st == TAMIZ_OK)
            assert_true(stands(w.env, "copy"));
        if (stands(w.env, "copy")) {
            tamiz *copy = test_open("copy", "threads=0 create_if_missing=false", w.env);
            expect_some(copy, 0, 20, "table");
            expect_some(copy, 20, 30, "log");
            test_close(copy);
        }
        db = test_open("s", "threads=0 create_if_missing=false", w.env);
        expect_some(db, 0, 20, "table");
        expect_some(db, 20, 30, "log");
        assert_public(tamiz_checkpoint(db, "second"), TAMIZ_OK);
        if (!stands(w.env, "copy"))
            assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
        assert_false(stands(w.env, "copy.partial"));
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
    assert_true(finished > 10);
}

static void a_call_that_fails_leaves_nothing_behind(void **state)
{
    (void)state;
    bool whole = false;
    for (uint64_t nth = 1; !whole; nth++) {
        struct world w = world_new(11);
        tamiz *db = test_open("s", "threads=0", w.env);
        put_some(db, 0, 20, "table");
        assert_public(tamiz_flush(db), TAMIZ_OK);
        put_some(db, 20, 30, "log");
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.call = TAMIZ_SIM_CHANGE;
        fault.nth = nth;
        fault.error = nth % 2 ? ENOSPC : EIO;
        assert_true(tamiz_env_sim_fault(w.sim, &fault));
        const tamiz_status st = tamiz_checkpoint(db, "copy");
        whole = tamiz_env_sim_faults_acted(w.sim) == 0;
        tamiz_env_sim_clear(w.sim);
        if (st == TAMIZ_OK || stands(w.env, "copy")) {
            tamiz *copy = test_open("copy", "threads=0 create_if_missing=false", w.env);
            expect_some(copy, 20, 30, "log");
            test_close(copy);
        } else {
            assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
        }
        put_some(db, 30, 40, "on");
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
}

/* ---- under load ---- */

struct load {
    tamiz *db;
    _Atomic int acknowledged;
    _Atomic bool stop;
};

static void write_on(void *ctx)
{
    struct load *l = ctx;
    for (int i = 0; i < 200000 && !atomic_load(&l->stop); i++) {
        char key[16], value[64];
        (void)snprintf(key, sizeof key, "k%06d", i);
        (void)snprintf(value, sizeof value, "v%06d-%040d", i, i);
        if (tamiz_put(l->db, key, strlen(key), value, strlen(value), NULL) != TAMIZ_OK)
            break;
        atomic_store(&l->acknowledged, i + 1);
    }
}

/* One writer in sequence: a copy has 0..n without a gap, and at least what was acknowledged when it
 * was asked for. */
static void checkpoints_under_load_are_prefixes(void **state)
{
    (void)state;
    char directory[300], path[340];
    test_directory_make(directory, sizeof directory);
    (void)snprintf(path, sizeof path, "%s/s", directory);
    struct load l = {.db = test_open(path, "memtable=64KiB table=64KiB", NULL)};
    struct test_op t;
    struct thread thread;
    test_op_init(&t);
    assert_status(&t.op, thread_start(&t.op, &thread, "writer", write_on, &l), TAMIZ_OK);
    int at_least[5];
    for (int i = 0; i < 5; i++) {
        (void)snprintf(path, sizeof path, "%s/copy%d", directory, i);
        while (atomic_load(&l.acknowledged) < (i + 1) * 3000 &&
               atomic_load(&l.acknowledged) < 90000)
            thread_yield();
        at_least[i] = atomic_load(&l.acknowledged);
        assert_public(tamiz_checkpoint(l.db, path), TAMIZ_OK);
    }
    atomic_store(&l.stop, true);
    thread_join(&thread);
    test_close(l.db);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(path, sizeof path, "%s/copy%d", directory, i);
        tamiz *copy = test_open(path, "create_if_missing=false threads=0", NULL);
        tamiz_iter *it;
        assert_public(tamiz_iter_open(copy, NULL, &it), TAMIZ_OK);
        int n = 0;
        for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it), n++) {
            size_t size;
            assert_memory_equal(tamiz_iter_key(it, &size), key_of(n), 7);
        }
        assert_public(tamiz_iter_status(it), TAMIZ_OK);
        tamiz_iter_close(it);
        assert_true(n >= at_least[i]);
        test_close(copy);
    }
    test_directory_remove(directory);
}

/* ---- backups ---- */

static void a_backup_copies_only_new_tables_and_each_is_whole(void **state)
{
    (void)state;
    struct world w = world_new(20);
    tamiz *db = test_open("s", "threads=0 compaction=off", w.env);
    tamiz_backup_info info = TAMIZ_BACKUP_INFO_INIT;
    for (int i = 0; i < 3; i++) {
        put_some(db, i * 10, i * 10 + 10, "v");
        assert_public(tamiz_flush(db), TAMIZ_OK);
        test_put(db, "round", i == 0 ? "0" : i == 1 ? "1" : "2");
        assert_public(tamiz_backup(db, "b", &info), TAMIZ_OK);
        assert_int_equal(info.number, i + 1);
        assert_int_equal(info.tables_copied, 1);
        assert_int_equal(info.tables_kept, i);
    }
    test_close(db);
    for (int i = 0; i < 3; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "r%d", i);
        assert_public(
            tamiz_restore("b", (uint64_t)i + 1, path, &(tamiz_options){.struct_size = 0}, NULL),
            TAMIZ_INVALID_ARGUMENT);
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        o.env = w.env;
        assert_public(tamiz_restore("b", (uint64_t)i + 1, path, &o, &info), TAMIZ_OK);
        assert_int_equal(info.tables_copied, i + 1);
        tamiz *back = test_open(path, "threads=0 create_if_missing=false", w.env);
        expect_some(back, 0, i * 10 + 10, "v");
        test_expect(back, key_of(i * 10 + 10), NULL, NULL);
        test_expect(back, "round", i == 0 ? "0" : i == 1 ? "1" : "2", NULL);
        test_close(back);
    }
    tamiz_env_sim_free(w.sim);
}

static void a_backup_shares_no_file_with_the_store(void **state)
{
    (void)state;
    struct world w = world_new(21);
    tamiz *db = test_open("s", "threads=0", w.env);
    put_some(db, 0, 10, "v");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_public(tamiz_backup(db, "b", NULL), TAMIZ_OK);
    assert_public(tamiz_backup(db, "b", NULL), TAMIZ_OK);
    const int number = a_table(w.env, "s");
    char in_store[64], first[64], second[64];
    (void)snprintf(in_store, sizeof in_store, "s/%06d.sst", number);
    (void)snprintf(first, sizeof first, "b/000001/%06d.sst", number);
    (void)snprintf(second, sizeof second, "b/000002/%06d.sst", number);
    assert_true(inode_of(w.env, in_store) != inode_of(w.env, first));
    assert_true(inode_of(w.env, first) == inode_of(w.env, second));
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void a_damaged_table_is_neither_backed_up_nor_restored(void **state)
{
    (void)state;
    struct world w = world_new(22);
    tamiz *db = test_open("s", "threads=0", w.env);
    put_some(db, 0, 100, "v");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_public(tamiz_backup(db, "b", NULL), TAMIZ_OK);
    char path[64];
    const int number = a_table(w.env, "s");
    (void)snprintf(path, sizeof path, "b/000001/%06d.sst", number);
    assert_true(tamiz_env_sim_flip(w.sim, path, 100 * 8));
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = w.env;
    assert_int_equal(tamiz_restore("b", 0, "r", &o, NULL), TAMIZ_CORRUPTION);
    assert_false(stands(w.env, "r"));
    (void)snprintf(path, sizeof path, "s/%06d.sst", number);
    assert_true(tamiz_env_sim_flip(w.sim, path, 100 * 8));
    assert_int_equal(tamiz_backup(db, "fresh", NULL), TAMIZ_CORRUPTION);
    assert_int_equal(tamiz_restore("fresh", 0, "r", &o, NULL), TAMIZ_NOT_FOUND);
    assert_int_equal(tamiz_restore("nowhere", 0, "r", &o, NULL), TAMIZ_NOT_FOUND);
    assert_int_equal(tamiz_restore("b", 7, "r", &o, NULL), TAMIZ_NOT_FOUND);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_has_tables_and_the_tail_of_the_log),
        cmocka_unit_test(tables_are_linked_and_copied_where_that_is_refused),
        cmocka_unit_test(writes_without_a_log_are_in_the_checkpoint_too),
        cmocka_unit_test(nothing_is_overwritten_and_bad_arguments_are_told),
        cmocka_unit_test(a_crash_at_any_call_leaves_nothing_or_all),
        cmocka_unit_test(a_call_that_fails_leaves_nothing_behind),
        cmocka_unit_test(checkpoints_under_load_are_prefixes),
        cmocka_unit_test(a_backup_copies_only_new_tables_and_each_is_whole),
        cmocka_unit_test(a_backup_shares_no_file_with_the_store),
        cmocka_unit_test(a_damaged_table_is_neither_backed_up_nor_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
