/* SPDX-License-Identifier: MIT
 *
 * What every test file includes: cmocka with what it needs, an op to pass down, and random numbers
 * with a printed seed.
 */
#ifndef TAMIZ_TEST_H
#define TAMIZ_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/op.h"

/* An op with counters of its own and libc's memory, for calls below the public interface. */
struct test_op {
    struct op op;
    struct counters count;
};
void test_op_init(struct test_op *t);

/* splitmix64: fine for tests, the same everywhere. */
struct test_random {
    uint64_t state;
};
static inline uint64_t test_random_u64(struct test_random *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static inline uint64_t test_random_below(struct test_random *r, uint64_t n)
{
    return test_random_u64(r) % n;
}
/* From TAMIZ_TEST_SEED where that is set, else `fallback`; printed, so that a failure can be
 * repeated. */
struct test_random test_random_start(uint64_t fallback);
/* The first of several seeds that follow each other: TAMIZ_TEST_SEED, or 1. */
uint64_t test_first_seed(void);

/* A fresh empty directory below the build's, removed by test_directory_remove with all in it.
 * Static buffer per call site's own. */
void test_directory_make(char *path, size_t size);
void test_directory_remove(const char *path);

/* The status and, where it is not what was wanted, the words that came with it. */
#define assert_status(op_, got_, want_)                                                            \
    do {                                                                                           \
        const tamiz_status got__ = (got_);                                                         \
        if (got__ != (want_))                                                                      \
            print_error("%s: %s, wanted %s: %s\n", #got_, tamiz_status_name(got__),                \
                        tamiz_status_name(want_), (op_)->text);                                    \
        assert_int_equal(got__, (want_));                                                          \
    } while (0)

/* The same for public calls. */
#define assert_public(got_, want_)                                                                 \
    do {                                                                                           \
        const tamiz_status got__ = (got_);                                                         \
        if (got__ != (want_))                                                                      \
            print_error("%s: %s, wanted %s: %s\n", #got_, tamiz_status_name(got__),                \
                        tamiz_status_name(want_), tamiz_error_detail());                           \
        assert_int_equal(got__, (want_));                                                          \
    } while (0)

#endif
