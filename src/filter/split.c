/* SPDX-License-Identifier: MIT
 *
 * The split-block Bloom filter: the key chooses a block of eight words of 32 bits and sets one bit
 * in each. Eight is fixed, and so a query is one load of 256 bits, one mask, one test: nothing is
 * faster. It pays with rate: blocks are smaller than blocked.c's and k does not follow the bits, so
 * it falls behind from 12 bits a key on.
 *
 *     key --> block    | ..1... | .1.... | ....1. | 1..... | ...1.. | ..1... | .....1 | .1.... |
 *                         word 0   word 1                                          word 7
 *
 * The layout is Apache Parquet's (parquet-format, BloomFilter.md): a payload is the bitset of a
 * Parquet Bloom filter over the same hashes and the reverse. Therefore hashes are not mixed here;
 * their upper 32 bits choose the block, the lower ones the bits.
 *
 * rate = mean over the blocks of (1 - (31/32)^i)^8, i keys in the block (binomial).
 *
 *   payload: blocks of 32 bytes, eight little-endian words of 32 bits.    no parameters.
 */
#include <math.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#include <arm_neon.h>
#define SPLIT_NEON 1
#endif

#include "base/fetch.h"
#include "filter/family.h"
#include "filter/theory.h"

enum { WORDS = 8, BLOCK_BYTES = 32, BLOCK_BITS = 256, DEFAULT_BITS = 10 };
#define BLOCKS_MAX (UINT64_C(1) << 31) /* Parquet's sizes are 32-bit, and so is the choice */

static const uint32_t salts[WORDS] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                      0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

static double block_rate(double keys, const void *ctx)
{
    (void)ctx;
    return theory_power(-expm1(keys * log1p(-1.0 / 32)), WORDS);
}

static double blocks_for_bits(double keys, double per_key)
{
    const double blocks = ceil(keys * per_key / BLOCK_BITS - 1e-9);
    return blocks < 1 ? 1 : blocks;
}

/* The fewest blocks that reach `fpr`, or as many as 64 bits a key make. */
static double blocks_for_rate(double keys, double fpr)
{
    double enough = blocks_for_bits(keys, 64), few = 0;
    while (enough - few > 1 && enough - few > enough * 1e-4) {
        const double middle = floor((enough + few) / 2);
        *(theory_mixture(keys, middle, block_rate, NULL) <= fpr ? &enough : &few) = middle;
    }
    return enough;
}

static tamiz_status split_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                               struct filter_plan *plan)
{
    const double n = (double)keys;
    const double per_key = policy->bits_per_key > 0 ? policy->bits_per_key : DEFAULT_BITS;
    const double blocks =
        policy->fpr > 0 ? blocks_for_rate(n, policy->fpr) : blocks_for_bits(n, per_key);
    if (blocks > (double)BLOCKS_MAX)
        return filter_too_large(op, keys, blocks * BLOCK_BITS / n);
    plan->payload_bytes = (uint64_t)blocks * BLOCK_BYTES;
    plan->expected_fpr = theory_mixture(n, blocks, block_rate, NULL);
    return TAMIZ_OK;
}

static inline uint64_t block_of(uint64_t hash, uint64_t payload_bytes)
{
    return ((hash >> 32) * (payload_bytes / BLOCK_BYTES) >> 32) * BLOCK_BYTES;
}

static inline uint32_t bit_of(uint64_t hash, unsigned word)
{
    return UINT32_C(1) << (((uint32_t)hash * salts[word]) >> 27);
}

/* true: they were set already. */
static inline bool set_in_block(uint8_t *block, uint64_t hash)
{
    uint32_t missing = 0;
    for (unsigned word = 0; word < WORDS; word++) {
        const uint32_t before = load_u32(block + 4 * word), bit = bit_of(hash, word);
        missing |= ~before & bit;
        store_u32(block + 4 * word, before | bit);
    }
    return missing == 0;
}

static tamiz_status split_build(struct op *op, struct filter_plan *plan, const uint64_t *hashes,
                                size_t n, uint8_t *payload)
{
    (void)op;
    for (size_t i = 0; i < n; i++)
        (void)set_in_block(payload + block_of(hashes[i], plan->payload_bytes), hashes[i]);
    return TAMIZ_OK;
}

enum { AHEAD = 16 };

typedef bool set_block(uint8_t *block, uint64_t hash);

static inline __attribute__((always_inline)) size_t build_loose(set_block *set, uint64_t bytes,
                                                                const uint64_t *hashes, size_t n,
                                                                uint8_t *payload, uint64_t *seen,
                                                                size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            fetch_line_to_write(payload + block_of(hashes[i + AHEAD], bytes));
        if (__builtin_expect(set(payload + block_of(hashes[i], bytes), hashes[i]), 0) &&
            count++ < room)
            seen[count - 1] = hashes[i];
    }
    return count;
}

#if defined(SPLIT_NEON)
/* Part of the architecture, so there is nothing to find out. */
static inline bool block_has(const uint8_t *block, uint64_t hash)
{
    const uint32_t *words = (const void *)block;
    const uint32x4_t x = vdupq_n_u32((uint32_t)hash), one = vdupq_n_u32(1);
    const uint32x4_t a = vshrq_n_u32(vmulq_u32(x, vld1q_u32(salts)), 27);
    const uint32x4_t b = vshrq_n_u32(vmulq_u32(x, vld1q_u32(salts + 4)), 27);
    const uint32x4_t missing_a =
        vbicq_u32(vshlq_u32(one, vreinterpretq_s32_u32(a)), vld1q_u32(words));
    const uint32x4_t missing_b =
        vbicq_u32(vshlq_u32(one, vreinterpretq_s32_u32(b)), vld1q_u32(words + 4));
    return vmaxvq_u32(vorrq_u32(missing_a, missing_b)) == 0;
}
#else
static inline bool block_has(const uint8_t *block, uint64_t hash)
{
    uint32_t missing = 0;
    for (unsigned word = 0; word < WORDS; word++)
        missing |= ~load_u32(block + 4 * word) & bit_of(hash, word);
    return missing == 0;
}
#endif

static bool split_may_contain(const struct filter_view *view, uint64_t hash)
{
    return block_has(view->payload + block_of(hash, view->payload_bytes), hash);
}

static void split_prefetch(const struct filter_view *view, uint64_t hash)
{
    fetch_line(view->payload + block_of(hash, view->payload_bytes));
}

static void split_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    struct filter_bits_story story = {0};
    const uint64_t at = block_of(hash, view->payload_bytes);
    buf_printf(out, "block %llu of %llu, of its 256 bits", (unsigned long long)at / BLOCK_BYTES,
               (unsigned long long)view->payload_bytes / BLOCK_BYTES);
    for (unsigned word = 0; word < WORDS; word++) {
        const uint32_t bit = bit_of(hash, word);
        filter_story_bit(&story, out, word * 32 + (unsigned)__builtin_ctz(bit),
                         load_u32(view->payload + at + 4 * word) & bit);
    }
    filter_story_bits_end(&story, out);
}

static double split_rate(const struct filter_view *view)
{
    double sum = 0;
    for (uint64_t at = 0; at < view->payload_bytes; at += BLOCK_BYTES) {
        double all = 1;
        for (unsigned word = 0; word < WORDS; word++)
            all *= __builtin_popcount(load_u32(view->payload + at + 4 * word)) / 32.0;
        sum += all;
    }
    return sum * BLOCK_BYTES / (double)view->payload_bytes;
}

static void split_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    info->hashes = WORDS;
    info->fill = (double)filter_count_bits(view->payload, view->payload_bytes) /
                 (double)(view->payload_bytes * 8);
}

static tamiz_status split_open(struct op *op, struct filter_view *view)
{
    const uint64_t blocks = view->payload_bytes / BLOCK_BYTES;
    if (blocks == 0 || blocks > BLOCKS_MAX || view->payload_bytes % BLOCK_BYTES)
        return op_fail(op, TAMIZ_CORRUPTION, "filter split: %llu bytes: want blocks of %d",
                       (unsigned long long)view->payload_bytes, BLOCK_BYTES);
    return TAMIZ_OK;
}

/* What both ways of asking share. */
#define SPLIT_FACES                                                                                \
    .name = "split", .id = 3, .version = 1, .unmixed = true, .plan = split_plan,                   \
    .build = split_build, .open = split_open, .story = split_story, .prefetch = split_prefetch,    \
    .rate = split_rate, .describe = split_describe

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static inline __m256i mask_of(uint64_t hash)
{
    const __m256i by = _mm256_loadu_si256((const void *)salts);
    const __m256i product = _mm256_mullo_epi32(_mm256_set1_epi32((int)(uint32_t)hash), by);
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(product, 27));
}

__attribute__((target("avx2"))) static bool split_may_contain_avx2(const struct filter_view *view,
                                                                   uint64_t hash)
{
    const uint8_t *block = view->payload + block_of(hash, view->payload_bytes);
    return _mm256_testc_si256(_mm256_load_si256((const void *)block), mask_of(hash));
}

__attribute__((target("avx2"))) static inline bool set_in_block_avx2(uint8_t *block, uint64_t hash)
{
    __m256i *at = (void *)block;
    const __m256i before = _mm256_load_si256(at), mask = mask_of(hash);
    _mm256_store_si256(at, _mm256_or_si256(before, mask));
    return _mm256_testc_si256(before, mask);
}

__attribute__((target("avx2"))) static size_t
build_loose_avx2(const struct alloc *alloc, const struct filter_plan *plan, const uint64_t *hashes,
                 size_t n, uint8_t *payload, uint64_t *seen, size_t room)
{
    (void)alloc; /* all it needs is the payload */
    return build_loose(set_in_block_avx2, plan->payload_bytes, hashes, n, payload, seen, room);
}

enum { BATCH = 32 };

__attribute__((target("avx2"))) static void
split_many_avx2(const struct filter_view *view, const uint64_t *hashes, size_t n, bool *maybe)
{
    const uint64_t bytes = view->payload_bytes;
    for (size_t start = 0; start < n; start += BATCH) {
        const size_t end = n - start < BATCH ? n : start + BATCH;
        for (size_t i = start; i < end; i++)
            fetch_line(view->payload + block_of(hashes[i], bytes));
        for (size_t i = start; i < end; i++)
            maybe[i] = split_may_contain_avx2(view, hashes[i]);
    }
}

static const struct filter_family split_avx2 = {
    SPLIT_FACES,
    .build_loose = build_loose_avx2,
    .may_contain = split_may_contain_avx2,
    .may_contain_many = split_many_avx2,
    .usable = filter_has_avx2,
};
#endif

static size_t split_build_loose(const struct alloc *alloc, const struct filter_plan *plan,
                                const uint64_t *hashes, size_t n, uint8_t *payload, uint64_t *seen,
                                size_t room)
{
    (void)alloc; /* all it needs is the payload */
    return build_loose(set_in_block, plan->payload_bytes, hashes, n, payload, seen, room);
}

const struct filter_family filter_split = {
    SPLIT_FACES,
    .build_loose = split_build_loose,
    .may_contain = split_may_contain,
#if defined(__x86_64__) && defined(__GNUC__)
    .better = &split_avx2,
#endif
};
