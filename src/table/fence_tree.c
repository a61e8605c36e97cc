/* SPDX-License-Identifier: MIT */
#include "table/fence_tree.h"

#include "base/fetch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { CHILDREN = TREE_NODE + 1 };

/* ---- building ---- */

static size_t nodes_of(uint32_t count)
{
    return ((size_t)count + TREE_NODE - 1) / TREE_NODE;
}

/* Nodes of layer 0, then of each layer above until one node is the root. */
static void plan_layers(struct fence_tree *tree)
{
    size_t nodes = nodes_of(tree->count);
    while (nodes) {
        tree->layer_at[tree->layers++] = tree->total;
        tree->total += nodes * TREE_NODE;
        nodes = nodes == 1 ? 0 : (nodes + CHILDREN - 1) / CHILDREN;
    }
}

static size_t layer_end(const struct fence_tree *tree, size_t layer)
{
    return layer + 1 < tree->layers ? tree->layer_at[layer + 1] : tree->total;
}

/* The largest integer below child `child` of the layer above `layer`; the largest there is where
 * that is the layer's last child, so that no search leaves the tree. */
static int64_t subtree_largest(const struct fence_tree *tree, size_t layer, size_t child)
{
    size_t leaf = child;
    for (size_t l = layer; l > 0; l--)
        leaf = leaf * CHILDREN + TREE_NODE;
    return leaf + 1 < nodes_of(tree->count) ? tree->words[leaf * TREE_NODE + TREE_NODE - 1]
                                            : INT64_MAX;
}

static enum tree_way best_way(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("popcnt"))
        return TREE_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return TREE_AVX2;
#endif
    return TREE_PORTABLE;
}

bool fence_tree_init(struct fence_tree *tree, const struct alloc *alloc, uint32_t count)
{
    *tree = (struct fence_tree){.count = count, .way = best_way()};
    plan_layers(tree);
    tree->words = mem_new_aligned(alloc, tree->total * sizeof *tree->words, FETCH_LINE);
    return tree->words != NULL;
}

void fence_tree_raise(struct fence_tree *tree)
{
    if (tree->layers)
        for (size_t i = tree->count; i < layer_end(tree, 0); i++)
            tree->words[i] = INT64_MAX;
    for (size_t layer = 1; layer < tree->layers; layer++)
        for (size_t i = tree->layer_at[layer]; i < layer_end(tree, layer); i++) {
            const size_t at = i - tree->layer_at[layer];
            const size_t child = at / TREE_NODE * CHILDREN + at % TREE_NODE;
            tree->words[i] = subtree_largest(tree, layer - 1, child);
        }
}

void fence_tree_free(struct fence_tree *tree, const struct alloc *alloc)
{
    mem_free_aligned(alloc, tree->words, tree->total * sizeof *tree->words, FETCH_LINE);
    *tree = (struct fence_tree){.words = NULL};
}

bool fence_tree_use(struct fence_tree *tree, enum tree_way way)
{
    if (way > best_way())
        return false;
    tree->way = way;
    return true;
}

/* ---- searching ---- */

/* Starts fetching what stands beside the node's 16 words. */
static inline void fetch_beside(const void *beside, size_t node)
{
    if (!beside)
        return;
    const uint8_t *at = (const uint8_t *)beside + node * TREE_NODE * sizeof(void *);
    fetch_line(at);
    fetch_line(at + FETCH_LINE);
}

/* Starts fetching a node of the lowest layer; which one, if it has any of the words. */
static inline size_t node_fetch(const struct fence_tree *tree, size_t node, const void *beside)
{
    if (node * TREE_NODE >= tree->count)
        return TREE_NO_NODE;
    fetch_line(&tree->words[node * TREE_NODE]);
    fetch_line(&tree->words[node * TREE_NODE + TREE_NODE / 2]);
    fetch_beside(beside, node);
    return node;
}

/* How many of a node's 16 integers are below x, in each way. */

static inline unsigned below_portable(const int64_t *node, int64_t x)
{
    unsigned below = 0;
    for (unsigned i = 0; i < TREE_NODE; i++)
        below += node[i] < x;
    return below;
}

#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,popcnt")))

AVX2 static inline unsigned below_avx2(const int64_t *node, int64_t x)
{
    const __m256i wanted = _mm256_set1_epi64x(x);
    const __m256i *four = (const __m256i *)(const void *)node;
    __m256i below = _mm256_setzero_si256(); /* minus the count, in four lanes */
#pragma GCC unroll 4
    for (unsigned i = 0; i < TREE_NODE / 4; i++)
        below = _mm256_add_epi64(below, _mm256_cmpgt_epi64(wanted, _mm256_load_si256(four + i)));
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(below), _mm256_extracti128_si256(below, 1));
    return (unsigned)-(_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 2));
}

AVX512 static inline unsigned below_avx512(const int64_t *node, int64_t x)
{
    const __m512i wanted = _mm512_set1_epi64(x);
    const unsigned low = _mm512_cmplt_epi64_mask(_mm512_load_si512(node), wanted);
    const unsigned high = _mm512_cmplt_epi64_mask(_mm512_load_si512(node + TREE_NODE / 2), wanted);
    return (unsigned)__builtin_popcount(low | high << TREE_NODE / 2);
}
#endif

/* Searches around one way to count: the way is asked for once a search, not once a node. Not
 * inlined, so that asking needs no registers saved. */
#define NOINLINE __attribute__((noinline))
#define SEARCH(way, TARGET)                                                                        \
    TARGET static inline size_t walk_##way(const struct fence_tree *tree, int64_t x)               \
    {                                                                                              \
        size_t node = 0;                                                                           \
        for (size_t layer = tree->layers - 1; layer > 0; layer--)                                  \
            node = node * CHILDREN +                                                               \
                   below_##way(&tree->words[tree->layer_at[layer] + node * TREE_NODE], x);         \
        return node;                                                                               \
    }                                                                                              \
    TARGET NOINLINE static size_t node_##way(const struct fence_tree *tree, int64_t x,             \
                                             const void *beside)                                   \
    {                                                                                              \
        return node_fetch(tree, walk_##way(tree, x), beside);                                      \
    }                                                                                              \
    TARGET NOINLINE static size_t rank_in_##way(const struct fence_tree *tree, size_t node,        \
                                                int64_t x)                                         \
    {                                                                                              \
        return node * TREE_NODE + below_##way(&tree->words[node * TREE_NODE], x);                  \
    }                                                                                              \
    TARGET NOINLINE static size_t rank_##way(const struct fence_tree *tree, int64_t x,             \
                                             const void *beside)                                   \
    {                                                                                              \
        const size_t node = walk_##way(tree, x);                                                   \
        fetch_beside(beside, node);                                                                \
        return node * TREE_NODE + below_##way(&tree->words[node * TREE_NODE], x);                  \
    }

SEARCH(portable, )
#if defined(__x86_64__)
SEARCH(avx2, AVX2)
SEARCH(avx512, AVX512)
#endif

size_t fence_tree_rank(const struct fence_tree *tree, int64_t x, const void *beside)
{
#if defined(__x86_64__)
    if (tree->way == TREE_AVX512)
        return rank_avx512(tree, x, beside);
    if (tree->way == TREE_AVX2)
        return rank_avx2(tree, x, beside);
#endif
    return rank_portable(tree, x, beside);
}

size_t fence_tree_node(const struct fence_tree *tree, int64_t x, const void *beside)
{
#if defined(__x86_64__)
    if (tree->way == TREE_AVX512)
        return node_avx512(tree, x, beside);
    if (tree->way == TREE_AVX2)
        return node_avx2(tree, x, beside);
#endif
    return node_portable(tree, x, beside);
}

size_t fence_tree_rank_in(const struct fence_tree *tree, size_t node, int64_t x)
{
#if defined(__x86_64__)
    if (tree->way == TREE_AVX512)
        return rank_in_avx512(tree, node, x);
    if (tree->way == TREE_AVX2)
        return rank_in_avx2(tree, node, x);
#endif
    return rank_in_portable(tree, node, x);
}
