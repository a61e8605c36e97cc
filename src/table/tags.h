/* SPDX-License-Identifier: MIT
 *
 * Which of 32 tags equal one: bit i of the answer is tag i. SSE2 is part of every x86-64; elsewhere
 * four words of eight bytes each are compared by arithmetic (the exact form of "is a byte zero",
 * Warren, "Hacker's Delight", 2nd ed., section 6-1). Both give the same answer.
 */
#ifndef TAMIZ_TABLE_TAGS_H
#define TAMIZ_TABLE_TAGS_H

#include "base/coding.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { TAGS_STRIDE = 32 };

/* Bit i: byte i of `word` is zero. */
static inline uint32_t tags_zero_bytes(uint64_t word)
{
    const uint64_t low7 = UINT64_C(0x7f7f7f7f7f7f7f7f);
    const uint64_t zero =
        ~(((word & low7) + low7) | word | low7); /* 0x80 in each byte that was 0 */
    return (uint32_t)(((zero >> 7) * UINT64_C(0x0102040810204080)) >> 56);
}

static inline uint32_t tags_match_portable(const uint8_t *tags, uint8_t tag)
{
    const uint64_t wanted = tag * UINT64_C(0x0101010101010101);
    uint32_t found = 0;
    for (unsigned i = 0; i < TAGS_STRIDE / 8; i++)
        found |= tags_zero_bytes(load_u64(tags + (size_t)8 * i) ^ wanted) << (8 * i);
    return found;
}

/* TAGS_STRIDE bytes can be read at `tags`. */
static inline uint32_t tags_match(const uint8_t *tags, uint8_t tag)
{
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi8((char)tag);
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)tags);
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(tags + 16));
    const unsigned low = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, wanted));
    const unsigned high = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(b, wanted));
    return low | high << 16;
#else
    return tags_match_portable(tags, tag);
#endif
}

#endif
