/* SPDX-License-Identifier: MIT */
#include "db/park.h"

#include <stddef.h>

/* The place that worked last time. A hint: any number is right. */
static _Thread_local unsigned last_place;

struct tamiz_iter *park_take_from(struct park_place *place)
{
    return atomic_exchange_explicit(&place->iter, NULL, memory_order_seq_cst);
}

struct tamiz_iter *park_take(struct park *p)
{
    for (unsigned i = 0; i < PARK_PLACES; i++) {
        struct park_place *place = &p->places[(last_place + i) % PARK_PLACES];
        if (!atomic_load_explicit(&place->iter, memory_order_relaxed))
            continue;
        struct tamiz_iter *it = park_take_from(place);
        if (it) {
            last_place = (last_place + i) % PARK_PLACES;
            return it;
        }
    }
    return NULL;
}

/* Sequentially consistent: the view is looked at again after this, and whoever replaces the view
 * looks at the places after that; one of the two sees the other. */
struct park_place *park_put(struct park *p, struct tamiz_iter *it)
{
    for (unsigned i = 0; i < PARK_PLACES; i++) {
        struct park_place *place = &p->places[(last_place + i) % PARK_PLACES];
        struct tamiz_iter *nobody = NULL;
        if (!atomic_load_explicit(&place->iter, memory_order_relaxed) &&
            atomic_compare_exchange_strong_explicit(&place->iter, &nobody, it, memory_order_seq_cst,
                                                    memory_order_relaxed)) {
            last_place = (last_place + i) % PARK_PLACES;
            return place;
        }
    }
    return NULL;
}

bool park_take_back(struct park_place *place, struct tamiz_iter *it)
{
    return atomic_compare_exchange_strong_explicit(&place->iter, &it, NULL, memory_order_acq_rel,
                                                   memory_order_relaxed);
}
