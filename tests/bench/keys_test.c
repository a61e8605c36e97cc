/* SPDX-License-Identifier: MIT
 *
 * What the benchmarks rely on: orders that visit each key once, values that are checked to the last
 * byte, a skew that is Zipf's, percentiles that are right.
 */
#include "support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "histogram.h"
#include "keys.h"

static void a_permutation_visits_each_index_once(void **state)
{
    static const uint64_t counts[] = {1, 2, 3, 7, 64, 1000, 65536, 100003};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const struct permutation p = permutation_make(counts[c], c);
        uint8_t *seen = calloc(counts[c], 1);
        assert_non_null(seen);
        for (uint64_t i = 0; i < counts[c]; i++) {
            const uint64_t at = permutation_at(&p, i);
            assert_true(at < counts[c]);
            assert_false(seen[at]++);
        }
        free(seen);
    }
}

static void another_seed_is_another_order(void **state)
{
    const struct permutation a = permutation_make(100000, 1), b = permutation_make(100000, 2);
    int same = 0;
    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        same += permutation_at(&a, i) == permutation_at(&b, i);
    assert_true(same < 10);
}

static void keys_are_sixteen_digits_and_read_back(void **state)
{
    uint8_t key[KEY_SIZE];
    (void)state;
    key_write(1234567890123456, key);
    assert_memory_equal(key, "1234567890123456", KEY_SIZE);
    key_write(42, key);
    assert_memory_equal(key, "0000000000000042", KEY_SIZE);
    assert_int_equal(key_read(key), 42);
    key[3] = 'x';
    assert_true(key_read(key) == UINT64_MAX);
}

static void a_value_with_one_flipped_bit_is_wrong(void **state)
{
    static const size_t sizes[] = {16, 17, 99, 100, 101, 1000};
    uint8_t value[1000];
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (uint32_t generation = 0; generation < 3; generation++) {
            value_write(77, generation, value, sizes[s]);
            assert_true(value_right(77, value, sizes[s]));
            assert_false(value_right(78, value, sizes[s]));
            for (size_t i = 0; i < sizes[s]; i++) {
                value[i] ^= 1;
                assert_false(value_right(77, value, sizes[s]));
                value[i] ^= 1;
            }
        }
}

/* Rank r has the share (r + 1)^-theta / zeta. */
static void zipf_ranks_have_their_shares(void **state)
{
    enum { DRAWS = 1000000, RANKS = 1000 };
    const struct zipf z = zipf_make(RANKS, 0.99);
    struct random r = {5};
    static uint64_t drawn[RANKS];
    double zeta = 0;
    (void)state;
    for (int i = 0; i < DRAWS; i++)
        drawn[zipf_next(&z, &r)]++;
    for (int i = 1; i <= RANKS; i++)
        zeta += pow(i, -0.99);
    for (int i = 0; i < 2; i++) {
        const double expected = DRAWS * pow(i + 1, -0.99) / zeta;
        assert_true(fabs((double)drawn[i] - expected) < 5 * sqrt(expected));
    }
    /* From the third rank on, Gray's method is an approximation. */
    double tail = 0, tail_expected = 0;
    for (int i = 100; i < RANKS; i++) {
        tail += (double)drawn[i];
        tail_expected += DRAWS * pow(i + 1, -0.99) / zeta;
    }
    assert_true(fabs(tail / tail_expected - 1) < 0.05);
}

static void percentiles_are_within_three_percent(void **state)
{
    static struct histogram h, other;
    (void)state;
    memset(&h, 0, sizeof h);
    memset(&other, 0, sizeof other);
    for (uint64_t i = 1; i <= 1000000; i++)
        histogram_add(i % 2 ? &h : &other, i, 1);
    histogram_merge(&h, &other);
    assert_int_equal(h.count, 1000000);
    assert_int_equal(h.max, 1000000);
    assert_true(fabs(histogram_percentile(&h, 0.5) / 500000 - 1) < 0.03);
    assert_true(fabs(histogram_percentile(&h, 0.99) / 990000 - 1) < 0.03);
    assert_true(fabs(histogram_percentile(&h, 0.999) / 999000 - 1) < 0.03);
    assert_true(histogram_percentile(&h, 1) <= 1000000);
}

static void every_time_has_a_bucket(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 64; shift++)
        assert_true(histogram_bucket(UINT64_C(1) << shift) < HISTOGRAM_BUCKETS);
    assert_true(histogram_bucket(UINT64_MAX) < HISTOGRAM_BUCKETS);
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_permutation_visits_each_index_once),
        cmocka_unit_test(another_seed_is_another_order),
        cmocka_unit_test(keys_are_sixteen_digits_and_read_back),
        cmocka_unit_test(a_value_with_one_flipped_bit_is_wrong),
        cmocka_unit_test(zipf_ranks_have_their_shares),
        cmocka_unit_test(percentiles_are_within_three_percent),
        cmocka_unit_test(every_time_has_a_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
