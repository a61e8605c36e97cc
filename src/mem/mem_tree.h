/* SPDX-License-Identifier: MIT
 *
 * Versions in order, for one writer and any number of readers without locks: a B+-tree whose nodes
 * only grow, until they are replaced by new ones.
 *
 * Why not a skip list: what a memtable costs is cache misses, one after the other. A skip list
 * looks at some twenty entries, half of them far away; here an insertion looks at three or four
 * inner nodes, which stay in the cache, and appends to a leaf (docs/adr/0012-memtable-tree.md has
 * the numbers).
 *
 * Why readers need no lock: whatever can be reached is complete, and all that changes is a count
 * that grows and a pointer to a child that is replaced by a newer one; both are stored with release
 * and loaded with acquire. A replaced node stays in the arena as it was. A reader in it misses what
 * was added since, nothing that it was told of before it came.
 */
#ifndef TAMIZ_MEM_MEM_TREE_H
#define TAMIZ_MEM_MEM_TREE_H

#include "mem/inner.h"
#include "mem/leaf.h"

struct mem_tree {
    struct arena *arena; /* borrowed */
    cell root;
    /* The writer's own: where the last entry went, and whether the one before went there too. */
    struct leaf *last;
    bool again;
};

/* false: memory is out. Everything lies in `arena`, which outlives the tree. */
bool mem_tree_init(struct mem_tree *tree, struct arena *arena);
/* The writer only. No two versions are equal in key and stamp. false: memory is out, and the tree
 * is as it was. */
bool mem_tree_add(struct mem_tree *tree, struct slice key, uint64_t stamp, struct slice value);
/* The newest version of the key at or below the stamp, or NULL. */
const struct entry *mem_tree_find(const struct mem_tree *tree, struct slice key, uint64_t stamp);

/* A place in the tree: one leaf, sorted when it was entered. Entries that were added to it since
 * are not seen until the next seek. */
struct cursor {
    const struct mem_tree *tree;
    const struct entry *low, *high;
    uint32_t count, at; /* at < count: there is an entry */
    const struct entry *entries[LEAF_MAX];
};

/* Each answers the entry it came to, or NULL. */
const struct entry *cursor_first(struct cursor *c);
const struct entry *cursor_last(struct cursor *c);
const struct entry *cursor_seek(struct cursor *c, const struct target *t);        /* not below */
const struct entry *cursor_seek_before(struct cursor *c, const struct target *t); /* last below */
const struct entry *cursor_next(struct cursor *c);
const struct entry *cursor_prev(struct cursor *c);

#endif
