/* SPDX-License-Identifier: MIT
 *
 * A cache of names: what would a cache of so many blocks have held? It evicts as the block cache
 * does (SIEVE, table/cache.h). Each name takes as much of the capacity as it stands for, so that
 * blocks which a sample sees more often than others do not crowd those out. Used by one thread at a
 * time.
 */
#ifndef TAMIZ_DB_GHOST_H
#define TAMIZ_DB_GHOST_H

#include "base/alloc.h"

enum { GHOST_UNIT = 256 }; /* what an ordinary name takes of the capacity */

/* One place. Numbers of places are one more than their index; 0 is none. */
struct ghost_place {
    uint64_t name;
    uint32_t cell;         /* where in the key space: ghost_keep */
    uint32_t next;         /* of names with one hash; or of free places */
    uint32_t older, newer; /* in the queue */
    uint16_t cost;
    uint8_t visited;
};

struct ghost {
    const struct alloc *alloc;
    uint32_t room;           /* places, a power of two */
    uint64_t capacity, used; /* in units */
    uint32_t fresh, free;    /* places never used begin here; given back ones */
    uint32_t oldest, newest, hand;
    struct ghost_place *places;
    uint32_t *heads; /* by hash of the name; room of them */
};

/* `room` a power of two, or 0. false: memory is out. */
bool ghost_init(struct ghost *g, const struct alloc *alloc, uint32_t room);
void ghost_free(struct ghost *g);
/* Forgets all names. */
void ghost_clear(struct ghost *g);
/* Holds names of so many units from now on; evicts what is too much. */
void ghost_limit(struct ghost *g, uint64_t capacity);
/* Forgets the names of all cells from `end` on. */
void ghost_keep(struct ghost *g, uint32_t end);
/* Is the name there? It is afterwards, others may have had to go. `settled`: a new one is as one
 * that was visited already. */
bool ghost_touch(struct ghost *g, uint64_t name, uint32_t cell, uint16_t cost, bool settled);

#endif
