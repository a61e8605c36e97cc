/* SPDX-License-Identifier: MIT
 *
 * Opening what is there, what is not, and what is not quite: and a replay that is too much to be
 * written to the new log again, with a failure at each of its calls and allocations.
 */
#include <errno.h>
#include <string.h>

#include "db/kit.h"
#include "support/alloc_fail.h"

static tamiz_status try_open(const tamiz_env *env, const char *options, tamiz **db)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    assert_public(tamiz_options_set(&o, options), TAMIZ_OK);
    o.env = env;
    return tamiz_open("store", &o, db);
}

static void what_is_there_and_should_not_be_is_refused(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = NULL;
    assert_public(try_open(w.env, "threads=0 error_if_exists=true", &db), TAMIZ_OK);
    put_some(db, 0, 3, "v");
    test_close(db);
    assert_public(try_open(w.env, "threads=0 error_if_exists=true", &db), TAMIZ_INVALID_ARGUMENT);
    assert_null(db);
    assert_non_null(strstr(tamiz_error_detail(), "error_if_exists"));
    db = test_open("store", "threads=0", w.env);
    expect_some(db, 0, 3, "v");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void what_is_not_there_is_not_made_unasked(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = NULL;
    tamiz_file_info info;
    assert_public(try_open(w.env, "threads=0 create_if_missing=false", &db), TAMIZ_NOT_FOUND);
    assert_null(db);
    assert_int_equal(w.env->ops->path_info(w.env->ctx, "store", &info), -ENOENT);
    assert_int_equal(w.env->ops->make_directory(w.env->ctx, "store"), 0);
    assert_public(try_open(w.env, "threads=0 create_if_missing=false", &db), TAMIZ_NOT_FOUND);
    assert_null(db);
    assert_int_equal(test_count_files(w.env, "store", ".log"), 0);
    assert_int_equal(w.env->ops->path_info(w.env->ctx, "store/CURRENT", &info), -ENOENT);
    tamiz_env_sim_free(w.sim);
}

/* The directory's own name must last. Who may not open the parent did not make the directory. */
static void a_parent_that_may_not_be_synced_is_not_ours(void **state)
{
    (void)state;
    static const struct {
        int error;
        tamiz_status status;
    } cases[] = {{EACCES, TAMIZ_OK}, {EPERM, TAMIZ_OK}, {EIO, TAMIZ_IO_ERROR}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w = world_new(1);
        tamiz *db = NULL;
        assert_int_equal(w.env->ops->make_directory(w.env->ctx, "store"), 0);
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.call = TAMIZ_SIM_DIRSYNC;
        fault.error = cases[i].error;
        assert_true(tamiz_env_sim_fault(w.sim, &fault));
        assert_public(try_open(w.env, "threads=0", &db), cases[i].status);
        assert_int_equal(tamiz_env_sim_faults_acted(w.sim), 1);
        assert_public(tamiz_close(db), TAMIZ_OK);
        tamiz_env_sim_free(w.sim);
    }
}

static void a_missing_table_is_named(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("store", "threads=0", w.env);
    put_some(db, 0, 3, "v");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_close(db);
    int removed = 0;
    for (int number = 1; number < 20; number++) {
        char path[40];
        (void)snprintf(path, sizeof path, "store/%06d.sst", number);
        removed += w.env->ops->remove(w.env->ctx, path) == 0;
    }
    assert_int_equal(removed, 1);
    assert_public(try_open(w.env, "threads=0", &db), TAMIZ_CORRUPTION);
    assert_non_null(strstr(tamiz_error_detail(), ".sst, which is missing"));
    tamiz_env_sim_free(w.sim);
}

/* ---- a replay that is flushed */

enum { MANY = 120, LARGE = 4000 };

static tamiz_env_sim *killed_with_much_in_the_log(char value[LARGE + 1])
{
    struct world w = world_new(1);
    memset(value, 'v', LARGE);
    value[LARGE] = 0;
    tamiz *db = test_open("store", "threads=0", w.env);
    put_some(db, 0, MANY, value);
    tamiz_env_sim *killed = tamiz_env_sim_copy(w.sim);
    assert_non_null(killed);
    tamiz_env_sim_crash(killed, TAMIZ_SIM_KEEP, NULL, 0);
    test_close(db);
    tamiz_env_sim_free(w.sim);
    return killed;
}

static void a_large_replay_may_fail_at_any_call(void **state)
{
    (void)state;
    char value[LARGE + 1];
    tamiz_env_sim *killed = killed_with_much_in_the_log(value);
    int failed = 0;
    bool acted = true;
    for (uint64_t nth = 1; acted; nth++) {
        tamiz_env_sim *sim = tamiz_env_sim_copy(killed);
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        tamiz *db = NULL;
        assert_non_null(sim);
        fault.nth = nth;
        assert_true(tamiz_env_sim_fault(sim, &fault));
        failed += try_open(tamiz_env_sim_env(sim), "threads=0", &db) != TAMIZ_OK;
        acted = tamiz_env_sim_faults_acted(sim) > 0;
        tamiz_env_sim_clear(sim);
        if (db)
            expect_some(db, 0, MANY, value);
        (void)tamiz_close(db);
        assert_int_equal(tamiz_env_sim_files_open(sim), 0);
        db = test_open("store", "threads=0", tamiz_env_sim_env(sim));
        expect_some(db, 0, MANY, value);
        test_close(db);
        tamiz_env_sim_free(sim);
    }
    assert_true(failed > 20);
    tamiz_env_sim_free(killed);
}

static void a_large_replay_may_run_out_of_memory(void **state)
{
    (void)state;
    char value[LARGE + 1];
    tamiz_env_sim *killed = killed_with_much_in_the_log(value);
    int failed = 0;
    bool acted = true;
    for (uint64_t nth = 1; acted; nth++) {
        struct alloc_fail memory;
        tamiz_env_sim *sim = tamiz_env_sim_copy(killed);
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        tamiz *db = NULL;
        assert_non_null(sim);
        alloc_fail_init(&memory);
        o.threads = 0;
        o.env = tamiz_env_sim_env(sim);
        o.allocator = memory.alloc.hook;
        alloc_fail_at(&memory, nth, false);
        failed += tamiz_open("store", &o, &db) != TAMIZ_OK;
        acted = memory.failed > 0;
        alloc_fail_at(&memory, 0, false);
        assert_public(tamiz_close(db), TAMIZ_OK);
        assert_int_equal(memory.blocks, 0);
        alloc_fail_done(&memory);
        db = test_open("store", "threads=0", tamiz_env_sim_env(sim));
        expect_some(db, 0, MANY, value);
        test_close(db);
        tamiz_env_sim_free(sim);
    }
    assert_true(failed > 20);
    tamiz_env_sim_free(killed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_and_should_not_be_is_refused),
        cmocka_unit_test(what_is_not_there_is_not_made_unasked),
        cmocka_unit_test(a_parent_that_may_not_be_synced_is_not_ours),
        cmocka_unit_test(a_missing_table_is_named),
        cmocka_unit_test(a_large_replay_may_fail_at_any_call),
        cmocka_unit_test(a_large_replay_may_run_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
