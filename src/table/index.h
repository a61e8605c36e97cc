/* SPDX-License-Identifier: MIT
 *
 * The index of one table: which block could have a key. On disk, one fence a block: the shortest
 * key that is not below the block's last key and below the next block's first.
 *
 * In memory, the first eight bytes of each fence behind what all fences begin with, as an integer,
 * in a fence_tree. Whole fences are looked at only where an integer of the tree equals the key's.
 *
 *     index block:  prefix block (varint size, bytes: what all fences begin with)
 *                   count varint
 *                   count × { shared varint, suffix block, stored size varint, raw size varint }
 *
 * `shared` counts bytes beyond the prefix that equal the fence before. Blocks stand one behind the
 * other from TABLE_HEADER_SIZE on, so that sizes are places. Fences ascend. A fence is never longer
 * than its block is unpacked: that bounds what a crafted index can make a reader allocate.
 */
#ifndef TAMIZ_TABLE_INDEX_H
#define TAMIZ_TABLE_INDEX_H

#include "base/buf.h"
#include "table/alphabet.h"
#include "table/fence_tree.h"
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
/* The same, while the answer's entry in `beside`, an array of one pointer a block, is fetched:
 * which node of 16 it is in is known one cache miss before which entry. */
uint32_t index_find_beside(const struct index *index, struct slice key, const void *beside);
/* Starts fetching what index_find_beside will wait for. */
void index_fetch(const struct index *index, struct slice key, const void *beside);

/* The same search in two halves, between which other things can be done while memory is waited for:
 * the first starts fetching what the second touches. */
struct index_search {
    size_t node; /* TREE_NO_NODE: the key's first bytes, or an empty index, decide */
    int64_t word;
};
struct index_search index_search_begin(const struct index *index, struct slice key,
                                       const void *beside);
/* As index_find. */
uint32_t index_search_end(const struct index *index, struct slice key, struct index_search search);
/* About how far in `block`, which the search ended at, the key would stand: 0 to PART_WHOLE, if
 * keys lie evenly between the fences before and behind. */
uint32_t index_part(const struct index *index, uint32_t block, struct index_search search);
struct extent index_extent(const struct index *index, uint32_t block);
uint64_t index_raw_size(const struct index *index, uint32_t block);
/* The fence of `block` behind what all begin with, which is put into *prefix. Borrowed. */
struct slice index_fence(const struct index *index, uint32_t block, struct slice *prefix);
/* From now on searched in this way: for tests, before others see it. false: this machine can't. */
bool index_use(struct index *index, enum tree_way way);

#endif
