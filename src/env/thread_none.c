/* SPDX-License-Identifier: MIT
 *
 * thread.h for one thread alone: in a browser, and wherever else WebAssembly runs without threads.
 * What is left of a mutex is its owner, so that the asserts that ask for it still hold.
 */
#include "env/thread.h"

#if defined(__wasi__)

#include <assert.h>

enum { FREE, HELD };

tamiz_status mutex_init(struct op *op, struct mutex *m)
{
    (void)op;
    atomic_init(&m->owner, FREE);
    return TAMIZ_OK;
}

void mutex_free(struct mutex *m)
{
    assert(!mutex_held(m));
    (void)m;
}

void mutex_lock(struct mutex *m)
{
    assert(!mutex_held(m));
    atomic_store_explicit(&m->owner, HELD, memory_order_relaxed);
}

bool mutex_try_lock(struct mutex *m)
{
    if (mutex_held(m))
        return false;
    mutex_lock(m);
    return true;
}

void mutex_unlock(struct mutex *m)
{
    assert(mutex_held(m));
    atomic_store_explicit(&m->owner, FREE, memory_order_relaxed);
}

bool mutex_held(const struct mutex *m)
{
    return atomic_load_explicit(&m->owner, memory_order_relaxed) == HELD;
}

tamiz_status condition_init(struct op *op, struct condition *c)
{
    (void)op;
    c->nobody = 0;
    return TAMIZ_OK;
}

void condition_free(struct condition *c)
{
    (void)c;
}

/* Returns at once, as any wait may. With threads=0 nobody waits for what only another could do. */
void condition_wait(struct condition *c, struct mutex *m)
{
    (void)c;
    assert(mutex_held(m));
    (void)m;
}

/* Nobody will signal: the time is as good as over. */
bool condition_wait_us(struct condition *c, struct mutex *m, uint64_t us)
{
    (void)us;
    condition_wait(c, m);
    return false;
}

void condition_signal(struct condition *c)
{
    (void)c;
}

void condition_broadcast(struct condition *c)
{
    (void)c;
}

tamiz_status thread_start(struct op *op, struct thread *t, const char *name, void (*run)(void *ctx),
                          void *ctx)
{
    t->never = 0;
    (void)run;
    (void)ctx;
    return op_fail(op, TAMIZ_NOT_SUPPORTED, "thread %s: there are none here: open with threads=0",
                   name);
}

void thread_join(struct thread *t)
{
    (void)t;
}

void thread_yield(void)
{
}

/* No process forks here. */
const _Atomic unsigned char *fork_guard_new(void)
{
    static const _Atomic unsigned char same = 1;
    return &same;
}

void fork_guard_free(const _Atomic unsigned char *guard)
{
    (void)guard;
}

#endif
