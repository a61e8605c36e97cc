/* SPDX-License-Identifier: MIT
 *
 * Time and keys for the benchmarks of filters: CPU time of this thread, so that other work on the
 * machine costs accuracy and not minutes; the least of several repeats counts.
 */
#ifndef TAMIZ_BENCH_FILTERS_MEASURE_H
#define TAMIZ_BENCH_FILTERS_MEASURE_H

#include <stdint.h>
#include <time.h>

static inline double measure_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* splitmix64: number i of the sequence from `seed`. All differ. */
static inline uint64_t measure_random(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#endif
