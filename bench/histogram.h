/* SPDX-License-Identifier: MIT
 *
 * Latencies in logarithmic buckets: 32 to a power of two, so that a percentile is right within 3 %.
 * Adding is a count-leading-zeros and an increment. All times in nanoseconds.
 */
#ifndef TAMIZ_BENCH_HISTOGRAM_H
#define TAMIZ_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_FINE_BITS = 5,
    HISTOGRAM_FINE = 1 << HISTOGRAM_FINE_BITS,
    HISTOGRAM_BUCKETS = (64 - HISTOGRAM_FINE_BITS + 1) * HISTOGRAM_FINE
};

struct histogram {
    uint64_t count, sum, max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t ns)
{
    if (ns < HISTOGRAM_FINE)
        return (unsigned)ns;
    const unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - HISTOGRAM_FINE_BITS;
    return ((shift + 1) << HISTOGRAM_FINE_BITS) + (unsigned)((ns >> shift) & (HISTOGRAM_FINE - 1));
}

/* `weight` operations that took `ns` each. */
static inline void histogram_add(struct histogram *h, uint64_t ns, uint64_t weight)
{
    h->count += weight;
    h->sum += ns * weight;
    h->max = ns > h->max ? ns : h->max;
    h->buckets[histogram_bucket(ns)] += weight;
}

void histogram_merge(struct histogram *to, const struct histogram *from);
/* The time that `share` (0..1) of the operations did not exceed; 0 where there were none. */
double histogram_percentile(const struct histogram *h, double share);

#endif
