/* SPDX-License-Identifier: MIT
 *
 * A record's body in pieces, and the writing of them: a large piece goes to the file from where it
 * is, by a call of its own; what is small is gathered in front of it, behind it and between.
 *
 *     | head small small | LARGE | small | LARGE | small padding |
 *           one call        each of these a call       one call
 */
#ifndef TAMIZ_LOG_PIECES_H
#define TAMIZ_LOG_PIECES_H

#include "base/buf.h"
#include "env/env.h"

enum { PIECE_LARGE = 128 << 10 }; /* bytes of a piece that is not copied */

/* Borrowed, all of it. */
struct pieces {
    const struct slice *at;
    size_t n;
};

/* One behind the other to `out`; returns what is behind them. */
uint8_t *pieces_copy(struct pieces pieces, uint8_t *out);
/* Bytes of those that are not large. */
size_t pieces_small_size(struct pieces pieces);
/* Writes `head`, the pieces and `padding` zeros to `file` from `offset` on. `scratch` is what small
 * ones are gathered in: empty, with room for all of them, head and padding. */
tamiz_status pieces_write(struct op *op, struct file *file, enum io_purpose purpose,
                          uint64_t offset, struct slice head, struct pieces pieces, size_t padding,
                          struct buf *scratch);

#endif
