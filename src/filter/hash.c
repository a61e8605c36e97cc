/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "tamiz/filter.h"

uint64_t tamiz_hash(const void *key, size_t size)
{
    return hash_key(slice_of(key, size));
}

void tamiz_hash_many(const void *keys, size_t size, size_t n, uint64_t *hashes)
{
    if (n && hashes && (keys || !size))
        hash_keys(keys, size, n, hashes);
}
