/* SPDX-License-Identifier: MIT
 *
 * A set of a version's tables while it grows into a job. What is taken of a run is always a stretch
 * of neighbours, since all that overlaps one range of keys is; so the set is a span a run, and the
 * range they cover together.
 *
 *     run 0 (newest)     [.. [from, to) ..]
 *     run 1              [.. [from, to) ..]        smallest … largest: over all of them
 */
#ifndef TAMIZ_COMPACT_CHOICE_H
#define TAMIZ_COMPACT_CHOICE_H

#include "compact/pick.h"

struct span {
    uint32_t from, to; /* equal: nothing of this run */
};

/* The runs of one level: [from, to) of the version's. */
struct level_runs {
    uint32_t from, to;
};

struct choice {
    const struct version *version;
    struct span *spans; /* one a run; owned */
    size_t count;
    struct slice smallest, largest; /* borrowed from the tables; count 0: unset */
};

/* Starts empty. TAMIZ_OUT_OF_MEMORY. */
tamiz_status choice_init(struct op *op, struct choice *c, const struct version *v);
void choice_free(struct choice *c);
void choice_clear(struct choice *c);

/* Some neighbours. Nothing else of their run is taken yet. */
void choice_take(struct choice *c, uint32_t run, struct span tables);
/* All tables of the runs. */
void choice_take_all(struct choice *c, struct level_runs runs);
/* All tables of the run that overlap [smallest, largest]; of an empty choice, none. Whether any is
 * new. */
bool choice_cover(struct choice *c, uint32_t run);
/* The same for several runs, again and again until nothing more overlaps. */
void choice_cover_all(struct choice *c, struct level_runs runs);
/* The older tables that must go with what is taken of these runs: one pass from new to old is
 * enough, since an older table matters only to newer ones, which the pass has behind it. */
void choice_cover_older(struct choice *c, struct level_runs runs);

/* Whether nothing outside the choice, in its newest run or an older one, overlaps its range. */
bool choice_is_bottom(const struct choice *c);

struct level_runs level_runs_of(const struct version *v, uint32_t level);

/* Fills `inputs`, `smallest`, `largest` and `bottom` of the job. TAMIZ_NOT_FOUND: one of the tables
 * is busy. */
tamiz_status choice_finish(struct op *op, const struct choice *c, const struct pick_busy *busy,
                           struct job *j);

#endif
