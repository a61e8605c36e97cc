/* SPDX-License-Identifier: MIT
 *
 * What an iterator sees of all range deletes, of memtables and tables together, as of its moment
 * and within its bounds. A version is deleted where the newest delete over its key is newer.
 *
 * Asked key by key and found when asked: opening an iterator costs nothing for deletes it never
 * comes near. The answer holds for a stretch of keys, in which the next question mostly lies:
 *
 *     memtable     [--- 30 ---)            [-- 31 --)
 *     run 0             [------- 20 -------)           newest seen from above
 *     stretches    |  30      | 20         | 31     |
 *
 * Each also knows which source it is of, for that is how dead keys are passed quickly: of the keys
 * it covers all older sources have only older versions, so these are moved to its end at once.
 */
#ifndef TAMIZ_DB_COVERS_H
#define TAMIZ_DB_COVERS_H

#include "base/ranges.h"
#include "base/skyline.h"
#include "db/view.h"

/* The range deletes of one memtable, or of one run's tables in key order; one of both. */
struct covers_source {
    const struct skyline *skyline;
    const struct ranges *const *tables;
    size_t table_count;
    uint64_t newest; /* none of its deletes has a higher sequence */
    uint32_t number; /* as scans have them: memtables, then runs */
};

struct covers {
    struct covers_source *list; /* those that have any, newest first */
    size_t count, room;
    const struct ranges **tables; /* borrowed from the view, as all keys are */
    size_t tables_room;
    uint64_t *newest; /* of each source of the scan, its newest version's sequence */
    size_t sources;
    uint64_t seq;
    struct slice lower, upper;
    bool has_lower, has_upper;
    /* The stretch that was found last; seq 0: nothing is deleted in it. */
    struct cover near;
    bool has_from, has_to; /* else it goes on to the end of all keys */
    uint64_t stretch;      /* which one it is, counted from 1 on; 0: none yet */
};

/* `lower`, `upper`: NULL is unbounded; borrowed for as long as the covers. Freed by covers_free
 * also on failure. */
tamiz_status covers_init(struct op *op, const struct alloc *alloc, const struct view *v,
                         uint64_t seq, const struct slice *lower, const struct slice *upper,
                         struct covers *c);
/* Does the view have range deletes, of any moment? */
bool covers_possible(const struct view *v);
void covers_free(struct covers *c, const struct alloc *alloc);
/* The stretch of a delete that `key` lies in, or NULL. Good until the next question. */
const struct cover *covers_find(struct covers *c, struct slice key);

#endif
