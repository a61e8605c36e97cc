/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes as a filter's image, as they are and with the checksum made right.
 * What is accepted says what it is, answers any question, and is written back as it was read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/coding.h"
#include "tamiz/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 64 };

#define must(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "not so: %s\n", #what);                                                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void use(const uint8_t *data, size_t size)
{
    tamiz_filter *f = NULL;
    if (tamiz_filter_deserialize(data, size, &f) != TAMIZ_OK) {
        must(!f);
        return;
    }
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    void *bytes = NULL;
    size_t written = 0;
    uint64_t hashes[40];
    bool maybe[40];
    tamiz_filter_info_get(f, &info);
    must(info.bytes == size && info.expected_fpr >= 0 && info.expected_fpr <= 1);
    must(tamiz_filter_serialize(f, &bytes, &written) == TAMIZ_OK);
    /* Kinds that change say the rate of how they are filled, whatever the image said. */
    must(written == size && memcmp(bytes, data, 48) == 0 &&
         memcmp((char *)bytes + HEADER, data + HEADER, size - HEADER) == 0);
    tamiz_free(bytes);
    for (uint64_t i = 0; i < 40; i++)
        hashes[i] = i < 4 ? i - 2 : tamiz_hash(&i, sizeof i);
    tamiz_filter_may_contain_many(f, hashes, 40, maybe);
    for (int i = 0; i < 40; i++)
        must(maybe[i] == tamiz_filter_may_contain(f, hashes[i]));
    for (int i = 0; i < 40; i++)
        if (tamiz_filter_add(f, hashes[i]) == TAMIZ_OK)
            must(tamiz_filter_may_contain(f, hashes[i]));
    for (int i = 0; i < 40; i++)
        (void)tamiz_filter_remove(f, hashes[i]);
    tamiz_filter_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use(data, size);
    if (size < HEADER)
        return 0;
    uint8_t *copy = malloc(size);
    must(copy != NULL);
    memcpy(copy, data, size);
    memcpy(copy, "tzfl", 4);
    copy[4] = copy[5] = 1;
    store_u64(copy + 16, size - HEADER);
    const uint64_t head = checksum(0, 0, slice_of(copy, HEADER - 8));
    store_u64(copy + 56, checksum(head, 0, slice_of(copy + HEADER, size - HEADER)));
    use(copy, size);
    free(copy);
    return 0;
}
