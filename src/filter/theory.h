/* SPDX-License-Identifier: MIT
 *
 * Formulas of the families: rates from sizes and sizes from rates. Arithmetic only.
 */
#ifndef TAMIZ_FILTER_THEORY_H
#define TAMIZ_FILTER_THEORY_H

#include <stdint.h>

#define LN2 0.69314718055994530942

/* base^exponent for small whole exponents. */
double theory_power(double base, unsigned exponent);

/* E[(share of set bits)^k] after `keys` keys have each set k random bits out of `bits`. With the
 * variance of the share (Bose et al., "On the false-positive rate of Bloom filters", 2008: the
 * textbook's formula is its zeroth order), which matters for lines of 512 bits. */
double theory_line_fpr(double keys, double bits, unsigned k);

/* The mean of rate(i, ctx) over the binomial number i of keys in one of `lines` lines, into which
 * `keys` keys were thrown. */
double theory_mixture(double keys, double lines, double (*rate)(double keys, const void *ctx),
                      const void *ctx);

/* theory_line_fpr for `keys` keys thrown at random into `lines` lines of `bits` bits. */
double theory_lines_fpr(double keys, double lines, double bits, unsigned k);

/* Bits per key of a plain Bloom filter over `keys` keys, with its best whole k, that reach `fpr`;
 * more than tamiz_bloom_bits, which has k as a real number. */
double theory_bloom_bits_for(double keys, double fpr);

/* Wilson's interval for a rate of which `hits` of `n` were seen, `sigmas` wide to either side. n 0:
 * 0 to 1. */
void theory_wilson(double hits, double n, double sigmas, double *low, double *high);

#endif
