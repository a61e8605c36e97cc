/* SPDX-License-Identifier: MIT
 *
 * A group of writes as one record. The body of a WAL record:
 *
 *     first sequence varint | count varint | count × { kind u8, keyspace varint, key block, [value
 * block] }
 *
 * The i-th write has sequence first + i. A tombstone has no value; that of a range delete is the
 * key where it ends. docs/format/log.md
 */
#ifndef TAMIZ_LOG_BATCH_H
#define TAMIZ_LOG_BATCH_H

#include "base/buf.h"
#include "base/coding.h"
#include "base/key.h"
#include "base/op.h"

/* Writes collected, encoded as they come: everything but the first sequence and the count, which
 * are not known yet. */
struct batch {
    struct buf body;
    uint64_t count;
};

void batch_init(struct batch *b, const struct alloc *alloc);
void batch_free(struct batch *b);
void batch_clear(struct batch *b);
/* Sizes are the caller's to check. TAMIZ_OUT_OF_MEMORY leaves the batch as it was. */
tamiz_status batch_add(struct op *op, struct batch *b, enum kind kind, uint64_t keyspace,
                       struct slice key, struct slice value);

/* The varints that go in front of one or several batches' bodies in a record: appended to `out`. */
void batch_head(struct buf *out, uint64_t first_seq, uint64_t count);

struct batch_write {
    enum kind kind;
    uint64_t keyspace;
    uint64_t seq;
    struct slice key, value; /* borrowed from the body */
};

struct batch_reader {
    struct reader in;
    uint64_t next_seq, left;
};

/* Of a record's body. TAMIZ_CORRUPTION (with words that lack the file: the caller knows it) where
 * head or any write is malformed: all of them are checked here, so that nothing is applied by
 * halves. */
tamiz_status batch_open(struct op *op, struct slice body, struct batch_reader *r,
                        uint64_t *first_seq, uint64_t *count);
/* For the writes of a batch still in memory, whose first sequence is `first_seq`. */
void batch_walk(const struct batch *b, uint64_t first_seq, struct batch_reader *r);
bool batch_next(struct batch_reader *r, struct batch_write *w); /* false: no more */

/* Is a record at `first_seq` of a group that failed, where the next log begins at `limit`? One of
 * no writes only says where it goes on, and may say it of the next log. */
static inline bool batch_is_beyond(uint64_t first_seq, uint64_t count, uint64_t limit)
{
    return count ? first_seq >= limit : first_seq > limit;
}

#endif
