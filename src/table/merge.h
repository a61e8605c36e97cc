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

#endif
