/* SPDX-License-Identifier: MIT */
#include "db/ghost.h"

#include <string.h>

bool ghost_init(struct ghost *g, const struct alloc *alloc, uint32_t room)
{
    *g = (struct ghost){.alloc = alloc, .room = room};
    g->places = mem_new_array(alloc, room, sizeof *g->places);
    g->heads = mem_new_array(alloc, room, sizeof *g->heads);
    if (g->places && g->heads)
        return true;
    ghost_free(g);
    return false;
}

void ghost_free(struct ghost *g)
{
    mem_free(g->alloc, g->places, g->room * sizeof *g->places);
    mem_free(g->alloc, g->heads, g->room * sizeof *g->heads);
    *g = (struct ghost){.alloc = g->alloc};
}

void ghost_clear(struct ghost *g)
{
    g->used = 0;
    g->fresh = g->free = g->oldest = g->newest = g->hand = 0;
    if (g->room)
        memset(g->heads, 0, g->room * sizeof *g->heads);
}

static uint32_t *head_of(const struct ghost *g, uint64_t name)
{
    return &g->heads[(name * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (g->room - 1)];
}

static struct ghost_place *place_of(const struct ghost *g, uint32_t number)
{
    return &g->places[number - 1];
}

static void queue_remove(struct ghost *g, const struct ghost_place *p, uint32_t number)
{
    if (g->hand == number)
        g->hand = p->newer;
    if (p->older)
        place_of(g, p->older)->newer = p->newer;
    else
        g->oldest = p->newer;
    if (p->newer)
        place_of(g, p->newer)->older = p->older;
    else
        g->newest = p->older;
}

static void forget(struct ghost *g, uint32_t number)
{
    struct ghost_place *p = place_of(g, number);
    uint32_t *at = head_of(g, p->name);
    while (*at != number)
        at = &place_of(g, *at)->next;
    *at = p->next;
    queue_remove(g, p, number);
    g->used -= p->cost;
    p->next = g->free;
    g->free = number;
}

/* The first one that the hand finds unvisited, walking from old to new and around. */
static void evict(struct ghost *g)
{
    uint32_t number = g->hand ? g->hand : g->oldest;
    while (place_of(g, number)->visited) {
        place_of(g, number)->visited = 0;
        number = place_of(g, number)->newer ? place_of(g, number)->newer : g->oldest;
    }
    g->hand = number;
    forget(g, number); /* moves the hand on */
}

void ghost_limit(struct ghost *g, uint64_t capacity)
{
    g->capacity = capacity;
    while (g->used > g->capacity)
        evict(g);
}

void ghost_keep(struct ghost *g, uint32_t end)
{
    for (uint32_t number = g->oldest, next; number; number = next) {
        next = place_of(g, number)->newer;
        if (place_of(g, number)->cell >= end)
            forget(g, number);
    }
}

static uint32_t make_place(struct ghost *g, uint16_t cost)
{
    while (g->used + cost > g->capacity || (!g->free && g->fresh == g->room))
        evict(g);
    const uint32_t number = g->free ? g->free : ++g->fresh;
    if (g->free)
        g->free = place_of(g, number)->next;
    return number;
}

bool ghost_touch(struct ghost *g, uint64_t name, uint32_t cell, uint16_t cost, bool settled)
{
    for (uint32_t at = g->room ? *head_of(g, name) : 0; at; at = place_of(g, at)->next)
        if (place_of(g, at)->name == name) {
            place_of(g, at)->visited = 1;
            return true;
        }
    if (cost > g->capacity || !g->room)
        return false;
    const uint32_t number = make_place(g, cost);
    struct ghost_place *p = place_of(g, number);
    uint32_t *head = head_of(g, name);
    *p = (struct ghost_place){.name = name,
                              .cell = cell,
                              .next = *head,
                              .older = g->newest,
                              .cost = cost,
                              .visited = settled};
    *head = number;
    if (g->newest)
        place_of(g, g->newest)->newer = number;
    else
        g->oldest = number;
    g->newest = number;
    g->used += cost;
    return false;
}
