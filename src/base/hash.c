/* SPDX-License-Identifier: MIT */
#define XXH_INLINE_ALL
#include "base/hash.h"

#include <string.h>
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

/* With the size known to the compiler there is nothing to decide for each key. */
__attribute__((flatten)) static void hash_eights(const uint8_t *keys, size_t n, uint64_t *hashes)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = XXH3_64bits_withSeed(keys + 8 * i, 8, KEY_HASH_SEED);
}

__attribute__((flatten)) static void hash_sixteens(const uint8_t *keys, size_t n, uint64_t *hashes)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = XXH3_64bits_withSeed(keys + 16 * i, 16, KEY_HASH_SEED);
}

void hash_keys(const uint8_t *keys, size_t size, size_t n, uint64_t *hashes)
{
    if (size == 8)
        hash_eights(keys, n, hashes);
    else if (size == 16)
        hash_sixteens(keys, n, hashes);
    else
        for (size_t i = 0; i < n; i++)
            hashes[i] = hash_key(slice_of(keys + size * i, size));
}
