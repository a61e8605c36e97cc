/* SPDX-License-Identifier: MIT
 *
 * What can still be read of a damaged table: block by block, each checked, the bad ones told and
 * left out. Every key that comes out stood in a block whose checksum is right, and they come in
 * order, so that they can be merged with others.
 */
#include <stdio.h>

#include "table/table_inside.h"

struct salvage {
    struct iter base;
    struct table *t;
    struct table_loaded *l;
    tamiz_report *report;
    struct cached_block *block; /* pinned; NULL: none */
    uint32_t next_block;
    uint32_t next_entry;
    struct buf key, last;
    uint64_t last_stamp;
    bool begun;
};

static void tell(struct salvage *s, uint64_t lost_bytes, const char *text)
{
    s->report->damaged++;
    s->report->lost_bytes += lost_bytes;
    if (s->report->find)
        s->report->find(s->report->ctx, text);
}

/* The next block that can be read; false: there is none. */
static bool enter_block(struct salvage *s)
{
    struct op *op = s->base.op;
    cached_block_unpin(s->block);
    s->block = NULL;
    s->next_entry = 0;
    while (s->next_block < index_count(s->l->index)) {
        const uint32_t block = s->next_block++;
        const bool clean = op->status == TAMIZ_OK;
        const tamiz_status st = table_read_checked(op, s->t, s->l, block, &s->block);
        s->report->blocks++;
        if (st == TAMIZ_OK)
            return true;
        if (st == TAMIZ_OUT_OF_MEMORY) {
            s->base.status = st;
            return false;
        }
        tell(s, extent_whole(index_extent(s->l->index, block)), op->text);
        if (clean)
            op_forgive(op);
    }
    return false;
}

/* Is the entry behind the one before? */
static bool in_order(const struct salvage *s, uint64_t stamp)
{
    return !s->begun ||
           version_compare(buf_slice(&s->last), s->last_stamp, buf_slice(&s->key), stamp) < 0;
}

/* The entry that stands next in the block, into the base; false: it can't be used. */
static bool take_entry(struct salvage *s)
{
    struct block_entry e;
    char text[OP_TEXT_MAX];
    const uint32_t i = s->next_entry++;
    const bool whole = block_entry_at(&s->block->block, i, &e);
    if (whole) {
        buf_clear(&s->key);
        buf_slice_append(&s->key, e.shared);
        buf_slice_append(&s->key, e.suffix);
        if (s->key.failed) {
            s->base.status = op_fail_memory(s->base.op);
            return false;
        }
    }
    if (!whole || !in_order(s, e.stamp)) {
        (void)snprintf(text, sizeof text, "%s: block %u: entry %u is %s", s->t->path,
                       s->next_block - 1, i, whole ? "out of order" : "damaged");
        tell(s, 0, text);
        return false;
    }
    buf_clear(&s->last);
    buf_slice_append(&s->last, buf_slice(&s->key));
    if (s->last.failed) {
        s->base.status = op_fail_memory(s->base.op);
        return false;
    }
    s->last_stamp = e.stamp;
    s->begun = true;
    s->base.key = buf_slice(&s->key);
    s->base.stamp = e.stamp;
    s->base.value = e.value;
    return true;
}

static void step(struct iter *base)
{
    struct salvage *s = (struct salvage *)base;
    base->valid = false;
    while (!base->valid && base->status == TAMIZ_OK) {
        if (s->block && s->next_entry < s->block->block.count)
            base->valid = take_entry(s);
        else if (!enter_block(s))
            return;
    }
}

static void seek_first(struct iter *base)
{
    struct salvage *s = (struct salvage *)base;
    cached_block_unpin(s->block);
    s->block = NULL;
    s->next_block = s->next_entry = 0;
    s->begun = false;
    base->status = TAMIZ_OK;
    step(base);
}

static void close_it(struct iter *base)
{
    struct salvage *s = (struct salvage *)base;
    cached_block_unpin(s->block);
    buf_free(&s->key);
    buf_free(&s->last);
    mem_free(s->t->world->alloc, s, sizeof *s);
}

static const struct iter_ops salvage_ops = {
    .seek_first = seek_first, .next = step, .close = close_it};

struct iter *table_salvage(struct op *op, struct table *t, tamiz_report *report)
{
    if (table_load(op, t) != TAMIZ_OK)
        return NULL;
    struct salvage *s = mem_new_array(t->world->alloc, 1, sizeof *s);
    if (!s) {
        op_fail_memory(op);
        return NULL;
    }
    s->base = (struct iter){.ops = &salvage_ops, .op = op};
    s->t = t;
    s->l = table_loaded_of(t);
    s->report = report;
    s->key = buf_init(t->world->alloc);
    s->last = buf_init(t->world->alloc);
    return &s->base;
}
