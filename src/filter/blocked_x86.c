/* SPDX-License-Identifier: MIT
 *
 * The blocked filter (blocked.c) with AVX2 and AVX-512.
 *
 * Asking: the numbers of eight bits come from one multiplication and one shift; each is looked up
 * in the line, which lies in two registers, or one, as 16 words of 32 bits.
 *
 * Building: in a register that is a line, bit b is 1 << (b - 32 w) in the word w where that is a
 * shift by 0 to 31, and 0 in all others, as the processor shifts by more: so b is given to all
 * words, the number of each word's first bit is taken off, and one shift makes the line that has
 * bit b alone. The numbers of a key's bits are worked out when its line is named, AHEAD keys
 * before, and lie in memory till then: from there giving one to all words costs nothing.
 */
#include "base/fetch.h"
#include "filter/blocked.h"

#if defined(BLOCKED_X86)
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512vl")))

enum { LANES = 8 };

/* ---- building ---- */

/* What is known of a key before its line is there. */
struct coming {
    uint8_t *line[AHEAD];
    _Alignas(64) uint32_t bits[AHEAD][K_MAX]; /* 0..511 */
};

AVX2 static inline void bits_of(uint32_t low, unsigned k, uint32_t bits[K_MAX])
{
    for (unsigned first = 0; first < k; first += LANES) {
        const __m256i by = _mm256_loadu_si256((const void *)(blocked_multipliers + first));
        const __m256i product = _mm256_mullo_epi32(_mm256_set1_epi32((int)low), by);
        _mm256_store_si256((void *)(bits + first), _mm256_srli_epi32(product, 23));
    }
}

/* Sets k bits of a line; true: they were set already. */
typedef bool set_bits(uint8_t *line, const uint32_t bits[K_MAX], unsigned k);

AVX2 static inline bool set_bits_avx2(uint8_t *line, const uint32_t bits[K_MAX], unsigned k)
{
    const __m256i firsts = _mm256_setr_epi32(0, 32, 64, 96, 128, 160, 192, 224);
    const __m256i upper_firsts = _mm256_add_epi32(firsts, _mm256_set1_epi32(256));
    const __m256i one = _mm256_set1_epi32(1);
    __m256i *at = (void *)line;
    const __m256i lower = _mm256_load_si256(at), upper = _mm256_load_si256(at + 1);
    __m256i new_lower = lower, new_upper = upper;
#pragma GCC unroll 8
    for (unsigned i = 0; i < k; i++) {
        const __m256i bit = _mm256_set1_epi32((int)bits[i]);
        const __m256i in_lower = _mm256_sllv_epi32(one, _mm256_sub_epi32(bit, firsts));
        const __m256i in_upper = _mm256_sllv_epi32(one, _mm256_sub_epi32(bit, upper_firsts));
        new_lower = _mm256_or_si256(new_lower, in_lower);
        new_upper = _mm256_or_si256(new_upper, in_upper);
    }
    _mm256_store_si256(at, new_lower);
    _mm256_store_si256(at + 1, new_upper);
    return _mm256_testc_si256(lower, new_lower) & _mm256_testc_si256(upper, new_upper);
}

AVX512 static inline bool set_bits_avx512(uint8_t *line, const uint32_t bits[K_MAX], unsigned k)
{
    /* Added, not taken off: the operand in memory can be either of a sum. */
    const __m512i minus_firsts = _mm512_setr_epi32(0, -32, -64, -96, -128, -160, -192, -224, -256,
                                                   -288, -320, -352, -384, -416, -448, -480);
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i old = _mm512_load_si512(line);
    __m512i new = old;
#pragma GCC unroll 8
    for (unsigned i = 0; i < k; i++) {
        const __m512i bit = _mm512_add_epi32(minus_firsts, _mm512_set1_epi32((int)bits[i]));
        new = _mm512_or_si512(new, _mm512_sllv_epi32(one, bit));
    }
    _mm512_store_si512(line, new);
    return _mm512_cmpneq_epi32_mask(old, new) == 0;
}

AVX2 static inline __attribute__((always_inline)) size_t
build_loose(set_bits *set, const struct filter_plan *plan, unsigned k, const uint64_t *hashes,
            size_t n, uint8_t *payload, uint64_t *seen, size_t room)
{
    struct coming coming;
    size_t count = 0;
    for (size_t i = 0; i < n + AHEAD; i++) {
        const size_t at = i % AHEAD;
        if (i >= AHEAD && __builtin_expect(set(coming.line[at], coming.bits[at], k), 0) &&
            count++ < room)
            seen[count - 1] = hashes[i - AHEAD];
        if (i < n) {
            const uint64_t mixed = filter_mix(hashes[i], plan->seed);
            coming.line[at] = payload + line_of(mixed, plan->payload_bytes);
            fetch_line_to_write(coming.line[at]);
            bits_of((uint32_t)mixed, k, coming.bits[at]);
        }
    }
    return count;
}

/* With k known to the compiler where it is what ten bits a key want. */
AVX2 static size_t build_loose_avx2(const struct alloc *alloc, const struct filter_plan *plan,
                                    const uint64_t *hashes, size_t n, uint8_t *payload,
                                    uint64_t *seen, size_t room)
{
    (void)alloc; /* all it needs is the payload */
    const unsigned k = plan->parameters[0];
    if (k == 6)
        return build_loose(set_bits_avx2, plan, 6, hashes, n, payload, seen, room);
    return build_loose(set_bits_avx2, plan, k, hashes, n, payload, seen, room);
}

AVX512 static size_t build_loose_avx512(const struct alloc *alloc, const struct filter_plan *plan,
                                        const uint64_t *hashes, size_t n, uint8_t *payload,
                                        uint64_t *seen, size_t room)
{
    (void)alloc; /* all it needs is the payload */
    const unsigned k = plan->parameters[0];
    if (k == 6)
        return build_loose(set_bits_avx512, plan, 6, hashes, n, payload, seen, room);
    return build_loose(set_bits_avx512, plan, k, hashes, n, payload, seen, room);
}

/* ---- asking ---- */

/* Ones for the first n lanes of eight, at lane_ones + LANES - n: the lanes beyond ask for no bit.
 */
static const uint32_t lane_ones[2 * LANES] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};

AVX2 static inline __m256i ones_of(unsigned lanes)
{
    return _mm256_loadu_si256((const void *)(lane_ones + LANES - (size_t)lanes));
}

AVX2 static inline __m256i products_of(uint32_t low, unsigned first)
{
    const __m256i by = _mm256_loadu_si256((const void *)(blocked_multipliers + first));
    return _mm256_mullo_epi32(_mm256_set1_epi32((int)low), by);
}

/* Of the 9 upper bits of a product: the highest chooses the half, the next 3 the word, the last 5
 * the bit. */
AVX2 static inline bool eight_set(const uint8_t *line, uint32_t low, unsigned first, __m256i ones)
{
    const __m256i lower = _mm256_load_si256((const void *)line);
    const __m256i upper = _mm256_load_si256((const void *)(line + 32));
    const __m256i product = products_of(low, first);
    const __m256i word = _mm256_srli_epi32(product, 28);
    const __m256i bit = _mm256_srli_epi32(_mm256_slli_epi32(product, 4), 27);
    const __m256 in_lower = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(lower, word));
    const __m256 in_upper = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(upper, word));
    const __m256i words =
        _mm256_castps_si256(_mm256_blendv_ps(in_lower, in_upper, _mm256_castsi256_ps(product)));
    return _mm256_testc_si256(words, _mm256_sllv_epi32(ones, bit));
}

/* All 16 words of the line in one register: no halves to choose from. A rotation takes the last 5
 * bits of what it is given. */
AVX512 static inline bool eight_set_avx512(const uint8_t *line, uint32_t low, unsigned first,
                                           __m256i ones)
{
    const __m256i product = products_of(low, first);
    const __m512i word = _mm512_castsi256_si512(_mm256_srli_epi32(product, 28));
    const __m512i permuted = _mm512_permutexvar_epi32(word, _mm512_load_si512(line));
    const __m256i bits = _mm256_rolv_epi32(ones, _mm256_srli_epi32(product, 23));
    return _mm256_testc_si256(_mm512_castsi512_si256(permuted), bits);
}

/* Whether eight bits, or as many as `ones` says, are set. */
typedef bool ask_eight(const uint8_t *line, uint32_t low, unsigned first, __m256i ones);

/* Up to eight bits, which is up to 14 bits a key, without a choice. */
AVX2 static inline __attribute__((always_inline)) bool
all_set(ask_eight *eight, const uint8_t *line, uint32_t low, unsigned k)
{
    if (__builtin_expect(k <= LANES, 1))
        return eight(line, low, 0, ones_of(k));
    bool set = eight(line, low, 0, ones_of(LANES));
    for (unsigned first = LANES; set && first < k; first += LANES)
        set = eight(line, low, first, ones_of(k - first < LANES ? k - first : LANES));
    return set;
}

AVX2 static inline bool line_set_avx2(const uint8_t *line, uint32_t low, unsigned k)
{
    return all_set(eight_set, line, low, k);
}

AVX512 static inline bool line_set_avx512(const uint8_t *line, uint32_t low, unsigned k)
{
    return all_set(eight_set_avx512, line, low, k);
}

AVX2 static bool may_contain_avx2(const struct filter_view *view, uint64_t hash)
{
    const uint64_t mixed = filter_mix(hash, view->seed);
    return line_set_avx2(view->payload + line_of(mixed, view->payload_bytes), (uint32_t)mixed,
                         view->parameters[0]);
}

AVX512 static bool may_contain_avx512(const struct filter_view *view, uint64_t hash)
{
    const uint64_t mixed = filter_mix(hash, view->seed);
    return line_set_avx512(view->payload + line_of(mixed, view->payload_bytes), (uint32_t)mixed,
                           view->parameters[0]);
}

AVX2 static void many_avx2(const struct filter_view *view, const uint64_t *hashes, size_t n,
                           bool *maybe)
{
    blocked_many(line_set_avx2, view, hashes, n, maybe);
}

AVX512 static void many_avx512(const struct filter_view *view, const uint64_t *hashes, size_t n,
                               bool *maybe)
{
    blocked_many(line_set_avx512, view, hashes, n, maybe);
}

AVX2 uint64_t blocked_ask_avx2(const struct filter_line *lines, size_t n)
{
    return blocked_ask(line_set_avx2, lines, n);
}

AVX512 uint64_t blocked_ask_avx512(const struct filter_line *lines, size_t n)
{
    return blocked_ask(line_set_avx512, lines, n);
}

const struct filter_family blocked_avx2 = {
    BLOCKED_FACES,
    .build_loose = build_loose_avx2,
    .may_contain = may_contain_avx2,
    .may_contain_many = many_avx2,
    .better = &blocked_avx512,
    .usable = filter_has_avx2,
};

const struct filter_family blocked_avx512 = {
    BLOCKED_FACES,
    .build_loose = build_loose_avx512,
    .may_contain = may_contain_avx512,
    .may_contain_many = many_avx512,
    .usable = filter_has_avx512,
};

#else
typedef int blocked_x86_is_empty; /* a file has to have something in it */
#endif
