/* SPDX-License-Identifier: MIT
 *
 * Which call of the simulated machine meets which fault. Each call is counted, shown to whoever
 * watches, and compared with the faults that are set; the first that matches decides.
 */
#include <errno.h>
#include <string.h>

#include "env/sim.h"

static const struct {
    const char *name;
    bool changes;
} kinds[TAMIZ_SIM_CALLS] = {
    [TAMIZ_SIM_ANY] = {"any", false},          [TAMIZ_SIM_CHANGE] = {"change", false},
    [TAMIZ_SIM_OPEN] = {"open", false},        [TAMIZ_SIM_CREATE] = {"create", true},
    [TAMIZ_SIM_CLOSE] = {"close", false},      [TAMIZ_SIM_READ] = {"read", false},
    [TAMIZ_SIM_WRITE] = {"write", true},       [TAMIZ_SIM_FSYNC] = {"fsync", true},
    [TAMIZ_SIM_TRUNCATE] = {"truncate", true}, [TAMIZ_SIM_ALLOCATE] = {"alloc", true},
    [TAMIZ_SIM_INFO] = {"info", false},        [TAMIZ_SIM_LIST] = {"list", false},
    [TAMIZ_SIM_MKDIR] = {"mkdir", true},       [TAMIZ_SIM_RMDIR] = {"rmdir", true},
    [TAMIZ_SIM_RENAME] = {"rename", true},     [TAMIZ_SIM_LINK] = {"link", true},
    [TAMIZ_SIM_UNLINK] = {"unlink", true},     [TAMIZ_SIM_DIRSYNC] = {"dirsync", true},
    [TAMIZ_SIM_LOCK] = {"lock", true},         [TAMIZ_SIM_UNLOCK] = {"unlock", false},
};

const char *tamiz_sim_call_name(tamiz_sim_call kind)
{
    return (unsigned)kind < TAMIZ_SIM_CALLS ? kinds[kind].name : "";
}

/* Remembers the last star and tries again one character further on. */
bool name_matches(const char *pattern, const char *name)
{
    if (!pattern)
        return true;
    const char *star = NULL, *retry = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            retry = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

static bool fault_matches(const struct fault *f, const struct call *call)
{
    const tamiz_sim_call want = f->what.call;
    if (want != TAMIZ_SIM_ANY && want != call->kind &&
        !(want == TAMIZ_SIM_CHANGE && kinds[call->kind].changes))
        return false;
    return f->any_name || (call->name && name_matches(f->name, call->name)) ||
           (call->other && name_matches(f->name, call->other));
}

/* An effect on a call that cannot have it is a plain failure. */
static tamiz_sim_effect effect_on(tamiz_sim_effect effect, tamiz_sim_call kind)
{
    switch (effect) {
    case TAMIZ_SIM_SHORT:
    case TAMIZ_SIM_MISDIRECT:
    case TAMIZ_SIM_STALE:
        return kind == TAMIZ_SIM_READ || kind == TAMIZ_SIM_WRITE ? effect : TAMIZ_SIM_FAIL;
    case TAMIZ_SIM_FLIP: return kind == TAMIZ_SIM_READ ? effect : TAMIZ_SIM_FAIL;
    case TAMIZ_SIM_LOSE: return kind == TAMIZ_SIM_FSYNC ? effect : TAMIZ_SIM_FAIL;
    case TAMIZ_SIM_FAIL:
    case TAMIZ_SIM_DELAY:
    case TAMIZ_SIM_STOP: break;
    }
    return effect;
}

/* The fault that this call meets, or NULL. All that match count it. */
static const tamiz_sim_fault *fault_for(tamiz_env_sim *s, const struct call *call)
{
    const tamiz_sim_fault *met = NULL;
    for (size_t i = 0; i < s->fault_count; i++) {
        struct fault *f = &s->faults[i];
        if (!fault_matches(f, call))
            continue;
        f->seen++;
        if (!met && (f->what.sticky ? f->seen >= f->what.nth : f->seen == f->what.nth))
            met = &f->what;
    }
    return met;
}

/* Whether the call claims that all went well. */
static bool is_silent(tamiz_sim_effect effect, tamiz_sim_call kind)
{
    return effect == TAMIZ_SIM_DELAY || effect == TAMIZ_SIM_FLIP || effect == TAMIZ_SIM_MISDIRECT ||
           effect == TAMIZ_SIM_STALE || (effect == TAMIZ_SIM_SHORT && kind == TAMIZ_SIM_READ);
}

/* Turns a fault into what becomes of the call. */
static int meet(tamiz_env_sim *s, struct call *call, const tamiz_sim_fault *f)
{
    s->faults_acted++;
    call->effect = effect_on(f->effect, call->kind);
    call->error = is_silent(call->effect, call->kind) ? 0 : -f->error;
    call->argument = f->argument;
    call->after = f->after;
    if (call->effect == TAMIZ_SIM_DELAY)
        s->now_ns += f->argument * 1000;
    if (call->effect == TAMIZ_SIM_STOP) {
        s->stopped = true;
        call->error = -EIO;
    }
    const bool fails = call->effect == TAMIZ_SIM_FAIL || call->effect == TAMIZ_SIM_STOP;
    return fails && !call->after ? call->error : 0;
}

static uint64_t count(tamiz_env_sim *s, const struct call *call)
{
    s->calls[call->kind]++;
    s->calls[TAMIZ_SIM_CHANGE] += kinds[call->kind].changes;
    return ++s->calls[TAMIZ_SIM_ANY];
}

int call_begin(tamiz_env_sim *s, struct call *call)
{
    mutex_lock(&s->mutex);
    call->effect = TAMIZ_SIM_DELAY;
    call->error = 0;
    call->argument = 0;
    call->after = false;
    const uint64_t number = count(s, call);
    if (s->on_call) {
        void (*const watch)(void *, uint64_t, tamiz_sim_call, const char *) = s->on_call;
        void *const ctx = s->on_call_ctx;
        mutex_unlock(&s->mutex);
        watch(ctx, number, call->kind, call->name ? call->name : "");
        mutex_lock(&s->mutex);
    }
    if (s->stop_at && number >= s->stop_at)
        s->stopped = true;
    if (s->stopped)
        return -EIO;
    const tamiz_sim_fault *f = fault_for(s, call);
    return f ? meet(s, call, f) : 0;
}

int call_end(tamiz_env_sim *s, const struct call *call, int result)
{
    mutex_unlock(&s->mutex);
    return result == 0 && call->error ? call->error : result;
}

/* ---- the public side ---- */

bool tamiz_env_sim_fault(tamiz_env_sim *sim, const tamiz_sim_fault *fault)
{
    if (fault->struct_size < sizeof *fault || (unsigned)fault->call >= TAMIZ_SIM_CALLS ||
        (unsigned)fault->effect > TAMIZ_SIM_STOP || fault->nth == 0 || fault->error <= 0 ||
        (fault->name && strlen(fault->name) >= PATTERN_BYTES))
        return false;
    mutex_lock(&sim->mutex);
    const bool room = sim->fault_count < FAULTS;
    if (room) {
        struct fault *f = &sim->faults[sim->fault_count++];
        *f = (struct fault){.what = *fault, .any_name = fault->name == NULL};
        f->what.name = NULL;
        if (fault->name)
            memcpy(f->name, fault->name, strlen(fault->name) + 1);
    }
    mutex_unlock(&sim->mutex);
    return room;
}

uint64_t tamiz_env_sim_faults_acted(tamiz_env_sim *sim)
{
    mutex_lock(&sim->mutex);
    const uint64_t acted = sim->faults_acted;
    mutex_unlock(&sim->mutex);
    return acted;
}

void tamiz_env_sim_clear(tamiz_env_sim *sim)
{
    mutex_lock(&sim->mutex);
    sim->fault_count = 0;
    sim->faults_acted = 0;
    mutex_unlock(&sim->mutex);
}

void tamiz_env_sim_stop_at(tamiz_env_sim *sim, uint64_t call)
{
    mutex_lock(&sim->mutex);
    sim->stop_at = call;
    mutex_unlock(&sim->mutex);
}

bool tamiz_env_sim_stopped(tamiz_env_sim *sim)
{
    mutex_lock(&sim->mutex);
    const bool stopped = sim->stopped;
    mutex_unlock(&sim->mutex);
    return stopped;
}

uint64_t tamiz_env_sim_calls(tamiz_env_sim *sim, tamiz_sim_call kind)
{
    mutex_lock(&sim->mutex);
    const uint64_t calls = (unsigned)kind < TAMIZ_SIM_CALLS ? sim->calls[kind] : 0;
    mutex_unlock(&sim->mutex);
    return calls;
}

void tamiz_env_sim_on_call(tamiz_env_sim *sim,
                           void (*call)(void *ctx, uint64_t number, tamiz_sim_call kind,
                                        const char *name),
                           void *ctx)
{
    mutex_lock(&sim->mutex);
    sim->on_call = call;
    sim->on_call_ctx = ctx;
    mutex_unlock(&sim->mutex);
}
