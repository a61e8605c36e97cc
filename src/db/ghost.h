/* SPDX-License-Identifier: MIT
 *
 * A cache of names: what would a cache of so many blocks have held? Full associativity, and CLOCK
 * for eviction, which is near to what the block cache does. Used by one thread at a time.
 */
#ifndef TAMIZ_DB_GHOST_H
#define TAMIZ_DB_GHOST_H

#include "base/alloc.h"

struct ghost {
    const struct alloc *alloc;
    uint32_t room;     /* names it was made for                                */
    uint32_t capacity; /* names it may hold now: at most room                  */
    uint32_t count, hand;
    uint64_t *names; /* by place                                             */
    uint8_t *visited;
    uint32_t *next;  /* chain of names with one hash; place + 1, 0 ends it   */
    uint32_t *heads; /* room of them, a power of two                         */
};

/* `room` a power of two, or 0. false: memory is out. */
bool ghost_init(struct ghost *g, const struct alloc *alloc, uint32_t room);
void ghost_free(struct ghost *g);
/* Forgets all names, and holds `capacity` from now on. */
void ghost_reset(struct ghost *g, uint32_t capacity);
/* Is the name there? It is afterwards, another one may have had to go. */
bool ghost_touch(struct ghost *g, uint64_t name);

#endif
