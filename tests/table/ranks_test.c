/* SPDX-License-Identifier: MIT */
#include "support/test.h"
#include "table/ranks.h"

#include <stdlib.h>

/* A block's keys in one of some shapes, and where a search for one has to land. */
enum shape { DIGITS, BYTES, LETTERS, DEEP, SHAPES };

struct key {
    uint8_t bytes[120];
    size_t size;
};

static struct slice slice_of_key(const struct key *k)
{
    return slice_of(k->bytes, k->size);
}

static int key_order(const void *a, const void *b)
{
    return slice_compare(slice_of_key(a), slice_of_key(b));
}

static struct key make(struct test_random *random, enum shape shape)
{
    struct key k = {.size = 16};
    switch (shape) {
    case DIGITS: /* neighbours, across a change of the hundreds */
        (void)snprintf((char *)k.bytes, sizeof k.bytes, "%016u",
                       7860 + (unsigned)test_random_below(random, 90));
        break;
    case BYTES:
        for (size_t i = 0; i < k.size; i++)
            k.bytes[i] = (uint8_t)test_random_below(random, 256);
        break;
    case LETTERS: /* of any size, one often the beginning of another */
        k.size = test_random_below(random, 12);
        for (size_t i = 0; i < k.size; i++)
            k.bytes[i] = (uint8_t)("\x00\x01\xff"[test_random_below(random, 3)]);
        break;
    case DEEP: /* alike for about as long as ranks can skip */
        k.size = 60 + test_random_below(random, 16);
        memset(k.bytes, 'x', k.size);
        k.bytes[k.size - 1] = (uint8_t)test_random_below(random, 256);
        break;
    case SHAPES: break;
    }
    return k;
}

struct ranked {
    struct key *keys;
    size_t count;
    struct buf payload, room;
    struct block block;
};

static void ranked_make(struct ranked *r, struct test_random *random, enum shape shape, size_t most)
{
    struct block_builder b;
    struct test_op t;
    test_op_init(&t);
    r->keys = mem_new_array(&alloc_libc, most, sizeof *r->keys);
    for (size_t i = 0; i < most; i++)
        r->keys[i] = make(random, shape);
    qsort(r->keys, most, sizeof *r->keys, key_order);
    block_builder_init(&b, &alloc_libc);
    r->count = 0;
    for (size_t i = 0; i < most; i++) {
        if (r->count && key_order(&r->keys[r->count - 1], &r->keys[i]) == 0)
            continue;
        r->keys[r->count] = r->keys[i];
        const struct slice key = slice_of_key(&r->keys[r->count++]);
        block_builder_add(&b, key, hash_key(key), stamp_of(9, KIND_PUT), slice_of_text("v"));
    }
    r->payload = r->room = buf_init(&alloc_libc);
    assert_status(&t.op, block_builder_finish(&t.op, &b, &r->payload), TAMIZ_OK);
    block_builder_free(&b);
    assert_true(buf_reserve(&r->payload, BLOCK_SLACK));
    memset(r->payload.data + r->payload.size, 0, BLOCK_SLACK);
    assert_true(block_open(buf_slice(&r->payload), &r->block));
}

static void ranked_free(struct ranked *r, size_t most)
{
    mem_free(&alloc_libc, r->keys, most * sizeof *r->keys);
    buf_free(&r->payload);
    buf_free(&r->room);
}

/* false: it shares too much for ranks, or is too small. */
static bool give_ranks(struct ranked *r)
{
    const size_t size = ranks_size(&r->block);
    if (size == 0)
        return false;
    assert_true(buf_reserve(&r->room, size));
    struct ranks *ranks = (struct ranks *)(void *)r->room.data;
    assert_true(ranks_fill(&r->block, ranks));
    r->block.ranks = ranks;
    return true;
}

static void a_search_by_ranks_lands_where_halving_does(void **state)
{
    (void)state;
    struct test_random random = test_random_start(77);
    size_t with[SHAPES] = {0};
    for (int round = 0; round < 400; round++) {
        const enum shape shape = (enum shape)(round % SHAPES);
        const size_t most = 1 + test_random_below(&random, round % 40 ? 60 : 700);
        struct ranked r;
        ranked_make(&r, &random, shape, most);
        const struct block plain = r.block;
        with[shape] += give_ranks(&r);
        for (int probe = 0; probe < 100; probe++) {
            const struct key k =
                probe % 3 ? make(&random, shape) : r.keys[test_random_below(&random, r.count)];
            const uint64_t stamp = probe % 2 ? UINT64_MAX : stamp_of(3, KIND_PUT);
            assert_int_equal(block_lower_bound(&r.block, slice_of_key(&k), stamp),
                             block_lower_bound(&plain, slice_of_key(&k), stamp));
        }
        ranked_free(&r, most);
    }
    for (int shape = 0; shape < SHAPES; shape++)
        assert_true(with[shape] > 20);
}

/* What they are for: the number alone leads to the entry, in the keys of a usual block. */
static void neighbours_in_digits_have_ranks_of_their_own(void **state)
{
    (void)state;
    struct test_random random = test_random_start(78);
    struct ranked r;
    ranked_make(&r, &random, DIGITS, 60);
    assert_true(give_ranks(&r));
    for (size_t i = 0; i < r.count; i++) {
        const struct block_near near = ranks_near(&r.block, slice_of_key(&r.keys[i]));
        assert_true(near.from <= i && i < near.end && near.end - near.from <= 2);
    }
    ranked_free(&r, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_by_ranks_lands_where_halving_does),
        cmocka_unit_test(neighbours_in_digits_have_ranks_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
