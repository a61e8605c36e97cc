/* SPDX-License-Identifier: MIT
 *
 * An inner node of a memtable's tree: children, and between them separators, each of which is the
 * first entry of the child behind it. What was there at birth is sorted and frozen; what came since
 * is a short tail, appended and published by its count. When the tail is full, a new node takes the
 * place of this one; readers that are still here see what they saw.
 *
 *     child 0 | sep 0, child 1 | … | sep n-1, child n      sorted
 *     sep, child | sep, child | …                          tail, at most 8
 *
 * A child is split by first appending its right half and then replacing it by its left: a reader
 * finds the right half by the new separator, or else the old child, which still has all it needs.
 */
#ifndef TAMIZ_MEM_INNER_H
#define TAMIZ_MEM_INNER_H

#include <stdatomic.h>

#include "mem/entry.h"

enum { INNER_SEPS = 56, INNER_TAIL = 8, INNER_ITEMS = INNER_SEPS + 1 + INNER_TAIL + 1 };

/* A leaf or an inner node: both begin with their level. */
struct mem_node {
    uint32_t level;
};

typedef _Atomic(struct mem_node *) cell;

struct inner {
    uint32_t level; /* above its leaves: at least 1 */
    uint32_t seps;
    _Atomic uint32_t tail;
    uint32_t skip; /* all separators share so many bytes */
    bool guarded;  /* a target need not share them */
    const struct entry *low, *high;
    _Alignas(64) int32_t window[INNER_SEPS]; /* behind the last: INT32_MAX */
    int32_t tail_window[INNER_TAIL];
    const struct entry *sep[INNER_SEPS];
    const struct entry *tail_sep[INNER_TAIL];
    cell child[INNER_SEPS + 1];
    cell tail_child[INNER_TAIL];
};

struct item {
    const struct entry *sep; /* of the first: not looked at */
    struct mem_node *child;
};

/* Of 2 to INNER_SEPS + 1 items, sorted. NULL: memory is out. */
struct inner *inner_new(struct arena *arena, uint32_t level, const struct entry *low,
                        const struct entry *high, const struct item *items, uint32_t n);
/* The child that has the last entry below the target (the first child: there may be none). */
struct mem_node *inner_child(const struct inner *in, const struct target *t);
struct mem_node *inner_last(const struct inner *in);

/* The writer's. The place of that child. */
cell *inner_cell(struct inner *in, const struct target *t);
/* false: there is no room in the tail for it. */
bool inner_append(struct inner *in, const struct entry *sep, struct mem_node *child);
/* All children in order, with `left` in the place of *at and `sep`, `right` added. How many. */
uint32_t inner_items(const struct inner *in, const cell *at, struct mem_node *left,
                     const struct entry *sep, struct mem_node *right, struct item out[INNER_ITEMS]);

#endif
