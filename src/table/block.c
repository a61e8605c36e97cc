/* SPDX-License-Identifier: MIT */
#include "table/block.h"

#include <assert.h>

#include "base/coding.h"
#include "table/tags.h"

/* ---- writing ---- */

void block_builder_init(struct block_builder *b, const struct alloc *alloc)
{
    *b = (struct block_builder){buf_init(alloc), buf_init(alloc), buf_init(alloc), buf_init(alloc),
                                0};
}

void block_builder_free(struct block_builder *b)
{
    buf_free(&b->entries);
    buf_free(&b->tags);
    buf_free(&b->offsets);
    buf_free(&b->restart);
    b->count = 0;
}

void block_builder_clear(struct block_builder *b)
{
    buf_clear(&b->entries);
    buf_clear(&b->tags);
    buf_clear(&b->offsets);
    buf_clear(&b->restart);
    b->count = 0;
}

void block_builder_add(struct block_builder *b, struct slice key, uint64_t hash, uint64_t stamp,
                       struct slice value)
{
    size_t shared = 0;
    if (b->count % BLOCK_GROUP == 0) {
        buf_clear(&b->restart);
        buf_slice_append(&b->restart, key);
    } else {
        shared = slice_common_prefix(buf_slice(&b->restart), key);
    }
    buf_u8(&b->tags, hash_tag(hash));
    buf_append(&b->offsets, &(uint64_t){b->entries.size}, sizeof(uint64_t));
    const struct slice suffix = {shared ? key.data + shared : key.data, key.size - shared};
    buf_varint(&b->entries, shared);
    buf_varint(&b->entries, suffix.size);
    buf_varint(&b->entries, value.size);
    buf_varint(&b->entries, stamp);
    buf_slice_append(&b->entries, suffix);
    buf_slice_append(&b->entries, value);
    b->count++;
}

static unsigned offset_width(size_t entries_size)
{
    return entries_size <= UINT16_MAX ? 2 : entries_size <= UINT32_MAX ? 4 : 8;
}

size_t block_builder_size(const struct block_builder *b)
{
    return BLOCK_HEADER_SIZE + b->count * (1 + offset_width(b->entries.size)) + b->entries.size;
}

static void put_offsets(const struct block_builder *b, unsigned width, struct buf *out)
{
    for (size_t i = 0; i < b->count; i++) {
        uint64_t offset;
        memcpy(&offset, b->offsets.data + i * sizeof offset, sizeof offset);
        uint8_t bytes[8];
        store_u64(bytes, offset);
        buf_append(out, bytes, width);
    }
}

tamiz_status block_builder_finish(struct op *op, struct block_builder *b, struct buf *out)
{
    if (b->entries.failed || b->tags.failed || b->offsets.failed || b->restart.failed ||
        !buf_reserve(out, block_builder_size(b)))
        return op_fail_memory(op);
    if (b->count > UINT32_MAX)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "%zu versions in one block: at most %u",
                       b->count, UINT32_MAX);
    const unsigned width = offset_width(b->entries.size);
    buf_u32(out, (uint32_t)b->count);
    buf_u8(out, (uint8_t)width);
    buf_u8(out, BLOCK_GROUP);
    buf_slice_append(out, buf_slice(&b->tags));
    put_offsets(b, width, out);
    buf_slice_append(out, buf_slice(&b->entries));
    return TAMIZ_OK;
}

/* ---- reading ---- */

static uint64_t offset_at(const struct block *b, uint32_t i)
{
    switch (b->width) {
    case 2: return load_u16(b->offsets + (size_t)i * 2);
    case 4: return load_u32(b->offsets + (size_t)i * 4);
    default: return load_u64(b->offsets + (size_t)i * 8);
    }
}

bool block_open(struct slice payload, struct block *b)
{
    memset(b, 0, sizeof *b);
    struct reader r = reader_of(payload);
    const uint32_t count = reader_u32(&r);
    const uint8_t width = reader_u8(&r);
    const uint8_t group = reader_u8(&r);
    const struct slice tags = reader_take(&r, count);
    const struct slice offsets = reader_take(&r, (uint64_t)count * width);
    if (r.bad || (width != 2 && width != 4 && width != 8) || group != BLOCK_GROUP)
        return false;
    b->count = count;
    b->width = width;
    b->tags = tags.data;
    b->offsets = offsets.data;
    b->entries = slice_of(r.at, reader_left(&r));
    return count ? offset_at(b, 0) == 0 : b->entries.size == 0;
}

/* An entry as it stands, its shared bytes not fetched yet. */
struct raw_entry {
    uint64_t shared;
    struct slice suffix;
    struct slice value;
    uint64_t stamp;
};

static bool raw_entry_at(const struct block *b, uint32_t i, struct raw_entry *e)
{
    const uint64_t start = offset_at(b, i);
    const uint64_t end = i + 1 < b->count ? offset_at(b, i + 1) : b->entries.size;
    if (end > b->entries.size || start >= end)
        return false;
    struct reader r = {b->entries.data + start, b->entries.data + end, false};
    uint64_t suffix_size, value_size;
    if (end - start > 3 && (r.at[0] | r.at[1] | r.at[2]) < 0x80) { /* nearly always: all short */
        e->shared = r.at[0];
        suffix_size = r.at[1];
        value_size = r.at[2];
        r.at += 3;
    } else {
        e->shared = reader_varint(&r);
        suffix_size = reader_varint(&r);
        value_size = reader_varint(&r);
    }
    e->stamp = reader_varint(&r);
    e->suffix = reader_take(&r, suffix_size);
    e->value = reader_take(&r, value_size);
    return !r.bad && r.at == r.end && stamp_kind(e->stamp) <= KIND_POINT_LAST;
}

/* Whole key of the restart of entry `i`'s group. */
static bool restart_of(const struct block *b, uint32_t i, struct slice *key)
{
    struct raw_entry e;
    if (!raw_entry_at(b, i - i % BLOCK_GROUP, &e) || e.shared)
        return false;
    *key = e.suffix;
    return true;
}

/* The `shared` bytes of entry `i`. */
static bool shared_of(const struct block *b, uint32_t i, uint64_t size, struct slice *shared)
{
    *shared = slice_of(NULL, 0);
    if (size == 0)
        return true;
    struct slice restart;
    if (i % BLOCK_GROUP == 0 || !restart_of(b, i, &restart) || size > restart.size)
        return false;
    *shared = slice_of(restart.data, (size_t)size);
    return true;
}

bool block_entry_at(const struct block *b, uint32_t i, struct block_entry *e)
{
    struct raw_entry raw;
    if (i >= b->count || !raw_entry_at(b, i, &raw) || !shared_of(b, i, raw.shared, &e->shared))
        return false;
    e->suffix = raw.suffix;
    e->stamp = raw.stamp;
    e->value = raw.value;
    return true;
}

int block_entry_compare(const struct block_entry *e, struct slice key)
{
    if (e->shared.size > key.size ||
        (e->shared.size && memcmp(e->shared.data, key.data, e->shared.size) != 0)) {
        const int order = slice_compare(e->shared, key);
        assert(order != 0);
        return order;
    }
    const struct slice rest =
        e->shared.size ? slice_of(key.data + e->shared.size, key.size - e->shared.size) : key;
    return slice_compare(e->suffix, rest);
}

/* Is entry `i` a version of `key`? What differs is looked at first: a tag that only happens to be
 * equal is found out by sizes or suffix, without a look at the restart. */
enum match { MATCH_NO, MATCH_YES, MATCH_DAMAGED };

/* ---- point search ---- */

/* Entry and restart lie anywhere in the block: both are fetched before either is looked at, and
 * the line behind the entry's first, where its value goes on. */
static inline void fetch_entry(const struct block *b, uint32_t i)
{
    const uint64_t at = offset_at(b, i), restart = offset_at(b, i - i % BLOCK_GROUP);
    if (at < b->entries.size && restart < b->entries.size) {
        __builtin_prefetch(b->entries.data + at);
        __builtin_prefetch(b->entries.data + restart);
        __builtin_prefetch(b->entries.data + at + 64);
    }
}

static enum match entry_matches(const struct block *b, uint32_t i, struct slice key,
                                struct raw_entry *e)
{
    if (!raw_entry_at(b, i, e))
        return MATCH_DAMAGED;
    if (e->shared > key.size || key.size - e->shared != e->suffix.size)
        return MATCH_NO;
    const size_t shared_size = (size_t)e->shared;
    if (!bytes_equal(e->suffix.data, key.data + shared_size, e->suffix.size))
        return MATCH_NO;
    struct slice shared;
    if (!shared_of(b, i, e->shared, &shared))
        return MATCH_DAMAGED;
    return bytes_equal(shared.data, key.data, shared_size) ? MATCH_YES : MATCH_NO;
}

/* The key is in the block, but its newest version is too new: the versions are in order, so halving
 * finds the visible one. */
static tamiz_status find_older(const struct block *b, const struct lookup *lookup, uint64_t *stamp,
                               struct slice *value)
{
    const uint32_t i = block_lower_bound(b, lookup->key, lookup->stamp_max);
    if (i == UINT32_MAX)
        return TAMIZ_CORRUPTION;
    if (i == b->count)
        return TAMIZ_NOT_FOUND;
    struct raw_entry e;
    switch (entry_matches(b, i, lookup->key, &e)) {
    case MATCH_DAMAGED: return TAMIZ_CORRUPTION;
    case MATCH_NO: return TAMIZ_NOT_FOUND;
    case MATCH_YES: break;
    }
    *stamp = e.stamp;
    *value = e.value;
    return TAMIZ_OK;
}

tamiz_status block_find(const struct block *b, const struct lookup *lookup, uint64_t *stamp,
                        struct slice *value)
{
    const uint8_t tag = hash_tag(lookup->hash);
    for (uint32_t first = 0; first < b->count; first += TAGS_STRIDE) {
        uint32_t found = tags_match(b->tags + first, tag);
        const uint32_t left = b->count - first;
        if (left < TAGS_STRIDE)
            found &= (UINT32_C(1) << left) - 1;
        for (; found; found &= found - 1) {
            const uint32_t i = first + (uint32_t)__builtin_ctz(found);
            struct raw_entry e;
            fetch_entry(b, i);
            const enum match match = entry_matches(b, i, lookup->key, &e);
            if (match == MATCH_NO)
                continue;
            if (match == MATCH_DAMAGED)
                return TAMIZ_CORRUPTION;
            if (e.stamp > lookup->stamp_max)
                return find_older(b, lookup, stamp, value);
            *stamp = e.stamp;
            *value = e.value;
            return TAMIZ_OK;
        }
        if (left <= TAGS_STRIDE)
            break; /* and `first` cannot wrap */
    }
    return TAMIZ_NOT_FOUND;
}

/* -1, 0, 1 as version_compare(entry, key, stamp); 2: damaged. */
static int entry_order(const struct block *b, uint32_t i, struct slice key, uint64_t stamp)
{
    struct block_entry e;
    if (!block_entry_at(b, i, &e))
        return 2;
    const int order = block_entry_compare(&e, key);
    if (order)
        return order < 0 ? -1 : 1;
    return (e.stamp < stamp) - (e.stamp > stamp);
}

/* First of low, low + step, … (`n` of them) that is not before (key, stamp), as its number: 0..n.
 */
static uint32_t halve(const struct block *b, uint32_t low, uint32_t step, uint32_t n,
                      struct slice key, uint64_t stamp)
{
    uint32_t from = 0;
    while (n > from) {
        const uint32_t middle = from + (n - from) / 2;
        const int order = entry_order(b, low + middle * step, key, stamp);
        if (order == 2)
            return UINT32_MAX;
        if (order < 0)
            from = middle + 1;
        else
            n = middle;
    }
    return from;
}

static uint32_t lower_bound_by_halving(const struct block *b, struct slice key, uint64_t stamp)
{
    /* Over the restarts, whose keys stand whole, then within the group before the one found. */
    const uint32_t groups = b->count / BLOCK_GROUP + (b->count % BLOCK_GROUP != 0);
    const uint32_t group = halve(b, 0, BLOCK_GROUP, groups, key, stamp);
    if (group == 0 || group == UINT32_MAX)
        return group;
    const uint32_t first = (group - 1) * BLOCK_GROUP + 1;
    const uint32_t end = group < groups ? group * BLOCK_GROUP : b->count;
    const uint32_t i = halve(b, first, 1, end - first, key, stamp);
    return i == UINT32_MAX ? i : first + i;
}

/* ---- ranks ---- */

enum { RANKS_SKIP_MOST = 64, RANKS_STRIDE = 4, RANKS_WINDOW = 64 };

/* Where the ranks of the block begin among its words. */
static size_t ranks_start(size_t skip)
{
    return (1 + (skip + 3) / 4 + 3) & ~(size_t)3; /* 16-byte aligned */
}

/* What all keys of the block begin with, which its first key shows. false: damaged, or too long. */
static bool common_prefix(const struct block *b, struct slice *prefix)
{
    struct block_entry first, last;
    if (!block_entry_at(b, 0, &first) || first.shared.size ||
        !block_entry_at(b, b->count - 1, &last))
        return false;
    size_t same = slice_common_prefix(first.suffix, last.shared.size ? last.shared : last.suffix);
    if (last.shared.size && same == last.shared.size)
        same += slice_common_prefix(slice_of(first.suffix.data + same, first.suffix.size - same),
                                    last.suffix);
    *prefix = slice_of(first.suffix.data, same);
    return same <= RANKS_SKIP_MOST;
}

size_t block_ranks_size_about(size_t entries)
{
    return (entries + RANKS_STRIDE + 4) * sizeof(uint32_t);
}

size_t block_ranks_size(const struct block *b)
{
    struct slice prefix;
    if (b->count < 2 || !common_prefix(b, &prefix))
        return 0;
    const size_t words = ranks_start(prefix.size) + b->count + RANKS_STRIDE;
    return words * sizeof(uint32_t);
}

/* Ranks are compared as signed numbers, which SSE2 can: the sign bit is flipped. */
static uint32_t rank_of(uint32_t big_endian)
{
    return big_endian ^ UINT32_C(0x80000000);
}

static uint32_t key_rank(struct slice key, size_t skip)
{
    return rank_of((uint32_t)(slice_prefix8(key, skip) >> 32));
}

static uint32_t entry_rank(const struct block_entry *e, size_t skip)
{
    uint32_t word = 0;
    for (size_t i = skip; i < skip + 4; i++) {
        uint8_t byte = 0;
        if (i < e->shared.size)
            byte = e->shared.data[i];
        else if (i - e->shared.size < e->suffix.size)
            byte = e->suffix.data[i - e->shared.size];
        word = word << 8 | byte;
    }
    return rank_of(word);
}

void block_ranks_fill(struct block *b, uint32_t *ranks)
{
    struct slice prefix;
    struct block_entry e;
    if (!common_prefix(b, &prefix))
        return;
    const size_t start = ranks_start(prefix.size);
    memset(ranks, 0, start * sizeof *ranks);
    ranks[0] = (uint32_t)prefix.size;
    if (prefix.size)
        memcpy(ranks + 1, prefix.data, prefix.size);
    for (uint32_t i = 0; i < b->count; i++) {
        if (!block_entry_at(b, i, &e))
            return;
        ranks[start + i] = entry_rank(&e, prefix.size);
    }
    for (uint32_t i = 0; i < RANKS_STRIDE; i++)
        ranks[start + b->count + i] = INT32_MAX;
    b->ranks = ranks;
}

/* How many of the `n` ranks are below x; so many and up to 3 more can be read. */
static uint32_t count_below(const uint32_t *ranks, uint32_t n, uint32_t x)
{
    uint32_t below = 0;
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi32((int)x);
    __m128i sum = _mm_setzero_si128(); /* minus the count, in four lanes */
    uint32_t i = 0;
    for (; i + RANKS_STRIDE <= n; i += RANKS_STRIDE)
        sum =
            _mm_add_epi32(sum, _mm_cmplt_epi32(_mm_loadu_si128((const void *)(ranks + i)), wanted));
    int32_t lanes[RANKS_STRIDE];
    _mm_storeu_si128((void *)lanes, sum);
    below = (uint32_t) - (lanes[0] + lanes[1] + lanes[2] + lanes[3]);
    for (; i < n; i++)
        below += (int32_t)ranks[i] < (int32_t)x;
#else
    for (uint32_t i = 0; i < n; i++)
        below += (int32_t)ranks[i] < (int32_t)x;
#endif
    return below;
}

/* First rank not below x. */
static uint32_t first_not_below(const uint32_t *ranks, uint32_t n, uint32_t x)
{
    uint32_t from = 0;
    while (n > RANKS_WINDOW) { /* large blocks: halved down to what is counted through */
        const uint32_t half = n / 2;
        const bool below = (int32_t)ranks[from + half - 1] < (int32_t)x;
        from += below ? half : 0;
        n = below ? n - half : half;
    }
    return from + count_below(ranks + from, n, x);
}

/* By ranks alone: [*from, *end) are the entries whose rank is the key's; empty: *from is where the
 * key would stand. */
static void rank_range(const struct block *b, struct slice key, uint32_t *from, uint32_t *end)
{
    const size_t skip = b->ranks[0];
    const struct slice prefix = slice_of(b->ranks + 1, skip);
    if (!slice_has_prefix(key, prefix)) {
        *from = *end = slice_compare(key, prefix) < 0 ? 0 : b->count;
        return;
    }
    const uint32_t *ranks = b->ranks + ranks_start(skip);
    const uint32_t x = key_rank(key, skip);
    *from = *end = first_not_below(ranks, b->count, x);
    while (*end < b->count && ranks[*end] == x)
        ++*end;
}

void block_fetch_ranks(const struct block *b)
{
    if (!b->ranks)
        return;
    const uint8_t *at = (const uint8_t *)b->ranks;
    for (size_t line = 0; line < 4; line++)
        __builtin_prefetch(at + line * 64);
    __builtin_prefetch(b->offsets);
    __builtin_prefetch(b->offsets + 64);
}

void block_fetch_near(const struct block *b, struct slice key)
{
    uint32_t from, end;
    if (!b->ranks)
        return;
    rank_range(b, key, &from, &end);
    if (from < b->count)
        fetch_entry(b, from);
}

uint32_t block_lower_bound(const struct block *b, struct slice key, uint64_t stamp)
{
    if (!b->ranks)
        return lower_bound_by_halving(b, key, stamp);
    uint32_t from, end;
    rank_range(b, key, &from, &end);
    const uint32_t i = halve(b, from, 1, end - from, key, stamp);
    return i == UINT32_MAX ? i : from + i;
}
