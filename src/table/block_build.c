/* SPDX-License-Identifier: MIT
 *
 * A data block on its way into a table: what block.h draws, written.
 */
#include "base/coding.h"
#include "base/hash.h"
#include "table/block.h"

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
