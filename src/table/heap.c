/* SPDX-License-Identifier: MIT
 *
 * A chunk, in granules of 64 bytes. Each piece has 16 bytes of its own in front of what its owner
 * sees, in the end of the granule before:
 *
 *     |<- chunk: 64 B ->|<------ piece: n granules ------>|<---- piece ---->|       |
 *     | link, size | H  | owner's bytes, 64 n - 16   | H  | …          | H  |
 *                    ^ of the first                    ^ of the second   ^ the end: 0 granules,
 * taken
 *
 * H holds the granules of its piece and of the one before, which is what joining needs. A free
 * piece keeps the links of its list in the owner's bytes. What nobody has had yet is always the end
 * of a chunk, and of its last piece, whose H says how many granules.
 */
#include "table/heap.h"

#include <assert.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(at, size)   ASAN_POISON_MEMORY_REGION(at, size)
#define UNPOISON(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define POISON(at, size)   ((void)(at), (void)(size))
#define UNPOISON(at, size) ((void)(at), (void)(size))
#endif

enum {
    GRANULE = 64,
    SECOND = 8, /* lists a power of two */
    SECOND_BITS = 3,
    LOOK = 8,   /* pieces of a list */
    FIRST = 32, /* powers of two: pieces are counted in 32 bits */
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    HUGE_FROM = 4 << 20, /* chunks with huge pages: base/alloc.c */
    CHUNK_LEAST = 256 << 10,
    CHUNK_MOST = 32 << 20,
};

struct piece_header {
    uint32_t granules;
    uint32_t before; /* granules of the piece in front; 0: this is the first */
    uint32_t taken;
    uint32_t untouched; /* of a free piece: granules at its end that nobody has had */
};

struct free_links {
    struct free_links *next, **pointer; /* what points here */
};

struct chunk {
    struct chunk *next, *previous;
    size_t size;
};

struct heap {
    const struct alloc *alloc;
    struct alloc face; /* heap_alloc() */
    struct mutex mutex;
    struct chunk *chunks; /* guarded by mutex, as all below */
    size_t bytes;
    uint32_t first_bits;
    uint8_t second_bits[FIRST];
    struct free_links *lists[FIRST][SECOND];
};

static_assert(sizeof(struct piece_header) == 16 && sizeof(struct free_links) <= GRANULE - 16 &&
                  sizeof(struct chunk) <= GRANULE - sizeof(struct piece_header),
              "as drawn");

/* ---- pieces ---- */

static struct piece_header *header_of(void *p)
{
    return (struct piece_header *)(void *)((uint8_t *)p - sizeof(struct piece_header));
}

static void *behind(void *p)
{
    return (uint8_t *)p + (size_t)header_of(p)->granules * GRANULE;
}

static void *before(void *p)
{
    return (uint8_t *)p - (size_t)header_of(p)->before * GRANULE;
}

static size_t granules_for(size_t size)
{
    return (size + sizeof(struct piece_header) + GRANULE - 1) / GRANULE;
}

static size_t owners_bytes(void *p)
{
    return (size_t)header_of(p)->granules * GRANULE - sizeof(struct piece_header);
}

/* ---- lists ---- */

struct list_place {
    unsigned first, second;
};

/* The list that a piece of n granules belongs to: its power of two, and the eighth within. */
static struct list_place place_of(uint32_t n)
{
    const unsigned first = 31 - (unsigned)__builtin_clz(n);
    const unsigned second = first < SECOND_BITS ? (n << (SECOND_BITS - first)) & (SECOND - 1)
                                                : n >> (first - SECOND_BITS) & (SECOND - 1);
    return (struct list_place){first, second};
}

static void list_add(struct heap *h, void *p)
{
    const struct list_place at = place_of(header_of(p)->granules);
    struct free_links **list = &h->lists[at.first][at.second];
    struct free_links *links = p;
    *links = (struct free_links){*list, list};
    if (links->next)
        links->next->pointer = &links->next;
    *list = links;
    h->first_bits |= UINT32_C(1) << at.first;
    h->second_bits[at.first] |= (uint8_t)(1u << at.second);
    header_of(p)->taken = 0;
    POISON(links + 1, owners_bytes(p) - sizeof *links);
}

static void list_remove(struct heap *h, void *p)
{
    const struct list_place at = place_of(header_of(p)->granules);
    struct free_links *links = p;
    *links->pointer = links->next;
    if (links->next)
        links->next->pointer = links->pointer;
    header_of(p)->taken = 1;
    UNPOISON(p, owners_bytes(p));
    if (h->lists[at.first][at.second])
        return;
    h->second_bits[at.first] &= (uint8_t) ~(1u << at.second);
    if (!h->second_bits[at.first])
        h->first_bits &= ~(UINT32_C(1) << at.first);
}

/* Among the first few of the list that n itself belongs to. Blocks are nearly all of a size: most
 * of what was freed is there, and without a look it would wait for its neighbours to be freed, too.
 */
static void *list_find_near(const struct heap *h, uint32_t n)
{
    const struct list_place at = place_of(n);
    struct free_links *links = h->lists[at.first][at.second];
    for (int i = 0; i < LOOK && links; i++, links = links->next)
        if (header_of(links)->granules >= n)
            return links;
    return NULL;
}

/* A free piece of a list all of whose pieces have n granules at least; NULL: there is none. */
static void *list_find(const struct heap *h, uint32_t n)
{
    const unsigned power = 31 - (unsigned)__builtin_clz(n);
    if (power > SECOND_BITS) /* to the next eighth, where no piece is too small */
        n += (UINT32_C(1) << (power - SECOND_BITS)) - 1;
    const struct list_place at = place_of(n);
    const unsigned here = h->second_bits[at.first] & (0xffu << at.second);
    if (here)
        return h->lists[at.first][__builtin_ctz(here)];
    const uint32_t above =
        at.first + 1 < FIRST ? h->first_bits & (~UINT32_C(0) << (at.first + 1)) : 0;
    if (!above)
        return NULL;
    const unsigned first = (unsigned)__builtin_ctz(above);
    return h->lists[first][__builtin_ctz(h->second_bits[first])];
}

/* ---- chunks ---- */

static size_t chunk_size(const struct heap *h, size_t granules)
{
    size_t size = h->bytes < CHUNK_LEAST ? CHUNK_LEAST : h->bytes;
    if (size > CHUNK_MOST)
        size = CHUNK_MOST;
    const size_t least = (granules + 2) * GRANULE;
    if (size < least)
        size = least;
    const size_t unit = size >= HUGE_PAGE ? HUGE_PAGE : GRANULE;
    return (size + unit - 1) / unit * unit;
}

/* One free piece; NULL: memory is out. */
static void *chunk_new(struct heap *h, size_t granules)
{
    const size_t size = chunk_size(h, granules);
    const size_t whole = size / GRANULE - 2; /* without the two ends */
    struct chunk *c = whole <= UINT32_MAX ? mem_new_aligned(h->alloc, size, GRANULE) : NULL;
    if (!c)
        return NULL;
    *c = (struct chunk){h->chunks, NULL, size};
    if (h->chunks)
        h->chunks->previous = c;
    h->chunks = c;
    h->bytes += size;
    void *p = (uint8_t *)c + GRANULE;
    *header_of(p) = (struct piece_header){(uint32_t)whole, 0, 0, (uint32_t)whole};
    *header_of(behind(p)) = (struct piece_header){0, (uint32_t)whole, 1, 0};
    list_add(h, p);
    return p;
}

static void chunk_free(struct heap *h, struct chunk *c)
{
    if (c->previous)
        c->previous->next = c->next;
    else
        h->chunks = c->next;
    if (c->next)
        c->next->previous = c->previous;
    h->bytes -= c->size;
    mem_free_aligned(h->alloc, c, c->size, GRANULE);
}

/* ---- the face ---- */

/* Cuts what is more than n granules off, and leaves it free. */
static void split(struct heap *h, void *p, uint32_t n)
{
    struct piece_header *header = header_of(p);
    const uint32_t rest = header->granules - n;
    const uint32_t untouched = header->untouched < rest ? header->untouched : rest;
    header->untouched = 0;
    if (rest == 0)
        return;
    header->granules = n;
    void *q = behind(p);
    *header_of(q) = (struct piece_header){rest, n, 0, untouched};
    header_of(behind(q))->before = rest;
    list_add(h, q);
}

void *heap_take(struct heap *h, size_t size)
{
    if (size > SIZE_MAX / 4 || granules_for(size) > UINT32_MAX / 4)
        return NULL;
    const uint32_t n = (uint32_t)granules_for(size);
    mutex_lock(&h->mutex);
    void *p = list_find_near(h, n);
    if (!p)
        p = list_find(h, n);
    if (!p)
        p = chunk_new(h, n);
    if (p) {
        list_remove(h, p);
        split(h, p, n);
        POISON((uint8_t *)p + size, owners_bytes(p) - size);
    }
    mutex_unlock(&h->mutex);
    return p;
}

/* Joined with its free neighbours. */
static void *join(struct heap *h, void *p)
{
    void *next = behind(p);
    if (!header_of(next)->taken) {
        list_remove(h, next);
        header_of(p)->granules += header_of(next)->granules;
        header_of(p)->untouched = header_of(next)->untouched;
    }
    if (header_of(p)->before && !header_of(before(p))->taken) {
        void *first = before(p);
        list_remove(h, first);
        header_of(first)->granules += header_of(p)->granules;
        header_of(first)->untouched = header_of(p)->untouched;
        p = first;
    }
    header_of(behind(p))->before = header_of(p)->granules;
    return p;
}

void heap_give(struct heap *h, void *p)
{
    if (!p)
        return;
    mutex_lock(&h->mutex);
    assert(header_of(p)->taken);
    UNPOISON(p, owners_bytes(p));
    p = join(h, p);
    struct chunk *c = (struct chunk *)(void *)((uint8_t *)p - GRANULE);
    const bool whole = header_of(p)->before == 0 && header_of(behind(p))->granules == 0;
    if (whole && h->chunks->next)
        chunk_free(h, c);
    else
        list_add(h, p);
    mutex_unlock(&h->mutex);
}

static void *heap_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct heap *h = ctx;
    if (p && new_size && granules_for(new_size) == granules_for(old_size)) {
        UNPOISON(p, new_size);
        return p;
    }
    void *q = new_size ? heap_take(h, new_size) : NULL;
    if (new_size && !q)
        return NULL;
    if (p && q)
        memcpy(q, p, old_size < new_size ? old_size : new_size);
    heap_give(h, p);
    return q;
}

size_t heap_whole(size_t size)
{
    return granules_for(size) * GRANULE;
}

size_t heap_bytes(struct heap *h)
{
    mutex_lock(&h->mutex);
    const size_t bytes = h->bytes;
    mutex_unlock(&h->mutex);
    return bytes;
}

/* Of the chunk's last piece, which its end marker leads to. */
static size_t chunk_untouched(const struct chunk *c)
{
    uint8_t *end = (uint8_t *)(uintptr_t)c + c->size / GRANULE * GRANULE - GRANULE;
    const struct piece_header *last = header_of(before(end));
    const size_t page = c->size >= HUGE_FROM ? HUGE_PAGE : PAGE;
    return last->taken ? 0 : (size_t)last->untouched * GRANULE / page * page;
}

size_t heap_untouched(struct heap *h)
{
    size_t bytes = 0;
    mutex_lock(&h->mutex);
    for (const struct chunk *c = h->chunks; c; c = c->next)
        bytes += chunk_untouched(c);
    mutex_unlock(&h->mutex);
    return bytes;
}

const struct alloc *heap_alloc(const struct heap *h)
{
    return &h->face;
}

struct heap *heap_new(const struct alloc *alloc)
{
    struct heap *h = mem_new_array(alloc, 1, sizeof *h);
    if (!h)
        return NULL;
    struct counters *count = mem_new_array(alloc, 1, sizeof *count);
    struct op op;
    op_init(&op, alloc, count);
    const bool ok = count && mutex_init(&op, &h->mutex) == TAMIZ_OK;
    mem_free(alloc, count, sizeof *count);
    if (!ok) {
        mem_free(alloc, h, sizeof *h);
        return NULL;
    }
    h->alloc = alloc;
    h->face = (struct alloc){{heap_resize, h}, NULL};
    return h;
}

void heap_free(struct heap *h)
{
    if (!h)
        return;
    while (h->chunks)
        chunk_free(h, h->chunks);
    mutex_free(&h->mutex);
    mem_free(h->alloc, h, sizeof *h);
}
