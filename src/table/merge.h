/* SPDX-License-Identifier: MIT
 *
 * Many iterators as one, in version order. It shows every version of every source, tombstones too,
 * and hides nothing: whoever knows the bound and the snapshot skips them (hidden inside the merge
 * they made git's reftable quadratic).
 */
#ifndef TAMIZ_TABLE_MERGE_H
#define TAMIZ_TABLE_MERGE_H

#include "base/iter.h"

/* Takes ownership of all `n` sources, also on failure (NULL: recorded in op). `sources` itself
 * stays the caller's. n may be 0. */
struct iter *merge_iter(struct op *op, struct iter **sources, size_t n);

/* Which sources have nothing to show on this side of a key, counted as they were given: those from
 * `behind` on, and those whose newest sequence is below `seq`. */
struct merge_past {
    size_t behind;
    const uint64_t *newest; /* one a source */
    uint64_t seq;
};

/* Moves such sources past `key` in the direction of walking: forwards to the first version not
 * below the key, backwards to the last below it. false: the current version is of another source,
 * and nothing moved. Only while valid. */
bool merge_skip(struct iter *it, const struct merge_past *past, struct slice key);

/* How far the current source may be stepped through its walk (base/iter.h): a key of which the
 * first sixteen bytes, as two numbers, are below these comes before all that other sources have. At
 * any other the merge has to look: iter_refresh. */
struct merge_limit {
    bool any; /* false: there is no other source */
    uint64_t first8, next8;
};
/* Forwards, while valid; until the merge moves. */
struct merge_limit merge_limit(const struct iter *it);

static inline struct merge_limit merge_limit_at(struct slice key)
{
    return (struct merge_limit){true, slice_prefix8(key, 0),
                                key.size > 8 ? slice_prefix8(key, 8) : 0};
}

static inline bool merge_limit_admits(const struct merge_limit *l, struct slice key)
{
    if (!l->any)
        return true;
    const uint64_t first8 = slice_prefix8(key, 0);
    return first8 < l->first8 ||
           (first8 == l->first8 && (key.size > 8 ? slice_prefix8(key, 8) : 0) < l->next8);
}

#endif
