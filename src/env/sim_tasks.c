/* SPDX-License-Identifier: MIT
 *
 * Tasks that take turns. A store with threads=0 passes named points on its way; at each one the
 * seed decides which task goes on. So calls of several callers, and the background work that they
 * do, are interleaved in the middle, and the same way each time.
 *
 * Each task is a thread, for its stack; only the one whose turn it is runs, the others wait for
 * theirs on a condition of their own.
 */
#include <assert.h>
#include <string.h>

#include "env/sim.h"

struct sim_task {
    struct sim_task *next;
    tamiz_env_sim *sim;
    struct thread thread;
    struct condition turn;
    void (*run)(void *ctx);
    void *ctx;
    const char *at; /* the point it stands at; "" before its first */
    bool ended;
};

static bool is_held(const tamiz_env_sim *s, const char *point)
{
    for (size_t i = 0; i < s->held_count; i++)
        if (name_matches(s->held[i], point))
            return true;
    return false;
}

/* Those that could go on; the `which`-th of them into *task. */
static uint64_t count_ready(const tamiz_env_sim *s, const struct sim_task *but, uint64_t which,
                            struct sim_task **task)
{
    uint64_t n = 0;
    for (struct sim_task *t = s->tasks; t; t = t->next)
        if (t != but && !t->ended && !is_held(s, t->at)) {
            if (n == which)
                *task = t;
            n++;
        }
    return n;
}

/* Who goes on; NULL: all have ended. `but` only where nobody else can. */
static struct sim_task *choose(tamiz_env_sim *s, const struct sim_task *but)
{
    struct sim_task *task = NULL;
    uint64_t n = count_ready(s, but, UINT64_MAX, &task);
    if (n == 0)
        n = count_ready(s, but = NULL, UINT64_MAX, &task);
    if (n == 0) {
        s->held_count = 0; /* nobody is left who could let them go on */
        n = count_ready(s, NULL, UINT64_MAX, &task);
    }
    if (n == 0)
        return NULL;
    s->schedule = sim_mix(s->schedule);
    (void)count_ready(s, but, s->schedule % n, &task);
    return task;
}

static void give_turn(tamiz_env_sim *s, struct sim_task *next)
{
    s->turn = next;
    condition_signal(next ? &next->turn : &s->tasks_ended);
}

static void await_turn(tamiz_env_sim *s, struct sim_task *me)
{
    while (s->turn != me)
        condition_wait(&me->turn, &s->mutex);
}

void sim_point(void *ctx, const char *name)
{
    tamiz_env_sim *s = ctx;
    mutex_lock(&s->mutex);
    s->points++;
    if (s->on_point) {
        void (*const watch)(void *, const char *) = s->on_point;
        void *const watch_ctx = s->on_point_ctx;
        mutex_unlock(&s->mutex);
        watch(watch_ctx, name);
        mutex_lock(&s->mutex);
    }
    struct sim_task *me = s->turn;
    if (me) {
        me->at = name;
        struct sim_task *next = choose(s, strcmp(name, TAMIZ_SIM_WAIT) == 0 ? me : NULL);
        if (next != me) {
            give_turn(s, next);
            await_turn(s, me);
        }
    }
    mutex_unlock(&s->mutex);
}

static void task_run(void *ctx)
{
    struct sim_task *t = ctx;
    tamiz_env_sim *s = t->sim;
    mutex_lock(&s->mutex);
    await_turn(s, t);
    mutex_unlock(&s->mutex);
    t->run(t->ctx);
    mutex_lock(&s->mutex);
    t->ended = true;
    give_turn(s, choose(s, NULL));
    mutex_unlock(&s->mutex);
}

/* ---- the public side ---- */

bool tamiz_env_sim_task(tamiz_env_sim *sim, void (*run)(void *ctx), void *ctx)
{
    struct counters unused;
    struct op op;
    op_init(&op, &alloc_libc, &unused);
    struct sim_task *t = mem_new_array(&alloc_libc, 1, sizeof *t);
    if (!t || condition_init(&op, &t->turn) != TAMIZ_OK) {
        mem_free(&alloc_libc, t, sizeof *t);
        return false;
    }
    t->sim = sim;
    t->run = run;
    t->ctx = ctx;
    t->at = "";
    mutex_lock(&sim->mutex);
    struct sim_task **end = &sim->tasks;
    while (*end)
        end = &(*end)->next;
    *end = t;
    mutex_unlock(&sim->mutex);
    return true;
}

void sim_tasks_free(tamiz_env_sim *s)
{
    while (s->tasks) {
        struct sim_task *t = s->tasks;
        s->tasks = t->next;
        condition_free(&t->turn);
        mem_free(&alloc_libc, t, sizeof *t);
    }
    s->held_count = 0;
}

bool tamiz_env_sim_run(tamiz_env_sim *sim, uint64_t seed)
{
    struct counters unused;
    struct op op;
    op_init(&op, &alloc_libc, &unused);
    if (condition_init(&op, &sim->tasks_ended) != TAMIZ_OK)
        return false;
    bool all = true;
    struct sim_task *t;
    mutex_lock(&sim->mutex);
    assert(!sim->turn);
    sim->schedule = sim_mix(seed);
    for (t = sim->tasks; t && all; t = all ? t->next : t)
        all = thread_start(&op, &t->thread, "tamiz-task", task_run, t) == TAMIZ_OK;
    for (struct sim_task *rest = t; rest; rest = rest->next)
        rest->ended = true; /* it never began */
    give_turn(sim, choose(sim, NULL));
    while (sim->turn)
        condition_wait(&sim->tasks_ended, &sim->mutex);
    mutex_unlock(&sim->mutex);
    for (struct sim_task *begun = sim->tasks; begun != t; begun = begun->next)
        thread_join(&begun->thread);
    condition_free(&sim->tasks_ended);
    sim_tasks_free(sim);
    return all;
}

void tamiz_env_sim_point(tamiz_env_sim *sim, const char *name)
{
    sim_point(sim, name);
}

bool tamiz_env_sim_hold(tamiz_env_sim *sim, const char *point)
{
    const size_t size = strlen(point) + 1;
    mutex_lock(&sim->mutex);
    const bool room = size <= PATTERN_BYTES && sim->held_count < HELD;
    if (room)
        memcpy(sim->held[sim->held_count++], point, size);
    mutex_unlock(&sim->mutex);
    return room;
}

void tamiz_env_sim_let_go(tamiz_env_sim *sim)
{
    mutex_lock(&sim->mutex);
    sim->held_count = 0;
    mutex_unlock(&sim->mutex);
}

uint64_t tamiz_env_sim_held(tamiz_env_sim *sim)
{
    uint64_t n = 0;
    mutex_lock(&sim->mutex);
    for (const struct sim_task *t = sim->tasks; t; t = t->next)
        n += !t->ended && is_held(sim, t->at);
    mutex_unlock(&sim->mutex);
    return n;
}

uint64_t tamiz_env_sim_points(tamiz_env_sim *sim)
{
    mutex_lock(&sim->mutex);
    const uint64_t points = sim->points;
    mutex_unlock(&sim->mutex);
    return points;
}

void tamiz_env_sim_on_point(tamiz_env_sim *sim, void (*point)(void *ctx, const char *name),
                            void *ctx)
{
    mutex_lock(&sim->mutex);
    sim->on_point = point;
    sim->on_point_ctx = ctx;
    mutex_unlock(&sim->mutex);
}
