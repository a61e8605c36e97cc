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

#endif
