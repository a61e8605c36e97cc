/* SPDX-License-Identifier: MIT
 * LABEL: threads
 */
#define _GNU_SOURCE /* pthread_getname_np */
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/thread.h"

struct shared {
    struct mutex mutex;
    struct condition turned;
    uint64_t count;      /* guarded by mutex */
    int turn;            /* guarded by mutex */
    bool held_by_worker; /* guarded by mutex */
    char name[16];
    bool signals_blocked;
};

static void shared_init(struct shared *s, struct test_op *t)
{
    memset(s, 0, sizeof *s);
    test_op_init(t);
    assert_status(&t->op, mutex_init(&t->op, &s->mutex), TAMIZ_OK);
    assert_status(&t->op, condition_init(&t->op, &s->turned), TAMIZ_OK);
}

static void shared_free(struct shared *s)
{
    condition_free(&s->turned);
    mutex_free(&s->mutex);
}

enum { ROUNDS = 20000 };

static void count_up(void *ctx)
{
    struct shared *s = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        mutex_lock(&s->mutex);
        s->count++;
        mutex_unlock(&s->mutex);
    }
}

static void a_mutex_excludes(void **state)
{
    (void)state;
    struct shared s;
    struct test_op t;
    struct thread threads[3];
    shared_init(&s, &t);
    for (int i = 0; i < 3; i++)
        assert_status(&t.op, thread_start(&t.op, &threads[i], "counter", count_up, &s), TAMIZ_OK);
    for (int i = 0; i < 3; i++)
        thread_join(&threads[i]);
    assert_int_equal(s.count, 3 * ROUNDS);
    shared_free(&s);
}

static void look_from_outside(void *ctx)
{
    struct shared *s = ctx;
    s->held_by_worker = mutex_held(&s->mutex) || mutex_try_lock(&s->mutex);
}

static void a_mutex_knows_its_owner(void **state)
{
    (void)state;
    struct shared s;
    struct test_op t;
    struct thread thread;
    shared_init(&s, &t);
    assert_false(mutex_held(&s.mutex));
    mutex_lock(&s.mutex);
    assert_true(mutex_held(&s.mutex));
    assert_status(&t.op, thread_start(&t.op, &thread, "other", look_from_outside, &s), TAMIZ_OK);
    thread_join(&thread);
    assert_false(s.held_by_worker);
    assert_true(mutex_held(&s.mutex));
    assert_false(condition_wait_us(&s.turned, &s.mutex, 1000));
    assert_true(mutex_held(&s.mutex));
    mutex_unlock(&s.mutex);
    assert_false(mutex_held(&s.mutex));
    assert_true(mutex_try_lock(&s.mutex));
    assert_true(mutex_held(&s.mutex));
    mutex_unlock(&s.mutex);
    shared_free(&s);
}

static void play(struct shared *s, int me)
{
    mutex_lock(&s->mutex);
    for (int i = 0; i < 1000; i++) {
        while (s->turn != me)
            condition_wait(&s->turned, &s->mutex);
        s->turn = !me;
        condition_signal(&s->turned);
    }
    mutex_unlock(&s->mutex);
}

static void play_one(void *ctx)
{
    play(ctx, 1);
}

static void a_signal_wakes_who_waits(void **state)
{
    (void)state;
    struct shared s;
    struct test_op t;
    struct thread thread;
    shared_init(&s, &t);
    assert_status(&t.op, thread_start(&t.op, &thread, "player", play_one, &s), TAMIZ_OK);
    play(&s, 0);
    thread_join(&thread);
    assert_int_equal(s.turn, 0);
    shared_free(&s);
}

static void wait_for_turn(void *ctx)
{
    struct shared *s = ctx;
    mutex_lock(&s->mutex);
    while (!s->turn)
        (void)condition_wait_us(&s->turned, &s->mutex, UINT64_MAX); /* no overflow into the past */
    s->count++;
    mutex_unlock(&s->mutex);
}

static void a_broadcast_wakes_all(void **state)
{
    (void)state;
    struct shared s;
    struct test_op t;
    struct thread threads[3];
    shared_init(&s, &t);
    for (int i = 0; i < 3; i++)
        assert_status(&t.op, thread_start(&t.op, &threads[i], "waiter", wait_for_turn, &s),
                      TAMIZ_OK);
    mutex_lock(&s.mutex);
    s.turn = 1;
    condition_broadcast(&s.turned);
    mutex_unlock(&s.mutex);
    for (int i = 0; i < 3; i++)
        thread_join(&threads[i]);
    assert_int_equal(s.count, 3);
    shared_free(&s);
}

static void note_surroundings(void *ctx)
{
    struct shared *s = ctx;
    sigset_t mask;
    (void)pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    s->signals_blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGUSR1) == 1;
}

static void a_thread_has_its_name_and_no_signals(void **state)
{
    (void)state;
    struct shared s;
    struct test_op t;
    struct thread thread;
    sigset_t mask;
    shared_init(&s, &t);
    assert_status(&t.op,
                  thread_start(&t.op, &thread, "a name that is too long", note_surroundings, &s),
                  TAMIZ_OK);
    thread_join(&thread);
    assert_string_equal(s.name, "a name that is ");
    assert_true(s.signals_blocked);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM)); /* ours is as it was */
    shared_free(&s);
}

static void a_forked_child_sees_the_guard_wiped(void **state)
{
    (void)state;
    const _Atomic unsigned char *guard = fork_guard_new();
    assert_non_null(guard);
    assert_int_equal(atomic_load(guard), 1);
    const pid_t child = fork();
    if (child == 0)
        _exit(atomic_load(guard));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(atomic_load(guard), 1);
    fork_guard_free(guard);
    fork_guard_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mutex_excludes),
        cmocka_unit_test(a_mutex_knows_its_owner),
        cmocka_unit_test(a_signal_wakes_who_waits),
        cmocka_unit_test(a_broadcast_wakes_all),
        cmocka_unit_test(a_thread_has_its_name_and_no_signals),
        cmocka_unit_test(a_forked_child_sees_the_guard_wiped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
