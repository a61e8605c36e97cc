/* SPDX-License-Identifier: MIT
 *
 * One data block: written, searched, walked. Each entry can be reached without touching the ones
 * before it: its key is stored as what differs from the first key of its group of 16 (the restart),
 * and an array at the front has every entry's place. A second array has one byte of each key's
 * hash, so that a point read compares 32 tags at once and then about one key, and an ordered search
 * halves over the whole block.
 *
 *     +---------+----------+-----------+------------+------------------------------+---------+
 *     | count   | width u8 | group u8  | tags       | offsets                      | entries |
 *     | u32     | 2,4,8    | 16        | count × u8 | count × width, little-endian | …       |
 *     +---------+----------+-----------+------------+------------------------------+---------+
 *
 *     entry:  shared varint | suffix size varint | value size varint | stamp varint | suffix |
 * value
 *
 * An offset counts from the start of the entries, which lie one behind the other; the first is 0. A
 * restart has shared = 0; of the others, `shared` bytes are the first ones of their restart's key.
 * All versions of one user key stand in one block.
 */
#ifndef TAMIZ_TABLE_BLOCK_H
#define TAMIZ_TABLE_BLOCK_H

#include "base/buf.h"
#include "base/coding.h"
#include "base/iter.h"
#include "base/key.h"

enum { BLOCK_GROUP = 16, BLOCK_HEADER_SIZE = 6, BLOCK_SLACK = 32 };

/* ---- writing ---- */

struct block_builder {
    struct buf entries;
    struct buf tags;
    struct buf offsets; /* u64 each, narrowed at the end */
    struct buf restart; /* key of the open group's first entry */
    size_t count;
};

void block_builder_init(struct block_builder *b, const struct alloc *alloc);
void block_builder_free(struct block_builder *b);
void block_builder_clear(struct block_builder *b);
/* In version order. */
void block_builder_add(struct block_builder *b, struct slice key, uint64_t hash, uint64_t stamp,
                       struct slice value);
/* Bytes the block would have if it were finished now. */
size_t block_builder_size(const struct block_builder *b);
/* Appends the payload to `out`; TAMIZ_OUT_OF_MEMORY where an append found none. */
tamiz_status block_builder_finish(struct op *op, struct block_builder *b, struct buf *out);

/* ---- reading ---- */

/* A checked block: borrows its payload, behind which BLOCK_SLACK bytes can be read, so that the
 * tags are compared in whole strides. block_open checks header and the room of the arrays once;
 * each entry is checked when it is decoded: it must end exactly where the next one begins. */
struct ranks;
struct block {
    uint32_t count;
    uint32_t width;
    const uint8_t *tags;
    const uint8_t *offsets;
    struct slice entries;
    const struct ranks *ranks; /* NULL: none; ranks.h */
};

/* Where entry `i`, below the count, begins among the entries; not checked yet. */
static inline uint64_t block_offset_at(const struct block *b, uint32_t i)
{
    if (__builtin_expect(b->width == 2, 1))
        return load_u16(b->offsets + (size_t)i * 2);
    switch (b->width) {
    case 4: return load_u32(b->offsets + (size_t)i * 4);
    default: return load_u64(b->offsets + (size_t)i * 8);
    }
}

struct block_entry {
    struct slice shared; /* first bytes of the key, in the restart */
    struct slice suffix; /* the rest                               */
    uint64_t stamp;
    struct slice value;
};

/* false: it is no block (the caller, who knows file and offset, says so). */
bool block_open(struct slice payload, struct block *b);
/* false: entry `i` runs out of the block or names a kind this version does not know. */
bool block_entry_at(const struct block *b, uint32_t i, struct block_entry *e);
int block_entry_compare(const struct block_entry *e,
                        struct slice key); /* order of the entry's key against `key` */

/* The newest version of the key at or below stamp_max. TAMIZ_OK: *stamp, *value; TAMIZ_NOT_FOUND;
 * TAMIZ_CORRUPTION without words. */
tamiz_status block_find(const struct block *b, const struct lookup *lookup, uint64_t *stamp,
                        struct slice *value);

/* By the ranks alone: [from, end) are the entries whose rank is the key's; empty: the key would
 * stand at `from`. */
struct block_near {
    uint32_t from, end;
};
/* *near, and the entry that a search for the key will look at is on its way. false: the block has
 * no ranks, and *near nothing. */
bool block_fetch_near(const struct block *b, struct slice key, struct block_near *near);

/* Index of the first entry that is not before (key, stamp) in version order: 0..count. UINT32_MAX:
 * a damaged entry. */
uint32_t block_lower_bound(const struct block *b, struct slice key, uint64_t stamp);
/* The same, for whom block_fetch_near has told of this block and key already. */
uint32_t block_lower_bound_near(const struct block *b, struct block_near near, struct slice key,
                                uint64_t stamp);

#endif
