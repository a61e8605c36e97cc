/* SPDX-License-Identifier: MIT */
#include "table/index.h"

#include <stdlib.h>

#include "base/key.h"
#include "support/test.h"

/* Fences beside their index. */
struct sample {
    uint8_t (*fences)[24];
    size_t *sizes;
    size_t count;
    uint64_t data_end;
    struct buf payload;
    struct index *index;
};

static struct slice fence_of(const struct sample *s, size_t i)
{
    return slice_of(s->fences[i], s->sizes[i]);
}

static int fence_order(const void *a, const void *b)
{
    return memcmp(a, b, 24); /* made of equal size first */
}

/* Letters from `alphabet` behind `prefix`: few letters make ties in the first eight bytes. */
static void sample_make(struct sample *s, struct test_random *random, size_t wanted,
                        const char *prefix, unsigned alphabet)
{
    const size_t skip = strlen(prefix);
    s->fences = mem_new_array(&alloc_libc, wanted, sizeof *s->fences);
    s->sizes = mem_new_array(&alloc_libc, wanted, sizeof *s->sizes);
    for (size_t i = 0; i < wanted; i++) {
        memcpy(s->fences[i], prefix, skip);
        const size_t more = test_random_below(random, 13);
        for (size_t j = 0; j < more; j++)
            s->fences[i][skip + j] = (uint8_t)(255 - test_random_below(random, alphabet));
    }
    if (wanted)
        qsort(s->fences, wanted, sizeof *s->fences, fence_order);
    s->count = 0;
    for (size_t i = 0; i < wanted; i++)
        if (s->count == 0 || fence_order(s->fences[s->count - 1], s->fences[i]) != 0)
            memmove(s->fences[s->count++], s->fences[i], sizeof *s->fences);
    struct index_builder b;
    index_builder_init(&b, &alloc_libc);
    s->data_end = TABLE_HEADER_SIZE;
    for (size_t i = 0; i < s->count; i++) {
        s->sizes[i] = 24;
        while (s->sizes[i] > skip && s->fences[i][s->sizes[i] - 1] == 0)
            s->sizes[i]--;
        index_builder_add(&b, fence_of(s, i), 100 + i, 200 + i);
        s->data_end += 100 + i + BLOCK_TRAILER_SIZE;
    }
    struct test_op t;
    test_op_init(&t);
    s->payload = buf_init(&alloc_libc);
    assert_status(&t.op, index_builder_finish(&t.op, &b, &s->payload), TAMIZ_OK);
    index_builder_free(&b);
    assert_status(
        &t.op,
        index_open(&t.op, buf_slice(&s->payload), s->data_end, "x.sst", &alloc_libc, &s->index),
        TAMIZ_OK);
    assert_int_equal(index_count(s->index), s->count);
}

static void sample_free(struct sample *s, size_t wanted)
{
    mem_free(&alloc_libc, s->fences, wanted * sizeof *s->fences);
    mem_free(&alloc_libc, s->sizes, wanted * sizeof *s->sizes);
    buf_free(&s->payload);
    index_free(s->index);
}

static uint32_t plain_find(const struct sample *s, struct slice key)
{
    uint32_t i = 0;
    while (i < s->count && slice_compare(fence_of(s, i), key) < 0)
        i++;
    return i;
}

static void check_finds(const struct sample *s, struct test_random *random, const char *prefix,
                        unsigned alphabet)
{
    for (size_t probe = 0; probe < 400; probe++) {
        uint8_t key[40];
        size_t size = strlen(prefix);
        memcpy(key, prefix, size);
        if (probe % 5 == 0 && s->count) { /* a fence itself, or a little beside it */
            const size_t i = test_random_below(random, s->count);
            size = s->sizes[i];
            memcpy(key, s->fences[i], size);
            if (probe % 10 == 0)
                key[size++] = 0;
        } else {
            for (size_t more = test_random_below(random, 13); more; more--)
                key[size++] = (uint8_t)(255 - test_random_below(random, alphabet));
            if (probe % 7 == 0)
                size = test_random_below(random, size + 1); /* also in the middle of the prefix */
            if (probe % 11 == 0 && size)
                key[0]++; /* or above it */
        }
        assert_int_equal(index_find(s->index, slice_of(key, size)),
                         plain_find(s, slice_of(key, size)));
    }
}

static void a_key_is_found_in_its_block_by_every_way(void **state)
{
    (void)state;
    struct test_random random = test_random_start(21);
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 31, 272, 273, 289, 290, 700, 6000};
    static const char *const prefixes[] = {"", "p", "a long prefix"};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t p = 0; p < 3; p++) {
            const unsigned alphabet = p == 0 ? 256 : p == 1 ? 2 : 3;
            const char *prefix = p == 2 ? "a long pre" : prefixes[p];
            struct sample s;
            sample_make(&s, &random, counts[c], prefix, alphabet);
            for (int way = TREE_AVX512; way >= TREE_PORTABLE; way--)
                if (index_use(s.index, (enum tree_way)way))
                    check_finds(&s, &random, prefix, alphabet);
            sample_free(&s, counts[c]);
        }
    }
}

static void exact_node_sizes_never_lead_out_of_the_tree(void **state)
{
    (void)state;
    /* Full nodes on every layer, probed at and around every fence, the largest integer included. */
    struct test_random random = test_random_start(22);
    for (size_t step = 1; step <= 603; step++) {
        /* 16 × 17 × 17 blocks fill four layers. */
        const size_t count = step <= 600 ? step : (step - 600) * 16 * 17 * 17;
        struct index_builder b;
        index_builder_init(&b, &alloc_libc);
        for (size_t i = 0; i < count; i++) {
            const uint8_t key[9] = {255,
                                    255,
                                    255,
                                    255,
                                    255,
                                    255,
                                    (uint8_t)(255 - (count - 1 - i) / 256),
                                    (uint8_t)(255 - (count - 1 - i) % 256),
                                    1};
            index_builder_add(&b, slice_of(key, sizeof key), 10, 10);
        }
        struct test_op t;
        test_op_init(&t);
        struct buf payload = buf_init(&alloc_libc);
        struct index *index;
        assert_status(&t.op, index_builder_finish(&t.op, &b, &payload), TAMIZ_OK);
        assert_status(&t.op,
                      index_open(&t.op, buf_slice(&payload),
                                 TABLE_HEADER_SIZE + count * (10 + BLOCK_TRAILER_SIZE), "x.sst",
                                 &alloc_libc, &index),
                      TAMIZ_OK);
        for (size_t probe = 0; probe < 20; probe++) {
            const size_t i = probe ? test_random_below(&random, count) : count - 1;
            uint8_t key[9] = {255,
                              255,
                              255,
                              255,
                              255,
                              255,
                              (uint8_t)(255 - (count - 1 - i) / 256),
                              (uint8_t)(255 - (count - 1 - i) % 256),
                              1};
            assert_int_equal(index_find(index, slice_of(key, 9)), i);
            assert_int_equal(index_find(index, slice_of(key, 8)), i);
            key[8] = 2;
            assert_int_equal(index_find(index, slice_of(key, 9)), i + 1);
        }
        index_free(index);
        index_builder_free(&b);
        buf_free(&payload);
    }
}

static void sizes_become_places(void **state)
{
    (void)state;
    struct test_random random = test_random_start(23);
    struct sample s;
    sample_make(&s, &random, 300, "pre", 100);
    uint64_t offset = TABLE_HEADER_SIZE;
    for (uint32_t i = 0; i < s.count; i++) {
        const struct extent e = index_extent(s.index, i);
        assert_true(e.offset == offset && e.size == 100 + i);
        assert_int_equal(index_raw_size(s.index, i), 200 + i);
        struct slice prefix;
        const struct slice rest = index_fence(s.index, i, &prefix);
        assert_int_equal(prefix.size + rest.size, s.sizes[i]);
        assert_true(rest.size == 0 || memcmp(rest.data, s.fences[i] + prefix.size, rest.size) == 0);
        offset += e.size + BLOCK_TRAILER_SIZE;
    }
    assert_true(index_memory(s.index) > s.count * 24);
    sample_free(&s, 300);
}

static void an_index_that_does_not_end_where_the_blocks_do_is_refused(void **state)
{
    (void)state;
    struct test_random random = test_random_start(24);
    struct sample s;
    sample_make(&s, &random, 40, "pre", 100);
    static const int64_t shifts[] = {-1, 1, -109, 1000000};
    for (size_t i = 0; i < 4; i++) {
        struct test_op t;
        test_op_init(&t);
        struct index *index;
        assert_int_equal(index_open(&t.op, buf_slice(&s.payload), s.data_end + (uint64_t)shifts[i],
                                    "x.sst", &alloc_libc, &index),
                         TAMIZ_CORRUPTION);
        assert_null(index);
        assert_non_null(strstr(t.op.text, "x.sst"));
    }
    sample_free(&s, 40);
}

static void a_cut_or_mutated_index_is_refused_or_reads_within_its_bounds(void **state)
{
    (void)state;
    struct test_random random = test_random_start(25);
    struct sample s;
    sample_make(&s, &random, 30, "pre", 4);
    for (int round = 0; round < 20000; round++) {
        const size_t cut =
            round % 2 ? s.payload.size : test_random_below(&random, s.payload.size + 1);
        uint8_t *copy = mem_new(&alloc_libc, cut);
        memcpy(copy, s.payload.data, cut);
        for (uint64_t flips = test_random_below(&random, 3); cut && flips; flips--)
            copy[test_random_below(&random, cut)] = (uint8_t)test_random_u64(&random);
        struct test_op t;
        test_op_init(&t);
        struct index *index;
        if (index_open(&t.op, slice_of(copy, cut), s.data_end, "x.sst", &alloc_libc, &index) ==
            TAMIZ_OK) {
            for (size_t i = 0; i < s.count; i++)
                assert_true(index_find(index, fence_of(&s, i)) <= index_count(index));
            index_free(index);
        } else {
            assert_int_equal(t.op.status, TAMIZ_CORRUPTION);
        }
        mem_free(&alloc_libc, copy, cut);
    }
    sample_free(&s, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_found_in_its_block_by_every_way),
        cmocka_unit_test(exact_node_sizes_never_lead_out_of_the_tree),
        cmocka_unit_test(sizes_become_places),
        cmocka_unit_test(an_index_that_does_not_end_where_the_blocks_do_is_refused),
        cmocka_unit_test(a_cut_or_mutated_index_is_refused_or_reads_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
