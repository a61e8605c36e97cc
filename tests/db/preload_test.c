/* SPDX-License-Identifier: MIT
 *
 * Tables opened ahead of the reads that want them.
 * LABEL: threads
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "db/kit.h"
#include "db/preload.h"

enum { TABLES = 6, KEYS = 3000 };

#define BY_HAND "threads=0 compaction=off memtable=1MiB idle_merge=0 "

/* One table a flush. */
static void put_tables(tamiz *db, int tables)
{
    for (int t = 0; t < tables; t++) {
        put_some(db, 0, KEYS, "value");
        assert_public(tamiz_flush(db), TAMIZ_OK);
    }
}

static void make_store(const tamiz_env *env)
{
    tamiz *db = test_open("s", BY_HAND, env);
    put_tables(db, TABLES);
    test_close(db);
}

static uint64_t table_memory_of(tamiz *db)
{
    tamiz_stats stats = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    return stats.table_memory_bytes;
}

/* Opens one table ahead, as an idle thread does. */
static bool step(tamiz *db)
{
    struct store *s = db->store;
    struct counters nowhere = {0};
    struct op op;
    struct tamiz *of;
    mutex_lock(&s->mutex);
    struct table_meta *table = preload_pick(s, &of);
    mutex_unlock(&s->mutex);
    if (!table)
        return false;
    op_init(&op, &s->alloc, &nowhere);
    preload_run(&op, table);
    preload_end(of, table);
    return true;
}

static unsigned step_on(tamiz *db)
{
    unsigned steps = 0;
    while (step(db))
        steps++;
    return steps;
}

static void touch(tamiz *db)
{
    size_t size;
    assert_public(tamiz_get_into(db, "k000000x", 8, NULL, 0, &size, NULL), TAMIZ_NOT_FOUND);
}

static void each_table_is_opened_once(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    make_store(env);
    tamiz *db = test_open("s", BY_HAND, env);
    assert_int_equal(table_memory_of(db), 0);
    assert_int_equal(step_on(db), TABLES);
    const uint64_t all = table_memory_of(db);
    assert_true(all > 0);
    test_close(db);

    db = test_open("s", BY_HAND, env);
    tamiz_iter *it; /* opens all */
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    tamiz_iter_seek_first(it);
    tamiz_iter_close(it);
    assert_int_equal(table_memory_of(db), all);
    assert_int_equal(step_on(db), 0);
    test_close(db);
    tamiz_env_memory_free(env);
}

static void filters_take_no_more_memory_than_blocks_may(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    make_store(env);
    tamiz *db = test_open("s", BY_HAND, env);
    assert_true(step(db));
    const uint64_t one = table_memory_of(db);
    test_close(db);

    char text[200];
    (void)snprintf(text, sizeof text, BY_HAND "cache=%d", (int)(one * 5 / 2));
    db = test_open("s", text, env);
    assert_int_equal(step_on(db), 3);
    assert_int_equal(step_on(db), 0);
    test_close(db);
    db = test_open("s", BY_HAND "cache=0", env);
    assert_int_equal(step_on(db), 0);
    test_close(db);
    tamiz_env_memory_free(env);
}

static void a_table_that_cannot_be_opened_is_left_to_who_reads_it(void **state)
{
    (void)state;
    struct world w = world_new(5);
    make_store(w.env);
    tamiz *db = test_open("s", BY_HAND, w.env);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT; /* one read fails */
    fault.call = TAMIZ_SIM_READ;
    fault.name = "*.sst";
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    assert_int_equal(step_on(db), TABLES);
    const uint64_t five = table_memory_of(db);
    touch(db);
    assert_true(table_memory_of(db) > five);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void a_table_merged_away_meanwhile_is_removed_afterwards(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    make_store(env);
    tamiz *db = test_open("s", BY_HAND, env), *of;
    mutex_lock(&db->store->mutex);
    struct table_meta *table = preload_pick(db->store, &of);
    mutex_unlock(&db->store->mutex);
    assert_non_null(table);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    assert_int_equal(test_count_files(env, "s", ".sst"), 2);
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, &db->store->alloc, &nowhere);
    preload_run(&op, table);
    preload_end(of, table);
    store_collect(db->store);
    assert_int_equal(test_count_files(env, "s", ".sst"), 1);
    test_close(db);
    tamiz_env_memory_free(env);
}

static unsigned open_tables(tamiz *db)
{
    unsigned open = 0;
    mutex_lock(&db->store->mutex);
    const struct version *v = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    for (uint32_t i = 0; i < v->table_count; i++)
        open += table_is_loaded(v->tables[i]->table);
    mutex_unlock(&db->store->mutex);
    return open;
}

static void idle_threads_do_it(void **state)
{
    (void)state;
    const struct timespec ms = {.tv_nsec = 1000000};
    tamiz_env *env = tamiz_env_memory_new();
    make_store(env);
    tamiz *db = test_open("s", "threads=2 compaction=off idle_merge=0", env);
    while (open_tables(db) < TABLES) /* the suite's limit ends a wait in vain */
        (void)nanosleep(&ms, NULL);
    test_close(db);
    tamiz_env_memory_free(env);
}

/* What nobody has opened by its name is not read ahead; dropped meanwhile, it is waited for. */
static void keyspaces_are_read_ahead_from_when_they_are_opened(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = test_open("s", BY_HAND, env), *other;
    assert_public(tamiz_keyspace_open(db, "other", NULL, &other), TAMIZ_OK);
    put_tables(other, 2);
    put_tables(db, 1);
    test_close(db);
    db = test_open("s", BY_HAND, env);
    assert_int_equal(step_on(db), 1);
    assert_public(tamiz_keyspace_open(db, "other", NULL, &other), TAMIZ_OK);
    assert_int_equal(step_on(db), 2);
    assert_true(table_memory_of(other) > 0);
    test_close(db);
    tamiz_env_memory_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_table_is_opened_once),
        cmocka_unit_test(filters_take_no_more_memory_than_blocks_may),
        cmocka_unit_test(a_table_that_cannot_be_opened_is_left_to_who_reads_it),
        cmocka_unit_test(a_table_merged_away_meanwhile_is_removed_afterwards),
        cmocka_unit_test(idle_threads_do_it),
        cmocka_unit_test(keyspaces_are_read_ahead_from_when_they_are_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
