/* SPDX-License-Identifier: MIT */
#define XXH_INLINE_ALL
#include "base/checksum.h"

#include <xxhash.h>

static uint64_t seed_of(uint64_t file_id, uint64_t offset)
{
    return file_id ^ (offset * UINT64_C(0x9e3779b97f4a7c15));
}

uint64_t checksum(uint64_t file_id, uint64_t offset, struct slice bytes)
{
    return XXH3_64bits_withSeed(bytes.size ? bytes.data : (const uint8_t *)"", bytes.size,
                                seed_of(file_id, offset));
}

uint64_t checksum_pieces(uint64_t file_id, uint64_t offset, const struct slice *pieces, size_t n)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset_withSeed(&state, seed_of(file_id, offset));
    for (size_t i = 0; i < n; i++)
        if (pieces[i].size)
            (void)XXH3_64bits_update(&state, pieces[i].data, pieces[i].size);
    return XXH3_64bits_digest(&state);
}
