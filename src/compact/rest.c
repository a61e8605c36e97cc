/* SPDX-License-Identifier: MIT
 *
 * What can wait until nobody writes, or until reads have paid for it. A get asks a filter of every
 * run, so a tree at rest should have few; but whoever writes, rests and writes again must not pay
 * for the whole store each time. So runs are merged with an older one only if they have at least as
 * much together:
 *
 *     runs, newest first   64 64 64 64 | 540 | 410     540 > 256, but 410 <= 796: all become one
 *                          64 64 | 1200                64 and 64 become one; 1200 > 128
 *                          64 | 200 | 900              nothing: 200 > 64, 900 > 264
 *
 * At rest each run has more than all newer ones together, so there are at most 1 + log2 (S / b) of
 * them, S bytes being stored and b the least that was written between two rests. And whenever a
 * byte is rewritten, but for the first time, its run at least doubles: the one that is joined,
 * since as much comes from above; a newer one, since the next older was larger than it. So a byte
 * is rewritten once a rest at most, and 1 + log2 (S / b) times in all, however writers come and go.
 *
 * The bytes are those of tables that overlap each other, and only such are merged: a table that
 * overlaps none moves. No job takes more than REST_MOST full tables, so that one that is given up,
 * because writers are back, loses little, and its output needs little room; so larger trees keep
 * more runs. Where reads have paid, no job takes more than they have paid for (toll.h).
 */
#include "compact/plan.h"

enum {
    REST_MOST = 128,
    LOOKS_MOST = 256, /* groups of tables that are looked at for one run: the rest has its turn
                         when those are merged */
};

static uint64_t span_bytes(const struct choice *c, uint32_t r)
{
    uint64_t sum = 0;
    for (uint32_t i = c->spans[r].from; i < c->spans[r].to; i++)
        sum += c->version->runs[r].tables[i]->file_size;
    return sum;
}

/* All of runs 0..k that hangs together with table `i` of run `r`. false: too much for one merge. */
static bool take_group(struct plan *p, uint32_t k, uint32_t r, uint32_t i)
{
    uint64_t bytes = 0;
    choice_clear(&p->c);
    choice_take(&p->c, r, (struct span){i, i + 1});
    choice_cover_all(&p->c, (struct level_runs){0, k + 1});
    for (uint32_t run = 0; run <= k; run++)
        bytes += span_bytes(&p->c, run);
    return p->o->idle_most ? bytes <= p->o->idle_most : bytes / REST_MOST <= p->o->table_bytes;
}

static uint64_t level_room(const struct plan *p, uint32_t level)
{
    return shape_is_one_run(p->v, p->o, level) ? shape_one_run_limit(p->o, level)
                                               : pick_level_limit(p->o, level);
}

/* In the place of run `k`, or, where nothing is older and its level would be over its limit, so
 * deep that it is not: it would go there next. */
static struct place place_of(const struct plan *p, uint32_t k, uint64_t above)
{
    const struct version *v = p->v;
    uint32_t level = v->runs[k].level;
    const uint64_t there =
        shape_is_one_run(v, p->o, level) ? v->level_bytes[level] : span_bytes(&p->c, k);
    if (k + 1 < v->run_count || there + above <= level_room(p, level))
        return (struct place){level, false, v->runs[k].id};
    while (level < LEVEL_DEEPEST &&
           (level == v->runs[k].level || there + above > level_room(p, level)))
        level++;
    return (struct place){level, false, level == v->runs[k].level ? v->runs[k].id : 0};
}

/* The group that is taken, down to run `k`. */
static tamiz_status plan_group(struct plan *p, uint32_t k)
{
    const uint64_t joined = span_bytes(&p->c, k);
    uint64_t above = 0;
    for (uint32_t r = 0; r < k; r++)
        above += span_bytes(&p->c, r);
    if (above == 0 || joined > above || (joined == 0 && p->c.count > 1))
        return TAMIZ_NOT_FOUND;
    const tamiz_status st = plan_finish(p, place_of(p, k, above), joined == 0 ? MAY_MOVE : REWRITE);
    return st == TAMIZ_OK && joined == 0 && !p->j->move ? TAMIZ_NOT_FOUND : st;
}

/* Groups of runs 0..k, each looked at from the first table that it has of a run. */
static tamiz_status plan_down_to(struct plan *p, uint32_t k)
{
    tamiz_status st = TAMIZ_NOT_FOUND;
    uint32_t looks = 0;
    for (uint32_t r = 0; r < k; r++)
        for (uint32_t i = 0; i < p->v->runs[r].count && st == TAMIZ_NOT_FOUND;) {
            if (looks++ == LOOKS_MOST)
                return st;
            if (take_group(p, k, r, i))
                st = plan_group(p, k);
            i = p->c.spans[r].to;
        }
    return st;
}

tamiz_status plan_rest(struct plan *p)
{
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t k = p->v->run_count; st == TAMIZ_NOT_FOUND && k-- > 1;)
        st = plan_down_to(p, k);
    return st;
}
