/* SPDX-License-Identifier: MIT */
#include "log/pieces.h"

uint8_t *pieces_copy(struct pieces pieces, uint8_t *out)
{
    for (size_t i = 0; i < pieces.n; i++) {
        if (pieces.at[i].size)
            memcpy(out, pieces.at[i].data, pieces.at[i].size);
        out += pieces.at[i].size;
    }
    return out;
}

size_t pieces_small_size(struct pieces pieces)
{
    size_t size = 0;
    for (size_t i = 0; i < pieces.n; i++)
        size += pieces.at[i].size < PIECE_LARGE ? pieces.at[i].size : 0;
    return size;
}

/* What gathered in the scratch, to where it belongs; *offset is behind it then. */
static tamiz_status write_gathered(struct op *op, struct file *file, enum io_purpose purpose,
                                   uint64_t *offset, struct buf *scratch)
{
    if (scratch->size == 0)
        return TAMIZ_OK;
    const tamiz_status st = file_write(op, file, purpose, *offset, scratch->data, scratch->size);
    *offset += scratch->size;
    buf_clear(scratch);
    return st;
}

tamiz_status pieces_write(struct op *op, struct file *file, enum io_purpose purpose,
                          uint64_t offset, struct slice head, struct pieces pieces, size_t padding,
                          struct buf *scratch)
{
    tamiz_status st;
    buf_slice_append(scratch, head);
    for (size_t i = 0; i < pieces.n; i++) {
        const struct slice piece = pieces.at[i];
        if (piece.size < PIECE_LARGE) {
            buf_slice_append(scratch, piece);
            continue;
        }
        TRY(write_gathered(op, file, purpose, &offset, scratch));
        TRY(file_write(op, file, purpose, offset, piece.data, piece.size));
        offset += piece.size;
    }
    for (size_t i = 0; i < padding; i++)
        buf_u8(scratch, 0);
    TRY(write_gathered(op, file, purpose, &offset, scratch));
done:
    return st;
}
