/* SPDX-License-Identifier: MIT
 *
 * The range deletes of a memtable: a list that grows at its head, each with the skyline that it and
 * all before it make. What a reader of any moment sees is the skyline of the newest one that it may
 * see; everything is frozen once it can be found, so readers need no lock.
 *
 * An old moment is found in O(log n) steps: beside its predecessor each knows one further back (E.
 * Myers, "An applicative random-access stack", 1983).
 */
#ifndef TAMIZ_MEM_MEM_RANGE_H
#define TAMIZ_MEM_MEM_RANGE_H

#include "base/key.h"
#include "base/ranges.h"
#include "base/skyline.h"

struct mem_range {
    struct range_delete is; /* keys in the arena */
    const struct skyline *skyline;
    const struct mem_range *below; /* NULL: the first */
    const struct mem_range *jump;
    uint64_t depth;
};

/* A new head over `below`; keys are copied. Sequences grow. NULL: memory is out. */
const struct mem_range *mem_range_new(struct arena *arena, const struct mem_range *below,
                                      struct slice from, struct slice to, uint64_t seq);
/* The newest up to `seq` from `r` down, or NULL. */
const struct mem_range *mem_range_at(const struct mem_range *r, uint64_t seq);

#endif
