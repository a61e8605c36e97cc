/* SPDX-License-Identifier: MIT
 *
 * A walk over a block's entries, which keeps what neighbours share: the restart of their group, and
 * a key that stands in two parts put together.
 */
#ifndef TAMIZ_TABLE_BLOCK_WALK_H
#define TAMIZ_TABLE_BLOCK_WALK_H

#include "table/block.h"

struct block_walk {
    const struct block *block; /* borrowed */
    uint32_t group;            /* whose restart is known; UINT32_MAX: none's */
    struct slice restart;
    struct buf key; /* owned */
    size_t kept;    /* bytes of `key` that are the restart's */
};

struct walked {
    struct slice key; /* borrowed: the block's, or the walk's until it moves */
    uint64_t stamp;
    struct slice value; /* the block's */
};

void block_walk_init(struct block_walk *w, const struct alloc *alloc);
/* From now on over `b`; the key that was shown last stays as it is until the walk moves. */
void block_walk_enter(struct block_walk *w, const struct block *b);
/* TAMIZ_CORRUPTION without words: as block_entry_at. TAMIZ_OUT_OF_MEMORY. */
tamiz_status block_walk_at(struct block_walk *w, uint32_t i, struct walked *e);

#endif
