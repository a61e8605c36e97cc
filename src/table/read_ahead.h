/* SPDX-License-Identifier: MIT
 *
 * Blocks of one table that a walk takes from the device. Where it takes one after the other they
 * are read ahead: from the third on in pieces that double up to TABLE_READ_AHEAD, into a buffer of
 * the walk's own, from which each block is checked and unpacked when its turn comes.
 */
#ifndef TAMIZ_TABLE_READ_AHEAD_H
#define TAMIZ_TABLE_READ_AHEAD_H

#include "table/table_inside.h"

struct read_ahead {
    uint32_t sequential; /* blocks in a row that came from the device, up to the last one taken */
    uint64_t offset;     /* in the file, of the first of the bytes */
    size_t piece_bytes;  /* of the next piece */
    struct buf bytes;    /* owned: stored bytes */
};

void read_ahead_init(struct read_ahead *a, const struct alloc *alloc);
/* What is taken next does not follow what was taken last. */
void read_ahead_break(struct read_ahead *a);
/* Loads the block, which is not in the cache: checked, unpacked, pinned, in nobody's place. Counted
 * and told as a device read of `how`, but for a compaction's. */
tamiz_status read_ahead_take(struct op *op, struct read_ahead *a, struct table *t,
                             const struct table_read *how, uint32_t block, struct cached_block **b);
/* Gives the bytes back; it can go on. */
void read_ahead_free(struct read_ahead *a);

#endif
