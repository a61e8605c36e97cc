/* SPDX-License-Identifier: MIT */
#define XXH_INLINE_ALL
#include "base/checksum.h"

#include <xxhash.h>

uint64_t checksum(uint64_t file_id, uint64_t offset, struct slice bytes)
{
    const uint64_t seed = file_id ^ (offset * UINT64_C(0x9e3779b97f4a7c15));
    return XXH3_64bits_withSeed(bytes.size ? bytes.data : (const uint8_t *)"", bytes.size, seed);
}
