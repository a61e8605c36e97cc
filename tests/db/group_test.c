/* SPDX-License-Identifier: MIT
 *
 * Writers that wait together: one of them writes and syncs the log for all, and what it is told,
 * all are told.
 *
 * LABEL: threads
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "db/kit.h"

enum { WRITERS = 5, SEEDS = 20 };

struct hall {
    struct world world;
    tamiz *db;
    tamiz_status told[WRITERS];
    char words[WRITERS][300];
};

struct seat {
    struct hall *hall;
    int number;
};

static void put_synced(void *ctx)
{
    const struct seat *seat = ctx;
    struct hall *h = seat->hall;
    char key[8];
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    options.sync = true;
    const size_t n = (size_t)snprintf(key, sizeof key, "k%d", seat->number);
    h->told[seat->number] = tamiz_put(h->db, key, n, "v", 1, &options);
    (void)snprintf(h->words[seat->number], sizeof h->words[0], "%s", tamiz_error_detail());
}

/* All writers at once, the `failing`-th sync of a log failing (0: none). Returns the syncs. */
static uint64_t write_together(struct hall *h, uint64_t seed, uint64_t failing)
{
    struct seat seats[WRITERS];
    tamiz_stats before = TAMIZ_STATS_INIT, after = TAMIZ_STATS_INIT;
    *h = (struct hall){.world = world_new(seed)};
    h->db = test_open("s", "threads=0", h->world.env);
    assert_public(tamiz_stats_get(h->db, &before), TAMIZ_OK);
    if (failing) {
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.call = TAMIZ_SIM_FSYNC;
        fault.name = "*.log";
        fault.nth = failing;
        assert_true(tamiz_env_sim_fault(h->world.sim, &fault));
    }
    for (int i = 0; i < WRITERS; i++) {
        seats[i] = (struct seat){h, i};
        assert_true(tamiz_env_sim_task(h->world.sim, put_synced, &seats[i]));
    }
    assert_true(tamiz_env_sim_run(h->world.sim, seed));
    assert_public(tamiz_stats_get(h->db, &after), TAMIZ_OK);
    return after.syncs - before.syncs;
}

static void leave(struct hall *h)
{
    (void)tamiz_close(h->db);
    tamiz_env_sim_free(h->world.sim);
}

static void one_sync_does_for_all_who_wait(void **state)
{
    struct hall h;
    uint64_t fewest = WRITERS;
    (void)state;
    const uint64_t first = test_first_seed();
    for (uint64_t seed = first; seed < first + SEEDS; seed++) {
        const uint64_t syncs = write_together(&h, seed, 0);
        fewest = syncs < fewest ? syncs : fewest;
        for (int i = 0; i < WRITERS; i++)
            assert_int_equal(h.told[i], TAMIZ_OK);
        leave(&h);
    }
    assert_int_equal(fewest, 2); /* the first writer's, and that of all who came meanwhile */
}

/* The first group is the first writer's alone; the second sync is that of several. */
static void an_error_of_the_leader_reaches_every_follower(void **state)
{
    struct hall h;
    int most = 0;
    (void)state;
    const uint64_t first = test_first_seed();
    for (uint64_t seed = first; seed < first + SEEDS; seed++) {
        (void)write_together(&h, seed, 2);
        int failed = 0;
        for (int i = 0; i < WRITERS; i++) {
            char key[8];
            size_t size;
            char value[8];
            const size_t n = (size_t)snprintf(key, sizeof key, "k%d", i);
            failed += h.told[i] == TAMIZ_IO_ERROR;
            if (h.told[i] == TAMIZ_IO_ERROR)
                assert_non_null(strstr(h.words[i], ".log"));
            /* What was refused is not there, and what was acknowledged is. */
            assert_int_equal(tamiz_get_into(h.db, key, n, value, sizeof value, &size, NULL) ==
                                 TAMIZ_OK,
                             h.told[i] == TAMIZ_OK);
        }
        most = failed > most ? failed : most;
        leave(&h);
    }
    assert_int_equal(most, WRITERS - 1);
}

/* ---- threads, and a device that takes its time ---- */

enum { TOGETHER = 4, EACH = 30, SYNC_US = 10000 };

static int slow_sync(void *ctx, void *file)
{
    const tamiz_env *env = tamiz_env_posix();
    const int error = env->ops->sync(ctx, file);
    (void)usleep(SYNC_US);
    return error;
}

static void *put_each(void *ctx)
{
    struct seat *seat = ctx;
    for (int i = 0; i < EACH && seat->hall->told[seat->number] == TAMIZ_OK; i++)
        put_synced(seat);
    return NULL;
}

/* As many writers as there are; returns the writes of one sync. */
static double writes_a_sync(tamiz *db, int writers)
{
    struct hall h = {.db = db};
    struct seat seats[TOGETHER];
    pthread_t threads[TOGETHER];
    tamiz_stats before = TAMIZ_STATS_INIT, after = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &before), TAMIZ_OK);
    for (int i = 0; i < writers; i++) {
        seats[i] = (struct seat){&h, i};
        assert_int_equal(pthread_create(&threads[i], NULL, put_each, &seats[i]), 0);
    }
    for (int i = 0; i < writers; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(h.told[i], TAMIZ_OK);
    }
    assert_public(tamiz_stats_get(db, &after), TAMIZ_OK);
    return writers * EACH / (double)(after.syncs - before.syncs);
}

/* Not half of them in turn with the other half. */
static void who_was_let_go_together_is_waited_for(void **state)
{
    (void)state;
    tamiz_env env = *tamiz_env_posix();
    tamiz_env_ops ops = *env.ops;
    ops.sync = slow_sync;
    env.ops = &ops;
    tamiz *db = test_open("group.store", "threads=1", &env);
    const double together = writes_a_sync(db, TOGETHER);
    if (together < 0.7 * TOGETHER)
        fail_msg("%.2f writes a sync of %d writers", together, TOGETHER);
    assert_true(writes_a_sync(db, 1) == 1);
    test_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sync_does_for_all_who_wait),
        cmocka_unit_test(an_error_of_the_leader_reaches_every_follower),
        cmocka_unit_test(who_was_let_go_together_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
