/* SPDX-License-Identifier: MIT
 *
 * The value of a version of KIND_EXPIRING as it is stored: the moment from which on it counts as
 * deleted, microseconds since 1970, little-endian, and then the user's value. docs/format/table.md
 */
#ifndef TAMIZ_BASE_EXPIRY_H
#define TAMIZ_BASE_EXPIRY_H

#include "base/coding.h"
#include "base/key.h"

enum { EXPIRY_SIZE = 8 };

/* What a user's value may have where a moment stands before it. */
#define EXPIRING_VALUE_MAX (VALUE_SIZE_MAX - EXPIRY_SIZE)

/* Bytes of the user's value in a version of that stamp: what is too short to have a head stays. */
static inline size_t expiry_user_size(uint64_t stamp, size_t stored)
{
    const bool head = stamp_kind(stamp) == KIND_EXPIRING && stored >= EXPIRY_SIZE;
    return stored - (head ? (size_t)EXPIRY_SIZE : 0);
}

/* *stored without its head, which *expires_us has then. false: it is too short to be one, and both
 * are as they were. */
static inline bool expiry_split(struct slice *stored, uint64_t *expires_us)
{
    if (stored->size < EXPIRY_SIZE)
        return false;
    *expires_us = load_u64(stored->data);
    *stored = slice_of(stored->data + EXPIRY_SIZE, stored->size - EXPIRY_SIZE);
    return true;
}

#endif
