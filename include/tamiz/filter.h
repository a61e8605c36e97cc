/* SPDX-License-Identifier: MIT
 *
 * Filters with no store: approximate membership over 64-bit hashes. Serves alone with
 * libtamiz-filter, and is what every table of a store carries.
 *
 * A filter answers "could this hash be in the set?". false is certain. true is wrong at a known
 * rate, the false-positive rate, FP / (FP + TN). An image (tamiz_filter_serialize) is the same
 * bytes on every machine.
 */
#ifndef TAMIZ_FILTER_H
#define TAMIZ_FILTER_H

#include "tamiz/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The key hash: 64 bits, XXH3 with tamiz's seed; part of the format. Any bytes, size 0 included.
 * Any thread. */
TAMIZ_API uint64_t tamiz_hash(const void *key, size_t size);
/* The same of `n` keys of `size` bytes each, side by side, into hashes[0..n): for arrays of numbers
 * or identifiers, faster than a call for each, and most so for 8 and 16 bytes. */
TAMIZ_API void tamiz_hash_many(const void *keys, size_t size, size_t n, uint64_t *hashes);

typedef struct tamiz_filter_family tamiz_filter_family;

/* Which family, and how much of it. Plain value; parse it from text, or fill it in. */
typedef struct tamiz_filter_policy {
    char kind[16];       /* "bloom", "blocked", …, "none"                                  */
    double bits_per_key; /* of the whole filter; 0: not asked, see fpr                     */
    double fpr;          /* wanted false-positive rate, 0 < fpr < 1; 0: not asked          */
    const tamiz_filter_family *custom; /* your own family, of which kind is the name; or NULL */
} tamiz_filter_policy;

/*
 * A family of your own: fill one in, put its address and name into the policy, and tamiz does the
 * rest: header, checksum, repeats, retries, storage. Borrowed: it outlives every filter and store
 * that uses it. The callbacks are called from any thread, several at a time. Images of it are
 * read only where the policy (of the store, or of tamiz_filter_deserialize_custom) names it; anyone
 * else sees a filter of an unknown kind and goes on without.
 */
struct tamiz_filter_family {
    size_t struct_size; /* sizeof(tamiz_filter_family)                                          */
    const char *name;   /* 1 to 15 characters a-z 0-9 _, none of tamiz's kinds                  */
    uint16_t id;        /* in images: 0x8000 to 0xffff                                          */
    uint8_t version;    /* of your layout: another is refused                                   */
    void *ctx;          /* handed to each callback                                              */
    /* For `keys` distinct hashes: exact bytes of the payload, and the rate to expect. */
    tamiz_status (*plan)(void *ctx, const tamiz_filter_policy *policy, uint64_t keys,
                         uint64_t *payload_bytes, double *expected_fpr);
    /* Distinct hashes, ascending, into a payload of zeros on a 64-byte boundary.
     * TAMIZ_NOT_SUPPORTED: it did not come out, go on with no filter. */
    tamiz_status (*build)(void *ctx, const uint64_t *hashes, size_t n, void *payload,
                          uint64_t payload_bytes);
    /* Whether may_contain can work on these bytes, which may be anything; called once, first. */
    bool (*check)(void *ctx, const void *payload, uint64_t payload_bytes);
    bool (*may_contain)(void *ctx, const void *payload, uint64_t payload_bytes, uint64_t hash);
};

/*
 * "KIND", "KIND:BITS" or "KIND:fpr=P". BITS in (0, 64], fractions allowed; P in (0, 1). The family
 * takes the nearest it offers and tamiz_filter_info says what it took. TAMIZ_INVALID_ARGUMENT names
 * what is wrong and what would be right; *policy is unchanged then.
 */
TAMIZ_API tamiz_status tamiz_filter_policy_parse(const char *text, tamiz_filter_policy *policy);

typedef struct tamiz_filter tamiz_filter;

/*
 * Builds a filter over `n` hashes in any order, repeats allowed, n may be 0. The caller owns
 * *filter and frees it with tamiz_filter_free. *filter is NULL on failure. TAMIZ_INVALID_ARGUMENT:
 * unknown kind or numbers out of range. TAMIZ_NOT_SUPPORTED: a construction that did not end within
 * its bounded number of tries. TAMIZ_OUT_OF_MEMORY.
 */
TAMIZ_API tamiz_status tamiz_filter_build(const tamiz_filter_policy *policy, const uint64_t *hashes,
                                          size_t n, tamiz_filter **filter);

/* An empty filter for kinds that change: sized for `capacity` hashes at the policy's rate.
 * TAMIZ_NOT_SUPPORTED: built once. */
TAMIZ_API tamiz_status tamiz_filter_new(const tamiz_filter_policy *policy, uint64_t capacity,
                                        tamiz_filter **filter);

/* Not thread-safe against any other call on the same filter. TAMIZ_NO_SPACE: a cuckoo that is full;
 * nothing was lost. */
TAMIZ_API tamiz_status tamiz_filter_add(tamiz_filter *filter, uint64_t hash);
/* Only what was added may be removed. TAMIZ_NOT_FOUND where it is surely absent;
 * TAMIZ_NOT_SUPPORTED for other kinds. */
TAMIZ_API tamiz_status tamiz_filter_remove(tamiz_filter *filter, uint64_t hash);

/* false is certain; a filter that is NULL says true. Any number of threads, as long as none adds or
 * removes. */
TAMIZ_API bool tamiz_filter_may_contain(const tamiz_filter *filter, uint64_t hash);
/* The same of a key that was added as tamiz_hash(key, size): one call, and the quickest way to ask
 * for a single key. `key` may be NULL where size is 0. */
TAMIZ_API bool tamiz_filter_may_contain_key(const tamiz_filter *filter, const void *key,
                                            size_t size);
/* The same for `n` at once into maybe[0..n), faster for large filters: cache lines are fetched
 * before they are needed. */
TAMIZ_API void tamiz_filter_may_contain_many(const tamiz_filter *filter, const uint64_t *hashes,
                                             size_t n, bool *maybe);

/* The image: docs/format/filter.md. *bytes is freed with tamiz_free. */
TAMIZ_API tamiz_status tamiz_filter_serialize(const tamiz_filter *filter, void **bytes,
                                              size_t *size);
/* Copies `bytes`; refuses whatever is malformed: TAMIZ_CORRUPTION, or TAMIZ_NOT_SUPPORTED for an
 * unknown kind or version. */
TAMIZ_API tamiz_status tamiz_filter_deserialize(const void *bytes, size_t size,
                                                tamiz_filter **filter);

/* The same, where the image may be of a family of your own. */
TAMIZ_API tamiz_status tamiz_filter_deserialize_custom(const void *bytes, size_t size,
                                                       const tamiz_filter_family *custom,
                                                       tamiz_filter **filter);

typedef struct tamiz_filter_info {
    size_t struct_size;
    char kind[16];
    uint64_t keys;             /* distinct hashes in it, as far as the kind can know         */
    uint64_t bytes;            /* of the image, header included                              */
    double bits_per_key;       /* payload bits / keys; 0 with no keys                        */
    double expected_fpr;       /* what theory says of this filter as it is filled now        */
    double fill;               /* share of its bits (slots) that are set (taken), 0..1       */
    unsigned hashes;           /* probes a query makes: k of a Bloom filter, arity of others */
    unsigned fingerprint_bits; /* 0 where the family has none                             */
} tamiz_filter_info;
#define TAMIZ_FILTER_INFO_INIT                                                                     \
    {                                                                                              \
        sizeof(tamiz_filter_info), {0}, 0, 0, 0, 0, 0, 0, 0                                        \
    }

/* Of no filter (NULL): all fields 0. */
TAMIZ_API void tamiz_filter_info_get(const tamiz_filter *filter, tamiz_filter_info *info);
TAMIZ_API void tamiz_filter_free(tamiz_filter *filter); /* NULL is fine */

/* Theory of the plain Bloom filter, by the textbook's formulas (B. H. Bloom, "Space/time trade-offs
 * in hash coding with allowable errors", CACM 13(7), 1970; A. Broder, M. Mitzenmacher, "Network
 * applications of Bloom filters", 2004). Arithmetic only; any thread. */
/* Bits of the whole filter for n keys at rate p, k being any real number: n ln(1/p) / (ln 2)^2,
 * rounded up. 0 with no keys, or p outside of (0, 1). */
TAMIZ_API double tamiz_bloom_bits(double n, double p);
/* The best whole number of hashes for so many bits and n keys: bits / n * ln 2, 1 to 64. */
TAMIZ_API unsigned tamiz_bloom_hashes(double bits, double n);
/* The rate of n keys with k hashes each in so many bits: (1 - e^(-k n / bits))^k. 0
 * with no keys, else 1 with no bits or no hashes. */
TAMIZ_API double tamiz_bloom_fpr(double bits, unsigned k, double n);

/* For any kind of `policy` and n keys, with no filter built: what it would be. Fills kind, keys,
 * bytes, bits, rate. */
TAMIZ_API tamiz_status tamiz_filter_plan(const tamiz_filter_policy *policy, uint64_t n,
                                         tamiz_filter_info *info);

#ifdef __cplusplus
}
#endif
#endif
