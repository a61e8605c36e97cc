/* SPDX-License-Identifier: MIT
 *
 * Writers and a background that does not get on: its one thread is held in the event of its first
 * flush. LABEL: threads
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "support/store.h"

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    bool closed;
    unsigned held;
};

static void hold(void *ctx, tamiz_event_kind kind, const char *text)
{
    struct gate *g = ctx;
    (void)text;
    if (kind != TAMIZ_EVENT_FLUSH)
        return;
    pthread_mutex_lock(&g->mutex);
    g->held++;
    pthread_cond_broadcast(&g->moved);
    while (g->closed)
        pthread_cond_wait(&g->moved, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void gate_open(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->closed = false;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->mutex);
}

static void gate_wait_held(struct gate *g)
{
    pthread_mutex_lock(&g->mutex);
    while (!g->held)
        pthread_cond_wait(&g->moved, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

struct stalled {
    tamiz_env *env;
    tamiz *db;
    struct gate gate;
    unsigned written;
};

static tamiz_status put_next(struct stalled *s, bool no_wait)
{
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    char key[16], value[1000];
    options.no_wait = no_wait;
    memset(value, 'v', sizeof value);
    const int size = snprintf(key, sizeof key, "%08u", s->written);
    const tamiz_status st = tamiz_put(s->db, key, (size_t)size, value, sizeof value, &options);
    s->written += st == TAMIZ_OK;
    return st;
}

/* One thread, and a gate that holds it in its first flush. */
static void stall_begin(struct stalled *s, const char *text)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    *s = (struct stalled){.env = tamiz_env_memory_new(), .gate = {.closed = true}};
    assert_non_null(s->env);
    pthread_mutex_init(&s->gate.mutex, NULL);
    pthread_cond_init(&s->gate.moved, NULL);
    assert_public(tamiz_options_set(&options, text), TAMIZ_OK);
    options.env = s->env;
    options.log = (tamiz_event_log){hold, &s->gate};
    assert_public(tamiz_open("s", &options, &s->db), TAMIZ_OK);
}

/* The thread is held, and memtables are filled until a writer would wait. */
static void stall(struct stalled *s)
{
    stall_begin(s, "threads=1 memtable=64KiB");
    tamiz_status st = TAMIZ_OK;
    for (int i = 0; i < 70 && st == TAMIZ_OK; i++) /* the first memtable, and some */
        st = put_next(s, false);
    gate_wait_held(&s->gate);
    for (int i = 0; i < 1000 && st == TAMIZ_OK; i++)
        st = put_next(s, true);
    assert_int_equal(st, TAMIZ_BUSY);
}

static void unstall(struct stalled *s)
{
    gate_open(&s->gate);
    test_close(s->db);
    tamiz_env_memory_free(s->env);
    pthread_cond_destroy(&s->gate.moved);
    pthread_mutex_destroy(&s->gate.mutex);
}

static void a_write_that_may_not_wait_is_told_why_and_changes_nothing(void **state)
{
    struct stalled s;
    (void)state;
    stall(&s);
    assert_non_null(strstr(tamiz_error_detail(), "memtables are not flushed yet"));
    char key[16];
    (void)snprintf(key, sizeof key, "%08u", s.written);
    test_expect(s.db, key, NULL, NULL);
    assert_public(tamiz_exists(s.db, "00000000", 8, NULL), TAMIZ_OK);
    gate_open(&s.gate);
    assert_public(tamiz_flush(s.db), TAMIZ_OK);
    assert_public(put_next(&s, true), TAMIZ_OK);
    unstall(&s);
}

static void *writer_run(void *ctx)
{
    struct stalled *s = ctx;
    for (int i = 0; i < 300; i++)
        if (put_next(s, false) != TAMIZ_OK)
            return ctx;
    return NULL;
}

static void a_write_that_waits_goes_on_and_its_wait_is_counted_by_reason(void **state)
{
    struct stalled s;
    pthread_t writer;
    void *failed = &s;
    tamiz_stats stats = TAMIZ_STATS_INIT;
    (void)state;
    stall(&s);
    assert_int_equal(pthread_create(&writer, NULL, writer_run, &s), 0);
    do
        assert_public(tamiz_stats_get(s.db, &stats), TAMIZ_OK);
    while (stats.stalls == 0);
    assert_true(stats.stall_flush_us > 0 || stats.stall_us == 0);
    gate_open(&s.gate);
    assert_int_equal(pthread_join(writer, &failed), 0);
    assert_null(failed);
    assert_public(tamiz_stats_get(s.db, &stats), TAMIZ_OK);
    assert_int_equal(stats.stall_us,
                     stats.stall_flush_us + stats.stall_level0_us + stats.stall_debt_us);
    unstall(&s);
}

static tamiz_status put_sized(struct stalled *s, size_t size, bool no_wait)
{
    static char value[1 << 20];
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    options.no_wait = no_wait;
    return tamiz_put(s->db, "large", 5, value, size, &options);
}

/* The env's clock moves by a microsecond with each look. */
static void a_pause_ends_though_the_clock_stands(void **state)
{
    struct stalled s;
    struct timespec from, to;
    tamiz_stats stats = TAMIZ_STATS_INIT;
    (void)state;
    stall_begin(&s, "threads=1 memtable=256KiB");
    for (int i = 0; i < 2; i++) {
        assert_public(put_sized(&s, 900 << 10, false), TAMIZ_OK);
        assert_public(put_sized(&s, 1, false), TAMIZ_OK); /* seals it */
    }
    gate_wait_held(&s.gate);
    assert_public(put_sized(&s, 70 << 10, false), TAMIZ_OK);
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 3; i++) /* 8 ms each at the slowest pace */
        assert_public(put_sized(&s, 2 << 10, false), TAMIZ_OK);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    assert_true(to.tv_sec - from.tv_sec < 5);
    assert_public(tamiz_stats_get(s.db, &stats), TAMIZ_OK);
    assert_true(stats.stalls > 0);
    unstall(&s);
}

static void nobody_waits_for_a_memtable_that_is_large_but_not_sealed(void **state)
{
    struct stalled s;
    tamiz_stats stats = TAMIZ_STATS_INIT;
    (void)state;
    stall_begin(&s, "threads=1 memtable=64KiB compaction=off");
    gate_open(&s.gate);
    for (int i = 0; i < 5; i++) {
        assert_public(put_sized(&s, 1 << 20, false), TAMIZ_OK);
        assert_public(tamiz_flush(s.db), TAMIZ_OK);
        assert_public(put_sized(&s, 1 << 20, false), TAMIZ_OK);
        assert_public(put_sized(&s, 60 << 10, true), TAMIZ_OK); /* the pace is worked out by now */
        assert_public(tamiz_flush(s.db), TAMIZ_OK);
    }
    assert_public(tamiz_stats_get(s.db, &stats), TAMIZ_OK);
    assert_int_equal(stats.stalls, 0);
    unstall(&s);
}

/* ---- many writers, little room ---- */

enum { CROWD = 4, CROWD_WRITES = 1500 };

struct crowd_writer {
    pthread_t thread;
    tamiz *spaces[2];
    unsigned number;
    tamiz_status st;
};

/* Puts of all sizes, some for a time, deletes, dead ranges, in one keyspace or both. */
static tamiz_status crowd_write(const struct crowd_writer *w, struct test_random *random)
{
    static const char value[24 << 10] = "value";
    char key[16], end[16];
    tamiz *db = w->spaces[test_random_below(random, 2)];
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    const uint64_t kind = test_random_below(random, 40);
    const unsigned at = (unsigned)test_random_below(random, 3000);
    const size_t n = (size_t)snprintf(key, sizeof key, "%06u", at);
    if (kind == 0) {
        (void)snprintf(end, sizeof end, "%06u", at + 50);
        return tamiz_delete_range(db, key, n, end, n, NULL);
    }
    if (kind < 4)
        return tamiz_delete(db, key, n, NULL);
    options.ttl = kind < 8 ? 1 : 0;
    const size_t size = kind == 8 ? sizeof value : (size_t)test_random_below(random, 600);
    return tamiz_put(db, key, n, value, size, &options);
}

static void *crowd_run(void *ctx)
{
    struct crowd_writer *w = ctx;
    struct test_random random = {w->number};
    tamiz_snapshot *snapshot = NULL;
    for (int i = 0; i < CROWD_WRITES && w->st == TAMIZ_OK; i++) {
        w->st = crowd_write(w, &random);
        if (i % 200 == 0) {
            tamiz_snapshot_release(snapshot);
            snapshot = NULL;
            if (w->st == TAMIZ_OK)
                w->st = tamiz_snapshot_take(w->spaces[0], &snapshot);
        }
    }
    tamiz_snapshot_release(snapshot);
    return NULL;
}

/* Each wait asserts that a job for it runs or is next (room.c). */
static void whoever_waits_has_a_job_that_frees_him(void **state)
{
    static const char *const shapes[] = {
        "compaction=leveled level0_runs=1 level0_stop=2",
        "compaction=tiered level0_runs=2 level0_stop=3 size_ratio=2",
        "compaction=lazy level0_runs=1 level0_stop=2 size_ratio=2",
    };
    (void)state;
    for (size_t shape = 0; shape < 3; shape++) {
        char text[200];
        struct crowd_writer crowd[CROWD];
        tamiz *db = NULL, *side = NULL;
        tamiz_env *env = tamiz_env_memory_new();
        tamiz_stats stats = TAMIZ_STATS_INIT;
        (void)snprintf(text, sizeof text, "threads=2 memtable=16KiB table=8KiB %s", shapes[shape]);
        db = test_open("s", text, env);
        assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
        for (unsigned i = 0; i < CROWD; i++) {
            crowd[i] = (struct crowd_writer){.spaces = {db, side}, .number = i + 1};
            assert_int_equal(pthread_create(&crowd[i].thread, NULL, crowd_run, &crowd[i]), 0);
        }
        for (unsigned i = 0; i < CROWD; i++) {
            assert_int_equal(pthread_join(crowd[i].thread, NULL), 0);
            assert_int_equal(crowd[i].st, TAMIZ_OK);
        }
        assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
        assert_true(stats.stalls > 0);
        test_close(db);
        tamiz_env_memory_free(env);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_may_not_wait_is_told_why_and_changes_nothing),
        cmocka_unit_test(a_write_that_waits_goes_on_and_its_wait_is_counted_by_reason),
        cmocka_unit_test(a_pause_ends_though_the_clock_stands),
        cmocka_unit_test(nobody_waits_for_a_memtable_that_is_large_but_not_sealed),
        cmocka_unit_test(whoever_waits_has_a_job_that_frees_him),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
