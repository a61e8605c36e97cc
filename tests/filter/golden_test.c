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
#include "filter/golden.h"
#include "support/test.h"

static void path_of(const struct golden *g, char *path, size_t size)
{
    snprintf(path, size, "%s/tests/golden/filter/%s.filter", TEST_SOURCE_DIR, g->file);
}

static tamiz_filter *build(const struct golden *g, void **bytes, size_t *size)
{
    uint64_t hashes[KEYS];
    tamiz_filter_policy policy;
    tamiz_filter *filter;
    golden_hashes(hashes);
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
    golden_hashes(hashes);
    for (size_t i = 0; i < GOLDENS; i++) {
        uint64_t random = GOLDEN_PROBE_SEED;
        uint8_t golden[IMAGE_MAX];
        const size_t size = golden_read(&goldens[i], golden);
        tamiz_filter *filter;
        unsigned maybes = 0;
        assert_public(tamiz_filter_deserialize(golden, size, &filter), TAMIZ_OK);
        for (int k = 0; k < KEYS; k++)
            assert_true(tamiz_filter_may_contain(filter, hashes[k]));
        for (int probe = 0; probe < PROBES; probe++)
            maybes += tamiz_filter_may_contain(filter, golden_random(&random));
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
