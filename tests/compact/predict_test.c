/* SPDX-License-Identifier: MIT */
#include "compact/predict.h"

#include <stdlib.h>
#include <string.h>

#include "support/store.h"

static struct pick_options shape(tamiz_compaction policy, uint32_t ratio, uint32_t level0_runs)
{
    return (struct pick_options){.policy = policy,
                                 .size_ratio = ratio,
                                 .level0_runs = level0_runs,
                                 .memtable_bytes = 1000,
                                 .table_bytes = 500,
                                 .oldest_snapshot = UINT64_MAX};
}

static struct prediction predict(const struct pick_options *o, uint64_t bytes, uint32_t flushes)
{
    struct test_op t;
    struct prediction p;
    test_op_init(&t);
    assert_status(&t.op, predict_writes(&t.op, o, bytes, flushes, &p), TAMIZ_OK);
    assert_int_equal(p.flushed, bytes * flushes);
    return p;
}

static void a_tiered_tree_writes_each_byte_once_a_level(void **state)
{
    (void)state;
    const struct pick_options o = shape(TAMIZ_COMPACTION_TIERED, 4, 4);
    assert_int_equal(predict(&o, 1000, 3).merged, 0);
    assert_int_equal(predict(&o, 1000, 4).merged, 4000);
    assert_int_equal(predict(&o, 1000, 15).merged, 12000);
    assert_int_equal(predict(&o, 1000, 16).merged, 16000 + 16000); /* and level 1 to level 2 */
    assert_int_equal(predict(&o, 1000, 16).runs, 1);
    assert_int_equal(predict(&o, 1000, 64).merged, 3 * 64000);
}

/* Level 1 may have 4000: the first four flushes fit; the next four take them along. */
static void a_leveled_tree_takes_the_level_below_along(void **state)
{
    (void)state;
    const struct pick_options o = shape(TAMIZ_COMPACTION_LEVELED, 10, 4);
    assert_int_equal(predict(&o, 1000, 4).merged, 4000);
    /* 4000 of those 8000 sink into an empty level, as they are. */
    const uint64_t twice = predict(&o, 1000, 8).merged;
    assert_in_range(twice, 4000 + 8000, 4000 + 8000 + 1000);
    /* And then into one that has half of the keys. */
    assert_in_range(predict(&o, 1000, 12).merged, twice + 8000, twice + 8000 + 10000);
}

static void off_writes_nothing_twice(void **state)
{
    (void)state;
    const struct pick_options o = shape(TAMIZ_COMPACTION_OFF, 10, 4);
    assert_int_equal(predict(&o, 1000, 20).merged, 0);
    assert_int_equal(predict(&o, 1000, 20).runs, 20);
}

/* ---- a real store ---- */

enum { KEYS = 60000 };

static void fill(tamiz *db, struct test_random *random)
{
    uint32_t *order = calloc(KEYS, sizeof *order);
    assert_non_null(order);
    for (uint32_t i = 0; i < KEYS; i++) {
        const uint32_t k = (uint32_t)test_random_below(random, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        char key[20], value[100];
        const int size = snprintf(key, sizeof key, "%016u", order[i]);
        memset(value, 'v', sizeof value);
        assert_public(tamiz_put(db, key, (size_t)size, value, sizeof value, NULL), TAMIZ_OK);
    }
    free(order);
}

static void the_prediction_of_each_policy_is_within_15_percent_of_what_a_store_writes(void **state)
{
    static const struct {
        const char *text;
        tamiz_compaction policy;
        uint32_t ratio;
    } rows[] = {{"compaction=leveled size_ratio=4", TAMIZ_COMPACTION_LEVELED, 4},
                {"compaction=leveled size_ratio=10", TAMIZ_COMPACTION_LEVELED, 10},
                {"compaction=tiered size_ratio=4", TAMIZ_COMPACTION_TIERED, 4},
                {"compaction=lazy size_ratio=4", TAMIZ_COMPACTION_LAZY, 4}};
    (void)state;
    struct test_random random = test_random_start(5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        tamiz_env *env = tamiz_env_memory_new();
        tamiz_stats stats = TAMIZ_STATS_INIT;
        assert_non_null(env);
        (void)snprintf(text, sizeof text, "threads=0 memtable=128KiB table=64KiB level0_runs=4 %s",
                       rows[i].text);
        tamiz *db = test_open("s", text, env);
        fill(db, &random);
        assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
        struct pick_options o = shape(rows[i].policy, rows[i].ratio, 4);
        o.memtable_bytes = 128 << 10;
        o.table_bytes = 64 << 10;
        const struct prediction p =
            predict(&o, stats.flush_bytes_out / stats.flushes, (uint32_t)stats.flushes);
        const double wrote = (double)(stats.flush_bytes_out + stats.compaction_bytes_out);
        const double foretold = (double)(p.flushed + p.merged);
        print_message("%s: %.2f bytes a byte flushed, predicted %.2f\n", rows[i].text,
                      wrote / (double)stats.flush_bytes_out, foretold / (double)p.flushed);
        assert_true(foretold > 0.85 * wrote && foretold < 1.15 * wrote);
        test_close(db);
        tamiz_env_memory_free(env);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tiered_tree_writes_each_byte_once_a_level),
        cmocka_unit_test(a_leveled_tree_takes_the_level_below_along),
        cmocka_unit_test(off_writes_nothing_twice),
        cmocka_unit_test(the_prediction_of_each_policy_is_within_15_percent_of_what_a_store_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
