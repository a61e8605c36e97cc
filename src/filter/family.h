/* SPDX-License-Identifier: MIT
 *
 * What the family files share: how a hash becomes a place, and the list of families.
 *
 * A family never sees a raw hash when it builds: filter.c mixes each with the image's seed, sorts
 * the results and drops repeats. So a place computed as mul_high(mixed, places) is ascending while
 * building, and memory is walked from front to back. A query mixes once in the same way.
 */
#ifndef TAMIZ_FILTER_FAMILY_H
#define TAMIZ_FILTER_FAMILY_H

#include "base/coding.h"
#include "base/wide.h"
#include "filter/filter.h"

/* The golden ratio's and other odd constants with no structure. */
#define FILTER_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* a * b / 2^64: spreads a uniform `a` over 0..b-1 in order, with no division. */
static inline uint64_t mul_high(uint64_t a, uint64_t b)
{
    return wide_product(a, b).high;
}

/*
 * One multiplication, both halves folded: every bit of the result depends on the whole hash. The
 * key hash is good already; this is for hashes that are not (sequential, or alike in one half),
 * and the seed gives a failed construction another chance.
 */
static inline uint64_t filter_mix(uint64_t hash, uint64_t seed)
{
    const struct wide product = wide_product(hash ^ seed, UINT64_C(0xd6e8feb86659fd93));
    return product.low ^ product.high;
}

/* Whether this machine can run the AVX2 variants. Both give the same answers and the same bytes. */
static inline bool filter_has_avx2(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

static inline bool filter_has_bmi2(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

static inline bool filter_has_avx512(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

static inline bool filter_has_avx512_popcount(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    return filter_has_avx512() && filter_has_bmi2() && __builtin_cpu_supports("avx512vpopcntdq");
#else
    return false;
#endif
}

/* No image is larger; and all arithmetic on sizes below it is exact in a double. */
#define FILTER_PAYLOAD_MAX (UINT64_C(1) << 48)

/* TAMIZ_INVALID_ARGUMENT with the words for a filter beyond what its family can address. */
tamiz_status filter_too_large(struct op *op, uint64_t keys, double bits_per_key);

/* For stories: the places of a query's bits as they come, and at the end whether one was clear. */
struct filter_bits_story {
    uint64_t clear; /* the first clear one, one more; 0: none so far */
};
void filter_story_bit(struct filter_bits_story *story, struct buf *out, uint64_t bit, bool set);
void filter_story_bits_end(const struct filter_bits_story *story, struct buf *out);

/* Set bits of `size` bytes. */
uint64_t filter_count_bits(const uint8_t *bytes, uint64_t size);

/* The header of `image`, of which all payload is there. family NULL: "none". */
void filter_header_write(const struct filter_family *family, const struct filter_plan *plan,
                         uint8_t *image);
/* What a plan says of the filter; the rest of `info` 0. */
void filter_info_fill(const struct filter_family *family, const struct filter_plan *plan,
                      tamiz_filter_info *info);
/* tamiz_filter_policy_parse with the words in `op`. */
tamiz_status filter_policy_parse(struct op *op, const char *text, tamiz_filter_policy *policy);

extern const struct filter_family filter_bloom, filter_blocked, filter_split, filter_fuse,
    filter_fuse8, filter_fuse16, filter_fuse4, filter_xor8, filter_xor16, filter_ribbon,
    filter_bumped, filter_cuckoo, filter_counting, filter_scalable;
extern const struct filter_family filter_custom; /* of the embedder; in no list */

#endif
