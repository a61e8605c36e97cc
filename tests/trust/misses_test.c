/* SPDX-License-Identifier: MIT
 *
 * A read that every filter turns away is counted as one, with the view it saw (db/misses.h). The
 * statistics are those of its steps all the same: told step by step, or from many threads while
 * views come and go.
 *
 *     LABEL: threads
 */
#include <pthread.h>
#include <string.h>

#include "support/store.h"

enum { KEYS = 20000, READS = 30000, THREADS = 4 };

static size_t key_text(char *key, uint64_t number)
{
    return (size_t)snprintf(key, 24, "%016llu", (unsigned long long)number);
}

static void put_some(tamiz *db, uint64_t from, uint64_t step)
{
    char key[24];
    for (uint64_t i = from; i < KEYS; i += step)
        assert_public(tamiz_put(db, key, key_text(key, 2 * i), "a value", 7, NULL), TAMIZ_OK);
    assert_public(tamiz_flush(db), TAMIZ_OK);
}

/* Runs in two levels, with filters of different sizes. */
static void make_tree(tamiz_env *env)
{
    tamiz *db = test_open("store", "threads=0 filter=blocked:10", env);
    put_some(db, 0, 1);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    test_close(db);
    db = test_open("store", "threads=0 compaction=off filter=blocked:4", env);
    put_some(db, 0, 2);
    put_some(db, 1, 3);
    test_close(db);
}

static void no_step(void *ctx, const tamiz_step_info *step)
{
    (void)ctx, (void)step;
}

static tamiz_stats ask(tamiz_env *env, const tamiz_trace *trace)
{
    tamiz *db = test_open("store", "threads=0 compaction=off", env);
    tamiz_read_options read = TAMIZ_READ_OPTIONS_INIT;
    tamiz_stats stats = TAMIZ_STATS_INIT;
    struct test_random r = {5};
    char key[24];
    read.trace = trace;
    for (int i = 0; i < READS; i++) {
        const uint64_t number = test_random_below(&r, 2 * KEYS);
        assert_int_equal(tamiz_exists(db, key, key_text(key, number), &read),
                         number % 2 ? TAMIZ_NOT_FOUND : TAMIZ_OK);
    }
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    test_close(db);
    return stats;
}

static void counting_a_read_as_one_is_counting_its_steps(void **state)
{
    (void)state;
    const tamiz_trace trace = {no_step, NULL};
    tamiz_env *env = tamiz_env_memory_new();
    make_tree(env);
    const tamiz_stats as_one = ask(env, NULL), by_steps = ask(env, &trace);
    int levels = 0;
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        const tamiz_level_stats *a = &as_one.level[i], *b = &by_steps.level[i];
        assert_int_equal(a->filter_negatives, b->filter_negatives);
        assert_int_equal(a->filter_probes, b->filter_probes);
        assert_int_equal(a->tables_considered, b->tables_considered);
        assert_int_equal(a->filter_false_positives, b->filter_false_positives);
        assert_int_equal(a->filter_true_positives, b->filter_true_positives);
        const double off = a->filter_expected_false_positives - b->filter_expected_false_positives;
        assert_true(off < 0.01 * b->filter_expected_false_positives + 1e-6);
        assert_true(-off < 0.01 * b->filter_expected_false_positives + 1e-6);
        levels += a->filter_negatives > 0;
    }
    assert_int_equal(levels, 2);
    assert_int_equal(as_one.gets, READS);
    tamiz_env_memory_free(env);
}

/* ---- many at once */

enum { TOGETHER = 96 }; /* more than one chunk */

static tamiz_stats ask_together(tamiz_env *env, const char *options, int together)
{
    char text[100], key[TOGETHER][24];
    (void)snprintf(text, sizeof text, "threads=0 compaction=off %s", options);
    tamiz *db = test_open("store", text, env);
    tamiz_stats stats = TAMIZ_STATS_INIT;
    struct test_random r = {5};
    const void *keys[TOGETHER];
    void *values[TOGETHER];
    size_t sizes[TOGETHER], value_sizes[TOGETHER];
    tamiz_status statuses[TOGETHER];
    uint64_t numbers[TOGETHER];
    for (int i = 0; i < READS; i += together) {
        const int n = READS - i < together ? READS - i : together;
        for (int k = 0; k < n; k++) {
            keys[k] = key[k];
            numbers[k] = test_random_below(&r, 2 * KEYS);
            sizes[k] = key_text(key[k], numbers[k]);
        }
        assert_public(
            tamiz_multi_get(db, (size_t)n, keys, sizes, values, value_sizes, statuses, NULL),
            TAMIZ_OK);
        for (int k = 0; k < n; k++) {
            assert_int_equal(statuses[k], numbers[k] % 2 ? TAMIZ_NOT_FOUND : TAMIZ_OK);
            assert_int_equal(values[k] != NULL, statuses[k] == TAMIZ_OK);
            assert_int_equal(value_sizes[k], statuses[k] == TAMIZ_OK ? 7 : 0);
            tamiz_free(values[k]);
        }
    }
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    test_close(db);
    return stats;
}

/* Filters are asked all together, and yet what counts is what single gets would have asked: below
 * the table that answers nothing was avoided, and each "maybe" is found to be true or false. */
static void many_at_once_count_as_one_by_one(void **state)
{
    (void)state;
    static const char *const caches[] = {"", "cache=32KiB", "audit=16"};
    static const int sizes[] = {1, 32, TOGETHER};
    tamiz_env *env = tamiz_env_memory_new();
    make_tree(env);
    const tamiz_stats single = ask(env, NULL);
    for (size_t c = 0; c < 9; c++) {
        const tamiz_stats many = ask_together(env, caches[c / 3], sizes[c % 3]);
        for (int i = 0; i < TAMIZ_LEVELS; i++) {
            const tamiz_level_stats *a = &single.level[i], *b = &many.level[i];
            assert_int_equal(a->filter_probes, b->filter_probes);
            assert_int_equal(a->filter_negatives, b->filter_negatives);
            assert_int_equal(a->filter_true_positives, b->filter_true_positives);
            assert_int_equal(a->filter_false_positives, b->filter_false_positives);
            assert_int_equal(b->filter_probes, b->filter_negatives + b->filter_true_positives +
                                                   b->filter_false_positives);
            const double off =
                a->filter_expected_false_positives - b->filter_expected_false_positives;
            assert_true(off <= 0.01 * b->filter_expected_false_positives);
            assert_true(-off <= 0.01 * b->filter_expected_false_positives);
        }
        assert_int_equal(many.filter_audits > 0, c / 3 == 2);
        assert_true(many.total.filter_false_positives > 0);
        assert_int_equal(many.gets, READS);
    }
    tamiz_env_memory_free(env);
}

/* ---- threads */

static void *ask_absent(void *db)
{
    struct test_random r = {(uint64_t)(uintptr_t)&r};
    char key[24];
    for (int i = 0; i < READS; i++)
        if (tamiz_exists(db, key, key_text(key, 2 * test_random_below(&r, KEYS) + 1), NULL) !=
            TAMIZ_NOT_FOUND)
            return db;
    return NULL;
}

/* Each absent key was considered by one table of each run there was: as many as the flushes made so
 * far, and no flush begins before all reads so far are over. */
static void nothing_is_lost_when_views_go(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = test_open("store", "threads=0 compaction=off filter=blocked:10", env);
    tamiz_stats stats = TAMIZ_STATS_INIT;
    uint64_t expected = 0;
    for (uint64_t runs = 1; runs <= 3; runs++) {
        pthread_t threads[THREADS];
        /* Both ends of the key space, so that each run spans all that is asked. */
        assert_public(tamiz_put(db, "0", 1, "", 0, NULL), TAMIZ_OK);
        assert_public(tamiz_put(db, "9", 1, "", 0, NULL), TAMIZ_OK);
        put_some(db, runs, 7);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, ask_absent, db), 0);
        uint64_t before = 0;
        for (int i = 0; i < 20; i++) {
            assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
            assert_true(stats.total.filter_negatives >= before);
            before = stats.total.filter_negatives;
        }
        for (int i = 0; i < THREADS; i++) {
            void *failed;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
        expected += runs * THREADS * READS;
        assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
        assert_int_equal(stats.total.tables_considered, expected);
        assert_int_equal(stats.total.filter_negatives + stats.total.filter_false_positives,
                         expected);
    }
    test_close(db);
    tamiz_env_memory_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counting_a_read_as_one_is_counting_its_steps),
        cmocka_unit_test(many_at_once_count_as_one_by_one),
        cmocka_unit_test(nothing_is_lost_when_views_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
