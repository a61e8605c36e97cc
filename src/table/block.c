/* SPDX-License-Identifier: MIT */
#include "table/block.h"

#include <assert.h>

#include "base/fetch.h"
#include "table/ranks.h"
#include "table/raw_entry.h"
#include "table/tags.h"

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
    return count ? block_offset_at(b, 0) == 0 : b->entries.size == 0;
}

bool raw_entry_any(const uint8_t *at, size_t size, struct raw_entry *e)
{
    struct reader r = {at, at + size, false};
    e->shared = reader_varint(&r);
    const uint64_t suffix_size = reader_varint(&r), value_size = reader_varint(&r);
    e->stamp = reader_varint(&r);
    e->suffix = reader_take(&r, suffix_size);
    e->value = reader_take(&r, value_size);
    return !r.bad && r.at == r.end;
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
 * the lines behind the entry's first, where its value goes on. */
static inline void fetch_entry(const struct block *b, uint32_t i)
{
    const uint64_t at = block_offset_at(b, i), restart = block_offset_at(b, i - i % BLOCK_GROUP);
    if (at < b->entries.size && restart < b->entries.size) {
        fetch_line(b->entries.data + at);
        fetch_line(b->entries.data + restart);
        fetch_line(b->entries.data + at + FETCH_LINE);
        fetch_line(b->entries.data + at + 2 * FETCH_LINE);
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

/* ---- by ranks ---- */

enum { LINES_ONWARDS = 7 }; /* some four entries of 100 bytes */

bool block_fetch_near(const struct block *b, struct slice key, struct block_near *near)
{
    if (!b->ranks)
        return false;
    *near = ranks_near(b, key);
    if (near->from == b->count)
        return true;
    fetch_entry(b, near->from);
    const uintptr_t at = (uintptr_t)b->entries.data + block_offset_at(b, near->from);
    for (uintptr_t line = 2; line < LINES_ONWARDS; line++) /* where a scan goes on */
        fetch_address(at + line * FETCH_LINE);
    return true;
}

uint32_t block_lower_bound_near(const struct block *b, struct block_near near, struct slice key,
                                uint64_t stamp)
{
    const uint32_t i = halve(b, near.from, 1, near.end - near.from, key, stamp);
    return i == UINT32_MAX ? i : near.from + i;
}

uint32_t block_lower_bound(const struct block *b, struct slice key, uint64_t stamp)
{
    return b->ranks ? block_lower_bound_near(b, ranks_near(b, key), key, stamp)
                    : lower_bound_by_halving(b, key, stamp);
}
