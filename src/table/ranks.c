/* SPDX-License-Identifier: MIT */
#include "table/ranks.h"

#include <stddef.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    SKIP_MOST = 64,
    STRIDE = 8,   /* ranks compared at once */
    WINDOW = 128, /* ranks that are counted through; more are halved first */
    RANK_MOST = 0xffff,
};

struct ranks {
    uint64_t base;
    uint8_t shift, skip;
    uint8_t bytes[]; /* skipped ones, ranks */
};

/* What all keys of the block begin with, which its first key shows. false: damaged, or too long. */
static bool common_prefix(const struct block *b, struct slice *prefix)
{
    struct block_entry first, last;
    if (!block_entry_at(b, 0, &first) || first.shared.size ||
        !block_entry_at(b, b->count - 1, &last))
        return false;
    size_t same = slice_common_prefix(first.suffix, last.shared.size ? last.shared : last.suffix);
    if (last.shared.size && same == last.shared.size)
        same += slice_common_prefix(slice_of(first.suffix.data + same, first.suffix.size - same),
                                    last.suffix);
    *prefix = slice_of(first.suffix.data, same);
    return same <= SKIP_MOST;
}

/* Where the ranks begin. */
static size_t numbers_at(size_t skip)
{
    return offsetof(struct ranks, bytes) + (skip + 1) / 2 * 2;
}

static size_t strides(size_t count)
{
    return (count + STRIDE - 1) / STRIDE * STRIDE;
}

static size_t size_of(size_t skip, size_t count)
{
    return numbers_at(skip) + strides(count) * sizeof(uint16_t);
}

static uint16_t *numbers_of(const struct ranks *r)
{
    return (uint16_t *)(void *)((uint8_t *)(uintptr_t)r + numbers_at(r->skip));
}

size_t ranks_size_about(size_t entries)
{
    return size_of(STRIDE, entries);
}

size_t ranks_size(const struct block *b)
{
    struct slice prefix;
    return b->count < 2 || !common_prefix(b, &prefix) ? 0 : size_of(prefix.size, b->count);
}

/* Of the key in two parts. */
static uint64_t word_of(const struct block_entry *e, size_t skip)
{
    if (e->shared.size <= skip)
        return slice_prefix8(e->suffix, skip - e->shared.size);
    const size_t own = e->shared.size - skip;
    const uint64_t word = slice_prefix8(e->shared, skip);
    return own < 8 ? word | slice_prefix8(e->suffix, 0) >> 8 * own : word;
}

/* Ranks are compared as signed numbers, which SSE2 can: the sign bit is flipped. The word is not
 * below the base. */
static uint16_t rank_of(const struct ranks *r, uint64_t word)
{
    const uint64_t far = (word - r->base) >> r->shift;
    return (uint16_t)((far < RANK_MOST ? far : RANK_MOST) ^ 0x8000);
}

bool ranks_fill(const struct block *b, struct ranks *r)
{
    struct slice prefix;
    struct block_entry first, last, e;
    if (!common_prefix(b, &prefix) || !block_entry_at(b, 0, &first) ||
        !block_entry_at(b, b->count - 1, &last))
        return false;
    *r = (struct ranks){word_of(&first, prefix.size), 0, (uint8_t)prefix.size};
    memset(r->bytes, 0, numbers_at(prefix.size) - offsetof(struct ranks, bytes));
    if (prefix.size)
        memcpy(r->bytes, prefix.data, prefix.size);
    while ((word_of(&last, prefix.size) - r->base) >> r->shift > RANK_MOST)
        r->shift++;
    uint16_t *ranks = numbers_of(r);
    for (uint32_t i = 0; i < b->count; i++) {
        if (!block_entry_at(b, i, &e))
            return false;
        ranks[i] = rank_of(r, word_of(&e, prefix.size));
    }
    for (size_t i = b->count; i < strides(b->count); i++)
        ranks[i] = INT16_MAX;
    return true;
}

/* How many of the `n` ranks are below x. What stands behind them, up to a whole stride, is not
 * below. */
static uint32_t count_below(const uint16_t *ranks, uint32_t n, uint16_t x)
{
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi16((int16_t)x);
    __m128i sum = _mm_setzero_si128(); /* minus the count, in eight lanes */
    for (uint32_t i = 0; i < n; i += STRIDE)
        sum =
            _mm_add_epi16(sum, _mm_cmplt_epi16(_mm_loadu_si128((const void *)(ranks + i)), wanted));
    sum = _mm_madd_epi16(sum, _mm_set1_epi16(-1)); /* four */
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(sum);
#else
    uint32_t below = 0;
    for (uint32_t i = 0; i < n; i++)
        below += (int16_t)ranks[i] < (int16_t)x;
    return below;
#endif
}

/* First rank not below x. */
static uint32_t first_not_below(const uint16_t *ranks, uint32_t n, uint16_t x)
{
    uint32_t from = 0;
    while (n > WINDOW) { /* large blocks: halved, in whole strides */
        const uint32_t half = n / 2 / STRIDE * STRIDE;
        const bool below = (int16_t)ranks[from + half - 1] < (int16_t)x;
        from += below ? half : 0;
        n = below ? n - half : half;
    }
    return from + count_below(ranks + from, n, x);
}

struct block_near ranks_near(const struct block *b, struct slice key)
{
    const struct ranks *r = b->ranks;
    const struct slice prefix = slice_of(r->bytes, r->skip);
    if (!slice_has_prefix(key, prefix)) {
        const uint32_t at = slice_compare(key, prefix) < 0 ? 0 : b->count;
        return (struct block_near){at, at};
    }
    const uint64_t word = slice_prefix8(key, r->skip);
    if (word < r->base)
        return (struct block_near){0, 0};
    const uint16_t x = rank_of(r, word);
    const uint16_t *ranks = numbers_of(r);
    const uint32_t from = first_not_below(ranks, b->count, x);
    uint32_t end = from;
    while (end < b->count && ranks[end] == x)
        ++end;
    return (struct block_near){from, end};
}
