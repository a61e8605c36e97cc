/* SPDX-License-Identifier: MIT
 *
 * What an iterator sees of all range deletes: one list of pieces in key order, of memtables and
 * tables together, as of its moment and within its bounds. A version is deleted where the piece
 * over its key is newer.
 *
 * Each piece also knows which source it is of, for that is how dead keys are passed quickly: of the
 * keys it covers all older sources have only older versions, so these are moved to its end at once.
 */
#ifndef TAMIZ_DB_COVERS_H
#define TAMIZ_DB_COVERS_H

#include "base/arena.h"
#include "base/ranges.h"
#include "base/skyline.h"
#include "db/view.h"

struct covers {
    struct arena arena;
    struct cover *list; /* keys borrowed from the view and the bounds */
    size_t count;
    size_t room;
    size_t at;        /* where the last question ended: the next one is near */
    uint64_t *newest; /* of each source, its newest version's sequence; NULL: there are no pieces */
    size_t sources;
};

/* `lower`, `upper`: NULL is unbounded; borrowed for as long as the covers. Sources are numbered as
 * scans have them: memtables, then runs. Freed by covers_free also on failure. */
tamiz_status covers_init(struct op *op, const struct alloc *alloc, const struct view *v,
                         uint64_t seq, const struct slice *lower, const struct slice *upper,
                         struct covers *c);
/* Does the view have range deletes, of any moment? */
bool covers_possible(const struct view *v);
void covers_free(struct covers *c, const struct alloc *alloc);
/* The piece over `key`, or NULL. */
const struct cover *covers_find(struct covers *c, struct slice key);

#endif
