/* SPDX-License-Identifier: MIT
 *
 * Bump memory, freed all at once. One thread allocates; what it allocated may be read by any.
 */
#ifndef TAMIZ_BASE_ARENA_H
#define TAMIZ_BASE_ARENA_H

#include "base/alloc.h"

struct arena_chunk;

struct arena {
    const struct alloc *alloc;
    struct arena_chunk *chunks; /* newest first */
    uint8_t *at;
    size_t left;
    size_t next_chunk; /* bytes of the next chunk: doubles up to chunk_max */
    size_t chunk_max;
    size_t total_bytes; /* all that was taken from the allocator */
};

/* chunk_min and chunk_max in bytes. Takes no memory yet. */
struct arena arena_init(const struct alloc *alloc, size_t chunk_min, size_t chunk_max);
void arena_free(struct arena *a);
/* 8-byte aligned, valid until arena_free; NULL: memory is out. */
void *arena_new(struct arena *a, size_t size);

#endif
