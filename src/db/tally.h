/* SPDX-License-Identifier: MIT
 *
 * What the filter of each table said of keys of which the truth is known: those of followed reads,
 * each key once a table, so that one that is asked for again and again weighs no more than others.
 * From these tallies (table/table.h) every table has a measured rate, and where that leaves what
 * the filter promises, as with a bad hash or a damaged filter, it has drifted.
 */
#ifndef TAMIZ_DB_TALLY_H
#define TAMIZ_DB_TALLY_H

#include "db/store.h"

struct tallies {
    uint64_t *seen; /* a bit a pair of table and key */
    uint32_t seen_count;
};

/* false: memory is out, and there is nothing to free. */
bool tallies_init(struct tallies *t, const struct alloc *alloc);
void tallies_free(struct tallies *t, const struct alloc *alloc);

/* The filter of this table was asked about a key; `has`: the table knows it. true: with that its
 * rate has drifted, and that is to be told. Used by one thread at a time. */
bool tallies_add(struct tallies *t, const struct table_meta *meta, const struct lookup *lookup,
                 bool has);
/* The event. */
void tally_tell_drift(const struct store *s, struct table *t);

#endif
