/* SPDX-License-Identifier: MIT */
#include "db/place.h"

#include <stdlib.h>

static bool ranges_touch(const struct placed *a, const struct placed *b)
{
    return slice_compare(a->smallest, b->largest) <= 0 &&
           slice_compare(b->smallest, a->largest) <= 0;
}

static bool run_touches(const struct run *run, const struct placed *t)
{
    const uint32_t i = run_lower_bound(run, t->smallest, run_word(run, t->smallest));
    return i < run->count && slice_compare(run->tables[i]->smallest, t->largest) <= 0;
}

/* The level of the first run that the range touches; TAMIZ_LEVELS: none does. */
static uint32_t first_touched(const struct version *v, const struct placed *t)
{
    for (uint32_t r = 0; r < v->run_count; r++)
        if (run_touches(&v->runs[r], t))
            return v->runs[r].level;
    return TAMIZ_LEVELS;
}

/* The deepest level in use, or the first that may have as much as there will be. */
static uint32_t deepest_wanted(const struct version *v, const struct pick_options *o,
                               const struct placed *tables, size_t n)
{
    uint64_t bytes = 0;
    uint32_t used = 1, large = 1;
    for (size_t i = 0; i < n; i++)
        bytes += tables[i].bytes;
    for (uint32_t level = 0; level < TAMIZ_LEVELS; level++) {
        bytes += v->level_bytes[level];
        if (level > used && v->level_tables[level])
            used = level;
    }
    while (large < TAMIZ_LEVELS - 1 && pick_level_limit(o, large) < bytes)
        large++;
    return used > large ? used : large;
}

static int smallest_order(const void *a, const void *b)
{
    struct placed *const *x = a, *const *y = b;
    return slice_compare((*x)->smallest, (*y)->smallest);
}

/* Do two of the new tables touch each other? */
static tamiz_status any_touch(struct op *op, struct placed *tables, size_t n, bool *touch)
{
    struct placed **sorted = mem_new_array(op->alloc, n, sizeof(struct placed *));
    if (!sorted)
        return op_fail_memory(op);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &tables[i];
    qsort(sorted, n, sizeof(struct placed *), smallest_order);
    for (size_t i = 1; i < n; i++)
        *touch |= slice_compare(sorted[i - 1]->largest, sorted[i]->smallest) >= 0;
    mem_free(op->alloc, sorted, n * sizeof(struct placed *));
    return TAMIZ_OK;
}

/* The newest run of a level whose tables the new one touches none of; 0: the level is empty. */
static uint64_t run_to_join(const struct version *v, uint32_t level)
{
    for (uint32_t r = 0; level > 0 && r < v->run_count; r++)
        if (v->runs[r].level == level)
            return v->runs[r].id;
    return 0;
}

tamiz_status place_tables(struct op *op, const struct version *v, const struct pick_options *o,
                          struct placed *tables, size_t n)
{
    bool touch = false;
    const tamiz_status st = any_touch(op, tables, n, &touch);
    if (st != TAMIZ_OK)
        return st;
    const uint32_t deepest = deepest_wanted(v, o, tables, n);
    for (size_t i = 0; i < n; i++) {
        struct placed *t = &tables[i];
        uint32_t below = first_touched(v, t); /* must lie below it */
        t->group = 0;
        for (size_t k = 0; touch && k < i; k++)
            if (tables[k].level < below && ranges_touch(&tables[k], t))
                below = tables[k].level;
        t->level = below > deepest ? deepest : below ? below - 1 : 0;
        t->join = run_to_join(v, t->level);
        /* In level 0 it stands above every older one of this call that it touches. */
        for (size_t k = 0; touch && t->level == 0 && k < i; k++)
            if (tables[k].level == 0 && ranges_touch(&tables[k], t) && tables[k].group >= t->group)
                t->group = tables[k].group + 1;
    }
    return TAMIZ_OK;
}
