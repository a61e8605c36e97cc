/* SPDX-License-Identifier: MIT
 *
 * How many hashes are there twice, told without sorting all of them: a filter that is being filled
 * has no false negatives, so only a hash that it took for known when it came can be a repeat. Those
 * few are looked for among all.
 */
#ifndef TAMIZ_FILTER_REPEATS_H
#define TAMIZ_FILTER_REPEATS_H

#include "base/op.h"

/* How many of the `n` hashes are repeats of others, when every one that is a repeat of an earlier
 * one is in `seen` (`count` of them, sorted here), among others that are not. */
tamiz_status repeats_count(struct op *op, const uint64_t *hashes, size_t n, uint64_t *seen,
                           size_t count, size_t *repeats);

#endif
