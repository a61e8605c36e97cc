/* SPDX-License-Identifier: MIT
 *
 * From a choice of tables to a job: where its output goes, and whether it may run beside those that
 * run already. What to choose is pick.c's and rest.c's.
 */
#ifndef TAMIZ_COMPACT_PLAN_H
#define TAMIZ_COMPACT_PLAN_H

#include "compact/choice.h"
#include "compact/shape.h"

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
    uint64_t run; /* 0, where not new_run: the level has none yet */
};

enum how { MAY_MOVE, REWRITE };

/* The choice becomes the job. TAMIZ_NOT_FOUND: something of it is busy, or another job writes
 * there. */
tamiz_status plan_finish(struct plan *p, struct place to, enum how how);

/* The oldest run of a level, with all that overlaps there taken, so that any of its runs would do.
 */
struct place plan_join_level(struct plan *p, uint32_t level);
/* The run `r` itself, with all taken that overlaps there and in the older runs of its level. */
struct place plan_join_run(struct plan *p, uint32_t r);

/* What can wait until nobody writes, see rest.c. TAMIZ_NOT_FOUND: the tree is at rest. */
tamiz_status plan_rest(struct plan *p);

#endif
