/* SPDX-License-Identifier: MIT
 * LABEL: threads */
#include "table/cache.h"

#include "support/test.h"

enum { PAYLOAD = 1000 };

struct world {
    struct test_op t;
    struct epoch epoch;
    struct cache *cache;
};

static size_t block_bytes(struct cache *c)
{
    struct cached_block *b = cached_block_new(c, PAYLOAD, 0);
    const size_t whole = b->whole;
    cached_block_unpin(b);
    return whole;
}

static void world_make(struct world *w, size_t blocks)
{
    test_op_init(&w->t);
    assert_status(&w->t.op, epoch_init(&w->t.op, &w->epoch, &alloc_libc), TAMIZ_OK);
    struct cache *probe = cache_new(&alloc_libc, &w->epoch, 0);
    const size_t whole = block_bytes(probe);
    cache_free(probe);
    w->cache = cache_new(&alloc_libc, &w->epoch, blocks * whole);
    assert_non_null(w->cache);
}

static void world_free(struct world *w)
{
    cache_free(w->cache);
    epoch_free(&w->epoch);
}

/* As a reader does: inside an epoch, insert, unpin. Returns whether it was kept. */
static bool insert_one(struct world *w, cache_place *place, uint8_t content)
{
    struct epoch_slot *slot = epoch_enter(&w->epoch);
    struct cached_block *b = cached_block_new(w->cache, PAYLOAD, 0);
    memset(cached_block_payload(b), content, PAYLOAD);
    cache_insert(w->cache, place, b);
    const bool kept = cached_block_kept(b);
    cached_block_unpin(b);
    epoch_leave(slot);
    return kept;
}

static void payloads_are_aligned_and_have_slack(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 4);
    for (size_t size = 0; size < 200; size += 13) {
        struct cached_block *b = cached_block_new(w.cache, size, 0);
        uint8_t *payload = cached_block_payload(b);
        assert_int_equal((uintptr_t)payload % 64, 0);
        for (size_t i = 0; i < BLOCK_SLACK; i++)
            assert_int_equal(payload[size + i], 0);
        cached_block_unpin(b);
    }
    world_free(&w);
}

static void what_is_inserted_is_found_at_its_place(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 40);
    cache_place places[20] = {NULL};
    for (uint8_t i = 0; i < 20; i++)
        assert_true(insert_one(&w, &places[i], i));
    struct epoch_slot *slot = epoch_enter(&w.epoch);
    for (uint8_t i = 0; i < 20; i++)
        assert_int_equal(cached_block_payload(cache_peek(&places[i]))[7], i);
    epoch_leave(slot);
    cache_drop(w.cache, places, 20);
    assert_int_equal(cache_bytes(w.cache), 0);
    world_free(&w);
}

static void the_bytes_never_exceed_the_capacity(void **state)
{
    (void)state;
    static const size_t capacities[] = {0, 1, 2, 3, 10, 100};
    struct test_random random = test_random_start(31);
    for (size_t k = 0; k < sizeof capacities / sizeof *capacities; k++) {
        struct world w;
        world_make(&w, capacities[k]);
        cache_place places[200] = {NULL};
        size_t kept = 0;
        for (int round = 0; round < 2000; round++) {
            kept += insert_one(&w, &places[test_random_below(&random, 200)], 1);
            assert_true(cache_bytes(w.cache) <= cache_capacity(w.cache));
        }
        assert_true((kept > 0) == (capacities[k] > 0));
        cache_drop(w.cache, places, 200);
        world_free(&w);
    }
}

static void a_cache_of_many_blocks_keeps_every_insertion(void **state)
{
    (void)state;
    /* The room that is made ahead is what a single reader, inside its epoch, needs. */
    struct world w;
    world_make(&w, 64);
    cache_place places[500] = {NULL};
    for (size_t i = 0; i < 500; i++)
        assert_true(insert_one(&w, &places[i], 1));
    assert_true(cache_bytes(w.cache) > cache_capacity(w.cache) * 8 / 10);
    cache_drop(w.cache, places, 500);
    world_free(&w);
}

static void what_readers_still_hold_counts_until_they_leave(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 4);
    cache_place places[12] = {NULL};
    struct epoch_slot *reader = epoch_enter(&w.epoch);
    for (size_t i = 0; i < 12; i++) {
        (void)insert_one(&w, &places[i], 1);
        assert_true(cache_bytes(w.cache) <= cache_capacity(w.cache));
    }
    /* All four blocks' room is taken, also by what the reader may still look at. */
    assert_false(insert_one(&w, &places[10], 1));
    epoch_leave(reader);
    assert_true(insert_one(&w, &places[11], 1));
    cache_drop(w.cache, places, 12);
    world_free(&w);
}

static void a_visited_block_outlives_those_not_visited(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 32);
    cache_place hot = NULL, cold[100] = {NULL};
    assert_true(insert_one(&w, &hot, 9));
    for (size_t i = 0; i < 100; i++) {
        struct epoch_slot *slot = epoch_enter(&w.epoch);
        assert_non_null(cache_peek(&hot));
        epoch_leave(slot);
        (void)insert_one(&w, &cold[i], 1);
    }
    assert_non_null(atomic_load(&hot));
    assert_null(atomic_load(&cold[0]));
    cache_drop(w.cache, &hot, 1);
    cache_drop(w.cache, cold, 100);
    world_free(&w);
}

static void a_pinned_block_lives_on_when_evicted(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 8);
    cache_place first = NULL, others[50] = {NULL};
    assert_true(insert_one(&w, &first, 42));
    struct epoch_slot *slot = epoch_enter(&w.epoch);
    struct cached_block *held = atomic_load(&first);
    cached_block_pin(held);
    epoch_leave(slot);
    for (size_t i = 0; i < 50; i++)
        (void)insert_one(&w, &others[i], 1);
    assert_null(atomic_load(&first));
    assert_int_equal(cached_block_payload(held)[PAYLOAD - 1], 42);
    const size_t before = cache_bytes(w.cache);
    cache_drop(w.cache, others, 50);
    (void)epoch_reclaim(&w.epoch);
    assert_true(before > cache_bytes(w.cache));
    assert_int_equal(cache_bytes(w.cache), held->whole);
    cached_block_unpin(held);
    assert_int_equal(cache_bytes(w.cache), 0);
    world_free(&w);
}

static void the_second_of_two_equal_blocks_stays_private(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 8);
    cache_place place = NULL;
    assert_true(insert_one(&w, &place, 1));
    assert_false(insert_one(&w, &place, 2));
    assert_int_equal(cached_block_payload(atomic_load(&place))[0], 1);
    cache_drop(w.cache, &place, 1);
    world_free(&w);
}

/* ---- many at once ---- */

enum { SHARED_PLACES = 64, ROUNDS = 3000 };

struct crowd {
    struct world w;
    cache_place places[SHARED_PLACES];
    _Atomic int wrong;
};

struct member {
    struct crowd *crowd;
    uint64_t seed;
    struct thread thread;
};

static void read_one(struct crowd *crowd, uint8_t i)
{
    struct epoch_slot *slot = epoch_enter(&crowd->w.epoch);
    struct cached_block *b = cache_peek(&crowd->places[i]);
    struct cached_block *own = NULL;
    if (!b) {
        b = own = cached_block_new(crowd->w.cache, PAYLOAD, 0);
        memset(cached_block_payload(b), i, PAYLOAD);
        cache_insert(crowd->w.cache, &crowd->places[i], b);
    }
    if (cached_block_payload(b)[i] != i || cached_block_payload(b)[PAYLOAD - 1] != i)
        atomic_fetch_add(&crowd->wrong, 1);
    if (i % 8 == 0)
        cached_block_pin(b);
    cached_block_unpin(own);
    epoch_leave(slot);
    if (i % 8 == 0) {
        if (cached_block_payload(b)[PAYLOAD / 2] != i)
            atomic_fetch_add(&crowd->wrong, 1);
        cached_block_unpin(b);
    }
    if (cache_bytes(crowd->w.cache) > cache_capacity(crowd->w.cache))
        atomic_fetch_add(&crowd->wrong, 1);
}

static void member_run(void *ctx)
{
    struct member *m = ctx;
    struct test_random random = {m->seed};
    for (int i = 0; i < ROUNDS; i++)
        read_one(m->crowd, (uint8_t)test_random_below(&random, SHARED_PLACES));
}

static void many_readers_see_only_whole_blocks_within_the_bound(void **state)
{
    (void)state;
    static struct crowd crowd;
    world_make(&crowd.w, 20);
    const struct test_random random = test_random_start(32);
    struct member members[4];
    for (size_t i = 0; i < 4; i++) {
        members[i].crowd = &crowd;
        members[i].seed = random.state + i;
        assert_status(
            &crowd.w.t.op,
            thread_start(&crowd.w.t.op, &members[i].thread, "reader", member_run, &members[i]),
            TAMIZ_OK);
    }
    for (size_t i = 0; i < 4; i++)
        thread_join(&members[i].thread);
    assert_int_equal(crowd.wrong, 0);
    cache_drop(crowd.w.cache, crowd.places, SHARED_PLACES);
    (void)epoch_reclaim(&crowd.w.epoch);
    assert_int_equal(cache_bytes(crowd.w.cache), 0);
    world_free(&crowd.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_are_aligned_and_have_slack),
        cmocka_unit_test(what_is_inserted_is_found_at_its_place),
        cmocka_unit_test(the_bytes_never_exceed_the_capacity),
        cmocka_unit_test(a_cache_of_many_blocks_keeps_every_insertion),
        cmocka_unit_test(what_readers_still_hold_counts_until_they_leave),
        cmocka_unit_test(a_visited_block_outlives_those_not_visited),
        cmocka_unit_test(a_pinned_block_lives_on_when_evicted),
        cmocka_unit_test(the_second_of_two_equal_blocks_stays_private),
        cmocka_unit_test(many_readers_see_only_whole_blocks_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
