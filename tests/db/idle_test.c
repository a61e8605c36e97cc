/* SPDX-License-Identifier: MIT
 *
 * Merges that can wait, on a simulated clock.
 */
#include <stdlib.h>
#include <string.h>

#include "db/kit.h"

enum { MS = 1000, KEYS = 300 };

#define SHAPE "threads=0 memtable=1MiB table=64KiB level0_runs=4 level0_stop=12 "

struct idle {
    struct world w;
    tamiz *db;
};

static struct idle idle_open(const char *more)
{
    char text[200];
    struct idle i = {.w = world_new(3)};
    (void)snprintf(text, sizeof text, SHAPE "%s", more);
    i.db = test_open("s", text, i.w.env);
    return i;
}

static void idle_close(struct idle *i)
{
    test_close(i->db);
    tamiz_env_sim_free(i->w.sim);
}

/* One run of level 0 more. */
static void put_run(tamiz *db, const char *value)
{
    put_some(db, 0, KEYS, value);
    assert_public(tamiz_flush(db), TAMIZ_OK);
}

static unsigned runs_of(tamiz *db)
{
    char *text = NULL;
    unsigned sum = 0, level, runs;
    assert_public(tamiz_property(db, "levels", &text), TAMIZ_OK);
    for (const char *line = text; line; line = strchr(line + 1, '\n'))
        if (sscanf(line, "%u %u", &level, &runs) == 2)
            sum += runs;
    tamiz_free(text);
    return sum;
}

static bool settled(tamiz *db)
{
    char *text = NULL;
    assert_public(tamiz_property(db, "settled", &text), TAMIZ_OK);
    const bool is = strcmp(text, "true\n") == 0;
    tamiz_free(text);
    return is;
}

static void pass(struct idle *i, unsigned ms)
{
    bool more = true;
    tamiz_env_sim_clock_advance(i->w.sim, (uint64_t)ms * MS);
    while (more)
        assert_public(tamiz_step(i->db, 0, &more), TAMIZ_OK);
}

static void runs_are_merged_when_nobody_has_written_for_so_long(void **state)
{
    (void)state;
    struct idle i = idle_open("idle_merge=1000");
    for (int run = 0; run < 3; run++)
        put_run(i.db, run == 2 ? "new" : "old");
    assert_int_equal(runs_of(i.db), 3);
    pass(&i, 900);
    assert_int_equal(runs_of(i.db), 3);
    assert_false(settled(i.db));
    test_put(i.db, "x", "a write: the time begins anew");
    pass(&i, 900);
    assert_int_equal(runs_of(i.db), 3);
    pass(&i, 200);
    assert_int_equal(runs_of(i.db), 1);
    assert_true(settled(i.db));
    expect_some(i.db, 0, KEYS, "new");
    test_expect(i.db, "x", "a write: the time begins anew", NULL);
    idle_close(&i);
}

static void what_is_at_rest_is_not_merged_again(void **state)
{
    (void)state;
    struct idle i = idle_open("idle_merge=1000");
    tamiz_stats before = TAMIZ_STATS_INIT, after = TAMIZ_STATS_INIT;
    put_run(i.db, "a");
    put_run(i.db, "b");
    pass(&i, 1100);
    assert_public(tamiz_stats_get(i.db, &before), TAMIZ_OK);
    assert_int_equal(before.compactions, 1);
    test_put(i.db, "x", "y");
    for (int rest = 0; rest < 20; rest++)
        pass(&i, 1100);
    assert_public(tamiz_stats_get(i.db, &after), TAMIZ_OK);
    assert_int_equal(after.compactions, 1);
    idle_close(&i);
}

static void never_means_never(void **state)
{
    (void)state;
    const char *const ways[] = {"idle_merge=0", "compaction=off"};
    for (size_t k = 0; k < 2; k++) {
        struct idle i = idle_open(ways[k]);
        put_run(i.db, "a");
        put_run(i.db, "b");
        assert_true(settled(i.db));
        pass(&i, 1000000);
        assert_int_equal(runs_of(i.db), 2);
        idle_close(&i);
    }
}

static void each_keyspace_has_its_own_quiet_time(void **state)
{
    (void)state;
    struct idle i = idle_open("idle_merge=1000");
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *other = NULL;
    assert_public(tamiz_options_set(&o, SHAPE "idle_merge=5000"), TAMIZ_OK);
    o.env = i.w.env;
    assert_public(tamiz_keyspace_open(i.db, "other", &o, &other), TAMIZ_OK);
    for (int run = 0; run < 2; run++) {
        put_run(i.db, "a");
        put_run(other, "b");
    }
    for (int second = 0; second < 3; second++) {
        pass(&i, 600);
        test_put(other, "x", "again"); /* only there */
    }
    assert_int_equal(runs_of(i.db), 1);
    assert_int_equal(runs_of(other), 2);
    pass(&i, 4000);
    assert_int_equal(runs_of(other), 2);
    pass(&i, 1100);
    assert_int_equal(runs_of(other), 1);
    expect_some(other, 0, KEYS, "b");
    idle_close(&i);
}

static void a_step_without_end_does_all_there_is(void **state)
{
    (void)state;
    bool more = true;
    tamiz *other = NULL;
    struct idle i = idle_open("idle_merge=1000");
    assert_public(tamiz_keyspace_open(i.db, "other", NULL, &other), TAMIZ_OK);
    for (int run = 0; run < 2; run++) {
        put_run(i.db, "a");
        put_run(other, "b");
    }
    tamiz_env_sim_clock_advance(i.w.sim, 2000 * MS);
    assert_public(tamiz_step(i.db, UINT64_MAX, &more), TAMIZ_OK); /* two jobs */
    assert_false(more);
    assert_int_equal(runs_of(i.db) + runs_of(other), 2);
    idle_close(&i);
}

/* ---- reads pay for it ---- */

static void seek_often(tamiz *db, unsigned times)
{
    tamiz_iter *it = NULL;
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    for (unsigned i = 0; i < times; i++)
        tamiz_iter_seek_first(it);
    tamiz_iter_close(it);
}

static void get_often(tamiz *db, unsigned times)
{
    char value[100];
    size_t size;
    for (unsigned i = 0; i < times; i++)
        assert_public(tamiz_get_into(db, "absent", 6, value, sizeof value, &size, NULL),
                      TAMIZ_NOT_FOUND);
}

/* A second in which somebody writes all the time. */
static void pass_writing(struct idle *i)
{
    for (int tenth = 0; tenth < 10; tenth++) {
        test_put(i->db, "x", "again");
        pass(i, 100);
    }
}

static void beside_a_writer_runs_are_merged_when_reads_have_paid_for_it(void **state)
{
    (void)state;
    struct idle i = idle_open("idle_merge=1000");
    for (int run = 0; run < 3; run++)
        put_run(i.db, "a");
    pass_writing(&i);
    seek_often(i.db, 5000); /* two runs in vain: 7 ms */
    pass_writing(&i);
    assert_int_equal(runs_of(i.db), 3);
    seek_often(i.db, 3000);
    pass_writing(&i);
    assert_int_equal(runs_of(i.db), 1);
    put_run(i.db, "b");
    pass_writing(&i);
    get_often(i.db, 250000);
    pass_writing(&i);
    assert_int_equal(runs_of(i.db), 1);
    expect_some(i.db, 0, KEYS, "b");
    idle_close(&i);
}

static void reads_of_a_tree_at_rest_pay_for_nothing_that_comes_later(void **state)
{
    (void)state;
    struct idle i = idle_open("idle_merge=1000");
    put_run(i.db, "a");
    put_run(i.db, "b");
    pass(&i, 1100);
    put_some(i.db, 0, 30, "a tenth of it"); /* too little to be merged with it */
    assert_public(tamiz_flush(i.db), TAMIZ_OK);
    pass_writing(&i);
    seek_often(i.db, 100000);
    pass_writing(&i);
    assert_int_equal(runs_of(i.db), 2); /* it is known to be at rest */
    seek_often(i.db, 100000);
    put_run(i.db, "c");
    pass_writing(&i);
    assert_int_equal(runs_of(i.db), 3);
    idle_close(&i);
}

static void without_merges_that_wait_reads_pay_for_nothing(void **state)
{
    (void)state;
    struct idle i = idle_open("idle_merge=0");
    put_run(i.db, "a");
    put_run(i.db, "b");
    seek_often(i.db, 100000);
    pass_writing(&i);
    seek_often(i.db, 100000);
    pass_writing(&i);
    assert_int_equal(runs_of(i.db), 2);
    idle_close(&i);
}

/* ---- a writer comes back in the middle of it ---- */

struct back {
    tamiz *db;
    unsigned runs; /* that it writes then */
};

static void write_when_merging(void *ctx, const char *point)
{
    struct back *b = ctx;
    if (strcmp(point, "compact.output") != 0)
        return;
    for (; b->runs > 0; b->runs--)
        put_run(b->db, "back");
}

static tamiz_stats merge_meanwhile(unsigned runs)
{
    struct idle i = idle_open("idle_merge=1000");
    struct back back = {i.db, runs};
    tamiz_stats stats = TAMIZ_STATS_INIT;
    bool more;
    put_run(i.db, "a");
    put_run(i.db, "b");
    tamiz_env_sim_on_point(i.w.sim, write_when_merging, &back);
    tamiz_env_sim_clock_advance(i.w.sim, 1100 * MS);
    assert_public(tamiz_step(i.db, 0, &more), TAMIZ_OK); /* one job */
    assert_public(tamiz_stats_get(i.db, &stats), TAMIZ_OK);
    assert_int_equal(tamiz_health(i.db), TAMIZ_OK);
    tamiz_env_sim_on_point(i.w.sim, NULL, NULL);
    pass(&i, 0);
    assert_true(runs_of(i.db) < 4);
    expect_some(i.db, 0, KEYS, "back");
    pass(&i, 2000);
    assert_int_equal(runs_of(i.db), 1);
    expect_some(i.db, 0, KEYS, "back");
    idle_close(&i);
    return stats;
}

static void it_goes_on_beside_a_writer_and_gives_up_where_level_0_becomes_full(void **state)
{
    (void)state;
    assert_int_equal(merge_meanwhile(1).compactions, 1);
    const tamiz_stats gave_up = merge_meanwhile(2); /* 4 runs */
    assert_int_equal(gave_up.compactions, 0);
    assert_int_equal(gave_up.stalls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_merged_when_nobody_has_written_for_so_long),
        cmocka_unit_test(what_is_at_rest_is_not_merged_again),
        cmocka_unit_test(never_means_never),
        cmocka_unit_test(a_step_without_end_does_all_there_is),
        cmocka_unit_test(each_keyspace_has_its_own_quiet_time),
        cmocka_unit_test(beside_a_writer_runs_are_merged_when_reads_have_paid_for_it),
        cmocka_unit_test(reads_of_a_tree_at_rest_pay_for_nothing_that_comes_later),
        cmocka_unit_test(without_merges_that_wait_reads_pay_for_nothing),
        cmocka_unit_test(it_goes_on_beside_a_writer_and_gives_up_where_level_0_becomes_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
