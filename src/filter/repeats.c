/* SPDX-License-Identifier: MIT */
#include "filter/repeats.h"

#include <stdlib.h>

#include "base/fetch.h"
#include "filter/family.h"
#include "filter/sort.h"

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* For each of `asked` hashes a byte that is not 0, among so many that few others meet one. Bytes,
 * not bits: there are few, and looking at one is a load and nothing else. */
struct marks {
    uint8_t *bytes;
    unsigned shift; /* 64 - log2 of how many */
};

static size_t marks_size(const struct marks *marks)
{
    return (size_t)1 << (64 - marks->shift);
}

static inline uint8_t *mark_of(const struct marks *marks, uint64_t hash)
{
    return marks->bytes + (hash * FILTER_MULTIPLIER >> marks->shift);
}

static bool marks_new(const struct alloc *alloc, const uint64_t *asked, size_t n,
                      struct marks *marks)
{
    marks->shift = 64 - 8;
    while (marks->shift > 64 - 24 && marks_size(marks) < n * 128)
        marks->shift--;
    marks->bytes = mem_new_array(alloc, marks_size(marks), 1);
    for (size_t i = 0; marks->bytes && i < n; i++)
        *mark_of(marks, asked[i]) = 1;
    return marks->bytes != NULL;
}

static size_t is_among(const uint64_t *hash, const uint64_t *sorted, size_t n)
{
    return bsearch(hash, sorted, n, sizeof *sorted, compare_hashes) != NULL;
}

/* How many of `hashes` are among the `n_asked` sorted ones, of which are the marks. */
static size_t members_count(const struct marks *marks, const uint64_t *hashes, size_t n,
                            const uint64_t *asked, size_t n_asked)
{
    enum { TOGETHER = 8, AHEAD = 128 }; /* as many as a cache line has; and of lines, 16 */
    const struct marks m = *marks;
    size_t count = 0, i = 0;
    for (; i + TOGETHER <= n; i += TOGETHER) {
        unsigned any = 0;
        fetch_line(hashes + i + AHEAD);
#pragma GCC unroll 8
        for (size_t j = 0; j < TOGETHER; j++)
            any |= *mark_of(&m, hashes[i + j]);
        for (size_t j = 0; __builtin_expect(any != 0, 0) && j < TOGETHER; j++)
            if (*mark_of(&m, hashes[i + j]))
                count += is_among(&hashes[i + j], asked, n_asked);
    }
    for (; i < n; i++)
        count += is_among(&hashes[i], asked, n_asked);
    return count;
}

tamiz_status repeats_count(struct op *op, const uint64_t *hashes, size_t n, uint64_t *seen,
                           size_t count, size_t *repeats)
{
    struct marks marks;
    *repeats = 0;
    if (count == 0)
        return TAMIZ_OK;
    qsort(seen, count, sizeof *seen, compare_hashes);
    const size_t asked = sort_unique(seen, count);
    if (!marks_new(op->alloc, seen, asked, &marks))
        return op_fail_memory(op);
    *repeats = members_count(&marks, hashes, n, seen, asked) - asked;
    mem_free(op->alloc, marks.bytes, marks_size(&marks));
    return TAMIZ_OK;
}
