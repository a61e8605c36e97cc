/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes as what a packed block holds. The first two say how large the block
 * is. What becomes a block must have just those columns.
 */
#include <stdlib.h>

#include "base/coding.h"
#include "table/columns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *payload, size_t size, struct slice columns)
{
    struct block b;
    struct buf again = buf_init(&alloc_libc);
    if (!block_open(slice_of(payload, size), &b) ||
        (columns_append(&b, &again) && !slice_equal(buf_slice(&again), columns)))
        abort();
    buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || load_u16(data) < size - 2)
        return 0;
    const size_t block_size = load_u16(data);
    const struct slice columns = slice_of(data + 2, size - 2);
    uint8_t *room = mem_new(&alloc_libc, columns_room(block_size));
    uint8_t *payload = mem_new(&alloc_libc, block_size + BLOCK_SLACK);
    if (room && payload) {
        memcpy(room, columns.data, columns.size);
        if (columns_expand(room, columns.size, payload, block_size))
            check(payload, block_size, columns);
    }
    mem_free(&alloc_libc, room, columns_room(block_size));
    mem_free(&alloc_libc, payload, block_size + BLOCK_SLACK);
    return 0;
}
