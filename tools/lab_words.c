/* SPDX-License-Identifier: MIT */
#include "lab_words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PRESENT_ONE_IN = 16 };

/* ---- made up ---- */

/* YCSB's scrambling: FNV-1a over the eight bytes. */
static uint64_t fnv(uint64_t x)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (x >> (8 * i) & 255)) * UINT64_C(0x100000001b3);
    return hash;
}

/* YCSB's: keys that begin with "user" and a hash, so that neighbours in number are none in order.
 */
static void hashed_keys(struct words *w, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char key[40];
        const int size = snprintf(key, sizeof key, "user%020llu", (unsigned long long)fnv(2 * i));
        words_add(w, key, (size_t)size);
    }
}

/* YCSB's zipfian generator (Gray et al., "Quickly generating billion-record synthetic databases",
 * 1994), with its constant 0.99. */
struct zipf {
    uint64_t n;
    double zeta, eta;
};
#define ZIPF_CONSTANT 0.99

static struct zipf zipf_start(uint64_t n)
{
    struct zipf z = {.n = n};
    for (uint64_t i = 1; i <= n; i++)
        z.zeta += 1 / pow((double)i, ZIPF_CONSTANT);
    z.eta = (1 - pow(2.0 / (double)n, 1 - ZIPF_CONSTANT)) /
            (1 - (1 + pow(0.5, ZIPF_CONSTANT)) / z.zeta);
    return z;
}

static uint64_t zipf_next(const struct zipf *z, struct random *random)
{
    const double u = (double)(random_u64(random) >> 11) / 9007199254740992.0;
    const double uz = u * z->zeta;
    if (uz < 1)
        return 0;
    if (uz < 1 + pow(0.5, ZIPF_CONSTANT))
        return 1;
    const double rank = (double)z->n * pow(z->eta * u - z->eta + 1, 1 / (1 - ZIPF_CONSTANT));
    return rank < (double)z->n ? (uint64_t)rank : z->n - 1;
}

enum spread { UNIFORM, ZIPF, SEQUENTIAL };

/* A key with one more byte stands just behind it: absent, unless the list has it too, and within
 * every table's range. */
static void probes_make_up(struct words *words, enum spread spread, const struct word *keys,
                           size_t key_count, uint64_t count, struct random *random)
{
    struct text probe = {0};
    const struct zipf z = spread == ZIPF ? zipf_start(key_count) : (struct zipf){.n = key_count};
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = spread == SEQUENTIAL ? i * key_count / count
                            : spread == ZIPF     ? fnv(zipf_next(&z, random)) % key_count
                                                 : random_below(random, key_count);
        text_clear(&probe);
        text_add(&probe, keys[at].data, keys[at].size);
        if (random_below(random, PRESENT_ONE_IN) != 0)
            text_add(&probe, "~", 1);
        words_add(words, probe.data, probe.size);
    }
    text_free(&probe);
}

/* ---- what was asked for ---- */

/* The place of --AS's value among `ways` (NULL ends; the first is the default), or -1, and it was
 * said. */
static int way_take(const struct call *call, const char *flag, const char *const *ways,
                    const char *want)
{
    const char *as = call_flag(call, flag);
    for (int i = 0; ways[i]; i++)
        if (!as || strcmp(as, ways[i]) == 0)
            return i;
    (void)misuse(call, "%s %s: want %s", flag, as, want);
    return -1;
}

/* How to make up what a file has already says nothing, and is a mistake. */
static bool made_up(const struct call *call, const char *file, const char *flag)
{
    if (!call_flag(call, file) || !call_flag(call, flag))
        return true;
    (void)misuse(call, "%s is of what is made up, and %s names a file", flag, file);
    return false;
}

static int lines_take(const struct call *call, struct words *words, const char *path,
                      const char *what)
{
    if (!words_read(words, path))
        return fail(call, "%s: %s", path, strerror(errno));
    return words->count ? EXIT_DONE : fail(call, "%s: no line in it, so no %s", path, what);
}

int lab_keys_take(const struct call *call, struct words *words, uint64_t count)
{
    static const char *const ways[] = {"decimal", "hashed", NULL};
    const char *path = call_flag(call, "--keys");
    const int way = way_take(call, "--keys-as", ways, "decimal or hashed");
    if (way < 0 || !made_up(call, "--keys", "--keys-as") || !made_up(call, "--keys", "--count"))
        return EXIT_USAGE;
    if (path)
        return lines_take(call, words, path, "key");
    if (way == 1)
        hashed_keys(words, count);
    else
        words_synthetic_keys(words, count);
    return words->count ? EXIT_DONE : fail(call, "no keys");
}

int lab_probes_take(const struct call *call, struct words *words, const struct word *keys,
                    size_t key_count, uint64_t count, struct random *random, bool *shuffled)
{
    static const char *const spreads[] = {"uniform", "zipf", "sequential", NULL};
    static const char *const orders[] = {"shuffled", "file", NULL};
    const char *path = call_flag(call, "--probes");
    const int spread = way_take(call, "--probes-as", spreads, "uniform, zipf or sequential");
    const int order = spread < 0 ? -1 : way_take(call, "--order", orders, "shuffled or file");
    if (order < 0 || !made_up(call, "--probes", "--probes-as") ||
        !made_up(call, "--probes", "--probe-count"))
        return EXIT_USAGE;
    /* In sequence is an order of its own, unless another is asked for in so many words. */
    *shuffled = order == 0 && (path || spread != SEQUENTIAL || call_flag(call, "--order"));
    if (path)
        return lines_take(call, words, path, "probe");
    probes_make_up(words, (enum spread)spread, keys, key_count, count, random);
    return words->count ? EXIT_DONE : fail(call, "no probes");
}
