/* SPDX-License-Identifier: MIT
 *
 * Which tables to merge. Pure policy: sizes in, job out; no files, no locks. Three policies are
 * three rows of one table ("lazy": N. Dayan, S. Idreos, "Dostoevsky", SIGMOD 2018):
 *
 *               a merge of a level starts at     what it takes
 *     leveled   level 0: level0_runs runs        all of level 0 that hangs together
 *               deeper: its limit of bytes       one table; with what either overlaps below
 *     tiered    level 0: level0_runs runs        all runs of the level,
 *               deeper: size_ratio runs          into a new run one level down
 *     lazy      as tiered; above the deepest     as tiered, but the deepest level from 2 on is one
 *               also when there is too much      run, joined piece by piece; when it is over, it
 *               that could hide what is below;   starts a deeper one
 *               deepest: its limit of bytes
 *
 * What must stay true: of two versions of a key the newer stands in the newer run. A merge places
 * all it takes at the place of its oldest part, so whoever takes a table also takes every OLDER
 * table of its level that overlaps what is taken, until nothing more does, and all that overlaps
 * in the run it joins. What is newer may stay: it stays above.
 *
 *     level 0, newest run first    f..j | c..g | a..d      taken f..j: then c..g, then a..d too
 *     level 1                      a..b | e..k | p..t      and a..b and e..k, which they join
 */
#ifndef TAMIZ_COMPACT_PICK_H
#define TAMIZ_COMPACT_PICK_H

#include "version/version.h"

struct pick_options {
    tamiz_compaction policy;
    uint32_t size_ratio;
    uint32_t level0_runs;
    uint64_t memtable_bytes; /* size of a full level-0 run            */
    uint64_t table_bytes;
    /* The lowest sequence somebody reads at; UINT64_MAX: only the newest is read. Tombstones above
     * it cannot be dropped yet, so nothing is picked for their sake. */
    uint64_t oldest_snapshot;
    bool idle; /* what can wait is merged, too, until few runs are left (rest.c) */
    /* Bytes that such a merge takes at the most; 0: as many as 128 full tables have. */
    uint64_t idle_most;
    /* How tables of each level are written (codec, filter) as a number: a table moves unchanged
     * only between levels with equal numbers. */
    uint32_t recipe[TAMIZ_LEVELS];
};

/* What to merge: tables of `version`, borrowed from it. */
struct job {
    uint32_t output_level;
    bool new_run; /* the output is a new run of its level, its newest (tiered); else it joins one */
    uint64_t output_run; /* which, where not new_run; 0: the level has none yet, make a new one */
    bool move; /* the one input needs no rewriting: its file is kept, its level and run change */
    bool drop; /* the inputs are hidden from everyone by a range delete above them: they go unread,
                  and nothing comes in their place */
    bool bottom; /* nothing older than the inputs overlaps their range: tombstones may be dropped */
    struct buf inputs; /* struct table_meta *, newest run first, key order within a run */
    struct buf smallest, largest; /* of all inputs */
    double score;                 /* how much over its limit the level was */
    bool idle;                    /* can wait, and may be given up for what cannot */
};

void job_init(struct job *j, const struct alloc *alloc);
void job_free(struct job *j);
size_t job_count(const struct job *j);
struct table_meta *job_input(const struct job *j, size_t i);
uint64_t job_bytes(const struct job *j); /* of its inputs */

/* What is being merged already. `busy(ctx, number)`: a running job has the table; such tables and
 * their overlaps are left alone. NULL: none is. `running`: the jobs themselves, where several run
 * at once, so that no two write one range of one run; may be NULL where only one does. */
struct pick_busy {
    bool (*busy)(const void *ctx, uint64_t number);
    const void *ctx;
    const struct job *const *running;
    size_t running_count;
};

/* The most urgent merge, where nothing is urgent and `idle` one that can wait, or TAMIZ_NOT_FOUND;
 * before all others, dropping tables that lie inside a range delete above them (of those whose
 * range deletes are in memory). `cursors[level]` remembers, by the last key taken, where leveled
 * picking goes on; updated. Called again after each merge it comes to an end. */
tamiz_status pick_auto(struct op *op, const struct version *v, const struct pick_options *o,
                       const struct pick_busy *busy, struct buf cursors[TAMIZ_LEVELS],
                       struct job *j);
/* One exact table of a level (its index counted over the level's runs, newest run first), with no
 * more than must go with it, one level down (from the last level: rewritten there).
 * TAMIZ_NOT_FOUND: no such table, or it is busy. */
tamiz_status pick_table(struct op *op, const struct version *v, const struct pick_options *o,
                        const struct pick_busy *busy, uint32_t level, size_t index, struct job *j);
/* Everything that overlaps [from, to) into one run at the deepest level that holds any of it (at
 * least 1), also where it is one run already: that is how a new codec or filter reaches old tables.
 * TAMIZ_NOT_FOUND: nothing does, or it is busy. */
tamiz_status pick_range(struct op *op, const struct version *v, const struct pick_options *o,
                        const struct pick_busy *busy, struct slice from, struct slice to,
                        bool to_unbounded, struct job *j);

/* Bytes level `level` may have in a leveled tree: level 0 what level0_runs memtables make, level 1
 * as much, each further one size_ratio times more. Saturates. */
uint64_t pick_level_limit(const struct pick_options *o, uint32_t level);
/* Is there a table to be dropped? */
bool pick_dead(const struct version *v, const struct pick_options *o, const struct pick_busy *busy);
/* How urgent: 1 and more wants a merge. A level with a table to rewrite for its tombstones' sake
 * has at least 1. */
double pick_score(const struct version *v, const struct pick_options *o, uint32_t level);
/* Bytes that wait to be merged, all levels: what backpressure is proportional to. */
uint64_t pick_debt(const struct version *v, const struct pick_options *o);

#endif
