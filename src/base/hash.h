/* SPDX-License-Identifier: MIT
 *
 * The one 64-bit key hash: XXH3-64 with a fixed seed. Computed once per operation and used by the
 * memtable's filter, every table's filter and the tags in data blocks. Name and seed are part of
 * the format.
 */
#ifndef TAMIZ_BASE_HASH_H
#define TAMIZ_BASE_HASH_H

#include "base/slice.h"

#define KEY_HASH_NAME "xxh3-64/74616d697a"
#define KEY_HASH_SEED UINT64_C(0x74616d697a) /* "tamiz" */

uint64_t hash_key(struct slice key);
/* hash_key of a key of fewer than 4 or more than 16 bytes (hash_short.h). */
uint64_t hash_key_other(struct slice key);
/* hash_key of `n` keys of `size` bytes each, side by side. */
void hash_keys(const uint8_t *keys, size_t size, size_t n, uint64_t *hashes);

/* The tag of a key in its data block: bits that no filter family uses to place a key would be best;
 * the lowest byte of a remix keeps the two independent. */
static inline uint8_t hash_tag(uint64_t hash)
{
    return (uint8_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

#endif
