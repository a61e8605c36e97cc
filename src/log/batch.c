/* SPDX-License-Identifier: MIT
 *
 * Writes encoded as they come, and taken apart again; batch.h has the bytes. A record is checked
 * whole before its first write is applied, so that a batch happens or does not.
 */
#include "log/batch.h"

#include <inttypes.h>

#include "base/expiry.h"

void batch_init(struct batch *b, const struct alloc *alloc)
{
    *b = (struct batch){buf_init(alloc), 0};
}

void batch_free(struct batch *b)
{
    buf_free(&b->body);
    b->count = 0;
}

void batch_clear(struct batch *b)
{
    buf_clear(&b->body);
    b->count = 0;
}

tamiz_status batch_add(struct op *op, struct batch *b, enum kind kind, uint64_t keyspace,
                       struct slice key, struct slice value)
{
    const size_t head = 1 + 3 * VARINT_MAX; /* the most that is not key or value */
    size_t most;
    if (__builtin_add_overflow(key.size, value.size, &most) ||
        __builtin_add_overflow(most, head, &most) || !buf_reserve(&b->body, most)) {
        b->body.failed = false; /* the batch is as it was */
        return op_fail_memory(op);
    }
    buf_u8(&b->body, (uint8_t)kind);
    buf_varint(&b->body, keyspace);
    buf_block(&b->body, key);
    if (kind != KIND_DELETE)
        buf_block(&b->body, value);
    b->count++;
    return TAMIZ_OK;
}

void batch_head(struct buf *out, uint64_t first_seq, uint64_t count)
{
    buf_varint(out, first_seq);
    buf_varint(out, count);
}

/* One write off the reader; false: malformed. */
static bool take_write(struct reader *in, struct batch_write *w)
{
    const uint8_t kind = reader_u8(in);
    w->keyspace = reader_varint(in);
    w->key = reader_block(in);
    w->value = kind != KIND_DELETE ? reader_block(in) : slice_of(NULL, 0);
    w->kind = (enum kind)(kind_is_known(kind) ? kind : KIND_DELETE);
    if (in->bad || !kind_is_known(kind) || w->key.size > KEY_SIZE_MAX)
        return false;
    if (kind == KIND_RANGE_DELETE)
        return w->value.size <= KEY_SIZE_MAX && slice_compare(w->key, w->value) < 0;
    if (kind == KIND_EXPIRING && w->value.size < EXPIRY_SIZE)
        return false;
    return w->value.size <= VALUE_SIZE_MAX;
}

tamiz_status batch_open(struct op *op, struct slice body, struct batch_reader *r,
                        uint64_t *first_seq, uint64_t *count)
{
    struct reader in = reader_of(body);
    const uint64_t first = reader_varint(&in), n = reader_varint(&in);
    struct batch_write w;
    *r = (struct batch_reader){reader_of(slice_of(NULL, 0)), 0, 0};
    *first_seq = *count = 0;
    if (in.bad || first > SEQ_MAX || n > SEQ_MAX - first + 1)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "batch: expected a first sequence and a count within 2^60, found %" PRIu64
                       " and %" PRIu64 "%s",
                       first, n, in.bad ? " (cut off)" : "");
    const struct reader writes = in;
    for (uint64_t i = 0; i < n; i++) {
        const size_t at = body.size - reader_left(&in);
        if (!take_write(&in, &w))
            return op_fail(op, TAMIZ_CORRUPTION,
                           "batch: expected %" PRIu64 " writes, found no valid one at byte %zu "
                           "of %zu (write %" PRIu64 ")",
                           n, at, body.size, i);
    }
    if (reader_left(&in))
        return op_fail(op, TAMIZ_CORRUPTION,
                       "batch: expected %" PRIu64 " writes and no more, found %zu bytes behind "
                       "the last",
                       n, reader_left(&in));
    *r = (struct batch_reader){writes, first, n};
    *first_seq = first;
    *count = n;
    return TAMIZ_OK;
}

void batch_walk(const struct batch *b, uint64_t first_seq, struct batch_reader *r)
{
    *r = (struct batch_reader){reader_of(buf_slice(&b->body)), first_seq, b->count};
}

bool batch_next(struct batch_reader *r, struct batch_write *w)
{
    if (r->left == 0 || !take_write(&r->in, w))
        return false;
    w->seq = r->next_seq++;
    r->left--;
    return true;
}
