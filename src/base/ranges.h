/* SPDX-License-Identifier: MIT
 *
 * Range deletes at rest: pieces that do not overlap, in key order, each with the sequences of the
 * deletes that cover it, newest first. Of those that no reader can tell apart (no snapshot lies
 * between them) only the newest is left, so a piece has at most one sequence more than there are
 * snapshots.
 *
 *     deletes            [a, g) 10   [c, j) 20   [e, f) 30;  a snapshot at 15
 *     pieces             [a, c) 10 | [c, e) 20 10 | [e, f) 30 10 | [f, g) 20 10 | [g, j) 20
 *
 * As bytes (the ranges block of a table, docs/format/table.md):
 *
 *     count varint | count x { from block, to block, n varint, newest sequence varint,
 *                              (n - 1) x how much older the next one is, varint }
 */
#ifndef TAMIZ_BASE_RANGES_H
#define TAMIZ_BASE_RANGES_H

#include "base/buf.h"
#include "base/op.h"

/* One as it was made: keys in [from, to), all versions below `seq`. */
struct range_delete {
    struct slice from, to;
    uint64_t seq;
};

struct range {
    struct slice from, to;
    const uint64_t *seqs; /* newest first, at least one */
    size_t seq_count;
};

struct ranges {
    const struct alloc *alloc;
    struct range *list; /* in key order */
    size_t count;
    uint64_t *seqs; /* all of them, one behind the other; owned, as the list is */
    size_t list_room, seqs_room;
};

/* How many snapshots (ascending) are too old to see the sequence: those with the same number see
 * the same. snapshots 20, 40:  12 and 20 -> 0;  21 and 40 -> 1;  41 -> 2, only now sees it */
size_t seq_stripe(const uint64_t *snapshots, size_t count, uint64_t seq);

/* Cut into pieces and thinned out by the snapshots. Keys stay borrowed. *out is freed by
 * ranges_free also on failure. */
tamiz_status ranges_build(struct op *op, const struct alloc *alloc, const struct range_delete *list,
                          size_t n, const uint64_t *snapshots, size_t snapshot_count,
                          struct ranges *out);
void ranges_free(struct ranges *r); /* empty afterwards */

/* The first piece that ends above `key`: 0..count. */
size_t ranges_from(const struct ranges *r, struct slice key);
/* The newest sequence up to seq_max over the key; 0: none. */
uint64_t ranges_cover(const struct ranges *r, struct slice key, uint64_t seq_max);
/* The newest up to seq_max of one piece; 0: none. */
uint64_t range_newest(const struct range *r, uint64_t seq_max);

/* Appends a struct range_delete for each sequence of each piece: what building begins with. */
void ranges_list(const struct ranges *r, struct buf *list);

/* Appends one piece as bytes; the count stands in front of all of them. */
void range_encode(struct buf *out, const struct range *r);
/* The whole block; keys are borrowed from it. TAMIZ_CORRUPTION (words that lack the file) where
 * anything is out of order. *out is freed by ranges_free also on failure. */
tamiz_status ranges_decode(struct op *op, const struct alloc *alloc, struct slice block,
                           struct ranges *out);

/* The largest key that a piece with this end can cover: where it is known exactly, that, else the
 * end itself, which is one too many. What stands in the bounds of a table. */
struct slice range_last_key(struct slice to);

#endif
