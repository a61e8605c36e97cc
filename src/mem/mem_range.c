/* SPDX-License-Identifier: MIT */
#include "mem/mem_range.h"

#include <assert.h>

static bool copy_key(struct arena *arena, struct slice *key)
{
    uint8_t *bytes = key->size ? arena_new(arena, key->size) : NULL;
    if (key->size && !bytes)
        return false;
    if (bytes)
        memcpy(bytes, key->data, key->size);
    key->data = bytes;
    return true;
}

const struct mem_range *mem_range_new(struct arena *arena, const struct mem_range *below,
                                      struct slice from, struct slice to, uint64_t seq)
{
    assert(!below || below->is.seq < seq);
    struct mem_range *r = arena_new(arena, sizeof *r);
    if (!r || !copy_key(arena, &from) || !copy_key(arena, &to))
        return NULL;
    *r = (struct mem_range){.is = {from, to, seq}, .below = below, .jump = below};
    if (below) {
        const struct mem_range *j = below->jump;
        r->depth = below->depth + 1;
        if (j && j->jump && below->depth - j->depth == j->depth - j->jump->depth)
            r->jump = j->jump;
    }
    const struct cover piece = {from, to, seq, 0};
    r->skyline = skyline_add(arena, below ? below->skyline : NULL, &piece);
    return r->skyline ? r : NULL;
}

const struct mem_range *mem_range_at(const struct mem_range *r, uint64_t seq)
{
    while (r && r->is.seq > seq)
        r = r->jump && r->jump->is.seq > seq ? r->jump : r->below;
    return r;
}
