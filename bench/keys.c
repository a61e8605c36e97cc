/* SPDX-License-Identifier: MIT */
#include "keys.h"

#include <math.h>
#include <string.h>

void key_write(uint64_t number, uint8_t key[KEY_SIZE])
{
    for (int i = KEY_SIZE - 1; i >= 0; i--) {
        key[i] = (uint8_t)('0' + number % 10);
        number /= 10;
    }
}

uint64_t key_read(const uint8_t key[KEY_SIZE])
{
    uint64_t number = 0;
    for (int i = 0; i < KEY_SIZE; i++) {
        if (key[i] < '0' || key[i] > '9')
            return UINT64_MAX;
        number = 10 * number + (uint64_t)(key[i] - '0');
    }
    return number;
}

/* Bytes 8 × i of the random half. */
static uint64_t value_word(uint64_t seed, size_t i)
{
    return mix64(seed + i);
}

static uint64_t value_seed(uint64_t index, uint32_t generation)
{
    return mix64(index ^ ((uint64_t)generation << 40));
}

void value_write(uint64_t index, uint32_t generation, uint8_t *value, size_t size)
{
    const size_t half = (size + 1) / 2;
    const uint64_t seed = value_seed(index, generation);
    for (size_t i = 0; i < half; i += 8) {
        const uint64_t word = value_word(seed, i);
        memcpy(value + i, &word, half - i < 8 ? half - i : 8);
    }
    if (half >= sizeof generation)
        memcpy(value, &generation, sizeof generation);
    memcpy(value + half, value, size - half);
}

/* Whether the random half is that of (index, the generation that it names). */
static bool value_half_right(uint64_t index, const uint8_t *value, size_t half)
{
    uint32_t generation;
    memcpy(&generation, value, sizeof generation);
    const uint64_t seed = value_seed(index, generation);
    uint64_t word = value_word(seed, 0);
    if (memcmp(value + 4, (const uint8_t *)&word + 4, 4) != 0)
        return false;
    for (size_t i = 8; i < half; i += 8) {
        word = value_word(seed, i);
        if (memcmp(value + i, &word, half - i < 8 ? half - i : 8) != 0)
            return false;
    }
    return true;
}

bool value_right(uint64_t index, const uint8_t *value, size_t size)
{
    const size_t half = (size + 1) / 2;
    if (half >= 8 && !value_half_right(index, value, half))
        return false;
    return memcmp(value + half, value, size - half) == 0;
}

struct permutation permutation_make(uint64_t count, uint64_t seed)
{
    struct permutation p = {count, seed, 1};
    while ((UINT64_C(1) << (2 * p.half_bits)) < count)
        p.half_bits++;
    return p;
}

uint64_t permutation_at(const struct permutation *p, uint64_t i)
{
    const uint64_t mask = (UINT64_C(1) << p->half_bits) - 1;
    do {
        uint64_t left = i >> p->half_bits, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            const uint64_t next = left ^ (mix64(right + p->seed + (round << 56)) & mask);
            left = right;
            right = next;
        }
        i = left << p->half_bits | right;
    } while (i >= p->count);
    return i;
}

/* Sum of r^-theta for r = 1..n: the first terms one by one, the rest as the integral that Euler
 * and Maclaurin correct. */
static double zeta(uint64_t n, double theta)
{
    const uint64_t exact = n < 10000 ? n : 10000;
    double sum = 0;
    for (uint64_t r = 1; r <= exact; r++)
        sum += pow((double)r, -theta);
    if (n > exact) {
        const double a = (double)exact, b = (double)n;
        sum += (pow(b, 1 - theta) - pow(a, 1 - theta)) / (1 - theta);
        sum += (pow(b, -theta) - pow(a, -theta)) / 2;
    }
    return sum;
}

struct zipf zipf_make(uint64_t count, double theta)
{
    struct zipf z = {.count = count, .theta = theta};
    z.zeta = zeta(count, theta);
    z.alpha = 1 / (1 - theta);
    z.half = pow(0.5, theta);
    z.eta = (1 - pow(2.0 / (double)count, 1 - theta)) / (1 - zeta(2, theta) / z.zeta);
    return z;
}

uint64_t zipf_next(const struct zipf *z, struct random *r)
{
    const double u = random_unit(r), uz = u * z->zeta;
    if (uz < 1)
        return 0;
    if (uz < 1 + z->half)
        return 1;
    const double rank = (double)z->count * pow(z->eta * u - z->eta + 1, z->alpha);
    const uint64_t whole = (uint64_t)rank;
    return whole < z->count ? whole : z->count - 1;
}
