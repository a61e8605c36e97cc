/* SPDX-License-Identifier: MIT
 *
 * A walk over one table. It holds one block at a time, pinned, so that it may outlive epochs; any
 * entry of it is reached by its number, so that going back costs what going forward does.
 */
#include "table/block_walk.h"
#include "table/read_ahead.h"
#include "table/table_inside.h"

enum { KEY_ROOM_KEPT = 4096 }; /* while it rests */

struct table_iter {
    struct iter base;
    struct table *table;
    struct table_loaded *loaded;
    struct table_read how;
    struct cached_block *held;  /* pinned; NULL: none */
    uint32_t block;             /* which one that is */
    struct index_search search; /* of a seek that is approached; then */
    uint32_t near;              /* the block it goes to */
    bool approached;            /* near is known */
    bool narrowed;              /* … and, of that block, */
    struct block_near narrow;
    struct block_walk walk;

    uint32_t walked; /* blocks in a row, forwards */
    struct read_ahead ahead;
};

static struct table_iter *self(struct iter *it)
{
    return (struct table_iter *)it;
}

static bool compacting(const struct table_iter *it)
{
    return it->how.purpose == IO_COMPACTION;
}

static void let_go(struct table_iter *it)
{
    cached_block_unpin(it->held);
    it->held = NULL;
    it->base.valid = false;
}

static void fail(struct table_iter *it, tamiz_status status)
{
    let_go(it);
    it->base.status = status;
}

/* ---- blocks ---- */

/* Pinned, or NULL. Compaction leaves no trace in the cache. */
static struct cached_block *from_cache(struct table_iter *it, uint32_t block)
{
    cache_place *place = &it->loaded->places[block];
    struct epoch_slot *slot = epoch_enter(it->table->world->epoch);
    struct cached_block *b =
        compacting(it) ? atomic_load_explicit(place, memory_order_seq_cst) : cache_peek(place);
    if (b)
        cached_block_pin(b);
    epoch_leave(slot);
    return b;
}

static tamiz_status from_device(struct table_iter *it, uint32_t block, struct cached_block **b)
{
    struct table *t = it->table;
    const tamiz_status st = read_ahead_take(it->base.op, &it->ahead, t, &it->how, block, b);
    if (st != TAMIZ_OK)
        return st;
    const bool welcome =
        it->walked < TABLE_LONG_SCAN || cache_has_room(t->world->cache, (*b)->whole);
    if (it->how.fill_cache && !compacting(it) && welcome)
        cache_insert(t->world->cache, &it->loaded->places[block], *b);
    return st;
}

/* Holds `block` instead of what it holds; false: that failed. */
static bool hold(struct table_iter *it, uint32_t block)
{
    if (it->held && it->block == block)
        return true;
    const bool onwards = it->held && block == it->block + 1;
    it->walked = onwards ? it->walked + 1 : 0;
    if (!onwards)
        read_ahead_break(&it->ahead);
    struct cached_block *b = from_cache(it, block);
    if (b) {
        it->ahead.sequential = 0;
        if (!compacting(it))
            table_step(it->base.op, it->table, &it->how, TAMIZ_STEP_BLOCK_CACHED,
                       step_block(block));
    } else {
        const tamiz_status st = from_device(it, block, &b);
        if (st < 0) {
            fail(it, st);
            return false;
        }
    }
    cached_block_unpin(it->held);
    it->held = b;
    it->block = block;
    block_walk_enter(&it->walk, &b->block);
    it->walk.following =
        block + 1 < index_count(it->loaded->index)
            ? atomic_load_explicit(&it->loaded->places[block + 1], memory_order_relaxed)
            : NULL;
    return true;
}

/* ---- entries ---- */

static void damaged(struct table_iter *it, uint32_t entry)
{
    const struct extent e = index_extent(it->loaded->index, it->block);
    fail(it, op_fail(it->base.op, TAMIZ_CORRUPTION,
                     "%s: block at offset %llu: expected whole entries, found damage at entry %u",
                     it->table->path, (unsigned long long)e.offset, entry));
}

static inline void show(struct table_iter *it, uint64_t stamp)
{
    it->base.key = it->walk.at_key;
    it->base.stamp = stamp + it->loaded->stamp_base;
    it->base.value = it->walk.value;
    it->base.status = TAMIZ_OK;
    it->base.valid = true;
}

/* Shows an entry of the held block. */
static void show_at(struct table_iter *it, uint32_t entry)
{
    uint64_t stamp;
    const tamiz_status st = block_walk_at(&it->walk, entry, &stamp);
    if (__builtin_expect(st == TAMIZ_OK, 1))
        show(it, stamp);
    else if (st == TAMIZ_CORRUPTION)
        damaged(it, entry);
    else
        fail(it, op_fail_memory(it->base.op));
}

/* Shows the first entry of `block` or of the next one that has any; none: invalid. */
static void show_first_from(struct table_iter *it, uint32_t block)
{
    for (; block < index_count(it->loaded->index); block++) {
        if (!hold(it, block))
            return;
        if (it->held->block.count) {
            show_at(it, 0);
            return;
        }
    }
    let_go(it);
}

/* Shows the last entry of the block before `block` or of the next one back that has any. */
static void show_last_before(struct table_iter *it, uint32_t block)
{
    while (block-- > 0) {
        if (!hold(it, block))
            return;
        if (it->held->block.count) {
            show_at(it, it->held->block.count - 1);
            return;
        }
    }
    let_go(it);
}

/* ---- the face ---- */

static void iter_first(struct iter *base)
{
    base->status = TAMIZ_OK;
    show_first_from(self(base), 0);
}

static void iter_last(struct iter *base)
{
    base->status = TAMIZ_OK;
    show_last_before(self(base), index_count(self(base)->loaded->index));
}

/* The place in the held block. A stamp below an ingested table's lies behind all that the table has
 * of the key. UINT32_MAX: damage. */
static uint32_t place_in_block(const struct table_iter *it, struct slice key, uint64_t stamp)
{
    const struct block *b = &it->held->block;
    const uint64_t base = it->loaded->stamp_base;
    if (stamp >= base)
        return block_lower_bound(b, key, stamp - base);
    uint32_t at = block_lower_bound(b, key, 0);
    struct block_entry e;
    for (; at < b->count; at++) {
        if (!block_entry_at(b, at, &e))
            return UINT32_MAX;
        if (e.shared.size + e.suffix.size != key.size || !slice_has_prefix(key, e.shared) ||
            !slice_equal(slice_of(key.data + e.shared.size, e.suffix.size), e.suffix))
            break;
    }
    return at;
}

/* Finds the place of (key, stamp): its block is held and *entry the first not before it, or the
 * block's count. false: done, invalid or shown by the caller. The key may be borrowed from what the
 * iterator shows now. */
static bool find(struct table_iter *it, struct slice key, uint64_t stamp, uint32_t block,
                 uint32_t *entry)
{
    struct cached_block *before = it->held;
    if (before)
        cached_block_pin(before);
    const bool held = hold(it, block);
    if (held) {
        *entry = place_in_block(it, key, stamp);
        if (*entry == UINT32_MAX)
            damaged(it, *entry);
    }
    cached_block_unpin(before);
    return held && it->held;
}

/* The block is in the cache, or held already: held now. */
static bool hold_near(struct table_iter *it, uint32_t block)
{
    const bool here = (it->held && it->block == block) ||
                      atomic_load_explicit(&it->loaded->places[block], memory_order_relaxed);
    return here && hold(it, block);
}

/* Which entry of the block a search ends at, about. The fence before is often the key before the
 * block's first: an entry's whole number is the one beyond it. */
static size_t guess_entry(const struct table_loaded *l, uint32_t block, struct index_search search)
{
    enum { LESS = PART_WHOLE / 16 };
    const uint64_t far = (uint64_t)l->block_entries * index_part(l->index, block, search);
    return far > LESS ? (size_t)((far - LESS) / PART_WHOLE) : 0;
}

/* What a search in the block will touch, where it is in memory. The entry and its group's restart
 * are guessed: were they waited for one after the other, a seek would take a third longer. */
static void fetch_near(const struct table_loaded *l, uint32_t block, struct index_search search)
{
    const struct cached_block *b = atomic_load_explicit(&l->places[block], memory_order_relaxed);
    if (!b)
        return;
    const size_t entry = guess_entry(l, block, search);
    const size_t arrays = BLOCK_HEADER_SIZE + 3 * (size_t)l->block_entries;
    cached_block_fetch_seek(b, arrays + entry * l->entry_bytes,
                            arrays + (entry - entry % BLOCK_GROUP) * l->entry_bytes);
}

static void iter_approach_key(struct iter *base, struct slice key, uint64_t stamp, unsigned step)
{
    struct table_iter *it = self(base);
    struct table_loaded *l = it->loaded;
    (void)stamp;
    switch (step) {
    case 0:
        it->approached = it->narrowed = false;
        it->search = index_search_begin(l->index, key, l->places);
        break;
    case 1:
        it->near = index_search_end(l->index, key, it->search);
        it->approached = it->near < index_count(l->index);
        if (it->approached)
            fetch_near(l, it->near, it->search);
        break;
    case 2:
        if (it->approached)
            (void)hold_near(it, it->near);
        break;
    default:
        it->narrowed = it->approached && it->held && it->block == it->near &&
                       block_fetch_near(&it->held->block, key, &it->narrow);
    }
}

enum { FEW_ALIKE = 4 }; /* entries of one rank that are shown one by one until it is the one */

/* The block that is held is the key's, and its ranks have told where: which entry it is shows when
 * it is shown. */
static void show_near(struct table_iter *it, struct slice key, uint64_t stamp)
{
    const struct block *b = &it->held->block;
    const struct block_near near = it->narrow;
    uint32_t entry = near.from;
    if (near.end - near.from > FEW_ALIKE)
        entry = block_lower_bound_near(b, near, key, stamp - it->loaded->stamp_base);
    if (entry == UINT32_MAX) {
        damaged(it, entry);
        return;
    }
    for (; entry < b->count; entry++) {
        show_at(it, entry);
        const bool there = !it->base.valid || entry >= near.end ||
                           version_compare(it->base.key, it->base.stamp, key, stamp) >= 0;
        if (!there)
            continue;
        block_walk_fetch_following(&it->walk, entry + WALK_LEAVING >= b->count);
        return;
    }
    show_first_from(it, it->block + 1);
}

static void iter_find(struct iter *base, struct slice key, uint64_t stamp)
{
    struct table_iter *it = self(base);
    const uint32_t block = it->approached ? it->near : index_find(it->loaded->index, key);
    const bool narrowed = it->approached && it->narrowed;
    it->approached = false;
    base->status = TAMIZ_OK;
    if (block == index_count(it->loaded->index)) {
        let_go(it);
        return;
    }
    if (narrowed && stamp >= it->loaded->stamp_base) {
        show_near(it, key, stamp);
        return;
    }
    uint32_t entry;
    if (!find(it, key, stamp, block, &entry))
        return;
    const uint32_t count = it->held->block.count;
    if (entry < count) {
        show_at(it, entry);
        block_walk_fetch_following(&it->walk, entry + WALK_LEAVING >= count);
    } else
        show_first_from(it, block + 1);
}

static void iter_find_before(struct iter *base, struct slice key, uint64_t stamp)
{
    struct table_iter *it = self(base);
    const uint32_t block = index_find(it->loaded->index, key);
    base->status = TAMIZ_OK;
    if (block == index_count(it->loaded->index)) {
        show_last_before(it, block);
        return;
    }
    uint32_t entry;
    if (!find(it, key, stamp, block, &entry))
        return;
    if (entry > 0)
        show_at(it, entry - 1);
    else
        show_last_before(it, block);
}

static void iter_forward(struct iter *base)
{
    struct table_iter *it = self(base);
    if (!base->valid)
        return;
    const uint32_t entry = it->walk.entry + 1;
    if (__builtin_expect(entry == it->held->block.count, 0)) {
        show_first_from(it, it->block + 1);
        return;
    }
    show_at(it, entry);
    if (base->valid)
        block_walk_fetch_onwards(&it->walk);
}

static void iter_back(struct iter *base)
{
    struct table_iter *it = self(base);
    if (!base->valid)
        return;
    if (it->walk.entry > 0)
        show_at(it, it->walk.entry - 1);
    else
        show_last_before(it, it->block);
}

static void iter_stepped(struct iter *base)
{
    struct table_iter *it = self(base);
    show(it, block_walk_stamp(&it->walk));
}

static void iter_done(struct iter *base)
{
    struct table_iter *it = self(base);
    const struct alloc *alloc = it->table->world->alloc;
    let_go(it);
    buf_free(&it->walk.key);
    read_ahead_free(&it->ahead);
    mem_free(alloc, it, sizeof *it);
}

static void iter_resting(struct iter *base)
{
    struct table_iter *it = self(base);
    let_go(it);
    it->approached = false;
    read_ahead_free(&it->ahead);
    if (it->walk.key.capacity > KEY_ROOM_KEPT)
        buf_free(&it->walk.key);
}

static const struct iter_ops table_iter_ops = {.seek_first = iter_first,
                                               .seek_last = iter_last,
                                               .seek = iter_find,
                                               .seek_before = iter_find_before,
                                               .next = iter_forward,
                                               .prev = iter_back,
                                               .close = iter_done,
                                               .approach = iter_approach_key,
                                               .rest = iter_resting,
                                               .refresh = iter_stepped};

/* From now on over this table, which is loaded. The walk is lent where no key stands there twice:
 * whoever steps it compares none. */
static void enter_table(struct table_iter *it, struct table *t)
{
    struct table_loaded *l = table_loaded_of(t);
    it->table = t;
    it->loaded = l;
    it->walk.newest = stamp_of(l->seq_max, 15);
    it->base.walk = l->properties.keys == l->properties.entries ? &it->walk : NULL;
}

tamiz_status table_iter_move(struct iter *base, struct table *t)
{
    struct table_iter *it = self(base);
    const tamiz_status st = table_load(base->op, t);
    let_go(it);
    buf_clear(&it->ahead.bytes);
    it->approached = false;
    base->status = st;
    if (st != TAMIZ_OK)
        return st;
    enter_table(it, t);
    return st;
}

struct iter *table_iter(struct op *op, struct table *t, const struct table_read *how)
{
    if (table_load(op, t) != TAMIZ_OK)
        return NULL;
    struct table_iter *it = mem_new_array(t->world->alloc, 1, sizeof *it);
    if (!it) {
        (void)op_fail_memory(op);
        return NULL;
    }
    it->base.ops = &table_iter_ops;
    it->base.op = op;
    it->how = *how;
    block_walk_init(&it->walk, t->world->alloc);
    enter_table(it, t);
    read_ahead_init(&it->ahead, t->world->alloc);
    return &it->base;
}
