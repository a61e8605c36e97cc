/* SPDX-License-Identifier: MIT */
#include "base/hash_short.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

/* Apart, so that short keys need not save the registers that only long ones use. */
static __attribute__((noinline)) uint64_t hash_longer(struct slice key)
{
    return XXH3_64bits_withSeed(key.data, key.size, KEY_HASH_SEED);
}

__attribute__((flatten)) uint64_t hash_key_other(struct slice key)
{
    if (key.size > HASH_SHORT_MOST)
        return hash_longer(key);
    return XXH3_64bits_withSeed(key.size ? key.data : (const uint8_t *)"", key.size, KEY_HASH_SEED);
}

uint64_t hash_key(struct slice key)
{
    return hash_key_short(key);
}

/* With the size known to the compiler there is nothing to decide for each key. */
__attribute__((flatten)) static void hash_eights(const uint8_t *keys, size_t n, uint64_t *hashes)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = XXH3_64bits_withSeed(keys + 8 * i, 8, KEY_HASH_SEED);
}

#if defined(__x86_64__) && defined(__GNUC__)
/* XXH3_len_4to8_64b of xxhash.h for eight keys at a time; how many it did. */
__attribute__((target("avx512f,avx512dq"))) static size_t
hash_eights_avx512(const uint8_t *keys, size_t n, uint64_t *hashes)
{
    const uint64_t seed = KEY_HASH_SEED ^ (uint64_t)__builtin_bswap32((uint32_t)KEY_HASH_SEED)
                                              << 32;
    const uint64_t flip = (XXH_readLE64(XXH3_kSecret + 8) ^ XXH_readLE64(XXH3_kSecret + 16)) - seed;
    const __m512i flips = _mm512_set1_epi64((int64_t)flip), size = _mm512_set1_epi64(8);
    const __m512i by = _mm512_set1_epi64((int64_t)UINT64_C(0x9fb21c651e98df25));
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m512i swapped = _mm512_rol_epi64(_mm512_loadu_si512(keys + 8 * i), 32);
        const __m512i x = _mm512_xor_si512(swapped, flips);
        __m512i h = _mm512_xor_si512(_mm512_rol_epi64(x, 49), _mm512_rol_epi64(x, 24));
        h = _mm512_mullo_epi64(_mm512_xor_si512(h, x), by);
        h = _mm512_xor_si512(h, _mm512_add_epi64(_mm512_srli_epi64(h, 35), size));
        h = _mm512_mullo_epi64(h, by);
        _mm512_storeu_si512(hashes + i, _mm512_xor_si512(h, _mm512_srli_epi64(h, 28)));
    }
    return i;
}
#endif

__attribute__((flatten)) static void hash_sixteens(const uint8_t *keys, size_t n, uint64_t *hashes)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = XXH3_64bits_withSeed(keys + 16 * i, 16, KEY_HASH_SEED);
}

void hash_keys(const uint8_t *keys, size_t size, size_t n, uint64_t *hashes)
{
    if (size == 8) {
        size_t done = 0;
#if defined(__x86_64__) && defined(__GNUC__)
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
            done = hash_eights_avx512(keys, n, hashes);
#endif
        hash_eights(keys + 8 * done, n - done, hashes + done);
    } else if (size == 16)
        hash_sixteens(keys, n, hashes);
    else
        for (size_t i = 0; i < n; i++)
            hashes[i] = hash_key(slice_of(keys + size * i, size));
}
