/* SPDX-License-Identifier: MIT
 * LABEL: threads
 *
 * Many readers of one table that is opened by whoever comes first, through caches that are too
 * small for it.
 */
#include "kit.h"

enum { READERS = 4, GETS = 1500, WALKS = 3 };

struct crowd {
    struct kit k;
    struct model m;
    struct table *t;
    _Atomic int wrong;
};

struct reader_thread {
    struct crowd *crowd;
    struct kit own; /* its op and counters; the rest is the crowd's */
    uint64_t seed;
    struct thread thread;
};

static void get_some(struct reader_thread *r, struct test_random *random)
{
    for (int i = 0; i < GETS; i++) {
        struct version v;
        version_key(&v, test_random_below(random, 700));
        const struct lookup lookup =
            lookup_make(key_of(&v), test_random_below(random, KIT_SEQS + 2));
        struct slice value;
        uint64_t stamp;
        struct cached_block *pinned;
        struct epoch_slot *slot = epoch_enter(&r->crowd->k.epoch);
        struct answer a = {.status = table_get(&r->own.t.op, r->crowd->t, &lookup, &kit_read,
                                               &stamp, &value, &pinned)};
        a.stamp = stamp;
        a.value_size = value.size;
        if (value.size)
            memcpy(a.value, value.data, value.size);
        epoch_leave(slot);
        cached_block_unpin(pinned);
        if (!kit_right(&r->crowd->m, &lookup, &a))
            atomic_fetch_add(&r->crowd->wrong, 1);
    }
}

static void walk(struct reader_thread *r)
{
    struct iter *it = table_iter(&r->own.t.op, r->crowd->t, &kit_read);
    size_t at = 0;
    for (iter_seek_first(it); it->valid; iter_next(it), at++)
        if (at >= r->crowd->m.count || it->stamp != r->crowd->m.versions[at].stamp)
            atomic_fetch_add(&r->crowd->wrong, 1);
    if (at != r->crowd->m.count)
        atomic_fetch_add(&r->crowd->wrong, 1);
    iter_close(it);
}

static void reader_run(void *ctx)
{
    struct reader_thread *r = ctx;
    struct test_random random = {r->seed};
    for (int i = 0; i < WALKS; i++) {
        get_some(r, &random);
        walk(r);
    }
}

static void many_readers_answer_as_the_model_does(void **state)
{
    (void)state;
    static const size_t capacities[] = {0, 3000, 20000, 1 << 20};
    struct test_random random = test_random_start(91);
    for (size_t c = 0; c < 4; c++) {
        static struct crowd crowd;
        static struct reader_thread readers[READERS];
        memset(&crowd, 0, sizeof crowd);
        kit_make(&crowd.k, capacities[c]);
        model_make(&crowd.m, &random, 1500, 350);
        const struct table_build_options options =
            kit_options("bloom:6", c % 2 ? CODEC_ZSTD : CODEC_NONE);
        struct table_summary s;
        kit_build(&crowd.k, "t.sst", &crowd.m, &options, &s);
        crowd.t = kit_table(&crowd.k, "t.sst");
        for (size_t i = 0; i < READERS; i++) {
            readers[i].crowd = &crowd;
            readers[i].seed = random.state + i;
            test_op_init(&readers[i].own.t);
            assert_status(
                &crowd.k.t.op,
                thread_start(&crowd.k.t.op, &readers[i].thread, "reader", reader_run, &readers[i]),
                TAMIZ_OK);
        }
        for (size_t i = 0; i < READERS; i++)
            thread_join(&readers[i].thread);
        assert_int_equal(crowd.wrong, 0);
        assert_true(cache_bytes(crowd.k.cache) <= cache_capacity(crowd.k.cache));
        table_free(crowd.t);
        model_free(&crowd.m);
        kit_free(&crowd.k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_readers_answer_as_the_model_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
