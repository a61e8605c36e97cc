/* SPDX-License-Identifier: MIT */
#define XXH_INLINE_ALL
#include "base/hash.h"

#include <xxhash.h>

uint64_t hash_key(struct slice key)
{
    return XXH3_64bits_withSeed(key.size ? key.data : (const uint8_t *)"", key.size, KEY_HASH_SEED);
}
