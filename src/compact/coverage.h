/* SPDX-License-Identifier: MIT
 *
 * How much of the keys a range has: all tables of a tree are the ruler, each even in itself. A get
 * for a key that is not there, drawn as the keys are, is asked of a run as often as the run's
 * tables cover the keys: a run that was merged down but for a third of its tables is asked a third
 * of the time.
 *
 *     run 1   |---- 100 keys ----|            |- 50 -|
 *     run 2   |------------------ 850 keys ------------------|
 */
#ifndef TAMIZ_COMPACT_COVERAGE_H
#define TAMIZ_COMPACT_COVERAGE_H

#include "version/version.h"

struct coverage {
    const struct version *version; /* borrowed */
    double *below;                 /* run after run: keys of the run in front of each table */
    size_t tables;
    double keys; /* of all */
};

tamiz_status coverage_init(struct op *op, struct coverage *c, const struct version *v);
void coverage_free(struct coverage *c, const struct alloc *alloc);
/* Part of all keys in [smallest, largest]: 0..1. */
double coverage_of(const struct coverage *c, struct slice smallest, struct slice largest);

#endif
