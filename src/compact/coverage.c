/* SPDX-License-Identifier: MIT */
#include "compact/coverage.h"

tamiz_status coverage_init(struct op *op, struct coverage *c, const struct version *v)
{
    *c = (struct coverage){.version = v};
    for (uint32_t r = 0; r < v->run_count; r++)
        c->tables += v->runs[r].count;
    if (c->tables == 0)
        return TAMIZ_OK;
    c->below = mem_new_array(op->alloc, c->tables, sizeof *c->below);
    if (!c->below)
        return op_fail_memory(op);
    double *at = c->below;
    for (uint32_t r = 0; r < v->run_count; r++) {
        double sum = 0;
        for (uint32_t i = 0; i < v->runs[r].count; i++) {
            *at++ = sum;
            sum += (double)v->runs[r].tables[i]->keys;
        }
        c->keys += sum;
    }
    return TAMIZ_OK;
}

void coverage_free(struct coverage *c, const struct alloc *alloc)
{
    mem_free(alloc, c->below, c->tables * sizeof *c->below);
    *c = (struct coverage){0};
}

/* How far into the table the key is: 0..1, by the first eight bytes in which the table's keys
 * differ. */
static double part_below(const struct table_meta *t, struct slice key)
{
    if (slice_compare(key, t->smallest) <= 0)
        return 0;
    if (slice_compare(key, t->largest) >= 0)
        return 1;
    const size_t skip = slice_common_prefix(t->smallest, t->largest);
    const uint64_t from = slice_prefix8(t->smallest, skip), to = slice_prefix8(t->largest, skip);
    const uint64_t at = slice_prefix8(key, skip);
    return to > from ? (double)(at - from) / (double)(to - from) : 0.5;
}

static double keys_below(const struct coverage *c, struct slice key)
{
    const double *below = c->below;
    double sum = 0;
    for (uint32_t r = 0; r < c->version->run_count; r++) {
        const struct run *run = &c->version->runs[r];
        const uint32_t i = run_lower_bound(run, key, run_word(run, key));
        const struct table_meta *t = run->tables[i < run->count ? i : run->count - 1];
        sum += below[i < run->count ? i : run->count - 1] + (double)t->keys * part_below(t, key);
        below += run->count;
    }
    return sum;
}

double coverage_of(const struct coverage *c, struct slice smallest, struct slice largest)
{
    return c->keys > 0 ? (keys_below(c, largest) - keys_below(c, smallest)) / c->keys : 0;
}
