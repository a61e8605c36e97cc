/* SPDX-License-Identifier: MIT
 *
 * Where closed iterators wait to be opened again. Making one takes a dozen allocations and a lock,
 * which is half the price of a short scan; nearly always the next one is asked for by the same
 * thread, over the same view, with the same options. It then finds its sources in place.
 *
 * What waits holds a reference of its view and memory of its own, but no blocks. A view that is
 * replaced takes the iterators over it along (view_publish), so that nothing is kept from being
 * freed for longer than its readers need it.
 */
#ifndef TAMIZ_DB_PARK_H
#define TAMIZ_DB_PARK_H

#include <stdatomic.h>
#include <stdbool.h>

struct tamiz_iter;
struct view;

enum { PARK_PLACES = 16 };

struct park_place {
    _Atomic(struct tamiz_iter *) iter; /* owned by the place; NULL: free */
    char apart[56];                    /* a cache line each: threads meet in none */
};

struct park {
    struct park_place places[PARK_PLACES];
};

/* An iterator, now the caller's; NULL: none waits. Whether its view is still the current one is for
 * the caller to find out. Any thread, without a lock. */
struct tamiz_iter *park_take(struct park *p);
/* The place's, from now on anybody's; NULL: all are taken. */
struct park_place *park_put(struct park *p, struct tamiz_iter *it);
struct tamiz_iter *park_take_from(struct park_place *place); /* the same, of one place */
/* Takes back what was put there; false: somebody else has it by now. */
bool park_take_back(struct park_place *place, struct tamiz_iter *it);

#endif
