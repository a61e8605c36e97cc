/* SPDX-License-Identifier: MIT
 *
 * The simulated machine as a whole: making and copying it, crashes, limits, the clock.
 */
#include "env/sim.h"

#include <string.h>

enum { TICK_NS = 1000 };

static void set_up(tamiz_env_sim *s, uint64_t seed, bool tracks)
{
    s->tracks = tracks;
    s->seed = seed;
    s->random = sim_mix(seed);
    s->boot = 1;
    s->generation = 1;
    s->disk_limit = s->files_limit = UINT64_MAX;
    s->tick_ns = TICK_NS;
}

/* Without a root. */
static tamiz_env_sim *sim_bare(void)
{
    struct counters unused;
    struct op op;
    op_init(&op, &alloc_libc, &unused);
    tamiz_env_sim *s = mem_new_array(&alloc_libc, 1, sizeof *s);
    if (!s)
        return NULL;
    if (mutex_init(&op, &s->mutex) == TAMIZ_OK)
        return s;
    mem_free(&alloc_libc, s, sizeof *s);
    return NULL;
}

void tamiz_env_sim_free(tamiz_env_sim *sim)
{
    if (!sim)
        return;
    sim_tasks_free(sim);
    tree_free(sim);
    mutex_free(&sim->mutex);
    mem_free(&alloc_libc, sim, sizeof *sim);
}

static tamiz_env_sim *sim_new(uint64_t seed, bool tracks)
{
    tamiz_env_sim *s = sim_bare();
    if (!s)
        return NULL;
    set_up(s, seed, tracks);
    s->root = node_new(s, true);
    if (!s->root) {
        tamiz_env_sim_free(s);
        return NULL;
    }
    s->root->links = 1;
    s->env = (tamiz_env){sim_ops(), s};
    return s;
}

tamiz_env_sim *tamiz_env_sim_new(uint64_t seed)
{
    return sim_new(seed, true);
}

const tamiz_env *tamiz_env_sim_env(tamiz_env_sim *sim)
{
    return &sim->env;
}

static void count_disk_used(tamiz_env_sim *s)
{
    s->disk_used = 0;
    for (const struct node *n = s->nodes; n; n = n->next)
        if (n->links || n->opens)
            s->disk_used += node_charge(n);
}

tamiz_env_sim *tamiz_env_sim_copy(tamiz_env_sim *sim)
{
    tamiz_env_sim *copy = sim_bare();
    if (!copy)
        return NULL;
    set_up(copy, sim->seed, sim->tracks);
    mutex_lock(&sim->mutex);
    copy->random = sim->random;
    copy->boot = sim->boot;
    copy->disk_limit = sim->disk_limit;
    copy->files_limit = sim->files_limit;
    copy->now_ns = sim->now_ns;
    copy->tick_ns = sim->tick_ns;
    copy->wall_step_us = sim->wall_step_us;
    const bool copied = tree_copy(copy, sim);
    mutex_unlock(&sim->mutex);
    if (!copied) {
        tamiz_env_sim_free(copy);
        return NULL;
    }
    copy->env = (tamiz_env){sim_ops(), copy};
    count_disk_used(copy);
    return copy;
}

/* ---- crashes ---- */

/* Every second change on average, by a threshold that differs from seed to seed: some crashes lose
 * nearly all, some nearly nothing. */
static bool survives(uint64_t seed, uint64_t index)
{
    const uint64_t often = sim_mix(seed) % 257; /* 0: none does, 256: all do */
    return (sim_mix(seed ^ sim_mix(index)) & 255) < often;
}

/* Nobody has files open any more; what only they led to goes with the next power cut or now. */
static void end_program(tamiz_env_sim *s)
{
    s->generation++;
    s->files_open = 0;
    s->stopped = false;
    s->stop_at = 0;
    struct node *next;
    for (struct node *n = s->nodes; n; n = next) {
        next = n->next;
        n->opens = 0;
        n->locked = false;
        if (!n->is_directory) /* leads to nothing else, so `next` stays */
            node_settle(s, n);
    }
}

static void cut_power(tamiz_env_sim *s, tamiz_sim_crash mode, const char *name, uint64_t n)
{
    s->boot++;
    struct node *newest = NULL;
    if (mode == TAMIZ_SIM_TEAR || mode == TAMIZ_SIM_ZERO || mode == TAMIZ_SIM_JUNK)
        newest = tree_newest(s, name);
    for (struct node *f = s->nodes; f; f = f->next) {
        if (mode == TAMIZ_SIM_REORDER)
            node_reorder(f, n);
        else if (f == newest && mode == TAMIZ_SIM_TEAR)
            node_tear(f, n);
        else if (f == newest)
            node_scribble(f, n, mode == TAMIZ_SIM_JUNK, sim_mix(s->seed) + s->boot);
        else if (mode != TAMIZ_SIM_DROP)
            node_sync(f);
        node_power_cut(f);
    }
    if (mode == TAMIZ_SIM_REORDER)
        tree_power_cut(s, survives, n);
    else {
        if (mode != TAMIZ_SIM_DROP)
            tree_sync_all(s);
        tree_power_cut(s, NULL, 0);
    }
}

void tamiz_env_sim_crash(tamiz_env_sim *sim, tamiz_sim_crash mode, const char *name, uint64_t n)
{
    mutex_lock(&sim->mutex);
    end_program(sim);
    if (mode != TAMIZ_SIM_KEEP && sim->tracks)
        cut_power(sim, mode, name, n);
    count_disk_used(sim);
    mutex_unlock(&sim->mutex);
}

bool tamiz_env_sim_flip(tamiz_env_sim *sim, const char *path, uint64_t bit)
{
    struct place place;
    mutex_lock(&sim->mutex);
    struct node *n = tree_find_there(sim, path, &place) == 0 ? place.node : NULL;
    const bool there = n && bit / 8 < n->cache.size;
    if (there) {
        const uint8_t mask = (uint8_t)(1u << (bit % 8));
        n->cache.data[bit / 8] ^= mask;
        if (bit / 8 < n->disk.size)
            n->disk.data[bit / 8] ^= mask;
    }
    mutex_unlock(&sim->mutex);
    return there;
}

/* ---- limits, clock ---- */

void tamiz_env_sim_limit_disk(tamiz_env_sim *sim, uint64_t bytes)
{
    mutex_lock(&sim->mutex);
    sim->disk_limit = bytes;
    mutex_unlock(&sim->mutex);
}

uint64_t tamiz_env_sim_disk_used(tamiz_env_sim *sim)
{
    mutex_lock(&sim->mutex);
    const uint64_t used = sim->disk_used;
    mutex_unlock(&sim->mutex);
    return used;
}

void tamiz_env_sim_limit_files(tamiz_env_sim *sim, uint64_t count)
{
    mutex_lock(&sim->mutex);
    sim->files_limit = count;
    mutex_unlock(&sim->mutex);
}

uint64_t tamiz_env_sim_files_open(tamiz_env_sim *sim)
{
    mutex_lock(&sim->mutex);
    const uint64_t open = sim->files_open;
    mutex_unlock(&sim->mutex);
    return open;
}

void tamiz_env_sim_clock_advance(tamiz_env_sim *sim, uint64_t us)
{
    mutex_lock(&sim->mutex);
    sim->now_ns += us * 1000;
    mutex_unlock(&sim->mutex);
}

void tamiz_env_sim_clock_tick(tamiz_env_sim *sim, uint64_t ns)
{
    mutex_lock(&sim->mutex);
    sim->tick_ns = ns;
    mutex_unlock(&sim->mutex);
}

void tamiz_env_sim_clock_step(tamiz_env_sim *sim, int64_t us)
{
    mutex_lock(&sim->mutex);
    sim->wall_step_us += us;
    mutex_unlock(&sim->mutex);
}

/* ---- the plain one ---- */

tamiz_env *tamiz_env_memory_new(void)
{
    tamiz_env_sim *s = sim_new(0, false);
    return s ? &s->env : NULL;
}

void tamiz_env_memory_free(tamiz_env *env)
{
    if (env)
        tamiz_env_sim_free(env->ctx);
}
