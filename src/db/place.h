/* SPDX-License-Identifier: MIT
 *
 * Where ingested tables go. Pure policy: ranges in, levels out; no files, no locks.
 *
 * They are newer than everything in the tree, so whatever overlaps one must lie below it: it goes
 * one level above the shallowest table it overlaps, and into level 0, as a newer run, where that is
 * there already. Where it overlaps nothing it goes to the deepest level in use, or deeper where the
 * amount of data wants that.
 *
 *     level 0        c..d                    a table b..e: level 0, a new run
 *     level 1                                a table x..y: level 1
 *     level 2   a..       ..k   p..s  x..z   a table l..o: level 2, into its run
 */
#ifndef TAMIZ_DB_PLACE_H
#define TAMIZ_DB_PLACE_H

#include "compact/pick.h"

struct placed {
    struct slice smallest, largest; /* in */
    uint64_t bytes;                 /* in */
    uint32_t level;                 /* out */
    uint64_t join;                  /* out: the run of that level that takes it in; 0: a new one */
    uint32_t group; /* out, where join is 0: tables of one level and group make one new run; larger
                       groups are newer */
};

/* `tables` in the order of their age, oldest first. */
tamiz_status place_tables(struct op *op, const struct version *v, const struct pick_options *o,
                          struct placed *tables, size_t n);

#endif
