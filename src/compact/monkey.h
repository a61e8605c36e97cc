/* SPDX-License-Identifier: MIT
 *
 * Filter memory where it counts. A get for an absent key asks the filter of every run that could
 * have it, so what it wastes is the sum of the runs' false-positive rates p; a filter of n keys at
 * rate p takes n c log2(1/p) bits, c by family (1.44 for a Bloom filter, 1.08 for 4-wise fuse …).
 * A bit a key costs n bits wherever it is spent, and halves what is lost there; so with a budget
 * of bits the least is wasted where
 *
 *     p  proportional to  c n / w        w: how often the run is asked, times what a read costs
 *
 * A level with a tenth of the keys gets a tenth of the rate, for log2(10) c more bits each of its
 * few keys; a run whose rate would come out at 1 gets no filter. With levels T times larger each
 * and M / N bits a key on average, in a leveled tree with Bloom filters, the sum is
 *
 *     T^(T/(T-1)) / (T-1) e^(-(M/N) ln^2 2)       and uniform bits waste  L e^(-(M/N) ln^2 2)
 *
 * N. Dayan, M. Athanassoulis, S. Idreos, "Monkey: optimal navigable key-value store", SIGMOD 2017;
 * costs by family and weights are ours. Pure arithmetic: no files, no locks.
 */
#ifndef TAMIZ_COMPACT_MONKEY_H
#define TAMIZ_COMPACT_MONKEY_H

#include "compact/pick.h"

struct monkey_run {
    double keys;
    double weight;    /* how often it is asked, times the cost of a wasted read; 1 */
    double cost;      /* bits of one key that halve the rate */
    double bits_most; /* a key; more would not help this family any more */
};

/* rates[i]: 0 < rate <= 1, 1 for "no filter". `bits`: all that there are. */
void monkey_rates(const struct monkey_run *runs, size_t n, double bits, double *rates);
/* Bits a key that the rate takes. */
double monkey_bits(const struct monkey_run *run, double rate);

/* Bits a key that halve the rate of the policy's kind, from its own arithmetic; 0: it has one width
 * only, and nothing can be spread. */
double monkey_cost(const tamiz_filter_policy *policy);
/* Bits a key that the policy takes by itself; 0: no filter. */
double monkey_average(const tamiz_filter_policy *policy);

/* The policy for the output of job `j` of `v`, or, with j NULL, for a flush of `keys`: the tree is
 * taken as it will be with it, each run weighed by how much of the keys it covers. `policy` says
 * kind and average; itself where nothing can be spread, or where the family's own arithmetic says
 * that the spread would waste more. TAMIZ_OUT_OF_MEMORY. */
tamiz_status monkey_policy(struct op *op, const struct version *v, const struct job *j,
                           uint64_t keys, const tamiz_filter_policy *policy,
                           tamiz_filter_policy *spread);

#endif
