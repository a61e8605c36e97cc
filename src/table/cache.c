/* SPDX-License-Identifier: MIT */
#include "table/cache.h"

#include <assert.h>
#include <stddef.h>

#include "table/ranks.h"

enum { LINE = 64, ROOM_MOST_ENTRIES = 4096 };

struct cache {
    const struct alloc *alloc;
    struct epoch *epoch;
    size_t capacity;
    _Atomic size_t bytes;   /* of all charged blocks: hanging, evicted, not yet freed */
    _Atomic size_t holders; /* the owner and every block that is alive */
    struct codec_pool codec;
    struct heap *heap;
    struct mutex mutex;
    struct cached_block *oldest, *newest, *hand; /* guarded by mutex, as what follows */
    size_t hanging_bytes;
    size_t hanging_count;
};

/* ---- blocks ---- */

static_assert(CACHED_BLOCK_HEADER % LINE == 0, "the payload is aligned");
static_assert(offsetof(struct cached_block, visited) < LINE, "what a hit touches is one line");

uint8_t *cached_block_payload(struct cached_block *b)
{
    return (uint8_t *)b + CACHED_BLOCK_HEADER;
}

static void cache_release(struct cache *c)
{
    if (atomic_fetch_sub(&c->holders, 1) != 1)
        return;
    codec_pool_free(&c->codec);
    heap_free(c->heap);
    mutex_free(&c->mutex);
    mem_free(c->alloc, c, sizeof *c);
}

/* Room in front of a block for the ranks of so many entries and an eighth more: whole lines. */
static size_t room_for_ranks(size_t entries)
{
    if (entries < 2 || entries > ROOM_MOST_ENTRIES)
        return 0;
    return (ranks_size_about(entries + entries / 8) + LINE - 1) / LINE * LINE;
}

struct cached_block *cached_block_new(struct cache *c, size_t size, size_t entries)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    const size_t room = room_for_ranks(entries);
    const size_t bytes = room + CACHED_BLOCK_HEADER + size + BLOCK_SLACK;
    uint8_t *piece = heap_take(c->heap, bytes);
    if (!piece)
        return NULL;
    struct cached_block *b = (struct cached_block *)(void *)(piece + room);
    memset(b, 0, sizeof *b);
    memset(cached_block_payload(b) + size, 0, BLOCK_SLACK);
    atomic_init(&b->pins, 1);
    b->room = (uint32_t)room;
    b->whole = heap_whole(bytes);
    b->cache = c;
    atomic_fetch_add(&c->holders, 1);
    return b;
}

size_t cached_block_cost(size_t size, size_t entries)
{
    return heap_whole(room_for_ranks(entries) + CACHED_BLOCK_HEADER + size + BLOCK_SLACK);
}

/* The ranks end where the block begins, so that the lines before it are theirs; where there is no
 * room they are a piece of their own. */
static uint8_t *ranks_in_room(const struct cached_block *b, size_t size)
{
    const size_t whole = (size + 7) / 8 * 8;
    return whole <= b->room ? (uint8_t *)(uintptr_t)b - whole : NULL;
}

static bool ranks_are_apart(const struct cached_block *b)
{
    const uintptr_t at = (uintptr_t)b->block.ranks, block = (uintptr_t)b;
    return at && (at > block || at < block - b->room);
}

/* What stays is searched in order again and again. */
static void block_rank(struct cached_block *b)
{
    const size_t size = b->block.ranks ? 0 : ranks_size(&b->block);
    if (!size)
        return;
    uint8_t *inside = ranks_in_room(b, size);
    struct ranks *ranks = inside ? (void *)inside : heap_take(b->cache->heap, size);
    if (!ranks)
        return; /* it is searched without */
    if (ranks_fill(&b->block, ranks)) {
        b->block.ranks = ranks;
        b->whole += inside ? 0 : heap_whole(size);
    } else if (!inside) {
        heap_give(b->cache->heap, ranks);
    }
}

static void block_free(struct cached_block *b)
{
    struct cache *c = b->cache;
    if (ranks_are_apart(b))
        heap_give(c->heap, (void *)(uintptr_t)b->block.ranks);
    if (b->charged)
        atomic_fetch_sub(&c->bytes, b->whole);
    heap_give(c->heap, (uint8_t *)b - b->room);
    cache_release(c);
}

void cached_block_pin(struct cached_block *b)
{
    atomic_fetch_add_explicit(&b->pins, 1, memory_order_relaxed);
}

void cached_block_unpin(struct cached_block *b)
{
    if (b && atomic_fetch_sub_explicit(&b->pins, 1, memory_order_acq_rel) == 1)
        block_free(b);
}

static void retired_free(struct retired *self, void *ctx)
{
    (void)self;
    cached_block_unpin(ctx);
}

/* ---- the queue ---- */

static void queue_push(struct cache *c, struct cached_block *b)
{
    b->older = c->newest;
    b->newer = NULL;
    if (c->newest)
        c->newest->newer = b;
    else
        c->oldest = b;
    c->newest = b;
    c->hanging_bytes += b->whole;
    c->hanging_count++;
}

static void queue_remove(struct cache *c, struct cached_block *b)
{
    if (c->hand == b)
        c->hand = b->newer;
    if (b->older)
        b->older->newer = b->newer;
    else
        c->oldest = b->newer;
    if (b->newer)
        b->newer->older = b->older;
    else
        c->newest = b->older;
    c->hanging_bytes -= b->whole;
    c->hanging_count--;
}

/* Takes the block off its place; from now on no reader finds it. */
static void unhang(struct cache *c, struct cached_block *b)
{
    queue_remove(c, b);
    atomic_store_explicit(b->place, NULL, memory_order_seq_cst);
}

/* The next block not visited since the hand last came by. Readers may set bits as fast as the hand
 * clears them: two rounds are enough of that. */
static struct cached_block *victim(struct cache *c)
{
    struct cached_block *b = c->hand ? c->hand : c->oldest;
    for (size_t left = 2 * c->hanging_count; left; left--) {
        if (!atomic_exchange_explicit(&b->visited, 0, memory_order_relaxed))
            break;
        b = b->newer ? b->newer : c->oldest;
    }
    c->hand = b->newer;
    return b;
}

/* Bytes that may hang once `whole` more do: some room is always on its way to be free. A cache that
 * has not even room for two such blocks lets all of it hang. */
static size_t hanging_most(const struct cache *c, size_t whole)
{
    size_t ahead = c->capacity / 16;
    if (ahead < whole)
        ahead = whole;
    return c->capacity - whole >= ahead ? c->capacity - ahead : c->capacity;
}

/* Takes as many off their places as `whole` more bytes need; linked by `older`. */
static struct cached_block *evict(struct cache *c, size_t whole)
{
    assert(mutex_held(&c->mutex));
    const size_t most = hanging_most(c, whole);
    struct cached_block *evicted = NULL;
    while (c->hanging_count && c->hanging_bytes + whole > most) {
        struct cached_block *b = victim(c);
        unhang(c, b);
        b->older = evicted;
        evicted = b;
    }
    return evicted;
}

static void retire(struct cache *c, struct cached_block *evicted)
{
    while (evicted) {
        struct cached_block *next = evicted->older;
        evicted->retired.free = retired_free;
        evicted->retired.ctx = evicted;
        epoch_retire(c->epoch, &evicted->retired);
        evicted = next;
    }
}

static bool fits(const struct cache *c, size_t whole)
{
    return c->capacity - atomic_load(&c->bytes) >= whole;
}

/* ---- the face ---- */

static void hang(struct cache *c, cache_place *place, struct cached_block *b)
{
    assert(mutex_held(&c->mutex));
    b->charged = true;
    b->place = place;
    cached_block_pin(b);
    atomic_fetch_add(&c->bytes, b->whole);
    atomic_store_explicit(place, b, memory_order_seq_cst);
    queue_push(c, b);
}

static bool is_empty(cache_place *place)
{
    return atomic_load_explicit(place, memory_order_relaxed) == NULL;
}

void cache_insert(struct cache *c, cache_place *place, struct cached_block *b)
{
    block_rank(b);
    if (b->whole > c->capacity)
        return;
    mutex_lock(&c->mutex);
    struct cached_block *evicted = is_empty(place) ? evict(c, b->whole) : NULL;
    mutex_unlock(&c->mutex);
    /* Without the lock: retiring may free whole tables of others, whose blocks are dropped then. */
    retire(c, evicted);
    if (!fits(c, b->whole))
        (void)epoch_reclaim(c->epoch);
    /* Only holders of the mutex hang blocks and raise `bytes`: of two readers with the same block
       one finds the place empty. */
    mutex_lock(&c->mutex);
    if (is_empty(place) && fits(c, b->whole))
        hang(c, place, b);
    mutex_unlock(&c->mutex);
}

void cache_drop(struct cache *c, cache_place *places, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!atomic_load_explicit(&places[i], memory_order_acquire))
            continue;
        mutex_lock(&c->mutex);
        struct cached_block *b = atomic_load(&places[i]);
        if (b)
            unhang(c, b);
        mutex_unlock(&c->mutex);
        cached_block_unpin(b);
    }
}

bool cache_has_room(const struct cache *c, size_t size)
{
    return c->capacity - c->capacity / 8 >= atomic_load(&c->bytes) + size;
}

size_t cache_bytes(const struct cache *c)
{
    return atomic_load(&c->bytes);
}

size_t cache_capacity(const struct cache *c)
{
    return c->capacity;
}

struct heap *cache_heap(const struct cache *c)
{
    return c->heap;
}

struct codec_pool *cache_codec(struct cache *c)
{
    return &c->codec;
}

/* What can fail; on failure all of it is undone. */
static bool parts_init(struct op *op, struct cache *c, const struct alloc *alloc)
{
    c->heap = heap_new(alloc);
    if (c->heap && mutex_init(op, &c->mutex) == TAMIZ_OK) {
        if (codec_pool_init(op, &c->codec) == TAMIZ_OK)
            return true;
        mutex_free(&c->mutex);
    }
    heap_free(c->heap);
    return false;
}

struct cache *cache_new(const struct alloc *alloc, struct epoch *epoch, size_t capacity)
{
    struct counters *count = mem_new_array(alloc, 1, sizeof *count);
    struct cache *c = mem_new_array(alloc, 1, sizeof *c);
    struct op op;
    op_init(&op, alloc, count);
    const bool ok = c && count && parts_init(&op, c, alloc);
    mem_free(alloc, count, sizeof *count);
    if (!ok) {
        mem_free(alloc, c, sizeof *c);
        return NULL;
    }
    c->alloc = alloc;
    c->epoch = epoch;
    c->capacity = capacity;
    atomic_init(&c->bytes, 0);
    atomic_init(&c->holders, 1);
    return c;
}

void cache_free(struct cache *c)
{
    if (!c)
        return;
    (void)epoch_reclaim(c->epoch);
    assert(c->hanging_count == 0);
    cache_release(c);
}
