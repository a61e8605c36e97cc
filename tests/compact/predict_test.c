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

static struct prediction predict_over(const struct pick_options *o, uint64_t bytes,
                                      uint32_t flushes, uint64_t distinct)
{
    struct test_op t;
    struct prediction p;
    test_op_init(&t);
    assert_status(&t.op, predict_writes(&t.op, o, bytes, flushes, distinct, &p), TAMIZ_OK);
    assert_int_equal(p.flushed, bytes * flushes);
    return p;
}

static struct prediction predict(const struct pick_options *o, uint64_t bytes, uint32_t flushes)
{
    return predict_over(o, bytes, flushes, 0);
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

/* Of 1000 keys, each memtable has 1000 - 1000/e: a merge of four leaves 1000 (1 - e^-4). */
static void what_is_written_again_goes_in_a_merge(void **state)
{
    (void)state;
    const struct pick_options o = shape(TAMIZ_COMPACTION_TIERED, 4, 4);
    const struct prediction p = predict_over(&o, 632, 4, 1000);
    assert_int_equal(p.flushed, 4 * 632);
    assert_in_range(p.merged, 980, 983);
    assert_in_range(predict_over(&o, 632, 16, 1000).merged, 4 * 980 + 999, 4 * 983 + 1001);
}

/* ---- a real store ---- */

enum {
    KIB = 1024,
    ENTRY = 121, /* bytes of a key and its value in a table, with its part of index and filter */
    SHAPES = 12,
};

static const struct {
    const char *name;
    tamiz_compaction policy;
} policies[] = {{"leveled", TAMIZ_COMPACTION_LEVELED},
                {"tiered", TAMIZ_COMPACTION_TIERED},
                {"lazy", TAMIZ_COMPACTION_LAZY}};

struct load {
    struct pick_options shape;
    const char *policy;
    uint32_t writes;
    uint32_t keys; /* that are drawn from; 0: each is written once */
};

static uint32_t below(struct test_random *random, uint32_t bound)
{
    return (uint32_t)test_random_below(random, bound);
}

static void fill(tamiz *db, struct test_random *random, const struct load *l)
{
    uint32_t *order = calloc(l->writes, sizeof *order);
    assert_non_null(order);
    for (uint32_t i = 0; i < l->writes; i++) {
        const uint32_t k = below(random, l->keys ? l->keys : i + 1);
        if (l->keys) {
            order[i] = k;
        } else {
            order[i] = order[k];
            order[k] = i;
        }
    }
    for (uint32_t i = 0; i < l->writes; i++) {
        char key[20], value[100];
        const int size = snprintf(key, sizeof key, "%016u", order[i]);
        memset(value, 'v', sizeof value);
        assert_public(tamiz_put(db, key, (size_t)size, value, sizeof value, NULL), TAMIZ_OK);
    }
    free(order);
}

/* The bytes that a store in memory writes for the load, beside what was foretold. */
static void compare(struct test_random *random, const struct load *l)
{
    char text[300];
    tamiz_env *env = tamiz_env_memory_new();
    tamiz_stats stats = TAMIZ_STATS_INIT;
    assert_non_null(env);
    (void)snprintf(text, sizeof text,
                   "threads=0 compaction=%s size_ratio=%u level0_runs=%u level0_stop=%u "
                   "memtable=%llu table=%llu",
                   l->policy, l->shape.size_ratio, l->shape.level0_runs, l->shape.level0_runs + 8,
                   (unsigned long long)l->shape.memtable_bytes,
                   (unsigned long long)l->shape.table_bytes);
    tamiz *db = test_open("s", text, env);
    fill(db, random, l);
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    const struct prediction p = predict_over(&l->shape, stats.flush_bytes_out / stats.flushes,
                                             (uint32_t)stats.flushes, (uint64_t)l->keys * ENTRY);
    const double wrote = (double)(stats.flush_bytes_out + stats.compaction_bytes_out);
    const double foretold = (double)(p.flushed + p.merged);
    print_message("%s keys=%u of %u writes: %.2f bytes a byte flushed, predicted %.2f: %+.1f %%\n",
                  text + strlen("threads=0 "), l->keys ? l->keys : l->writes, l->writes,
                  wrote / (double)stats.flush_bytes_out, foretold / (double)p.flushed,
                  100 * (foretold / wrote - 1));
    assert_true(foretold > 0.85 * wrote && foretold < 1.15 * wrote);
    assert_true(stats.filter_build_us > 0 && stats.filter_build_us < stats.background_us);
    test_close(db);
    tamiz_env_memory_free(env);
}

static void the_prediction_of_each_policy_is_within_15_percent_of_what_a_store_writes(void **state)
{
    static const uint32_t ratios[] = {4, 10, 4, 4}, rows[] = {0, 0, 1, 2};
    (void)state;
    struct test_random random = test_random_start(5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct load l = {.policy = policies[rows[i]].name, .writes = 60000};
        l.shape = shape(policies[rows[i]].policy, ratios[i], 4);
        l.shape.memtable_bytes = 128 * KIB;
        l.shape.table_bytes = 64 * KIB;
        compare(&random, &l);
    }
}

/* Shapes that nobody chose. Level 1 has room for eight tables at least: where a level is one or two
 * of them, what it writes depends on where they happen to be cut. */
static void so_it_is_for_shapes_drawn_at_random_and_keys_written_again(void **state)
{
    (void)state;
    struct test_random random = test_random_start(6);
    for (int i = 0; i < SHAPES;) {
        const size_t policy = below(&random, 3);
        struct load l = {.policy = policies[policy].name, .writes = 20000 + below(&random, 60000)};
        l.shape = shape(policies[policy].policy, 2 + below(&random, 11), 2 + below(&random, 9));
        l.shape.memtable_bytes = (64 + below(&random, 192)) * KIB;
        l.shape.table_bytes = (32 + below(&random, 200)) * KIB;
        l.keys = below(&random, 2) ? l.writes / (1 + below(&random, 6)) : 0;
        if (l.shape.memtable_bytes * l.shape.level0_runs < 8 * l.shape.table_bytes)
            continue;
        compare(&random, &l);
        i++;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tiered_tree_writes_each_byte_once_a_level),
        cmocka_unit_test(a_leveled_tree_takes_the_level_below_along),
        cmocka_unit_test(off_writes_nothing_twice),
        cmocka_unit_test(what_is_written_again_goes_in_a_merge),
        cmocka_unit_test(the_prediction_of_each_policy_is_within_15_percent_of_what_a_store_writes),
        cmocka_unit_test(so_it_is_for_shapes_drawn_at_random_and_keys_written_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
