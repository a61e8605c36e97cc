/* SPDX-License-Identifier: MIT */
#include "db/covers.h"

/* ---- what there is ---- */

static uint64_t run_newest(const struct run *run)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < run->count; i++)
        most = run->tables[i]->seq_max > most ? run->tables[i]->seq_max : most;
    return most;
}

/* Does the table have keys within the bounds? */
static bool is_within(const struct covers *c, const struct table_meta *t)
{
    return !(c->has_lower && slice_compare(t->largest, c->lower) < 0) &&
           !(c->has_upper && slice_compare(t->smallest, c->upper) >= 0);
}

static tamiz_status take_run(struct op *op, struct covers *c, const struct run *run,
                             struct covers_source *s, size_t *table_count)
{
    s->tables = c->tables + *table_count;
    for (uint32_t i = 0; i < run->count; i++) {
        const struct table_meta *t = run->tables[i];
        const struct ranges **to = &c->tables[*table_count];
        if (!t->ranges || !is_within(c, t))
            continue;
        const tamiz_status st = table_ranges(op, t->table, to);
        if (st != TAMIZ_OK)
            return st;
        *table_count += (*to)->count > 0;
    }
    s->table_count = (size_t)(c->tables + *table_count - s->tables);
    return TAMIZ_OK;
}

static size_t ranged_tables(const struct view *v)
{
    size_t n = 0;
    for (uint32_t i = 0; v->version->ranged && i < v->version->table_count; i++)
        n += v->version->tables[i]->ranges != 0;
    return n;
}

static tamiz_status take_sources(struct op *op, const struct view *v, struct covers *c)
{
    size_t tables = 0;
    for (uint32_t i = 0; i < c->sources; i++) {
        struct covers_source *s = &c->list[c->count];
        *s = (struct covers_source){.number = i};
        if (i < v->memtable_count) {
            const struct memtable *m = v->memtables[i]->memtable;
            c->newest[i] = memtable_newest(m);
            s->skyline = memtable_skyline(m, c->seq);
            s->newest = c->seq; /* it may have deletes that are newer than its versions */
        } else {
            const struct run *run = &v->version->runs[i - v->memtable_count];
            c->newest[i] = s->newest = run_newest(run);
            const tamiz_status st = c->tables_room ? take_run(op, c, run, s, &tables) : TAMIZ_OK;
            if (st != TAMIZ_OK)
                return st;
        }
        c->count += s->skyline || s->table_count;
    }
    return TAMIZ_OK;
}

bool covers_possible(const struct view *v)
{
    bool any = v->version->ranged;
    for (uint32_t m = 0; m < v->memtable_count; m++)
        any |= memtable_skyline(v->memtables[m]->memtable, SEQ_MAX) != NULL;
    return any;
}

tamiz_status covers_init(struct op *op, const struct alloc *alloc, const struct view *v,
                         uint64_t seq, const struct slice *lower, const struct slice *upper,
                         struct covers *c)
{
    *c = (struct covers){.seq = seq, .has_lower = lower != NULL, .has_upper = upper != NULL};
    if (!covers_possible(v))
        return TAMIZ_OK;
    if (lower)
        c->lower = *lower;
    if (upper)
        c->upper = *upper;
    c->sources = c->room = v->memtable_count + v->version->run_count;
    c->tables_room = ranged_tables(v);
    c->list = mem_new_array(alloc, c->room, sizeof *c->list);
    c->newest = mem_new_array(alloc, c->sources, sizeof *c->newest);
    c->tables = mem_new_array(alloc, c->tables_room + 1, sizeof *c->tables);
    if (!c->list || !c->newest || !c->tables)
        return op_fail_memory(op);
    return take_sources(op, v, c);
}

void covers_free(struct covers *c, const struct alloc *alloc)
{
    mem_free(alloc, c->list, c->room * sizeof *c->list);
    mem_free(alloc, c->newest, c->sources * sizeof *c->newest);
    mem_free(alloc, c->tables, (c->tables_room + 1) * sizeof *c->tables);
    *c = (struct covers){.count = 0};
}

/* ---- asked ---- */

/* The first table of which a piece ends above the key. */
static size_t tables_from(const struct covers_source *s, struct slice key)
{
    size_t low = 0, high = s->table_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct ranges *r = s->tables[middle];
        if (slice_compare(r->list[r->count - 1].to, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The source's first piece that ends above the key (false: none), and where the one before ends. */
static bool around(const struct covers *c, const struct covers_source *s, struct slice key,
                   struct cover *piece, struct slice *end)
{
    if (s->skyline) {
        const struct cover *p = skyline_around(s->skyline, key, end);
        if (p)
            *piece = *p;
        return p != NULL;
    }
    const size_t t = tables_from(s, key);
    const struct ranges *r = t < s->table_count ? s->tables[t] : NULL;
    const struct ranges *before = t ? s->tables[t - 1] : NULL;
    const size_t i = r ? ranges_from(r, key) : 0;
    *end = i ? r->list[i - 1].to : before ? before->list[before->count - 1].to : (struct slice){0};
    if (r)
        *piece = (struct cover){r->list[i].from, r->list[i].to, range_newest(&r->list[i], c->seq),
                                s->number};
    return r != NULL;
}

/* The stretch begins no earlier, or ends no later, than there. */
static void begin_at(struct covers *c, struct slice key)
{
    if (!c->has_from || slice_compare(c->near.from, key) < 0)
        c->near.from = key;
    c->has_from = true;
}

static void end_at(struct covers *c, struct slice key)
{
    if (!c->has_to || slice_compare(c->near.to, key) > 0)
        c->near.to = key;
    c->has_to = true;
}

/* What a source says of the key and its neighbours, laid below what newer ones said. */
static void lay_below(struct covers *c, const struct covers_source *s, struct slice key)
{
    struct cover piece = {.seq = 0};
    struct slice end = {NULL, 0};
    if (!around(c, s, key, &piece, &end)) {
        if (end.data)
            begin_at(c, end);
    } else if (slice_compare(key, piece.from) < 0) {
        end_at(c, piece.from);
        if (end.data)
            begin_at(c, end);
    } else {
        begin_at(c, piece.from);
        end_at(c, piece.to);
        if (piece.seq > c->near.seq) {
            c->near.seq = piece.seq;
            c->near.source = s->number;
        }
    }
}

/* Sources with nothing newer than what was found have no say in it. */
static void find_stretch(struct covers *c, struct slice key)
{
    c->near = (struct cover){.seq = 0};
    c->has_from = c->has_to = false;
    c->stretch++;
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].newest > c->near.seq)
            lay_below(c, &c->list[i], key);
    if (c->near.seq && c->has_lower)
        begin_at(c, c->lower);
    if (c->near.seq && c->has_upper)
        end_at(c, c->upper);
}

const struct cover *covers_find(struct covers *c, struct slice key)
{
    if (c->stretch == 0 || (c->has_from && slice_compare(key, c->near.from) < 0) ||
        (c->has_to && slice_compare(key, c->near.to) >= 0))
        find_stretch(c, key);
    return c->near.seq ? &c->near : NULL;
}
