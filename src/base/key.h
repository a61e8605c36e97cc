/* SPDX-License-Identifier: MIT
 *
 * One version of a key: the user's bytes, the sequence number of its write, and what kind of write
 * it was. Sequence and kind travel as one integer, the stamp: sequence << 4 | kind. Versions of one
 * key are ordered newest first: keys ascending by memcmp, then stamps descending.
 */
#ifndef TAMIZ_BASE_KEY_H
#define TAMIZ_BASE_KEY_H

#include "base/hash.h"
#include "base/slice.h"

enum kind {
    KIND_DELETE = 0, /* a tombstone: no value lies at or below it */
    KIND_PUT = 1,
    /* A put until a moment that its value begins with (base/expiry.h), from then on a tombstone. */
    KIND_EXPIRING = 2,
    KIND_POINT_LAST = KIND_EXPIRING, /* up to here: versions of one key */
    /* Of all keys from its own up to its value, which is a key too and not deleted. In batches and
       memtables; a table has them in a block of their own. */
    KIND_RANGE_DELETE = 3,
    KIND_LAST = KIND_RANGE_DELETE,
    /* 4..15: reserved for what the format may grow; a reader refuses them */
};

static inline bool kind_is_known(unsigned kind)
{
    return kind <= KIND_POINT_LAST || kind == KIND_RANGE_DELETE;
}

#define SEQ_MAX        ((UINT64_C(1) << 60) - 1)
#define KEY_SIZE_MAX   65535u
#define VALUE_SIZE_MAX (UINT32_C(1) << 30)
enum { KEYSPACE_NAME_MAX = 255 };                 /* 1 and more bytes */
#define KEYSPACE_ID_MAX ((UINT64_C(1) << 62) - 1) /* and from 1 on; 0: the default one */

/* The first byte that no keyspace's name can have; NULL: none. Names stand in lines, in JSON and in
 * labels of Prometheus, so control bytes, quotes and backslashes are out. */
const uint8_t *keyspace_name_fault(struct slice name);
/* 1 to KEYSPACE_NAME_MAX bytes and no such byte. */
bool keyspace_name_is_proper(struct slice name);

static inline uint64_t stamp_of(uint64_t seq, enum kind kind)
{
    return seq << 4 | (uint64_t)kind;
}

static inline uint64_t stamp_seq(uint64_t stamp)
{
    return stamp >> 4;
}

static inline unsigned stamp_kind(uint64_t stamp)
{
    return (unsigned)(stamp & 15);
}

/* What a point read looks for: made once, used by every source. The key is borrowed for the
 * operation. */
struct lookup {
    struct slice key;
    uint64_t hash;
    uint64_t stamp_max; /* versions above this are not visible */
};

static inline struct lookup lookup_make(struct slice key, uint64_t seq)
{
    return (struct lookup){key, hash_key(key), seq << 4 | 15};
}

/* Order of versions: key ascending, stamp descending. */
static inline int version_compare(struct slice key_a, uint64_t stamp_a, struct slice key_b,
                                  uint64_t stamp_b)
{
    const int order = slice_compare(key_a, key_b);
    return order ? order : (stamp_a < stamp_b) - (stamp_a > stamp_b);
}

/* The shortest key k with a <= k < b, for fences: written to `out` (room for a.size), its size
 * returned. a < b. */
size_t key_separator(struct slice a, struct slice b, uint8_t *out);

#endif
