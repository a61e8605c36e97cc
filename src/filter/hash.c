/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "tamiz/filter.h"

uint64_t tamiz_hash(const void *key, size_t size)
{
    return hash_key(slice_of(key, size));
}
