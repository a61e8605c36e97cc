/* SPDX-License-Identifier: MIT
 *
 * What the machine itself can do: batches of keys asked of some filters of one cache line a key, by
 * a plain loop with no store above it. The limit that a multi_get of absent keys is measured
 * against, in the same minutes, over as many bytes of filter:
 *
 *     probe_limit [--bits B] [--batch N] [--keys N] [--seed N] RUN...
 *
 * RUN is how many keys a run of the store has (`tamiz_bench --describe` says); each has one filter
 * of B bits a key, all of them in one piece of memory whose pages are advised to be huge. Half of
 * the bits are set, as in a filter that is full. A key is hashed once; all lines of a batch are
 * fetched before the first is tested. Keys are made up outside the measured stretch.
 */
#define _GNU_SOURCE /* madvise */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "keys.h"
#include "process.h"

enum { LINE = 64, RUNS_MOST = 32, BATCH_MOST = 256, KEYS_AT_ONCE = 4096, HUGE_PAGE = 2 << 20 };

struct filters {
    const uint8_t *lines[RUNS_MOST];
    uint64_t count[RUNS_MOST]; /* of lines */
    unsigned runs, k;
};

struct batch {
    const uint8_t *line[RUNS_MOST * BATCH_MOST];
    uint32_t bits[BATCH_MOST];
};

/* k bits of 512, nine of the hash at a time, turned on after three. */
static bool says_maybe(const uint8_t *line, uint32_t bits, unsigned k)
{
    for (unsigned i = 0; i < k; i++) {
        const uint32_t bit = bits >> 23;
        if (!(line[bit / 8] >> bit % 8 & 1))
            return false;
        bits *= UINT32_C(0x9e3779b1);
    }
    return true;
}

/* How many of n keys some filter may know. */
static uint64_t ask(const struct filters *f, struct batch *b, uint8_t (*keys)[KEY_SIZE], size_t n)
{
    const uint8_t **at = b->line;
    uint64_t maybe = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t hash = XXH3_64bits(keys[i], KEY_SIZE);
        b->bits[i] = (uint32_t)hash;
        for (unsigned r = 0; r < f->runs; r++) {
            *at = f->lines[r] + (uint64_t)(((random_wide)hash * f->count[r]) >> 64) * LINE;
            __builtin_prefetch(*at++);
        }
    }
    at = b->line;
    for (size_t i = 0; i < n; i++)
        for (unsigned r = 0; r < f->runs; r++)
            maybe += says_maybe(*at++, b->bits[i], f->k);
    return maybe;
}

static bool filters_make(struct filters *f, const uint64_t *keys, double bits,
                         struct random *random)
{
    uint64_t lines = 0;
    for (unsigned r = 0; r < f->runs; r++)
        lines += f->count[r] = (uint64_t)ceil((double)keys[r] * bits / (8 * LINE));
    const size_t size = (lines * LINE + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uint64_t *words = aligned_alloc(HUGE_PAGE, size);
    if (!words)
        return false;
    (void)madvise(words, size, MADV_HUGEPAGE);
    for (size_t i = 0; i < size / sizeof *words; i++)
        words[i] = random_u64(random);
    const uint8_t *at = (const uint8_t *)words;
    for (unsigned r = 0; r < f->runs; at += f->count[r++] * LINE)
        f->lines[r] = at;
    f->k = (unsigned)lround(bits * log(2));
    return true;
}

static void measure(const struct filters *f, size_t batch, uint64_t reads, struct random *random)
{
    static uint8_t keys[KEYS_AT_ONCE][KEY_SIZE];
    static struct batch room;
    uint64_t cpu = 0, maybe = 0, done = 0;
    for (; done < reads; done += KEYS_AT_ONCE) {
        for (size_t i = 0; i < KEYS_AT_ONCE; i++)
            key_write(random_u64(random) >> 12, keys[i]);
        const uint64_t begin = thread_cpu_ns();
        for (size_t i = 0; i < KEYS_AT_ONCE; i += batch)
            maybe += ask(f, &room, keys + i, batch);
        cpu += thread_cpu_ns() - begin;
    }
    printf("probe_limit: %u filters, batches of %zu: %.4f us of CPU a key, %.4f false positives\n",
           f->runs, batch, (double)cpu / 1e3 / (double)done, (double)maybe / (double)done);
}

int main(int argc, char **argv)
{
    struct filters f = {.runs = 0};
    uint64_t keys[RUNS_MOST], batch = 32, reads = 10000000;
    struct random random = {1};
    double bits = 10;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--bits") == 0)
            bits = strtod(argv[++i], NULL);
        else if (more && strcmp(argv[i], "--batch") == 0)
            batch = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--keys") == 0)
            reads = strtoull(argv[++i], NULL, 10);
        else if (more && strcmp(argv[i], "--seed") == 0)
            random = (struct random){strtoull(argv[++i], NULL, 10)};
        else if (f.runs < RUNS_MOST)
            keys[f.runs++] = strtoull(argv[i], NULL, 10);
    }
    bool sane = f.runs && bits >= 1 && bits <= 64 && batch && KEYS_AT_ONCE % batch == 0 &&
                batch <= BATCH_MOST;
    for (unsigned r = 0; r < f.runs; r++)
        sane = sane && keys[r] > 0 && keys[r] < UINT64_C(1) << 40;
    if (!sane || !filters_make(&f, keys, bits, &random)) {
        fprintf(stderr, "usage: probe_limit [--bits 1..64] [--batch a power of two up to 256] "
                        "[--keys N] [--seed N] RUN...   (keys of each run)\n");
        return 2;
    }
    measure(&f, (size_t)batch, reads, &random);
    return 0;
}
