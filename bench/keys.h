/* SPDX-License-Identifier: MIT
 *
 * What the workloads store and in which order they ask for it.
 *
 * Key i is the number 2i in 16 decimal digits, so that each odd number is an absent key between two
 * that are there. A value is random for one half and the same again for the other (a compressor
 * gets 2 : 1), and says in its first four bytes which generation of the key it is, so that it can
 * be checked byte for byte whatever was overwritten when.
 *
 * A random permutation is computed, not stored: a Feistel network over the next even power of two,
 * walked until it lands inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
 * An array of 10 M indexes would itself be a stream of cache misses. Zipf: Gray et al., "Quickly
 * generating billion-record synthetic databases", 1994, as YCSB uses it, scrambled by a
 * permutation.
 */
#ifndef TAMIZ_BENCH_KEYS_H
#define TAMIZ_BENCH_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_SIZE = 16 };

static inline uint64_t mix64(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct random {
    uint64_t state;
};
static inline uint64_t random_u64(struct random *r)
{
    return mix64(r->state += UINT64_C(0x9e3779b97f4a7c15));
}
__extension__ typedef unsigned __int128 random_wide;
/* 0..n-1 without a division. */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
    return (uint64_t)(((random_wide)random_u64(r) * n) >> 64);
}
static inline double random_unit(struct random *r)
{
    return (double)(random_u64(r) >> 11) * 0x1p-53;
}

/* 16 digits of `number`. */
void key_write(uint64_t number, uint8_t key[KEY_SIZE]);
/* The number of a key; UINT64_MAX where it has other characters than digits. */
uint64_t key_read(const uint8_t key[KEY_SIZE]);

void value_write(uint64_t index, uint32_t generation, uint8_t *value, size_t size);
/* The value is key `index`'s, of any generation. */
bool value_right(uint64_t index, const uint8_t *value, size_t size);

/* Rearranges 0..count-1. */
struct permutation {
    uint64_t count, seed;
    unsigned half_bits;
};
struct permutation permutation_make(uint64_t count, uint64_t seed);
uint64_t permutation_at(const struct permutation *p, uint64_t i);

/* Ranks 0..count-1, rank r in proportion to (r + 1)^-theta. */
struct zipf {
    uint64_t count;
    double theta, zeta, alpha, eta, half;
};
struct zipf zipf_make(uint64_t count, double theta);
uint64_t zipf_next(const struct zipf *z, struct random *r);

#endif
