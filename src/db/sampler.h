/* SPDX-License-Identifier: MIT
 *
 * Which reads are followed. Many at first, fewer and fewer as there are enough of them, one in 4096
 * in the long run: each so many that were followed halve the rate. What is left of the reads is
 * chosen in two ways, whose product is the rate:
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
 * So a store whose cache could hold all of its blocks is followed in space, and in time as well
 * once nearly all of its blocks were seen; one with a small cache mostly in time; between them, in
 * space until the ghost is as small as may be.
 *
 * A read that is not chosen by time should cost nothing: each slot is told how many gets it may go
 * on without asking (struct counters, quiet_until).
 */
#ifndef TAMIZ_DB_SAMPLER_H
#define TAMIZ_DB_SAMPLER_H

#include "version/version.h"

enum {
    SAMPLER_ROW = 64,      /* followed reads in a row that count … */
    SAMPLER_ROW_WARM = 16, /* … behind so many that do not         */
    SAMPLER_FENCES = 2048,
    SAMPLER_SHARES = 16,
    SAMPLER_QUIET = 1024, /* gets that are not asked about at most: where the rate is chosen anew,
                             a slot is so much late */
};

struct sampler {
    /* Read by every get, written under the ledger's mutex; a torn picture of them misplaces one
     * read. */
    _Atomic uint64_t lowest;    /* leading bytes of the smallest key                             */
    _Atomic uint32_t skip;      /* bytes that all keys begin with                                */
    _Atomic uint32_t shift;     /* from the distance to `lowest` to a cell                       */
    _Atomic uint32_t cells_end; /* cells whose number below is smaller are followed; 0: all      */
    _Atomic uint32_t period;    /* reads from one row to the next, a power of two; 0: all count  */
    uint32_t audit;             /* one read in so many is audited; 0: none. Frozen */

    /* The rest is the ledger's alone, under its mutex. */
    uint64_t cache_bytes, block_bytes; /* frozen: of the cache; of a block, as asked for */
    uint64_t configured_bytes;         /* of the tables, when the numbers here were chosen */
    double blocks, cells;              /* there are */
    double cached;                     /* blocks that the cache holds */
    bool all_fits;                     /* whatever is read stays */
    uint32_t one_in;                   /* the rate: space times time */
    uint32_t one_in_space, one_in_space_most;
    uint64_t bytes;            /* of the tables, now */
    uint32_t followed, missed; /* at this rate; of those, with a block not in the ghost */
    struct sampler_share {
        uint64_t run_bytes, bytes;
        uint32_t one_in_space;
        double share;
    } shares[SAMPLER_SHARES];        /* worked out already */
    uint64_t fences[SAMPLER_FENCES]; /* by which cells are cut: distances, ascending */
    uint32_t fence_count;
};

static inline uint32_t sampler_load(const _Atomic uint32_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* The number of the key's cell, hashed: any part of all numbers has about the same part of the
 * cells. A cell is so much of the distance from the smallest key. */
static inline uint32_t sampler_cell(const struct sampler *s, struct slice key)
{
    const uint64_t at = slice_prefix8(key, sampler_load(&s->skip));
    const uint64_t lowest = atomic_load_explicit(&s->lowest, memory_order_relaxed);
    const uint64_t cell = (at > lowest ? at - lowest : 0) >> sampler_load(&s->shift);
    return (uint32_t)((cell + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* Where a read is in its row: 0..SAMPLER_ROW_WARM + SAMPLER_ROW - 1; beyond: in none. `gets`: of
 * the same slot, up to and with this read. */
static inline uint32_t sampler_place(uint64_t gets, uint32_t period)
{
    return ((uint32_t)gets + period / 2) & (period - 1);
}

/* Is it in one? Then it is for its key to be chosen or not. */
static inline bool sampler_in_row(const struct sampler *s, uint64_t gets)
{
    const uint32_t period = sampler_load(&s->period);
    return !period || sampler_place(gets, period) < SAMPLER_ROW_WARM + SAMPLER_ROW;
}

/* Is this read chosen? */
static inline bool sampler_follows(const struct sampler *s, struct slice key, uint64_t gets)
{
    const uint32_t end = sampler_load(&s->cells_end);
    return sampler_in_row(s, gets) && (!end || sampler_cell(s, key) < end);
}

/* Behind this read no other need be asked about before so many gets. */
uint64_t sampler_quiet(const struct sampler *s, uint64_t gets);

/* Does this followed read only bring the ghost up to date? */
static inline bool sampler_warms(const struct sampler *s, uint64_t gets)
{
    const uint32_t period = sampler_load(&s->period);
    return period && sampler_place(gets, period) < SAMPLER_ROW_WARM;
}

/* Where the data have grown or shrunk much since the numbers were chosen, most blocks were written
 * anew: chooses once more. true: it did, and what the ghost holds means nothing now. */
bool sampler_configure(struct sampler *s, const struct version *v);
/* One more was followed, and counts; `missed`: it met a block that the ghost did not have. true:
 * the rate is another one now. */
bool sampler_count(struct sampler *s, const struct version *v, bool missed);
/* A followed read touches a block of `run`, which lies in some number of cells: the part of such
 * blocks that have a followed cell. */
double sampler_share(struct sampler *s, const struct run *run);

#endif
