/* SPDX-License-Identifier: MIT
 *
 * A tree's shape and what is urgent about it: how full its levels are, and what is dead in them.
 */
#ifndef TAMIZ_COMPACT_SHAPE_H
#define TAMIZ_COMPACT_SHAPE_H

#include "compact/pick.h"

enum { LEVEL_DEEPEST = TAMIZ_LEVELS - 1 };

/* The deepest level that has tables, at least 1. */
uint32_t shape_last_level(const struct version *v);
/* Whether the level is meant to be one run. */
bool shape_is_one_run(const struct version *v, const struct pick_options *o, uint32_t level);
/* What a level that is one run may have, in bytes. */
uint64_t shape_one_run_limit(const struct pick_options *o, uint32_t level);
/* How urgent a merge of the level is by its shape alone; 1 and more wants one. */
double shape_score(const struct version *v, const struct pick_options *o, uint32_t level);

/* More than half of it is tombstones, and all of them may be dropped where nothing older lies. */
bool shape_is_mostly_dead(const struct pick_options *o, const struct table_meta *t);
/* Its range deletes may be dropped where nothing older lies. */
bool shape_has_dead_ranges(const struct pick_options *o, const struct table_meta *t);
/* And so many that it is worth a merge of its own. */
bool shape_is_grave(const struct version *v, const struct pick_options *o,
                    const struct table_meta *t);
/* Whether the level has such tables that should not wait for other merges. */
bool shape_has_grave(const struct version *v, const struct pick_options *o, uint32_t level);

#endif
