/* SPDX-License-Identifier: MIT
 *
 * Ranks, for ordered search in a block: of each entry a number of 16 bits that orders as its key
 * does, ties undecided. Made in memory for a block that stays there: halving over the entries
 * themselves costs a cache miss a step, the ranks of an ordinary block are two lines that come
 * together.
 *
 * A key's word is eight bytes, as a number, of what stands behind the bytes that all keys of the
 * block begin with. Its rank is how far that is beyond the first entry's word, in units so large
 * that the last entry's fits into 16 bits. So the numbers are used up by the stretch that the block
 * covers, whatever part of their alphabet the keys use.
 *
 *     base u64 | shift u8 | skip u8 | the skipped bytes, padded to an even number | rank u16 ×
 * count | padding to whole strides
 */
#ifndef TAMIZ_TABLE_RANKS_H
#define TAMIZ_TABLE_RANKS_H

#include "table/block.h"

struct ranks;

/* Bytes they take; 0: they would not pay, or the block is damaged. */
size_t ranks_size(const struct block *b);
/* The same, near enough, before there is a block: of so many entries. */
size_t ranks_size_about(size_t entries);
/* Into so many bytes, 8-byte aligned. false: the block is damaged. */
bool ranks_fill(const struct block *b, struct ranks *r);

/* Of the block that has them. */
struct block_near ranks_near(const struct block *b, struct slice key);

#endif
