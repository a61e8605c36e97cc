/* SPDX-License-Identifier: MIT
 *
 * Which tables to merge. Pure policy: sizes in, job out; no files, no locks. Three policies are
 * three rows of one table:
 *
 *                 runs a level may have above the last | in the last | merge of a level
 *     leveled     1 (level 0: level0_runs)             | 1           | one table and what it
 * overlaps, one level down tiered      size_ratio                           | size_ratio  | all
 * runs of the level into one new run below lazy        size_ratio                           | 1 |
 * as tiered; into the last level: with its run
 *
 * A tombstone never moves below an older version of its key: whoever takes a table also takes every
 * older table of the same level that overlaps what is taken, until nothing more does.
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
};

/* What to merge: tables of `version`, borrowed from it. */
struct job {
    uint32_t output_level;
    bool new_run; /* the output is a new run of its level (tiered); else it joins the one run there
                   */
    uint64_t
        output_run; /* which, where not new_run; 0: the level has none yet, a new one is made */
    bool move; /* the one input overlaps nothing below: its file is kept, only its level changes */
    bool bottom; /* nothing older than the inputs overlaps their range: tombstones may be dropped */
    struct buf inputs; /* struct table_meta *, newest run first, key order within a run */
    struct buf smallest, largest; /* of all inputs */
    double score;                 /* how much over its limit the level was */
};

void job_init(struct job *j, const struct alloc *alloc);
void job_free(struct job *j);
size_t job_count(const struct job *j);
struct table_meta *job_input(const struct job *j, size_t i);

/* `busy(ctx, number)`: a running job has the table; such tables and their overlaps are left alone.
 */
struct pick_busy {
    bool (*busy)(const void *ctx, uint64_t number);
    const void *ctx;
};

/* The most urgent merge, or TAMIZ_NOT_FOUND. `cursors[level]` remembers, by the last key taken,
 * where leveled picking goes on; updated. */
tamiz_status pick_auto(struct op *op, const struct version *v, const struct pick_options *o,
                       const struct pick_busy *busy, struct buf cursors[TAMIZ_LEVELS],
                       struct job *j);
/* One exact table of a level (its index counted over the level's runs, newest run first), as
 * pick_auto would take it. */
tamiz_status pick_table(struct op *op, const struct version *v, const struct pick_options *o,
                        const struct pick_busy *busy, uint32_t level, size_t index, struct job *j);
/* Everything that overlaps [from, to) into one run at the deepest level that holds any of it (at
 * least 1). `to` data NULL: unbounded. */
tamiz_status pick_range(struct op *op, const struct version *v, const struct pick_options *o,
                        const struct pick_busy *busy, struct slice from, struct slice to,
                        bool to_unbounded, struct job *j);

/* Bytes level `level` may have in a leveled tree. */
uint64_t pick_level_limit(const struct pick_options *o, uint32_t level);
/* How urgent: 1 and more wants a merge. */
double pick_score(const struct version *v, const struct pick_options *o, uint32_t level);
/* Bytes that wait to be merged, all levels: what backpressure is proportional to. */
uint64_t pick_debt(const struct version *v, const struct pick_options *o);

#endif
