/* SPDX-License-Identifier: MIT
 *
 * The heap against a list of who has what: pieces never overlap, keep their bytes, and all memory
 * comes back. LABEL: threads
 */
#include "table/heap.h"

#include "support/test.h"

enum { PIECES = 400 };

struct piece {
    uint8_t *at;
    size_t size;
    uint8_t content;
};

static struct heap *heap_make(void)
{
    struct heap *h = heap_new(&alloc_libc);
    assert_non_null(h);
    return h;
}

static void piece_take(struct heap *h, struct piece *p, size_t size, uint8_t content)
{
    p->at = heap_take(h, size);
    p->size = size;
    p->content = content;
    assert_non_null(p->at);
    assert_true((uintptr_t)p->at % HEAP_ALIGN == 0);
    memset(p->at, content, size);
}

static void piece_give(struct heap *h, struct piece *p)
{
    for (size_t i = 0; i < p->size; i++)
        assert_int_equal(p->at[i], p->content);
    heap_give(h, p->at);
    p->at = NULL;
}

/* Of blocks' sizes mostly, some tiny, some larger than a chunk. */
static size_t some_size(struct test_random *random)
{
    switch (test_random_below(random, 8)) {
    case 0: return test_random_below(random, 64);
    case 1: return test_random_below(random, 700000);
    default: return 4000 + test_random_below(random, 400);
    }
}

static void churn(struct heap *h, struct test_random *random, int rounds)
{
    struct piece pieces[PIECES] = {{NULL, 0, 0}};
    for (int i = 0; i < rounds; i++) {
        struct piece *p = &pieces[test_random_below(random, PIECES)];
        if (p->at)
            piece_give(h, p);
        else
            piece_take(h, p, some_size(random), (uint8_t)i);
    }
    for (size_t i = 0; i < PIECES; i++)
        if (pieces[i].at)
            piece_give(h, &pieces[i]);
}

static void pieces_keep_their_bytes_whatever_comes_and_goes(void **state)
{
    (void)state;
    struct test_random random = test_random_start(71);
    struct heap *h = heap_make();
    churn(h, &random, 5000);
    /* All is one free piece a chunk again, and all chunks but the last are gone. */
    assert_true(heap_bytes(h) <= 32 << 20);
    heap_free(h);
}

static void what_was_given_back_is_taken_again(void **state)
{
    (void)state;
    struct heap *h = heap_make();
    struct piece p[64];
    for (size_t i = 0; i < 64; i++)
        piece_take(h, &p[i], 4200, 1);
    const size_t bytes = heap_bytes(h);
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < 64; i += 2)
            piece_give(h, &p[i]);
        for (size_t i = 0; i < 64; i += 2)
            piece_take(h, &p[i], 4200, 2);
    }
    assert_int_equal(heap_bytes(h), bytes);
    for (size_t i = 0; i < 64; i++)
        piece_give(h, &p[i]);
    heap_free(h);
}

/* As a cache does: one leaves, another comes, and what stood around the first stays. */
static void a_hole_is_filled_by_the_next_of_its_size(void **state)
{
    (void)state;
    enum { HELD = 200, SIZE = 4200 };
    struct test_random random = test_random_start(73);
    struct heap *h = heap_make();
    struct piece p[HELD];
    for (size_t i = 0; i < HELD; i++)
        piece_take(h, &p[i], SIZE, 1);
    const size_t bytes = heap_bytes(h), untouched = heap_untouched(h);
    for (int round = 0; round < 5000; round++) {
        struct piece *one = &p[test_random_below(&random, HELD)];
        piece_give(h, one);
        piece_take(h, one, SIZE, 2);
    }
    assert_int_equal(heap_bytes(h), bytes);
    assert_int_equal(heap_untouched(h), untouched);
    for (size_t i = 0; i < HELD; i++)
        piece_give(h, &p[i]);
    heap_free(h);
}

static void what_nobody_had_is_known(void **state)
{
    (void)state;
    enum { SIZE = 100 << 10, PAGE = 4096 };
    struct heap *h = heap_make();
    struct piece a, b;
    piece_take(h, &a, SIZE, 1);
    const size_t had = heap_bytes(h) - heap_untouched(h);
    assert_true(had >= SIZE && had <= SIZE + 2 * PAGE);
    piece_take(h, &b, SIZE, 2);
    assert_true(heap_bytes(h) - heap_untouched(h) >= 2 * SIZE);
    piece_give(h, &a);
    piece_give(h, &b); /* joined with what nobody had: that stays known */
    const size_t later = heap_bytes(h) - heap_untouched(h);
    assert_true(later >= 2 * SIZE && later <= 2 * SIZE + 2 * PAGE);
    heap_free(h);
}

static void neighbours_are_joined(void **state)
{
    (void)state;
    struct heap *h = heap_make();
    struct piece small[40], large;
    for (size_t i = 0; i < 40; i++)
        piece_take(h, &small[i], 4000, 3);
    const size_t bytes = heap_bytes(h);
    for (size_t i = 0; i < 40; i++) /* odd ones last: each joins on both sides */
        piece_give(h, &small[i % 20 * 2 + i / 20]);
    piece_take(h, &large, 39 * 4000, 4);
    assert_int_equal(heap_bytes(h), bytes);
    piece_give(h, &large);
    heap_free(h);
}

static void it_is_an_allocator_that_resizes(void **state)
{
    (void)state;
    struct heap *h = heap_make();
    const struct alloc *a = heap_alloc(h);
    uint8_t *p = mem_new(a, 10);
    assert_non_null(p);
    memset(p, 7, 10);
    p = mem_resize(a, p, 10, 40);
    p = mem_resize(a, p, 40, 100000);
    for (int i = 0; i < 10; i++)
        assert_int_equal(p[i], 7);
    p = mem_resize(a, p, 100000, 5);
    assert_int_equal(p[4], 7);
    mem_free(a, p, 5);
    heap_free(h);
}

static void *refuse(void *ctx, void *p, size_t old_size, size_t new_size)
{
    int *left = ctx;
    if (!new_size) {
        mem_free(&alloc_libc, p, old_size);
        return NULL;
    }
    if (--*left < 0)
        return NULL;
    return mem_resize(&alloc_libc, p, old_size, new_size);
}

static void memory_that_is_out_is_said(void **state)
{
    (void)state;
    int left = 3; /* the heap itself, a counter for its making, one chunk */
    const struct alloc few = {{refuse, &left}, NULL};
    struct heap *h = heap_new(&few);
    assert_non_null(h);
    void *p = heap_take(h, 1000);
    assert_non_null(p);
    assert_null(heap_take(h, 1 << 20));
    assert_null(heap_take(h, SIZE_MAX));
    assert_non_null(p);
    heap_give(h, p);
    heap_free(h);
}

static void *churn_some(void *arg)
{
    struct test_random random = {.state = (uint64_t)(uintptr_t)&random};
    churn(arg, &random, 500);
    return NULL;
}

static void threads_share_one(void **state)
{
    (void)state;
    struct heap *h = heap_make();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn_some, h), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    heap_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_keep_their_bytes_whatever_comes_and_goes),
        cmocka_unit_test(what_was_given_back_is_taken_again),
        cmocka_unit_test(a_hole_is_filled_by_the_next_of_its_size),
        cmocka_unit_test(what_nobody_had_is_known),
        cmocka_unit_test(neighbours_are_joined),
        cmocka_unit_test(it_is_an_allocator_that_resizes),
        cmocka_unit_test(memory_that_is_out_is_said),
        cmocka_unit_test(threads_share_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
