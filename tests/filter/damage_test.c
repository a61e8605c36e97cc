/* SPDX-License-Identifier: MIT
 *
 * Images that somebody damaged and whose checksum fits again, made from one of each kind.
 */
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "fuzz/filter_fuzz.c"
#include "support/test.h"

static void image_of(const char *kind, size_t n, uint64_t seed, uint8_t **bytes, size_t *size)
{
    struct test_random random = {seed};
    tamiz_filter_policy policy;
    tamiz_filter *filter;
    uint64_t *hashes = malloc((n + 1) * sizeof *hashes);
    void *image;
    assert_non_null(hashes);
    for (size_t i = 0; i < n; i++)
        hashes[i] = test_random_u64(&random);
    assert_public(tamiz_filter_policy_parse(kind, &policy), TAMIZ_OK);
    assert_public(tamiz_filter_build(&policy, hashes, n, &filter), TAMIZ_OK);
    assert_public(tamiz_filter_serialize(filter, &image, size), TAMIZ_OK);
    *bytes = malloc(*size + 64);
    assert_non_null(*bytes);
    memcpy(*bytes, image, *size);
    tamiz_free(image);
    tamiz_filter_free(filter);
    free(hashes);
}

/* One to four changes, most of them in the header's numbers, where they hurt. */
static void damage(uint8_t *bytes, size_t size, struct test_random *random)
{
    static const uint8_t telling[] = {0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 63, 64, 127, 128, 255};
    for (uint64_t changes = 1 + test_random_below(random, 4); changes; changes--) {
        const uint64_t dice = test_random_below(random, 4);
        const size_t at = (size_t)(dice == 0   ? test_random_below(random, size)
                                   : dice == 1 ? 6 + test_random_below(random, 50)
                                               : 32 + test_random_below(random, 16));
        bytes[at] = (uint8_t)(test_random_below(random, 2)
                                  ? telling[test_random_below(random, sizeof telling)]
                                  : test_random_u64(random));
    }
}

static void damaged_images_with_good_checksums_hurt_nobody(void **state)
{
    (void)state;
    struct test_random random = test_random_start(41);
    static const size_t sizes[] = {0, 1, 20, 700};
    for (size_t k = 0; filter_family_at(k); k++)
        for (size_t s = 0; s < 4; s++) {
            uint8_t *bytes;
            size_t size;
            image_of(filter_family_at(k)->name, sizes[s], random.state, &bytes, &size);
            uint8_t *copy = malloc(size + 64);
            assert_non_null(copy);
            for (int round = 0; round < 2000; round++) {
                memcpy(copy, bytes, size);
                memset(copy + size, round, 64);
                damage(copy, size, &random);
                /* Whole, shorter, longer. */
                const uint64_t length = test_random_below(&random, 4);
                const size_t now = length == 0   ? (size_t)test_random_below(&random, size)
                                   : length == 1 ? size + (size_t)test_random_below(&random, 64)
                                                 : size;
                (void)LLVMFuzzerTestOneInput(copy, now);
            }
            free(copy);
            free(bytes);
        }
}

/* The fuzz target reaches the families: an image that is not damaged opens behind its repair. */
static void repairing_a_good_image_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; filter_family_at(k); k++) {
        uint8_t *bytes, *copy;
        size_t size;
        tamiz_filter *filter;
        image_of(filter_family_at(k)->name, 100, 5, &bytes, &size);
        copy = malloc(size);
        assert_non_null(copy);
        memcpy(copy, bytes, size);
        repair(copy, size);
        assert_memory_equal(copy, bytes, size);
        assert_public(tamiz_filter_deserialize(copy, size, &filter), TAMIZ_OK);
        tamiz_filter_free(filter);
        free(copy);
        free(bytes);
    }
}

static void newer_and_unknown_images_are_not_supported(void **state)
{
    (void)state;
    uint8_t *bytes;
    size_t size;
    tamiz_filter *filter;
    static const struct {
        size_t at;
        uint8_t value;
        tamiz_status wanted;
    } cases[] = {
        {4, 2, TAMIZ_NOT_SUPPORTED},                                   /* format */
        {5, 2, TAMIZ_NOT_SUPPORTED},                                   /* version of the family */
        {5, 0, TAMIZ_NOT_SUPPORTED},    {6, 200, TAMIZ_NOT_SUPPORTED}, /* family */
        {7, 0x80, TAMIZ_NOT_SUPPORTED}, {0, 'T', TAMIZ_CORRUPTION},
    };
    image_of("blocked", 100, 5, &bytes, &size);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint8_t before = bytes[cases[i].at];
        bytes[cases[i].at] = cases[i].value;
        const uint64_t of_header = checksum(0, 0, slice_of(bytes, FILTER_HEADER_SIZE - 8));
        const struct slice payload =
            slice_of(bytes + FILTER_HEADER_SIZE, size - FILTER_HEADER_SIZE);
        store_u64(bytes + 56, checksum(of_header, 0, payload));
        assert_int_equal(tamiz_filter_deserialize(bytes, size, &filter), cases[i].wanted);
        assert_null(filter);
        bytes[cases[i].at] = before;
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_images_with_good_checksums_hurt_nobody),
        cmocka_unit_test(repairing_a_good_image_changes_nothing),
        cmocka_unit_test(newer_and_unknown_images_are_not_supported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
