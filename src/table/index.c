/* SPDX-License-Identifier: MIT */
#include "table/index.h"

#include "base/key.h"

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

/* Where a block is, how large it is unpacked, and where its fence ends among the fences. */
struct place {
    uint64_t offset;
    uint64_t raw;
    uint64_t fence_end;
};

struct index {
    const struct alloc *alloc;
    struct fence_tree tree; /* of the fences' first eight bytes behind the prefix */
    struct alphabet alphabet;
    uint32_t count;
    size_t prefix_size;
    const uint8_t *prefix;
    struct place *places; /* count + 1: the last one only says where the blocks end */
    uint8_t *fences;      /* behind the prefix, one behind the other */
    size_t places_bytes, fences_bytes, prefix_bytes;
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
    return sizeof *index + index->tree.total * sizeof *index->tree.words + index->places_bytes +
           index->fences_bytes + index->prefix_bytes;
}

void index_free(struct index *index)
{
    if (!index)
        return;
    fence_tree_free(&index->tree, index->alloc);
    mem_free(index->alloc, index->places, index->places_bytes);
    mem_free(index->alloc, index->fences, index->fences_bytes);
    mem_free(index->alloc, (void *)(uintptr_t)index->prefix, index->prefix_bytes);
    mem_free(index->alloc, index, sizeof *index);
}

/* ---- finding ---- */

/* Among fences from `from` on whose integer equals x: the first not below `rest`, else the first
 * behind them. */
static uint32_t settle_ties(const struct index *index, uint32_t from, int64_t x, struct slice rest)
{
    uint32_t end = from, step = 1; /* gallop to the end of the ties, then halve */
    while (end < index->count && index->tree.words[end] == x) {
        end = index->count - end > step ? end + step : index->count;
        step *= 2;
    }
    while (from < end) {
        const uint32_t middle = from + (end - from) / 2;
        const bool below =
            index->tree.words[middle] == x && slice_compare(fence_at(index, middle), rest) < 0;
        if (below)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

/* The block that a key with `rank` integers below its own ends at. */
static inline uint32_t settled(const struct index *index, size_t rank, int64_t x, struct slice key)
{
    if (rank >= index->count)
        return index->count;
    const uint32_t i = (uint32_t)rank;
    return index->tree.words[i] == x ? settle_ties(index, i, x, behind(key, index->prefix_size))
                                     : i;
}

uint32_t index_find_beside(const struct index *index, struct slice key, const void *beside)
{
    if (index->count == 0)
        return 0;
    const struct slice prefix = slice_of(index->prefix, index->prefix_size);
    if (!slice_has_prefix(key, prefix))
        return slice_compare(key, prefix) < 0 ? 0 : index->count;
    const int64_t x = tree_word(slice_prefix8(key, prefix.size));
    return settled(index, fence_tree_rank(&index->tree, x, beside), x, key);
}

uint32_t index_find(const struct index *index, struct slice key)
{
    return index_find_beside(index, key, NULL);
}

struct index_search index_search_begin(const struct index *index, struct slice key,
                                       const void *beside)
{
    const struct slice prefix = slice_of(index->prefix, index->prefix_size);
    struct index_search s = {TREE_NO_NODE, 0};
    if (index->count == 0 || !slice_has_prefix(key, prefix))
        return s;
    s.word = tree_word(slice_prefix8(key, prefix.size));
    s.node = fence_tree_node(&index->tree, s.word, beside);
    return s;
}

void index_fetch(const struct index *index, struct slice key, const void *beside)
{
    (void)index_search_begin(index, key, beside);
}

uint32_t index_search_end(const struct index *index, struct slice key, struct index_search search)
{
    if (search.node == TREE_NO_NODE)
        return index_find(index, key);
    const size_t rank = fence_tree_rank_in(&index->tree, search.node, search.word);
    return settled(index, rank, search.word, key);
}

uint32_t index_part(const struct index *index, uint32_t block, struct index_search search)
{
    if (search.node == TREE_NO_NODE || block == 0)
        return 0;
    const int64_t *words = index->tree.words;
    return alphabet_part(index->alphabet, tree_bytes(words[block - 1]), tree_bytes(search.word),
                         tree_bytes(words[block]));
}

bool index_use(struct index *index, enum tree_way way)
{
    return fence_tree_use(&index->tree, way);
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

static bool tree_build(struct index *index)
{
    if (!fence_tree_init(&index->tree, index->alloc, index->count))
        return false;
    for (uint32_t i = 0; i < index->count; i++)
        index->tree.words[i] = tree_word(slice_prefix8(fence_at(index, i), 0));
    fence_tree_raise(&index->tree);
    return true;
}

/* About 256 fences tell. */
static void learn_alphabet(struct index *index)
{
    const uint32_t stride = index->count / 256 + 1;
    index->alphabet = ALPHABET_EMPTY;
    for (uint32_t b = 0; b < index->count; b += stride)
        alphabet_learn(&index->alphabet, tree_bytes(index->tree.words[b]));
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
