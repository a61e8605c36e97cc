/* SPDX-License-Identifier: MIT */
#include "table/index.h"

#include "base/fetch.h"
#include "base/key.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- writing ---- */

void index_builder_init(struct index_builder *b, const struct alloc *alloc)
{
    *b = (struct index_builder){buf_init(alloc), buf_init(alloc), 0};
}

void index_builder_free(struct index_builder *b)
{
    buf_free(&b->fences);
    buf_free(&b->entries);
    b->count = 0;
}

struct built_entry {
    uint64_t fence_end, stored, raw;
};

void index_builder_add(struct index_builder *b, struct slice fence, uint64_t stored, uint64_t raw)
{
    buf_slice_append(&b->fences, fence);
    const struct built_entry e = {b->fences.size, stored, raw};
    buf_append(&b->entries, &e, sizeof e);
    b->count++;
}

static struct built_entry built_at(const struct index_builder *b, size_t i, struct slice *fence)
{
    struct built_entry e, before = {0, 0, 0};
    memcpy(&e, b->entries.data + i * sizeof e, sizeof e);
    if (i)
        memcpy(&before, b->entries.data + (i - 1) * sizeof e, sizeof e);
    const size_t size = (size_t)(e.fence_end - before.fence_end);
    *fence = slice_of(size ? b->fences.data + before.fence_end : NULL, size);
    return e;
}

static struct slice behind(struct slice key, size_t skip)
{
    return skip ? slice_of(key.data + skip, key.size - skip) : key;
}

tamiz_status index_builder_finish(struct op *op, struct index_builder *b, struct buf *out)
{
    if (b->fences.failed || b->entries.failed)
        return op_fail_memory(op);
    struct slice first = {NULL, 0}, last = {NULL, 0};
    if (b->count) {
        (void)built_at(b, 0, &first);
        (void)built_at(b, b->count - 1, &last);
    }
    const struct slice prefix = slice_of(first.data, slice_common_prefix(first, last));
    buf_block(out, prefix);
    buf_varint(out, b->count);
    struct slice before = {NULL, 0};
    for (size_t i = 0; i < b->count; i++) {
        struct slice fence;
        const struct built_entry e = built_at(b, i, &fence);
        const struct slice rest = behind(fence, prefix.size);
        const size_t shared = slice_common_prefix(before, rest);
        buf_varint(out, shared);
        buf_block(out, behind(rest, shared));
        buf_varint(out, e.stored);
        buf_varint(out, e.raw);
        before = rest;
    }
    return out->failed ? op_fail_memory(op) : TAMIZ_OK;
}

/* ---- reading ---- */

enum {
    NODE = 16, /* integers a node: two cache lines            */
    CHILDREN = NODE + 1,
    LAYERS_MAX = 9, /* 16 × 17^8 blocks are more than a uint32_t counts */
};

/* Where a block is, how large it is unpacked, and where its fence ends among the fences. */
struct place {
    uint64_t offset;
    uint64_t raw;
    uint64_t fence_end;
};

struct index {
    const struct alloc *alloc;
    uint32_t count;
    uint32_t layers;
    enum index_way way;
    size_t prefix_size;
    const uint8_t *prefix;
    int64_t *tree; /* integers with the sign bit flipped, so that signed comparison orders them */
    size_t
        layer_at[LAYERS_MAX]; /* first integer of each layer; 0 is the lowest: the sorted array */
    struct place *places;     /* count + 1: the last one only says where the blocks end */
    uint8_t *fences;          /* behind the prefix, one behind the other */
    size_t tree_count, places_bytes, fences_bytes, prefix_bytes;
    uint8_t least, most; /* bytes that the words are made of */
};

uint32_t index_count(const struct index *index)
{
    return index->count;
}

struct extent index_extent(const struct index *index, uint32_t block)
{
    const struct place *p = &index->places[block];
    return (struct extent){p->offset, p[1].offset - p->offset - BLOCK_TRAILER_SIZE};
}

uint64_t index_raw_size(const struct index *index, uint32_t block)
{
    return index->places[block].raw;
}

static struct slice fence_at(const struct index *index, uint32_t i)
{
    const uint64_t start = i ? index->places[i - 1].fence_end : 0;
    const uint64_t size = index->places[i].fence_end - start;
    return slice_of(size ? index->fences + start : NULL, (size_t)size);
}

struct slice index_fence(const struct index *index, uint32_t block, struct slice *prefix)
{
    *prefix = slice_of(index->prefix, index->prefix_size);
    return fence_at(index, block);
}

size_t index_memory(const struct index *index)
{
    return sizeof *index + index->tree_count * sizeof *index->tree + index->places_bytes +
           index->fences_bytes + index->prefix_bytes;
}

void index_free(struct index *index)
{
    if (!index)
        return;
    mem_free_aligned(index->alloc, index->tree, index->tree_count * sizeof *index->tree, 64);
    mem_free(index->alloc, index->places, index->places_bytes);
    mem_free(index->alloc, index->fences, index->fences_bytes);
    mem_free(index->alloc, (void *)(uintptr_t)index->prefix, index->prefix_bytes);
    mem_free(index->alloc, index, sizeof *index);
}

/* ---- the tree ---- */

static int64_t flipped(uint64_t word)
{
    return (int64_t)(word ^ (UINT64_C(1) << 63));
}

static uint64_t unflipped(int64_t word)
{
    return (uint64_t)word ^ UINT64_C(1) << 63;
}

/* Nodes of layer 0, then of each layer above until one node is the root. Returns all integers. */
static size_t plan_layers(struct index *index)
{
    size_t nodes = ((size_t)index->count + NODE - 1) / NODE;
    size_t total = 0;
    index->layers = 0;
    while (nodes) {
        index->layer_at[index->layers++] = total;
        total += nodes * NODE;
        nodes = nodes == 1 ? 0 : (nodes + CHILDREN - 1) / CHILDREN;
    }
    return total;
}

/* The largest integer below child `child` of the layer above `layer`; the largest there is where
 * that is the layer's last child, so that no search leaves the tree. */
static int64_t subtree_largest(const struct index *index, size_t layer, size_t child)
{
    const size_t leaves = ((size_t)index->count + NODE - 1) / NODE;
    size_t leaf = child;
    for (size_t l = layer; l > 0; l--)
        leaf = leaf * CHILDREN + NODE;
    return leaf + 1 < leaves ? index->tree[leaf * NODE + NODE - 1] : INT64_MAX;
}

static bool tree_build(struct index *index)
{
    index->tree_count = plan_layers(index);
    index->tree = mem_new_aligned(index->alloc, index->tree_count * sizeof *index->tree, 64);
    if (!index->tree)
        return false;
    const size_t lowest = index->layers > 1 ? index->layer_at[1] : index->tree_count;
    for (size_t i = 0; i < lowest; i++)
        index->tree[i] =
            i < index->count ? flipped(slice_prefix8(fence_at(index, (uint32_t)i), 0)) : INT64_MAX;
    for (size_t layer = 1; layer < index->layers; layer++) {
        const size_t end =
            layer + 1 < index->layers ? index->layer_at[layer + 1] : index->tree_count;
        for (size_t i = index->layer_at[layer]; i < end; i++) {
            const size_t at = i - index->layer_at[layer];
            const size_t child = at / NODE * CHILDREN + at % NODE;
            index->tree[i] = subtree_largest(index, layer - 1, child);
        }
    }
    return true;
}

/* How many of a node's 16 integers are below x. */
static inline unsigned node_below(const int64_t *node, int64_t x)
{
    unsigned below = 0;
    for (unsigned i = 0; i < NODE; i++)
        below += node[i] < x;
    return below;
}

/* Starts fetching what stands beside the node's 16 fences. */
static inline void fetch_beside(const void *beside, size_t node)
{
    if (!beside)
        return;
    const uint8_t *at = (const uint8_t *)beside + node * NODE * sizeof(void *);
    fetch_line(at);
    fetch_line(at + 64);
}

/* The node of the lowest layer that x belongs to. */
static size_t node_portable(const struct index *index, int64_t x)
{
    size_t node = 0;
    for (size_t layer = index->layers - 1; layer > 0; layer--)
        node = node * CHILDREN + node_below(&index->tree[index->layer_at[layer] + node * NODE], x);
    return node;
}

#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,popcnt")))

AVX2 static inline unsigned node_below_avx2(const int64_t *node, int64_t x)
{
    const __m256i wanted = _mm256_set1_epi64x(x);
    const __m256i *four = (const __m256i *)(const void *)node;
    __m256i below = _mm256_setzero_si256(); /* minus the count, in four lanes */
#pragma GCC unroll 4
    for (unsigned i = 0; i < NODE / 4; i++)
        below = _mm256_add_epi64(below, _mm256_cmpgt_epi64(wanted, _mm256_load_si256(four + i)));
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(below), _mm256_extracti128_si256(below, 1));
    return (unsigned)-(_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 2));
}

AVX2 static size_t node_avx2(const struct index *index, int64_t x)
{
    size_t node = 0;
    for (size_t layer = index->layers - 1; layer > 0; layer--)
        node = node * CHILDREN +
               node_below_avx2(&index->tree[index->layer_at[layer] + node * NODE], x);
    return node;
}

AVX2 static size_t rank_avx2(const struct index *index, int64_t x, const void *beside)
{
    const size_t node = node_avx2(index, x);
    fetch_beside(beside, node);
    return node * NODE + node_below_avx2(&index->tree[node * NODE], x);
}

AVX512 static inline unsigned node_below_avx512(const int64_t *node, int64_t x)
{
    const __m512i wanted = _mm512_set1_epi64(x);
    const unsigned low = _mm512_cmplt_epi64_mask(_mm512_load_si512(node), wanted);
    const unsigned high = _mm512_cmplt_epi64_mask(_mm512_load_si512(node + NODE / 2), wanted);
    return (unsigned)__builtin_popcount(low | high << NODE / 2);
}

AVX512 static size_t node_avx512(const struct index *index, int64_t x)
{
    size_t node = 0;
    for (size_t layer = index->layers - 1; layer > 0; layer--)
        node = node * CHILDREN +
               node_below_avx512(&index->tree[index->layer_at[layer] + node * NODE], x);
    return node;
}

AVX512 static size_t rank_avx512(const struct index *index, int64_t x, const void *beside)
{
    const size_t node = node_avx512(index, x);
    fetch_beside(beside, node);
    return node * NODE + node_below_avx512(&index->tree[node * NODE], x);
}
#endif

static enum index_way best_way(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt"))
        return INDEX_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return INDEX_AVX2;
#endif
    return INDEX_PORTABLE;
}

static size_t tree_node(const struct index *index, int64_t x)
{
#if defined(__x86_64__)
    if (index->way == INDEX_AVX512)
        return node_avx512(index, x);
    if (index->way == INDEX_AVX2)
        return node_avx2(index, x);
#endif
    return node_portable(index, x);
}

/* How many of a lowest node's fences have an integer below x. */
static unsigned node_rank(const struct index *index, size_t node, int64_t x)
{
    const int64_t *fences = &index->tree[node * NODE];
#if defined(__x86_64__)
    if (index->way == INDEX_AVX512)
        return node_below_avx512(fences, x);
    if (index->way == INDEX_AVX2)
        return node_below_avx2(fences, x);
#endif
    return node_below(fences, x);
}

/* How many fences have an integer below x. */
static size_t tree_rank(const struct index *index, int64_t x, const void *beside)
{
#if defined(__x86_64__)
    if (index->way == INDEX_AVX512)
        return rank_avx512(index, x, beside);
    if (index->way == INDEX_AVX2)
        return rank_avx2(index, x, beside);
#endif
    const size_t node = node_portable(index, x);
    fetch_beside(beside, node);
    return node * NODE + node_below(&index->tree[node * NODE], x);
}

/* Among fences from `from` on whose integer equals x: the first not below `rest`, else the first
 * behind them. */
static uint32_t settle_ties(const struct index *index, uint32_t from, int64_t x, struct slice rest)
{
    uint32_t end = from, step = 1; /* gallop to the end of the ties, then halve */
    while (end < index->count && index->tree[end] == x) {
        end = index->count - end > step ? end + step : index->count;
        step *= 2;
    }
    while (from < end) {
        const uint32_t middle = from + (end - from) / 2;
        const bool below =
            index->tree[middle] == x && slice_compare(fence_at(index, middle), rest) < 0;
        if (below)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

uint32_t index_find_beside(const struct index *index, struct slice key, const void *beside)
{
    if (index->count == 0)
        return 0;
    const struct slice prefix = slice_of(index->prefix, index->prefix_size);
    if (!slice_has_prefix(key, prefix))
        return slice_compare(key, prefix) < 0 ? 0 : index->count;
    const int64_t x = flipped(slice_prefix8(key, prefix.size));
    const size_t rank = tree_rank(index, x, beside);
    if (rank >= index->count)
        return index->count;
    const uint32_t i = (uint32_t)rank;
    return index->tree[i] == x ? settle_ties(index, i, x, behind(key, prefix.size)) : i;
}

struct index_search index_search_begin(const struct index *index, struct slice key,
                                       const void *beside)
{
    const struct slice prefix = slice_of(index->prefix, index->prefix_size);
    struct index_search s = {INDEX_NO_NODE, 0};
    if (index->count == 0 || !slice_has_prefix(key, prefix))
        return s;
    s.word = flipped(slice_prefix8(key, prefix.size));
    const size_t node = tree_node(index, s.word);
    if (node * NODE >= index->count)
        return s;
    fetch_line(&index->tree[node * NODE]);
    fetch_line(&index->tree[node * NODE + NODE / 2]);
    fetch_beside(beside, node);
    s.node = node;
    return s;
}

void index_fetch(const struct index *index, struct slice key, const void *beside)
{
    (void)index_search_begin(index, key, beside);
}

uint32_t index_search_end(const struct index *index, struct slice key, struct index_search search)
{
    if (search.node == INDEX_NO_NODE)
        return index_find(index, key);
    const size_t rank = search.node * NODE + node_rank(index, search.node, search.word);
    if (rank >= index->count)
        return index->count;
    const uint32_t i = (uint32_t)rank;
    return index->tree[i] == search.word
               ? settle_ties(index, i, search.word, behind(key, index->prefix_size))
               : i;
}

/* ---- guessing ---- */

static uint8_t byte_of(uint64_t word, unsigned i)
{
    return (uint8_t)(word >> (56 - 8 * i));
}

/* Keys rarely use all of a byte: numbers as text count to ten in each. So a word is read as a
 * number of eight digits, of as many kinds as there are bytes between the least and the most. 0 is
 * left out: behind a shortened fence it is no byte at all. */
static void learn_alphabet(struct index *index)
{
    const uint32_t stride = index->count / 256 + 1;
    index->least = UINT8_MAX;
    for (uint32_t b = 0; b < index->count; b += stride)
        for (unsigned i = 0; i < 8; i++) {
            const uint8_t byte = byte_of(unflipped(index->tree[b]), i);
            index->least = byte && byte < index->least ? byte : index->least;
            index->most = byte > index->most ? byte : index->most;
        }
}

typedef uint8_t bytes8 __attribute__((vector_size(8)));

/* Each byte as a digit, what lies outside of the alphabet as its first or last. */
static uint64_t digits_of(const struct index *index, uint64_t word)
{
    const bytes8 least = (bytes8){0} + index->least, most = (bytes8){0} + index->most;
    bytes8 d;
    memcpy(&d, &word, sizeof d);
    const bytes8 below = (bytes8)(d < least), above = (bytes8)(d > most);
    d = ((d & ~below & ~above) | (least & below) | (most & above)) - least;
    memcpy(&word, &d, sizeof word);
    return word;
}

/* The eight digits as a number: neighbours become one digit of radix^2, then radix^4. */
static uint64_t number_of(const struct index *index, uint64_t word)
{
    const uint64_t radix = (uint64_t)(index->most - index->least) + 1, square = radix * radix;
    const uint64_t pairs = UINT64_C(0x00ff00ff00ff00ff), fours = UINT64_C(0x0000ffff0000ffff);
    uint64_t n = digits_of(index, word);
    n = (n >> 8 & pairs) * radix + (n & pairs);
    n = (n >> 16 & fours) * square + (n & fours);
    return (n >> 32) * square * square + (uint32_t)n;
}

uint32_t index_part(const struct index *index, uint32_t block, struct index_search search)
{
    if (search.node == INDEX_NO_NODE || block == 0 || index->most <= index->least)
        return 0;
    const uint64_t from = number_of(index, unflipped(index->tree[block - 1]));
    const uint64_t far = number_of(index, unflipped(search.word)) - from;
    const uint64_t whole = number_of(index, unflipped(index->tree[block])) - from;
    if (far >= whole)
        return whole ? INDEX_WHOLE : 0;
    return (uint32_t)(whole >> 47 ? far / (whole / INDEX_WHOLE) : far * INDEX_WHOLE / whole);
}

uint32_t index_find(const struct index *index, struct slice key)
{
    return index_find_beside(index, key, NULL);
}

bool index_use(struct index *index, enum index_way way)
{
    if (way > best_way())
        return false;
    index->way = way;
    return true;
}

/* ---- decoding ---- */

static tamiz_status damaged(struct op *op, const char *path, uint64_t block, const char *expected,
                            uint64_t found)
{
    return op_fail(op, TAMIZ_CORRUPTION, "%s: index entry %llu: expected %s, found %llu", path,
                   (unsigned long long)block, expected, (unsigned long long)found);
}

/* The fence before entry `i`: the last one in `fences`. */
static struct slice fence_before(const struct index *index, uint32_t i, const struct buf *fences)
{
    const uint64_t start = i > 1 ? index->places[i - 2].fence_end : 0;
    return fences->size > start ? slice_of(fences->data + start, (size_t)(fences->size - start))
                                : slice_of(NULL, 0);
}

/* One entry: appends its fence to `fences`. */
static tamiz_status entry_decode(struct op *op, struct index *index, struct reader *r, uint32_t i,
                                 uint64_t data_end, const char *path, struct buf *fences)
{
    const uint64_t shared = reader_varint(r);
    const struct slice suffix = reader_block(r);
    const uint64_t stored = reader_varint(r), raw = reader_varint(r);
    struct place *p = &index->places[i];
    if (r->bad)
        return damaged(op, path, i, "a whole entry, bytes left", reader_left(r));
    if (shared > fence_before(index, i, fences).size)
        return damaged(op, path, i, "fewer bytes shared than the fence before has", shared);
    const uint64_t size = shared + suffix.size;
    if (size > KEY_SIZE_MAX - index->prefix_size || index->prefix_size + size > raw)
        return damaged(op, path, i, "a fence no longer than a key and its block", size);
    if (stored > data_end - p->offset || data_end - p->offset - stored < BLOCK_TRAILER_SIZE)
        return damaged(op, path, i, "a block that ends before the blocks do, size", stored);
    if (!buf_reserve(fences, (size_t)size))
        return op_fail_memory(op);
    const struct slice old = fence_before(index, i, fences); /* where it stands after the reserve */
    const size_t start = fences->size;
    buf_append(fences, old.data, (size_t)shared);
    buf_slice_append(fences, suffix);
    const struct slice fence = slice_of(size ? fences->data + start : NULL, (size_t)size);
    if (i && slice_compare(old, fence) >= 0)
        return damaged(op, path, i, "a fence above the one before, bytes shared", shared);
    p->raw = raw;
    p->fence_end = fences->size;
    p[1].offset = p->offset + stored + BLOCK_TRAILER_SIZE;
    return TAMIZ_OK;
}

static tamiz_status prefix_decode(struct op *op, struct index *index, struct reader *r,
                                  const char *path)
{
    const struct slice prefix = reader_block(r);
    const uint64_t count = reader_varint(r);
    /* An entry takes four bytes at least. */
    if (r->bad || prefix.size > KEY_SIZE_MAX || count > reader_left(r) / 4 || count >= UINT32_MAX)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: index: expected a prefix and at most %zu entries, found %llu", path,
                       reader_left(r) / 4, (unsigned long long)count);
    uint8_t *copy = mem_new(index->alloc, prefix.size);
    if (!copy)
        return op_fail_memory(op);
    if (prefix.size)
        memcpy(copy, prefix.data, prefix.size);
    index->prefix = copy;
    index->prefix_size = index->prefix_bytes = prefix.size;
    index->count = (uint32_t)count;
    index->places_bytes = ((size_t)count + 1) * sizeof *index->places;
    index->places = mem_new(index->alloc, index->places_bytes);
    if (!index->places)
        return op_fail_memory(op);
    index->places[0] = (struct place){TABLE_HEADER_SIZE, 0, 0};
    return TAMIZ_OK;
}

static tamiz_status entries_decode(struct op *op, struct index *index, struct reader *r,
                                   uint64_t data_end, const char *path)
{
    struct buf fences = buf_init(index->alloc);
    tamiz_status st = TAMIZ_OK;
    for (uint32_t i = 0; i < index->count; i++)
        TRY(entry_decode(op, index, r, i, data_end, path, &fences));
    if (index->places[index->count].offset != data_end)
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "%s: index: expected the blocks to end at offset %llu, found %llu", path,
                    (unsigned long long)data_end,
                    (unsigned long long)index->places[index->count].offset));
    if (reader_left(r))
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "%s: index: expected nothing behind entry %u, found %zu bytes", path,
                    index->count, reader_left(r)));
done:
    index->fences = fences.data;
    index->fences_bytes = fences.capacity;
    return st;
}

tamiz_status index_open(struct op *op, struct slice payload, uint64_t data_end, const char *path,
                        const struct alloc *alloc, struct index **index)
{
    struct reader r = reader_of(payload);
    tamiz_status st = TAMIZ_OK;
    *index = NULL;
    if (data_end < TABLE_HEADER_SIZE)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: expected the blocks to end behind the header, found offset %llu", path,
                       (unsigned long long)data_end);
    struct index *ix = mem_new_array(alloc, 1, sizeof *ix);
    if (!ix)
        return op_fail_memory(op);
    ix->alloc = alloc;
    ix->way = best_way();
    TRY(prefix_decode(op, ix, &r, path));
    TRY(entries_decode(op, ix, &r, data_end, path));
    if (!tree_build(ix))
        TRY(op_fail_memory(op));
    learn_alphabet(ix);
    *index = ix;
    ix = NULL;
done:
    index_free(ix);
    return st;
}
