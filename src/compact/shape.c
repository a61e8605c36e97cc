/* SPDX-License-Identifier: MIT */
#include "compact/shape.h"

#include <math.h>

#include "compact/choice.h"

enum {
    /* The first level that may be a lazy tree's last. Were it level 1, each merge of level 0, whose
     * tables cover nearly all keys, would rewrite all of it in one job. */
    LAZY_LAST_LEAST = 2,
    SPACE_MOST = 2,          /* times a lazy tree's oldest run that may be newer than it */
    TOMBSTONES_LEAST = 1000, /* fewer are not worth a merge of their own */
};

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
uint32_t shape_last_level(const struct version *v)
{
    uint32_t level = LEVEL_DEEPEST;
    while (level > 1 && v->level_tables[level] == 0)
        level--;
    return level;
}

/* Whether the level is meant to be one run. */
bool shape_is_one_run(const struct version *v, const struct pick_options *o, uint32_t level)
{
    if (level == 0 || o->policy == TAMIZ_COMPACTION_TIERED)
        return false;
    if (o->policy != TAMIZ_COMPACTION_LAZY)
        return true;
    return level >= LAZY_LAST_LEAST && level >= shape_last_level(v);
}

/*
 * What a level that is one run may have. In a lazy tree the level above the last, when full, has
 * size_ratio runs and as much as a leveled tree's last has; the last has size_ratio times that.
 */
uint64_t shape_one_run_limit(const struct pick_options *o, uint32_t level)
{
    if (level == LEVEL_DEEPEST)
        return UINT64_MAX;
    return pick_level_limit(o, o->policy == TAMIZ_COMPACTION_LAZY ? level + 1 : level);
}

/*
 * Of a lazy tree's last level but one: what is newer than the tree's oldest run, in times of what
 * that may be. All of it could be newer versions of the same keys, and what they hide goes only
 * when it meets them; so a store never takes more than SPACE_MOST + 1 times what is in it, and
 * level 0.
 *     SPACE_MOST 2, level 2 with 300, level 1 with 500 in 3 runs: 0.83;  with 600: 1
 *     level 2 with nothing yet, level 1 with 100, 100 and, the oldest, 100: 1
 */
static double shape_space(const struct version *v, uint32_t level)
{
    const struct run *oldest = &v->runs[v->run_count - 1];
    uint64_t there = 0;
    for (uint32_t i = 0; i < oldest->count; i++)
        there += oldest->tables[i]->file_size;
    const uint64_t newer = v->level_bytes[level] - (oldest->level == level ? there : 0);
    return (double)newer / (SPACE_MOST * (double)there);
}

/*
 * By shape alone.  leveled, level 0 with 3 runs of 4: 0.75;  level 1 with 512 of 256 MiB: 2
 *                  tiered, size_ratio 10, level 1 with 10 runs: 1; lazy: or with more, see above
 *                  leveled, level 2 with 2 runs (it was tiered before): at least 1
 */
double shape_score(const struct version *v, const struct pick_options *o, uint32_t level)
{
    const double runs = v->level_runs[level];
    if (o->policy == TAMIZ_COMPACTION_OFF || v->level_tables[level] == 0)
        return 0;
    if (level == 0)
        return runs / o->level0_runs;
    if (!shape_is_one_run(v, o, level)) {
        const bool joins = level < LEVEL_DEEPEST && shape_is_one_run(v, o, level + 1);
        return fmax(runs / o->size_ratio, joins ? shape_space(v, level) : 0);
    }
    const double full = (double)v->level_bytes[level] / (double)shape_one_run_limit(o, level);
    return runs > 1 && full < 1 ? 1 : full;
}

/* More than half of it is tombstones, and all of them may be dropped where nothing older lies. */
bool shape_is_mostly_dead(const struct pick_options *o, const struct table_meta *t)
{
    return t->tombstones > t->entries / 2 && t->seq_max <= o->oldest_snapshot;
}

/* Its range deletes may be dropped where nothing older lies. */
bool shape_has_dead_ranges(const struct pick_options *o, const struct table_meta *t)
{
    return t->ranges > 0 && t->seq_max <= o->oldest_snapshot;
}

/* And so many that it is worth a merge of its own. Range deletes sink with what they stand beside;
 * in the last level, where only snapshots can have kept them, one is enough. */
bool shape_is_grave(const struct version *v, const struct pick_options *o,
                    const struct table_meta *t)
{
    return (t->tombstones >= TOMBSTONES_LEAST && shape_is_mostly_dead(o, t)) ||
           (t->level == shape_last_level(v) && shape_has_dead_ranges(o, t));
}

/* Of one level. */
static uint64_t grave_tombstones(const struct version *v, const struct pick_options *o,
                                 uint32_t level)
{
    const struct level_runs runs = level_runs_of(v, level);
    uint64_t sum = 0;
    for (uint32_t r = runs.from; r < runs.to; r++)
        for (uint32_t i = 0; i < v->runs[r].count; i++)
            if (shape_is_grave(v, o, v->runs[r].tables[i]))
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
bool shape_has_grave(const struct version *v, const struct pick_options *o, uint32_t level)
{
    const uint64_t tombstones = grave_tombstones(v, o, level);
    return tombstones > 0 && (level > 0 || tombstones >= entries_below_level0(v) / 4);
}

double pick_score(const struct version *v, const struct pick_options *o, uint32_t level)
{
    const double score = shape_score(v, o, level);
    if (score >= 1 || o->policy == TAMIZ_COMPACTION_OFF)
        return score;
    return shape_has_grave(v, o, level) ? 1 : score;
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
    if (shape_is_one_run(v, o, level)) {
        const uint64_t limit = shape_one_run_limit(o, level);
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
