/* SPDX-License-Identifier: MIT */
#include "mem/entry.h"

#include <assert.h>

static_assert(KEY_SIZE_MAX <= UINT16_MAX && VALUE_SIZE_MAX <= UINT32_MAX, "sizes fit the entry");

const struct entry *entry_new(struct arena *arena, struct slice key, uint64_t stamp,
                              struct slice value)
{
    /* Never less than the struct itself, which ends in padding. */
    const size_t size = offsetof(struct entry, key) + key.size + value.size;
    struct entry *e = arena_new(arena, size < sizeof *e ? sizeof *e : size);
    if (!e)
        return NULL;
    e->stamp = stamp;
    e->value_size = (uint32_t)value.size;
    e->key_size = (uint16_t)key.size;
    if (key.size)
        memcpy(e->key, key.data, key.size);
    if (value.size)
        memcpy(e->key + key.size, value.data, value.size);
    return e;
}

void *mem_node_new(struct arena *arena, size_t size)
{
    enum { LINE = 64 };
    uint8_t *piece = arena_new(arena, size + LINE - 8);
    return piece ? piece + (-(uintptr_t)piece & (LINE - 1)) : NULL;
}
