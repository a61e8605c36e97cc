/* SPDX-License-Identifier: MIT */
#include "table/block_walk.h"

#include <assert.h>

#include "table/raw_entry.h"

void block_walk_init(struct block_walk *w, const struct alloc *alloc)
{
    *w = (struct block_walk){.key = buf_init(alloc)};
}

void block_walk_enter(struct block_walk *w, const struct block *b)
{
    w->block = b;
    w->group = UINT32_MAX;
}

enum { SHORT = 16 };
static_assert((int)SHORT <= (int)BLOCK_SLACK, "as many bytes behind an entry can be read");

/* There is room for SHORT bytes and for all of `from`, which lies in a block. */
static inline void copy_key(uint8_t *to, struct slice from)
{
    if (from.size <= SHORT)
        memcpy(to, from.data, SHORT);
    else
        memcpy(to, from.data, from.size);
}

/* The restart of entry `i`'s group, of which w->key then has no byte yet. */
static bool walk_into_group(struct block_walk *w, uint32_t i)
{
    w->group = UINT32_MAX;
    w->kept = 0;
    if (i % BLOCK_GROUP == 0 || !restart_of(w->block, i, &w->restart))
        return false;
    w->group = i / BLOCK_GROUP;
    return true;
}

/* What stands in two parts is put together in w->key, where the first bytes often are already. */
static tamiz_status walk_join(struct block_walk *w, uint32_t i, const struct raw_entry *raw,
                              struct slice *key)
{
    if (w->group != i / BLOCK_GROUP && !walk_into_group(w, i))
        return TAMIZ_CORRUPTION;
    if (raw->shared > w->restart.size)
        return TAMIZ_CORRUPTION;
    const size_t shared = (size_t)raw->shared, size = shared + raw->suffix.size;
    buf_clear(&w->key);
    if (w->key.capacity < size + SHORT) {
        w->kept = 0;
        if (!buf_reserve(&w->key, size + SHORT))
            return TAMIZ_OUT_OF_MEMORY;
    }
    if (w->kept < shared)
        copy_key(w->key.data, slice_of(w->restart.data, shared));
    w->kept = shared;
    copy_key(w->key.data + shared, raw->suffix);
    *key = slice_of(w->key.data, size);
    return TAMIZ_OK;
}

tamiz_status block_walk_at(struct block_walk *w, uint32_t i, struct walked *e)
{
    struct raw_entry raw;
    if (i >= w->block->count || !raw_entry_at(w->block, i, &raw))
        return TAMIZ_CORRUPTION;
    e->stamp = raw.stamp;
    e->value = raw.value;
    e->key = raw.suffix;
    return raw.shared ? walk_join(w, i, &raw, &e->key) : TAMIZ_OK;
}
