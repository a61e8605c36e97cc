/* SPDX-License-Identifier: MIT */
#include "db/ghost.h"

#include <string.h>

bool ghost_init(struct ghost *g, const struct alloc *alloc, uint32_t room)
{
    *g = (struct ghost){.alloc = alloc, .room = room};
    g->names = mem_new_array(alloc, room, sizeof *g->names);
    g->visited = mem_new_array(alloc, room, sizeof *g->visited);
    g->next = mem_new_array(alloc, room, sizeof *g->next);
    g->heads = mem_new_array(alloc, room, sizeof *g->heads);
    if (g->names && g->visited && g->next && g->heads)
        return true;
    ghost_free(g);
    return false;
}

void ghost_free(struct ghost *g)
{
    mem_free(g->alloc, g->names, g->room * sizeof *g->names);
    mem_free(g->alloc, g->visited, g->room * sizeof *g->visited);
    mem_free(g->alloc, g->next, g->room * sizeof *g->next);
    mem_free(g->alloc, g->heads, g->room * sizeof *g->heads);
    *g = (struct ghost){.alloc = g->alloc};
}

void ghost_reset(struct ghost *g, uint32_t capacity)
{
    g->capacity = capacity < g->room ? capacity : g->room;
    g->count = g->hand = 0;
    if (g->room)
        memset(g->heads, 0, g->room * sizeof *g->heads);
}

static uint32_t *head_of(const struct ghost *g, uint64_t name)
{
    return &g->heads[(name * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (g->room - 1)];
}

static void unchain(struct ghost *g, uint32_t place)
{
    uint32_t *at = head_of(g, g->names[place]);
    while (*at != place + 1)
        at = &g->next[*at - 1];
    *at = g->next[place];
}

/* A place for a new name: a free one, or that of the first name the hand finds unvisited. */
static uint32_t make_place(struct ghost *g)
{
    if (g->count < g->capacity)
        return g->count++;
    while (g->visited[g->hand]) {
        g->visited[g->hand] = 0;
        g->hand = (g->hand + 1) % g->capacity;
    }
    const uint32_t place = g->hand;
    g->hand = (g->hand + 1) % g->capacity;
    unchain(g, place);
    return place;
}

bool ghost_touch(struct ghost *g, uint64_t name)
{
    if (g->capacity == 0)
        return false;
    uint32_t *head = head_of(g, name);
    for (uint32_t at = *head; at; at = g->next[at - 1])
        if (g->names[at - 1] == name) {
            g->visited[at - 1] = 1;
            return true;
        }
    const uint32_t place = make_place(g);
    g->names[place] = name;
    g->visited[place] = 0;
    g->next[place] = *head; /* read again: unchaining may have changed it */
    *head = place + 1;
    return false;
}
