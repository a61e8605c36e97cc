/* SPDX-License-Identifier: MIT
 *
 * Sorting hashes: distribution by their highest bits, which costs a few passes whatever the order
 * they come in.
 */
#ifndef TAMIZ_FILTER_SORT_H
#define TAMIZ_FILTER_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Ascending, in place. `scratch` has room for n and is left with nothing of interest. */
void sort_hashes(uint64_t *hashes, size_t n, uint64_t *scratch);
/* Drops repeats of sorted hashes; the number that is left. */
size_t sort_unique(uint64_t *hashes, size_t n);

#endif
