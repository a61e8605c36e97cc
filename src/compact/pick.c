/* SPDX-License-Identifier: MIT */
#include "compact/pick.h"

#include "compact/choice.h"

enum {
    DEEPEST = TAMIZ_LEVELS - 1,
    /* The first level that may be a lazy tree's last. Were it level 1, each merge of level 0, whose
     * tables cover nearly all keys, would rewrite all of it in one job. */
    LAZY_LAST_LEAST = 2,
    TOMBSTONES_LEAST = 1000, /* fewer are not worth a merge of their own */
    CLUSTER_MOST = 64,       /* tables of one level that are merged at once, where it can be cut */
    /* Tables of the newest run that a piece begins with. Cuts of the runs do not meet, so that of
     * the run below the tables at a piece's end are written twice: a fifth with four runs. */
    PIECE = 8,
};

void job_init(struct job *j, const struct alloc *alloc)
{
    *j = (struct job){
        .inputs = buf_init(alloc), .smallest = buf_init(alloc), .largest = buf_init(alloc)};
}

void job_free(struct job *j)
{
    buf_free(&j->inputs);
    buf_free(&j->smallest);
    buf_free(&j->largest);
}

size_t job_count(const struct job *j)
{
    return j->inputs.size / sizeof(struct table_meta *);
}

struct table_meta *job_input(const struct job *j, size_t i)
{
    struct table_meta *t;
    memcpy(&t, j->inputs.data + i * sizeof t, sizeof t);
    return t;
}

/* ---- how urgent ---- */

/* memtable 64 MiB, level0_runs 4, size_ratio 10:  256 MiB, 256 MiB, 2.5 GiB, 25 GiB … */
uint64_t pick_level_limit(const struct pick_options *o, uint32_t level)
{
    uint64_t limit;
    if (__builtin_mul_overflow(o->memtable_bytes, o->level0_runs, &limit))
        return UINT64_MAX;
    for (uint32_t i = 1; i < level; i++)
        if (__builtin_mul_overflow(limit, o->size_ratio, &limit))
            return UINT64_MAX;
    return limit;
}

/* The deepest level that has tables, at least 1. */
static uint32_t last_level(const struct version *v)
{
    uint32_t level = DEEPEST;
    while (level > 1 && v->level_tables[level] == 0)
        level--;
    return level;
}

/* Whether the level is meant to be one run. */
static bool is_one_run(const struct version *v, const struct pick_options *o, uint32_t level)
{
    if (level == 0 || o->policy == TAMIZ_COMPACTION_TIERED)
        return false;
    if (o->policy != TAMIZ_COMPACTION_LAZY)
        return true;
    return level >= LAZY_LAST_LEAST && level >= last_level(v);
}

/*
 * What a level that is one run may have. In a lazy tree the level above the last, when full, has
 * size_ratio runs and as much as a leveled tree's last has; the last has size_ratio times that.
 */
static uint64_t one_run_limit(const struct pick_options *o, uint32_t level)
{
    if (level == DEEPEST)
        return UINT64_MAX;
    return pick_level_limit(o, o->policy == TAMIZ_COMPACTION_LAZY ? level + 1 : level);
}

/*
 * By shape alone.  leveled, level 0 with 3 runs of 4: 0.75;  level 1 with 512 of 256 MiB: 2
 *                  tiered, size_ratio 10, level 1 with 10 runs: 1
 *                  leveled, level 2 with 2 runs (it was tiered before): at least 1
 */
static double shape_score(const struct version *v, const struct pick_options *o, uint32_t level)
{
    const double runs = v->level_runs[level];
    if (o->policy == TAMIZ_COMPACTION_OFF || v->level_tables[level] == 0)
        return 0;
    if (level == 0)
        return runs / o->level0_runs;
    if (!is_one_run(v, o, level))
        return runs / o->size_ratio;
    const double full = (double)v->level_bytes[level] / (double)one_run_limit(o, level);
    return runs > 1 && full < 1 ? 1 : full;
}

/* More than half of it is tombstones, and all of them may be dropped where nothing older lies. */
static bool is_mostly_dead(const struct pick_options *o, const struct table_meta *t)
{
    return t->tombstones > t->entries / 2 && t->seq_max <= o->oldest_snapshot;
}

/* Its range deletes may be dropped where nothing older lies. */
static bool has_dead_ranges(const struct pick_options *o, const struct table_meta *t)
{
    return t->ranges > 0 && t->seq_max <= o->oldest_snapshot;
}

/* And so many that it is worth a merge of its own. Range deletes sink with what they stand beside;
 * in the last level, where only snapshots can have kept them, one is enough. */
static bool is_grave(const struct version *v, const struct pick_options *o,
                     const struct table_meta *t)
{
    return (t->tombstones >= TOMBSTONES_LEAST && is_mostly_dead(o, t)) ||
           (t->level == last_level(v) && has_dead_ranges(o, t));
}

/* Of one level. */
static uint64_t grave_tombstones(const struct version *v, const struct pick_options *o,
                                 uint32_t level)
{
    const struct level_runs runs = level_runs_of(v, level);
    uint64_t sum = 0;
    for (uint32_t r = runs.from; r < runs.to; r++)
        for (uint32_t i = 0; i < v->runs[r].count; i++)
            if (is_grave(v, o, v->runs[r].tables[i]))
                sum += v->runs[r].tables[i]->tombstones + v->runs[r].tables[i]->ranges;
    return sum;
}

static uint64_t entries_below_level0(const struct version *v)
{
    uint64_t sum = 0;
    for (uint32_t r = level_runs_of(v, 1).from; r < v->run_count; r++)
        for (uint32_t i = 0; i < v->runs[r].count; i++)
            sum += v->runs[r].tables[i]->entries;
    return sum;
}

/* Level 0 is emptied by itself as long as more is written; so there it takes tombstones for a
 * quarter of the store to start a merge for their sake. */
static bool has_grave(const struct version *v, const struct pick_options *o, uint32_t level)
{
    const uint64_t tombstones = grave_tombstones(v, o, level);
    return tombstones > 0 && (level > 0 || tombstones >= entries_below_level0(v) / 4);
}

double pick_score(const struct version *v, const struct pick_options *o, uint32_t level)
{
    const double score = shape_score(v, o, level);
    if (score >= 1 || o->policy == TAMIZ_COMPACTION_OFF)
        return score;
    return has_grave(v, o, level) ? 1 : score;
}

/*
 * Bytes of one level, and of what comes down to it, that must go on.
 *     level 0, level0_runs 4, 5 there of 64 MiB: with two less none would wait: 128 MiB
 *     leveled, level 1 with 300 of 256 MiB, 128 MiB to come: 172 MiB
 *     tiered, size_ratio 4, level 1 with 4 runs of 256 MiB: 256 MiB; with 3: 0
 */
static uint64_t level_debt(const struct version *v, const struct pick_options *o, uint32_t level,
                           uint64_t coming)
{
    const uint64_t bytes = v->level_bytes[level], runs = v->level_runs[level];
    if (is_one_run(v, o, level)) {
        const uint64_t limit = one_run_limit(o, level);
        return bytes + coming > limit ? bytes + coming - limit : 0;
    }
    const uint64_t most = level == 0 ? o->level0_runs : o->size_ratio;
    return runs >= most ? bytes / runs * (runs - most + 1) : 0;
}

uint64_t pick_debt(const struct version *v, const struct pick_options *o)
{
    uint64_t sum = 0, coming = 0;
    for (uint32_t level = 0; o->policy != TAMIZ_COMPACTION_OFF && level < TAMIZ_LEVELS; level++) {
        coming = level_debt(v, o, level, coming);
        sum += coming;
    }
    return sum;
}

/* ---- what to take ---- */

struct plan {
    struct op *op;
    const struct version *v;
    const struct pick_options *o;
    const struct pick_busy *busy;
    struct choice c;
    struct job *j;
};

/* Where the output goes. */
struct place {
    uint32_t level;
    bool new_run;
    uint64_t run;
};

enum how { MAY_MOVE, REWRITE };

/*
 * A running job writes to that level and range, or makes the first run of it as well. Two that join
 * one run would overlap in it. A new run has its age from when its job began: were it to come in
 * below an older run that was rewritten meanwhile with more in it, versions would turn round.
 */
static bool collides(const struct plan *p, struct place to, const struct job *other)
{
    if (other->output_level != to.level)
        return false;
    if (!to.new_run && to.run == 0 && !other->new_run)
        return true;
    return slice_compare(buf_slice(&other->smallest), p->c.largest) <= 0 &&
           slice_compare(buf_slice(&other->largest), p->c.smallest) >= 0;
}

/* One table whose bytes would come out the same goes as it is. Of tombstones at the bottom nothing
 * would come out: moved, they would be walked over by every scan from then on. */
static bool is_move(const struct plan *p, struct place to)
{
    if (job_count(p->j) != 1)
        return false;
    const struct table_meta *t = job_input(p->j, 0);
    const bool stays = t->level == to.level && t->run == to.run && !to.new_run;
    return !stays && p->o->recipe[t->level] == p->o->recipe[to.level] &&
           !(p->j->bottom && (is_mostly_dead(p->o, t) || has_dead_ranges(p->o, t)));
}

static tamiz_status plan_finish(struct plan *p, struct place to, enum how how)
{
    const tamiz_status st = choice_finish(p->op, &p->c, p->busy, p->j);
    if (st != TAMIZ_OK)
        return st;
    for (size_t i = 0; p->busy && i < p->busy->running_count; i++)
        if (collides(p, to, p->busy->running[i]))
            return TAMIZ_NOT_FOUND;
    p->j->drop = false;
    p->j->output_level = to.level;
    p->j->new_run = to.new_run;
    p->j->output_run = to.run;
    p->j->move = how == MAY_MOVE && is_move(p, to);
    return TAMIZ_OK;
}

/* The oldest run of a level, with all that overlaps there taken, so that any of its runs would do.
 */
static struct place join_level(struct plan *p, uint32_t level)
{
    const struct level_runs runs = level_runs_of(p->v, level);
    choice_cover_all(&p->c, runs);
    return (struct place){level, false, runs.from < runs.to ? p->v->runs[runs.to - 1].id : 0};
}

/* The run `r` itself, with all taken that overlaps there and in the older runs of its level. */
static struct place join_run(struct plan *p, uint32_t r)
{
    const uint32_t level = p->v->runs[r].level;
    choice_cover_all(&p->c, (struct level_runs){r, level_runs_of(p->v, level).to});
    return (struct place){level, false, p->v->runs[r].id};
}

/* One level down from the newest run taken, `r`; the deepest has none below. */
static struct place go_down(struct plan *p, uint32_t r)
{
    const uint32_t below = p->v->runs[r].level + 1;
    if (below > DEEPEST)
        return join_run(p, r);
    if (p->o->policy == TAMIZ_COMPACTION_OFF || is_one_run(p->v, p->o, below))
        return join_level(p, below);
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

static tamiz_status plan_whole_level(struct plan *p, struct level_runs runs)
{
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
            st = plan_finish(p, join_level(p, p->v->runs[r].level), MAY_MOVE);
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
    if (is_one_run(p->v, p->o, level))
        return runs.to - runs.from > 1 ? plan_unite(p, runs) : plan_next(p, runs.from, 1, cursor);
    if (level < DEEPEST && is_one_run(p->v, p->o, level + 1))
        return plan_clusters(p, runs, cursor);
    return plan_whole_level(p, runs);
}

/* A table of tombstones: rewritten where it is, without them, if nothing older is left below it;
 * else it sinks. In the deepest level that has any table it takes along what is older there. */
static tamiz_status plan_grave(struct plan *p, uint32_t r, uint32_t i)
{
    choice_clear(&p->c);
    choice_take(&p->c, r, (struct span){i, i + 1});
    if (choice_is_bottom(&p->c) || p->v->runs[r].level == last_level(p->v))
        return plan_finish(p, join_run(p, r), REWRITE);
    return plan_table(p, r, i);
}

static tamiz_status plan_graves(struct plan *p)
{
    tamiz_status st = TAMIZ_NOT_FOUND;
    const uint32_t first = has_grave(p->v, p->o, 0) ? 0 : level_runs_of(p->v, 1).from;
    for (uint32_t r = first; r < p->v->run_count; r++)
        for (uint32_t i = 0; i < p->v->runs[r].count && st == TAMIZ_NOT_FOUND; i++)
            if (is_grave(p->v, p->o, p->v->runs[r].tables[i]))
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
    return plan_graves(p);
}

tamiz_status pick_auto(struct op *op, const struct version *v, const struct pick_options *o,
                       const struct pick_busy *busy, struct buf cursors[TAMIZ_LEVELS],
                       struct job *j)
{
    struct plan p = {.op = op, .v = v, .o = o, .busy = busy, .j = j};
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
    return plan_finish(p, join_level(p, deepest ? deepest : 1), REWRITE);
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
