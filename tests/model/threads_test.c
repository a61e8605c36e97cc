/* SPDX-License-Identifier: MIT
 *
 * Many threads on one store, each with something to check that no other thread can make wrong:
 *
 *   writers     each owns a range of keys: what it wrote it must read, at once and later
 *   counters    each owns one key: PUT c n; SNAP s; GET c @s == n, now and after more puts
 *   batches     three keys always written together: no reader sees them differ
 *   scanners    a snapshot scanned twice, forward and backward, is the same snapshot
 *   keeper      flushes, compacts ranges and single tables, asks for statistics, all the time
 *
 * The memtable is as small as it may be, so that it is rotated under everybody's hands. Then the
 * store is closed and opened again, and every owner's keys are compared.
 *
 * How much is done is counted in operations, never in seconds. TAMIZ_THREADS_ROUNDS=N: operations
 * of each writer. LABEL: threads
 */
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tamiz/tamiz.h"

enum { WRITERS = 4, COUNTERS = 2, SCANNERS = 2, KEYS = 300, VALUE = 120 };

struct shared {
    tamiz *db;
    _Atomic uint64_t working; /* writers, counters and batches still at it */
    _Atomic bool failed;
};

struct worker {
    struct shared *shared;
    int id;
    uint64_t rounds;
    struct test_random random;
    uint64_t last[KEYS]; /* what the writer's keys hold; 0: nothing */
};

/* A worker stops everything with words; the main thread fails the test. cmocka's own checks may
 * only be used there. */
#define WORKER_CHECK(worker, condition)                                                            \
    do {                                                                                           \
        if (!(condition) && !atomic_exchange(&(worker)->shared->failed, true))                     \
            print_error("%s:%d: worker %d: %s: %s\n", __FILE__, __LINE__, (worker)->id,            \
                        #condition, tamiz_error_detail());                                         \
    } while (0)

static bool go_on(const struct worker *w, uint64_t round)
{
    return round < w->rounds && !atomic_load(&w->shared->failed);
}

static void worker_done(struct worker *w)
{
    atomic_fetch_sub(&w->shared->working, 1);
}

/* ---- values that say what they are: a number again and again */

static void value_make(uint64_t number, uint8_t *out)
{
    for (size_t i = 0; i < VALUE; i += sizeof number)
        memcpy(out + i, &number, sizeof number);
}

/* The number, or 0 where the value is no such value. */
static uint64_t value_number(const uint8_t *value, size_t size)
{
    uint64_t number = 0;
    if (size != VALUE)
        return 0;
    memcpy(&number, value, sizeof number);
    for (size_t i = 0; i < VALUE; i += sizeof number)
        if (memcmp(value + i, &number, sizeof number) != 0)
            return 0;
    return number;
}

static size_t key_make(const char *kind, int owner, int number, char *out, size_t room)
{
    return (size_t)snprintf(out, room, "%s/%02d/%06d", kind, owner, number);
}

static tamiz_status put_number(tamiz *db, const char *key, size_t size, uint64_t number, bool sync)
{
    uint8_t value[VALUE];
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    options.sync = sync;
    value_make(number, value);
    return tamiz_put(db, key, size, value, sizeof value, &options);
}

/* 0: absent. UINT64_MAX: an error. */
static uint64_t get_number(tamiz *db, const char *key, size_t size, const tamiz_snapshot *snapshot)
{
    uint8_t value[VALUE];
    size_t got = 0;
    tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    options.snapshot = snapshot;
    const tamiz_status st = tamiz_get_into(db, key, size, value, sizeof value, &got, &options);
    if (st == TAMIZ_NOT_FOUND)
        return 0;
    return st == TAMIZ_OK ? value_number(value, got) : UINT64_MAX;
}

/* ---- the workers */

static void *writer_run(void *ctx)
{
    struct worker *w = ctx;
    char key[40];
    for (uint64_t round = 0; go_on(w, round); round++) {
        const int k = (int)test_random_below(&w->random, KEYS);
        const size_t size = key_make("writer", w->id, k, key, sizeof key);
        if (test_random_below(&w->random, 5) == 0) {
            WORKER_CHECK(w, tamiz_delete(w->shared->db, key, size, NULL) == TAMIZ_OK);
            w->last[k] = 0;
        } else {
            const bool sync = test_random_below(&w->random, 200) == 0;
            WORKER_CHECK(w, put_number(w->shared->db, key, size, round + 1, sync) == TAMIZ_OK);
            w->last[k] = round + 1;
        }
        WORKER_CHECK(w, get_number(w->shared->db, key, size, NULL) == w->last[k]);
        const int other = (int)test_random_below(&w->random, KEYS);
        const size_t other_size = key_make("writer", w->id, other, key, sizeof key);
        WORKER_CHECK(w, get_number(w->shared->db, key, other_size, NULL) == w->last[other]);
    }
    worker_done(w);
    return NULL;
}

static void *counter_run(void *ctx)
{
    struct worker *w = ctx;
    tamiz *db = w->shared->db;
    char key[40];
    const size_t size = key_make("counter", w->id, 0, key, sizeof key);
    tamiz_snapshot *held = NULL;
    uint64_t held_number = 0;
    for (uint64_t round = 1; go_on(w, round); round++) {
        tamiz_snapshot *snapshot = NULL;
        WORKER_CHECK(w, put_number(db, key, size, round, false) == TAMIZ_OK);
        WORKER_CHECK(w, tamiz_snapshot_take(db, &snapshot) == TAMIZ_OK);
        WORKER_CHECK(w, get_number(db, key, size, snapshot) == round);
        if (held)
            WORKER_CHECK(w, get_number(db, key, size, held) == held_number);
        if (!held || test_random_below(&w->random, 30) == 0) {
            tamiz_snapshot_release(held);
            held = snapshot;
            held_number = round;
        } else {
            tamiz_snapshot_release(snapshot);
        }
        w->last[0] = round;
    }
    tamiz_snapshot_release(held);
    worker_done(w);
    return NULL;
}

enum { TOGETHER = 3 };

static void *batch_run(void *ctx)
{
    struct worker *w = ctx;
    char key[40];
    uint8_t value[VALUE];
    tamiz_batch *batch = tamiz_batch_new();
    WORKER_CHECK(w, batch != NULL);
    for (uint64_t round = 1; batch && go_on(w, round); round++) {
        tamiz_batch_clear(batch);
        value_make(round, value);
        for (int i = 0; i < TOGETHER; i++) {
            const size_t size = key_make("together", i, 0, key, sizeof key);
            WORKER_CHECK(w,
                         tamiz_batch_put(batch, NULL, key, size, value, sizeof value) == TAMIZ_OK);
        }
        WORKER_CHECK(w, tamiz_write(w->shared->db, batch, NULL) == TAMIZ_OK);
        w->last[0] = round;
    }
    tamiz_batch_free(batch);
    worker_done(w);
    return NULL;
}

/* The three keys of one batch, read by one multi_get: one view for all of them. */
static void together_check(struct worker *w)
{
    char text[TOGETHER][40];
    const void *keys[TOGETHER];
    size_t sizes[TOGETHER], value_sizes[TOGETHER];
    void *values[TOGETHER];
    tamiz_status statuses[TOGETHER];
    for (int i = 0; i < TOGETHER; i++) {
        sizes[i] = key_make("together", i, 0, text[i], sizeof text[i]);
        keys[i] = text[i];
    }
    WORKER_CHECK(w, tamiz_multi_get(w->shared->db, TOGETHER, keys, sizes, values, value_sizes,
                                    statuses, NULL) == TAMIZ_OK);
    for (int i = 0; i < TOGETHER; i++) {
        WORKER_CHECK(w, statuses[i] == statuses[0]);
        if (statuses[i] == TAMIZ_OK && statuses[0] == TAMIZ_OK)
            WORKER_CHECK(w, value_number(values[i], value_sizes[i]) ==
                                value_number(values[0], value_sizes[0]));
    }
    for (int i = 0; i < TOGETHER; i++)
        tamiz_free(values[i]);
}

/* A sum over all keys and values that does not depend on the order of the walk. */
static uint64_t scan_sum(struct worker *w, const tamiz_snapshot *snapshot, bool forward)
{
    tamiz_iter *iter = NULL;
    tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    uint64_t sum = 0, together[TOGETHER] = {0};
    int seen = 0;
    options.snapshot = snapshot;
    WORKER_CHECK(w, tamiz_iter_open(w->shared->db, &options, &iter) == TAMIZ_OK);
    if (!iter)
        return 0;
    if (forward)
        tamiz_iter_seek_first(iter);
    else
        tamiz_iter_seek_last(iter);
    while (tamiz_iter_valid(iter)) {
        size_t key_size, value_size;
        const char *key = tamiz_iter_key(iter, &key_size);
        const uint8_t *value = tamiz_iter_value(iter, &value_size);
        const uint64_t number = value_number(value, value_size);
        WORKER_CHECK(w, number != 0);
        if (key_size > 8 && memcmp(key, "together", 8) == 0 && seen < TOGETHER)
            together[seen++] = number;
        sum += tamiz_hash(key, key_size) ^ (number * UINT64_C(0x9e3779b97f4a7c15));
        if (forward)
            tamiz_iter_next(iter);
        else
            tamiz_iter_prev(iter);
    }
    WORKER_CHECK(w, tamiz_iter_status(iter) == TAMIZ_OK);
    WORKER_CHECK(w, together[0] == together[1] && together[1] == together[2]);
    tamiz_iter_close(iter);
    return sum;
}

static void *scanner_run(void *ctx)
{
    struct worker *w = ctx;
    while (atomic_load(&w->shared->working) && !atomic_load(&w->shared->failed)) {
        tamiz_snapshot *snapshot = NULL;
        WORKER_CHECK(w, tamiz_snapshot_take(w->shared->db, &snapshot) == TAMIZ_OK);
        const uint64_t first = scan_sum(w, snapshot, true);
        together_check(w);
        const uint64_t second = scan_sum(w, snapshot, false);
        WORKER_CHECK(w, first == second);
        WORKER_CHECK(w, scan_sum(w, snapshot, true) == first);
        tamiz_snapshot_release(snapshot);
        (void)scan_sum(w, NULL, test_random_below(&w->random, 2) == 0);
    }
    return NULL;
}

static void keeper_compact(struct worker *w)
{
    char from[40], to[40];
    const int low = (int)test_random_below(&w->random, KEYS);
    const int owner = (int)test_random_below(&w->random, WRITERS);
    const size_t from_size = key_make("writer", owner, low, from, sizeof from);
    const size_t to_size = key_make("writer", owner + 1, low, to, sizeof to);
    WORKER_CHECK(w, tamiz_compact(w->shared->db, from, from_size, to, to_size) == TAMIZ_OK);
}

static void *keeper_run(void *ctx)
{
    struct worker *w = ctx;
    while (atomic_load(&w->shared->working) && !atomic_load(&w->shared->failed)) {
        tamiz_stats stats = TAMIZ_STATS_INIT;
        const unsigned level = (unsigned)test_random_below(&w->random, 4);
        WORKER_CHECK(w, tamiz_flush(w->shared->db) == TAMIZ_OK);
        const tamiz_status st =
            tamiz_compact_table(w->shared->db, level, test_random_below(&w->random, 4));
        WORKER_CHECK(w, st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
        keeper_compact(w);
        WORKER_CHECK(w, tamiz_stats_get(w->shared->db, &stats) == TAMIZ_OK);
        WORKER_CHECK(w, stats.gets >= stats.gets_found);
        WORKER_CHECK(w, tamiz_health(w->shared->db) == TAMIZ_OK);
        sched_yield();
    }
    return NULL;
}

/* ---- the runs */

enum { WORKERS = WRITERS + COUNTERS + 1 + SCANNERS + 1 };

static void workers_compare(tamiz *db, const struct worker *workers)
{
    char key[40];
    for (int i = 0; i < WRITERS; i++)
        for (int k = 0; k < KEYS; k++) {
            const size_t size = key_make("writer", i, k, key, sizeof key);
            assert_int_equal(get_number(db, key, size, NULL), workers[i].last[k]);
        }
    for (int i = WRITERS; i < WRITERS + COUNTERS; i++) {
        const size_t size = key_make("counter", i, 0, key, sizeof key);
        assert_int_equal(get_number(db, key, size, NULL), workers[i].last[0]);
    }
    for (int i = 0; i < TOGETHER; i++) {
        const size_t size = key_make("together", i, 0, key, sizeof key);
        assert_int_equal(get_number(db, key, size, NULL), workers[WRITERS + COUNTERS].last[0]);
    }
}

static void workers_run(struct shared *shared, struct worker *workers, struct test_random *random)
{
    static void *(*const roles[])(void *) = {writer_run,  writer_run,  writer_run, writer_run,
                                             counter_run, counter_run, batch_run,  scanner_run,
                                             scanner_run, keeper_run};
    const char *text = getenv("TAMIZ_THREADS_ROUNDS");
    const uint64_t rounds = text ? strtoull(text, NULL, 0) : 3000;
    pthread_t threads[WORKERS];
    atomic_store(&shared->working, WRITERS + COUNTERS + 1);
    for (int i = 0; i < WORKERS; i++) {
        workers[i].shared = shared;
        workers[i].id = i;
        workers[i].rounds = rounds;
        workers[i].random = (struct test_random){test_random_u64(random)};
        assert_int_equal(pthread_create(&threads[i], NULL, roles[i], &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(atomic_load(&shared->failed));
}

static void store_run(const char *text, bool in_memory)
{
    char directory[64] = "", path[96] = "/store";
    struct test_random random = test_random_start(271828);
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz_env *env = NULL;
    struct shared shared = {0};
    struct worker *workers = calloc(WORKERS, sizeof *workers);
    assert_non_null(workers);
    assert_public(tamiz_options_set(&options, text), TAMIZ_OK);
    if (in_memory) {
        options.env = env = tamiz_env_memory_new();
        assert_non_null(env);
    } else {
        test_directory_make(directory, sizeof directory);
        (void)snprintf(path, sizeof path, "%s/store", directory);
    }
    assert_public(tamiz_open(path, &options, &shared.db), TAMIZ_OK);
    workers_run(&shared, workers, &random);
    workers_compare(shared.db, workers);
    assert_public(tamiz_close(shared.db), TAMIZ_OK);
    assert_public(tamiz_open(path, &options, &shared.db), TAMIZ_OK);
    workers_compare(shared.db, workers);
    assert_public(tamiz_close(shared.db), TAMIZ_OK);
    tamiz_env_memory_free(env);
    if (!in_memory)
        test_directory_remove(directory);
    free(workers);
}

static void no_write_is_lost_or_hidden_while_memtables_rotate(void **state)
{
    (void)state;
    store_run("filter=blocked:10 memtable=64KiB block=1KiB table=16KiB cache=64KiB size_ratio=2 "
              "level0_runs=2 threads=2 compaction=leveled",
              false);
}

static void no_write_is_lost_or_hidden_with_tiered_runs_and_no_cache(void **state)
{
    (void)state;
    store_run("filter=bloom:6 memtable=64KiB block=2KiB table=32KiB cache=0 size_ratio=3 "
              "level0_runs=2 threads=2 compaction=tiered",
              true);
}

static void no_write_is_lost_or_hidden_where_the_callers_do_all_the_work(void **state)
{
    (void)state;
    store_run("filter=none memtable=64KiB block=1KiB table=16KiB cache=16KiB level0_runs=2 "
              "threads=0 compaction=lazy",
              true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_write_is_lost_or_hidden_while_memtables_rotate),
        cmocka_unit_test(no_write_is_lost_or_hidden_with_tiered_runs_and_no_cache),
        cmocka_unit_test(no_write_is_lost_or_hidden_where_the_callers_do_all_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
