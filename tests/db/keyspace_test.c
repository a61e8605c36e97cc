/* SPDX-License-Identifier: MIT
 *
 * Keyspaces: trees apart, one log. What is written to several at once happens in all or none; one
 * that is dropped is gone, whoever still holds something of it; one that rests keeps nothing alive.
 *
 * LABEL: threads
 */
#include "db/kit.h"
#include "db/store.h"
#include "env/thread.h"

static tamiz *keyspace(tamiz *db, const char *name)
{
    tamiz *ks = NULL;
    assert_public(tamiz_keyspace_open(db, name, NULL, &ks), TAMIZ_OK);
    assert_non_null(ks);
    return ks;
}

/* The same key and value in two keyspaces, at once. */
static tamiz_status put_pair(tamiz *a, tamiz *b, const char *key, const char *value)
{
    tamiz_batch *batch = tamiz_batch_new();
    assert_non_null(batch);
    assert_public(tamiz_batch_put(batch, a, key, strlen(key), value, strlen(value)), TAMIZ_OK);
    assert_public(tamiz_batch_put(batch, b, key, strlen(key), value, strlen(value)), TAMIZ_OK);
    const tamiz_status st = tamiz_write(a, batch, NULL);
    tamiz_batch_free(batch);
    return st;
}

static bool has(tamiz *db, const char *key)
{
    return tamiz_exists(db, key, strlen(key), NULL) == TAMIZ_OK;
}

static void keyspaces_are_apart_and_come_back(void **state)
{
    (void)state;
    struct world w = world_new(1);
    for (int round = 0; round < 3; round++) {
        tamiz *db = test_open("s", "threads=0 memtable=64KiB", w.env);
        tamiz *a = keyspace(db, "a"), *b = keyspace(db, "b");
        assert_ptr_equal(keyspace(db, "a"), a);
        assert_ptr_equal(keyspace(a, "default"), db);
        test_expect(a, "round", round ? "a" : NULL, NULL);
        test_put(db, "k", "default");
        test_put(a, "k", "in a");
        test_put(a, "round", "a");
        test_delete(b, "k");
        put_some(b, 0, 100 + round, "b");
        if (round == 1)
            assert_public(tamiz_flush(a), TAMIZ_OK);
        if (round == 2)
            assert_public(tamiz_compact(b, NULL, 0, NULL, 0), TAMIZ_OK);
        test_expect(db, "k", "default", NULL);
        test_expect(a, "k", "in a", NULL);
        test_expect(b, "k", NULL, NULL);
        assert_string_equal(test_scan(a, NULL), "k=in a round=a");
        expect_some(b, 0, 100 + round, "b");
        char *text;
        assert_public(tamiz_property(db, "keyspaces", &text), TAMIZ_OK);
        assert_string_equal(text, "default\na\nb\n");
        tamiz_free(text);
        assert_public(tamiz_close(a), TAMIZ_INVALID_ARGUMENT);
        test_close(db);
    }
    tamiz_env_sim_free(w.sim);
}

static void names_and_options_are_checked(void **state)
{
    (void)state;
    struct world w = world_new(2);
    tamiz *db = test_open("s", "threads=0", w.env), *ks = NULL;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[256] = 0;
    assert_public(tamiz_keyspace_open(db, "", NULL, &ks), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_keyspace_open(db, NULL, NULL, &ks), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_keyspace_open(db, longest, NULL, &ks), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_keyspace_open(db, "a\nb", NULL, &ks), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_keyspace_open(db, "a\"b", NULL, &ks), TAMIZ_INVALID_ARGUMENT);
    assert_null(ks);
    longest[255] = 0;
    assert_public(tamiz_keyspace_open(db, longest, NULL, &ks), TAMIZ_OK);
    assert_public(tamiz_options_set(&o, "create_if_missing=false"), TAMIZ_OK);
    assert_public(tamiz_keyspace_open(db, "none", &o, &ks), TAMIZ_NOT_FOUND);
    assert_public(tamiz_options_set(&o, "create_if_missing=true filter=ribbon:7 memtable=64KiB"),
                  TAMIZ_OK);
    assert_public(tamiz_keyspace_open(db, "own", &o, &ks), TAMIZ_OK);
    char *text;
    assert_public(tamiz_property(ks, "options", &text), TAMIZ_OK);
    assert_non_null(strstr(text, "filter=ribbon:7"));
    assert_non_null(strstr(text, "memtable=64KiB"));
    tamiz_free(text);
    assert_public(tamiz_keyspace_open(db, "own", &o, &ks), TAMIZ_OK);
    assert_public(tamiz_options_set(&o, "filter=none"), TAMIZ_OK);
    assert_public(tamiz_keyspace_open(db, "own", &o, &ks), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_options_set(&o, "error_if_exists=true"), TAMIZ_OK);
    assert_public(tamiz_keyspace_open(db, "own", &o, &ks), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_keyspace_drop(db, "default"), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_keyspace_drop(db, "none"), TAMIZ_NOT_FOUND);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void a_write_that_names_none_goes_where_the_batch_goes(void **state)
{
    (void)state;
    struct world w = world_new(3);
    tamiz *db = test_open("s", "threads=0", w.env), *a = keyspace(db, "a"), *b = keyspace(db, "b");
    tamiz_batch *batch = tamiz_batch_new();
    tamiz *const to[] = {NULL, db, NULL, b, NULL, db, db, NULL};
    for (int i = 0; i < 8; i++)
        assert_public(tamiz_batch_put(batch, to[i], key_of(i), 7, "1", 1), TAMIZ_OK);
    assert_public(tamiz_write(a, batch, NULL), TAMIZ_OK);
    tamiz *const all[] = {db, a, b};
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++)
            assert_int_equal(has(all[k], key_of(i)), all[k] == (to[i] ? to[i] : a));
    test_close(db);
    db = test_open("s", "threads=0", w.env);
    assert_string_equal(test_scan(keyspace(db, "b"), NULL), "k000003=1");
    assert_string_equal(test_scan(db, NULL), "k000001=1 k000005=1 k000006=1");
    tamiz_batch_free(batch);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* ---- crashes ---- */

enum { PAIRS = 120 };

/* Pairs into two keyspaces, one of which is flushed now and then; stops where the machine does. */
static int write_pairs(const tamiz_env *env)
{
    tamiz *db = NULL, *a = NULL, *b = NULL;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    int done = 0;
    assert_public(tamiz_options_set(&o, "threads=0 memtable=64KiB"), TAMIZ_OK);
    o.env = env;
    if (tamiz_open("s", &o, &db) != TAMIZ_OK)
        return 0;
    if (tamiz_keyspace_open(db, "a", NULL, &a) == TAMIZ_OK &&
        tamiz_keyspace_open(db, "b", NULL, &b) == TAMIZ_OK)
        for (; done < PAIRS; done++) {
            if (put_pair(a, b, key_of(done), "value") != TAMIZ_OK)
                break;
            if (done % 25 == 20)
                (void)tamiz_flush(done % 50 == 20 ? a : b);
            if (done % 40 == 30)
                (void)tamiz_sync(db);
        }
    (void)tamiz_close(db);
    return done;
}

/* What is there is a prefix of what was written, in both keyspaces the same. */
static void expect_pairs(const tamiz_env *env)
{
    tamiz *db = test_open("s", "threads=0 memtable=64KiB", env);
    tamiz *a = keyspace(db, "a"), *b = keyspace(db, "b");
    bool ended = false;
    for (int i = 0; i < PAIRS; i++) {
        const bool in_a = has(a, key_of(i));
        assert_int_equal(in_a, has(b, key_of(i)));
        assert_false(in_a && ended);
        ended = !in_a;
    }
    assert_public(put_pair(a, b, "more", "value"), TAMIZ_OK);
    test_close(db);
}

static void a_batch_over_two_keyspaces_is_whole_after_any_crash(void **state)
{
    (void)state;
    static const tamiz_sim_crash modes[] = {TAMIZ_SIM_KEEP, TAMIZ_SIM_DROP, TAMIZ_SIM_REORDER};
    struct world all = world_new(4);
    (void)write_pairs(all.env);
    const uint64_t calls = tamiz_env_sim_calls(all.sim, TAMIZ_SIM_ANY);
    tamiz_env_sim_free(all.sim);
    for (uint64_t at = 1; at < calls; at += 7)
        for (int m = 0; m < 3; m++) {
            struct world w = world_new(4);
            tamiz_env_sim_stop_at(w.sim, at);
            (void)write_pairs(w.env);
            tamiz_env_sim_crash(w.sim, modes[m], NULL, at);
            expect_pairs(w.env);
            tamiz_env_sim_crash(w.sim, modes[m], NULL, at + 1);
            expect_pairs(w.env);
            tamiz_env_sim_free(w.sim);
        }
}

/* A drop that was told as done stays done; one that was cut short happened or did not. */
static void a_drop_happens_or_does_not(void **state)
{
    (void)state;
    for (uint64_t back = 0; back < 40; back++) {
        struct world w = world_new(5);
        tamiz *db = test_open("s", "threads=0 memtable=64KiB", w.env), *a = keyspace(db, "a");
        put_some(a, 0, 300, "gone");
        put_some(db, 0, 50, "kept");
        assert_public(tamiz_flush(a), TAMIZ_OK);
        put_some(a, 300, 400, "gone");
        tamiz_env_sim_stop_at(w.sim, tamiz_env_sim_calls(w.sim, TAMIZ_SIM_ANY) + 1 + back);
        const tamiz_status st = tamiz_keyspace_drop(db, "a");
        (void)tamiz_close(db);
        tamiz_env_sim_crash(w.sim, back % 2 ? TAMIZ_SIM_DROP : TAMIZ_SIM_KEEP, NULL, 0);
        db = test_open("s", "threads=0 memtable=64KiB", w.env);
        expect_some(db, 0, 50, "kept");
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        o.create_if_missing = false;
        a = NULL;
        const tamiz_status there = tamiz_keyspace_open(db, "a", &o, &a);
        assert_true(there == TAMIZ_NOT_FOUND || (there == TAMIZ_OK && st != TAMIZ_OK));
        if (a)
            expect_some(a, 0, 300, "gone");
        else
            assert_int_equal(test_count_files(w.env, "s", ".sst"), 0);
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
}

/* ---- dropping ---- */

static void a_dropped_keyspace_is_closed_and_gives_its_room_back(void **state)
{
    (void)state;
    struct world w = world_new(6);
    tamiz *db = test_open("s", "threads=0 memtable=64KiB", w.env), *a = keyspace(db, "a");
    put_some(a, 0, 3000, "a value of some length, so that there is something to give back");
    assert_public(tamiz_flush(a), TAMIZ_OK);
    tamiz_iter *it = NULL;
    tamiz_snapshot *snapshot = NULL;
    assert_public(tamiz_iter_open(a, NULL, &it), TAMIZ_OK);
    assert_public(tamiz_snapshot_take(db, &snapshot), TAMIZ_OK);
    tamiz_batch *batch = tamiz_batch_new();
    assert_public(tamiz_batch_put(batch, a, "k", 1, "v", 1), TAMIZ_OK);
    assert_true(test_count_files(w.env, "s", ".sst") > 0);
    assert_public(tamiz_keyspace_drop(a, "a"), TAMIZ_OK);
    /* Who was reading reads on; all else is refused. */
    int seen = 0;
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it))
        seen++;
    assert_int_equal(seen, 3000);
    void *value;
    assert_public(tamiz_get(a, "k", 1, &value, NULL, NULL), TAMIZ_CLOSED);
    assert_public(tamiz_put(a, "k", 1, "v", 1, NULL), TAMIZ_CLOSED);
    assert_public(tamiz_write(db, batch, NULL), TAMIZ_CLOSED);
    assert_public(tamiz_flush(a), TAMIZ_CLOSED);
    assert_public(tamiz_keyspace_drop(db, "a"), TAMIZ_NOT_FOUND);
    tamiz_batch_free(batch);
    tamiz_iter_close(it);
    tamiz_snapshot_release(snapshot);
    test_put(db, "k", "v");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_int_equal(test_count_files(w.env, "s", ".sst"), 1);
    /* The name is free, and what comes has nothing of what was. */
    tamiz *again = keyspace(db, "a");
    assert_true(again != a);
    assert_string_equal(test_scan(again, NULL), "");
    test_put(again, "new", "1");
    test_close(db);
    db = test_open("s", "threads=0", w.env);
    assert_string_equal(test_scan(keyspace(db, "a"), NULL), "new=1");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void what_the_log_has_of_a_dropped_keyspace_stays_away(void **state)
{
    (void)state;
    struct world w = world_new(7);
    tamiz *db = test_open("s", "threads=0", w.env), *a = keyspace(db, "a");
    test_put(a, "k", "old");
    test_put(db, "k", "default");
    assert_public(tamiz_keyspace_drop(db, "a"), TAMIZ_OK);
    a = keyspace(db, "a");
    test_put(db, "l", "default");
    assert_public(tamiz_sync(db), TAMIZ_OK);
    tamiz_env_sim_crash(w.sim, TAMIZ_SIM_KEEP, NULL, 0);
    tamiz *after = test_open("s", "threads=0", w.env);
    assert_string_equal(test_scan(keyspace(after, "a"), NULL), "");
    assert_string_equal(test_scan(after, NULL), "k=default l=default");
    test_close(after);
    (void)tamiz_close(db);
    tamiz_env_sim_free(w.sim);
}

/* Who moves data out of a keyspace and drops it must not lose both to a power cut. */
static void what_was_written_before_a_drop_is_durable_before_it_is(void **state)
{
    (void)state;
    struct world w = world_new(14);
    tamiz *db = test_open("s", "threads=0", w.env), *a = keyspace(db, "a");
    test_put(a, "k", "moves");
    assert_public(tamiz_sync(db), TAMIZ_OK);
    test_put(db, "k", "moves");
    assert_public(tamiz_keyspace_drop(db, "a"), TAMIZ_OK);
    tamiz_env_sim_crash(w.sim, TAMIZ_SIM_DROP, NULL, 0);
    tamiz *after = test_open("s", "threads=0", w.env);
    assert_string_equal(test_scan(after, NULL), "k=moves");
    test_close(after);
    (void)tamiz_close(db);
    tamiz_env_sim_free(w.sim);
}

/* The drop is on the disk, its caller is told that it failed, and the manifest takes nothing more:
 * a write to the keyspace that is still there would be gone with it. */
static void a_drop_that_may_have_happened_is_taken_back_before_the_next_write(void **state)
{
    (void)state;
    struct world w = world_new(15);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    tamiz *db = test_open("s", "threads=0 sync=always", w.env), *a = keyspace(db, "a");
    test_put(a, "k", "before");
    fault.call = TAMIZ_SIM_CHANGE;
    fault.name = "MANIFEST-*";
    fault.sticky = fault.after = true;
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    assert_public(tamiz_keyspace_drop(db, "a"), TAMIZ_IO_ERROR);
    test_expect(a, "k", "before", NULL);
    assert_public(tamiz_put(a, "l", 1, "refused", 7, NULL), TAMIZ_IO_ERROR);
    assert_int_equal(put_pair(db, a, "m", "refused"), TAMIZ_IO_ERROR);
    tamiz_env_sim *copy = tamiz_env_sim_copy(w.sim);
    tamiz_env_sim_crash(copy, TAMIZ_SIM_KEEP, NULL, 0);
    tamiz *after = test_open("s", "threads=0", tamiz_env_sim_env(copy));
    assert_string_equal(test_scan(after, NULL), "");
    assert_string_equal(test_scan(keyspace(after, "a"), NULL), ""); /* a new one: it was dropped */
    test_close(after);
    tamiz_env_sim_free(copy);
    tamiz_env_sim_clear(w.sim);
    test_put(a, "n", "on");
    tamiz_env_sim_crash(w.sim, TAMIZ_SIM_DROP, NULL, 0);
    after = test_open("s", "threads=0", w.env);
    assert_string_equal(test_scan(keyspace(after, "a"), NULL), "k=before n=on");
    test_close(after);
    (void)tamiz_close(db);
    tamiz_env_sim_free(w.sim);
}

/* ---- logs ---- */

static void a_keyspace_that_rests_keeps_no_logs(void **state)
{
    (void)state;
    struct world w = world_new(8);
    tamiz *db = test_open("s", "threads=0 memtable=64KiB", w.env);
    tamiz *idle = keyspace(db, "idle"), *busy = keyspace(db, "busy");
    size_t most = 0;
    test_put(idle, "once", "1");
    for (int i = 0; i < 20000; i++) {
        test_put(busy, key_of(i % 1000), "a value that makes the memtable full in good time");
        const size_t logs = test_count_files(w.env, "s", ".log");
        most = logs > most ? logs : most;
    }
    assert_true(most < 12);
    /* Nor many small ones, when the other is flushed by hand. */
    test_put(idle, "twice", "2");
    for (int i = 0; i < 60; i++) {
        test_put(busy, "x", "y");
        assert_public(tamiz_flush(busy), TAMIZ_OK);
    }
    assert_true(test_count_files(w.env, "s", ".log") < 20);
    test_expect(idle, "once", "1", NULL);
    test_expect(idle, "twice", "2", NULL);
    test_close(db);
    db = test_open("s", "threads=0 memtable=64KiB", w.env);
    test_expect(keyspace(db, "idle"), "twice", "2", NULL);
    test_expect(keyspace(db, "busy"), "x", "y", NULL);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* What one keyspace flushed must not come back from the log above newer tables. */
static void replay_leaves_out_what_is_in_tables(void **state)
{
    (void)state;
    struct world w = world_new(9);
    tamiz *db = test_open("s", "threads=0", w.env), *a = keyspace(db, "a");
    test_put(db, "holds", "the log");
    test_put(a, "k", "1");
    assert_public(tamiz_flush(a), TAMIZ_OK);
    test_put(a, "k", "2");
    assert_public(tamiz_flush(a), TAMIZ_OK);
    assert_public(tamiz_sync(db), TAMIZ_OK);
    for (int round = 0; round < 3; round++) {
        tamiz_env_sim *copy = tamiz_env_sim_copy(w.sim);
        tamiz *after = test_open("s", "threads=0", tamiz_env_sim_env(copy));
        test_expect(keyspace(after, "a"), "k", "2", NULL);
        test_expect(after, "holds", "the log", NULL);
        test_close(after);
        after = test_open("s", "threads=0", tamiz_env_sim_env(copy));
        test_expect(keyspace(after, "a"), "k", "2", NULL);
        test_close(after);
        tamiz_env_sim_free(copy);
    }
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* ---- beside each other ---- */

struct stalled {
    tamiz *slow;
    _Atomic bool done;
};

static void stalled_run(void *ctx)
{
    struct stalled *s = ctx;
    assert_public(tamiz_put(s->slow, "waits", 5, "1", 1, NULL), TAMIZ_OK);
    atomic_store(&s->done, true);
}

/* As if a flush of it ran, and did not end. */
static void hold_flushes(tamiz *db, bool hold)
{
    mutex_lock(&db->store->mutex);
    db->flushing = hold;
    condition_broadcast(&db->store->work);
    mutex_unlock(&db->store->mutex);
}

static void one_that_stalls_does_not_stop_the_others(void **state)
{
    (void)state;
    struct world w = world_new(10);
    tamiz *db = test_open("s", "threads=1 memtable=64KiB", w.env);
    struct stalled s = {keyspace(db, "slow"), false};
    tamiz_write_options no_wait = TAMIZ_WRITE_OPTIONS_INIT;
    struct thread thread;
    struct counters count = {0};
    struct op op;
    op_init(&op, &alloc_libc, &count);
    no_wait.no_wait = true;
    hold_flushes(s.slow, true);
    tamiz_status st = TAMIZ_OK;
    for (int i = 0; i < 10000 && st == TAMIZ_OK; i++)
        st = tamiz_put(s.slow, key_of(i), 7, "a value that fills memtables", 28, &no_wait);
    assert_public(st, TAMIZ_BUSY);
    assert_int_equal(thread_start(&op, &thread, "stalled", stalled_run, &s), TAMIZ_OK);
    for (int i = 0; i < 5000; i++)
        test_put(db, key_of(i), "a value that fills memtables, one after the other");
    tamiz_stats stats = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    assert_true(stats.flushes > 2);
    assert_false(atomic_load(&s.done));
    hold_flushes(s.slow, false);
    thread_join(&thread);
    test_expect(s.slow, "waits", "1", NULL);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* What a filter was good for is told of the keyspace that has it, of no other. */
static void expect_worth(tamiz *ks, bool told)
{
    char *text;
    assert_public(tamiz_property(ks, "stats", &text), TAMIZ_OK);
    const char *line = strstr(text, "\nlevel 0: ");
    assert_int_equal(line != NULL, told);
    if (told)
        assert_non_null(strstr(line, " of filter avoided "));
    tamiz_free(text);
}

static void counters_are_each_keyspaces_own(void **state)
{
    (void)state;
    struct world w = world_new(11);
    tamiz *db = test_open("s", "threads=0", w.env), *a = keyspace(db, "a");
    tamiz_stats of_db = TAMIZ_STATS_INIT, of_a = TAMIZ_STATS_INIT;
    put_some(a, 0, 100, "v");
    assert_public(tamiz_flush(a), TAMIZ_OK);
    expect_some(a, 0, 100, "v");
    test_expect(db, "k", NULL, NULL);
    assert_public(tamiz_stats_get(db, &of_db), TAMIZ_OK);
    assert_public(tamiz_stats_get(a, &of_a), TAMIZ_OK);
    assert_true(of_a.gets >= 100 && of_a.flushes == 1 && of_a.total.tables == 1);
    assert_true(of_db.gets < 10 && of_db.flushes == 0 && of_db.total.tables == 0);
    char *json, *lines;
    assert_public(tamiz_property(a, "stats.json", &json), TAMIZ_OK);
    assert_non_null(strstr(json, "\"keyspace\":\"a\""));
    assert_public(tamiz_property(a, "stats.prometheus", &lines), TAMIZ_OK);
    assert_non_null(strstr(lines, "tamiz_flushes{keyspace=\"a\"} 1"));
    tamiz_free(json);
    tamiz_free(lines);
    assert_public(tamiz_exists(a, "00050x", 6, NULL), TAMIZ_NOT_FOUND);
    expect_worth(a, true);
    expect_worth(db, false);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* ---- copies ---- */

static void copies_and_readers_see_all_keyspaces_at_one_moment(void **state)
{
    (void)state;
    struct world w = world_new(12);
    tamiz *db = test_open("s", "threads=0", w.env), *a = keyspace(db, "a"), *b = keyspace(db, "b");
    for (int i = 0; i < 40; i++)
        assert_public(put_pair(a, b, key_of(i), "1"), TAMIZ_OK);
    assert_public(tamiz_flush(a), TAMIZ_OK);
    for (int i = 40; i < 60; i++)
        assert_public(put_pair(a, b, key_of(i), "1"), TAMIZ_OK);
    assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
    tamiz *reader = test_open("s", "read_only=true", w.env);
    tamiz *reader_a = keyspace(reader, "a");
    expect_some(reader_a, 0, 60, "1");
    expect_some(keyspace(reader, "b"), 0, 60, "1");
    tamiz *none = NULL;
    assert_public(tamiz_keyspace_open(reader, "c", NULL, &none), TAMIZ_NOT_FOUND);
    assert_public(tamiz_keyspace_drop(reader, "a"), TAMIZ_READ_ONLY);
    assert_public(tamiz_keyspace_drop(db, "a"), TAMIZ_OK);
    test_put(keyspace(db, "c"), "k", "c");
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    test_expect(keyspace(reader, "c"), "k", "c", NULL);
    void *value;
    assert_public(tamiz_get(reader_a, "k", 1, &value, NULL, NULL), TAMIZ_CLOSED);
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_verify(db, &report), TAMIZ_OK);
    test_close(reader);
    test_close(db);
    tamiz *copy = test_open("copy", "threads=0", w.env);
    expect_some(keyspace(copy, "a"), 0, 60, "1");
    expect_some(keyspace(copy, "b"), 0, 60, "1");
    test_expect(copy, key_of(0), NULL, NULL);
    test_close(copy);
    tamiz_env_sim_free(w.sim);
}

struct finds {
    char text[1000];
};

static void note_find(void *ctx, const char *text)
{
    struct finds *f = ctx;
    const size_t used = strlen(f->text);
    (void)snprintf(f->text + used, sizeof f->text - used, "%s\n", text);
}

static void lose_manifest_and_repair(struct world *w, struct finds *finds)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_int_equal(w->env->ops->remove(w->env->ctx, "s/CURRENT"), 0);
    o.env = w->env;
    *finds = (struct finds){.text = ""};
    report.find = note_find;
    report.ctx = finds;
    assert_public(tamiz_repair("s", &o, &report), TAMIZ_OK);
}

static void repair_keeps_keyspaces_apart_with_no_manifest(void **state)
{
    (void)state;
    struct finds finds;
    struct world w = world_new(14);
    tamiz *db = test_open("s", "threads=0", w.env), *a = keyspace(db, "a"), *b = keyspace(db, "b");
    put_some(a, 0, 50, "a");
    put_some(db, 0, 50, "default");
    put_some(b, 0, 50, "b");
    assert_public(tamiz_flush(a), TAMIZ_OK);
    assert_public(tamiz_flush(b), TAMIZ_OK);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_public(tamiz_compact(b, NULL, 0, NULL, 0), TAMIZ_OK);
    test_put(a, "later", "log");
    tamiz *young = keyspace(db, "young"); /* of which there is only the log */
    test_put(young, "k", "v");
    test_close(db);
    lose_manifest_and_repair(&w, &finds);
    assert_non_null(strstr(finds.text, "keyspace 3: its name is not known: it is keyspace-3"));
    for (int round = 0; round < 2; round++) { /* also by what the repair has written */
        db = test_open("s", "threads=0", w.env);
        a = keyspace(db, "a");
        b = keyspace(db, "b");
        young = keyspace(db, "keyspace-3");
        expect_some(db, 0, 50, "default");
        expect_some(a, 0, 50, "a");
        expect_some(b, 0, 50, "b");
        test_expect(a, "later", "log", NULL);
        test_expect(db, "later", NULL, NULL);
        assert_string_equal(test_scan(young, NULL), "k=v");
        tamiz *more = keyspace(db, "more"); /* with an id of its own */
        assert_string_equal(test_scan(more, NULL), "");
        test_close(db);
        if (round == 0) {
            lose_manifest_and_repair(&w, &finds);
            assert_null(strstr(finds.text, "its name is not known"));
        }
    }
    tamiz_env_sim_free(w.sim);
}

/* The machine died before the files of the one that was dropped were gone. */
static void repair_tells_two_of_one_name_apart(void **state)
{
    (void)state;
    struct finds finds;
    struct world w = world_new(15);
    tamiz *db = test_open("s", "threads=0", w.env), *a = keyspace(db, "a");
    tamiz_iter *it;
    put_some(a, 0, 20, "old");
    assert_public(tamiz_flush(a), TAMIZ_OK);
    assert_public(tamiz_iter_open(a, NULL, &it), TAMIZ_OK); /* holds its table */
    assert_public(tamiz_keyspace_drop(db, "a"), TAMIZ_OK);
    a = keyspace(db, "a");
    put_some(a, 10, 30, "new");
    assert_public(tamiz_flush(a), TAMIZ_OK);
    tamiz_env_sim *killed = tamiz_env_sim_copy(w.sim);
    tamiz_iter_close(it);
    test_close(db);
    tamiz_env_sim_free(w.sim);
    w.sim = killed;
    w.env = tamiz_env_sim_env(killed);
    tamiz_env_sim_crash(killed, TAMIZ_SIM_KEEP, NULL, 0);
    lose_manifest_and_repair(&w, &finds);
    db = test_open("s", "threads=0", w.env);
    a = keyspace(db, "a");
    test_expect(a, key_of(5), NULL, NULL);
    expect_some(a, 10, 30, "new");
    expect_some(keyspace(db, "keyspace-1"), 0, 20, "old");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* ---- threads ---- */

enum { WRITERS = 4, WRITES = 1500 };

struct load {
    tamiz *db, *a, *b;
    int number;
};

static void load_run(void *ctx)
{
    struct load *l = ctx;
    for (int i = 0; i < WRITES; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "%d-%05d", l->number, i);
        assert_public(put_pair(l->a, l->b, key, "a value of some length to fill memtables"),
                      TAMIZ_OK);
        if (i % 100 == 0)
            assert_true(has(l->a, key) && has(l->b, key));
    }
}

static void drop_run(void *ctx)
{
    struct load *l = ctx;
    for (int i = 0; i < 20; i++) {
        tamiz *t = keyspace(l->db, "temporary");
        put_some(t, 0, 200, "a value that goes as it came");
        assert_public(tamiz_keyspace_drop(l->db, "temporary"), TAMIZ_OK);
    }
}

static void writers_of_several_keyspaces_and_drops_go_together(void **state)
{
    (void)state;
    struct world w = world_new(13);
    tamiz *db = test_open("s", "threads=2 memtable=64KiB table=64KiB", w.env);
    struct load l[WRITERS + 1];
    struct thread threads[WRITERS + 1];
    struct counters count = {0};
    struct op op;
    op_init(&op, &alloc_libc, &count);
    for (int i = 0; i <= WRITERS; i++) {
        l[i] = (struct load){db, keyspace(db, "a"), i % 2 ? keyspace(db, "b") : db, i};
        assert_int_equal(
            thread_start(&op, &threads[i], "load", i < WRITERS ? load_run : drop_run, &l[i]),
            TAMIZ_OK);
    }
    for (int i = 0; i <= WRITERS; i++)
        thread_join(&threads[i]);
    test_close(db);
    db = test_open("s", "threads=0", w.env);
    tamiz *a = keyspace(db, "a"), *b = keyspace(db, "b");
    for (int n = 0; n < WRITERS; n++)
        for (int i = 0; i < WRITES; i += 37) {
            char key[32];
            (void)snprintf(key, sizeof key, "%d-%05d", n, i);
            assert_true(has(a, key) && has(n % 2 ? b : db, key));
        }
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keyspaces_are_apart_and_come_back),
        cmocka_unit_test(names_and_options_are_checked),
        cmocka_unit_test(a_write_that_names_none_goes_where_the_batch_goes),
        cmocka_unit_test(a_batch_over_two_keyspaces_is_whole_after_any_crash),
        cmocka_unit_test(a_drop_happens_or_does_not),
        cmocka_unit_test(a_dropped_keyspace_is_closed_and_gives_its_room_back),
        cmocka_unit_test(what_the_log_has_of_a_dropped_keyspace_stays_away),
        cmocka_unit_test(what_was_written_before_a_drop_is_durable_before_it_is),
        cmocka_unit_test(a_drop_that_may_have_happened_is_taken_back_before_the_next_write),
        cmocka_unit_test(a_keyspace_that_rests_keeps_no_logs),
        cmocka_unit_test(replay_leaves_out_what_is_in_tables),
        cmocka_unit_test(one_that_stalls_does_not_stop_the_others),
        cmocka_unit_test(counters_are_each_keyspaces_own),
        cmocka_unit_test(copies_and_readers_see_all_keyspaces_at_one_moment),
        cmocka_unit_test(repair_keeps_keyspaces_apart_with_no_manifest),
        cmocka_unit_test(repair_tells_two_of_one_name_apart),
        cmocka_unit_test(writers_of_several_keyspaces_and_drops_go_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
