/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw */
#include "support/test.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void test_op_init(struct test_op *t)
{
    memset(t, 0, sizeof *t);
    op_init(&t->op, &alloc_libc, &t->count);
}

struct test_random test_random_start(uint64_t fallback)
{
    const char *text = getenv("TAMIZ_TEST_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 0) : fallback;
    print_message("TAMIZ_TEST_SEED=%llu\n", (unsigned long long)seed);
    return (struct test_random){seed};
}

uint64_t test_first_seed(void)
{
    return test_random_start(1).state;
}

void test_directory_make(char *path, size_t size)
{
    (void)snprintf(path, size, "tamiz-test-XXXXXX");
    if (!mkdtemp(path))
        fail_msg("mkdtemp failed");
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

void test_directory_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
