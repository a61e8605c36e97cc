/* SPDX-License-Identifier: MIT
 *
 * The index of one table: which block could have a key. On disk, one fence a block: the shortest
 * key that is not below the block's last key and below the next block's first. In memory, the first
 * eight distinguishing bytes of each fence as an integer, searched without branches, and the whole
 * fence only where two of those are equal.
 *
 *     index block:  prefix block (varint size, bytes: what all fences begin with)
 *                   count varint
 *                   count × { shared varint, suffix block, stored size varint, raw size varint }
 *
 * `shared` counts bytes beyond the prefix that equal the fence before. Blocks stand one behind the
 * other from TABLE_HEADER_SIZE on, so that sizes are places.
 */
#ifndef TAMIZ_TABLE_INDEX_H
#define TAMIZ_TABLE_INDEX_H

#include "base/buf.h"
#include "table/format.h"

struct index_builder {
    struct buf fences;  /* whole fences, one behind the other */
    struct buf entries; /* u64 triples: fence end, stored size, raw size */
    size_t count;
};

void index_builder_init(struct index_builder *b, const struct alloc *alloc);
void index_builder_free(struct index_builder *b);
/* `fence` as above; `stored` bytes of payload without trailer; `raw` bytes unpacked. */
void index_builder_add(struct index_builder *b, struct slice fence, uint64_t stored, uint64_t raw);
tamiz_status index_builder_finish(struct op *op, struct index_builder *b, struct buf *out);

struct index; /* frozen */

/* Decodes and checks against `data_end`, the offset where the blocks must end. Words name `path`.
 */
tamiz_status index_open(struct op *op, struct slice payload, uint64_t data_end, const char *path,
                        const struct alloc *alloc, struct index **index);
void index_free(struct index *index);
size_t index_memory(const struct index *index);
uint32_t index_count(const struct index *index);
/* Index of the first block whose fence is not below `key`: the only one that can have it.
 * index_count(): none. */
uint32_t index_find(const struct index *index, struct slice key);
struct extent index_extent(const struct index *index, uint32_t block);
uint64_t index_raw_size(const struct index *index, uint32_t block);

#endif
