/* SPDX-License-Identifier: MIT
 *
 * Filters that change, against a reference that knows every key: what was added and not removed is
 * never denied; what is said to be absent is; the promised rate is kept.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "support/test.h"

static tamiz_filter *filter_new(const char *text, uint64_t capacity)
{
    tamiz_filter_policy policy;
    tamiz_filter *filter;
    assert_public(tamiz_filter_policy_parse(text, &policy), TAMIZ_OK);
    assert_public(tamiz_filter_new(&policy, capacity, &filter), TAMIZ_OK);
    return filter;
}

static tamiz_filter_info info_of(const tamiz_filter *filter)
{
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    tamiz_filter_info_get(filter, &info);
    return info;
}

static void assert_rate(const tamiz_filter *filter, struct test_random *random)
{
    enum { PROBES = 300000 };
    const double expected = info_of(filter).expected_fpr;
    uint64_t found = 0;
    for (int i = 0; i < PROBES; i++)
        found += tamiz_filter_may_contain(filter, test_random_u64(random));
    const double sigma = sqrt(PROBES * expected * (1 - expected));
    if (fabs((double)found - PROBES * expected) > 5 * sigma + 3)
        fail_msg("%llu false positives, expected %g", (unsigned long long)found, PROBES * expected);
}

static const char *const growing[] = {"bloom", "bloom:fpr=0.02", "counting", "cuckoo", "scalable"};
enum { GROWING = sizeof growing / sizeof *growing };

static void adding_to_its_capacity_keeps_the_promise(void **state)
{
    (void)state;
    struct test_random random = test_random_start(11);
    static const uint64_t capacities[] = {0, 1, 2, 7, 100, 1000, 50000};
    for (size_t p = 0; p < GROWING; p++)
        for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
            tamiz_filter *filter = filter_new(growing[p], capacities[c]);
            const uint64_t seed = random.state;
            for (uint64_t i = 0; i < capacities[c]; i++)
                assert_public(tamiz_filter_add(filter, test_random_u64(&random)), TAMIZ_OK);
            struct test_random again = {seed};
            for (uint64_t i = 0; i < capacities[c]; i++)
                assert_true(tamiz_filter_may_contain(filter, test_random_u64(&again)));
            assert_rate(filter, &random);
            tamiz_filter_free(filter);
        }
}

static void an_image_of_a_changed_filter_is_that_filter(void **state)
{
    (void)state;
    struct test_random random = test_random_start(12);
    for (size_t p = 0; p < GROWING; p++) {
        tamiz_filter *filter = filter_new(growing[p], 500), *again;
        for (int i = 0; i < 500; i++)
            assert_public(tamiz_filter_add(filter, test_random_u64(&random)), TAMIZ_OK);
        void *bytes;
        size_t size;
        assert_public(tamiz_filter_serialize(filter, &bytes, &size), TAMIZ_OK);
        assert_public(tamiz_filter_deserialize(bytes, size, &again), TAMIZ_OK);
        const tamiz_filter_info a = info_of(filter), b = info_of(again);
        assert_int_equal(a.keys, b.keys);
        assert_true(a.expected_fpr == b.expected_fpr && a.fill == b.fill);
        const uint64_t one = test_random_u64(&random);
        assert_public(tamiz_filter_add(again, one), TAMIZ_OK);
        assert_true(tamiz_filter_may_contain(again, one));
        tamiz_free(bytes);
        tamiz_filter_free(filter);
        tamiz_filter_free(again);
    }
}

/* Add and remove at random, with repeats: at most `copies` of a hash, of `hashes` there are. */
static void agree_with_a_multiset(const char *text, unsigned hashes, unsigned copies,
                                  struct test_random *random)
{
    tamiz_filter *filter = filter_new(text, hashes * copies);
    uint64_t *keys = malloc(hashes * sizeof *keys);
    unsigned *count = calloc(hashes, sizeof *count);
    uint64_t total = 0;
    assert_true(keys && count);
    for (unsigned i = 0; i < hashes; i++)
        keys[i] = test_random_u64(random);
    for (int round = 0; round < 200000; round++) {
        const size_t i = (size_t)test_random_below(random, hashes);
        if (count[i] && test_random_below(random, 2)) {
            assert_public(tamiz_filter_remove(filter, keys[i]), TAMIZ_OK);
            count[i]--;
            total--;
        } else if (count[i] < copies) {
            assert_public(tamiz_filter_add(filter, keys[i]), TAMIZ_OK);
            count[i]++;
            total++;
        }
        if (count[i])
            assert_true(tamiz_filter_may_contain(filter, keys[i]));
    }
    assert_int_equal(info_of(filter).keys, total);
    for (unsigned i = 0; i < hashes; i++)
        for (; count[i]; count[i]--) {
            assert_true(tamiz_filter_may_contain(filter, keys[i]));
            assert_public(tamiz_filter_remove(filter, keys[i]), TAMIZ_OK);
        }
    const tamiz_filter_info info = info_of(filter);
    assert_true(info.keys == 0 && info.fill == 0 && info.expected_fpr == 0);
    assert_int_equal(tamiz_filter_remove(filter, keys[0]), TAMIZ_NOT_FOUND);
    free(keys);
    free(count);
    tamiz_filter_free(filter);
}

static void adding_and_removing_agrees_with_a_multiset(void **state)
{
    (void)state;
    struct test_random random = test_random_start(13);
    agree_with_a_multiset("counting", 3000, 2, &random);
    agree_with_a_multiset("counting:12", 500, 1, &random);
    agree_with_a_multiset("cuckoo", 3000, 1, &random);
    agree_with_a_multiset("cuckoo:16", 1000, 3, &random);
}

static void removing_what_is_surely_absent_says_so(void **state)
{
    (void)state;
    struct test_random random = test_random_start(14);
    static const char *const removing[] = {"counting", "cuckoo"};
    for (size_t p = 0; p < 2; p++) {
        tamiz_filter *filter = filter_new(removing[p], 1000);
        for (int i = 0; i < 1000; i++)
            assert_public(tamiz_filter_add(filter, test_random_u64(&random)), TAMIZ_OK);
        for (int i = 0; i < 10000; i++) {
            const uint64_t absent = test_random_u64(&random);
            if (!tamiz_filter_may_contain(filter, absent))
                assert_int_equal(tamiz_filter_remove(filter, absent), TAMIZ_NOT_FOUND);
        }
        assert_int_equal(info_of(filter).keys, 1000);
        tamiz_filter_free(filter);
    }
}

static void a_full_cuckoo_says_so_and_loses_nothing(void **state)
{
    (void)state;
    struct test_random random = test_random_start(15);
    static const uint64_t capacities[] = {0, 5, 100, 20000};
    for (size_t c = 0; c < 4; c++) {
        tamiz_filter *filter = filter_new("cuckoo:16", capacities[c]);
        uint64_t *keys = malloc(40000 * sizeof *keys);
        size_t n = 0, refused = 0;
        void *before, *after;
        size_t size;
        assert_non_null(keys);
        while (refused < 100) {
            keys[n] = test_random_u64(&random);
            const tamiz_status st = tamiz_filter_add(filter, keys[n]);
            n += st == TAMIZ_OK;
            refused += st == TAMIZ_NO_SPACE;
            assert_true(st == TAMIZ_OK || st == TAMIZ_NO_SPACE);
        }
        assert_true(n >= capacities[c]);
        assert_int_equal(info_of(filter).keys, n);
        for (size_t i = 0; i < n; i++)
            assert_true(tamiz_filter_may_contain(filter, keys[i]));
        assert_public(tamiz_filter_serialize(filter, &before, &size), TAMIZ_OK);
        while (tamiz_filter_add(filter, test_random_u64(&random)) != TAMIZ_NO_SPACE)
            n = 0; /* one found room after all: compare from here */
        if (n) {
            assert_public(tamiz_filter_serialize(filter, &after, &size), TAMIZ_OK);
            assert_memory_equal(before, after, size);
            tamiz_free(after);
        }
        tamiz_free(before);
        free(keys);
        tamiz_filter_free(filter);
    }
}

static void the_same_hash_nine_times_fills_a_cuckoo_and_eight_come_out(void **state)
{
    (void)state;
    tamiz_filter *filter = filter_new("cuckoo", 1000);
    int added = 0;
    while (tamiz_filter_add(filter, 42) == TAMIZ_OK)
        added++;
    assert_int_equal(added, 8);
    for (; added; added--)
        assert_public(tamiz_filter_remove(filter, 42), TAMIZ_OK);
    assert_int_equal(tamiz_filter_remove(filter, 42), TAMIZ_NOT_FOUND);
    tamiz_filter_free(filter);
}

static void counters_stick_at_their_end_and_deny_nobody(void **state)
{
    (void)state;
    struct test_random random = test_random_start(16);
    tamiz_filter *filter = filter_new("counting", 100);
    uint64_t others[50];
    for (int i = 0; i < 50; i++) {
        others[i] = test_random_u64(&random);
        assert_public(tamiz_filter_add(filter, others[i]), TAMIZ_OK);
    }
    for (int i = 0; i < 100; i++)
        assert_public(tamiz_filter_add(filter, 42), TAMIZ_OK);
    for (int i = 0; i < 100; i++)
        assert_public(tamiz_filter_remove(filter, 42), TAMIZ_OK);
    assert_true(tamiz_filter_may_contain(filter, 42)); /* it no longer knows: maybe */
    for (int i = 0; i < 50; i++)
        assert_true(tamiz_filter_may_contain(filter, others[i]));
    tamiz_filter_free(filter);
}

static void a_scalable_filter_keeps_its_rate_far_beyond_its_capacity(void **state)
{
    (void)state;
    struct test_random random = test_random_start(17);
    tamiz_filter *filter = filter_new("scalable:fpr=0.01", 100);
    const uint64_t seed = random.state;
    for (int i = 0; i < 100000; i++)
        assert_public(tamiz_filter_add(filter, test_random_u64(&random)), TAMIZ_OK);
    struct test_random again = {seed};
    for (int i = 0; i < 100000; i++)
        assert_true(tamiz_filter_may_contain(filter, test_random_u64(&again)));
    assert_true(info_of(filter).expected_fpr <= 0.01);
    assert_true(info_of(filter).keys > 98000 && info_of(filter).keys <= 100000);
    assert_rate(filter, &random);
    tamiz_filter_free(filter);
}

static void kinds_that_are_built_once_say_so(void **state)
{
    (void)state;
    for (size_t i = 0; filter_family_at(i); i++) {
        const struct filter_family *family = filter_family_at(i);
        tamiz_filter_policy policy;
        tamiz_filter *filter;
        assert_public(tamiz_filter_policy_parse(family->name, &policy), TAMIZ_OK);
        if (!family->add)
            assert_int_equal(tamiz_filter_new(&policy, 10, &filter), TAMIZ_NOT_SUPPORTED);
        assert_public(tamiz_filter_build(&policy, NULL, 0, &filter), TAMIZ_OK);
        if (!family->add)
            assert_int_equal(tamiz_filter_add(filter, 1), TAMIZ_NOT_SUPPORTED);
        if (!family->remove)
            assert_int_equal(tamiz_filter_remove(filter, 1), TAMIZ_NOT_SUPPORTED);
        tamiz_filter_free(filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adding_to_its_capacity_keeps_the_promise),
        cmocka_unit_test(an_image_of_a_changed_filter_is_that_filter),
        cmocka_unit_test(adding_and_removing_agrees_with_a_multiset),
        cmocka_unit_test(removing_what_is_surely_absent_says_so),
        cmocka_unit_test(a_full_cuckoo_says_so_and_loses_nothing),
        cmocka_unit_test(the_same_hash_nine_times_fills_a_cuckoo_and_eight_come_out),
        cmocka_unit_test(counters_stick_at_their_end_and_deny_nobody),
        cmocka_unit_test(a_scalable_filter_keeps_its_rate_far_beyond_its_capacity),
        cmocka_unit_test(kinds_that_are_built_once_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
