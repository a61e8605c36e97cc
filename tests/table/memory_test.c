/* SPDX-License-Identifier: MIT
 *
 * Memory that runs out at each of its requests in turn: an error, nothing lost, and once there is
 * memory again the right answers.
 */
#include "kit.h"
#include "support/alloc_fail.h"
#include "table/merge.h"

static bool is_there(struct kit *k, const char *path)
{
    bool exists = false;
    tamiz_file_info info;
    assert_status(&k->t.op, env_path_info(&k->t.op, k->env, path, &exists, &info), TAMIZ_OK);
    return exists;
}

static tamiz_status build(struct op *op, struct kit *k, const struct model *m, enum codec codec)
{
    const struct table_build_options options = kit_options("blocked:10", codec);
    struct table_builder *b;
    tamiz_status st = table_builder_open(op, k->env, op->alloc, "t.sst", &options, &b);
    if (st != TAMIZ_OK)
        return st;
    for (size_t i = 0; i < m->count && st == TAMIZ_OK; i++) {
        const struct version *v = &m->versions[i];
        st = table_builder_add(op, b, key_of(v), v->stamp, value_of(v));
    }
    struct table_summary s;
    summary_init(&s);
    const tamiz_status end = table_builder_finish(op, b, &s);
    summary_free(&s);
    assert_true(st == TAMIZ_OK || end == st);
    return end;
}

static void a_table_that_finds_no_memory_is_not_left_behind(void **state)
{
    (void)state;
    struct test_random random = test_random_start(101);
    struct kit k;
    struct model m;
    kit_make(&k, 0);
    model_make(&m, &random, 300, 100);
    for (int codec = 0; codec < 2; codec++) {
        bool done = false;
        for (uint64_t nth = 1; !done; nth++) {
            struct alloc_fail a;
            struct test_op t;
            alloc_fail_init(&a);
            alloc_fail_at(&a, nth, false);
            test_op_init(&t);
            t.op.alloc = &a.alloc;
            const tamiz_status st = build(&t.op, &k, &m, codec ? CODEC_ZSTD : CODEC_NONE);
            done = a.failed == 0;
            assert_int_equal(st, done ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
            assert_int_equal(is_there(&k, "t.sst"), done);
            alloc_fail_done(&a);
        }
        assert_status(&k.t.op, env_remove(&k.t.op, k.env, "t.sst"), TAMIZ_OK);
    }
    model_free(&m);
    kit_free(&k);
}

/* Opens, gets, walks two tables as one. */
static tamiz_status read_everything(struct op *op, struct kit *k, const struct table_world *world,
                                    const struct model *m)
{
    struct table *tables[2] = {NULL, NULL};
    struct iter *sources[2] = {NULL, NULL};
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < 2 && st == TAMIZ_OK; i++) {
        tables[i] = table_new(op, world, "t.sst", i, 0, 0);
        sources[i] = tables[i] ? table_iter(op, tables[i], &kit_read) : NULL;
        st = sources[i] ? TAMIZ_OK : op->status;
    }
    for (size_t i = 0; i < m->count && st == TAMIZ_OK; i += 17) {
        const struct lookup lookup = lookup_make(key_of(&m->versions[i]), SEQ_MAX);
        uint64_t stamp;
        struct slice value;
        struct cached_block *pinned;
        struct epoch_slot *slot = epoch_enter(&k->epoch);
        st = table_get(op, tables[0], &lookup, &kit_read, &stamp, &value, &pinned);
        epoch_leave(slot);
        cached_block_unpin(pinned);
        if (st == TAMIZ_OK)
            assert_int_equal(stamp, model_get(m, &lookup)->stamp);
    }
    struct iter *it = NULL;
    if (st == TAMIZ_OK) {
        it = merge_iter(op, sources, 2);
        st = it ? TAMIZ_OK : op->status;
        sources[0] = sources[1] = NULL;
    }
    size_t at = 0;
    if (it) {
        for (iter_seek(it, slice_of(NULL, 0), UINT64_MAX); it->valid; iter_next(it), at++)
            assert_int_equal(it->stamp, m->versions[at / 2].stamp);
        st = it->status;
    }
    if (st == TAMIZ_OK)
        assert_int_equal(at, 2 * m->count);
    iter_close(it);
    iter_close(sources[0]);
    iter_close(sources[1]);
    table_free(tables[0]);
    table_free(tables[1]);
    return st;
}

static void a_read_that_finds_no_memory_fails_and_loses_nothing(void **state)
{
    (void)state;
    struct test_random random = test_random_start(102);
    struct kit k;
    struct model m;
    kit_make(&k, 0);
    model_make(&m, &random, 300, 100);
    for (int codec = 0; codec < 2; codec++) {
        assert_status(&k.t.op, build(&k.t.op, &k, &m, codec ? CODEC_ZSTD : CODEC_NONE), TAMIZ_OK);
        bool done = false;
        for (uint64_t nth = 1; !done; nth++) {
            struct alloc_fail a;
            struct test_op t;
            alloc_fail_init(&a);
            test_op_init(&t);
            t.op.alloc = &a.alloc;
            struct table_world world = k.world;
            world.alloc = &a.alloc;
            world.cache = cache_new(&a.alloc, &k.epoch, 3000);
            assert_non_null(world.cache);
            alloc_fail_at(&a, nth, false);
            const tamiz_status st = read_everything(&t.op, &k, &world, &m);
            done = a.failed == 0;
            assert_status(&t.op, st, done ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
            cache_free(world.cache);
            (void)epoch_reclaim(&k.epoch);
            alloc_fail_done(&a);
        }
        assert_status(&k.t.op, env_remove(&k.t.op, k.env, "t.sst"), TAMIZ_OK);
    }
    model_free(&m);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_that_finds_no_memory_is_not_left_behind),
        cmocka_unit_test(a_read_that_finds_no_memory_fails_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
