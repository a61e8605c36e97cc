/* SPDX-License-Identifier: MIT
 *
 * Threads, mutexes and conditions: the only caller of pthread. A mutex knows its owner, so that
 * code that needs it held can say so in an assert.
 */
#ifndef TAMIZ_ENV_THREAD_H
#define TAMIZ_ENV_THREAD_H

#include <pthread.h>

#include "base/op.h"

struct mutex {
    pthread_mutex_t lock;
    _Atomic uintptr_t owner; /* mutex_self() of the holder, or 0 */
};

struct condition {
    pthread_cond_t cond; /* on the monotonic clock */
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
    pthread_t id;
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
