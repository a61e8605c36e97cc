/* SPDX-License-Identifier: MIT
 *
 * Linear equations over bits whose coefficients lie in a band: how ribbon and bumped filters are
 * built and asked. A key is one equation: of 128 neighbouring unknowns from `start` on, the
 * exclusive or of those where its coefficients have a 1 is its fingerprint. The unknowns are the
 * filter.
 *
 *     slots        0 1 2 3 4 5 6 7 8 9 ...
 *     key a            1 0 1 1                = 0110       start 2, coefficients 1011, fingerprint
 *     key b              1 1 0 1              = 1011
 *     key c              1 0 1 1              = 0001       b ^ c: starts at 4 now
 *
 * Solving as keys come: a row is put where it starts; if another is there already, that one is
 * added to it (exclusive or), the leading 1 goes, and the row moves on to its next 1. A row that
 * becomes all 0 with a fingerprint that is not 0 cannot be had: the family decides what then. As
 * all coefficients lie in 128 bits, and sorted keys have ascending starts, this walks memory once.
 * Back substitution from the last slot to the first gives the unknowns.
 *
 * P. C. Dillinger, S. Walzer, "Ribbon filter: practically smaller than Bloom and xor", 2021.
 *
 * Storage is interleaved: for each block of 128 slots and each bit of the fingerprint ("column"),
 * 128 bits. A query reads neighbouring words of one or two blocks and stops at the first column
 * that contradicts.
 *
 *     block 0: column 0 (16 bytes) column 1 ... column r-1 | block 1: ...
 *     slot s is bit s % 128 of each column of block s / 128, lowest bit of the lowest byte first
 *
 * A number of bits that is not whole: the first blocks have r columns, those from `cut` on r + 1;
 * a key has as many as the block where it starts.
 */
#ifndef TAMIZ_FILTER_BANDING_H
#define TAMIZ_FILTER_BANDING_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define BAND_AVX512 __attribute__((target("avx512f,avx512vpopcntdq,bmi,bmi2")))
#endif

#include "base/fetch.h"
#include "filter/family.h"

enum { BAND = 128, BLOCK_SLOTS = 128, COLUMN_BYTES = 16, COLUMNS_MAX = 32 };

/* A solved system in an image. */
struct band_shape {
    uint64_t blocks;
    uint64_t cut;     /* blocks from here on have one column more; = blocks: none has */
    unsigned columns; /* of those before */
};

struct band_row {
    uint64_t low, high; /* coefficients; the lowest is 1 in a row that is there, and low is 0 in
                           one that is not */
};

struct band_key {
    uint64_t start;
    struct band_row row;
    uint32_t fingerprint;
};

struct banding {
    struct band_row *rows;  /* by slot */
    uint32_t *fingerprints; /* by slot */
    size_t bytes;           /* of the one allocation, which begins at rows */
};

static inline uint64_t band_bytes(const struct band_shape *shape)
{
    return (shape->blocks * (shape->columns + 1) - shape->cut) * COLUMN_BYTES;
}

static inline uint64_t band_starts(uint64_t blocks)
{
    return blocks * BLOCK_SLOTS - BAND + 1;
}

/* Bits of a slot, within what there is: its whole part columns everywhere, one more in the last
 * blocks for the rest. */
void band_columns_for_bits(double bits, struct band_shape *shape);
/* The fewest bits that keep the rate at or below `fpr`. */
void band_columns_for_rate(double fpr, struct band_shape *shape);
/* Mean over the starts. */
double band_rate(const struct band_shape *shape);
/* Whether a query may trust it, given that its bytes are there. */
bool band_shape_is_proper(const struct band_shape *shape);

/* Coefficients and fingerprint by products of which both halves count, so that no bit of the
 * fingerprint is a sum of coefficients. */
static inline struct band_key band_key_of(uint64_t mixed, uint64_t start)
{
    const struct wide a = wide_product(mixed, UINT64_C(0x8ebc6af09c88c6e3));
    const struct wide b = wide_product(mixed, UINT64_C(0x589965cc75374cc3));
    return (struct band_key){start,
                             {(a.low ^ a.high) | 1, b.low ^ b.high},
                             (uint32_t)(mixed * UINT64_C(0x1d8e4e27c47d124f) >> 32)};
}

bool banding_new(const struct alloc *alloc, uint64_t slots, struct banding *banding);
/* No rows, as new. */
void banding_clear(struct banding *banding);
void banding_free(const struct alloc *alloc, struct banding *banding);

enum { BAND_REDUNDANT = -1, BAND_CONTRADICTION = -2, BAND_GOES_ON = -3 };

/* One step of a row on its way: the slot that it now fills, or one of the three above. Inlined into
 * each caller, so that those compiled for a machine with better shifts (BMI2) have them here. */
static inline __attribute__((always_inline)) int64_t banding_step(struct banding *banding,
                                                                  struct band_key *key)
{
    struct band_row *row = &banding->rows[key->start];
    if (!row->low) {
        *row = key->row;
        banding->fingerprints[key->start] = key->fingerprint;
        return (int64_t)key->start;
    }
    key->row.low ^= row->low;
    key->row.high ^= row->high;
    key->fingerprint ^= banding->fingerprints[key->start];
    if (!key->row.low) {
        if (!key->row.high)
            return key->fingerprint ? BAND_CONTRADICTION : BAND_REDUNDANT;
        key->row.low = key->row.high;
        key->row.high = 0;
        key->start += 64;
    }
    const unsigned skip = (unsigned)__builtin_ctzll(key->row.low);
    key->start += skip;
    key->row.low = key->row.low >> skip | key->row.high << 1 << (63 - skip);
    key->row.high >>= skip;
    return BAND_GOES_ON;
}

/* All of its way. */
static inline __attribute__((always_inline)) int64_t banding_add(struct banding *banding,
                                                                 struct band_key key)
{
    int64_t slot;
    while ((slot = banding_step(banding, &key)) == BAND_GOES_ON)
        ;
    return slot;
}

/* Back substitution of the first `blocks` blocks of `banding` into those of `shape` from `first`
 * on. `payload` has band_bytes of `shape`. */
void banding_solve(const struct banding *banding, const struct band_shape *shape, uint64_t first,
                   uint64_t blocks, uint8_t *payload);

/* Where the columns of a block begin, and how many it has. */
static inline uint64_t band_block_at(const struct band_shape *shape, uint64_t block)
{
    const uint64_t more = block > shape->cut ? block - shape->cut : 0;
    return (block * shape->columns + more) * COLUMN_BYTES;
}

static inline unsigned band_block_columns(const struct band_shape *shape, uint64_t block)
{
    return shape->columns + (block >= shape->cut);
}

/* Where the slots of a key are, and its coefficients as they lie there: those of its own block and
 * those of the next. */
struct band_place {
    const uint8_t *first, *second;
    uint64_t coefficients[4]; /* two words of the first, two of the second */
    unsigned columns;
};

static inline struct band_place band_place_of(const struct band_shape *shape,
                                              const uint8_t *payload, const struct band_key *key)
{
    const uint64_t block = key->start / BLOCK_SLOTS;
    const unsigned shift = key->start % BLOCK_SLOTS;
    const uint8_t *first = payload + band_block_at(shape, block);
    const unsigned columns = band_block_columns(shape, block);
    const struct wide row = {key->row.low, key->row.high};
    const struct wide in_first = wide_left(row, shift);
    const struct wide in_second = shift ? wide_right(row, 128 - shift) : (struct wide){0, 0};
    /* With shift 0 all is in one block, and the next may not be there. */
    return (struct band_place){first,
                               shift ? first + (size_t)columns * COLUMN_BYTES : first,
                               {in_first.low, in_first.high, in_second.low, in_second.high},
                               columns};
}

/* Whether the key's equation holds. */
static inline bool band_holds(const struct band_shape *shape, const uint8_t *payload,
                              struct band_key key)
{
    const struct band_place p = band_place_of(shape, payload, &key);
    const uint64_t *c = p.coefficients;
    for (unsigned i = 0; i < p.columns; i++) {
        const size_t at = (size_t)i * COLUMN_BYTES;
        const uint64_t sum = (load_u64(p.first + at) & c[0]) ^ (load_u64(p.first + at + 8) & c[1]) ^
                             (load_u64(p.second + at) & c[2]) ^
                             (load_u64(p.second + at + 8) & c[3]);
        if (((uint32_t)__builtin_parityll(sum) ^ key.fingerprint >> i) & 1)
            return false;
    }
    return true;
}

#if defined(BAND_AVX512)
/* The same, four columns at a time: most that are absent end after the first four, and a processor
 * that counts on that is right 15 times of 16. The next block begins where the columns of this one
 * end, so what is loaded is never beyond them. */
BAND_AVX512 static inline bool band_holds_avx512(const struct band_shape *shape,
                                                 const uint8_t *payload, struct band_key key)
{
    enum { FOUR = 4, EVEN = 0x55 };
    const struct band_place p = band_place_of(shape, payload, &key);
    const uint64_t *c = p.coefficients;
    const __m512i in_first = _mm512_broadcast_i32x4(_mm_set_epi64x((int64_t)c[1], (int64_t)c[0]));
    const __m512i in_second = _mm512_broadcast_i32x4(_mm_set_epi64x((int64_t)c[3], (int64_t)c[2]));
    for (unsigned i = 0; i < p.columns; i += FOUR) {
        const unsigned here = p.columns - i < FOUR ? p.columns - i : FOUR;
        const __mmask8 words = (__mmask8)((1u << 2 * here) - 1);
        const size_t at = (size_t)i * COLUMN_BYTES;
        const __m512i sum = _mm512_xor_si512(
            _mm512_and_si512(_mm512_maskz_loadu_epi64(words, p.first + at), in_first),
            _mm512_and_si512(_mm512_maskz_loadu_epi64(words, p.second + at), in_second));
        /* Two words a column; its parity is theirs together. */
        const unsigned odd = _mm512_test_epi64_mask(_mm512_popcnt_epi64(sum), _mm512_set1_epi64(1));
        if ((((odd ^ odd >> 1) ^ _pdep_u32(key.fingerprint >> i, EVEN)) & EVEN & words) != 0)
            return false;
    }
    return true;
}
#endif

/* Bit by bit, as band_holds asks: the first column that disagrees says no. */
static inline void band_story(const struct band_shape *shape, struct band_key key, bool holds,
                              struct buf *out)
{
    const unsigned columns = band_block_columns(shape, key.start / BLOCK_SLOTS);
    buf_printf(out, "fingerprint 0x%x of %u bits; slots %llu to %llu %s it",
               key.fingerprint & ((columns < 32 ? UINT32_C(1) << columns : 0) - 1), columns,
               (unsigned long long)key.start, (unsigned long long)key.start + BAND - 1,
               holds ? "give" : "do not give");
}

/* The lines of the key's own block and the first of the next: absent keys seldom need more. */
static inline void band_touch(const struct band_shape *shape, const uint8_t *payload,
                              uint64_t start)
{
    enum { LINE = 64 };
    const uint64_t block = start / BLOCK_SLOTS;
    const uint8_t *first = payload + band_block_at(shape, block);
    const size_t size = (size_t)band_block_columns(shape, block) * COLUMN_BYTES;
    for (size_t at = 0; at < size + LINE; at += LINE)
        fetch_line(first + at);
}

#endif
