/* SPDX-License-Identifier: MIT
 *
 * What a policy may say, the embedder's own family, and sizes beyond what memory holds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "support/test.h"

static void text_becomes_a_policy(void **state)
{
    (void)state;
    tamiz_filter_policy policy;
    assert_public(tamiz_filter_policy_parse("blocked:10.5", &policy), TAMIZ_OK);
    assert_string_equal(policy.kind, "blocked");
    assert_true(policy.bits_per_key == 10.5 && policy.fpr == 0 && !policy.custom);
    assert_public(tamiz_filter_policy_parse("fuse:fpr=1e-3", &policy), TAMIZ_OK);
    assert_string_equal(policy.kind, "fuse");
    assert_true(policy.bits_per_key == 0 && policy.fpr == 0.001);
    assert_public(tamiz_filter_policy_parse("none", &policy), TAMIZ_OK);
    assert_public(tamiz_filter_policy_parse("bloom:64", &policy), TAMIZ_OK);
}

static void wrong_text_changes_nothing_and_names_what_is_wrong(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "blum",
        "bloom:",
        "bloom:0",
        "bloom:-1",
        "bloom:65",
        "bloom:nan",
        "bloom:inf",
        "bloom:0x10",
        "bloom: 10",
        "bloom:10 ",
        "bloom:10:2",
        "bloom:fpr=",
        "bloom:fpr=0",
        "bloom:fpr=1",
        "bloom:fpr=1.5",
        "bloom:p=.1",
        "Bloom:10",
        "averyveryverylongkind:10",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tamiz_filter_policy policy = {"ribbon", 7, 0, NULL};
        if (tamiz_filter_policy_parse(wrong[i], &policy) != TAMIZ_INVALID_ARGUMENT)
            fail_msg("'%s' was taken", wrong[i]);
        assert_true(strlen(tamiz_error_detail()) > 10);
        assert_string_equal(policy.kind, "ribbon");
        assert_true(policy.bits_per_key == 7);
    }
    tamiz_filter_policy policy = {"bloom", 10, 0.01, NULL};
    tamiz_filter *filter;
    assert_int_equal(tamiz_filter_build(&policy, NULL, 0, &filter), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_filter_policy_parse(NULL, &policy), TAMIZ_INVALID_ARGUMENT);
    memset(policy.kind, 'x', sizeof policy.kind);
    assert_int_equal(tamiz_filter_build(&policy, NULL, 0, &filter), TAMIZ_INVALID_ARGUMENT);
    assert_null(filter);
}

/* Bits from rate and rate from bits agree, for every kind that follows either. */
static void rate_and_bits_are_each_others_inverse(void **state)
{
    (void)state;
    for (size_t i = 0; filter_family_at(i); i++) {
        tamiz_filter_policy policy = {{0}, 0, 0.01, NULL};
        tamiz_filter_info by_rate = TAMIZ_FILTER_INFO_INIT, by_bits = TAMIZ_FILTER_INFO_INIT;
        memcpy(policy.kind, filter_family_at(i)->name, strlen(filter_family_at(i)->name));
        assert_public(tamiz_filter_plan(&policy, 100000, &by_rate), TAMIZ_OK);
        policy.bits_per_key = by_rate.bits_per_key;
        policy.fpr = 0;
        assert_public(tamiz_filter_plan(&policy, 100000, &by_bits), TAMIZ_OK);
        if (fabs(by_bits.bits_per_key / by_rate.bits_per_key - 1) > 0.02 ||
            fabs(by_bits.expected_fpr / by_rate.expected_fpr - 1) > 0.05)
            fail_msg("%s: %g bits for %g, %g bits for %g", policy.kind, by_rate.bits_per_key,
                     by_rate.expected_fpr, by_bits.bits_per_key, by_bits.expected_fpr);
    }
}

/* No field of 32 bits wraps: a plan for n keys has n times the bits, or is refused with words. */
static void plans_beyond_32_bits_are_exact_or_refused(void **state)
{
    (void)state;
    static const double sizes[] = {1e6, 350e6, 4294967295.0, 4294967296.0, 1e10, 1e12, 1e15, 1e19};
    for (size_t i = 0; filter_family_at(i); i++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            tamiz_filter_policy policy = {{0}, 0, 0.01, NULL};
            tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
            memcpy(policy.kind, filter_family_at(i)->name, strlen(filter_family_at(i)->name));
            const tamiz_status st = tamiz_filter_plan(&policy, (uint64_t)sizes[s], &info);
            if (st == TAMIZ_INVALID_ARGUMENT && sizes[s] > 4e9)
                continue;
            assert_public(st, TAMIZ_OK);
            if (info.bits_per_key < 6.6 || info.bits_per_key > 45 || info.expected_fpr > 0.0101)
                fail_msg("%s, %g keys: %g bits, %g", policy.kind, sizes[s], info.bits_per_key,
                         info.expected_fpr);
        }
}

static void the_calculators_know_the_textbook(void **state)
{
    (void)state;
    assert_true(fabs(tamiz_bloom_bits(1000000, 0.01) / 1e6 - 9.585) < 0.001);
    assert_int_equal(tamiz_bloom_hashes(10e6, 1e6), 7);
    assert_true(fabs(tamiz_bloom_fpr(10e6, 7, 1e6) - 0.00819) < 0.00001);
    assert_true(tamiz_bloom_fpr(1e12, 7, 1e11) > 0.0081 && tamiz_bloom_fpr(1e12, 7, 1e11) < 0.0083);
    assert_true(tamiz_bloom_fpr(0, 7, 1) == 1 && tamiz_bloom_fpr(100, 7, 0) == 0);
    assert_true(tamiz_bloom_bits(0, 0.01) == 0 && tamiz_bloom_bits(10, 1) == 0);
    assert_int_equal(tamiz_bloom_hashes(1, 1000), 1);
}

/* A family of the embedder's: the hashes themselves, searched. */
struct own_calls {
    int plans, builds, checks;
    tamiz_status build_says;
};

static tamiz_status own_plan(void *ctx, const tamiz_filter_policy *policy, uint64_t keys,
                             uint64_t *payload_bytes, double *expected_fpr)
{
    (void)policy;
    ((struct own_calls *)ctx)->plans++;
    *payload_bytes = keys * 8;
    *expected_fpr = 0;
    return TAMIZ_OK;
}

static tamiz_status own_build(void *ctx, const uint64_t *hashes, size_t n, void *payload,
                              uint64_t payload_bytes)
{
    struct own_calls *calls = ctx;
    calls->builds++;
    assert_int_equal(payload_bytes, n * 8);
    if (n)
        memcpy(payload, hashes, n * 8);
    return calls->build_says;
}

static bool own_check(void *ctx, const void *payload, uint64_t payload_bytes)
{
    (void)payload;
    ((struct own_calls *)ctx)->checks++;
    return payload_bytes % 8 == 0;
}

static bool own_may_contain(void *ctx, const void *payload, uint64_t payload_bytes, uint64_t hash)
{
    (void)ctx;
    const uint64_t *hashes = payload;
    for (uint64_t i = 0; i < payload_bytes / 8; i++)
        if (hashes[i] == hash)
            return true;
    return false;
}

static tamiz_filter_family own_family(struct own_calls *calls)
{
    return (tamiz_filter_family){sizeof(tamiz_filter_family),
                                 "own",
                                 0x8001,
                                 1,
                                 calls,
                                 own_plan,
                                 own_build,
                                 own_check,
                                 own_may_contain};
}

static void an_embedders_own_family_works_like_any_other(void **state)
{
    (void)state;
    struct own_calls calls = {0, 0, 0, TAMIZ_OK};
    const tamiz_filter_family family = own_family(&calls);
    const tamiz_filter_policy policy = {"own", 0, 0, &family};
    const uint64_t hashes[] = {7, 3, 7, 99};
    tamiz_filter *filter, *again;
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    void *bytes;
    size_t size;
    assert_public(tamiz_filter_build(&policy, hashes, 4, &filter), TAMIZ_OK);
    assert_true(tamiz_filter_may_contain(filter, 99) && !tamiz_filter_may_contain(filter, 98));
    tamiz_filter_info_get(filter, &info);
    assert_string_equal(info.kind, "own");
    assert_int_equal(info.keys, 3);
    assert_public(tamiz_filter_serialize(filter, &bytes, &size), TAMIZ_OK);
    /* Who does not know the family goes on without; who does, reads it. */
    assert_int_equal(tamiz_filter_deserialize(bytes, size, &again), TAMIZ_NOT_SUPPORTED);
    assert_null(again);
    assert_public(tamiz_filter_deserialize_custom(bytes, size, &family, &again), TAMIZ_OK);
    assert_true(tamiz_filter_may_contain(again, 3));
    assert_true(calls.plans == 1 && calls.builds == 1 && calls.checks == 2);
    tamiz_free(bytes);
    tamiz_filter_free(filter);
    tamiz_filter_free(again);
}

static void an_own_family_that_fails_degrades_and_a_wrong_one_is_refused(void **state)
{
    (void)state;
    struct own_calls calls = {0, 0, 0, TAMIZ_NOT_SUPPORTED};
    tamiz_filter_family family = own_family(&calls);
    tamiz_filter_policy policy = {"own", 0, 0, &family};
    const uint64_t hash = 1;
    tamiz_filter *filter;
    assert_int_equal(tamiz_filter_build(&policy, &hash, 1, &filter), TAMIZ_NOT_SUPPORTED);
    assert_null(filter);
    assert_non_null(strstr(tamiz_error_detail(), "own"));
    family.id = 1;
    assert_int_equal(tamiz_filter_build(&policy, &hash, 1, &filter), TAMIZ_INVALID_ARGUMENT);
    family = own_family(&calls);
    family.name = "bloom";
    strcpy(policy.kind, "bloom");
    assert_int_equal(tamiz_filter_build(&policy, &hash, 1, &filter), TAMIZ_INVALID_ARGUMENT);
    family = own_family(&calls);
    family.check = NULL;
    strcpy(policy.kind, "own");
    assert_int_equal(tamiz_filter_build(&policy, &hash, 1, &filter), TAMIZ_INVALID_ARGUMENT);
}

/* An allocator that refuses from the n-th call on: no crash, no leak, TAMIZ_OUT_OF_MEMORY. */
struct failing {
    int left;
};

static void *failing_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct failing *f = ctx;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return f->left-- > 0 ? realloc(p, new_size) : NULL;
}

static void running_out_of_memory_anywhere_is_a_status(void **state)
{
    (void)state;
    uint64_t hashes[2000];
    struct test_random random = test_random_start(31);
    for (int i = 0; i < 2000; i++)
        hashes[i] = test_random_u64(&random);
    for (size_t k = 0; filter_family_at(k); k++) {
        tamiz_status st = TAMIZ_OUT_OF_MEMORY;
        for (int calls = 0; st == TAMIZ_OUT_OF_MEMORY; calls++) {
            struct failing f = {calls};
            const struct alloc alloc = {{failing_resize, &f}, NULL};
            struct test_op t;
            tamiz_filter_policy policy = {{0}, 0, 0, NULL};
            test_op_init(&t);
            t.op.alloc = &alloc;
            memcpy(policy.kind, filter_family_at(k)->name, strlen(filter_family_at(k)->name));
            struct buf image = buf_init(&alloc);
            st = filter_image_build(&t.op, &policy, hashes, 2000, &image);
            assert_true(st == TAMIZ_OK || st == TAMIZ_OUT_OF_MEMORY);
            assert_true(calls < 100);
            buf_free(&image);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_a_policy),
        cmocka_unit_test(wrong_text_changes_nothing_and_names_what_is_wrong),
        cmocka_unit_test(rate_and_bits_are_each_others_inverse),
        cmocka_unit_test(plans_beyond_32_bits_are_exact_or_refused),
        cmocka_unit_test(the_calculators_know_the_textbook),
        cmocka_unit_test(an_embedders_own_family_works_like_any_other),
        cmocka_unit_test(an_own_family_that_fails_degrades_and_a_wrong_one_is_refused),
        cmocka_unit_test(running_out_of_memory_anywhere_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
