/* SPDX-License-Identifier: MIT
 *
 * Filters that answer from one cache line, asked side by side. A read asks the filters of many
 * tables about one key, or of one about many: first it names all the lines, which starts fetching
 * them, then it tests them in one loop. So the misses overlap, and no call goes through a pointer.
 *
 * Today that is the family `blocked` with no seed; whoever keeps struct filter_lines sees no more
 * of it than a place and two numbers.
 */
#ifndef TAMIZ_FILTER_LINES_H
#define TAMIZ_FILTER_LINES_H

#include "base/fetch.h"
#include "filter/family.h"

enum { FILTER_LINE_BYTES = 64, FILTER_LINES_MOST = 64 };

/* Of a filter that can be asked by line. Plain value, borrows the view's payload. */
struct filter_lines {
    const uint8_t *payload; /* NULL: it cannot */
    uint32_t count;         /* of lines */
    uint32_t k;             /* bits a key */
};

/* One question: which line, which bits of it. */
struct filter_line {
    const uint8_t *line;
    uint32_t bits;
    uint32_t k;
};

struct filter_lines filter_lines_of(const struct filter_view *view);

/* What filter_line_of wants of a key hash: computed once for all filters. */
static inline uint64_t filter_lines_mix(uint64_t hash)
{
    return filter_mix(hash, 0);
}

/* The line on its way. */
static inline struct filter_line filter_line_of(const struct filter_lines *f, uint64_t mixed)
{
    const uint8_t *line = f->payload + mul_high(mixed, f->count) * FILTER_LINE_BYTES;
    fetch_line(line);
    return (struct filter_line){line, (uint32_t)mixed, f->k};
}

/* Bit i: line i says maybe. At most FILTER_LINES_MOST. */
uint64_t filter_lines_ask(const struct filter_line *lines, size_t n);

#endif
