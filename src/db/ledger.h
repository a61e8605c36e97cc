/* SPDX-License-Identifier: MIT
 *
 * What a store without filters would have read. A filter's "no" is not a device read avoided: the
 * block might have been in the cache, and a store without filters would have had other blocks
 * there. So some reads are followed a second time: the blocks that they would have touched with no
 * filter go through a ghost of the cache that such a store would have had (names of blocks only),
 * and what misses there, less what was really read, was avoided.
 *
 * Which reads are followed decides whether that is true. Every block has a first read, whatever the
 * cache; so those of one block must be followed all or not at all, or first reads would count too
 * often (spatial sampling, as in SHARDS: C. Waldspurger et al., FAST 2015). Which block a key is in
 * costs a search; so the key space is cut into cells of some blocks each, by the leading bytes of
 * the keys, and one cell in so many is followed, with a ghost of the same share of the cache. Where
 * cache or data are small every cell is followed, and once the ghost is warm only one read in so
 * many: then nearly all misses are for want of room, and those are found at random just as well.
 */
#ifndef TAMIZ_DB_LEDGER_H
#define TAMIZ_DB_LEDGER_H

#include "db/view.h"

/* cache_bytes: of the block cache; block_bytes: what one cached block costs. NULL: memory is out.
 */
struct ledger *ledger_new(const struct alloc *alloc, uint64_t cache_bytes, uint64_t block_bytes);
void ledger_free(struct ledger *l);

/* Is this read one of those that are followed? Costs a few instructions where not. */
bool ledger_due(const struct op *op, const struct ledger *l, const struct lookup *lookup,
                const tamiz_read_options *options);

/* Device reads so far, before the followed read. */
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
