/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/coding.h"
#include "base/key.h"
#include "support/test.h"

static void varints_come_back_and_take_the_bytes_they_say(void **state)
{
    (void)state;
    const uint64_t samples[] = {0,         1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_C(1) << 63,
                                UINT64_MAX};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        uint8_t bytes[VARINT_MAX];
        const size_t size = (size_t)(varint_store(bytes, samples[i]) - bytes);
        assert_int_equal(size, varint_size(samples[i]));
        struct reader r = reader_of(slice_of(bytes, size));
        assert_true(reader_varint(&r) == samples[i] && !r.bad && reader_left(&r) == 0);
        struct reader cut = reader_of(slice_of(bytes, size - 1));
        assert_true(reader_varint(&cut) == 0 && cut.bad);
    }
}

static void a_varint_of_more_than_64_bits_is_bad(void **state)
{
    (void)state;
    const uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01};
    const uint8_t too_large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    struct reader a = reader_of(slice_of(eleven, sizeof eleven));
    struct reader b = reader_of(slice_of(too_large, sizeof too_large));
    assert_true(reader_varint(&a) == 0 && a.bad);
    assert_true(reader_varint(&b) == 0 && b.bad);
}

static void a_reader_never_runs_off_its_end(void **state)
{
    (void)state;
    const uint8_t bytes[] = {5, 'a', 'b'};
    struct reader r = reader_of(slice_of(bytes, sizeof bytes));
    assert_int_equal(reader_block(&r).size, 0);
    assert_true(r.bad);
    assert_int_equal(reader_u64(&r), 0);
    struct reader empty = reader_of(slice_of(NULL, 0));
    assert_int_equal(reader_take(&empty, 0).size, 0);
    assert_false(empty.bad);
    assert_int_equal(reader_u8(&empty), 0);
    assert_true(empty.bad);
}

static void the_first_eight_bytes_order_as_memcmp_does(void **state)
{
    (void)state;
    const char *keys[] = {"", "a", "aa", "aaaaaaaa", "aaaaaaab", "b", "\xff\xff"};
    for (size_t i = 0; i + 1 < sizeof keys / sizeof *keys; i++) {
        const struct slice a = slice_of_text(keys[i]), b = slice_of_text(keys[i + 1]);
        assert_true(slice_prefix8(a, 0) <= slice_prefix8(b, 0));
        assert_true(slice_compare(a, b) < 0);
    }
    assert_true(slice_prefix8(slice_of("abcdefghi", 9), 1) == UINT64_C(0x6263646566676869));
    assert_true(slice_prefix8(slice_of("abcdefghi", 9), 2) == UINT64_C(0x6364656667686900));
    assert_true(slice_prefix8(slice_of("abcdefghi", 9), 8) == UINT64_C(0x6900000000000000));
    assert_true(slice_prefix8(slice_of("abcdefghi", 9), 9) == 0);
    assert_true(slice_prefix8(slice_of("abcdefghi", 9), 20) == 0);
    assert_true(slice_prefix8(slice_of("abcdefg", 7), 2) == UINT64_C(0x6364656667000000));
    assert_true(slice_prefix8(slice_of("abcdefg", 7), 7) == 0);
}

static void a_separator_lies_between_and_is_not_longer(void **state)
{
    (void)state;
    struct test_random random = test_random_start(1);
    for (int round = 0; round < 20000; round++) {
        uint8_t x[6], y[6], out[6];
        const size_t xs = test_random_below(&random, 7), ys = test_random_below(&random, 7);
        for (size_t i = 0; i < 6; i++) {
            x[i] = (uint8_t)(test_random_below(&random, 4) * 85);
            y[i] = (uint8_t)(test_random_below(&random, 4) * 85);
        }
        struct slice a = slice_of(x, xs), b = slice_of(y, ys);
        if (slice_compare(a, b) == 0)
            continue;
        if (slice_compare(a, b) > 0) {
            const struct slice swap = a;
            a = b;
            b = swap;
        }
        const struct slice s = slice_of(out, key_separator(a, b, out));
        assert_true(slice_compare(a, s) <= 0 && slice_compare(s, b) < 0 && s.size <= a.size);
    }
}

static void the_key_hash_is_frozen(void **state)
{
    (void)state;
    /* Part of the format: a filter or a tag written by one build is read by another. */
    assert_true(hash_key(slice_of_text("")) == tamiz_hash("", 0));
    assert_true(tamiz_hash(NULL, 0) == tamiz_hash("", 0));
    assert_true(hash_key(slice_of_text("tamiz")) != hash_key(slice_of_text("tamis")));
}

static void many_keys_hash_as_each_does(void **state)
{
    (void)state;
    enum { N = 37, SIZE_MOST = 300 };
    static uint8_t keys[N * SIZE_MOST];
    struct test_random random = test_random_start(19);
    uint64_t hashes[N + 1];
    for (size_t i = 0; i < sizeof keys; i++)
        keys[i] = (uint8_t)test_random_u64(&random);
    for (size_t size = 0; size <= SIZE_MOST; size++) {
        hashes[N] = 7;
        tamiz_hash_many(keys, size, N, hashes);
        for (size_t i = 0; i < N; i++)
            assert_true(hashes[i] == tamiz_hash(keys + i * size, size));
        assert_int_equal(hashes[N], 7);
    }
    tamiz_hash_many(NULL, 8, 0, hashes);
    tamiz_hash_many(NULL, 0, 1, hashes);
    assert_true(hashes[0] == tamiz_hash("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_come_back_and_take_the_bytes_they_say),
        cmocka_unit_test(a_varint_of_more_than_64_bits_is_bad),
        cmocka_unit_test(a_reader_never_runs_off_its_end),
        cmocka_unit_test(the_first_eight_bytes_order_as_memcmp_does),
        cmocka_unit_test(a_separator_lies_between_and_is_not_longer),
        cmocka_unit_test(the_key_hash_is_frozen),
        cmocka_unit_test(many_keys_hash_as_each_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
