/* SPDX-License-Identifier: MIT
 *
 * A batch is one record: it comes back whole and in order, or not at all.
 */
#include "log/batch.h"

#include "log/log_image.h"
#include "support/test.h"

static void four_writes(struct op *op, struct batch *b)
{
    static uint8_t large[70000];
    memset(large, 'v', sizeof large);
    batch_init(b, &alloc_libc);
    assert_status(op, batch_add(op, b, KIND_PUT, 0, slice_of_text("a"), slice_of_text("1")),
                  TAMIZ_OK);
    assert_status(op,
                  batch_add(op, b, KIND_PUT, 3, slice_of_text("b"), slice_of(large, sizeof large)),
                  TAMIZ_OK);
    assert_status(op, batch_add(op, b, KIND_DELETE, 0, slice_of_text("c"), slice_of(NULL, 0)),
                  TAMIZ_OK);
    assert_status(op, batch_add(op, b, KIND_PUT, 0, slice_of(NULL, 0), slice_of(NULL, 0)),
                  TAMIZ_OK);
}

static void check_four(struct batch_reader *r, uint64_t first)
{
    struct batch_write w;
    assert_true(batch_next(r, &w));
    assert_true(w.kind == KIND_PUT && w.keyspace == 0 && w.seq == first);
    assert_true(slice_equal(w.key, slice_of_text("a")) && slice_equal(w.value, slice_of_text("1")));
    assert_true(batch_next(r, &w));
    assert_true(w.kind == KIND_PUT && w.keyspace == 3 && w.seq == first + 1);
    assert_true(w.value.size == 70000 && w.value.data[69999] == 'v');
    assert_true(batch_next(r, &w));
    assert_true(w.kind == KIND_DELETE && w.seq == first + 2 && w.value.size == 0);
    assert_true(batch_next(r, &w));
    assert_true(w.kind == KIND_PUT && w.seq == first + 3 && w.key.size == 0 && w.value.size == 0);
    assert_false(batch_next(r, &w));
}

/* Status of batch_open on `body`; the words are looked at too. */
static tamiz_status open_body(struct slice body, uint64_t *count)
{
    struct test_op t;
    struct batch_reader r;
    struct batch_write w;
    uint64_t first, walked = 0;
    test_op_init(&t);
    const tamiz_status st = batch_open(&t.op, body, &r, &first, count);
    while (batch_next(&r, &w))
        walked++;
    assert_true(walked == *count); /* none of a refused one */
    if (st < 0)
        assert_true(st == TAMIZ_CORRUPTION && t.op.status == st && strlen(t.op.text) > 10);
    return st;
}

static void writes_come_back_with_kind_keyspace_sequence_and_bytes(void **state)
{
    (void)state;
    struct test_op t;
    struct batch b;
    struct batch_reader r;
    struct buf body = buf_init(&alloc_libc);
    uint64_t first, count;
    test_op_init(&t);
    four_writes(&t.op, &b);
    batch_walk(&b, 900, &r);
    check_four(&r, 900);
    batch_head(&body, 900, b.count);
    buf_slice_append(&body, buf_slice(&b.body));
    assert_status(&t.op, batch_open(&t.op, buf_slice(&body), &r, &first, &count), TAMIZ_OK);
    assert_true(first == 900 && count == 4);
    check_four(&r, 900);
    batch_clear(&b);
    batch_walk(&b, 1, &r);
    struct batch_write w;
    assert_false(batch_next(&r, &w));
    buf_free(&body);
    batch_free(&b);
}

static void several_batches_make_one_record(void **state)
{
    (void)state;
    struct test_op t;
    struct batch a, b;
    struct batch_reader r;
    struct buf body = buf_init(&alloc_libc);
    uint64_t first, count;
    test_op_init(&t);
    four_writes(&t.op, &a);
    batch_init(&b, &alloc_libc);
    assert_status(&t.op,
                  batch_add(&t.op, &b, KIND_DELETE, 0, slice_of_text("z"), slice_of(NULL, 0)),
                  TAMIZ_OK);
    batch_head(&body, 5, a.count + b.count);
    buf_slice_append(&body, buf_slice(&a.body));
    buf_slice_append(&body, buf_slice(&b.body));
    assert_status(&t.op, batch_open(&t.op, buf_slice(&body), &r, &first, &count), TAMIZ_OK);
    assert_true(first == 5 && count == 5);
    buf_free(&body);
    batch_free(&a);
    batch_free(&b);
}

static void R10_a_batch_in_the_log_is_there_whole_or_not_at_all(void **state)
{
    (void)state;
    struct journal j;
    struct batch b;
    struct buf head = buf_init(&alloc_libc);
    journal_start(&j, LOG_WAL);
    struct op *op = &j.t.op;
    four_writes(op, &b);
    batch_head(&head, 7, b.count);
    const struct slice pieces[] = {buf_slice(&head), buf_slice(&b.body)};
    assert_status(op, log_append(op, &j.w, pieces, 2), TAMIZ_OK);
    journal_image(&j);
    const size_t record = j.image.size - LOG_HEADER_SIZE;
    for (size_t n = 0; n <= record; n += n < 200 ? 1 : 331) {
        struct log_reader r;
        struct slice body;
        bool empty;
        struct buf copy = image_copy(slice_of(j.image.data, j.image.size - n));
        assert_status(op, log_reader_open_bytes(op, &copy, "log", LOG_WAL, &r, &empty), TAMIZ_OK);
        const tamiz_status st = log_next(op, &r, IMAGE_BOOT, &body);
        assert_status(op, st, n == 0 ? TAMIZ_OK : TAMIZ_NOT_FOUND);
        if (n == 0) {
            struct batch_reader in;
            uint64_t first, count;
            assert_status(op, batch_open(op, body, &in, &first, &count), TAMIZ_OK);
            check_four(&in, 7);
        }
        log_reader_close(&r);
    }
    buf_free(&head);
    batch_free(&b);
    journal_free(&j);
}

static void R22_a_body_that_is_no_batch_is_refused_whole(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t size;
        uint8_t bytes[16];
    } bad[] = {
        {"nothing", 0, {0}},
        {"no count", 1, {1}},
        {"count too high", 5, {1, 2, KIND_DELETE, 0, 0}},
        {"count too low", 8, {1, 1, KIND_DELETE, 0, 0, KIND_DELETE, 0, 0}},
        {"unknown kind", 5, {1, 1, 2, 0, 0}},
        {"kind 255", 5, {1, 1, 255, 0, 0}},
        {"key past the end", 6, {1, 1, KIND_DELETE, 0, 2, 'k'}},
        {"value past the end", 7, {1, 1, KIND_PUT, 0, 1, 'k', 1}},
        {"no value", 6, {1, 1, KIND_PUT, 0, 1, 'k'}},
        {"eleven-byte varint",
         13,
         {1, 1, KIND_DELETE, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}},
        {"varint of 65 bits",
         14,
         {1, 1, KIND_DELETE, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0}},
        {"put for a time, 7 bytes", 14, {1, 1, KIND_EXPIRING, 0, 1, 'k', 7, 0, 0, 0, 0, 0, 0, 0}},
        {"truncated varint", 4, {1, 1, KIND_DELETE, 0x80}},
        {"key of 65536 bytes", 7, {1, 1, KIND_DELETE, 0, 0x80, 0x80, 0x04}},
        {"sequence above 2^60",
         13,
         {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 1, KIND_DELETE, 0, 0}},
        {"last sequence above 2^60",
         16,
         {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, KIND_DELETE, 0, 0, KIND_DELETE,
          0, 0}},
        {"count of 2^63", 12, {1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t count;
        const tamiz_status st = open_body(slice_of(bad[i].bytes, bad[i].size), &count);
        if (st != TAMIZ_CORRUPTION || count != 0)
            fail_msg("%s: %s", bad[i].what, tamiz_status_name(st));
    }
    /* The largest sequence there is. */
    static const uint8_t last[] = {0xff, 0xff, 0xff, 0xff,        0xff, 0xff, 0xff,
                                   0xff, 0x0f, 1,    KIND_DELETE, 0,    0};
    uint64_t count;
    assert_int_equal(open_body(slice_of(last, sizeof last), &count), TAMIZ_OK);
    assert_int_equal(count, 1);
}

static void R22_key_and_value_sizes_end_where_the_store_says(void **state)
{
    (void)state;
    static uint8_t key[KEY_SIZE_MAX + 1];
    for (size_t size = KEY_SIZE_MAX; size <= KEY_SIZE_MAX + 1; size++) {
        struct test_op t;
        struct batch b;
        struct buf body = buf_init(&alloc_libc);
        uint64_t count;
        test_op_init(&t);
        batch_init(&b, &alloc_libc);
        assert_status(&t.op,
                      batch_add(&t.op, &b, KIND_DELETE, 0, slice_of(key, size), slice_of(NULL, 0)),
                      TAMIZ_OK);
        batch_head(&body, 1, 1);
        buf_slice_append(&body, buf_slice(&b.body));
        assert_int_equal(open_body(buf_slice(&body), &count),
                         size > KEY_SIZE_MAX ? TAMIZ_CORRUPTION : TAMIZ_OK);
        buf_free(&body);
        batch_free(&b);
    }
}

static void R22_a_batch_cut_or_flipped_anywhere_is_sane(void **state)
{
    (void)state;
    struct test_random random = test_random_start(10);
    struct test_op t;
    struct batch b;
    struct buf body = buf_init(&alloc_libc);
    uint64_t count;
    test_op_init(&t);
    batch_init(&b, &alloc_libc);
    for (uint64_t i = 0; i < 12; i++)
        assert_status(&t.op,
                      batch_add(&t.op, &b, i % 3 ? KIND_PUT : KIND_DELETE, i,
                                slice_of("0123456789", i), slice_of("abcdefghijkl", 12 - i)),
                      TAMIZ_OK);
    batch_head(&body, 1000, b.count);
    buf_slice_append(&body, buf_slice(&b.body));
    for (size_t size = 0; size < body.size; size++)
        assert_int_equal(open_body(slice_of(body.data, size), &count), TAMIZ_CORRUPTION);
    for (int round = 0; round < 20000; round++) {
        struct buf copy = image_copy(buf_slice(&body));
        for (uint64_t i = 1 + test_random_below(&random, 3); i; i--)
            copy.data[test_random_below(&random, copy.size)] = (uint8_t)test_random_u64(&random);
        (void)open_body(buf_slice(&copy), &count);
        buf_free(&copy);
    }
    buf_free(&body);
    batch_free(&b);
}

/* ---- memory that runs out ---- */

static void *no_more(void *ctx, void *p, size_t old_size, size_t new_size)
{
    size_t *left = ctx;
    if (new_size == 0)
        return mem_free(&alloc_libc, p, old_size), NULL;
    if (new_size > *left)
        return NULL;
    return mem_resize(&alloc_libc, p, old_size, new_size);
}

static void a_write_that_finds_no_memory_leaves_the_batch_as_it_was(void **state)
{
    (void)state;
    static uint8_t value[5000];
    size_t most = 1000;
    const struct alloc small = {{no_more, &most}, NULL};
    struct test_op t;
    struct batch b;
    struct batch_reader r;
    struct batch_write w;
    test_op_init(&t);
    batch_init(&b, &small);
    assert_status(&t.op, batch_add(&t.op, &b, KIND_PUT, 0, slice_of_text("k"), slice_of_text("v")),
                  TAMIZ_OK);
    assert_status(
        &t.op, batch_add(&t.op, &b, KIND_PUT, 0, slice_of_text("l"), slice_of(value, sizeof value)),
        TAMIZ_OUT_OF_MEMORY);
    op_forgive(&t.op);
    assert_status(&t.op,
                  batch_add(&t.op, &b, KIND_PUT, 0, slice_of_text("l"), slice_of(value, SIZE_MAX)),
                  TAMIZ_OUT_OF_MEMORY);
    assert_true(b.count == 1 && !b.body.failed);
    batch_walk(&b, 1, &r);
    assert_true(batch_next(&r, &w) && slice_equal(w.key, slice_of_text("k")));
    assert_false(batch_next(&r, &w));
    batch_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_come_back_with_kind_keyspace_sequence_and_bytes),
        cmocka_unit_test(several_batches_make_one_record),
        cmocka_unit_test(R10_a_batch_in_the_log_is_there_whole_or_not_at_all),
        cmocka_unit_test(R22_a_body_that_is_no_batch_is_refused_whole),
        cmocka_unit_test(R22_key_and_value_sizes_end_where_the_store_says),
        cmocka_unit_test(R22_a_batch_cut_or_flipped_anywhere_is_sane),
        cmocka_unit_test(a_write_that_finds_no_memory_leaves_the_batch_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
