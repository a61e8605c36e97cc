/* SPDX-License-Identifier: MIT
 *
 * An entry of a block as it stands, taken apart. For src/table/block*.c alone; the bytes are drawn
 * in block.h.
 */
#ifndef TAMIZ_TABLE_RAW_ENTRY_H
#define TAMIZ_TABLE_RAW_ENTRY_H

#include "base/coding.h"
#include "table/block.h"

/* An entry as it stands, its shared bytes not fetched yet. */
struct raw_entry {
    uint64_t shared;
    struct slice suffix;
    struct slice value;
    uint64_t stamp;
};

/* A varint of at most 8 bytes without a branch a byte; BLOCK_SLACK makes them readable. Its size,
 * or 0: it is longer. */
static inline size_t varint_of_word(const uint8_t *at, uint64_t *value)
{
    uint64_t w = load_u64(at);
    const uint64_t stops = ~w & UINT64_C(0x8080808080808080);
    if (!stops)
        return 0;
    w &= stops ^ (stops - 1); /* up to the first byte without the mark */
    w = (w & UINT64_C(0x007f007f007f007f)) | (w & UINT64_C(0x7f007f007f007f00)) >> 1;
    w = (w & UINT64_C(0x00003fff00003fff)) | (w & UINT64_C(0x3fff00003fff0000)) >> 2;
    *value = (w & UINT64_C(0x0fffffff)) | (w & UINT64_C(0x0fffffff00000000)) >> 4;
    return (size_t)__builtin_ctzll(stops) / 8 + 1;
}

/* An entry whose sizes take a byte each, as nearly all do. false: it is none of these, or damaged.
 */
static inline bool raw_entry_short(const uint8_t *at, size_t size, struct raw_entry *e)
{
    if (size < 4 || (at[0] | at[1] | at[2]) >= 0x80)
        return false;
    const size_t suffix_size = at[1], value_size = at[2];
    const size_t stamp_size = varint_of_word(at + 3, &e->stamp);
    if (stamp_size == 0 || 3 + stamp_size + suffix_size + value_size != size)
        return false;
    e->shared = at[0];
    e->suffix = slice_of(at + 3 + stamp_size, suffix_size);
    e->value = slice_of(at + 3 + stamp_size + suffix_size, value_size);
    return true;
}

/* The same for any that is whole. */
bool raw_entry_any(const uint8_t *at, size_t size, struct raw_entry *e);

/* Entry `i`, below the count, undecoded; false: it runs out of its place. */
static inline bool entry_bytes(const struct block *b, uint32_t i, struct slice *bytes)
{
    const uint64_t start = block_offset_at(b, i);
    const uint64_t end = i + 1 < b->count ? block_offset_at(b, i + 1) : b->entries.size;
    if (end > b->entries.size || start >= end)
        return false;
    *bytes = slice_of(b->entries.data + start, (size_t)(end - start));
    return true;
}

/* The same decoded; false also where it names a kind this version does not
 * know. */
static inline bool raw_entry_at(const struct block *b, uint32_t i, struct raw_entry *e)
{
    struct slice bytes;
    return entry_bytes(b, i, &bytes) &&
           (raw_entry_short(bytes.data, bytes.size, e) ||
            raw_entry_any(bytes.data, bytes.size, e)) &&
           stamp_kind(e->stamp) <= KIND_POINT_LAST;
}

/* Whole key of the restart of entry `i`'s group. */
static inline bool restart_of(const struct block *b, uint32_t i, struct slice *key)
{
    struct raw_entry e;
    if (!raw_entry_at(b, i - i % BLOCK_GROUP, &e) || e.shared)
        return false;
    *key = e.suffix;
    return true;
}

#endif
