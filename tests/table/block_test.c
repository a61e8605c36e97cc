/* SPDX-License-Identifier: MIT */
#include "base/coding.h"
#include "support/test.h"
#include "table/block_walk.h"
#include "table/columns.h"
#include "table/tags.h"

#include <stdlib.h>

/* ---- a block beside a plain array of what is in it ---- */

struct version {
    uint8_t key[40];
    size_t key_size;
    uint64_t stamp;
    uint8_t value[600];
    size_t value_size;
};

struct sample {
    struct version *versions;
    size_t count;
    struct buf payload; /* BLOCK_SLACK bytes of room behind */
    struct block block;
};

static struct slice key_of(const struct version *v)
{
    return slice_of(v->key, v->key_size);
}

static struct slice value_of(const struct version *v)
{
    return slice_of(v->value, v->value_size);
}

static int version_order(const void *a, const void *b)
{
    const struct version *x = a, *y = b;
    return version_compare(key_of(x), x->stamp, key_of(y), y->stamp);
}

/* Few letters, so that keys share prefixes and come in several versions. */
static void version_make(struct test_random *random, struct version *v, size_t value_most)
{
    v->key_size = test_random_below(random, 9);
    for (size_t i = 0; i < v->key_size; i++)
        v->key[i] = (uint8_t)("ab\x00\xff"[test_random_below(random, 4)]);
    const uint64_t seq = test_random_below(random, 400);
    v->stamp = stamp_of(seq, test_random_below(random, 2) ? KIND_PUT : KIND_DELETE);
    v->value_size = test_random_below(random, value_most + 1);
    memset(v->value, (int)test_random_below(random, 256), sizeof v->value);
}

static void sample_make(struct sample *s, struct test_random *random, size_t count,
                        size_t value_most)
{
    s->versions = mem_new_array(&alloc_libc, count, sizeof *s->versions);
    for (size_t i = 0; i < count; i++)
        version_make(random, &s->versions[i], value_most);
    if (count)
        qsort(s->versions, count, sizeof *s->versions, version_order);
    s->count = 0;
    struct block_builder b;
    block_builder_init(&b, &alloc_libc);
    for (size_t i = 0; i < count; i++) {
        if (s->count && version_order(&s->versions[s->count - 1], &s->versions[i]) == 0)
            continue;
        struct version *v = &s->versions[s->count++];
        *v = s->versions[i];
        block_builder_add(&b, key_of(v), hash_key(key_of(v)), v->stamp, value_of(v));
    }
    struct test_op t;
    test_op_init(&t);
    s->payload = buf_init(&alloc_libc);
    const size_t size = block_builder_size(&b);
    assert_status(&t.op, block_builder_finish(&t.op, &b, &s->payload), TAMIZ_OK);
    assert_int_equal(s->payload.size, size);
    block_builder_free(&b);
    assert_true(buf_reserve(&s->payload, BLOCK_SLACK));
    memset(s->payload.data + s->payload.size, 0, BLOCK_SLACK);
    assert_true(block_open(buf_slice(&s->payload), &s->block));
    assert_int_equal(s->block.count, s->count);
}

static void sample_free(struct sample *s, size_t count)
{
    mem_free(&alloc_libc, s->versions, count * sizeof *s->versions);
    buf_free(&s->payload);
}

static size_t plain_lower_bound(const struct sample *s, struct slice key, uint64_t stamp)
{
    size_t i = 0;
    while (i < s->count &&
           version_compare(key_of(&s->versions[i]), s->versions[i].stamp, key, stamp) < 0)
        i++;
    return i;
}

/* ---- tests ---- */

static void tags_are_matched_alike_by_both_ways(void **state)
{
    (void)state;
    struct test_random random = test_random_start(11);
    for (int round = 0; round < 20000; round++) {
        uint8_t tags[TAGS_STRIDE];
        for (size_t i = 0; i < sizeof tags; i++)
            tags[i] = (uint8_t)("\x00\x01\x7f\x80\xff\x41"[test_random_below(&random, 6)]);
        const uint8_t tag = tags[test_random_below(&random, TAGS_STRIDE)];
        uint32_t expected = 0;
        for (unsigned i = 0; i < TAGS_STRIDE; i++)
            expected |= (uint32_t)(tags[i] == tag) << i;
        assert_int_equal(tags_match(tags, tag), expected);
        assert_int_equal(tags_match_portable(tags, tag), expected);
    }
}

static void every_entry_comes_back_in_order(void **state)
{
    (void)state;
    struct test_random random = test_random_start(12);
    for (size_t round = 0; round < 60; round++) {
        const size_t count = test_random_below(&random, 200);
        struct sample s;
        sample_make(&s, &random, count, round % 3 ? 20 : 600);
        for (uint32_t i = 0; i < s.count; i++) {
            struct block_entry e;
            assert_true(block_entry_at(&s.block, i, &e));
            const struct version *v = &s.versions[i];
            assert_int_equal(block_entry_compare(&e, key_of(v)), 0);
            assert_int_equal(e.shared.size + e.suffix.size, v->key_size);
            assert_true(e.stamp == v->stamp && slice_equal(e.value, value_of(v)));
        }
        struct block_entry beyond;
        assert_false(block_entry_at(&s.block, (uint32_t)s.count, &beyond));
        sample_free(&s, count);
    }
}

static void a_walk_shows_what_each_entry_is_whichever_way_it_goes(void **state)
{
    (void)state;
    struct test_random random = test_random_start(16);
    struct block_walk walk;
    uint64_t at;
    block_walk_init(&walk, &alloc_libc);
    for (size_t round = 0; round < 60; round++) {
        const size_t count = 1 + test_random_below(&random, 200);
        struct sample s;
        sample_make(&s, &random, count, round % 3 ? 20 : 600);
        block_walk_enter(&walk, &s.block);
        for (uint32_t step = 0; step < 4 * s.count; step++) {
            const uint32_t i = step < s.count       ? step
                               : step < 2 * s.count ? 2 * (uint32_t)s.count - 1 - step
                                                    : (uint32_t)test_random_below(&random, s.count);
            const struct version *v = &s.versions[i];
            assert_int_equal(block_walk_at(&walk, i, &at), TAMIZ_OK);
            assert_true(slice_equal(walk.at_key, key_of(v)));
            assert_true(at == v->stamp && slice_equal(walk.value, value_of(v)));
        }
        assert_int_equal(block_walk_at(&walk, (uint32_t)s.count, &at), TAMIZ_CORRUPTION);
        sample_free(&s, count);
    }
    buf_free(&walk.key);
}

/* Steps where they are taken, goes there by number where not; now and then it jumps. */
static void a_walk_that_steps_shows_what_each_entry_is(void **state)
{
    (void)state;
    struct test_random random = test_random_start(19);
    struct block_walk walk;
    uint64_t at;
    size_t steps = 0;
    block_walk_init(&walk, &alloc_libc);
    for (size_t round = 0; round < 60; round++) {
        const size_t count = 1 + test_random_below(&random, 200);
        struct sample s;
        sample_make(&s, &random, count, round % 3 ? 20 : 600);
        block_walk_enter(&walk, &s.block);
        assert_int_equal(block_walk_at(&walk, 0, &at), TAMIZ_OK);
        for (uint32_t i = 1, left = 6 * (uint32_t)s.count; left; left--, i++) {
            if (i == s.count || test_random_below(&random, 12) == 0) {
                assert_true(i < s.count || !block_walk_step(&walk));
                i = (uint32_t)test_random_below(&random, s.count);
                assert_int_equal(block_walk_at(&walk, i, &at), TAMIZ_OK);
            } else if (block_walk_step(&walk)) {
                assert_int_equal(stamp_kind(s.versions[i].stamp), KIND_PUT);
                steps++;
            } else {
                assert_int_equal(block_walk_at(&walk, i, &at), TAMIZ_OK);
            }
            const struct version *v = &s.versions[i];
            assert_int_equal(walk.entry, i);
            assert_true(slice_equal(walk.at_key, key_of(v)));
            assert_true(slice_equal(walk.value, value_of(v)));
            assert_true(block_walk_stamp(&walk) == v->stamp);
        }
        sample_free(&s, count);
    }
    assert_true(steps > 1000);
    buf_free(&walk.key);
}

static void a_point_read_finds_the_newest_visible_version(void **state)
{
    (void)state;
    struct test_random random = test_random_start(13);
    for (size_t round = 0; round < 100; round++) {
        const size_t count = 1 + test_random_below(&random, 300);
        struct sample s;
        sample_make(&s, &random, count, 20);
        for (int probe = 0; probe < 200; probe++) {
            struct version v;
            version_make(&random, &v, 0);
            const struct lookup lookup = lookup_make(key_of(&v), test_random_below(&random, 401));
            const size_t i = plain_lower_bound(&s, lookup.key, lookup.stamp_max);
            const bool there = i < s.count && slice_equal(key_of(&s.versions[i]), lookup.key);
            uint64_t stamp = 0;
            struct slice value = {NULL, 0};
            const tamiz_status st = block_find(&s.block, &lookup, &stamp, &value);
            assert_int_equal(st, there ? TAMIZ_OK : TAMIZ_NOT_FOUND);
            if (there)
                assert_true(stamp == s.versions[i].stamp &&
                            slice_equal(value, value_of(&s.versions[i])));
        }
        sample_free(&s, count);
    }
}

static void a_lower_bound_lands_on_the_first_not_before(void **state)
{
    (void)state;
    struct test_random random = test_random_start(14);
    for (size_t round = 0; round < 100; round++) {
        const size_t count = test_random_below(&random, 120);
        struct sample s;
        sample_make(&s, &random, count, 3);
        for (int probe = 0; probe < 200; probe++) {
            struct version v;
            version_make(&random, &v, 0);
            const uint64_t stamp = probe % 4 == 0 ? UINT64_MAX : probe % 4 == 1 ? 0 : v.stamp;
            assert_int_equal(block_lower_bound(&s.block, key_of(&v), stamp),
                             plain_lower_bound(&s, key_of(&v), stamp));
        }
        sample_free(&s, count);
    }
}

static void keys_with_one_tag_are_told_apart(void **state)
{
    (void)state;
    /* All entries get the same hash: the tags tell nothing, the keys everything. */
    struct block_builder b;
    block_builder_init(&b, &alloc_libc);
    char text[16];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(text, sizeof text, "key%04d", 2 * i);
        uint8_t number[4];
        store_u32(number, (uint32_t)i);
        block_builder_add(&b, slice_of_text(text), 77, stamp_of(5, KIND_PUT), slice_of(number, 4));
    }
    struct test_op t;
    test_op_init(&t);
    struct buf payload = buf_init(&alloc_libc);
    assert_status(&t.op, block_builder_finish(&t.op, &b, &payload), TAMIZ_OK);
    assert_true(buf_reserve(&payload, BLOCK_SLACK));
    struct block block;
    assert_true(block_open(buf_slice(&payload), &block));
    for (int i = 0; i < 200; i++) {
        (void)snprintf(text, sizeof text, "key%04d", i);
        const struct lookup lookup = {slice_of_text(text), 77, UINT64_MAX};
        uint64_t stamp;
        struct slice value;
        const tamiz_status st = block_find(&block, &lookup, &stamp, &value);
        assert_int_equal(st, i % 2 ? TAMIZ_NOT_FOUND : TAMIZ_OK);
        if (st == TAMIZ_OK)
            assert_int_equal(load_u32(value.data), i / 2);
    }
    block_builder_free(&b);
    buf_free(&payload);
}

static void large_values_widen_the_offsets(void **state)
{
    (void)state;
    const size_t size = 70000;
    uint8_t *big = mem_new_array(&alloc_libc, 1, size);
    struct block_builder b;
    block_builder_init(&b, &alloc_libc);
    const struct slice first = slice_of_text("a"), second = slice_of_text("b");
    block_builder_add(&b, first, hash_key(first), stamp_of(1, KIND_PUT), slice_of(big, size));
    block_builder_add(&b, second, hash_key(second), stamp_of(2, KIND_DELETE), slice_of(NULL, 0));
    struct test_op t;
    test_op_init(&t);
    struct buf payload = buf_init(&alloc_libc);
    assert_status(&t.op, block_builder_finish(&t.op, &b, &payload), TAMIZ_OK);
    assert_true(buf_reserve(&payload, BLOCK_SLACK));
    struct block block;
    assert_true(block_open(buf_slice(&payload), &block));
    assert_int_equal(block.width, 4);
    const struct lookup lookup = lookup_make(second, SEQ_MAX);
    uint64_t stamp = 0;
    struct slice value;
    assert_int_equal(block_find(&block, &lookup, &stamp, &value), TAMIZ_OK);
    assert_int_equal(stamp_kind(stamp), KIND_DELETE);
    block_builder_free(&b);
    buf_free(&payload);
    mem_free(&alloc_libc, big, size);
}

/* Everything a reader can ask of a block; only that it ends matters here. */
static void read_all(const struct block *b, struct slice key)
{
    struct block_entry e;
    for (uint32_t i = 0; i < b->count && block_entry_at(b, i, &e); i++)
        (void)block_entry_compare(&e, key);
    struct block_walk walk;
    uint64_t at;
    block_walk_init(&walk, &alloc_libc);
    block_walk_enter(&walk, b);
    for (uint32_t i = 0; i < b->count && block_walk_at(&walk, i, &at) == TAMIZ_OK; i++)
        for (int n = 0; n < 4 && block_walk_step(&walk); n++)
            (void)slice_compare(walk.at_key, key);
    buf_free(&walk.key);
    const struct lookup lookup = lookup_make(key, 100);
    uint64_t stamp;
    struct slice value;
    (void)block_find(b, &lookup, &stamp, &value);
    (void)block_lower_bound(b, key, UINT64_MAX);
}

static void a_cut_or_mutated_block_is_read_within_its_bounds(void **state)
{
    (void)state;
    struct test_random random = test_random_start(15);
    struct sample s;
    sample_make(&s, &random, 60, 12);
    const size_t size = s.payload.size;
    for (int round = 0; round < 20000; round++) {
        /* A copy of its own size, so that a step too far is seen. */
        const size_t cut = round % 2 ? size : test_random_below(&random, size + 1);
        uint8_t *copy = mem_new_array(&alloc_libc, 1, cut + BLOCK_SLACK);
        memcpy(copy, s.payload.data, cut);
        for (uint64_t flips = test_random_below(&random, 4); cut && flips; flips--)
            copy[test_random_below(&random, cut)] = (uint8_t)test_random_u64(&random);
        struct block b;
        if (block_open(slice_of(copy, cut), &b))
            read_all(&b, key_of(&s.versions[test_random_below(&random, s.count)]));
        mem_free(&alloc_libc, copy, cut + BLOCK_SLACK);
    }
    sample_free(&s, 60);
}

static void an_unknown_kind_of_entry_is_refused(void **state)
{
    (void)state;
    struct block_builder b;
    block_builder_init(&b, &alloc_libc);
    const struct slice key = slice_of_text("a");
    block_builder_add(&b, key, hash_key(key), UINT64_C(5) << 4 | 4, slice_of_text("x"));
    struct test_op t;
    test_op_init(&t);
    struct buf payload = buf_init(&alloc_libc);
    assert_status(&t.op, block_builder_finish(&t.op, &b, &payload), TAMIZ_OK);
    assert_true(buf_reserve(&payload, BLOCK_SLACK));
    struct block block;
    assert_true(block_open(buf_slice(&payload), &block));
    struct block_entry e;
    assert_false(block_entry_at(&block, 0, &e));
    const struct lookup lookup = lookup_make(key, SEQ_MAX);
    uint64_t stamp;
    struct slice value;
    assert_int_equal(block_find(&block, &lookup, &stamp, &value), TAMIZ_CORRUPTION);
    assert_int_equal(block_lower_bound(&block, key, 0), UINT32_MAX);
    block_builder_free(&b);
    buf_free(&payload);
}

/* ---- columns ---- */

/* In memory of exactly what is asked for, so that a step too far is seen. */
static bool expand(struct slice columns, size_t size, uint8_t *payload)
{
    uint8_t *room = mem_new(&alloc_libc, columns_room(size));
    memset(room, 1, columns_room(size)); /* behind the columns: what would be more of them */
    if (columns.size)
        memcpy(room, columns.data, columns.size);
    const bool made = columns_expand(room, columns.size, payload, size);
    mem_free(&alloc_libc, room, columns_room(size));
    return made;
}

static void a_block_comes_back_from_its_columns_byte_for_byte(void **state)
{
    (void)state;
    struct test_random random = test_random_start(18);
    for (size_t round = 0; round < 200; round++) {
        const size_t count = 1 + test_random_below(&random, 200);
        struct sample s;
        sample_make(&s, &random, count, round % 3 ? 20 : 600); /* offsets of 2 bytes, of 4 */
        struct buf columns = buf_init(&alloc_libc);
        assert_true(columns_append(&s.block, &columns));
        assert_int_equal(columns.size, s.block.entries.size);
        const size_t size = s.payload.size;
        uint8_t *made = mem_new(&alloc_libc, size + BLOCK_SLACK);
        assert_true(expand(buf_slice(&columns), size, made));
        assert_memory_equal(made, s.payload.data, size);
        mem_free(&alloc_libc, made, size + BLOCK_SLACK);
        buf_free(&columns);
        sample_free(&s, count);
    }
}

static void columns_have_the_keys_of_a_group_however_long(void **state)
{
    (void)state;
    enum { LONG = 60000 };
    uint8_t *key = mem_new_array(&alloc_libc, 1, LONG);
    struct test_op t;
    test_op_init(&t);
    struct block_builder b;
    struct buf payload = buf_init(&alloc_libc), columns = buf_init(&alloc_libc);
    block_builder_init(&b, &alloc_libc);
    for (size_t i = 0; i < 40; i++) { /* they share more and less in turn */
        const size_t size = i % 2 ? LONG : LONG - 30000 + i;
        key[10 + i] = (uint8_t)(i + 1);
        block_builder_add(&b, slice_of(key, size), hash_key(slice_of(key, size)),
                          stamp_of(9, KIND_PUT), slice_of_text("v"));
    }
    assert_status(&t.op, block_builder_finish(&t.op, &b, &payload), TAMIZ_OK);
    assert_true(buf_reserve(&payload, BLOCK_SLACK));
    struct block block;
    assert_true(block_open(buf_slice(&payload), &block) && columns_append(&block, &columns));
    uint8_t *made = mem_new(&alloc_libc, payload.size + BLOCK_SLACK);
    assert_true(expand(buf_slice(&columns), payload.size, made));
    assert_memory_equal(made, payload.data, payload.size);
    mem_free(&alloc_libc, made, payload.size + BLOCK_SLACK);
    mem_free(&alloc_libc, key, LONG);
    block_builder_free(&b);
    buf_free(&payload);
    buf_free(&columns);
}

/* Sizes that contradict each other, and bytes that do. What becomes a block has those columns. */
static void columns_that_are_none_are_refused_within_their_bounds(void **state)
{
    (void)state;
    struct test_random random = test_random_start(19);
    struct sample s;
    sample_make(&s, &random, 60, 12);
    struct buf good = buf_init(&alloc_libc), bad = buf_init(&alloc_libc);
    assert_true(columns_append(&s.block, &good));
    size_t refused = 0, made = 0;
    for (int round = 0; round < 20000; round++) {
        const size_t size = s.payload.size + (round % 4 ? 0 : test_random_below(&random, 9)) -
                            (round % 4 ? 0 : test_random_below(&random, 9));
        const size_t cut = round % 3 ? 0 : test_random_below(&random, good.size);
        buf_clear(&bad);
        buf_append(&bad, good.data, good.size - cut);
        for (uint64_t flips = test_random_below(&random, 3); flips; flips--)
            bad.data[test_random_below(&random, bad.size)] = (uint8_t)test_random_u64(&random);
        uint8_t *payload = mem_new(&alloc_libc, size + BLOCK_SLACK);
        struct block b;
        struct buf again = buf_init(&alloc_libc);
        if (!expand(buf_slice(&bad), size, payload)) {
            refused++;
        } else {
            made++;
            assert_true(block_open(slice_of(payload, size), &b));
            if (columns_append(&b, &again))
                assert_true(slice_equal(buf_slice(&again), buf_slice(&bad)));
            read_all(&b, key_of(&s.versions[0]));
        }
        buf_free(&again);
        mem_free(&alloc_libc, payload, size + BLOCK_SLACK);
    }
    assert_true(refused > 1000 && made > 1000);
    assert_false(expand(slice_of(NULL, 0), BLOCK_HEADER_SIZE, s.payload.data)); /* of no entries */
    buf_free(&good);
    buf_free(&bad);
    sample_free(&s, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_matched_alike_by_both_ways),
        cmocka_unit_test(every_entry_comes_back_in_order),
        cmocka_unit_test(a_walk_shows_what_each_entry_is_whichever_way_it_goes),
        cmocka_unit_test(a_walk_that_steps_shows_what_each_entry_is),
        cmocka_unit_test(a_point_read_finds_the_newest_visible_version),
        cmocka_unit_test(a_lower_bound_lands_on_the_first_not_before),
        cmocka_unit_test(keys_with_one_tag_are_told_apart),
        cmocka_unit_test(large_values_widen_the_offsets),
        cmocka_unit_test(a_cut_or_mutated_block_is_read_within_its_bounds),
        cmocka_unit_test(an_unknown_kind_of_entry_is_refused),
        cmocka_unit_test(a_block_comes_back_from_its_columns_byte_for_byte),
        cmocka_unit_test(columns_have_the_keys_of_a_group_however_long),
        cmocka_unit_test(columns_that_are_none_are_refused_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
