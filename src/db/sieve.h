/* SPDX-License-Identifier: MIT
 *
 * Many keys at once through the filters of all runs: what is asked of a cache line. One loop over
 * all keys for each thing to be done, so that no key waits for another's miss: hashes, the table of
 * each run that could have it, its line of that table's filter (on its way from then on), the
 * answers. What is said of key i stands at bit i of a word, and most absent keys are answered by a
 * few operations on such words, their steps counted together.
 */
#ifndef TAMIZ_DB_SIEVE_H
#define TAMIZ_DB_SIEVE_H

#include "db/view.h"

enum { SIEVE_KEYS = 64, SIEVE_PAIRS = 1024 /* of a key and a run */ };

/* What one run says of the keys. */
struct sieve_run {
    uint64_t met;         /* one of its tables could have the key           */
    uint64_t asked;       /* of those, whose filter was asked, by line      */
    uint64_t maybe;       /* of those that were met: all but the "no"s      */
    uint64_t expected_fp; /* of the filters that were asked, × 1e9, in sum  */
};

struct sieve {
    uint32_t count;
    struct slice keys[SIEVE_KEYS]; /* borrowed */
    uint64_t hashes[SIEVE_KEYS], words[SIEVE_KEYS];
    /* Of run r and key i, at r * count + i: */
    uint32_t places[SIEVE_PAIRS];
    struct filter_line lines[SIEVE_PAIRS];
    struct sieve_run runs[SIEVE_PAIRS];
};

/* How many keys at once: SIEVE_KEYS at most; 0: there are too many runs. */
size_t sieve_room(const struct version *v);
/* One bit for each of its keys. */
static inline uint64_t sieve_all(const struct sieve *s)
{
    return s->count < 64 ? (UINT64_C(1) << s->count) - 1 : UINT64_MAX;
}

/* keys and count are there. */
void sieve_hash(struct sieve *s);
/* Which keys the i-th memtable of the view may know. */
uint64_t sieve_memtable(const struct sieve *s, const struct view *view, uint32_t i);
/* All of `runs` and what comes before it there. use_filters false: nothing is asked, all met are
 * maybes. */
void sieve_tables(struct sieve *s, const struct version *v, bool use_filters);
/* Of `keys`, those that every run's filter has denied, or that lie outside of it. */
uint64_t sieve_denied(const struct sieve *s, const struct version *v, uint64_t keys);
/* Counts the steps of keys that were denied. */
void sieve_count(struct op *op, const struct sieve *s, const struct version *v, uint64_t denied);

/* The table of run r that could have key i, which was met. */
static inline struct table *sieve_table(const struct sieve *s, const struct version *v, uint32_t r,
                                        uint32_t i)
{
    return v->runs[r].handles[s->places[r * s->count + i]];
}

#endif
