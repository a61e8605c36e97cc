/* SPDX-License-Identifier: MIT
 *
 * hash_key, in place where a key is short. For the few callers to whom a call is a part of the
 * cost: it brings all of xxhash.h with it.
 */
#ifndef TAMIZ_BASE_HASH_SHORT_H
#define TAMIZ_BASE_HASH_SHORT_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash.h"

enum { HASH_SHORT_LEAST = 4, HASH_SHORT_MOST = 16 };

/* The two ways of XXH3 for the sizes most keys have; the compiler keeps one in each case, not the
 * choice between all. */
static inline __attribute__((flatten)) uint64_t hash_key_short(struct slice key)
{
    if (key.size - 9 <= HASH_SHORT_MOST - 9)
        return XXH3_64bits_withSeed(key.data, key.size, KEY_HASH_SEED);
    if (key.size - HASH_SHORT_LEAST <= 8 - HASH_SHORT_LEAST)
        return XXH3_64bits_withSeed(key.data, key.size, KEY_HASH_SEED);
    return hash_key_other(key);
}

#endif
