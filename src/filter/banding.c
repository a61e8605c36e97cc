/* SPDX-License-Identifier: MIT */
#include "filter/banding.h"

#include <math.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

void band_columns_for_bits(double bits, struct band_shape *shape)
{
    const double within = bits < 1 ? 1 : bits > COLUMNS_MAX ? COLUMNS_MAX : bits;
    const double whole = floor(within);
    const double wider = floor((within - whole) * (double)shape->blocks);
    shape->columns = (unsigned)whole;
    shape->cut = shape->blocks - (uint64_t)wider;
}

double band_rate(const struct band_shape *shape)
{
    const double starts = (double)band_starts(shape->blocks);
    const double narrow = fmin((double)shape->cut * BLOCK_SLOTS, starts) / starts;
    return ldexp(narrow + (1 - narrow) / 2, -(int)shape->columns);
}

void band_columns_for_rate(double fpr, struct band_shape *shape)
{
    const double whole = floor(-log2(fpr) + 1e-9);
    shape->columns = whole < 1 ? 1 : whole > COLUMNS_MAX ? COLUMNS_MAX : (unsigned)whole;
    shape->cut = shape->blocks;
    const double excess = 1 - fpr / ldexp(1, -(int)shape->columns);
    if (whole < 1 || shape->columns == COLUMNS_MAX || excess <= 0)
        return;
    /* A wider block halves the rate of its starts: 2 * excess of them must be. */
    const double narrow_starts = (1 - 2 * excess) * (double)band_starts(shape->blocks);
    shape->cut = narrow_starts > 0 ? (uint64_t)(narrow_starts / BLOCK_SLOTS) : 0;
}

bool band_shape_is_proper(const struct band_shape *shape)
{
    return shape->blocks >= 1 && shape->blocks < UINT32_MAX && shape->cut <= shape->blocks &&
           shape->columns >= 1 && shape->columns + (shape->cut < shape->blocks) <= COLUMNS_MAX;
}

bool banding_new(const struct alloc *alloc, uint64_t slots, struct banding *banding)
{
    *banding = (struct banding){.bytes = 0};
    if (slots > SIZE_MAX / 2 / (sizeof *banding->rows + sizeof *banding->fingerprints))
        return false;
    banding->bytes = (size_t)slots * (sizeof *banding->rows + sizeof *banding->fingerprints);
    banding->rows = mem_new_aligned(alloc, banding->bytes, FILTER_ALIGN);
    if (!banding->rows)
        return false;
    banding->fingerprints = (uint32_t *)(banding->rows + slots);
    banding_clear(banding);
    return true;
}

void banding_clear(struct banding *banding)
{
    memset(banding->rows, 0, banding->bytes);
}

void banding_free(const struct alloc *alloc, struct banding *banding)
{
    mem_free_aligned(alloc, banding->rows, banding->bytes, FILTER_ALIGN);
}

/* The unknowns of `slot` in one column: `window` has those of the 127 slots behind it. */
static inline void solve_column(const struct band_row *row, uint32_t fingerprint, unsigned column,
                                uint64_t *low, uint64_t *high)
{
    const uint64_t next_high = *high << 1 | *low >> 63;
    const uint64_t next_low = *low << 1;
    const uint64_t sum = (next_low & row->low) ^ (next_high & row->high);
    /* A slot with no row is free: 0. */
    const uint64_t bit =
        ((uint64_t)__builtin_parityll(sum) ^ (fingerprint >> column)) & (row->low & 1);
    *low = next_low | bit;
    *high = next_high;
}

static inline __attribute__((always_inline)) void solve(const struct banding *banding,
                                                        const struct band_shape *shape,
                                                        uint64_t first, uint64_t blocks,
                                                        uint8_t *payload)
{
    uint64_t low[COLUMNS_MAX] = {0}, high[COLUMNS_MAX] = {0};
    const unsigned columns = shape->columns + (shape->cut < shape->blocks);
    for (uint64_t block = blocks; block-- > 0;) {
        for (uint64_t slot = (block + 1) * BLOCK_SLOTS; slot-- > block * BLOCK_SLOTS;) {
            const struct band_row row = banding->rows[slot];
            const uint32_t fingerprint = banding->fingerprints[slot];
            for (unsigned i = 0; i < columns; i++)
                solve_column(&row, fingerprint, i, &low[i], &high[i]);
        }
        uint8_t *to = payload + band_block_at(shape, first + block);
        for (unsigned i = 0; i < band_block_columns(shape, first + block); i++) {
            store_u64(to + (size_t)i * COLUMN_BYTES, low[i]);
            store_u64(to + (size_t)i * COLUMN_BYTES + 8, high[i]);
        }
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt"))) static void solve_popcnt(const struct banding *banding,
                                                           const struct band_shape *shape,
                                                           uint64_t first, uint64_t blocks,
                                                           uint8_t *payload)
{
    solve(banding, shape, first, blocks, payload);
}

#define AVX512 __attribute__((target("avx512f,avx512vpopcntdq")))

enum { LANES = 8, GROUPS_MAX = COLUMNS_MAX / LANES };

/* Eight columns side by side. */
struct eight {
    __m512i low, high, numbers;
};

AVX512 static inline struct eight solve_eight(struct eight e, const struct band_row *row,
                                              uint32_t fingerprint)
{
    const __m512i next_low = _mm512_slli_epi64(e.low, 1);
    const __m512i next_high =
        _mm512_or_si512(_mm512_slli_epi64(e.high, 1), _mm512_srli_epi64(e.low, 63));
    const __m512i sum =
        _mm512_xor_si512(_mm512_and_si512(next_low, _mm512_set1_epi64((int64_t)row->low)),
                         _mm512_and_si512(next_high, _mm512_set1_epi64((int64_t)row->high)));
    const __m512i wanted = _mm512_srlv_epi64(_mm512_set1_epi64((int64_t)fingerprint), e.numbers);
    const __m512i bit = _mm512_and_si512(_mm512_xor_si512(_mm512_popcnt_epi64(sum), wanted),
                                         _mm512_set1_epi64((int64_t)(row->low & 1)));
    return (struct eight){_mm512_or_si512(next_low, bit), next_high, e.numbers};
}

AVX512 static void store_eight(const struct eight *e, unsigned columns, uint8_t *to)
{
    uint64_t low[LANES], high[LANES];
    _mm512_storeu_si512(low, e->low);
    _mm512_storeu_si512(high, e->high);
    for (unsigned i = 0; i < columns; i++) {
        store_u64(to + (size_t)i * COLUMN_BYTES, low[i]);
        store_u64(to + (size_t)i * COLUMN_BYTES + 8, high[i]);
    }
}

AVX512 static void solve_avx512(const struct banding *banding, const struct band_shape *shape,
                                uint64_t first, uint64_t blocks, uint8_t *payload)
{
    struct eight groups[GROUPS_MAX];
    const unsigned columns = shape->columns + (shape->cut < shape->blocks);
    const unsigned n = (columns + LANES - 1) / LANES;
    for (unsigned g = 0; g < n; g++)
        groups[g] = (struct eight){_mm512_setzero_si512(), _mm512_setzero_si512(),
                                   _mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                                                    _mm512_set1_epi64(g * LANES))};
    for (uint64_t block = blocks; block-- > 0;) {
        const unsigned here = band_block_columns(shape, first + block);
        uint8_t *to = payload + band_block_at(shape, first + block);
        for (unsigned g = 0; g < n; g++) {
            struct eight e = groups[g];
            for (uint64_t slot = (block + 1) * BLOCK_SLOTS; slot-- > block * BLOCK_SLOTS;)
                e = solve_eight(e, &banding->rows[slot], banding->fingerprints[slot]);
            groups[g] = e;
            const unsigned left = here > g * LANES ? here - g * LANES : 0;
            store_eight(&e, left < LANES ? left : LANES, to + (size_t)g * LANES * COLUMN_BYTES);
        }
    }
}
#endif

void banding_solve(const struct banding *banding, const struct band_shape *shape, uint64_t first,
                   uint64_t blocks, uint8_t *payload)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (filter_has_avx512_popcount()) {
        solve_avx512(banding, shape, first, blocks, payload);
        return;
    }
    if (__builtin_cpu_supports("popcnt")) {
        solve_popcnt(banding, shape, first, blocks, payload);
        return;
    }
#endif
    solve(banding, shape, first, blocks, payload);
}
