/* SPDX-License-Identifier: MIT
 *
 * Images of each kind that were written once and are read for ever. The same hashes make the same
 * bytes today, and the old bytes give the same answers.
 *
 * TAMIZ_GOLDEN_WRITE=1 writes them anew, after a change of format: with a new family version, and a
 * section in docs/format/filter.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "support/test.h"

enum { KEYS = 300, PROBES = 100000, IMAGE_MAX = 8192 };

/* maybes: of PROBES absent hashes, how many the image takes for members. It is an answer of the
 * query alone, and frozen with the bytes. */
static const struct golden {
    const char *policy, *file;
    unsigned maybes;
} goldens[] = {
    {"none", "none", 100000},
    {"bloom:10", "bloom", 788},
    {"blocked:10", "blocked", 868},
    {"blocked:24", "blocked24", 1},
    {"split:10", "split", 1120},
    {"fuse:6", "fuse", 6406},
    {"fuse8", "fuse8", 393},
    {"fuse16", "fuse16", 1},
    {"fuse4", "fuse4", 405},
    {"xor8", "xor8", 391},
    {"xor16", "xor16", 0},
    {"ribbon:fpr=0.01", "ribbon", 775},
    {"bumped:fpr=0.01", "bumped", 775},
    {"cuckoo:9.5", "cuckoo", 1440},
    {"counting:16", "counting", 14625},
    {"scalable:fpr=0.02", "scalable", 771},
};
enum { GOLDENS = sizeof goldens / sizeof *goldens };

static void path_of(const struct golden *g, char *path, size_t size)
{
    snprintf(path, size, "%s/tests/golden/filter/%s.filter", TEST_SOURCE_DIR, g->file);
}

static void hashes_make(uint64_t hashes[KEYS])
{
    struct test_random random = {UINT64_C(0x676f6c64)};
    for (int i = 0; i < KEYS; i++)
        hashes[i] = test_random_u64(&random);
}

static tamiz_filter *build(const struct golden *g, void **bytes, size_t *size)
{
    uint64_t hashes[KEYS];
    tamiz_filter_policy policy;
    tamiz_filter *filter;
    hashes_make(hashes);
    assert_public(tamiz_filter_policy_parse(g->policy, &policy), TAMIZ_OK);
    assert_public(tamiz_filter_build(&policy, hashes, KEYS, &filter), TAMIZ_OK);
    assert_public(tamiz_filter_serialize(filter, bytes, size), TAMIZ_OK);
    return filter;
}

static size_t golden_read(const struct golden *g, uint8_t *bytes)
{
    char path[512];
    path_of(g, path, sizeof path);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s is missing", path);
    const size_t size = fread(bytes, 1, IMAGE_MAX, file);
    fclose(file);
    return size;
}

static void write_all(void)
{
    for (size_t i = 0; i < GOLDENS; i++) {
        char path[512];
        void *bytes;
        size_t size;
        tamiz_filter_free(build(&goldens[i], &bytes, &size));
        path_of(&goldens[i], path, sizeof path);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        fclose(file);
        tamiz_free(bytes);
    }
}

static void the_same_hashes_make_the_same_bytes_as_ever(void **state)
{
    (void)state;
    if (getenv("TAMIZ_GOLDEN_WRITE"))
        write_all();
    for (size_t i = 0; i < GOLDENS; i++) {
        uint8_t golden[IMAGE_MAX];
        const size_t golden_size = golden_read(&goldens[i], golden);
        void *bytes;
        size_t size;
        tamiz_filter_free(build(&goldens[i], &bytes, &size));
        if (size != golden_size || memcmp(bytes, golden, size) != 0)
            fail_msg("%s: the image is another now", goldens[i].policy);
        tamiz_free(bytes);
    }
}

static void old_images_give_the_same_answers_as_ever(void **state)
{
    (void)state;
    uint64_t hashes[KEYS];
    hashes_make(hashes);
    for (size_t i = 0; i < GOLDENS; i++) {
        struct test_random random = {77};
        uint8_t golden[IMAGE_MAX];
        const size_t size = golden_read(&goldens[i], golden);
        tamiz_filter *filter;
        unsigned maybes = 0;
        assert_public(tamiz_filter_deserialize(golden, size, &filter), TAMIZ_OK);
        for (int k = 0; k < KEYS; k++)
            assert_true(tamiz_filter_may_contain(filter, hashes[k]));
        for (int probe = 0; probe < PROBES; probe++)
            maybes += tamiz_filter_may_contain(filter, test_random_u64(&random));
        if (maybes != goldens[i].maybes)
            fail_msg("%s: %u of %d absent hashes, where it was %u", goldens[i].policy, maybes,
                     PROBES, goldens[i].maybes);
        tamiz_filter_free(filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_hashes_make_the_same_bytes_as_ever),
        cmocka_unit_test(old_images_give_the_same_answers_as_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
