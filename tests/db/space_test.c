/* SPDX-License-Identifier: MIT
 *
 * Space comes back, and closing does not wait for a merge to end.
 */
#include <string.h>

#include "db/kit.h"

struct sum {
    const tamiz_env *env;
    uint64_t bytes;
};

static void add_file(void *ctx, const char *name)
{
    struct sum *s = ctx;
    char path[300];
    tamiz_file_info info;
    (void)snprintf(path, sizeof path, "s/%s", name);
    if (s->env->ops->path_info(s->env->ctx, path, &info) == 0)
        s->bytes += info.size;
}

static uint64_t directory_bytes(const tamiz_env *env)
{
    struct sum s = {env, 0};
    assert_int_equal(env->ops->list(env->ctx, "s", add_file, &s), 0);
    return s.bytes;
}

static void put_many(tamiz *db, unsigned from, unsigned to, bool delete)
{
    char key[16], value[200];
    memset(value, 'v', sizeof value);
    for (unsigned i = from; i < to; i++) {
        const int size = snprintf(key, sizeof key, "%08u", i * 7919 % 1000003);
        if (delete)
            assert_public(tamiz_delete(db, key, (size_t)size, NULL), TAMIZ_OK);
        else
            assert_public(tamiz_put(db, key, (size_t)size, value, sizeof value, NULL), TAMIZ_OK);
    }
}

static const char *const policies[] = {"leveled", "tiered", "lazy", "off"};

static void after_deleting_everything_and_compacting_little_is_left(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        char options[100];
        tamiz_env *env = tamiz_env_memory_new();
        assert_non_null(env);
        (void)snprintf(options, sizeof options,
                       "threads=0 memtable=256KiB table=128KiB size_ratio=4 compaction=%s",
                       policies[p]);
        tamiz *db = test_open("s", options, env);
        put_many(db, 0, 20000, false);
        assert_true(directory_bytes(env) > 4000000);
        put_many(db, 0, 20000, true);
        assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
        assert_true(directory_bytes(env) < 1 << 20);
        assert_string_equal(test_scan(db, NULL), "");
        assert_int_equal(test_count_files(env, "s", ".sst"), 0);
        test_close(db);
        assert_true(directory_bytes(env) < 64 << 10);
        tamiz_env_memory_free(env);
    }
}

static void dead_ranges_do_not_stay_though_nobody_asks(void **state)
{
    (void)state;
    for (size_t p = 0; p < 3; p++) {
        char options[100];
        bool more = true;
        tamiz_env *env = tamiz_env_memory_new();
        assert_non_null(env);
        (void)snprintf(options, sizeof options,
                       "threads=0 memtable=256KiB table=128KiB size_ratio=4 compaction=%s",
                       policies[p]);
        tamiz *db = test_open("s", options, env);
        put_many(db, 0, 20000, false);
        const uint64_t before = directory_bytes(env);
        put_many(db, 0, 20000, true);
        assert_public(tamiz_flush(db), TAMIZ_OK);
        while (more)
            assert_public(tamiz_step(db, 1000000, &more), TAMIZ_OK);
        assert_true(directory_bytes(env) < before / 4);
        test_close(db);
        tamiz_env_memory_free(env);
    }
}

/* With threads, a close in the middle of merges: whatever was under way leaves no file behind, and
 * nothing is missing. */
static void closing_in_the_middle_of_merges_leaves_nothing_half_done(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    assert_non_null(env);
    for (unsigned round = 0; round < 6; round++) {
        tamiz *db = test_open("s", "threads=2 memtable=64KiB table=32KiB size_ratio=2", env);
        put_many(db, round * 3000, round * 3000 + 3000, false);
        test_close(db);
        db = test_open("s", "read_only=true threads=0", env);
        tamiz_stats stats = TAMIZ_STATS_INIT;
        char key[16];
        assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
        assert_int_equal(test_count_files(env, "s", ".sst"), stats.total.tables);
        for (unsigned i = 0; i < (round + 1) * 3000; i += 97) {
            const int size = snprintf(key, sizeof key, "%08u", i * 7919 % 1000003);
            assert_public(tamiz_exists(db, key, (size_t)size, NULL), TAMIZ_OK);
        }
        test_close(db);
    }
    tamiz_env_memory_free(env);
}

/* One table, that no read has opened, in level 1. */
static tamiz *with_a_moved_table(const struct world *w, tamiz_iter **iter)
{
    tamiz *db = test_open("s", "threads=0 idle_merge=0", w->env);
    put_some(db, 0, 100, "v");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_close(db);
    db = test_open("s", "threads=0 idle_merge=0", w->env);
    assert_public(tamiz_iter_open(db, NULL, iter), TAMIZ_OK);
    assert_public(tamiz_compact_table(db, 0, 0), TAMIZ_OK);
    assert_int_equal(test_count_files(w->env, "s", ".sst"), 1);
    return db;
}

static void an_iterator_keeps_a_table_that_was_moved_and_then_removed(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz_iter *iter;
    tamiz *db = with_a_moved_table(&w, &iter);
    assert_public(tamiz_delete_range(db, "k", 1, "l", 1, NULL), TAMIZ_OK);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    int keys = 0;
    for (tamiz_iter_seek_first(iter); tamiz_iter_valid(iter); tamiz_iter_next(iter))
        keys++;
    assert_public(tamiz_iter_status(iter), TAMIZ_OK);
    assert_int_equal(keys, 100);
    tamiz_iter_close(iter);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_close(db);
    assert_int_equal(test_count_files(w.env, "s", ".sst"), 0);
    tamiz_env_sim_free(w.sim);
}

static void closing_lets_go_of_tables_that_may_not_be_removed(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("s", "threads=0 idle_merge=0", w.env);
    tamiz_iter *iter;
    for (int round = 0; round < 2; round++) {
        put_some(db, 0, 100, "v");
        assert_public(tamiz_flush(db), TAMIZ_OK);
    }
    assert_public(tamiz_iter_open(db, NULL, &iter), TAMIZ_OK);
    tamiz_iter_seek_first(iter);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK); /* two tables wait for it */
    put_some(db, 0, 1, "w");
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.call = TAMIZ_SIM_CHANGE;
    fault.name = "MANIFEST-*";
    fault.sticky = true;
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    assert_public(tamiz_flush(db), TAMIZ_IO_ERROR); /* which manifest is in force is not known */
    tamiz_iter_close(iter);
    test_close(db);
    assert_int_equal(tamiz_env_sim_files_open(w.sim), 0);
    tamiz_env_sim_clear(w.sim);
    db = test_open("s", "threads=0", w.env);
    expect_some(db, 0, 1, "w");
    expect_some(db, 1, 100, "v");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_deleting_everything_and_compacting_little_is_left),
        cmocka_unit_test(dead_ranges_do_not_stay_though_nobody_asks),
        cmocka_unit_test(closing_in_the_middle_of_merges_leaves_nothing_half_done),
        cmocka_unit_test(an_iterator_keeps_a_table_that_was_moved_and_then_removed),
        cmocka_unit_test(closing_lets_go_of_tables_that_may_not_be_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
