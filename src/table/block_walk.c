/* SPDX-License-Identifier: MIT */
#include "table/block_walk.h"

#include "table/raw_entry.h"

void block_walk_init(struct block_walk *w, const struct alloc *alloc)
{
    *w = (struct block_walk){.key = buf_init(alloc)};
}

void block_walk_enter(struct block_walk *w, const struct block *b)
{
    w->block = b;
    w->group = UINT32_MAX;
    w->kept = 0;
}

/* There is room for a chunk and for all of `from`, which lies in a block. */
static inline void copy_key(uint8_t *to, struct slice from)
{
    if (from.size <= WALK_CHUNK)
        memcpy(to, from.data, WALK_CHUNK);
    else
        memcpy(to, from.data, from.size);
}

/* Room for a key of so many bytes, and for every key that a step puts together. */
static bool walk_room(struct block_walk *w, size_t size)
{
    const size_t room = size + WALK_CHUNK < WALK_ROOM ? WALK_ROOM : size + WALK_CHUNK;
    if (w->key.capacity >= room)
        return true;
    buf_clear(&w->key);
    w->kept = 0;
    return buf_reserve(&w->key, room);
}

/* Into the group of entry `i`. false: its restart, which the entry shares bytes of, is damaged. */
static bool walk_into_group(struct block_walk *w, uint32_t i, bool shares)
{
    if (w->group != i / BLOCK_GROUP) {
        w->group = UINT32_MAX;
        w->kept = 0;
    }
    if (w->group == UINT32_MAX && shares) {
        if (i % BLOCK_GROUP == 0 || !restart_of(w->block, i, &w->restart))
            return false;
        w->group = i / BLOCK_GROUP;
    }
    return true;
}

/* What stands in two parts is put together in w->key, where the first bytes often are already. */
static struct slice walk_join(struct block_walk *w, size_t shared, struct slice suffix)
{
    if (w->kept < shared)
        copy_key(w->key.data, slice_of(w->restart.data, shared));
    w->kept = shared;
    copy_key(w->key.data + shared, suffix);
    return slice_of(w->key.data, shared + suffix.size);
}

tamiz_status block_walk_at(struct block_walk *w, uint32_t i, uint64_t *stamp)
{
    struct raw_entry raw;
    if (i >= w->block->count || !raw_entry_at(w->block, i, &raw) ||
        !walk_into_group(w, i, raw.shared != 0) || (raw.shared && raw.shared > w->restart.size))
        return TAMIZ_CORRUPTION;
    const size_t shared = (size_t)raw.shared;
    if (!walk_room(w, shared + raw.suffix.size))
        return TAMIZ_OUT_OF_MEMORY;
    w->at_key = shared ? walk_join(w, shared, raw.suffix) : raw.suffix;
    w->entry = i;
    w->value = raw.value;
    w->behind = raw.value.data + raw.value.size;
    *stamp = raw.stamp;
    return TAMIZ_OK;
}

uint64_t block_walk_stamp(const struct block_walk *w)
{
    struct raw_entry raw;
    return raw_entry_at(w->block, w->entry, &raw) ? raw.stamp : 0;
}
