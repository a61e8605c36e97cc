/* SPDX-License-Identifier: MIT
 *
 * A small store on the simulated machine: stopped at each call and crashed in each way, each call
 * failing in each way, each allocation failing. What was synced and acknowledged is there
 * afterwards, and what there is of the rest is a prefix of it.
 */
#include "support/alloc_fail.h"

#include <errno.h>
#include <string.h>

#include "tamiz/env_sim.h"
#include "tamiz/tamiz.h"

/* What was being tried; told by the teardown where the test did not come to its end. */
static char moment[120];

enum { KEYS = 60, VALUE = 500, REORDERS = 8 };

/* What the program knows when it ends. */
struct progress {
    int issued;  /* writes that were begun */
    int durable; /* the first so many were acknowledged as synced */
    bool finished;
};

static tamiz_options options_for(tamiz_env_sim *sim, const struct alloc_fail *memory)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = tamiz_env_sim_env(sim);
    o.threads = 0;
    o.memtable = 64 << 10;
    o.cache = 1 << 20;
    if (memory)
        o.allocator = memory->alloc.hook;
    return o;
}

static const char *key_of(int i, char key[16])
{
    (void)snprintf(key, 16, "k%04d", i * 7919 % KEYS); /* in no order */
    return key;
}

static tamiz_status write_one(tamiz *db, int i, struct progress *p)
{
    char key[16], value[VALUE];
    tamiz_write_options w = TAMIZ_WRITE_OPTIONS_INIT;
    memset(value, 'a' + i % 26, sizeof value);
    w.sync = i % 3 == 0;
    p->issued = i + 1;
    const tamiz_status st = tamiz_put(db, key_of(i, key), 5, value, sizeof value, &w);
    if (st == TAMIZ_OK && w.sync)
        p->durable = i + 1;
    return st;
}

/* Ends at the first failure. */
static struct progress run(tamiz_env_sim *sim, const struct alloc_fail *memory)
{
    struct progress p = {0, 0, false};
    const tamiz_options o = options_for(sim, memory);
    tamiz *db = NULL;
    tamiz_status st = tamiz_open("store", &o, &db);
    for (int i = 0; st == TAMIZ_OK && i < KEYS; i++) {
        st = write_one(db, i, &p);
        if (st == TAMIZ_OK && i % 15 == 14)
            st = tamiz_flush(db);
        if (st == TAMIZ_OK && i == 45)
            st = tamiz_compact(db, NULL, 0, NULL, 0);
    }
    const tamiz_status closed = tamiz_close(db);
    p.finished = st == TAMIZ_OK && closed == TAMIZ_OK;
    return p;
}

/* How many of the writes are there from the first on; none may be there behind a missing one. */
static int prefix_of(tamiz *db, const struct progress *p)
{
    int there = 0;
    for (int i = 0; i < p->issued; i++) {
        char key[16], value[VALUE];
        size_t size = 0;
        const tamiz_status st = tamiz_get_into(db, key_of(i, key), 5, value, VALUE, &size, NULL);
        if (st == TAMIZ_NOT_FOUND)
            continue;
        assert_public(st, TAMIZ_OK);
        assert_int_equal(there, i);
        assert_int_equal(size, VALUE);
        assert_true(value[0] == 'a' + i % 26 && value[VALUE - 1] == 'a' + i % 26);
        there++;
    }
    return there;
}

/* The store opens, has what it must, and takes a write. */
static void recover(tamiz_env_sim *sim, const struct progress *p)
{
    const tamiz_options o = options_for(sim, NULL);
    tamiz *db = NULL;
    assert_public(tamiz_open("store", &o, &db), TAMIZ_OK);
    const int there = prefix_of(db, p);
    if (there < p->durable)
        fail_msg("%d writes were durable, %d are there", p->durable, there);
    assert_public(tamiz_put(db, "x", 1, "y", 1, NULL), TAMIZ_OK);
    assert_public(tamiz_close(db), TAMIZ_OK);
    assert_int_equal(tamiz_env_sim_files_open(sim), 0);
}

static void crash_and_recover(tamiz_env_sim *stopped, const struct progress *p, uint64_t call,
                              tamiz_sim_crash mode, uint64_t n)
{
    tamiz_env_sim *sim = tamiz_env_sim_copy(stopped);
    assert_non_null(sim);
    tamiz_env_sim_crash(sim, mode, NULL, n);
    (void)snprintf(moment, sizeof moment, "stopped at call %llu, crash mode %d, n %llu",
                   (unsigned long long)call, (int)mode, (unsigned long long)n);
    recover(sim, p);
    tamiz_env_sim_free(sim);
}

static void a_crash_at_any_call_leaves_a_prefix_with_all_that_was_synced(void **state)
{
    (void)state;
    struct progress p = {0, 0, false};
    uint64_t call = 0;
    while (!p.finished) {
        tamiz_env_sim *sim = tamiz_env_sim_new(1);
        assert_non_null(sim);
        tamiz_env_sim_stop_at(sim, ++call);
        p = run(sim, NULL);
        for (tamiz_sim_crash mode = TAMIZ_SIM_KEEP; mode < TAMIZ_SIM_REORDER; mode++)
            crash_and_recover(sim, &p, call, mode, 20);
        for (uint64_t seed = 0; seed < REORDERS; seed++)
            crash_and_recover(sim, &p, call, TAMIZ_SIM_REORDER, call * REORDERS + seed);
        tamiz_env_sim_free(sim);
    }
    print_message("%llu calls\n", (unsigned long long)call);
    assert_int_equal(p.durable, KEYS - 2);
    assert_true(call > 200);
    moment[0] = 0;
}

/* One opening, which is stopped at some call. */
static bool open_and_stop(tamiz_env_sim *sim, uint64_t call)
{
    const tamiz_options o = options_for(sim, NULL);
    tamiz *db = NULL;
    tamiz_env_sim_stop_at(sim, tamiz_env_sim_calls(sim, TAMIZ_SIM_ANY) + call);
    const tamiz_status st = tamiz_open("store", &o, &db);
    return tamiz_close(db) == TAMIZ_OK && st == TAMIZ_OK;
}

static void a_second_crash_inside_recovery_loses_no_more(void **state)
{
    (void)state;
    enum { STEP = 19 }; /* of the first stop; every call of each recovery is tried */
    struct progress p = {0, 0, false};
    size_t crashes = 0;
    for (uint64_t call = 1; !p.finished; call += STEP) {
        tamiz_env_sim *sim = tamiz_env_sim_new(1);
        assert_non_null(sim);
        tamiz_env_sim_stop_at(sim, call);
        p = run(sim, NULL);
        tamiz_env_sim_crash(sim, TAMIZ_SIM_REORDER, NULL, call);
        bool opened = false;
        for (uint64_t again = 1; !opened; again++, crashes++) {
            tamiz_env_sim *second = tamiz_env_sim_copy(sim);
            assert_non_null(second);
            opened = open_and_stop(second, again);
            crash_and_recover(second, &p, call * 1000 + again, TAMIZ_SIM_DROP, 0);
            crash_and_recover(second, &p, call * 1000 + again, TAMIZ_SIM_REORDER, again);
            tamiz_env_sim_free(second);
        }
        tamiz_env_sim_free(sim);
    }
    print_message("%zu second crashes\n", crashes);
    assert_true(crashes > 300);
    moment[0] = 0;
}

/* Whether the fault acted; without it, all went well. */
static bool run_with_fault(const tamiz_sim_fault *fault)
{
    tamiz_env_sim *sim = tamiz_env_sim_new(1);
    assert_non_null(sim);
    (void)snprintf(moment, sizeof moment, "call %llu fails with errno %d, sticky %d, after %d",
                   (unsigned long long)fault->nth, fault->error, fault->sticky, fault->after);
    assert_true(tamiz_env_sim_fault(sim, fault));
    const struct progress p = run(sim, NULL);
    const bool acted = tamiz_env_sim_faults_acted(sim) > 0;
    assert_true(acted || p.finished);
    assert_int_equal(tamiz_env_sim_files_open(sim), 0);
    tamiz_env_sim_clear(sim);
    crash_and_recover(sim, &p, fault->nth, TAMIZ_SIM_KEEP, 0);
    crash_and_recover(sim, &p, fault->nth, TAMIZ_SIM_DROP, 0);
    tamiz_env_sim_free(sim);
    return acted;
}

static void any_call_may_fail_and_nothing_acknowledged_is_lost(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC, EMFILE};
    for (unsigned kind = 0; kind < 3 * 4; kind++) {
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.error = errors[kind / 4];
        fault.sticky = kind & 1;
        fault.after = kind & 2;
        while (run_with_fault(&fault))
            fault.nth++;
        assert_true(fault.nth > 200);
    }
    moment[0] = 0;
}

static void a_sync_that_lost_its_data_loses_nothing_acknowledged(void **state)
{
    (void)state;
    for (uint64_t revert = 0; revert < 2; revert++) {
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.call = TAMIZ_SIM_FSYNC;
        fault.effect = TAMIZ_SIM_LOSE;
        fault.argument = revert;
        while (run_with_fault(&fault))
            fault.nth++;
        assert_true(fault.nth > 20);
    }
    moment[0] = 0;
}

static void any_allocation_may_fail_and_nothing_is_lost_or_leaked(void **state)
{
    (void)state;
    for (int sticky = 0; sticky < 2; sticky++) {
        bool failed = true;
        for (uint64_t nth = 1; failed; nth++) {
            struct alloc_fail memory;
            tamiz_env_sim *sim = tamiz_env_sim_new(1);
            assert_non_null(sim);
            alloc_fail_init(&memory);
            alloc_fail_at(&memory, nth, sticky);
            const struct progress p = run(sim, &memory);
            failed = memory.failed > 0;
            (void)snprintf(moment, sizeof moment, "allocation %llu fails, sticky %d",
                           (unsigned long long)nth, sticky);
            assert_true(failed || p.finished);
            alloc_fail_done(&memory);
            assert_int_equal(tamiz_env_sim_files_open(sim), 0);
            crash_and_recover(sim, &p, nth, TAMIZ_SIM_DROP, 0);
            tamiz_env_sim_free(sim);
        }
    }
    moment[0] = 0;
}

static int tell_moment(void **state)
{
    (void)state;
    if (moment[0])
        print_error("%s\n", moment);
    return 0;
}

#define TEST(f) cmocka_unit_test_teardown(f, tell_moment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_crash_at_any_call_leaves_a_prefix_with_all_that_was_synced),
        TEST(a_second_crash_inside_recovery_loses_no_more),
        TEST(any_call_may_fail_and_nothing_acknowledged_is_lost),
        TEST(any_allocation_may_fail_and_nothing_is_lost_or_leaked),
        TEST(a_sync_that_lost_its_data_loses_nothing_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
