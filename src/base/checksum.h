/* SPDX-License-Identifier: MIT
 *
 * XXH3-64 over stored bytes, seeded with the identity of the file and the offset in it, so that a
 * block that was read from the wrong place, or belongs to another file, is noticed as well as a
 * damaged one.
 */
#ifndef TAMIZ_BASE_CHECKSUM_H
#define TAMIZ_BASE_CHECKSUM_H

#include "base/slice.h"

uint64_t checksum(uint64_t file_id, uint64_t offset, struct slice bytes);
/* The same of bytes that stand in `n` pieces. */
uint64_t checksum_pieces(uint64_t file_id, uint64_t offset, const struct slice *pieces, size_t n);

#endif
