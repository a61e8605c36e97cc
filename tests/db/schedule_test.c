/* SPDX-License-Identifier: MIT
 *
 * Callers that take turns in the middle of what they do: writers, readers, snapshots, flushes,
 * merges, copies and background steps of one store, interleaved by a seed at the named points that
 * the store passes. Whatever the order: who wrote reads it, pairs that were written as one are one,
 * a snapshot does not change, and a process that ends at any call leaves what was acknowledged.
 *
 *     schedule_test            the short form
 *     schedule_test SEED       one run
 *     TAMIZ_LONG=1             more seeds
 *
 * LABEL: threads
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "db/kit.h"

#define OPTIONS                                                                                    \
    "threads=0 memtable=16KiB block=256 table=4KiB level0_runs=1 level0_stop=3 size_ratio=2"

enum { WRITERS = 3, ROUNDS = 40, COPIES = 3, UPKEEPS = 60, LONG_SEEDS = 1000, SHORT_SEEDS = 20 };

struct stage {
    uint64_t seed, trace;
    tamiz_env_sim *sim;
    tamiz *db;
    int acknowledged[WRITERS], tried[WRITERS]; /* the last round of each */
    int writing, crashes;
    char wrong[300]; /* the first thing that was; "": nothing */
};

struct part {
    struct stage *s;
    int number;
};

/* In a task nothing may fail by a long jump: the first thing that is wrong is kept, and all end. */
static bool require(struct stage *s, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool require(struct stage *s, bool holds, const char *format, ...)
{
    if (!holds && !*s->wrong) {
        va_list list;
        va_start(list, format);
        (void)vsnprintf(s->wrong, sizeof s->wrong, format, list);
        va_end(list);
        const size_t n = strlen(s->wrong);
        (void)snprintf(s->wrong + n, sizeof s->wrong - n, " (detail: %s)", tamiz_error_detail());
    }
    return !*s->wrong;
}

/* ---- what is written: each writer has a pair of keys, written as one, and large ones of its own
 */

static const char *pair_key(char text[16], int writer, char which)
{
    (void)snprintf(text, 16, "w%d%c", writer, which);
    return text;
}

/* -1: absent; -2: an error. */
static int number_at(tamiz *db, const char *key, const tamiz_snapshot *snapshot)
{
    tamiz_read_options r = TAMIZ_READ_OPTIONS_INIT;
    char text[16] = "";
    size_t size = 0;
    r.snapshot = snapshot;
    const tamiz_status st = tamiz_get_into(db, key, strlen(key), text, 8, &size, &r);
    return st == TAMIZ_OK ? atoi(text) : st == TAMIZ_NOT_FOUND ? -1 : -2;
}

static bool write_round(struct stage *s, int writer, int round)
{
    char key[16], value[600];
    tamiz_batch *batch = tamiz_batch_new();
    memset(value, 'v', sizeof value);
    (void)snprintf(value, 8, "%07d", round);
    tamiz_status st = batch ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY;
    for (char which = 'a'; st == TAMIZ_OK && which <= 'b'; which++)
        st = tamiz_batch_put(batch, NULL, pair_key(key, writer, which), 3, value, 7);
    s->tried[writer] = round;
    if (st == TAMIZ_OK)
        st = tamiz_write(s->db, batch, NULL);
    tamiz_batch_free(batch);
    if (!require(s, st == TAMIZ_OK, "writer %d, round %d: %s", writer, round,
                 tamiz_status_name(st)))
        return false;
    s->acknowledged[writer] = round;
    const size_t n = (size_t)snprintf(key, sizeof key, "x%d%03d", writer, round % 7);
    st = tamiz_put(s->db, key, n, value, sizeof value, NULL);
    return require(s, st == TAMIZ_OK, "writer %d, put: %s", writer, tamiz_status_name(st));
}

static void writer(void *ctx)
{
    const struct part *p = ctx;
    struct stage *s = p->s;
    for (int round = 0; round < ROUNDS; round++) {
        char a[16], b[16];
        if (!write_round(s, p->number, round))
            break;
        const int one = number_at(s->db, pair_key(a, p->number, 'a'), NULL);
        const int two = number_at(s->db, pair_key(b, p->number, 'b'), NULL);
        if (!require(s, one == round && two == round, "writer %d wrote %d and reads %d and %d",
                     p->number, round, one, two))
            break;
    }
    s->writing--;
}

/* ---- who reads */

static bool pairs_are_one(struct stage *s, tamiz *db, const tamiz_snapshot *snapshot, int seen[])
{
    for (int w = 0; w < WRITERS; w++) {
        char a[16], b[16];
        const int one = number_at(db, pair_key(a, w, 'a'), snapshot);
        const int two = number_at(db, pair_key(b, w, 'b'), snapshot);
        seen[w] = one;
        if (!require(s, one == two && one != -2, "pair %d is %d and %d", w, one, two))
            return false;
    }
    return true;
}

static void snapshooter(void *ctx)
{
    struct stage *s = ((const struct part *)ctx)->s;
    while (s->writing > 0) {
        tamiz_snapshot *snapshot = NULL;
        int first[WRITERS], again[WRITERS];
        if (!require(s, tamiz_snapshot_take(s->db, &snapshot) == TAMIZ_OK, "no snapshot"))
            return;
        bool good = pairs_are_one(s, s->db, snapshot, first);
        for (int i = 0; good && i < 5; i++) {
            tamiz_env_sim_point(s->sim, "test.snapshot");
            good = pairs_are_one(s, s->db, snapshot, again) &&
                   require(s, memcmp(first, again, sizeof first) == 0, "a snapshot has changed");
        }
        tamiz_snapshot_release(snapshot);
        if (!good)
            return;
    }
}

static void scanner(void *ctx)
{
    struct stage *s = ((const struct part *)ctx)->s;
    while (s->writing > 0) {
        tamiz_iter *it = NULL;
        int pairs[WRITERS][2];
        tamiz_env_sim_point(s->sim, "test.scan");
        memset(pairs, 0, sizeof pairs);
        if (!require(s, tamiz_iter_open(s->db, NULL, &it) == TAMIZ_OK, "no iterator"))
            return;
        for (tamiz_iter_seek_last(it); tamiz_iter_valid(it); tamiz_iter_prev(it)) {
            size_t n;
            const char *key = tamiz_iter_key(it, &n);
            if (n == 3 && key[0] == 'w')
                pairs[key[1] - '0'][key[2] - 'a'] = 1 + atoi(tamiz_iter_value(it, &n));
            tamiz_env_sim_point(s->sim, "test.scan");
        }
        bool good = require(s, tamiz_iter_status(it) == TAMIZ_OK, "a scan failed");
        tamiz_iter_close(it);
        for (int w = 0; good && w < WRITERS; w++)
            good = require(s, pairs[w][0] == pairs[w][1], "a scan sees %d and %d of pair %d",
                           pairs[w][0] - 1, pairs[w][1] - 1, w);
        if (!good)
            return;
    }
}

/* ---- who works */

static void keeper(void *ctx)
{
    struct stage *s = ((const struct part *)ctx)->s;
    for (int i = 0; s->writing > 0 && i < UPKEEPS; i++) {
        bool more;
        tamiz_status st = TAMIZ_OK;
        switch (i % 5) {
        case 0: st = tamiz_flush(s->db); break;
        case 1: st = tamiz_compact(s->db, NULL, 0, NULL, 0); break;
        case 2: st = tamiz_compact_table(s->db, 0, 0); break;
        case 3: st = tamiz_sync(s->db); break;
        default: st = tamiz_step(s->db, 1000, &more); break;
        }
        if (!require(s, st >= 0, "upkeep %d: %s", i % 5, tamiz_status_name(st)))
            return;
        tamiz_env_sim_point(s->sim, "test.keep");
    }
}

static void copier(void *ctx)
{
    struct stage *s = ((const struct part *)ctx)->s;
    for (int i = 0; s->writing > 0 && i < COPIES; i++) {
        char path[32];
        int before[WRITERS], seen[WRITERS];
        tamiz *copy = NULL;
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        o.env = tamiz_env_sim_env(s->sim);
        o.threads = 0;
        (void)snprintf(path, sizeof path, "copy-%d", i);
        memcpy(before, s->acknowledged, sizeof before);
        if (!require(s, tamiz_checkpoint(s->db, path) == TAMIZ_OK, "no copy") ||
            !require(s, tamiz_open(path, &o, &copy) == TAMIZ_OK, "the copy does not open"))
            return;
        bool good = pairs_are_one(s, copy, NULL, seen);
        for (int w = 0; good && w < WRITERS; w++)
            good = require(s, seen[w] >= before[w], "copy: %d of pair %d, %d was acknowledged",
                           seen[w], w, before[w]);
        if (!require(s, tamiz_close(copy) == TAMIZ_OK, "the copy does not close") || !good)
            return;
    }
}

/* ---- the process ends */

static void end_here(struct stage *s)
{
    tamiz_env_sim *after = tamiz_env_sim_copy(s->sim);
    tamiz *db = NULL;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    int seen[WRITERS];
    if (!require(s, after != NULL, "out of memory"))
        return;
    tamiz_env_sim_crash(after, TAMIZ_SIM_KEEP, NULL, 0);
    o.env = tamiz_env_sim_env(after);
    o.threads = 0;
    if (require(s, tamiz_open("store", &o, &db) == TAMIZ_OK, "after the end") &&
        pairs_are_one(s, db, NULL, seen))
        for (int w = 0; w < WRITERS; w++)
            (void)require(s, seen[w] >= s->acknowledged[w] && seen[w] <= s->tried[w],
                          "after the end pair %d is %d; %d was acknowledged, %d tried", w, seen[w],
                          s->acknowledged[w], s->tried[w]);
    (void)tamiz_close(db);
    tamiz_env_sim_free(after);
    s->crashes++;
}

static void before_call(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    struct stage *s = ctx;
    (void)kind, (void)name;
    if (number % 211 == s->seed % 211 && !*s->wrong)
        end_here(s);
}

static void at_point(void *ctx, const char *name)
{
    struct stage *s = ctx;
    for (; *name; name++)
        s->trace = (s->trace ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
}

/* ---- a run */

static void stage_open(struct stage *s, uint64_t seed)
{
    *s = (struct stage){.seed = seed, .trace = 1, .writing = WRITERS};
    for (int w = 0; w < WRITERS; w++)
        s->acknowledged[w] = s->tried[w] = -1;
    s->sim = tamiz_env_sim_new(seed);
    assert_non_null(s->sim);
    s->db = test_open("store", OPTIONS, tamiz_env_sim_env(s->sim));
}

static void stage_close(struct stage *s)
{
    if (*s->wrong) {
        print_error("%s\nagain: test_db_schedule %llu\n", s->wrong, (unsigned long long)s->seed);
        fail();
    }
    end_here(s);
    assert_string_equal(s->wrong, "");
    test_close(s->db);
    tamiz_env_sim_free(s->sim);
}

/* The hash of all points passed, in their order. */
static uint64_t run(uint64_t seed, uint64_t *calls)
{
    struct stage s;
    struct part parts[WRITERS];
    stage_open(&s, seed);
    tamiz_env_sim_on_call(s.sim, before_call, &s);
    tamiz_env_sim_on_point(s.sim, at_point, &s);
    for (int w = 0; w < WRITERS; w++) {
        parts[w] = (struct part){&s, w};
        assert_true(tamiz_env_sim_task(s.sim, writer, &parts[w]));
    }
    static void (*const others[])(void *) = {snapshooter, scanner, keeper, keeper, copier};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(tamiz_env_sim_task(s.sim, others[i], &parts[0]));
    assert_true(tamiz_env_sim_run(s.sim, seed));
    *calls = tamiz_env_sim_calls(s.sim, TAMIZ_SIM_ANY);
    assert_true(*s.wrong || (s.crashes > 0 && tamiz_env_sim_points(s.sim) > 1000));
    tamiz_env_sim_on_call(s.sim, NULL, NULL);
    tamiz_env_sim_on_point(s.sim, NULL, NULL);
    stage_close(&s);
    return s.trace;
}

static void calls_may_meet_halfway_in_any_order(void **state)
{
    (void)state;
    const char *form = getenv("TAMIZ_LONG");
    const uint64_t seeds = form && *form == '1' ? LONG_SEEDS : SHORT_SEEDS;
    uint64_t calls, sum = 0;
    const uint64_t first = test_first_seed();
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        (void)run(seed, &calls);
        sum += calls;
    }
    print_message("%llu orders, %llu calls\n", (unsigned long long)seeds, (unsigned long long)sum);
}

static void a_seed_is_an_order(void **state)
{
    (void)state;
    uint64_t calls[3];
    const uint64_t a = run(5, &calls[0]), b = run(5, &calls[1]), c = run(6, &calls[2]);
    assert_true(a == b && calls[0] == calls[1]);
    assert_true(a != c);
}

/* ---- named points */

struct scene {
    struct stage s;
    int begun, done; /* puts */
    uint64_t held;
};

static void one_put(void *ctx)
{
    struct scene *c = ctx;
    char key[16], value[3000];
    memset(value, 'v', sizeof value);
    for (int i = 0; i < 4; i++) {
        const size_t n = (size_t)snprintf(key, sizeof key, "p%04d", c->begun++);
        const tamiz_status st = tamiz_put(c->s.db, key, n, value, sizeof value, NULL);
        if (!require(&c->s, st == TAMIZ_OK, "put: %s", tamiz_status_name(st)))
            return;
        c->done += number_at(c->s.db, key, NULL) != -1;
        tamiz_env_sim_point(c->s.sim, "test.put");
    }
}

/* A log is there whose memtable is not: whoever reads now, or finds the store after the end of the
 * process, sees what was acknowledged. */
static void look_while_held(void *ctx)
{
    struct scene *c = ctx;
    while (tamiz_env_sim_held(c->s.sim) == 0)
        tamiz_env_sim_point(c->s.sim, "test.look");
    c->held = tamiz_env_sim_held(c->s.sim);
    for (int i = 0; i < 200; i++) /* those that were through with a write come to their next one */
        tamiz_env_sim_point(c->s.sim, "test.look");
    const int before = c->done;
    for (int i = 0; i < 200; i++)
        tamiz_env_sim_point(c->s.sim, "test.look");
    (void)require(&c->s, c->done == before, "a write went past a leader that was held");
    end_here(&c->s);
    tamiz_env_sim_let_go(c->s.sim);
}

static void writers_wait_while_the_log_is_switched(void **state)
{
    (void)state;
    struct scene c = {.done = 0};
    stage_open(&c.s, 1);
    assert_true(tamiz_env_sim_hold(c.s.sim, "wal.rotate"));
    for (int i = 0; i < 8; i++)
        assert_true(tamiz_env_sim_task(c.s.sim, one_put, &c));
    assert_true(tamiz_env_sim_task(c.s.sim, look_while_held, &c));
    assert_true(tamiz_env_sim_run(c.s.sim, 3));
    assert_int_equal(c.held, 1);
    assert_true(c.done == 32 && c.begun == 32);
    assert_string_equal(c.s.wrong, "");
    for (int i = 0; i < c.done; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "p%04d", i);
        assert_true(number_at(c.s.db, key, NULL) != -1);
    }
    stage_close(&c.s);
}

static void merge_all(void *ctx)
{
    struct scene *c = ctx;
    const tamiz_status st = tamiz_compact(c->s.db, NULL, 0, NULL, 0);
    (void)require(&c->s, st == TAMIZ_OK, "compact: %s", tamiz_status_name(st));
}

/* While a merge stands before its output, somebody takes a snapshot, deletes the key and reads. */
static void read_during_merge(void *ctx)
{
    struct scene *c = ctx;
    tamiz *db = c->s.db;
    tamiz_snapshot *snapshot = NULL;
    while (tamiz_env_sim_held(c->s.sim) == 0)
        tamiz_env_sim_point(c->s.sim, "test.look");
    c->held = 1;
    (void)require(&c->s, tamiz_snapshot_take(db, &snapshot) == TAMIZ_OK, "no snapshot");
    (void)require(&c->s, tamiz_delete(db, "k", 1, NULL) == TAMIZ_OK, "no delete");
    tamiz_env_sim_let_go(c->s.sim);
    for (int i = 0; i < 100; i++) {
        tamiz_env_sim_point(c->s.sim, "test.look");
        (void)require(&c->s, number_at(db, "k", snapshot) == 2 && number_at(db, "k", NULL) == -1,
                      "the snapshot sees %d, a get %d", number_at(db, "k", snapshot),
                      number_at(db, "k", NULL));
    }
    tamiz_snapshot_release(snapshot);
}

static void a_snapshot_taken_while_a_merge_stands_keeps_its_version(void **state)
{
    (void)state;
    static const char *const points[] = {"compact.output", "compact.install", "flush.install",
                                         "manifest.append"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct scene c = {.done = 0};
        stage_open(&c.s, 1);
        test_put(c.s.db, "k", "1");
        assert_public(tamiz_flush(c.s.db), TAMIZ_OK);
        test_put(c.s.db, "k", "2");
        assert_true(tamiz_env_sim_hold(c.s.sim, points[i]));
        assert_true(tamiz_env_sim_task(c.s.sim, merge_all, &c));
        assert_true(tamiz_env_sim_task(c.s.sim, read_during_merge, &c));
        assert_true(tamiz_env_sim_run(c.s.sim, i));
        assert_int_equal(c.held, 1);
        test_expect(c.s.db, "k", NULL, NULL);
        stage_close(&c.s);
    }
}

static uint64_t one_seed;

static void the_one_order_that_was_asked_for(void **state)
{
    (void)state;
    uint64_t calls;
    (void)run(one_seed, &calls);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        one_seed = strtoull(argv[1], NULL, 10);
        const struct CMUnitTest tests[] = {cmocka_unit_test(the_one_order_that_was_asked_for)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_may_meet_halfway_in_any_order),
        cmocka_unit_test(a_seed_is_an_order),
        cmocka_unit_test(writers_wait_while_the_log_is_switched),
        cmocka_unit_test(a_snapshot_taken_while_a_merge_stands_keeps_its_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
