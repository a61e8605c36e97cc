/* SPDX-License-Identifier: MIT
 *
 * Tables built with no store, and taken in: newer than what was there, older than what comes, seen
 * by nobody who looks at an earlier moment, all of them or none.
 *
 * LABEL: threads
 */
#define _POSIX_C_SOURCE 200809L /* strtok_r */
#include <errno.h>
#include <string.h>

#include "db/place.h"
#include "env/thread.h"
#include "support/store.h"
#include "tamiz/env_sim.h"

struct world {
    tamiz_env_sim *sim;
    const tamiz_env *env;
};

static struct world world_new(uint64_t seed)
{
    struct world w = {.sim = tamiz_env_sim_new(seed)};
    assert_non_null(w.sim);
    w.env = tamiz_env_sim_env(w.sim);
    return w;
}

/* A table from "a=1 b=2 c!": key=value, or key! for a tombstone. */
static void build(const tamiz_env *env, const char *path, const char *entries)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_table_writer *w;
    char text[4096], *rest = text;
    o.env = env;
    (void)snprintf(text, sizeof text, "%s", entries);
    assert_public(tamiz_table_writer_open(path, &o, &w), TAMIZ_OK);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        char *value = strchr(word, '=');
        if (value) {
            *value++ = 0;
            assert_public(tamiz_table_writer_put(w, word, strlen(word), value, strlen(value)),
                          TAMIZ_OK);
        } else {
            assert_public(tamiz_table_writer_delete(w, word, strlen(word) - 1), TAMIZ_OK);
        }
    }
    assert_public(tamiz_table_writer_finish(w, NULL, NULL), TAMIZ_OK);
}

static tamiz_status take_in(tamiz *db, const char *a, const char *b)
{
    const char *const paths[] = {a, b};
    return tamiz_ingest(db, paths, b ? 2 : 1);
}

static void verify_whole(tamiz *db)
{
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_verify(db, &report), TAMIZ_OK);
}

/* ---- the writer ---- */

static void a_table_writer_wants_rising_keys_and_tells_what_it_wrote(void **state)
{
    (void)state;
    struct world world = world_new(1);
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_table_writer *w;
    uint64_t keys, bytes;
    o.env = world.env;
    assert_public(tamiz_table_writer_open("t", &o, &w), TAMIZ_OK);
    assert_public(tamiz_table_writer_put(w, "", 0, "empty", 5), TAMIZ_OK);
    assert_public(tamiz_table_writer_put(w, "b", 1, "1", 1), TAMIZ_OK);
    assert_int_equal(tamiz_table_writer_put(w, "b", 1, "2", 1), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_table_writer_delete(w, "b", 1), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(tamiz_table_writer_put(w, "a", 1, "2", 1), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_table_writer_put(w, "c", 1, NULL, 0), TAMIZ_OK); /* nothing was spoilt */
    assert_true(tamiz_table_writer_size(w) > 0);
    assert_public(tamiz_table_writer_finish(w, &keys, &bytes), TAMIZ_OK);
    assert_int_equal(keys, 3);
    assert_true(bytes > 0);
    assert_int_equal(tamiz_table_writer_open("t", &o, &w), TAMIZ_IO_ERROR); /* it exists */
    assert_null(w);
    assert_public(tamiz_table_writer_open("u", &o, &w), TAMIZ_OK);
    assert_int_equal(tamiz_table_writer_finish(w, &keys, &bytes), TAMIZ_INVALID_ARGUMENT);
    assert_public(tamiz_table_writer_open("u", &o, &w), TAMIZ_OK);
    tamiz_table_writer_abandon(w);
    tamiz_table_writer_abandon(NULL);
    assert_public(tamiz_table_writer_open("u", &o, &w), TAMIZ_OK);
    tamiz_table_writer_abandon(w);
    tamiz_env_sim_free(world.sim);
}

/* ---- what readers see ---- */

static void what_is_ingested_is_newer_than_all_before_and_older_than_all_after(void **state)
{
    (void)state;
    struct world w = world_new(2);
    tamiz *db = test_open("s", "threads=0", w.env);
    build(w.env, "t1", "a=new b=new d! e=new");
    test_put(db, "a", "flushed");
    test_put(db, "d", "flushed");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_put(db, "b", "memory");
    test_put(db, "c", "memory");
    tamiz_snapshot *before;
    assert_public(tamiz_snapshot_take(db, &before), TAMIZ_OK);
    assert_public(take_in(db, "t1", NULL), TAMIZ_OK);
    assert_string_equal(test_scan(db, NULL), "a=new b=new c=memory e=new");
    assert_string_equal(test_scan(db, before), "a=flushed b=memory c=memory d=flushed");
    test_expect(db, "a", "flushed", before);
    test_expect(db, "e", NULL, before);
    test_expect(db, "d", "flushed", before);
    test_expect(db, "d", NULL, NULL);
    test_put(db, "a", "later");
    test_expect(db, "a", "later", NULL);
    tamiz_snapshot *after;
    assert_public(tamiz_snapshot_take(db, &after), TAMIZ_OK);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    assert_string_equal(test_scan(db, before), "a=flushed b=memory c=memory d=flushed");
    assert_string_equal(test_scan(db, after), "a=later b=new c=memory e=new");
    tamiz_snapshot_release(before);
    tamiz_snapshot_release(after);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    assert_string_equal(test_scan(db, NULL), "a=later b=new c=memory e=new");
    verify_whole(db);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* Seeks from both sides at a moment before: also where the ingested table has a tombstone, which is
 * the smallest stamp there can be in the file. */
static void iterators_at_an_earlier_moment_pass_over_it(void **state)
{
    (void)state;
    struct world w = world_new(3);
    tamiz *db = test_open("s", "threads=0 compaction=off", w.env);
    test_put(db, "b", "old");
    test_put(db, "d", "old");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    tamiz_snapshot *before;
    assert_public(tamiz_snapshot_take(db, &before), TAMIZ_OK);
    build(w.env, "t1", "a! b! c=new d=new e!");
    assert_public(take_in(db, "t1", NULL), TAMIZ_OK);
    const char *const keys[] = {"a", "b", "c", "d", "e"};
    const char *const at_or_after[] = {"b", "b", "d", "d", NULL};
    const char *const at_or_before[] = {NULL, "b", "b", "d", "d"};
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    tamiz_iter *it;
    o.snapshot = before;
    assert_public(tamiz_iter_open(db, &o, &it), TAMIZ_OK);
    for (size_t i = 0; i < 5; i++) {
        size_t size;
        tamiz_iter_seek(it, keys[i], 1);
        assert_int_equal(tamiz_iter_valid(it), at_or_after[i] != NULL);
        if (at_or_after[i])
            assert_memory_equal(tamiz_iter_key(it, &size), at_or_after[i], 1);
        tamiz_iter_seek_for_prev(it, keys[i], 1);
        assert_int_equal(tamiz_iter_valid(it), at_or_before[i] != NULL);
        if (at_or_before[i])
            assert_memory_equal(tamiz_iter_key(it, &size), at_or_before[i], 1);
    }
    tamiz_iter_close(it);
    assert_string_equal(test_scan(db, NULL), "c=new d=new");
    tamiz_snapshot_release(before);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void of_one_key_in_two_tables_the_later_one_wins(void **state)
{
    (void)state;
    struct world w = world_new(4);
    tamiz *db = test_open("s", "threads=0 compaction=off", w.env);
    build(w.env, "t1", "a=1 b=1 c=1");
    build(w.env, "t2", "b=2 c! d=2");
    build(w.env, "t3", "c=3 x=3");
    const char *const paths[] = {"t1", "t2", "t3"};
    assert_public(tamiz_ingest(db, paths, 3), TAMIZ_OK);
    assert_string_equal(test_scan(db, NULL), "a=1 b=2 c=3 d=2 x=3");
    assert_public(tamiz_ingest(db, paths, 2), TAMIZ_OK); /* the same files again, newer now */
    assert_string_equal(test_scan(db, NULL), "a=1 b=2 d=2 x=3");
    verify_whole(db);
    test_close(db);
    db = test_open("s", "threads=0", w.env);
    assert_string_equal(test_scan(db, NULL), "a=1 b=2 d=2 x=3");
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    assert_string_equal(test_scan(db, NULL), "a=1 b=2 d=2 x=3");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* The next sequence is above that of an ingested table, whatever is left of log and memtables. */
static void new_writes_win_over_it_after_reopening(void **state)
{
    (void)state;
    struct world w = world_new(5);
    build(w.env, "t1", "a=in b=in");
    tamiz *db = test_open("s", "threads=0", w.env);
    assert_public(take_in(db, "t1", NULL), TAMIZ_OK);
    test_close(db);
    for (int i = 0; i < 5; i++) {
        char value[16];
        (void)snprintf(value, sizeof value, "v%d", i);
        db = test_open("s", "threads=0 create_if_missing=false", w.env);
        tamiz_snapshot *s;
        assert_public(tamiz_snapshot_take(db, &s), TAMIZ_OK);
        test_expect(db, "b", "in", s);
        test_put(db, "a", value);
        test_expect(db, "a", value, NULL);
        tamiz_snapshot_release(s);
        if (i % 2)
            assert_public(tamiz_flush(db), TAMIZ_OK);
        test_close(db);
    }
    tamiz_env_sim_free(w.sim);
}

/* ---- where it goes ---- */

static void it_goes_to_the_deepest_level_that_fits(void **state)
{
    (void)state;
    struct world w = world_new(6);
    tamiz *db = test_open("s", "threads=0 compaction=off", w.env);
    build(w.env, "t1", "m=1 p=1");
    assert_public(take_in(db, "t1", NULL), TAMIZ_OK);
    build(w.env, "t2", "a=1 b=1");
    assert_public(take_in(db, "t2", NULL), TAMIZ_OK);
    tamiz_stats stats = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    assert_int_equal(stats.level[1].tables, 2);
    build(w.env, "t3", "b=3 n=3"); /* overlaps both */
    assert_public(take_in(db, "t3", NULL), TAMIZ_OK);
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    assert_int_equal(stats.level[0].tables, 1);
    assert_string_equal(test_scan(db, NULL), "a=1 b=3 m=1 n=3 p=1");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* Law: against any tree, what overlaps a placed table is below it or in an older run of level 0. */
static void placing_never_breaks_newer_above_older(void **state)
{
    (void)state;
    struct test_random r = test_random_start(7);
    for (int round = 0; round < 40; round++) {
        struct world w = world_new(100 + (uint64_t)round);
        tamiz *db = test_open("s",
                              round % 2 ? "threads=0 memtable=64KiB compaction=off"
                                        : "threads=0 memtable=64KiB compaction=tiered",
                              w.env);
        char model[26][16] = {{0}};
        for (int step = 0; step < 30; step++) {
            char key[2] = "", value[16], path[32], entries[256] = "";
            (void)snprintf(value, sizeof value, "%d", step);
            const uint64_t kind = test_random_below(&r, 6);
            if (kind < 2) {
                key[0] = (char)('a' + test_random_below(&r, 26));
                test_put(db, key, value);
                memcpy(model[key[0] - 'a'], value, sizeof value);
            } else if (kind == 2) {
                assert_public(tamiz_flush(db), TAMIZ_OK);
            } else if (kind == 3 && test_random_below(&r, 3) == 0) {
                assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
            } else if (kind == 4) {
                (void)tamiz_compact_table(db, (unsigned)test_random_below(&r, 4), 0);
            } else {
                for (int c = 'a'; c <= 'z'; c++) {
                    if (test_random_below(&r, 6))
                        continue;
                    char one[24];
                    (void)snprintf(one, sizeof one, "%c=%s ", c, value);
                    (void)strncat(entries, one, sizeof entries - strlen(entries) - 1);
                    memcpy(model[c - 'a'], value, sizeof value);
                }
                if (!entries[0])
                    continue;
                (void)snprintf(path, sizeof path, "t%d", step);
                build(w.env, path, entries);
                assert_public(take_in(db, path, NULL), TAMIZ_OK);
            }
            for (int c = 0; c < 26; c++) {
                key[0] = (char)('a' + c);
                test_expect(db, key, model[c][0] ? model[c] : NULL, NULL);
            }
        }
        verify_whole(db);
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
}

/* ---- refused ---- */

static void what_is_no_such_table_is_refused_and_nothing_changes(void **state)
{
    (void)state;
    struct world w = world_new(8);
    tamiz *db = test_open("s", "threads=0 compaction=off", w.env);
    build(w.env, "t1", "a=1");
    build(w.env, "t2", "b=1");
    test_put(db, "x", "1");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_put(db, "x", "2");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    const size_t files = test_count_files(w.env, "s", ".sst");
    char own[32];
    for (int number = 1; number < 50; number++) { /* a table of the store has sequences */
        tamiz_file_info info;
        (void)snprintf(own, sizeof own, "s/%06d.sst", number);
        if (w.env->ops->path_info(w.env->ctx, own, &info) == 0)
            break;
    }
    assert_int_equal(take_in(db, "t1", own), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(take_in(db, "t1", "s/CURRENT"), TAMIZ_CORRUPTION);
    assert_int_equal(take_in(db, "t1", "nowhere"), TAMIZ_IO_ERROR);
    assert_int_equal(take_in(db, "t1", ""), TAMIZ_INVALID_ARGUMENT);
    assert_int_equal(take_in(db, NULL, NULL), TAMIZ_INVALID_ARGUMENT);
    assert_true(tamiz_env_sim_flip(w.sim, "t2", 20 * 8));
    assert_int_equal(take_in(db, "t1", "t2"), TAMIZ_CORRUPTION);
    assert_public(tamiz_ingest(db, NULL, 0), TAMIZ_OK);
    assert_string_equal(test_scan(db, NULL), "x=2");
    assert_int_equal(test_count_files(w.env, "s", ".sst"), files);
    test_close(db);
    tamiz *reader = test_open("s", "read_only=true", w.env);
    assert_int_equal(take_in(reader, "t1", NULL), TAMIZ_READ_ONLY);
    test_close(reader);
    tamiz_env_sim_free(w.sim);
}

static void it_is_copied_where_it_cannot_be_linked(void **state)
{
    (void)state;
    struct world w = world_new(9);
    tamiz *db = test_open("s", "threads=0", w.env);
    build(w.env, "t1", "a=1 b=2");
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.call = TAMIZ_SIM_LINK;
    fault.error = EXDEV;
    fault.sticky = true;
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    assert_public(take_in(db, "t1", NULL), TAMIZ_OK);
    assert_int_equal(w.env->ops->remove(w.env->ctx, "t1"), 0);
    assert_string_equal(test_scan(db, NULL), "a=1 b=2");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* ---- all or nothing ---- */

static void check_all_or_nothing(tamiz *db, bool acknowledged)
{
    const char *now = test_scan(db, NULL);
    const bool all = strcmp(now, "a=in b=in c=mem y=in z=in") == 0;
    const bool none = strcmp(now, "a=old b=mem c=mem") == 0;
    if (!all && !none)
        print_error("found \"%s\"\n", now);
    assert_true(all || none);
    assert_true(all || !acknowledged);
}

static tamiz *prepare_for_failure(struct world w)
{
    build(w.env, "t1", "a=in b=in");
    build(w.env, "t2", "y=in z=in");
    tamiz *db = test_open("s", "threads=0", w.env);
    test_put(db, "a", "old");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_put(db, "b", "mem");
    test_put(db, "c", "mem");
    assert_public(tamiz_sync(db), TAMIZ_OK);
    return db;
}

static void a_crash_at_any_call_leaves_all_or_nothing(void **state)
{
    (void)state;
    bool finished = false;
    for (uint64_t call = 1; !finished; call++) {
        struct world w = world_new(10);
        tamiz *db = prepare_for_failure(w);
        tamiz_env_sim_stop_at(w.sim, tamiz_env_sim_calls(w.sim, TAMIZ_SIM_ANY) + call);
        const tamiz_status st = take_in(db, "t1", "t2");
        finished = st == TAMIZ_OK && !tamiz_env_sim_stopped(w.sim);
        tamiz_env_sim_stop_at(w.sim, 0);
        (void)tamiz_close(db);
        tamiz_env_sim_crash(w.sim, call % 2 ? TAMIZ_SIM_DROP : TAMIZ_SIM_REORDER, NULL, call);
        db = test_open("s", "threads=0 create_if_missing=false", w.env);
        check_all_or_nothing(db, st == TAMIZ_OK);
        verify_whole(db);
        assert_public(take_in(db, "t1", "t2"), TAMIZ_OK);
        check_all_or_nothing(db, true);
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
}

static void a_call_that_fails_leaves_all_or_nothing_and_writing_goes_on(void **state)
{
    (void)state;
    bool whole = false;
    for (uint64_t nth = 1; !whole; nth++) {
        struct world w = world_new(11);
        tamiz *db = prepare_for_failure(w);
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.call = TAMIZ_SIM_CHANGE;
        fault.nth = nth;
        fault.error = nth % 2 ? ENOSPC : EIO;
        assert_true(tamiz_env_sim_fault(w.sim, &fault));
        const tamiz_status st = take_in(db, "t1", "t2");
        whole = tamiz_env_sim_faults_acted(w.sim) == 0;
        tamiz_env_sim_clear(w.sim);
        check_all_or_nothing(db, st == TAMIZ_OK);
        for (int i = 0; i < 3; i++) { /* with sequences that replaying must not take for old ones */
            char key[24];
            (void)snprintf(key, sizeof key, "later%d", i);
            test_put(db, key, "on");
        }
        const bool all = st == TAMIZ_OK;
        (void)tamiz_close(db);
        tamiz_env_sim_crash(w.sim, TAMIZ_SIM_KEEP, NULL, 0);
        db = test_open("s", "threads=0 create_if_missing=false", w.env);
        for (int i = 0; i < 3; i++) {
            char key[24];
            (void)snprintf(key, sizeof key, "later%d", i);
            test_expect(db, key, "on", NULL);
            test_delete(db, key);
        }
        check_all_or_nothing(db, all);
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
}

/* It is durable when it returns, and so is what was acknowledged before it, synced or not. */
/* Its sequences are used again, although the log that failed still says that they were skipped. */
static void what_a_failed_log_says_of_an_ingestion_does_not_count(void **state)
{
    (void)state;
    struct world world = world_new(15);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    tamiz *db = test_open("s", "threads=0", world.env);
    test_put(db, "a", "1");
    assert_public(tamiz_sync(db), TAMIZ_OK);
    build(world.env, "t", "b=table c=table");
    fault.call = TAMIZ_SIM_FSYNC;
    fault.name = "*.log";
    assert_true(tamiz_env_sim_fault(world.sim, &fault));
    assert_public(take_in(db, "t", NULL), TAMIZ_IO_ERROR);
    test_put(db, "b", "2");
    tamiz_env_sim *copy = tamiz_env_sim_copy(world.sim);
    tamiz_env_sim_crash(copy, TAMIZ_SIM_KEEP, NULL, 0);
    tamiz *after = test_open("s", "threads=0", tamiz_env_sim_env(copy));
    assert_string_equal(test_scan(after, NULL), "a=1 b=2");
    test_close(after);
    tamiz_env_sim_free(copy);
    test_close(db);
    tamiz_env_sim_free(world.sim);
}

/* It is on the disk, its caller is told that it failed, and the manifest takes nothing more: behind
 * a write that was acknowledged it would come back. */
static void one_that_may_have_happened_is_taken_back_before_the_next_write(void **state)
{
    (void)state;
    struct world w = world_new(16);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    tamiz *db = test_open("s", "threads=0 sync=always", w.env);
    test_put(db, "a", "1");
    build(w.env, "t", "b=table c=table");
    fault.call = TAMIZ_SIM_CHANGE;
    fault.name = "MANIFEST-*";
    fault.sticky = fault.after = true;
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    assert_public(take_in(db, "t", NULL), TAMIZ_IO_ERROR);
    assert_string_equal(test_scan(db, NULL), "a=1");
    assert_public(tamiz_put(db, "b", 1, "2", 1, NULL), TAMIZ_IO_ERROR);
    tamiz_env_sim_clear(w.sim);
    test_put(db, "b", "3");
    tamiz_env_sim_crash(w.sim, TAMIZ_SIM_KEEP, NULL, 0);
    tamiz *after = test_open("s", "threads=0", w.env);
    assert_string_equal(test_scan(after, NULL), "a=1 b=3");
    test_close(after);
    (void)tamiz_close(db);
    tamiz_env_sim_free(w.sim);
}

static void writes_before_it_are_durable_with_it(void **state)
{
    (void)state;
    struct world w = world_new(12);
    build(w.env, "t1", "a=in");
    tamiz *db = test_open("s", "threads=0", w.env);
    test_put(db, "x", "unsynced");
    assert_public(take_in(db, "t1", NULL), TAMIZ_OK);
    tamiz_env_sim_stop_at(w.sim, tamiz_env_sim_calls(w.sim, TAMIZ_SIM_ANY) + 1);
    (void)tamiz_close(db);
    tamiz_env_sim_crash(w.sim, TAMIZ_SIM_DROP, NULL, 0);
    db = test_open("s", "threads=0 create_if_missing=false", w.env);
    assert_string_equal(test_scan(db, NULL), "a=in x=unsynced");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* ---- under load ---- */

struct load {
    tamiz *db;
    _Atomic bool stop;
    _Atomic uint64_t written;
};

/* Every key of a set is written in one batch or by one ingestion, so that all have one value. */
enum { SET = 20 };

static void write_sets(void *ctx)
{
    struct load *l = ctx;
    tamiz_batch *b = tamiz_batch_new();
    for (uint64_t i = 0; !atomic_load(&l->stop); i++) {
        char key[16], value[32];
        tamiz_batch_clear(b);
        (void)snprintf(value, sizeof value, "w%llu", (unsigned long long)i);
        for (int k = 0; k < SET; k++) {
            (void)snprintf(key, sizeof key, "k%02d", k);
            (void)tamiz_batch_put(b, NULL, key, strlen(key), value, strlen(value));
        }
        if (tamiz_write(l->db, b, NULL) != TAMIZ_OK)
            break;
        atomic_store(&l->written, i + 1);
    }
    tamiz_batch_free(b);
}

static void expect_one_set(tamiz *db)
{
    tamiz_iter *it;
    char first[32] = "";
    size_t first_size = 0, n = 0;
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it), n++) {
        size_t size;
        const char *value = tamiz_iter_value(it, &size);
        if (n == 0)
            memcpy(first, value, first_size = size);
        assert_int_equal(size, first_size);
        assert_memory_equal(value, first, size);
    }
    assert_public(tamiz_iter_status(it), TAMIZ_OK);
    assert_true(n == 0 || n == SET);
    tamiz_iter_close(it);
}

static void beside_writers_and_merges_everyone_sees_whole_sets(void **state)
{
    (void)state;
    char directory[300], path[340], entries[512];
    test_directory_make(directory, sizeof directory);
    (void)snprintf(path, sizeof path, "%s/s", directory);
    struct load l = {.db = test_open(path, "memtable=64KiB table=64KiB threads=2", NULL)};
    struct test_op t;
    struct thread thread;
    test_op_init(&t);
    assert_status(&t.op, thread_start(&t.op, &thread, "writer", write_sets, &l), TAMIZ_OK);
    for (int i = 0; i < 12; i++) {
        entries[0] = 0;
        for (int k = 0; k < SET; k++) {
            char one[48];
            (void)snprintf(one, sizeof one, "k%02d=i%d ", k, i);
            (void)strcat(entries, one);
        }
        (void)snprintf(path, sizeof path, "%s/t%d", directory, i);
        build(NULL, path, entries);
        const uint64_t written = atomic_load(&l.written);
        assert_public(take_in(l.db, path, NULL), TAMIZ_OK);
        expect_one_set(l.db);
        while (atomic_load(&l.written) < written + 200)
            thread_yield();
        expect_one_set(l.db);
    }
    atomic_store(&l.stop, true);
    thread_join(&thread);
    expect_one_set(l.db);
    verify_whole(l.db);
    test_close(l.db);
    test_directory_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_writer_wants_rising_keys_and_tells_what_it_wrote),
        cmocka_unit_test(what_is_ingested_is_newer_than_all_before_and_older_than_all_after),
        cmocka_unit_test(iterators_at_an_earlier_moment_pass_over_it),
        cmocka_unit_test(of_one_key_in_two_tables_the_later_one_wins),
        cmocka_unit_test(new_writes_win_over_it_after_reopening),
        cmocka_unit_test(it_goes_to_the_deepest_level_that_fits),
        cmocka_unit_test(placing_never_breaks_newer_above_older),
        cmocka_unit_test(what_is_no_such_table_is_refused_and_nothing_changes),
        cmocka_unit_test(it_is_copied_where_it_cannot_be_linked),
        cmocka_unit_test(a_crash_at_any_call_leaves_all_or_nothing),
        cmocka_unit_test(a_call_that_fails_leaves_all_or_nothing_and_writing_goes_on),
        cmocka_unit_test(what_a_failed_log_says_of_an_ingestion_does_not_count),
        cmocka_unit_test(one_that_may_have_happened_is_taken_back_before_the_next_write),
        cmocka_unit_test(writes_before_it_are_durable_with_it),
        cmocka_unit_test(beside_writers_and_merges_everyone_sees_whole_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
