/* SPDX-License-Identifier: MIT
 *
 * What a store without filters would have read. A filter's "no" is not a device read avoided: the
 * block might have been in the cache, and a store without filters would have had other blocks
 * there. So some reads are followed a second time: the blocks that they would have touched with no
 * filter go through a ghost of the cache that such a store would have had (names of blocks only),
 * and what misses there, less what was really read, was avoided.
 *
 * Which reads? Many at first, fewer and fewer as there are enough of them, one in 256 in the long
 * run: each RATE_READS that were followed halve the rate. What is left of the reads is chosen in
 * two ways, whose product is the rate:
 *
 *   in space  The key space is cut into cells of some blocks by the leading bytes of the keys, as
 *             the tables' fences lie in it; of the cells a part is followed, all reads of them,
 *             with a ghost of the same part of the cache (C. Waldspurger et al., "Efficient MRC
 *             construction with SHARDS", FAST 2015). First reads of blocks come out right only so:
 *             all reads of a block are followed or none; a block that lies in several cells is
 *             weighed by its chance to be seen. Needs cells enough, and a ghost not too small.
 *   in time   Reads in a row, of all cells that are followed, every so often: what lies near in
 *             time stays near. The first few of each row bring the ghost up to date and are not
 *             counted. Right where misses are for want of room, for then it does not matter which
 *             of a block's reads are seen.
 *
 * So a store whose cache could hold all of its blocks is followed in space; one with a small cache
 * mostly in time; between them, in space until the ghost has about GHOST_LEAST names.
 *
 * A followed read also shows, for every table that it met, what the filter said and what was true:
 * the tally of each table (table/table.h), of distinct keys, from which drift is noticed. And the
 * audit: one read in so many looks into tables whose filters said no.
 */
#ifndef TAMIZ_DB_LEDGER_H
#define TAMIZ_DB_LEDGER_H

#include "db/view.h"

/* block_bytes: of a data block, as asked for. NULL: memory is out. */
struct ledger *ledger_new(const struct store *s, uint64_t cache_bytes, uint64_t block_bytes);
void ledger_free(struct ledger *l);
/* As if it were new, for a keyspace with blocks of that size. Any thread. */
void ledger_reset(struct ledger *l, uint64_t block_bytes);

/* What this read is chosen for. Costs a few instructions where for nothing. */
enum { LEDGER_FOLLOW = 1, LEDGER_AUDIT = 2 };
unsigned ledger_due(const struct op *op, const struct ledger *l, const struct lookup *lookup,
                    const tamiz_read_options *options);

/* A read that is over. */
struct followed {
    uint64_t at; /* count->gets when it began */
    const struct lookup *lookup;
    const struct table *answered; /* the table that knew the key, where a filterless read would
                                     have ended too; NULL: none did */
    bool newest;                  /* it saw the newest versions: what is not found is not there */
    int64_t device_reads[TAMIZ_LEVELS]; /* made for it */
};
void ledger_follow(struct op *op, struct ledger *l, const struct version *version,
                   const struct followed *read);

/* Before the read: looks into every table whose filter denies the key. Where one has it, that
 * filter is never asked again, and the read to come tells the truth. Inside an epoch. */
void ledger_audit(struct op *op, struct ledger *l, const struct version *version,
                  const struct lookup *lookup);

/* Device reads made so far by this operation's slot; and those since. */
void ledger_reads_take(const struct op *op, int64_t reads[TAMIZ_LEVELS]);
void ledger_reads_since(const struct op *op, int64_t reads[TAMIZ_LEVELS]);

/* What the counters say. The error has two parts: of sampling, and of the model, for a ghost is not
 * the cache. Levels are added up by adding all three. */
struct estimate {
    double avoided, variance, model;
};
struct estimate ledger_estimate(const struct counters *c, const struct level_counters *level);
/* Two standard deviations and the model's part: half of a 95 % interval, or more. */
double ledger_error(const struct estimate *e);

#endif
