/* SPDX-License-Identifier: MIT
 *
 * What a store without filters would have read. A filter's "no" is not a device read avoided: the
 * block might have been in the cache, and a store without filters would have had other blocks
 * there. So some reads, chosen by the sampler, are followed a second time: the blocks that they
 * would have touched with no filter go through a ghost of the cache that such a store would have
 * had (names of blocks only), and what misses there, less what was really read, was avoided.
 *
 * A followed read also shows what the filter of every table that it met said, and what was true:
 * tally.h. And some reads are audited: audit.h.
 */
#ifndef TAMIZ_DB_LEDGER_H
#define TAMIZ_DB_LEDGER_H

#include "db/sampler.h"
#include "db/tally.h"
#include "db/view.h"

/* block_bytes: of a data block, as asked for. NULL: memory is out. */
struct ledger *ledger_new(const struct store *s, uint64_t cache_bytes, uint64_t block_bytes);
void ledger_free(struct ledger *l);
/* As if it were new, for a keyspace with blocks of that size. Any thread. */
void ledger_reset(struct ledger *l, uint64_t block_bytes);

/* Counts a get. true: the ledger is to be asked what it is chosen for. */
static inline bool ledger_count_get(struct op *op)
{
#ifdef TAMIZ_NO_LEDGER
    (void)op;
    return false;
#else
    const uint64_t gets = counter_get(&op->count->gets) + 1;
    atomic_store_explicit(&op->count->gets, gets, memory_order_relaxed);
    return gets >= counter_get(&op->count->quiet_until);
#endif
}

/* What this read, just counted, is chosen for: these, or 0. */
enum { LEDGER_FOLLOW = 1, LEDGER_AUDIT = 2 };
unsigned ledger_decide(const struct op *op, const struct ledger *l, const struct lookup *lookup,
                       const tamiz_read_options *options);

/* Counts `n` gets, of up to 64 keys, and chooses among them as if they came one by one: bit i is
 * key i's. */
struct chosen {
    uint64_t follow, audit;
};
struct chosen ledger_count_many(struct op *op, const struct ledger *l, const struct slice *keys,
                                size_t n, const tamiz_read_options *options);

/* A read that is over. */
struct followed {
    uint64_t at; /* count->gets when it began */
    const struct lookup *lookup;
    const struct table *answered; /* the table that knew the key, where a filterless read would
                                     have ended too; NULL: none did */
    bool newest;                  /* it saw the newest versions: what is not found is not there */
    int64_t device_reads[TAMIZ_LEVELS]; /* made for it */
};

/* After the read. */
void ledger_follow(struct op *op, struct ledger *l, const struct version *version,
                   const struct followed *read);

/* Device reads made so far by this operation's slot; and those since. */
void ledger_reads_take(const struct op *op, const struct version *v, int64_t reads[TAMIZ_LEVELS]);
void ledger_reads_since(const struct op *op, const struct version *v, int64_t reads[TAMIZ_LEVELS]);

/* What the counters say. The error has two parts: of sampling, and of the model, for a ghost is not
 * the cache. Levels are added up by adding all three. */
struct estimate {
    double avoided, variance, model;
};
struct estimate ledger_estimate(const struct counters *c, const struct level_counters *level);
/* Two standard deviations and the model's part: half of a 95 % interval, or more. */
double ledger_error(const struct estimate *e);

#endif
