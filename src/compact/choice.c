/* SPDX-License-Identifier: MIT */
#include "compact/choice.h"

tamiz_status choice_init(struct op *op, struct choice *c, const struct version *v)
{
    *c = (struct choice){.version = v};
    c->spans = mem_new_array(v->alloc, v->run_count, sizeof *c->spans);
    return c->spans ? TAMIZ_OK : op_fail_memory(op);
}

void choice_free(struct choice *c)
{
    mem_free(c->version->alloc, c->spans, c->version->run_count * sizeof *c->spans);
}

void choice_clear(struct choice *c)
{
    memset(c->spans, 0, c->version->run_count * sizeof *c->spans);
    c->count = 0;
}

static void widen(struct choice *c, const struct table_meta *t)
{
    if (c->count == 0 || slice_compare(t->smallest, c->smallest) < 0)
        c->smallest = t->smallest;
    if (c->count == 0 || slice_compare(t->largest, c->largest) > 0)
        c->largest = t->largest;
    c->count++;
}

void choice_take(struct choice *c, uint32_t run, struct span tables)
{
    c->spans[run] = tables;
    for (uint32_t i = tables.from; i < tables.to; i++)
        widen(c, c->version->runs[run].tables[i]);
}

void choice_take_all(struct choice *c, struct level_runs runs)
{
    for (uint32_t r = runs.from; r < runs.to; r++)
        choice_take(c, r, (struct span){0, c->version->runs[r].count});
}

bool choice_cover(struct choice *c, uint32_t r)
{
    const struct run *run = &c->version->runs[r];
    if (c->count == 0)
        return false;
    const struct slice smallest = c->smallest, largest = c->largest;
    struct span all = {run_lower_bound(run, smallest, run_word(run, smallest)), 0};
    for (all.to = all.from; all.to < run->count; all.to++)
        if (slice_compare(run->tables[all.to]->smallest, largest) > 0)
            break;
    const struct span had = c->spans[r];
    for (uint32_t i = all.from; i < all.to; i++)
        if (i < had.from || i >= had.to)
            widen(c, run->tables[i]);
    if (all.to > all.from)
        c->spans[r] = all; /* what was had overlaps as well */
    return all.to - all.from > had.to - had.from;
}

void choice_cover_all(struct choice *c, struct level_runs runs)
{
    for (bool grown = true; grown;) {
        grown = false;
        for (uint32_t r = runs.from; r < runs.to; r++)
            grown |= choice_cover(c, r);
    }
}

void choice_cover_older(struct choice *c, struct level_runs runs)
{
    uint32_t r = runs.from;
    while (r < runs.to && c->spans[r].from == c->spans[r].to)
        r++;
    for (r++; r < runs.to; r++)
        (void)choice_cover(c, r);
}

struct level_runs level_runs_of(const struct version *v, uint32_t level)
{
    struct level_runs runs = {0, 0};
    while (runs.from < v->run_count && v->runs[runs.from].level < level)
        runs.from++;
    runs.to = runs.from + v->level_runs[level];
    return runs;
}

bool choice_is_bottom(const struct choice *c)
{
    uint32_t r = 0;
    while (c->spans[r].from == c->spans[r].to)
        r++;
    for (; r < c->version->run_count; r++) {
        const struct run *run = &c->version->runs[r];
        uint32_t i = run_lower_bound(run, c->smallest, run_word(run, c->smallest));
        if (i == c->spans[r].from && c->spans[r].to > i)
            i = c->spans[r].to;
        if (i < run->count && slice_compare(run->tables[i]->smallest, c->largest) <= 0)
            return false;
    }
    return true;
}

tamiz_status choice_finish(struct op *op, const struct choice *c, const struct pick_busy *busy,
                           struct job *j)
{
    buf_clear(&j->inputs);
    buf_clear(&j->smallest);
    buf_clear(&j->largest);
    if (c->count == 0)
        return TAMIZ_NOT_FOUND;
    for (uint32_t r = 0; r < c->version->run_count; r++)
        for (uint32_t i = c->spans[r].from; i < c->spans[r].to; i++) {
            struct table_meta *const t = c->version->runs[r].tables[i];
            if (busy && busy->busy && busy->busy(busy->ctx, t->number))
                return TAMIZ_NOT_FOUND;
            buf_append(&j->inputs, &t, sizeof t);
        }
    buf_slice_append(&j->smallest, c->smallest);
    buf_slice_append(&j->largest, c->largest);
    j->bottom = choice_is_bottom(c);
    return j->inputs.failed || j->smallest.failed || j->largest.failed ? op_fail_memory(op)
                                                                       : TAMIZ_OK;
}
