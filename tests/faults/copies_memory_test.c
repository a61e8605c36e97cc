/* SPDX-License-Identifier: MIT
 *
 * Checkpoints, backups, restores and refreshes whose n-th allocation is refused, once or from then
 * on, for every n: the call says so, nothing stands where the copy would have been, the store (or
 * the reader) is as it was, and the same call succeeds when memory is back.
 */
#include "db/kit.h"
#include "support/alloc_fail.h"

#define OPTIONS "threads=0 memtable=16KiB table=16KiB block=1KiB "
enum { KEYS = 100 };

struct trial {
    struct world w;
    struct alloc_fail memory;
    tamiz_options options; /* with that memory */
    tamiz *db;
    int made; /* copies so far: each has a name of its own */
    char path[32];
};

static void trial_start(struct trial *t, uint64_t seed)
{
    tamiz *other;
    t->w = world_new(seed);
    t->made = 0;
    alloc_fail_init(&t->memory);
    t->options = (tamiz_options)TAMIZ_OPTIONS_INIT;
    assert_public(tamiz_options_set(&t->options, OPTIONS), TAMIZ_OK);
    t->options.env = t->w.env;
    t->options.allocator = t->memory.alloc.hook;
    assert_public(tamiz_open("s", &t->options, &t->db), TAMIZ_OK);
    assert_public(tamiz_keyspace_open(t->db, "other", NULL, &other), TAMIZ_OK);
    put_some(t->db, 0, KEYS, "v");
    assert_public(tamiz_flush(t->db), TAMIZ_OK);
    test_put(other, "in", "the log");
}

static void trial_end(struct trial *t)
{
    test_close(t->db);
    assert_int_equal(tamiz_env_sim_files_open(t->w.sim), 0);
    alloc_fail_done(&t->memory);
    tamiz_env_sim_free(t->w.sim);
}

static bool stands(const struct trial *t)
{
    tamiz_file_info info;
    return t->w.env->ops->path_info(t->w.env->ctx, t->path, &info) == 0;
}

static void expect_copy(const struct trial *t)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *copy, *other;
    o.env = t->w.env;
    o.create_if_missing = false;
    assert_public(tamiz_open(t->path, &o, &copy), TAMIZ_OK);
    assert_public(tamiz_keyspace_open(copy, "other", NULL, &other), TAMIZ_OK);
    expect_some(copy, 0, KEYS, "v");
    test_expect(other, "in", "the log", NULL);
    test_close(copy);
}

static tamiz_status checkpoint(struct trial *t)
{
    (void)snprintf(t->path, sizeof t->path, "copy%d", t->made);
    return tamiz_checkpoint(t->db, t->path);
}

static tamiz_status backup(struct trial *t)
{
    (void)snprintf(t->path, sizeof t->path, "backups/%06d", t->made + 1);
    return tamiz_backup(t->db, "backups", NULL);
}

static tamiz_status restore(struct trial *t)
{
    (void)snprintf(t->path, sizeof t->path, "restored%d", t->made);
    return tamiz_restore("backups", 0, t->path, &t->options, NULL);
}

/* Every request of `copy` refused, until one is asked for that never comes. */
static void refuse_each(struct trial *t, tamiz_status (*copy)(struct trial *t), bool sticky)
{
    uint64_t refused = 0;
    for (bool acted = true; acted; refused += acted) {
        alloc_fail_at(&t->memory, refused + 1, sticky);
        const uint64_t before = t->memory.failed;
        const tamiz_status st = copy(t);
        acted = t->memory.failed > before;
        alloc_fail_at(&t->memory, 0, false);
        assert_true(st == TAMIZ_OK || (acted && st == TAMIZ_OUT_OF_MEMORY));
        assert_int_equal(stands(t), st == TAMIZ_OK);
        if (st != TAMIZ_OK)
            assert_public(copy(t), TAMIZ_OK);
        expect_copy(t);
        t->made++;
        expect_some(t->db, 0, KEYS, "v");
    }
    print_message("%llu refusals\n", (unsigned long long)refused);
    assert_true(refused > 10);
}

static void a_copy_without_memory_is_no_copy_and_the_next_one_is(void **state)
{
    tamiz_status (*const copies[])(struct trial * t) = {checkpoint, backup, restore};
    (void)state;
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        for (int sticky = 0; sticky < 2; sticky++) {
            struct trial t;
            trial_start(&t, 1 + i);
            if (copies[i] == restore)
                assert_public(tamiz_backup(t.db, "backups", NULL), TAMIZ_OK);
            refuse_each(&t, copies[i], sticky);
            trial_end(&t);
        }
}

/* What the writer does between two refreshes: something in the log, and at first sometimes a table
 * or a merge: each makes the manifest longer, and with it every refresh that follows. */
static void write_on(tamiz *writer, int round)
{
    char value[16];
    (void)snprintf(value, sizeof value, "%d", round);
    test_put(writer, "round", value);
    if (round % 3 == 0 && round < 60)
        assert_public(tamiz_flush(writer), TAMIZ_OK);
    if (round % 12 == 0 && round < 60)
        assert_public(tamiz_compact(writer, NULL, 0, NULL, 0), TAMIZ_OK);
}

static void expect_round(tamiz *db, int round)
{
    char value[16];
    (void)snprintf(value, sizeof value, "%d", round);
    test_expect(db, "round", value, NULL);
    expect_some(db, 0, KEYS, "v");
}

static void a_refresh_without_memory_changes_nothing_and_the_next_one_does(void **state)
{
    (void)state;
    for (int sticky = 0; sticky < 2; sticky++) {
        struct trial t;
        int round = 0;
        bool acted = true;
        trial_start(&t, 7);
        write_on(t.db, round);
        tamiz *writer = t.db;
        t.options.read_only = true;
        struct alloc_fail memory; /* the reader's own */
        alloc_fail_init(&memory);
        t.options.allocator = memory.alloc.hook;
        assert_public(tamiz_open("s", &t.options, &t.db), TAMIZ_OK);
        for (uint64_t nth = 1; acted; nth += 1 + nth / 32) {
            write_on(writer, round + 1);
            alloc_fail_at(&memory, nth, sticky);
            const uint64_t before = memory.failed;
            const tamiz_status st = tamiz_refresh(t.db);
            acted = memory.failed > before;
            alloc_fail_at(&memory, 0, false);
            assert_true(st == TAMIZ_OK || (acted && st == TAMIZ_OUT_OF_MEMORY));
            expect_round(t.db, st == TAMIZ_OK ? round + 1 : round);
            assert_public(tamiz_refresh(t.db), TAMIZ_OK);
            expect_round(t.db, ++round);
        }
        print_message("%d refusals\n", round - 1);
        assert_true(round > 10);
        test_close(t.db);
        alloc_fail_done(&memory);
        t.db = writer;
        trial_end(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_without_memory_is_no_copy_and_the_next_one_is),
        cmocka_unit_test(a_refresh_without_memory_changes_nothing_and_the_next_one_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
