/* SPDX-License-Identifier: MIT
 *
 * Makes the checksums of a mutated table right again, as far as its parts can be found, so that
 * what lies behind them is tested as well.
 */
#ifndef TAMIZ_TEST_TABLE_REPAIR_H
#define TAMIZ_TEST_TABLE_REPAIR_H

#include "base/checksum.h"
#include "table/format.h"
#include "table/index.h"

static inline void repair_block(uint8_t *bytes, size_t size, struct extent e, uint64_t file_id)
{
    if (e.size == 0 || e.offset > size || size - e.offset < BLOCK_TRAILER_SIZE ||
        e.size > size - e.offset - BLOCK_TRAILER_SIZE)
        return;
    uint8_t *at = bytes + e.offset;
    store_u64(at + e.size + 1, checksum(file_id, e.offset, slice_of(at, (size_t)e.size + 1)));
}

static inline struct extent repair_extent(const uint8_t *at)
{
    return (struct extent){load_u64(at), load_u64(at + 8)};
}

static inline void repair_data(struct op *op, uint8_t *bytes, size_t size, uint64_t file_id,
                               const struct alloc *alloc)
{
    struct table_footer footer;
    struct index *index = NULL;
    const struct slice last = slice_of(bytes + size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE);
    if (table_footer_decode(op, last, size, "", &footer) == TAMIZ_OK &&
        index_open(op, slice_of(bytes + footer.index.offset, (size_t)footer.index.size),
                   table_data_end(&footer), "", alloc, &index) == TAMIZ_OK)
        for (uint32_t i = 0; i < index_count(index); i++)
            repair_block(bytes, size, index_extent(index, i), file_id);
    index_free(index);
    op_forgive(op);
}

static inline void repair_table(struct op *op, uint8_t *bytes, size_t size,
                                const struct alloc *alloc)
{
    if (size < TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE)
        return;
    uint8_t *footer = bytes + size - TABLE_FOOTER_SIZE;
    const uint64_t file_id = load_u64(bytes + 16);
    store_u64(bytes, TABLE_MAGIC);
    store_u32(bytes + 8, TABLE_FORMAT_VERSION);
    store_u64(bytes + 32, checksum(file_id, 0, slice_of(bytes, 32)));
    for (size_t i = 0; i < 5; i++)
        repair_block(bytes, size, repair_extent(footer + 16 * i), file_id);
    store_u64(footer + 80, file_id);
    store_u32(footer + 92, TABLE_FORMAT_VERSION);
    store_u64(footer + 96, checksum(file_id, size - TABLE_FOOTER_SIZE, slice_of(footer, 96)));
    store_u64(footer + 104, TABLE_MAGIC);
    repair_data(op, bytes, size, file_id, alloc);
}

#endif
