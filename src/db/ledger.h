/* SPDX-License-Identifier: MIT
 *
 * What a store without filters would have read. A filter's "no" is not a device read avoided: the
 * block might have been in the cache, and a store without filters would have had other blocks
 * there. So one read in many is followed a second time: the blocks that it would have touched with
 * no filter go through a ghost of the cache that such a store would have had (block names only),
 * and what misses there, less what was really read, was avoided.
 *
 * Sampled reads at random are, to a cache, the same stream of reads, only slower; so the ghost has
 * the full capacity, not a sampled share of it. To be warm as soon as the real one, it follows
 * every read until it is full.
 */
#ifndef TAMIZ_DB_LEDGER_H
#define TAMIZ_DB_LEDGER_H

#include "db/view.h"

/* cache_bytes: of the block cache; block_bytes: what one cached block costs. NULL: memory is out.
 */
struct ledger *ledger_new(const struct alloc *alloc, uint64_t cache_bytes, uint64_t block_bytes);
void ledger_free(struct ledger *l);

/* Is this read one of those that are followed? Costs a load and a test. */
bool ledger_due(const struct op *op, const struct ledger *l, const tamiz_read_options *options);

/* Device reads so far, before the sampled read. */
struct ledger_sample {
    uint64_t device_reads[TAMIZ_LEVELS];
};
void ledger_begin(const struct op *op, struct ledger_sample *sample);
/* `answered`: the table that knew the key, where the filterless read would have ended too; NULL:
 * none did. */
void ledger_end(struct op *op, struct ledger *l, const struct ledger_sample *sample,
                const struct version *version, const struct lookup *lookup,
                const struct table *answered);

#endif
