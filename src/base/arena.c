/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

struct arena_chunk {
    struct arena_chunk *next;
    size_t whole;
};

struct arena arena_init(const struct alloc *alloc, size_t chunk_min, size_t chunk_max)
{
    return (struct arena){.alloc = alloc, .next_chunk = chunk_min, .chunk_max = chunk_max};
}

void arena_free(struct arena *a)
{
    for (struct arena_chunk *c = a->chunks; c;) {
        struct arena_chunk *next = c->next;
        mem_free_aligned(a->alloc, c, c->whole, 64);
        c = next;
    }
    *a = arena_init(a->alloc, a->next_chunk, a->chunk_max);
}

static uint8_t *chunk_new(struct arena *a, size_t payload)
{
    const size_t whole = sizeof(struct arena_chunk) + payload;
    struct arena_chunk *c = mem_new_aligned(a->alloc, whole, 64);
    if (!c)
        return NULL;
    *c = (struct arena_chunk){a->chunks, whole};
    a->chunks = c;
    a->total_bytes += whole;
    return (uint8_t *)(c + 1);
}

void *arena_new(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    size = (size + 7) & ~(size_t)7;
    if (size > a->left) {
        if (size > a->next_chunk / 4)
            return chunk_new(
                a, size); /* large pieces get a chunk of their own; the open one stays open */
        uint8_t *fresh = chunk_new(a, a->next_chunk);
        if (!fresh)
            return NULL;
        a->at = fresh;
        a->left = a->next_chunk;
        if (a->next_chunk < a->chunk_max)
            a->next_chunk *= 2;
    }
    uint8_t *piece = a->at;
    a->at += size;
    a->left -= size;
    return piece;
}
