/* SPDX-License-Identifier: MIT
 *
 * What of a data block is packed. Its tags and offsets follow from the entries, and a packer sees
 * nothing in them; so they stay out, and the entries go field by field, like beside like:
 *
 *     +-----------------+--------------+-------------+--------+----------+--------+
 *     | shared          | suffix sizes | value sizes | stamps | suffixes | values |
 *     | count × varint  | varints      | varints     | varints|          |        |
 *     +-----------------+--------------+-------------+--------+----------+--------+
 *
 * These are the bytes of the entries (block.h), moved and none added: so the sizes of the block and
 * of its columns say how many entries there are. Unpacking makes the block again, byte for byte,
 * and hashes its keys for the tags.
 */
#ifndef TAMIZ_TABLE_COLUMNS_H
#define TAMIZ_TABLE_COLUMNS_H

#include "table/block.h"
#include "table/codec.h"

/* Appends the columns of a block, whose entries are whole; else false. Where memory is out,
 * out->failed. */
bool columns_append(const struct block *b, struct buf *out);

/* Bytes of memory for columns of a block of `size` bytes, and for making it of them. */
size_t columns_room(size_t size);
/* The block of `size` bytes whose columns are the first `columns_size` of `room`, at `payload`,
 * behind which BLOCK_SLACK bytes can be written. `room` has columns_room(size) bytes. false: there
 * is no such block. */
bool columns_expand(uint8_t *room, size_t columns_size, uint8_t *payload, size_t size);

/* Unpacks a block, with or without dictionary, to `payload`, which has room for its size and
 * BLOCK_SLACK bytes more. TAMIZ_CORRUPTION, with words. */
tamiz_status columns_unpack(struct op *op, struct codec_pool *pool, const struct packed_block *from,
                            uint8_t *payload);

#endif
