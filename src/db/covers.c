/* SPDX-License-Identifier: MIT */
#include "db/covers.h"

enum { CHUNK_LEAST = 1 << 10, CHUNK_MOST = 1 << 18 };

/* The pieces of one source on their way into the common skyline. */
struct gathering {
    struct arena *arena;
    const struct slice *lower, *upper;
    const struct skyline *all;
    uint32_t source;
    bool failed;
};

/* Cut to the bounds; nothing may be left. Sources come oldest first, so that the newer ones lie on
 * top. */
static void gather(void *ctx, const struct cover *piece)
{
    struct gathering *g = ctx;
    struct cover c = *piece;
    c.source = g->source;
    if (g->lower && slice_compare(c.from, *g->lower) < 0)
        c.from = *g->lower;
    if (g->upper && slice_compare(c.to, *g->upper) > 0)
        c.to = *g->upper;
    if (g->failed || slice_compare(c.from, c.to) >= 0)
        return;
    g->all = skyline_add(g->arena, g->all, &c);
    g->failed = !g->all;
}

static tamiz_status gather_table(struct op *op, struct gathering *g, struct table *t, uint64_t seq)
{
    const struct ranges *r;
    const tamiz_status st = table_ranges(op, t, &r);
    if (st != TAMIZ_OK)
        return st;
    for (size_t i = g->lower ? ranges_from(r, *g->lower) : 0; i < r->count; i++) {
        if (g->upper && slice_compare(r->list[i].from, *g->upper) >= 0)
            break;
        const struct cover c = {r->list[i].from, r->list[i].to, range_newest(&r->list[i], seq), 0};
        if (c.seq)
            gather(g, &c);
    }
    return TAMIZ_OK;
}

static tamiz_status gather_all(struct op *op, struct gathering *g, const struct view *v,
                               uint64_t seq)
{
    tamiz_status st = TAMIZ_OK;
    for (uint32_t r = v->version->run_count; r-- > 0;) {
        const struct run *run = &v->version->runs[r];
        g->source = v->memtable_count + r;
        for (uint32_t i = 0; v->version->ranged && i < run->count; i++)
            if (run->tables[i]->ranges)
                TRY(gather_table(op, g, run->tables[i]->table, seq));
    }
    for (uint32_t m = v->memtable_count; m-- > 0;) {
        g->source = m;
        skyline_walk(memtable_skyline(v->memtables[m]->memtable, seq), gather, g);
    }
    if (g->failed)
        st = op_fail_memory(op);
done:
    return st;
}

static void keep(void *ctx, const struct cover *piece)
{
    struct covers *c = ctx;
    c->list[c->count++] = *piece;
}

static void count(void *ctx, const struct cover *piece)
{
    struct covers *c = ctx;
    (void)piece;
    c->room++;
}

static void fill_newest(const struct view *v, uint64_t *newest)
{
    for (uint32_t m = 0; m < v->memtable_count; m++)
        newest[m] = memtable_newest(v->memtables[m]->memtable);
    for (uint32_t r = 0; r < v->version->run_count; r++) {
        const struct run *run = &v->version->runs[r];
        uint64_t most = 0;
        for (uint32_t i = 0; i < run->count; i++)
            most = run->tables[i]->seq_max > most ? run->tables[i]->seq_max : most;
        newest[v->memtable_count + r] = most;
    }
}

tamiz_status covers_init(struct op *op, const struct alloc *alloc, const struct view *v,
                         uint64_t seq, const struct slice *lower, const struct slice *upper,
                         struct covers *c)
{
    *c = (struct covers){.arena = arena_init(alloc, CHUNK_LEAST, CHUNK_MOST)};
    struct gathering g = {&c->arena, lower, upper, NULL, 0, false};
    const tamiz_status st = gather_all(op, &g, v, seq);
    if (st != TAMIZ_OK || !g.all)
        return st;
    c->sources = v->memtable_count + v->version->run_count;
    skyline_walk(g.all, count, c);
    c->list = mem_new_array(alloc, c->room, sizeof *c->list);
    c->newest = mem_new_array(alloc, c->sources, sizeof *c->newest);
    if (!c->list || !c->newest)
        return op_fail_memory(op);
    skyline_walk(g.all, keep, c);
    fill_newest(v, c->newest);
    arena_free(&c->arena); /* the nodes; keys are not in it */
    return TAMIZ_OK;
}

bool covers_possible(const struct view *v)
{
    bool any = v->version->ranged;
    for (uint32_t m = 0; m < v->memtable_count; m++)
        any |= memtable_skyline(v->memtables[m]->memtable, SEQ_MAX) != NULL;
    return any;
}

void covers_free(struct covers *c, const struct alloc *alloc)
{
    mem_free(alloc, c->list, c->room * sizeof *c->list);
    mem_free(alloc, c->newest, c->sources * sizeof *c->newest);
    if (c->arena.alloc)
        arena_free(&c->arena);
    *c = (struct covers){.count = 0};
}

static bool is_over(const struct cover *piece, struct slice key)
{
    return slice_compare(key, piece->from) >= 0 && slice_compare(key, piece->to) < 0;
}

const struct cover *covers_find(struct covers *c, struct slice key)
{
    if (c->at < c->count && is_over(&c->list[c->at], key))
        return &c->list[c->at];
    size_t low = 0, high = c->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (slice_compare(c->list[middle].to, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    c->at = low;
    return low < c->count && is_over(&c->list[low], key) ? &c->list[low] : NULL;
}
