/* SPDX-License-Identifier: MIT
 *
 * What the golden images of tests/golden/filter are made of and answer; for golden_test.c, which
 * runs here, and portable.c, which runs on other machines.
 */
#ifndef TAMIZ_TEST_GOLDEN_H
#define TAMIZ_TEST_GOLDEN_H

#include <stdint.h>

enum { KEYS = 300, PROBES = 100000, IMAGE_MAX = 8192 };

/* maybes: of PROBES absent hashes, how many the image takes for members. It is an answer of the
 * query alone, and frozen with the bytes. */
static const struct golden {
    const char *policy, *file;
    unsigned maybes;
} goldens[] = {
    {"none", "none", 100000},
    {"bloom:10", "bloom", 788},
    {"blocked:10", "blocked", 868},
    {"blocked:24", "blocked24", 1},
    {"split:10", "split", 1120},
    {"fuse:6", "fuse", 6406},
    {"fuse8", "fuse8", 393},
    {"fuse16", "fuse16", 1},
    {"fuse4", "fuse4", 405},
    {"xor8", "xor8", 391},
    {"xor16", "xor16", 0},
    {"ribbon:fpr=0.01", "ribbon", 775},
    {"bumped:fpr=0.01", "bumped", 775},
    {"cuckoo:9.5", "cuckoo", 1440},
    {"counting:16", "counting", 14625},
    {"scalable:fpr=0.02", "scalable", 771},
};
enum { GOLDENS = sizeof goldens / sizeof *goldens };

/* splitmix64 */
static inline uint64_t golden_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline void golden_hashes(uint64_t hashes[KEYS])
{
    uint64_t state = UINT64_C(0x676f6c64);
    for (int i = 0; i < KEYS; i++)
        hashes[i] = golden_random(&state);
}

#define GOLDEN_PROBE_SEED 77

#endif
