/* SPDX-License-Identifier: MIT
 *
 * The seam of everything that can be walked in order: memtables, tables, runs, and the merge of
 * many. An iterator yields versions (key, stamp, value) in version order: keys ascending, newest
 * first; it shows tombstones and never hides them.
 *
 * The current version stands in the struct itself, so that looking at it costs no call. key and
 * value are borrowed until the iterator moves. An error makes it invalid and stays in `status` (and
 * in the op's record) until the next seek.
 *
 * Where a version stands in a table's block, what follows it there can be had without a call: the
 * iterator lends the walk over the block (table/block_walk.h) to whoever steps it. The iterator
 * itself then stays behind: of its calls a seek, iter_next and iter_refresh are right at once, all
 * else after one of these.
 */
#ifndef TAMIZ_BASE_ITER_H
#define TAMIZ_BASE_ITER_H

#include "base/key.h"
#include "base/op.h"

struct iter;
struct block_walk;

struct iter_ops {
    void (*seek_first)(struct iter *it);
    void (*seek_last)(struct iter *it);
    /* To the first version >= (key, stamp) in version order: stamp UINT64_MAX is before all
     * versions of the key. */
    void (*seek)(struct iter *it, struct slice key, uint64_t stamp);
    /* To the last version < (key, stamp): stamp UINT64_MAX lands before the key, stamp 0 on its
     * oldest version at most. */
    void (*seek_before)(struct iter *it, struct slice key, uint64_t stamp);
    void (*next)(struct iter *it);  /* only while valid */
    void (*prev)(struct iter *it);  /* only while valid */
    void (*close)(struct iter *it); /* frees it */
    /* Fetches what a seek to the same key, which follows at once, will touch: in each of ITER_STEPS
     * steps what is known by then, so that many iterators can wait for memory together. Where the
     * iterator stood is forgotten: the key is not borrowed from it. NULL: nothing to gain. */
    void (*approach)(struct iter *it, struct slice key, uint64_t stamp, unsigned step);
    /* Lets go of all it holds but a little memory of its own; invalid until the next seek. NULL: it
     * holds nothing. */
    void (*rest)(struct iter *it);
    /* Shows where the walk stands, which was stepped. Only where there is one. */
    void (*refresh)(struct iter *it);
};

enum { ITER_STEPS = 4 };

struct iter {
    const struct iter_ops *ops;
    struct op *op; /* of whoever walks; outlives the iterator */
    bool valid;
    tamiz_status status;
    struct slice key;
    uint64_t stamp;
    struct slice value;
    struct block_walk *walk; /* over entries with keys of their own: no key twice; NULL: not lent */
};

static inline void iter_seek_first(struct iter *it)
{
    it->ops->seek_first(it);
}

static inline void iter_seek_last(struct iter *it)
{
    it->ops->seek_last(it);
}

static inline void iter_seek(struct iter *it, struct slice key, uint64_t stamp)
{
    it->ops->seek(it, key, stamp);
}

static inline void iter_approach(struct iter *it, struct slice key, uint64_t stamp, unsigned step)
{
    if (it->ops->approach)
        it->ops->approach(it, key, stamp, step);
}

static inline void iter_rest(struct iter *it)
{
    it->valid = false;
    if (it->ops->rest)
        it->ops->rest(it);
}

static inline void iter_seek_before(struct iter *it, struct slice key, uint64_t stamp)
{
    it->ops->seek_before(it, key, stamp);
}

/* To the last version of `key`, its oldest, or of the last key below. */
static inline void iter_seek_after(struct iter *it, struct slice key)
{
    iter_seek(it, key, 0);
    if (it->valid && it->stamp == 0 && slice_equal(it->key, key))
        return; /* the oldest there can be */
    if (it->valid)
        it->ops->prev(it);
    else if (it->status == TAMIZ_OK)
        iter_seek_last(it);
}

static inline void iter_next(struct iter *it)
{
    it->ops->next(it);
}

static inline void iter_prev(struct iter *it)
{
    it->ops->prev(it);
}

static inline void iter_refresh(struct iter *it)
{
    it->ops->refresh(it);
}

static inline void iter_close(struct iter *it)
{
    if (it)
        it->ops->close(it);
}

#endif
