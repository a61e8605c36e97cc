/* SPDX-License-Identifier: MIT
 *
 * Writers and a background that does not get on: its one thread is held in the event of its first
 * flush. LABEL: threads
 */
#include <pthread.h>
#include <string.h>

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

/* The thread is held, and memtables are filled until a writer would wait. */
static void stall(struct stalled *s)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    *s = (struct stalled){.env = tamiz_env_memory_new(), .gate = {.closed = true}};
    assert_non_null(s->env);
    pthread_mutex_init(&s->gate.mutex, NULL);
    pthread_cond_init(&s->gate.moved, NULL);
    assert_public(tamiz_options_set(&options, "threads=1 memtable=64KiB"), TAMIZ_OK);
    options.env = s->env;
    options.log = (tamiz_event_log){hold, &s->gate};
    assert_public(tamiz_open("s", &options, &s->db), TAMIZ_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_may_not_wait_is_told_why_and_changes_nothing),
        cmocka_unit_test(a_write_that_waits_goes_on_and_its_wait_is_counted_by_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
