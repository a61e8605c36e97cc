/* SPDX-License-Identifier: MIT */
#include "compact/pick.h"

#include "compact/plan.h"

enum {
    CLUSTER_MOST = 64, /* tables of one level that are merged at once, where it can be cut */
    /* Tables of the newest run that a piece begins with. Cuts of the runs do not meet, so that of
     * the run below the tables at a piece's end are written twice: a fifth with four runs. */
    PIECE = 8,
};

/* One level down from the newest run taken, `r`; the deepest has none below. */
static struct place go_down(struct plan *p, uint32_t r)
{
    const uint32_t below = p->v->runs[r].level + 1;
    if (below > LEVEL_DEEPEST)
        return plan_join_run(p, r);
    if (p->o->policy == TAMIZ_COMPACTION_OFF || shape_is_one_run(p->v, p->o, below))
        return plan_join_level(p, below);
    return (struct place){below, true, 0};
}

/* Tables of a run and what must go with them. */
static tamiz_status plan_tables(struct plan *p, uint32_t r, struct span tables)
{
    choice_clear(&p->c);
    choice_take(&p->c, r, tables);
    choice_cover_older(&p->c, level_runs_of(p->v, p->v->runs[r].level));
    return plan_finish(p, go_down(p, r), MAY_MOVE);
}

static tamiz_status plan_table(struct plan *p, uint32_t r, uint32_t i)
{
    return plan_tables(p, r, (struct span){i, i + 1});
}

/* The table and all of its level that it hangs together with, newer and older: one merge in the
 * place of several. A table that overlaps nothing moves. TAMIZ_BUSY: too much for one merge. */
static tamiz_status plan_cluster(struct plan *p, uint32_t r, uint32_t i)
{
    const struct level_runs runs = level_runs_of(p->v, p->v->runs[r].level);
    choice_clear(&p->c);
    choice_take(&p->c, r, (struct span){i, i + 1});
    choice_cover_all(&p->c, runs);
    if (p->v->runs[r].level > 0 && p->c.count > CLUSTER_MOST)
        return TAMIZ_BUSY;
    return plan_finish(p, go_down(p, runs.from), MAY_MOVE);
}

/* A table that overlaps nothing of its level and the next moves into a run that is there,
 * whichever: keys put in order are not rewritten for being in many runs. */
static tamiz_status plan_loner(struct plan *p, struct level_runs runs)
{
    const uint32_t level = p->v->runs[runs.from].level + 1;
    const struct level_runs below = level_runs_of(p->v, level);
    const uint64_t run = below.from < below.to ? p->v->runs[below.from].id : 0;
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t r = runs.to; r-- > runs.from;)
        for (uint32_t i = 0; i < p->v->runs[r].count && st == TAMIZ_NOT_FOUND; i++) {
            choice_clear(&p->c);
            choice_take(&p->c, r, (struct span){i, i + 1});
            choice_cover_all(&p->c, (struct level_runs){runs.from, below.to});
            if (p->c.count == 1)
                st = plan_finish(p, (struct place){level, false, run}, MAY_MOVE);
        }
    return st;
}

/* All runs into a new one a level down, but for what needs no merging. */
static tamiz_status plan_whole_level(struct plan *p, struct level_runs runs)
{
    if (p->v->runs[runs.from].level < LEVEL_DEEPEST) {
        const tamiz_status st = plan_loner(p, runs);
        if (st != TAMIZ_NOT_FOUND)
            return st;
    }
    choice_clear(&p->c);
    choice_take_all(&p->c, runs);
    return plan_finish(p, go_down(p, runs.from), MAY_MOVE);
}

/* A level of several runs that is meant to be one: what is not in its oldest run goes there. */
static tamiz_status plan_unite(struct plan *p, struct level_runs runs)
{
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t r = runs.from; r + 1 < runs.to; r++)
        for (uint32_t i = 0; i < p->v->runs[r].count && st == TAMIZ_NOT_FOUND; i++) {
            choice_clear(&p->c);
            choice_take(&p->c, r, (struct span){i, i + 1});
            st = plan_finish(p, plan_join_level(p, p->v->runs[r].level), MAY_MOVE);
        }
    return st;
}

/* The table behind the last one taken, round and round: each part of the keys has its turn.
 *     run a..c | e..k | p..t, cursor "k": p..t;  cursor "t" or none: a..c
 * `width` tables at a time, as far as there are so many. */
static tamiz_status plan_next(struct plan *p, uint32_t r, uint32_t width, struct buf *cursor)
{
    const struct run *run = &p->v->runs[r];
    const struct slice last = buf_slice(cursor);
    uint32_t first = 0;
    if (last.size)
        first = run_lower_bound(run, last, run_word(run, last));
    if (first < run->count && slice_equal(run->tables[first]->largest, last))
        first++;
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t n = 0; n < run->count && st == TAMIZ_NOT_FOUND; n++) {
        const uint32_t i = (first + n) % run->count;
        const uint32_t end = i + width < run->count ? i + width : run->count;
        st = plan_tables(p, r, (struct span){i, end});
        if (st != TAMIZ_OK)
            continue;
        buf_clear(cursor);
        buf_slice_append(cursor, run->tables[end - 1]->largest);
        st = cursor->failed ? op_fail_memory(p->op) : TAMIZ_OK;
    }
    return st;
}

/*
 * A piece of the keys out of the oldest size_ratio runs of a level; what is newer stays above. The
 * level has as many runs as before until the newest of those is used up.
 *     newest of four  |-1-|-2-| … |-8-|-9-| …     1 to 8, of each older run what overlaps that
 */
static tamiz_status plan_piece(struct plan *p, struct level_runs runs, struct buf *cursor)
{
    const uint32_t most = p->o->size_ratio;
    const uint32_t r = runs.to - runs.from > most ? runs.to - most : runs.from;
    return plan_next(p, r, PIECE, cursor);
}

static tamiz_status plan_clusters(struct plan *p, struct level_runs runs, struct buf *cursor)
{
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t r = runs.to; r-- > runs.from;)
        for (uint32_t i = 0; i < p->v->runs[r].count && st == TAMIZ_NOT_FOUND; i++)
            st = plan_cluster(p, r, i);
    return st == TAMIZ_BUSY ? plan_piece(p, runs, cursor) : st;
}

static tamiz_status plan_level(struct plan *p, uint32_t level, struct buf *cursor)
{
    const struct level_runs runs = level_runs_of(p->v, level);
    if (shape_is_one_run(p->v, p->o, level))
        return runs.to - runs.from > 1 ? plan_unite(p, runs) : plan_next(p, runs.from, 1, cursor);
    if (level < LEVEL_DEEPEST && shape_is_one_run(p->v, p->o, level + 1))
        return plan_clusters(p, runs, cursor);
    return plan_whole_level(p, runs);
}

/* A table of tombstones: rewritten where it is, without them, if nothing older is left below it;
 * else it sinks. In the deepest level that has any table it takes along what is older there. */
static tamiz_status plan_grave(struct plan *p, uint32_t r, uint32_t i)
{
    choice_clear(&p->c);
    choice_take(&p->c, r, (struct span){i, i + 1});
    if (choice_is_bottom(&p->c) || p->v->runs[r].level == shape_last_level(p->v))
        return plan_finish(p, plan_join_run(p, r), REWRITE);
    return plan_table(p, r, i);
}

static tamiz_status plan_graves(struct plan *p)
{
    tamiz_status st = TAMIZ_NOT_FOUND;
    const uint32_t first = shape_has_grave(p->v, p->o, 0) ? 0 : level_runs_of(p->v, 1).from;
    for (uint32_t r = first; r < p->v->run_count; r++)
        for (uint32_t i = 0; i < p->v->runs[r].count && st == TAMIZ_NOT_FOUND; i++)
            if (shape_is_grave(p->v, p->o, p->v->runs[r].tables[i]))
                st = plan_grave(p, r, i);
    return st;
}

/* ---- what lies inside a range delete ---- */

/* Does each key from smallest to largest lie under a range delete newer than seq_max that everyone
 * sees? Pieces may follow each other without a gap. */
static bool ranges_hide(const struct ranges *ranges, const struct pick_options *o,
                        const struct table_meta *t)
{
    size_t i = ranges_from(ranges, t->smallest);
    struct slice reached = t->smallest;
    for (; i < ranges->count && slice_compare(ranges->list[i].from, reached) <= 0; i++) {
        if (range_newest(&ranges->list[i], o->oldest_snapshot) <= t->seq_max)
            return false;
        reached = ranges->list[i].to;
        if (slice_compare(t->largest, reached) < 0)
            return true;
    }
    return false;
}

/* Tables of older runs that those of `above` hide: each is seen. false: enough was seen. */
static bool see_hidden(const struct version *v, uint32_t r, const struct table_meta *above,
                       const struct pick_options *o, const struct pick_busy *busy,
                       bool (*see)(void *ctx, struct table_meta *hidden), void *ctx)
{
    const struct ranges *ranges = above->table ? table_ranges_near(above->table) : NULL;
    for (r++; ranges && r < v->run_count; r++) {
        const struct run *run = &v->runs[r];
        uint32_t i = run_lower_bound(run, above->smallest, run_word(run, above->smallest));
        for (; i < run->count && slice_compare(run->tables[i]->largest, above->largest) <= 0; i++)
            if (ranges_hide(ranges, o, run->tables[i]) &&
                !(busy && busy->busy && busy->busy(busy->ctx, run->tables[i]->number)) &&
                !see(ctx, run->tables[i]))
                return false;
    }
    return true;
}

static bool see_all_hidden(const struct version *v, const struct pick_options *o,
                           const struct pick_busy *busy,
                           bool (*see)(void *ctx, struct table_meta *hidden), void *ctx)
{
    for (uint32_t r = 0; v->ranged && r < v->run_count; r++)
        for (uint32_t i = 0; i < v->runs[r].count; i++)
            if (v->runs[r].tables[i]->ranges &&
                !see_hidden(v, r, v->runs[r].tables[i], o, busy, see, ctx))
                return false;
    return true;
}

static bool see_one(void *ctx, struct table_meta *hidden)
{
    (void)ctx, (void)hidden;
    return false;
}

bool pick_dead(const struct version *v, const struct pick_options *o, const struct pick_busy *busy)
{
    return o->policy != TAMIZ_COMPACTION_OFF && !see_all_hidden(v, o, busy, see_one, NULL);
}

/* Once each: two range deletes may hide the same one. */
static bool see_dead(void *ctx, struct table_meta *hidden)
{
    struct job *j = ctx;
    for (size_t i = 0; i < job_count(j); i++)
        if (job_input(j, i) == hidden)
            return true;
    buf_append(&j->inputs, &hidden, sizeof hidden);
    return !j->inputs.failed;
}

static tamiz_status plan_drop(struct plan *p)
{
    struct job *j = p->j;
    if (!p->v->ranged)
        return TAMIZ_NOT_FOUND;
    buf_clear(&j->inputs);
    buf_clear(&j->smallest);
    buf_clear(&j->largest);
    (void)see_all_hidden(p->v, p->o, p->busy, see_dead, j);
    if (j->inputs.failed)
        return op_fail_memory(p->op);
    if (job_count(j) == 0)
        return TAMIZ_NOT_FOUND;
    j->drop = true;
    j->move = j->new_run = j->bottom = false;
    j->output_level = TAMIZ_LEVELS; /* writes nowhere: in nobody's way */
    j->output_run = 0;
    j->score = 1;
    return TAMIZ_OK;
}

static tamiz_status plan_most_urgent(struct plan *p, struct buf cursors[TAMIZ_LEVELS])
{
    double scores[TAMIZ_LEVELS];
    const tamiz_status dropped = plan_drop(p);
    if (dropped != TAMIZ_NOT_FOUND)
        return dropped;
    for (uint32_t level = 0; level < TAMIZ_LEVELS; level++)
        scores[level] = shape_score(p->v, p->o, level);
    for (;;) {
        uint32_t most = 0;
        for (uint32_t level = 1; level < TAMIZ_LEVELS; level++)
            if (scores[level] > scores[most])
                most = level;
        if (scores[most] < 1)
            break;
        const tamiz_status st = plan_level(p, most, &cursors[most]);
        p->j->score = scores[most];
        if (st != TAMIZ_NOT_FOUND)
            return st;
        scores[most] = 0; /* busy: the next */
    }
    p->j->score = 1;
    const tamiz_status st = plan_graves(p);
    if (st != TAMIZ_NOT_FOUND || !p->o->idle)
        return st;
    p->j->score = 0;
    const tamiz_status rest = plan_rest(p);
    p->j->idle = rest == TAMIZ_OK;
    return rest;
}

tamiz_status pick_auto(struct op *op, const struct version *v, const struct pick_options *o,
                       const struct pick_busy *busy, struct buf cursors[TAMIZ_LEVELS],
                       struct job *j)
{
    struct plan p = {.op = op, .v = v, .o = o, .busy = busy, .j = j};
    j->idle = false;
    if (o->policy == TAMIZ_COMPACTION_OFF)
        return TAMIZ_NOT_FOUND;
    tamiz_status st = choice_init(op, &p.c, v);
    if (st != TAMIZ_OK)
        return st;
    st = plan_most_urgent(&p, cursors);
    choice_free(&p.c);
    return st;
}

tamiz_status pick_table(struct op *op, const struct version *v, const struct pick_options *o,
                        const struct pick_busy *busy, uint32_t level, size_t index, struct job *j)
{
    struct plan p = {.op = op, .v = v, .o = o, .busy = busy, .j = j};
    if (level >= TAMIZ_LEVELS || index >= v->level_tables[level])
        return TAMIZ_NOT_FOUND;
    uint32_t r = level_runs_of(v, level).from;
    while (index >= v->runs[r].count)
        index -= v->runs[r++].count;
    tamiz_status st = choice_init(op, &p.c, v);
    if (st != TAMIZ_OK)
        return st;
    st = plan_table(&p, r, (uint32_t)index);
    j->score = shape_score(v, o, level);
    choice_free(&p.c);
    return st;
}

struct key_range {
    struct slice from, to;
    bool to_unbounded;
};

/* The stretch of a run that overlaps the range. */
static struct span run_overlap(const struct run *run, const struct key_range *range)
{
    struct span s = {run_lower_bound(run, range->from, run_word(run, range->from)), 0};
    for (s.to = s.from; s.to < run->count; s.to++)
        if (!range->to_unbounded && slice_compare(run->tables[s.to]->smallest, range->to) >= 0)
            break;
    return s;
}

/* Takes what overlaps the range, run by run from new to old, and what is older than that and
 * overlaps it; then all that overlaps in the deepest level met. */
static tamiz_status plan_range(struct plan *p, const struct key_range *range)
{
    uint32_t deepest = 0;
    for (uint32_t r = 0; r < p->v->run_count; r++) {
        const struct span s = run_overlap(&p->v->runs[r], range);
        if (s.to > s.from)
            deepest = p->v->runs[r].level;
    }
    for (uint32_t r = 0; r < p->v->run_count && p->v->runs[r].level <= deepest; r++) {
        choice_take(&p->c, r, run_overlap(&p->v->runs[r], range));
        (void)choice_cover(&p->c, r);
    }
    return plan_finish(p, plan_join_level(p, deepest ? deepest : 1), REWRITE);
}

tamiz_status pick_range(struct op *op, const struct version *v, const struct pick_options *o,
                        const struct pick_busy *busy, struct slice from, struct slice to,
                        bool to_unbounded, struct job *j)
{
    struct plan p = {.op = op, .v = v, .o = o, .busy = busy, .j = j};
    const struct key_range range = {from, to, to_unbounded};
    tamiz_status st = choice_init(op, &p.c, v);
    if (st != TAMIZ_OK)
        return st;
    st = plan_range(&p, &range);
    j->score = 0;
    choice_free(&p.c);
    return st;
}
