/* SPDX-License-Identifier: MIT */
#include "filter/theory.h"

#include <math.h>

#include "tamiz/filter.h"

double theory_power(double base, unsigned exponent)
{
    double result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

/* The rate of a line of which a bit is clear with probability `clear`, two given ones with
 * `both_clear`: E[X^k] of the share X of set bits by its mean and variance. */
static double rate_of_line(double clear, double both_clear, double bits, unsigned k)
{
    const double variance = clear / bits + (1 - 1 / bits) * both_clear - clear * clear;
    const double set = 1 - clear;
    if (k < 2 || variance <= 0)
        return theory_power(set, k);
    const double power = theory_power(set, k - 2);
    const double rate = power * (set * set + k * (k - 1) / 2.0 * variance);
    return rate < 1 ? rate : 1;
}

double theory_line_fpr(double keys, double bits, unsigned k)
{
    if (keys <= 0 || bits < 1)
        return 0;
    const double throws = keys * k;
    return rate_of_line(exp(throws * log1p(-1 / bits)),
                        bits > 2 ? exp(throws * log1p(-2 / bits)) : 0, bits, k);
}

/* A weight below is not looked at, in units of the largest. */
#define WEIGHT_LEAST 1e-14

double theory_mixture(double keys, double lines, double (*rate)(double keys, const void *ctx),
                      const void *ctx)
{
    if (lines <= 1)
        return rate(keys, ctx);
    /* Binomial weights by their ratio, outwards from the mean, in units of the first. */
    const double mean = floor(keys / lines), odds = 1 / (lines - 1);
    double total = 0, sum = 0, weight = 1;
    for (double i = mean; i <= keys && weight > WEIGHT_LEAST; i++) {
        total += weight;
        sum += weight * rate(i, ctx);
        weight *= (keys - i) / (i + 1) * odds;
    }
    weight = 1;
    for (double i = mean; i >= 1; i--) {
        weight *= i / ((keys - i + 1) * odds);
        if (weight < WEIGHT_LEAST)
            break;
        total += weight;
        sum += weight * rate(i - 1, ctx);
    }
    return sum / total;
}

/* The same mixture over lines of `bits`, where one key more multiplies what is clear by a number:
 * a plan is made for every filter, and this is most of it. */
double theory_lines_fpr(double keys, double lines, double bits, unsigned k)
{
    if (lines <= 1)
        return theory_line_fpr(keys, bits, k);
    const double mean = floor(keys / lines), odds = 1 / (lines - 1);
    const double a_key = theory_power(1 - 1 / bits, k), a_key_both = theory_power(1 - 2 / bits, k);
    const double clear_mean = exp(mean * k * log1p(-1 / bits));
    const double both_mean = exp(mean * k * log1p(-2 / bits));
    double total = 0, sum = 0, weight = 1, clear = clear_mean, both = both_mean;
    for (double i = mean; i <= keys && weight > WEIGHT_LEAST; i++) {
        total += weight;
        sum += weight * rate_of_line(clear, both, bits, k);
        weight *= (keys - i) / (i + 1) * odds;
        clear *= a_key;
        both *= a_key_both;
    }
    weight = 1;
    clear = clear_mean;
    both = both_mean;
    for (double i = mean; i >= 1; i--) {
        weight *= i / ((keys - i + 1) * odds);
        if (weight < WEIGHT_LEAST)
            break;
        clear /= a_key;
        both /= a_key_both;
        total += weight;
        sum += weight * rate_of_line(clear, both, bits, k);
    }
    return sum / total;
}

/* 10^-26, beyond any hash of 64 bits. */
#define BLOOM_BITS_MAX 128.0

double theory_bloom_bits_for(double keys, double fpr)
{
    double bits = fmin(-log(fpr) / (LN2 * LN2), BLOOM_BITS_MAX);
    while (bits < BLOOM_BITS_MAX &&
           theory_line_fpr(keys, keys * bits, tamiz_bloom_hashes(keys * bits, keys)) > fpr)
        bits *= 1.001;
    return bits;
}

double tamiz_bloom_bits(double n, double p)
{
    if (!(n > 0) || !(p > 0) || !(p < 1))
        return 0;
    return ceil(-n * log(p) / (LN2 * LN2));
}

unsigned tamiz_bloom_hashes(double bits, double n)
{
    if (!(n > 0) || !(bits > 0))
        return 1;
    const double k = round(bits / n * LN2);
    return k < 1 ? 1 : k > 64 ? 64 : (unsigned)k;
}

double tamiz_bloom_fpr(double bits, unsigned k, double n)
{
    if (!(n > 0))
        return 0;
    if (!(bits > 0) || k == 0)
        return 1;
    return pow(-expm1(-(double)k * n / bits), k);
}

void theory_wilson(double hits, double n, double sigmas, double *low, double *high)
{
    *low = 0;
    *high = 1;
    if (n <= 0)
        return;
    const double rate = hits / n, z2 = sigmas * sigmas / n;
    const double middle = (rate + z2 / 2) / (1 + z2);
    const double half = sigmas / (1 + z2) * sqrt(rate * (1 - rate) / n + z2 / (4 * n));
    *low = hits <= 0 || middle < half ? 0 : middle - half;
    *high = hits >= n || middle + half > 1 ? 1 : middle + half;
}
