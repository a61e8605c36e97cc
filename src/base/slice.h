/* SPDX-License-Identifier: MIT
 *
 * Borrowed bytes. A slice owns nothing and says nothing of how long its bytes live; whoever hands
 * one out does. Keys are ordered as memcmp orders them, a prefix first; that order is part of every
 * format.
 */
#ifndef TAMIZ_BASE_SLICE_H
#define TAMIZ_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const uint8_t *data; /* never dereferenced where size is 0; NULL then allowed */
    size_t size;
};

static inline struct slice slice_of(const void *data, size_t size)
{
    return (struct slice){(const uint8_t *)data, size};
}

static inline struct slice slice_of_text(const char *text)
{
    return slice_of(text, strlen(text));
}

static inline int slice_compare(struct slice a, struct slice b)
{
    const size_t least = a.size < b.size ? a.size : b.size;
    const int order = least ? memcmp(a.data, b.data, least) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* As memcmp(a, b, size) == 0, without a call for the sizes that keys have: whole words, the last
 * one overlapping the one before. */
static inline bool bytes_equal(const uint8_t *a, const uint8_t *b, size_t size)
{
    uint64_t x, y;
    uint32_t s, t;
    if (size >= 8 && size <= 64) {
        for (size_t at = 0; at + 8 < size; at += 8) {
            memcpy(&x, a + at, 8);
            memcpy(&y, b + at, 8);
            if (x != y)
                return false;
        }
        memcpy(&x, a + size - 8, 8);
        memcpy(&y, b + size - 8, 8);
        return x == y;
    }
    if (size >= 4 && size < 8) {
        memcpy(&s, a, 4);
        memcpy(&t, b, 4);
        if (s != t)
            return false;
        memcpy(&s, a + size - 4, 4);
        memcpy(&t, b + size - 4, 4);
        return s == t;
    }
    return size == 0 || memcmp(a, b, size) == 0;
}

/* As memmove, without a call for the sizes that keys have: two parts, of which the last may overlap
 * the first, and both are read before either is written. */
static inline void bytes_move(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size >= 16 && size <= 32) {
        uint8_t head[16], tail[16];
        memcpy(head, from, 16);
        memcpy(tail, from + size - 16, 16);
        memcpy(to, head, 16);
        memcpy(to + size - 16, tail, 16);
    } else if (size >= 8 && size < 16) {
        uint8_t head[8], tail[8];
        memcpy(head, from, 8);
        memcpy(tail, from + size - 8, 8);
        memcpy(to, head, 8);
        memcpy(to + size - 8, tail, 8);
    } else if (size) {
        memmove(to, from, size);
    }
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.size == b.size && bytes_equal(a.data, b.data, a.size);
}

static inline bool slice_has_prefix(struct slice a, struct slice prefix)
{
    return a.size >= prefix.size && bytes_equal(a.data, prefix.data, prefix.size);
}

static inline size_t slice_common_prefix(struct slice a, struct slice b)
{
    const size_t least = a.size < b.size ? a.size : b.size;
    size_t same = 0;
    while (same < least && a.data[same] == b.data[same])
        same++;
    return same;
}

static inline uint64_t load_u64_ordered(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The first 8 bytes from `skip` on as a big-endian integer, missing ones as 0: orders as memcmp
 * does, ties undecided. */
static inline uint64_t slice_prefix8(struct slice a, size_t skip)
{
    uint64_t word = 0;
    if (a.size >= skip + 8)
        return load_u64_ordered(a.data + skip);
    if (a.size >= 8) { /* the last 8 bytes, of which some come before `skip` */
        const size_t before = skip + 8 - a.size;
        return before < 8 ? load_u64_ordered(a.data + a.size - 8) << 8 * before : 0;
    }
    for (size_t i = skip; i < a.size; i++)
        word |= (uint64_t)a.data[i] << (56 - 8 * (i - skip));
    return word;
}

/* Writes `a` with \xNN escapes for what is not printable ASCII (and for the backslash) and a final
 * NUL, cut with "..." where `capacity` ends. Returns `out`. */
const char *slice_print(struct slice a, char *out, size_t capacity);

#endif
