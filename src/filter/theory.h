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

/* The same for `keys` keys thrown at random into `lines` lines of `bits` bits: the mixture of
 * theory_line_fpr over the binomial number of keys in a line. */
double theory_lines_fpr(double keys, double lines, double bits, unsigned k);

#endif
