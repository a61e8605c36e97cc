/* SPDX-License-Identifier: MIT
 *
 * Builds every golden image on the machine it runs on, reads the stored one, and says what differs:
 * for machines with another byte order, or another char. Run by tests/filter_portable_test.sh.
 *
 *     portable DIRECTORY
 */
#include <stdio.h>
#include <string.h>

#include "filter/golden.h"
#include "tamiz/filter.h"

static size_t file_read(const char *directory, const char *name, uint8_t *bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.filter", directory, name);
    FILE *file = fopen(path, "rb");
    const size_t size = file ? fread(bytes, 1, IMAGE_MAX, file) : 0;
    if (file)
        fclose(file);
    return size;
}

static int builds_the_same(const struct golden *g, const uint8_t *stored, size_t stored_size)
{
    uint64_t hashes[KEYS];
    tamiz_filter_policy policy;
    tamiz_filter *filter;
    void *bytes = NULL;
    size_t size = 0;
    golden_hashes(hashes);
    if (tamiz_filter_policy_parse(g->policy, &policy) != TAMIZ_OK ||
        tamiz_filter_build(&policy, hashes, KEYS, &filter) != TAMIZ_OK)
        return 0;
    const tamiz_status st = tamiz_filter_serialize(filter, &bytes, &size);
    const int same = st == TAMIZ_OK && size == stored_size && memcmp(bytes, stored, size) == 0;
    tamiz_free(bytes);
    tamiz_filter_free(filter);
    return same;
}

static int answers_the_same(const struct golden *g, const uint8_t *stored, size_t stored_size)
{
    uint64_t hashes[KEYS], random = GOLDEN_PROBE_SEED;
    tamiz_filter *filter;
    unsigned members = 0, maybes = 0;
    golden_hashes(hashes);
    if (tamiz_filter_deserialize(stored, stored_size, &filter) != TAMIZ_OK)
        return 0;
    for (int i = 0; i < KEYS; i++)
        members += tamiz_filter_may_contain(filter, hashes[i]);
    for (int i = 0; i < PROBES; i++)
        maybes += tamiz_filter_may_contain(filter, golden_random(&random));
    tamiz_filter_free(filter);
    return members == KEYS && maybes == g->maybes;
}

/* Keys whose bytes a signed char would widen to something else; their hash is part of the format.
 */
static int hashes_the_same(void)
{
    uint64_t sum = 0;
    for (int value = 0; value < 256; value++)
        for (size_t size = 0; size < 64; size++) {
            char key[72];
            memset(key, value, sizeof key);
            sum = sum * 31 + tamiz_hash(key + size % 8, size);
        }
    printf("hashes %016llx\n", (unsigned long long)sum);
    return sum == UINT64_C(0x30815c52ae590a69);
}

int main(int argc, char **argv)
{
    int wrong = 0;
    if (argc != 2)
        return 2;
    for (size_t i = 0; i < GOLDENS; i++) {
        uint8_t stored[IMAGE_MAX];
        const size_t size = file_read(argv[1], goldens[i].file, stored);
        if (!builds_the_same(&goldens[i], stored, size) ||
            !answers_the_same(&goldens[i], stored, size)) {
            printf("%s: differs\n", goldens[i].policy);
            wrong++;
        }
    }
    if (!hashes_the_same())
        wrong++;
    return wrong ? 1 : 0;
}
