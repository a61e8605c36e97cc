/* SPDX-License-Identifier: MIT
 *
 * Threads, mutexes and conditions: the only caller of pthread. A mutex knows its owner, so that
 * code that needs it held can say so in an assert.
 *
 * Where there are no threads (WebAssembly, thread_none.c), a mutex is its owner and nothing else,
 * and thread_start is TAMIZ_NOT_SUPPORTED: stores there run with threads=0.
 */
#ifndef TAMIZ_ENV_THREAD_H
#define TAMIZ_ENV_THREAD_H

#if !defined(__wasi__)
#include <pthread.h>
#endif

#include "base/op.h"

struct mutex {
#if !defined(__wasi__)
    pthread_mutex_t lock;
#endif
    _Atomic uintptr_t owner; /* mutex_self() of the holder, or 0 */
};

struct condition {
#if defined(__wasi__)
    char nobody; /* to wait for */
#else
    pthread_cond_t cond; /* on the monotonic clock */
#endif
};

tamiz_status mutex_init(struct op *op, struct mutex *m);
void mutex_free(struct mutex *m);
void mutex_lock(struct mutex *m);
bool mutex_try_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
bool mutex_held(const struct mutex *m); /* by the calling thread: for asserts */

tamiz_status condition_init(struct op *op, struct condition *c);
void condition_free(struct condition *c);
void condition_wait(struct condition *c, struct mutex *m);
/* false: the time ran out. */
bool condition_wait_us(struct condition *c, struct mutex *m, uint64_t us);
void condition_signal(struct condition *c);
void condition_broadcast(struct condition *c);

struct thread {
#if defined(__wasi__)
    char never; /* started */
#else
    pthread_t id;
#endif
};

/* `run` starts with all signals blocked, so that an embedder's handlers never run on our threads.
 * `name` up to 15 bytes. */
tamiz_status thread_start(struct op *op, struct thread *t, const char *name, void (*run)(void *ctx),
                          void *ctx);
void thread_join(struct thread *t);
void thread_yield(void);

/* A page that reads 1 in this process and 0 in a forked child: how a handle notices that it crossed
 * fork(). It reads 1 in the child too where the system has no such pages. NULL: out of memory.
 * Owned. */
const _Atomic unsigned char *fork_guard_new(void);
void fork_guard_free(const _Atomic unsigned char *guard);

#endif
