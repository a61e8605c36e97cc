/* SPDX-License-Identifier: MIT
 *
 * The filter in front of a memtable: a blocked Bloom filter (F. Putze, P. Sanders, J. Singler,
 * "Cache-, Hash- and Space-Efficient Bloom Filters", 2007) that grows by single bits while it is
 * read. All six bits of a key lie in one 64-byte line, so that a key that is not here costs one
 * cache miss and no walk.
 *
 *     hash, high 32 bits: which line      hash * odd constant, high 54 bits: six positions of 9
 * bits
 *
 * One writer: a bit is set by a plain load and store, not by a locked instruction. Relaxed is
 * enough: who may see a key was told so by an acquire load of something released after the key was
 * added.
 */
#ifndef TAMIZ_MEM_MEM_FILTER_H
#define TAMIZ_MEM_MEM_FILTER_H

#include <stdatomic.h>

#include "base/alloc.h"

enum { MEM_FILTER_BITS_PER_KEY = 10, MEM_FILTER_PROBES = 6 };

struct mem_filter_line {
    _Alignas(64) _Atomic uint64_t words[8];
};

struct mem_filter {
    struct mem_filter_line *lines; /* owned */
    uint32_t line_count;
};

/* For about `keys` keys. false: memory is out. */
bool mem_filter_init(struct mem_filter *f, const struct alloc *alloc, uint64_t keys);
void mem_filter_free(struct mem_filter *f, const struct alloc *alloc);

static inline size_t mem_filter_bytes(const struct mem_filter *f)
{
    return f->line_count * sizeof *f->lines;
}

static inline struct mem_filter_line *mem_filter_line(const struct mem_filter *f, uint64_t hash)
{
    return &f->lines[(hash >> 32) * f->line_count >> 32];
}

static inline unsigned mem_filter_bit(uint64_t mixed, unsigned probe)
{
    return (unsigned)(mixed >> (10 + 9 * probe)) & 511;
}

static inline uint64_t mem_filter_mix(uint64_t hash)
{
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* The writer only. */
static inline void mem_filter_add(struct mem_filter *f, uint64_t hash)
{
    struct mem_filter_line *line = mem_filter_line(f, hash);
    const uint64_t mixed = mem_filter_mix(hash);
    for (unsigned i = 0; i < MEM_FILTER_PROBES; i++) {
        const unsigned bit = mem_filter_bit(mixed, i);
        _Atomic uint64_t *word = &line->words[bit / 64];
        const uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
        atomic_store_explicit(word, old | UINT64_C(1) << bit % 64, memory_order_relaxed);
    }
}

static inline bool mem_filter_may_contain(const struct mem_filter *f, uint64_t hash)
{
    const struct mem_filter_line *line = mem_filter_line(f, hash);
    const uint64_t mixed = mem_filter_mix(hash);
    uint64_t all = 1;
    for (unsigned i = 0; i < MEM_FILTER_PROBES; i++) {
        const unsigned bit = mem_filter_bit(mixed, i);
        all &= atomic_load_explicit(&line->words[bit / 64], memory_order_relaxed) >> bit % 64;
    }
    return all & 1;
}

#endif
