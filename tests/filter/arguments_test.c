/* SPDX-License-Identifier: MIT
 *
 * What a caller can do wrong with filters alone: refused with words, nothing changed, nothing
 * given.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "tamiz/filter.h"

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        assert_int_equal((call), TAMIZ_INVALID_ARGUMENT);                                          \
        assert_string_not_equal(tamiz_error_detail(), "");                                         \
    } while (0)

static tamiz_filter_policy policy_of(const char *text)
{
    tamiz_filter_policy p;
    assert_public(tamiz_filter_policy_parse(text, &p), TAMIZ_OK);
    return p;
}

static void null_is_refused_everywhere(void **state)
{
    (void)state;
    const uint64_t hash = 7;
    const tamiz_filter_policy p = policy_of("bloom:10");
    tamiz_filter_policy parsed;
    tamiz_filter *f = NULL, *none = NULL;
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    void *bytes = NULL;
    size_t size = 0;
    bool maybe = false;
    REFUSED(tamiz_filter_policy_parse(NULL, &parsed));
    REFUSED(tamiz_filter_policy_parse("bloom", NULL));
    REFUSED(tamiz_filter_build(NULL, &hash, 1, &none));
    REFUSED(tamiz_filter_build(&p, NULL, 1, &none));
    REFUSED(tamiz_filter_build(&p, &hash, 1, NULL));
    REFUSED(tamiz_filter_new(NULL, 10, &none));
    REFUSED(tamiz_filter_new(&p, 10, NULL));
    REFUSED(tamiz_filter_add(NULL, hash));
    REFUSED(tamiz_filter_remove(NULL, hash));
    REFUSED(tamiz_filter_plan(NULL, 10, &info));
    REFUSED(tamiz_filter_plan(&p, 10, NULL));
    assert_public(tamiz_filter_build(&p, NULL, 0, &f), TAMIZ_OK);
    REFUSED(tamiz_filter_serialize(NULL, &bytes, &size));
    REFUSED(tamiz_filter_serialize(f, NULL, &size));
    REFUSED(tamiz_filter_serialize(f, &bytes, NULL));
    REFUSED(tamiz_filter_deserialize(NULL, 5, &none));
    REFUSED(tamiz_filter_deserialize("bytes", 5, NULL));
    assert_null(none);
    assert_null(bytes);
    assert_true(tamiz_filter_may_contain(NULL, hash));
    tamiz_filter_may_contain_many(NULL, &hash, 1, &maybe);
    assert_true(maybe);
    tamiz_filter_may_contain_many(f, &hash, 1, NULL);
    tamiz_filter_may_contain_many(f, NULL, 1, &maybe);
    tamiz_filter_free(f);
    tamiz_filter_free(NULL);
}

/* Every way of hashing, by size, and every answer: a key asked for is its hash asked for. */
static void a_key_is_asked_for_as_its_hash_is(void **state)
{
    (void)state;
    enum { LONGEST = 300 };
    static const char *const kinds[] = {"blocked:10", "ribbon:7", "fuse8", "none"};
    uint8_t key[LONGEST];
    uint64_t hashes[LONGEST / 2];
    for (size_t i = 0; i < LONGEST; i++)
        key[i] = (uint8_t)(i * 37);
    for (size_t i = 0; i < LONGEST / 2; i++)
        hashes[i] = tamiz_hash(key, 2 * i);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        tamiz_filter_policy policy;
        tamiz_filter *f;
        assert_public(tamiz_filter_policy_parse(kinds[k], &policy), TAMIZ_OK);
        assert_public(tamiz_filter_build(&policy, hashes, LONGEST / 2, &f), TAMIZ_OK);
        for (size_t size = 0; size < LONGEST; size++)
            assert_int_equal(tamiz_filter_may_contain_key(f, key, size),
                             tamiz_filter_may_contain(f, tamiz_hash(key, size)));
        assert_true(tamiz_filter_may_contain_key(f, NULL, 0));
        tamiz_filter_free(f);
    }
    assert_true(tamiz_filter_may_contain_key(NULL, key, 5));
}

static void numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"bloom:0",     "bloom:-1",
                                        "bloom:x",     "bloom:fpr=0",
                                        "bloom:fpr=1", "bloom:fpr=-0.1",
                                        "bloom:nan",   "bloom:inf",
                                        "bloom:1e9",   "bloom:fpr=nan",
                                        "nothing",     "",
                                        "bloom:10:10", "aVeryLongKindThatNobodyHas:10"};
    tamiz_filter *f = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tamiz_filter_policy p;
        REFUSED(tamiz_filter_policy_parse(texts[i], &p));
    }
    static const struct {
        double bits, fpr;
    } wrong[] = {{-1, 0}, {1e9, 0}, {NAN, 0}, {0, -0.5}, {0, 1}, {0, NAN}, {10, 0.01}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tamiz_filter_policy p = policy_of("bloom:10");
        p.bits_per_key = wrong[i].bits;
        p.fpr = wrong[i].fpr;
        REFUSED(tamiz_filter_build(&p, NULL, 0, &f));
        REFUSED(tamiz_filter_new(&p, 10, &f));
        assert_null(f);
    }
    tamiz_filter_policy p = policy_of("bloom:10");
    memset(p.kind, 'x', sizeof p.kind);
    REFUSED(tamiz_filter_build(&p, NULL, 0, &f));
    assert_null(f);
}

static void kinds_that_are_built_once_are_not_changed(void **state)
{
    (void)state;
    const tamiz_filter_policy ribbon = policy_of("ribbon:10"), bloom = policy_of("bloom:10");
    tamiz_filter *f = NULL;
    assert_int_equal(tamiz_filter_new(&ribbon, 10, &f), TAMIZ_NOT_SUPPORTED);
    assert_null(f);
    const uint64_t hash = 7;
    assert_public(tamiz_filter_build(&ribbon, &hash, 1, &f), TAMIZ_OK);
    assert_int_equal(tamiz_filter_add(f, 8), TAMIZ_NOT_SUPPORTED);
    assert_int_equal(tamiz_filter_remove(f, 7), TAMIZ_NOT_SUPPORTED);
    assert_true(tamiz_filter_may_contain(f, hash));
    tamiz_filter_free(f);
    assert_public(tamiz_filter_new(&bloom, 10, &f), TAMIZ_OK);
    assert_int_equal(tamiz_filter_remove(f, 7), TAMIZ_NOT_SUPPORTED);
    tamiz_filter_free(f);
}

static void theory_has_an_answer_for_senseless_numbers(void **state)
{
    (void)state;
    assert_true(tamiz_bloom_bits(0, 0.01) == 0 && tamiz_bloom_bits(10, 0) == 0);
    assert_true(tamiz_bloom_bits(10, 1) == 0 && tamiz_bloom_bits(NAN, NAN) == 0);
    assert_true(tamiz_bloom_fpr(0, 3, 10) == 1 && tamiz_bloom_fpr(100, 0, 10) == 1);
    assert_true(tamiz_bloom_hashes(0, 10) == tamiz_bloom_hashes(10, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_refused_everywhere),
        cmocka_unit_test(a_key_is_asked_for_as_its_hash_is),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(kinds_that_are_built_once_are_not_changed),
        cmocka_unit_test(theory_has_an_answer_for_senseless_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
