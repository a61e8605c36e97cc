/* SPDX-License-Identifier: MIT */
#include "filter/sort.h"

#include <string.h>

/* A pass leaves about so many in a bucket; those are inserted. The first pass may have more buckets
 * than those below it, whose counts lie on the stack for each level. */
enum { SMALL = 24, WANTED_LOG2 = 3, FIRST_BITS = 11, NEXT_BITS = 8 };

/* Ascending from `from` into `to`; they do not overlap. */
static void sort_small(const uint64_t *from, size_t n, uint64_t *to)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t x = from[i];
        size_t j = i;
        for (; j && to[j - 1] > x; j--)
            to[j] = to[j - 1];
        to[j] = x;
    }
}

static unsigned bits_for(size_t n, unsigned left, unsigned most)
{
    unsigned bits = 1;
    while (bits < most && bits < left && n >> (bits + WANTED_LOG2))
        bits++;
    return bits;
}

/* `a` by its bits left-1 .. left-bits into `scratch`; ends[d] is where bucket d ends. */
static void distribute(const uint64_t *a, size_t n, unsigned left, unsigned bits, size_t *ends,
                       uint64_t *scratch)
{
    const unsigned shift = left - bits;
    const size_t mask = ((size_t)1 << bits) - 1;
    size_t at = 0;
    memset(ends, 0, (mask + 1) * sizeof *ends);
    for (size_t i = 0; i < n; i++)
        ends[(a[i] >> shift) & mask]++;
    for (size_t d = 0; d <= mask; d++) {
        const size_t count = ends[d];
        ends[d] = at;
        at += count;
    }
    for (size_t i = 0; i < n; i++)
        scratch[ends[(a[i] >> shift) & mask]++] = a[i];
}

static void sort_next(uint64_t *a, size_t n, uint64_t *scratch, unsigned left);

static void sort_buckets(uint64_t *a, uint64_t *scratch, unsigned left, unsigned bits,
                         const size_t *ends)
{
    for (size_t d = 0, start = 0; d < (size_t)1 << bits; start = ends[d], d++) {
        const size_t size = ends[d] - start;
        if (size <= SMALL) {
            sort_small(scratch + start, size, a + start);
            continue;
        }
        memcpy(a + start, scratch + start, size * sizeof *a);
        if (left > bits)
            sort_next(a + start, size, scratch + start, left - bits);
    }
}

/* All bits from `left` on are equal. At most 64 / WANTED_LOG2 levels. */
static void sort_next(uint64_t *a, size_t n, uint64_t *scratch, unsigned left)
{
    size_t ends[1 << NEXT_BITS];
    const unsigned bits = bits_for(n, left, NEXT_BITS);
    distribute(a, n, left, bits, ends, scratch);
    sort_buckets(a, scratch, left, bits, ends);
}

void sort_hashes(uint64_t *hashes, size_t n, uint64_t *scratch)
{
    size_t ends[1 << FIRST_BITS];
    const unsigned bits = bits_for(n, 64, FIRST_BITS);
    distribute(hashes, n, 64, bits, ends, scratch);
    sort_buckets(hashes, scratch, 64, bits, ends);
}

size_t sort_unique(uint64_t *hashes, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || hashes[i] != hashes[kept - 1])
            hashes[kept++] = hashes[i];
    return kept;
}
