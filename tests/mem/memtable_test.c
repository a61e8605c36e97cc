/* SPDX-License-Identifier: MIT */
#include "mem/memtable.h"

#include <stdlib.h>

#include "base/buf.h"
#include "mem/mem_filter.h"
#include "support/test.h"

static void add(struct op *op, struct memtable *m, struct slice key, uint64_t stamp,
                struct slice value)
{
    assert_status(op, memtable_add(op, m, key, hash_key(key), stamp, value), TAMIZ_OK);
}

static void add_text(struct op *op, struct memtable *m, const char *key, uint64_t seq,
                     const char *value)
{
    add(op, m, slice_of_text(key), stamp_of(seq, value ? KIND_PUT : KIND_DELETE),
        slice_of_text(value ? value : ""));
}

/* The sequence that a read at `seq` finds; 0: none. */
static uint64_t seen(struct op *op, const struct memtable *m, struct slice key, uint64_t seq)
{
    const struct lookup lookup = lookup_make(key, seq);
    uint64_t stamp;
    struct slice value;
    const tamiz_status st = memtable_get(op, m, &lookup, &stamp, &value);
    assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
    return st == TAMIZ_OK ? stamp_seq(stamp) : 0;
}

static void a_read_finds_the_newest_version_it_may_see(void **state)
{
    (void)state;
    struct test_op t;
    test_op_init(&t);
    struct memtable *m = memtable_new(&alloc_libc, 1 << 16);
    add_text(&t.op, m, "k", 1, "one");
    add_text(&t.op, m, "k", 5, NULL);
    add_text(&t.op, m, "k", 9, "nine");
    const struct slice k = slice_of_text("k");
    assert_int_equal(seen(&t.op, m, k, 0), 0);
    assert_int_equal(seen(&t.op, m, k, 4), 1);
    assert_int_equal(seen(&t.op, m, k, 5), 5);
    assert_int_equal(seen(&t.op, m, k, 8), 5);
    assert_int_equal(seen(&t.op, m, k, SEQ_MAX), 9);
    const struct lookup at5 = lookup_make(k, 5), now = lookup_make(k, SEQ_MAX);
    uint64_t stamp;
    struct slice value;
    assert_status(&t.op, memtable_get(&t.op, m, &at5, &stamp, &value), TAMIZ_OK);
    assert_int_equal(stamp_kind(stamp), KIND_DELETE);
    assert_status(&t.op, memtable_get(&t.op, m, &now, &stamp, &value), TAMIZ_OK);
    assert_true(slice_equal(value, slice_of_text("nine")));
    memtable_free(m);
}

static void a_key_is_not_its_prefix_nor_itself_with_zeroes(void **state)
{
    (void)state;
    struct test_op t;
    test_op_init(&t);
    struct memtable *m = memtable_new(&alloc_libc, 0);
    const uint8_t bytes[20] = {0};
    for (size_t size = 0; size <= sizeof bytes; size += 2)
        add(&t.op, m, slice_of(bytes, size), stamp_of(size + 1, KIND_PUT), slice_of(bytes, 0));
    for (size_t size = 0; size <= sizeof bytes; size++)
        assert_int_equal(seen(&t.op, m, slice_of(bytes, size), SEQ_MAX), size % 2 ? 0 : size + 1);
    struct iter *it = memtable_iter(&t.op, m);
    size_t size = 0;
    for (iter_seek_first(it); it->valid; iter_next(it), size += 2)
        assert_int_equal(it->key.size, size);
    assert_int_equal(size, sizeof bytes + 2);
    iter_close(it);
    memtable_free(m);
}

static void the_longest_key_and_a_huge_value_come_back(void **state)
{
    (void)state;
    struct test_op t;
    test_op_init(&t);
    struct memtable *m = memtable_new(&alloc_libc, 1 << 16);
    const size_t huge = (size_t)64 << 20;
    uint8_t *bytes = calloc(huge, 1);
    bytes[0] = 1;
    bytes[huge - 1] = 2;
    const struct slice key = slice_of(bytes, KEY_SIZE_MAX);
    add(&t.op, m, key, stamp_of(1, KIND_PUT), slice_of(bytes, huge));
    const struct lookup lookup = lookup_make(key, 1);
    uint64_t stamp;
    struct slice value;
    assert_status(&t.op, memtable_get(&t.op, m, &lookup, &stamp, &value), TAMIZ_OK);
    assert_true(slice_equal(value, slice_of(bytes, huge)));
    assert_true(memtable_bytes(m) > huge + KEY_SIZE_MAX);
    free(bytes);
    memtable_free(m);
}

/* All that was added, in an array, sorted: the model. */
struct added {
    uint8_t key[12];
    size_t size;
    uint64_t stamp;
};

static int added_compare(const void *a, const void *b)
{
    const struct added *x = a, *y = b;
    return version_compare(slice_of(x->key, x->size), x->stamp, slice_of(y->key, y->size),
                           y->stamp);
}

enum { MODEL = 3000 };

static struct memtable *model_fill(struct op *op, struct test_random *random, struct added *model,
                                   int order)
{
    struct memtable *m = memtable_new(&alloc_libc, 1 << 18);
    for (size_t i = 0; i < MODEL; i++) {
        struct added *a = &model[i];
        memset(a->key, 0, sizeof a->key);
        a->size = order ? 4 : test_random_below(random, sizeof a->key + 1);
        for (size_t k = 0; k < a->size; k++)
            a->key[k] = (uint8_t)(test_random_below(random, 3) * 127);
        const uint32_t n = (uint32_t)(order > 0 ? i / 2 : MODEL - i / 2);
        for (size_t k = 0; order && k < 4; k++)
            a->key[k] = (uint8_t)(n >> (24 - 8 * k));
        a->stamp = stamp_of(i + 1, i % 5 ? KIND_PUT : KIND_DELETE);
        add(op, m, slice_of(a->key, a->size), a->stamp, slice_of(&a->stamp, 8));
    }
    qsort(model, MODEL, sizeof *model, added_compare);
    return m;
}

static void assert_at(const struct iter *it, const struct added *model, size_t i)
{
    assert_int_equal(it->valid, i < MODEL);
    if (!it->valid)
        return;
    assert_true(slice_equal(it->key, slice_of(model[i].key, model[i].size)));
    assert_true(it->stamp == model[i].stamp);
    assert_true(slice_equal(it->value, slice_of(&model[i].stamp, 8)));
}

/* Index of the first version that is not below the target. */
static size_t model_seek(const struct added *model, struct slice key, uint64_t stamp)
{
    size_t i = 0;
    while (i < MODEL &&
           version_compare(slice_of(model[i].key, model[i].size), model[i].stamp, key, stamp) < 0)
        i++;
    return i;
}

static void check_walks(struct op *op, const struct memtable *m, const struct added *model)
{
    struct iter *it = memtable_iter(op, m);
    size_t i = 0;
    for (iter_seek_first(it); it->valid; iter_next(it))
        assert_at(it, model, i++);
    assert_int_equal(i, MODEL);
    for (iter_seek_last(it); it->valid; iter_prev(it))
        assert_at(it, model, --i);
    assert_int_equal(i, 0);
    iter_close(it);
}

static void check_seeks(struct op *op, const struct memtable *m, const struct added *model,
                        struct test_random *random)
{
    struct iter *it = memtable_iter(op, m);
    for (int round = 0; round < 1000; round++) {
        struct added a = model[test_random_below(random, MODEL)];
        if (a.size && round % 3 == 0)
            a.key[a.size - 1] ^= 1;
        const uint64_t stamps[] = {0, a.stamp - 1, a.stamp, a.stamp + 1, UINT64_MAX};
        const uint64_t stamp = stamps[test_random_below(random, 5)];
        const struct slice key = slice_of(a.key, a.size);
        const size_t i = model_seek(model, key, stamp);
        iter_seek(it, key, stamp);
        assert_at(it, model, i);
        iter_seek_before(it, key, stamp);
        assert_at(it, model, i - 1); /* i = 0: SIZE_MAX, which is no index */
        const struct lookup lookup = {key, hash_key(key), stamp};
        uint64_t got;
        struct slice value;
        const bool there = i < MODEL && slice_equal(slice_of(model[i].key, model[i].size), key);
        assert_status(op, memtable_get(op, m, &lookup, &got, &value),
                      there ? TAMIZ_OK : TAMIZ_NOT_FOUND);
        assert_true(got == (there ? model[i].stamp : 0));
    }
    iter_close(it);
}

/* None that is there is sifted out, and few that are not stay. */
static void check_sift(const struct memtable *m, const struct added *model)
{
    size_t stay = 0;
    for (size_t i = 0; i + 64 <= MODEL; i += 64) {
        uint64_t hashes[64];
        for (size_t k = 0; k < 64; k++)
            hashes[k] = hash_key(slice_of(model[i + k].key, model[i + k].size));
        assert_true(memtable_sift(m, hashes, 64) == UINT64_MAX);
        for (size_t k = 0; k < 64; k++)
            hashes[k] = hash_key(slice_of(&hashes[k], 8));
        stay += (size_t)__builtin_popcountll(memtable_sift(m, hashes, 64));
    }
    assert_true(stay < MODEL / 20);
}

static void what_is_not_there_is_sifted_out(void **state)
{
    (void)state;
    struct test_op t;
    test_op_init(&t);
    struct memtable *m = memtable_new(&alloc_libc, 1 << 16);
    const struct slice from = slice_of_text("c"), to = slice_of_text("d");
    const uint64_t hashes[] = {hash_key(slice_of_text("a")), hash_key(slice_of_text("cc"))};
    assert_true(memtable_sift(m, hashes, 2) == 0);
    add(&t.op, m, slice_of_text("a"), stamp_of(1, KIND_PUT), to);
    assert_true(memtable_sift(m, hashes, 2) == 1);
    assert_status(&t.op,
                  memtable_add(&t.op, m, from, hash_key(from), stamp_of(2, KIND_RANGE_DELETE), to),
                  TAMIZ_OK);
    assert_true((memtable_sift(m, hashes, 2) & 3) == 3); /* a range may cover any key */
    memtable_free(m);
}

static void any_order_of_adding_reads_like_a_sorted_array(void **state)
{
    (void)state;
    struct test_random random = test_random_start(7);
    struct test_op t;
    test_op_init(&t);
    struct added *model = calloc(MODEL, sizeof *model);
    for (int order = -1; order <= 1; order++) { /* descending, random, ascending */
        struct memtable *m = model_fill(&t.op, &random, model, order);
        assert_int_equal(memtable_count(m), MODEL);
        check_walks(&t.op, m, model);
        check_seeks(&t.op, m, model, &random);
        check_sift(m, model);
        memtable_free(m);
    }
    free(model);
}

/* Enough for a root above inner nodes above leaves. `step` spreads what comes one after the other.
 */
static void deep_check(struct op *op, uint32_t keys, uint32_t step)
{
    struct memtable *m = memtable_new(&alloc_libc, (size_t)keys * 48);
    for (uint32_t i = 0; i < keys; i++) {
        char key[24];
        const size_t size =
            (size_t)snprintf(key, sizeof key, "%016u", (uint32_t)((uint64_t)i * step % keys));
        add(op, m, slice_of(key, size), stamp_of(i + 1, KIND_PUT), slice_of(&i, 4));
    }
    struct iter *it = memtable_iter(op, m);
    uint32_t n = 0;
    for (iter_seek_first(it); it->valid; iter_next(it), n++) {
        char key[24];
        const size_t size = (size_t)snprintf(key, sizeof key, "%016u", n);
        assert_true(slice_equal(it->key, slice_of(key, size)));
        if (n % 7 == 0)
            assert_true(seen(op, m, it->key, SEQ_MAX) == stamp_seq(it->stamp));
    }
    assert_int_equal(n, keys);
    for (iter_seek_last(it); it->valid; iter_prev(it))
        n--;
    assert_int_equal(n, 0);
    iter_close(it);
    memtable_free(m);
}

static void a_large_one_is_in_order_however_it_was_filled(void **state)
{
    (void)state;
    struct test_op t;
    test_op_init(&t);
    deep_check(&t.op, 150001, 1);      /* ascending */
    deep_check(&t.op, 150001, 150000); /* descending */
    deep_check(&t.op, 150001, 70003);  /* two ascending streams, in turns */
    deep_check(&t.op, 150001, 92717);  /* all over */
}

static void many_versions_of_one_key_are_each_found(void **state)
{
    (void)state;
    struct test_op t;
    test_op_init(&t);
    struct memtable *m = memtable_new(&alloc_libc, 1 << 20);
    enum { TIMES = 5000 };
    for (uint64_t seq = 1; seq <= TIMES; seq++) {
        add_text(&t.op, m, "counter", 2 * seq, "x");
        if (seq % 100 == 0)
            add_text(&t.op, m, "counter behind", seq, "y");
    }
    for (uint64_t seq = 0; seq <= 2 * TIMES + 1; seq++)
        assert_int_equal(seen(&t.op, m, slice_of_text("counter"), seq), seq / 2 * 2);
    assert_int_equal(seen(&t.op, m, slice_of_text("counter behind"), SEQ_MAX), TIMES);
    memtable_free(m);
}

static void an_empty_one_has_nothing_at_either_end(void **state)
{
    (void)state;
    struct test_op t;
    test_op_init(&t);
    struct memtable *m = memtable_new(&alloc_libc, 1 << 20);
    struct iter *it = memtable_iter(&t.op, m);
    iter_seek_first(it);
    assert_false(it->valid);
    iter_seek_last(it);
    assert_false(it->valid);
    iter_seek(it, slice_of_text("x"), 0);
    assert_false(it->valid);
    iter_seek_before(it, slice_of_text("x"), 0);
    assert_false(it->valid);
    iter_close(it);
    assert_int_equal(seen(&t.op, m, slice_of(NULL, 0), SEQ_MAX), 0);
    assert_int_equal(memtable_count(m), 0);
    memtable_free(m);
}

static void count_step(void *ctx, const tamiz_step_info *step)
{
    uint64_t *steps = ctx;
    steps[step->kind]++;
}

static void every_search_is_one_step_and_most_absent_keys_end_at_the_filter(void **state)
{
    (void)state;
    struct test_op t;
    uint64_t steps[TAMIZ_STEP_COUNT] = {0};
    const tamiz_trace trace = {count_step, steps};
    test_op_init(&t);
    op_listen(&t.op, &trace);
    enum { KEYS = 10000 };
    struct memtable *m = memtable_new(&alloc_libc, KEYS * 96);
    for (uint32_t i = 0; i < KEYS; i++)
        add(&t.op, m, slice_of(&i, 4), stamp_of(i + 1, KIND_PUT), slice_of(NULL, 0));
    for (uint32_t i = 0; i < KEYS; i++)
        assert_int_equal(seen(&t.op, m, slice_of(&i, 4), SEQ_MAX), i + 1);
    assert_int_equal(steps[TAMIZ_STEP_MEMTABLE], KEYS);
    assert_int_equal(steps[TAMIZ_STEP_MEMTABLE_FILTER], 0);
    for (uint32_t i = KEYS; i < 2 * KEYS; i++)
        assert_int_equal(seen(&t.op, m, slice_of(&i, 4), SEQ_MAX), 0);
    const uint64_t denied = steps[TAMIZ_STEP_MEMTABLE_FILTER];
    assert_int_equal(steps[TAMIZ_STEP_MEMTABLE] + denied, 2 * KEYS);
    assert_true(denied > KEYS * 97 / 100); /* theory for 10 bits in lines of 512: 1.3 % get past */
    memtable_free(m);
}

static void a_filter_denies_no_member_however_small_it_is(void **state)
{
    (void)state;
    struct test_random random = test_random_start(11);
    for (uint64_t keys = 0; keys < 300; keys += 37) {
        struct mem_filter f;
        assert_true(mem_filter_init(&f, &alloc_libc, keys));
        uint64_t hashes[400];
        for (size_t i = 0; i < 400; i++)
            mem_filter_add(&f,
                           hashes[i] = test_random_u64(&random) | (i % 2 ? UINT64_MAX << 40 : 0));
        for (size_t i = 0; i < 400; i++)
            assert_true(mem_filter_may_contain(&f, hashes[i]));
        mem_filter_free(&f, &alloc_libc);
    }
}

/* An allocator that has memory for `left` more calls and knows what is in use. */
struct stingy {
    int left;
    size_t used;
};

static void *stingy_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct stingy *s = ctx;
    if (new_size > old_size && s->left-- <= 0)
        return NULL;
    s->used += new_size - old_size;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

static void memory_that_runs_out_leaves_it_as_it_was(void **state)
{
    (void)state;
    struct test_op t;
    for (int calls = 0; calls < 40; calls++) {
        struct stingy s = {calls, 0};
        const struct alloc alloc = {{stingy_resize, &s}, NULL};
        test_op_init(&t);
        struct memtable *m = memtable_new(&alloc, 1 << 12);
        uint64_t added = 0;
        uint8_t value[300] = {0};
        while (m && memtable_add(&t.op, m, slice_of(&added, 8), hash_key(slice_of(&added, 8)),
                                 stamp_of(1, KIND_PUT), slice_of(value, sizeof value)) == TAMIZ_OK)
            added++;
        assert_int_equal(t.op.status, m ? TAMIZ_OUT_OF_MEMORY : TAMIZ_OK);
        assert_true(!m || memtable_count(m) == added);
        for (uint64_t k = 0; m && k <= added; k++)
            assert_int_equal(seen(&t.op, m, slice_of(&k, 8), SEQ_MAX), k < added ? 1 : 0);
        assert_true(!m || memtable_iter(&t.op, m) == NULL);
        assert_true(!m || memtable_bytes(m) <= s.used);
        memtable_free(m);
        assert_int_equal(s.used, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_finds_the_newest_version_it_may_see),
        cmocka_unit_test(a_key_is_not_its_prefix_nor_itself_with_zeroes),
        cmocka_unit_test(the_longest_key_and_a_huge_value_come_back),
        cmocka_unit_test(any_order_of_adding_reads_like_a_sorted_array),
        cmocka_unit_test(what_is_not_there_is_sifted_out),
        cmocka_unit_test(a_large_one_is_in_order_however_it_was_filled),
        cmocka_unit_test(many_versions_of_one_key_are_each_found),
        cmocka_unit_test(an_empty_one_has_nothing_at_either_end),
        cmocka_unit_test(every_search_is_one_step_and_most_absent_keys_end_at_the_filter),
        cmocka_unit_test(a_filter_denies_no_member_however_small_it_is),
        cmocka_unit_test(memory_that_runs_out_leaves_it_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
