/* SPDX-License-Identifier: MIT
 *
 * Data blocks on their way into a table file: packed where that pays, sealed, and entered into the
 * index.
 *
 * With a dictionary the first blocks wait, up to BLOCK_WRITER_WAIT bytes of them or to the table's
 * end. The dictionary is trained from them, they are packed with it and without, and it is kept
 * only where they become smaller by more than its own size and a 64th. Then they go out, and the
 * blocks behind them are packed as they come. Too few blocks, or blocks that teach nothing, leave a
 * table packed with plain zstd.
 */
#ifndef TAMIZ_TABLE_BLOCK_WRITER_H
#define TAMIZ_TABLE_BLOCK_WRITER_H

#include "table/block.h"
#include "table/codec.h"
#include "table/index.h"

enum { BLOCK_WRITER_WAIT = 1 << 20 };

struct block_writer {
    enum codec codec; /* of what is packed from now on */
    uint64_t file_id; /* set by the owner before the first block */
    struct codec_packer packer;
    struct index_builder index; /* of the blocks that have gone out */
    struct buf raw;             /* the block being packed, … */
    struct buf columns;         /* … and what of it is packed: columns.h */
    bool waiting;               /* for the dictionary: the blocks gather */
    struct buf blocks;          /* their bytes, … */
    struct buf sizes;           /* … size_t each, … */
    struct buf fences;          /* … and their fences, with the size of each before it */
    struct buf dictionary;      /* empty: none */
    uint64_t count, stored_bytes, raw_most; /* of what has gone out; trailers included */
};

void block_writer_init(struct block_writer *w, const struct alloc *alloc, enum codec codec,
                       int level);
void block_writer_free(struct block_writer *w);
/* Bytes that wait, as they are before packing. */
uint64_t block_writer_waiting(const struct block_writer *w);

/* Ends `block`, which is empty afterwards, under `fence`. What goes out is appended to `out`, whose
 * first byte stands at `base` in the file. */
tamiz_status block_writer_put(struct op *op, struct block_writer *w, struct block_builder *block,
                              struct slice fence, struct buf *out, uint64_t base);
/* No more blocks come: what waits goes out. Behind them belongs w->dictionary. */
tamiz_status block_writer_end(struct op *op, struct block_writer *w, struct buf *out,
                              uint64_t base);

#endif
