/* SPDX-License-Identifier: MIT */
#include "histogram.h"

void histogram_merge(struct histogram *to, const struct histogram *from)
{
    to->count += from->count;
    to->sum += from->sum;
    to->max = from->max > to->max ? from->max : to->max;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->buckets[i] += from->buckets[i];
}

/* The smallest time that falls into bucket `i`. */
static double bucket_begin(unsigned i)
{
    if (i < HISTOGRAM_FINE)
        return i;
    const unsigned shift = (i >> HISTOGRAM_FINE_BITS) - 1;
    return (double)((uint64_t)(HISTOGRAM_FINE + (i & (HISTOGRAM_FINE - 1))) << shift);
}

/* Within a bucket the times are taken as evenly spread. */
double histogram_percentile(const struct histogram *h, double share)
{
    const double wanted = share * (double)h->count;
    double before = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const double here = (double)h->buckets[i];
        if (here > 0 && before + here >= wanted) {
            const double begin = bucket_begin(i);
            const double end = i + 1 < HISTOGRAM_BUCKETS ? bucket_begin(i + 1) : (double)h->max;
            const double at = begin + (end - begin) * (wanted - before) / here;
            return at < (double)h->max ? at : (double)h->max;
        }
        before += here;
    }
    return (double)h->max;
}
