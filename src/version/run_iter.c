/* SPDX-License-Identifier: MIT
 *
 * A run as one iterator: its tables one after the other, one open at a time. One user key never
 * stands in two tables of a run, so that which table a search begins in follows from the key alone.
 */
#include "version/version.h"

struct run_iter {
    struct iter it; /* first: the seam hands this one out */
    const struct run *run;
    struct table_read how;
    struct iter *table; /* over tables[index]; NULL: none open */
    uint32_t index;
    uint32_t near;   /* the table that a seek that is approached goes to */
    bool approached; /* near is known */
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
static void show(struct run_iter *r)
{
    r->it.valid = r->table->valid;
    r->it.status = r->table->status;
    r->it.key = r->table->key;
    r->it.stamp = r->table->stamp;
    r->it.value = r->table->value;
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

/* Where the open table has nothing more, on to the first version of the next that has one. */
static void show_forward(struct run_iter *r)
{
    while (!r->table->valid && r->table->status >= 0 && r->index + 1 < r->run->count) {
        if (!open_table(r, r->index + 1))
            return;
        iter_seek_first(r->table);
    }
    show(r);
}

static void show_backward(struct run_iter *r)
{
    while (!r->table->valid && r->table->status >= 0 && r->index > 0) {
        if (!open_table(r, r->index - 1))
            return;
        iter_seek_last(r->table);
    }
    show(r);
}

static void run_seek_first(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    lose(r, TAMIZ_OK);
    if (r->run->count == 0 || !open_table(r, 0))
        return;
    iter_seek_first(r->table);
    show_forward(r);
}

static void run_seek_last(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    lose(r, TAMIZ_OK);
    if (r->run->count == 0 || !open_table(r, r->run->count - 1))
        return;
    iter_seek_last(r->table);
    show_backward(r);
}

/* The table of the run is found first, then it is the table's affair. */
static void run_approach(struct iter *it, struct slice key, uint64_t stamp, unsigned step)
{
    struct run_iter *r = run_iter_of(it);
    if (step == 0) {
        r->near = run_lower_bound(r->run, key, run_word(r->run, key));
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
        r->approached ? r->near : run_lower_bound(r->run, key, run_word(r->run, key));
    r->approached = false;
    lose(r, TAMIZ_OK);
    if (index == r->run->count || !open_table(r, index))
        return;
    iter_seek(r->table, key, stamp);
    show_forward(r);
}

static void run_seek_before(struct iter *it, struct slice key, uint64_t stamp)
{
    struct run_iter *r = run_iter_of(it);
    const uint32_t index = run_lower_bound(r->run, key, run_word(r->run, key));
    if (index == r->run->count) {
        run_seek_last(it); /* all of the run lies before the key */
        return;
    }
    lose(r, TAMIZ_OK);
    if (!open_table(r, index))
        return;
    iter_seek_before(r->table, key, stamp);
    show_backward(r);
}

static void run_next(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    iter_next(r->table);
    show_forward(r);
}

static void run_prev(struct iter *it)
{
    struct run_iter *r = run_iter_of(it);
    iter_prev(r->table);
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

static const struct iter_ops run_ops = {.seek_first = run_seek_first,
                                        .seek_last = run_seek_last,
                                        .seek = run_seek,
                                        .seek_before = run_seek_before,
                                        .next = run_next,
                                        .prev = run_prev,
                                        .close = run_close,
                                        .approach = run_approach,
                                        .rest = run_rest};

struct iter *run_iter(struct op *op, const struct run *run, const struct table_read *how)
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
    return &r->it;
}
