/* SPDX-License-Identifier: MIT
 *
 * The block cache. It owns the unpacked data blocks of all tables and keeps their sum within its
 * bytes. There is no hash table: each open table has an array of places, one a block, and a cached
 * block hangs in its own place, so that finding it costs one dependent load and no lock. What is
 * evicted is unlinked from its place and freed once no reader can see it (env/epoch.h).
 *
 * Eviction is SIEVE (Zhang et al., NSDI 2024): a queue in order of insertion, one "visited" bit a
 * block that readers set at most once, and a hand that walks from old to new, sparing what was
 * visited. A hit moves nothing and locks nothing.
 *
 * The bound is strict: evicted blocks count until their memory is really free, and a block that
 * does not fit then stays its reader's own. So that this is rare, blocks are evicted a sixteenth of
 * the capacity ahead: what is inserted now takes the room of what was evicted a few insertions ago,
 * whose readers have left since.
 */
#ifndef TAMIZ_TABLE_CACHE_H
#define TAMIZ_TABLE_CACHE_H

#include "base/fetch.h"
#include "env/epoch.h"
#include "table/block.h"
#include "table/codec.h"
#include "table/heap.h"

struct cache;

/* A block in memory. Reached from its place inside an epoch; who wants to keep it longer takes a
 * pin. */
struct cached_block {
    _Alignas(64) struct block block; /* borrows the bytes below; with the next, one line */
    _Atomic uint32_t pins;           /* holders beyond epochs; the cache itself is one */
    _Atomic uint8_t visited;         /* since the hand last came by                    */
    bool charged;  /* counted in the cache's bytes: was inserted. Set before others see
                      the block, never taken back */
    uint32_t room; /* bytes in front of this, for the ranks          */
    size_t whole;  /* bytes of this allocation                       */
    struct cache *cache;
    _Atomic(struct cached_block *) *place;
    union { /* in the queue, or waiting to be freed; never both */
        struct {
            struct cached_block *older, *newer; /* guarded by cache->mutex */
        };
        struct retired retired;
    };
    /* the payload follows, 64-byte aligned */
};

enum { CACHED_BLOCK_HEADER = sizeof(struct cached_block) };

typedef _Atomic(struct cached_block *) cache_place;

/* `capacity` in bytes, block headers included; 0: nothing is kept. `epoch` outlives it. NULL:
 * memory is out. */
struct cache *cache_new(const struct alloc *alloc, struct epoch *epoch, size_t capacity);
/* All tables are closed by now. Blocks that still wait for their readers keep what they need of the
 * cache until they are freed. NULL is fine. */
void cache_free(struct cache *c);
/* Where blocks, filters and indexes live. Lasts as long as the cache. */
struct heap *cache_heap(const struct cache *c);
/* What unpacks the blocks it keeps. */
struct codec_pool *cache_codec(struct cache *c);
size_t cache_bytes(const struct cache *c);
/* Can a block of `size` bytes come in without another having to leave? */
bool cache_has_room(const struct cache *c, size_t size);
size_t cache_capacity(const struct cache *c);

/* A block that owns room for `size` payload bytes and BLOCK_SLACK behind them (zeroed), pinned once
 * by the caller, in no place yet. About so many `entries` are expected, 0: not known; the ranks of
 * as many stand in front of it, where they can be fetched with it. NULL: memory is out. */
struct cached_block *cached_block_new(struct cache *c, size_t size, size_t entries);
/* About what a block of `size` payload bytes and so many entries takes of a cache that keeps it. */
size_t cached_block_cost(size_t size, size_t entries);
uint8_t *cached_block_payload(struct cached_block *b);

/* The lines of a block that every search begins with: its header, and tags and offsets of an
 * ordinary block. They arrive together. */
static inline void cached_block_fetch(const struct cached_block *b)
{
    const uint8_t *payload = (const uint8_t *)b + CACHED_BLOCK_HEADER;
    fetch_line(b);
    fetch_line(payload);
    fetch_line(payload + 64);
}

/* What a seek in a block touches, where the entry it goes to and the restart of that one's group
 * stand about so many bytes into the payload: header, ranks, offsets, both of these, and what a
 * walk goes on to. The most awaited first: lines arrive about in the order in which they were asked
 * for. Only the address is used: the block may be gone by now. */
static inline void cached_block_fetch_seek(const struct cached_block *b, size_t entry,
                                           size_t restart)
{
    enum { LINE = FETCH_LINE, LINES_ONWARDS = 8 };
    const uintptr_t head = (uintptr_t)b, payload = head + CACHED_BLOCK_HEADER;
    const uintptr_t at = payload + entry;
    fetch_address(at);
    fetch_line_to_write(b);
    fetch_address(payload + restart);
    fetch_address(at - LINE); /* a little before, or reaching into the next line */
    fetch_address(at + LINE);
    fetch_address(head - LINE);
    fetch_address(head - 2 * LINE);
    fetch_address(payload);
    fetch_address(payload + LINE);
    fetch_address(payload + restart - LINE);
    for (uintptr_t line = 2; line < LINES_ONWARDS; line++)
        fetch_address(at + line * LINE);
}

/* The block hanging at `place`, or NULL. Inside an epoch; valid until it is left. Marks it visited.
 */
static inline struct cached_block *cache_peek(cache_place *place)
{
    struct cached_block *b = atomic_load_explicit(place, memory_order_seq_cst);
    if (!b)
        return NULL;
    cached_block_fetch(b);
    if (!atomic_load_explicit(&b->visited, memory_order_relaxed))
        atomic_store_explicit(&b->visited, 1, memory_order_relaxed);
    return b;
}

/* Hangs `b` at `place` if that is empty and the budget allows after evicting; the caller keeps its
 * pin either way. Larger than the whole cache, or no room because readers still hold what was
 * evicted: not kept. */
void cache_insert(struct cache *c, cache_place *place, struct cached_block *b);

/* Was it kept? Of a block that the caller gave to cache_insert. Inside the epoch in which it was
 * made, a kept one is safe to read without a pin. */
static inline bool cached_block_kept(const struct cached_block *b)
{
    return b->charged;
}

/* Keeps a block beyond the epoch: inside an epoch, of a peeked block. */
void cached_block_pin(struct cached_block *b);
void cached_block_unpin(struct cached_block *b); /* NULL is fine */

/* Unhangs all of `n` places, when their table closes: no reader can reach the table any more. */
void cache_drop(struct cache *c, cache_place *places, size_t n);

#endif
