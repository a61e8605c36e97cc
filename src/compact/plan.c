/* SPDX-License-Identifier: MIT */
#include "compact/plan.h"

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

uint64_t job_bytes(const struct job *j)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < job_count(j); i++)
        sum += job_input(j, i)->file_size;
    return sum;
}

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
           !(p->j->bottom && (shape_is_mostly_dead(p->o, t) || shape_has_dead_ranges(p->o, t)));
}

tamiz_status plan_finish(struct plan *p, struct place to, enum how how)
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

struct place plan_join_level(struct plan *p, uint32_t level)
{
    const struct level_runs runs = level_runs_of(p->v, level);
    choice_cover_all(&p->c, runs);
    return (struct place){level, false, runs.from < runs.to ? p->v->runs[runs.to - 1].id : 0};
}

struct place plan_join_run(struct plan *p, uint32_t r)
{
    const uint32_t level = p->v->runs[r].level;
    choice_cover_all(&p->c, (struct level_runs){r, level_runs_of(p->v, level).to});
    return (struct place){level, false, p->v->runs[r].id};
}
