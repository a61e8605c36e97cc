/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pthread_setname_np, MADV_WIPEONFORK */
#include "env/thread.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 16 }; /* the kernel's limit, NUL included */

/* A number that no other living thread has, without a system call. */
static uintptr_t mutex_self(void)
{
    static _Thread_local char self;
    return (uintptr_t)&self;
}

tamiz_status mutex_init(struct op *op, struct mutex *m)
{
    atomic_init(&m->owner, 0);
    const int error = pthread_mutex_init(&m->lock, NULL);
    return error ? op_fail_os(op, error, "make", "mutex") : TAMIZ_OK;
}

void mutex_free(struct mutex *m)
{
    const int error = pthread_mutex_destroy(&m->lock);
    assert(error == 0);
    (void)error;
}

static void own(struct mutex *m)
{
    atomic_store_explicit(&m->owner, mutex_self(), memory_order_relaxed);
}

static void disown(struct mutex *m)
{
    assert(mutex_held(m));
    atomic_store_explicit(&m->owner, 0, memory_order_relaxed);
}

void mutex_lock(struct mutex *m)
{
    assert(!mutex_held(m));
    const int error = pthread_mutex_lock(&m->lock);
    assert(error == 0);
    (void)error;
    own(m);
}

bool mutex_try_lock(struct mutex *m)
{
    if (pthread_mutex_trylock(&m->lock) != 0)
        return false;
    own(m);
    return true;
}

void mutex_unlock(struct mutex *m)
{
    disown(m);
    const int error = pthread_mutex_unlock(&m->lock);
    assert(error == 0);
    (void)error;
}

/* Relaxed is enough: only the caller itself could have stored the caller's number. */
bool mutex_held(const struct mutex *m)
{
    return atomic_load_explicit(&m->owner, memory_order_relaxed) == mutex_self();
}

tamiz_status condition_init(struct op *op, struct condition *c)
{
    pthread_condattr_t monotonic;
    int error = pthread_condattr_init(&monotonic);
    if (error)
        return op_fail_os(op, error, "make", "condition");
    error = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (!error)
        error = pthread_cond_init(&c->cond, &monotonic);
    (void)pthread_condattr_destroy(&monotonic); /* holds nothing */
    return error ? op_fail_os(op, error, "make", "condition") : TAMIZ_OK;
}

void condition_free(struct condition *c)
{
    const int error = pthread_cond_destroy(&c->cond);
    assert(error == 0);
    (void)error;
}

void condition_wait(struct condition *c, struct mutex *m)
{
    disown(m);
    const int error = pthread_cond_wait(&c->cond, &m->lock);
    assert(error == 0);
    (void)error;
    own(m);
}

bool condition_wait_us(struct condition *c, struct mutex *m, uint64_t us)
{
    enum { LONGEST_S = 1 << 30 }; /* keeps the sum below inside time_t */
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail for this clock */
    const uint64_t ns = (uint64_t)until.tv_nsec + us % 1000000 * 1000;
    const uint64_t s = us / 1000000 < LONGEST_S ? us / 1000000 : LONGEST_S;
    until.tv_sec += (time_t)(s + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    disown(m);
    const int error = pthread_cond_timedwait(&c->cond, &m->lock, &until);
    assert(error == 0 || error == ETIMEDOUT);
    own(m);
    return error != ETIMEDOUT;
}

void condition_signal(struct condition *c)
{
    const int error = pthread_cond_signal(&c->cond);
    assert(error == 0);
    (void)error;
}

void condition_broadcast(struct condition *c)
{
    const int error = pthread_cond_broadcast(&c->cond);
    assert(error == 0);
    (void)error;
}

/* What a new thread needs to know; owned by it once it runs. */
struct start {
    const struct alloc *alloc;
    void (*run)(void *ctx);
    void *ctx;
    char name[NAME_MAX_BYTES];
};

static void *thread_main(void *arg)
{
    struct start *given = arg;
    const struct start start = *given;
    mem_free(start.alloc, given, sizeof *given);
#if defined(__linux__)
    (void)pthread_setname_np(pthread_self(), start.name); /* for people who look; may fail */
#endif
    start.run(start.ctx);
    return NULL;
}

tamiz_status thread_start(struct op *op, struct thread *t, const char *name, void (*run)(void *ctx),
                          void *ctx)
{
    struct start *start = mem_new(op->alloc, sizeof *start);
    if (!start)
        return op_fail_memory(op);
    *start = (struct start){op->alloc, run, ctx, {0}};
    for (size_t i = 0; i < NAME_MAX_BYTES - 1 && name[i]; i++)
        start->name[i] = name[i];

    /* A thread inherits the mask of its maker: block all, start, restore. */
    sigset_t all, before;
    (void)sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!error) {
        error = pthread_create(&t->id, NULL, thread_main, start);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* worked a moment ago */
    }
    if (!error)
        return TAMIZ_OK;
    mem_free(op->alloc, start, sizeof *start);
    return op_fail_os(op, error, "start", "thread");
}

void thread_join(struct thread *t)
{
    const int error = pthread_join(t->id, NULL);
    assert(error == 0);
    (void)error;
}

void thread_yield(void)
{
    (void)sched_yield();
}

static size_t page_size(void)
{
    const long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

const _Atomic unsigned char *fork_guard_new(void)
{
    void *page =
        mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
#if defined(MADV_WIPEONFORK)
    (void)madvise(page, page_size(), MADV_WIPEONFORK); /* refused before Linux 4.14: stays 1 */
#endif
    _Atomic unsigned char *guard = page;
    atomic_init(guard, 1);
    return guard;
}

void fork_guard_free(const _Atomic unsigned char *guard)
{
    if (guard)
        (void)munmap((void *)(uintptr_t)guard, page_size()); /* ours: cannot fail */
}
