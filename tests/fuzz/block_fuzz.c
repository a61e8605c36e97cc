/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes as a data block. The first byte says how long the key is that is
 * looked for; key and block follow.
 */
#include "table/block_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const struct block *b, struct slice key)
{
    struct block_entry e;
    uint64_t stamp;
    struct slice value;
    for (uint32_t i = 0; i < b->count && block_entry_at(b, i, &e); i++)
        (void)block_entry_compare(&e, key);
    struct block_walk walk;
    uint64_t at;
    block_walk_init(&walk, &alloc_libc);
    block_walk_enter(&walk, b);
    for (uint32_t i = 0; i < b->count && block_walk_at(&walk, i, &at) == TAMIZ_OK; i++)
        for (int n = 0; n < 4 && block_walk_step(&walk); n++)
            (void)slice_compare(walk.at_key, key);
    buf_free(&walk.key);
    const struct lookup lookup = lookup_make(key, 1000);
    (void)block_find(b, &lookup, &stamp, &value);
    (void)block_lower_bound(b, key, UINT64_MAX);
    (void)block_lower_bound(b, key, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size - 1 < data[0])
        return 0;
    const struct slice key = slice_of(data + 1, data[0]);
    const struct slice rest = slice_of(data + 1 + data[0], size - 1 - data[0]);
    uint8_t *copy = mem_new_array(&alloc_libc, 1, rest.size + BLOCK_SLACK);
    if (!copy)
        return 0;
    memcpy(copy, rest.data, rest.size);
    struct block b;
    if (block_open(slice_of(copy, rest.size), &b))
        read_all(&b, key);
    mem_free(&alloc_libc, copy, rest.size + BLOCK_SLACK);
    return 0;
}
