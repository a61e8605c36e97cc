/* SPDX-License-Identifier: MIT
 *
 * A run as one iterator: its tables one after the other, one open at a time. One user key never
 * stands in two tables of a run, so that which table a search begins in follows from the key alone.
 *
 * With a range the tables that have nothing in it are as if they were not in the run: whichever way
 * the walk goes, the same ones, so that it is an iterator over the others.
 */
#include "version/version.h"

struct run_iter {
    struct iter it; /* first: the seam hands this one out */
    const struct run *run;
    struct table_read how;
    struct iter *table; /* over tables[index]; NULL: none open */
    uint32_t index;
    uint32_t near;                  /* the table that a seek that is approached goes to */
    bool approached;                /* near is known */
    const struct read_range *range; /* NULL: all of the run */
    uint32_t asked;                 /* the table that was asked about the range last */
    bool admitted;                  /* it may have something in it */
    bool unproven;                  /* its filter said so, and whether rightly is not known yet */
};

static struct run_iter *run_iter_of(struct iter *it)
{
    return (struct run_iter *)(void *)it;
}

static void lose(struct run_iter *r, tamiz_status status)
{
    r->it.valid = false;
    r->it.status = status;
}

/* The table's place becomes ours. */
static inline void show(struct run_iter *r)
{
    r->it.valid = r->table->valid;
    r->it.status = r->table->status;
    r->it.key = r->table->key;
    r->it.stamp = r->table->stamp;
    r->it.value = r->table->value;
    r->it.walk = r->table->walk;
}

/* false: it can't be opened, which our status then says. */
static bool open_table(struct run_iter *r, uint32_t index)
{
    struct table *table = r->run->tables[index]->table;
    bool done = r->table && r->index == index;
    if (!done && r->table)
        done = table_iter_move(r->table, table) == TAMIZ_OK;
    else if (!done)
        done = (r->table = table_iter(r->it.op, table, &r->how)) != NULL;
    if (done)
        r->index = index;
    else
        lose(r, r->it.op->status < 0 ? r->it.op->status : TAMIZ_OUT_OF_MEMORY);
    return done;
}

/* ---- the range ---- */

/* May the table have something in the range? Asked once for as long as the walk stays there. */
static bool admits(struct run_iter *r, uint32_t index)
{
    const struct table_meta *meta = r->run->tables[index];
    enum table_verdict verdict;
    if (!r->range || r->asked == index)
        return !r->range || r->admitted;
    if (range_ends_before(r->range, meta->smallest) || range_begins_behind(r->range, meta->largest))
        return false;
    if (table_ask_range(r->it.op, meta->table, &r->how, r->range, &verdict) != TAMIZ_OK)
        return true; /* it can't be opened: whoever goes there says so */
    r->asked = index;
    r->admitted = verdict != TABLE_NO;
    r->unproven = verdict == TABLE_MAYBE;
    return r->admitted;
}

/* The first table from `index` on that may have something in the range; count: none. */
static uint32_t admitted_from(struct run_iter *r, uint32_t index)
{
    for (; index < r->run->count; index++) {
        if (admits(r, index))
            return index;
        if (range_ends_before(r->range, r->run->tables[index]->smallest))
            break;
    }
    return r->run->count;
}

/* The last table before `index` that may; count: none. */
static uint32_t admitted_before(struct run_iter *r, uint32_t index)
{
    while (index-- > 0) {
        if (admits(r, index))
            return index;
        if (range_begins_behind(r->range, r->run->tables[index]->largest))
            break;
    }
    return r->run->count;
}

/* The open table was searched from one end of the range on: was its filter's maybe right? */
static void judge(struct run_iter *r)
{
    const struct iter *t = r->table;
    if (!r->unproven || r->asked != r->index)
        return;
    r->unproven = false;
    const bool inside =
        t->valid && !range_ends_before(r->range, t->key) && !range_begins_behind(r->range, t->key);
    if (t->status == TAMIZ_OK && !inside)
        table_range_was_empty(r->it.op, &r->how);
}

/* ---- positions ---- */

/* Where the open table has nothing more, on to the first version of the next that has one. */
static void show_forward(struct run_iter *r)
{
    while (!r->table->valid && r->table->status >= 0) {
        const uint32_t next = admitted_from(r, r->index + 1);
        if (next == r->run->count)
            break;
        if (!open_table(r, next))
            return;
        iter_seek_first(r->table);
        judge(r);
    }
    show(r);
}

static void show_backward(struct run_iter *r)
{
    while (!r->table->valid && r->table->status >= 0) {
        const uint32_t next = admitted_before(r, r->index);
        if (next == r->run->count)
            break;
        if (!open_table(r, next))
            return;
        iter_seek_last(r->table);
        judge(r);
    }
    show(r);
}

/* The first version of the first table from `index` on that has one. */
static void show_first_from(struct run_iter *r, uint32_t index)
{
    const uint32_t first = admitted_from(r, index);
    lose(r, TAMIZ_OK);
    if (first == r->run->count || !open_table(r, first))
        return;
    iter_seek_first(r->table);
    judge(r);
    show_forward(r);
}

/* The last version of the last table before `index` that has one. */
static void show_last_before(struct run_iter *r, uint32_t index)
{
    const uint32_t last = admitted_before(r, index);
    lose(r, TAMIZ_OK);
    if (last == r->run->count || !open_table(r, last))
        return;
    iter_seek_last(r->table);
    judge(r);
    show_backward(r);
}

static void run_seek_first(struct iter *it)
{
    show_first_from(run_iter_of(it), 0);
}

static void run_seek_last(struct iter *it)
{
    show_last_before(run_iter_of(it), run_iter_of(it)->run->count);
}

/* The table of the run is found first, then it is the table's affair. */
static void run_approach(struct iter *it, struct slice key, uint64_t stamp, unsigned step)
{
    struct run_iter *r = run_iter_of(it);
    if (step == 0) {
        r->near = admitted_from(r, run_lower_bound(r->run, key, run_word(r->run, key)));
        r->approached = true;
        if (r->near < r->run->count && !open_table(r, r->near))
            r->approached = false;
    }
    if (r->approached && r->near < r->run->count)
        iter_approach(r->table, key, stamp, step);
}

static void run_seek(struct iter *it, struct slice key, uint64_t stamp)
{
    struct run_iter *r = run_iter_of(it);
    const uint32_t index =
        r->approached ? r->near
                      : admitted_from(r, run_lower_bound(r->run, key, run_word(r->run, key)));
    r->approached = false;
    lose(r, TAMIZ_OK);
    if (index == r->run->count || !open_table(r, index))
        return;
    const bool whole = r->unproven && slice_compare(key, r->range->lower) <= 0;
    iter_seek(r->table, key, stamp); /* the key may be borrowed from what moves */
    if (whole)
        judge(r);
    show_forward(r);
}

static void run_seek_before(struct iter *it, struct slice key, uint64_t stamp)
{
    struct run_iter *r = run_iter_of(it);
    const uint32_t index = run_lower_bound(r->run, key, run_word(r->run, key));
    if (index == r->run->count || !admits(r, index)) {
        show_last_before(r, index); /* all of the run that counts lies before the key */
        return;
    }
    lose(r, TAMIZ_OK);
    if (!open_table(r, index))
        return;
    const bool whole = r->unproven && range_ends_before(r->range, key);
    iter_seek_before(r->table, key, stamp);
    if (whole)
        judge(r);
    show_backward(r);
}

static void run_next(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    iter_next(r->table);
    if (__builtin_expect(r->table->valid, 1))
        show(r);
    else
        show_forward(r);
}

static void run_prev(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    iter_prev(r->table);
    if (__builtin_expect(r->table->valid, 1))
        show(r);
    else
        show_backward(r);
}

static void run_close(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    const struct alloc *alloc = it->op->alloc;
    iter_close(r->table);
    mem_free(alloc, r, sizeof *r);
}

static void run_rest(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    r->approached = false;
    if (r->table)
        iter_rest(r->table);
}

static void run_refresh(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    iter_refresh(r->table);
    show(r);
}

static const struct iter_ops run_ops = {.seek_first = run_seek_first,
                                        .seek_last = run_seek_last,
                                        .seek = run_seek,
                                        .seek_before = run_seek_before,
                                        .next = run_next,
                                        .prev = run_prev,
                                        .close = run_close,
                                        .approach = run_approach,
                                        .rest = run_rest,
                                        .refresh = run_refresh};

struct iter *run_iter(struct op *op, const struct run *run, const struct table_read *how,
                      const struct read_range *range)
{
    struct run_iter *r = mem_new_array(op->alloc, 1, sizeof *r);
    if (!r) {
        op_fail_memory(op);
        return NULL;
    }
    r->it.ops = &run_ops;
    r->it.op = op;
    r->run = run;
    r->how = *how;
    r->range = range;
    r->asked = UINT32_MAX;
    return &r->it;
}
