/* SPDX-License-Identifier: MIT
 *
 * The option `sync`, row by row of docs/durability.md: what is there after a kill, and after the
 * power went.
 *
 * LABEL: threads
 */
#include <string.h>

#include "db/kit.h"

static void expect_after(tamiz_env_sim *sim, tamiz_sim_crash mode, int there, int written)
{
    tamiz_env_sim *copy = tamiz_env_sim_copy(sim);
    assert_non_null(copy);
    tamiz_env_sim_crash(copy, mode, NULL, 0);
    tamiz *db = test_open("store", "threads=0", tamiz_env_sim_env(copy));
    expect_some(db, 0, there, "v");
    expect_some(db, there, written, NULL);
    test_close(db);
    tamiz_env_sim_free(copy);
}

static void none_loses_what_was_not_synced(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("store", "threads=0 sync=none", w.env);
    put_some(db, 0, 3, "v");
    assert_public(tamiz_sync(db), TAMIZ_OK);
    put_some(db, 3, 5, "v");
    tamiz_env_sim_clock_advance(w.sim, 3600000000);
    put_some(db, 5, 6, "v");
    expect_after(w.sim, TAMIZ_SIM_KEEP, 6, 6);
    expect_after(w.sim, TAMIZ_SIM_DROP, 3, 6);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void always_loses_nothing(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("store", "threads=0 sync=always", w.env);
    for (int i = 1; i < 20; i++) {
        put_some(db, i - 1, i, "v");
        expect_after(w.sim, TAMIZ_SIM_DROP, i, i);
    }
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void interval_syncs_with_the_next_write_or_step(void **state)
{
    (void)state;
    struct world w = world_new(1);
    bool more;
    tamiz *db = test_open("store", "threads=0 sync=interval:10", w.env);
    assert_public(tamiz_sync(db), TAMIZ_OK);
    put_some(db, 0, 2, "v");
    expect_after(w.sim, TAMIZ_SIM_KEEP, 2, 2);
    expect_after(w.sim, TAMIZ_SIM_DROP, 0, 2);
    tamiz_env_sim_clock_advance(w.sim, 10000);
    put_some(db, 2, 3, "v");
    expect_after(w.sim, TAMIZ_SIM_DROP, 3, 3);
    put_some(db, 3, 4, "v");
    assert_public(tamiz_step(db, 0, &more), TAMIZ_OK);
    expect_after(w.sim, TAMIZ_SIM_DROP, 3, 4);
    tamiz_env_sim_clock_advance(w.sim, 10000);
    assert_public(tamiz_step(db, 0, &more), TAMIZ_OK);
    expect_after(w.sim, TAMIZ_SIM_DROP, 4, 4);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* The thread looks by its own clock; the machine's decides what is due. */
static void interval_syncs_by_itself_where_there_are_threads(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("store", "threads=1 sync=interval:1000", w.env);
    put_some(db, 0, 2, "v");
    for (uint64_t round = 0; round < 2; round++) {
        const uint64_t syncs = tamiz_env_sim_calls(w.sim, TAMIZ_SIM_FSYNC);
        tamiz_env_sim_clock_advance(w.sim, 2000000);
        put_some(db, 2 + (int)round, 3 + (int)round, "v");
        while (tamiz_env_sim_calls(w.sim, TAMIZ_SIM_FSYNC) == syncs) {
            tamiz_stats stats = TAMIZ_STATS_INIT;
            assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
            tamiz_env_sim_clock_advance(w.sim, 1000);
        }
    }
    assert_public(tamiz_close(db), TAMIZ_OK);
    tamiz_env_sim_free(w.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_loses_what_was_not_synced),
        cmocka_unit_test(always_loses_nothing),
        cmocka_unit_test(interval_syncs_with_the_next_write_or_step),
        cmocka_unit_test(interval_syncs_by_itself_where_there_are_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
