/* SPDX-License-Identifier: MIT */
#define XXH_INLINE_ALL
#include "base/hash.h"

#include <xxhash.h>

/* Apart, so that short keys need not save the registers that only long ones use. */
static __attribute__((noinline)) uint64_t hash_longer(struct slice key)
{
    return XXH3_64bits_withSeed(key.data, key.size, KEY_HASH_SEED);
}

__attribute__((flatten)) uint64_t hash_key(struct slice key)
{
    if (key.size > 16)
        return hash_longer(key);
    return XXH3_64bits_withSeed(key.size ? key.data : (const uint8_t *)"", key.size, KEY_HASH_SEED);
}
