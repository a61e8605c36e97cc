/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a filter's image, their checksum repaired so that what is behind it is reached: they
 * are refused, or answer anything; they never crash, run on, or read beyond their end. It is built
 * by clang with -fsanitize=fuzzer,address,undefined from this file and the .c files of src/base and
 * src/filter, with tests/golden/filter as corpus; filter_damage runs it with no libFuzzer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/coding.h"
#include "filter/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void repair(uint8_t *image, size_t size)
{
    memcpy(image, "tzfl\1\1", 6);
    store_u64(image + 16, size - FILTER_HEADER_SIZE);
    const uint64_t of_header = checksum(0, 0, slice_of(image, FILTER_HEADER_SIZE - 8));
    const struct slice payload = slice_of(image + FILTER_HEADER_SIZE, size - FILTER_HEADER_SIZE);
    store_u64(image + 56, checksum(of_header, 0, payload));
}

static void exercise(tamiz_filter *filter)
{
    enum { HASHES = 64 };
    uint64_t hashes[HASHES];
    bool maybe[HASHES];
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    for (uint64_t i = 0; i < HASHES; i++)
        hashes[i] = i < 4 ? -(i & 1) : i * UINT64_C(0x9e3779b97f4a7c15);
    tamiz_filter_may_contain_many(filter, hashes, HASHES, maybe);
    for (int i = 0; i < HASHES; i++)
        if (tamiz_filter_may_contain(filter, hashes[i]) != maybe[i])
            abort();
    tamiz_filter_info_get(filter, &info);
    for (int i = 0; i < 8; i++) {
        (void)tamiz_filter_add(filter, hashes[i]);
        (void)tamiz_filter_remove(filter, hashes[i + 4]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    tamiz_filter *filter;
    if (size < FILTER_HEADER_SIZE || size > 1 << 20)
        return 0;
    uint8_t *image = malloc(size);
    if (!image)
        return 0;
    memcpy(image, bytes, size);
    repair(image, size);
    if (tamiz_filter_deserialize(image, size, &filter) == TAMIZ_OK)
        exercise(filter);
    else if (filter)
        abort();
    tamiz_filter_free(filter);
    free(image);
    return 0;
}
