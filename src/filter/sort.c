/* SPDX-License-Identifier: MIT */
#include "filter/sort.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, SMALL = 24 };

static void sort_small(uint64_t *a, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint64_t x = a[i];
        size_t j = i;
        for (; j && a[j - 1] > x; j--)
            a[j] = a[j - 1];
        a[j] = x;
    }
}

/* All bits above `shift + DIGIT_BITS` are equal. Depth is at most 64 / DIGIT_BITS. */
static void sort_from(uint64_t *a, size_t n, uint64_t *scratch, unsigned shift)
{
    size_t ends[DIGITS] = {0};
    for (size_t i = 0; i < n; i++)
        ends[(a[i] >> shift) & (DIGITS - 1)]++;
    size_t at = 0;
    for (size_t d = 0; d < DIGITS; d++) {
        const size_t count = ends[d];
        ends[d] = at;
        at += count;
    }
    for (size_t i = 0; i < n; i++)
        scratch[ends[(a[i] >> shift) & (DIGITS - 1)]++] = a[i];
    memcpy(a, scratch, n * sizeof *a);
    size_t start = 0;
    for (size_t d = 0; d < DIGITS; start = ends[d], d++) {
        const size_t size = ends[d] - start;
        if (size <= SMALL)
            sort_small(a + start, size);
        else if (shift)
            sort_from(a + start, size, scratch, shift - DIGIT_BITS);
    }
}

void sort_hashes(uint64_t *hashes, size_t n, uint64_t *scratch)
{
    if (n <= SMALL)
        sort_small(hashes, n);
    else
        sort_from(hashes, n, scratch, 64 - DIGIT_BITS);
}

size_t sort_unique(uint64_t *hashes, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || hashes[i] != hashes[kept - 1])
            hashes[kept++] = hashes[i];
    return kept;
}
