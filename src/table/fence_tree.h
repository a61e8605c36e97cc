/* SPDX-License-Identifier: MIT
 *
 * The first eight bytes of an index's fences as integers, in a static B+ tree without pointers:
 * nodes of 16 integers (two neighbouring cache lines), 17 children a node, all nodes of a layer one
 * behind the other, the lowest layer being simply the sorted array (the "S+ tree" of S. Slotin,
 * "Algorithms for Modern Hardware"). 8,192 fences are four nodes deep and the upper three layers
 * stay in the processor's cache.
 *
 *     layer 1:  [ largest below child 0 | ... | largest below child 15 ]      17 children
 *     layer 0:  [ 16 words ] [ 16 words ] ... [ the last words, then INT64_MAX to the end ]
 */
#ifndef TAMIZ_TABLE_FENCE_TREE_H
#define TAMIZ_TABLE_FENCE_TREE_H

#include "base/alloc.h"

enum {
    TREE_NODE = 16,      /* integers a node: two cache lines             */
    TREE_LAYERS_MAX = 9, /* 16 × 17^8 fences are more than a uint32_t counts */
};

/* Ways to search a node, the best last. */
enum tree_way { TREE_PORTABLE, TREE_AVX2, TREE_AVX512 };

struct fence_tree {
    int64_t *words; /* owned; `count` words ascend, upper layers behind them */
    uint32_t count;
    uint32_t layers;
    enum tree_way way;
    size_t layer_at[TREE_LAYERS_MAX]; /* first integer of each layer; 0 is the lowest */
    size_t total;                     /* integers of all layers */
};

/* The eight bytes with the sign bit flipped, so that signed comparison orders them. */
static inline int64_t tree_word(uint64_t bytes)
{
    return (int64_t)(bytes ^ UINT64_C(1) << 63);
}

static inline uint64_t tree_bytes(int64_t word)
{
    return (uint64_t)word ^ UINT64_C(1) << 63;
}

/* Memory for `count` words: the caller puts them into `words`, ascending, then raises the layers
 * above them. false: no memory. */
bool fence_tree_init(struct fence_tree *tree, const struct alloc *alloc, uint32_t count);
void fence_tree_raise(struct fence_tree *tree);
void fence_tree_free(struct fence_tree *tree, const struct alloc *alloc);

/* From now on searched in this way: before others see the tree. false: this machine can't. */
bool fence_tree_use(struct fence_tree *tree, enum tree_way way);

/* How many words are below x, of a tree that has any; `count` and more: all. While the answer's
 * node is searched, its entries in `beside` (NULL, or an array of one pointer a word) are fetched.
 */
size_t fence_tree_rank(const struct fence_tree *tree, int64_t x, const void *beside);
/* The same in two halves: the node of the lowest layer, whose words and entries in `beside` are
 * being fetched, then how many words are below x if that node decides. TREE_NO_NODE:
 * all. */
#define TREE_NO_NODE SIZE_MAX
size_t fence_tree_node(const struct fence_tree *tree, int64_t x, const void *beside);
size_t fence_tree_rank_in(const struct fence_tree *tree, size_t node, int64_t x);

#endif
