/* SPDX-License-Identifier: MIT
 *
 * Reading beside a writer: what was there stays readable whatever the writer does, refreshing moves
 * on to another whole moment, and nothing is locked, written or removed.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/kit.h"

static void a_reader_keeps_what_it_saw_and_refreshing_moves_on(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("s", "threads=0", w.env);
    put_some(db, 0, 50, "table");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    put_some(db, 50, 100, "log");
    tamiz *reader = test_open("s", "read_only=true", w.env);
    /* Everything the reader has goes away, and it has not read a table yet. */
    put_some(db, 0, 120, "new");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    test_delete(db, key_of(0));
    expect_some(reader, 0, 50, "table");
    expect_some(reader, 50, 100, "log");
    test_expect(reader, key_of(100), NULL, NULL);
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    test_expect(reader, key_of(0), NULL, NULL);
    expect_some(reader, 1, 120, "new");
    put_some(db, 120, 130, "newer");
    test_expect(reader, key_of(120), NULL, NULL);
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    expect_some(reader, 120, 130, "newer");
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_verify(reader, &report), TAMIZ_OK);
    assert_public(tamiz_refresh(db), TAMIZ_OK); /* a writer is always up to date */
    test_close(reader);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void a_reader_changes_nothing_and_takes_no_lock(void **state)
{
    (void)state;
    struct world w = world_new(2);
    tamiz *db = test_open("s", "threads=0", w.env);
    put_some(db, 0, 50, "v");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    put_some(db, 50, 60, "v");
    const uint64_t changes = tamiz_env_sim_calls(w.sim, TAMIZ_SIM_CHANGE);
    tamiz *reader = test_open("s", "read_only=true threads=2", w.env);
    expect_some(reader, 0, 60, "v");
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    assert_int_equal(tamiz_put(reader, "a", 1, "b", 1, NULL), TAMIZ_READ_ONLY);
    assert_int_equal(tamiz_flush(reader), TAMIZ_READ_ONLY);
    bool more;
    assert_public(tamiz_step(reader, 1000, &more), TAMIZ_OK);
    test_close(reader);
    assert_int_equal(tamiz_env_sim_calls(w.sim, TAMIZ_SIM_CHANGE), changes);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* The writer's files are the writer's to remove, whatever the reader still had open. */
static void closing_a_reader_removes_no_file_of_the_writer(void **state)
{
    (void)state;
    struct world w = world_new(3);
    tamiz *db = test_open("s", "threads=0", w.env);
    put_some(db, 0, 100, "a");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    tamiz *reader = test_open("s", "read_only=true", w.env);
    put_some(db, 100, 200, "b");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    const size_t tables = test_count_files(w.env, "s", ".sst");
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    test_close(reader);
    assert_int_equal(test_count_files(w.env, "s", ".sst"), tables);
    expect_some(db, 0, 100, "a");
    expect_some(db, 100, 200, "b");
    test_close(db);
    db = test_open("s", "threads=0 create_if_missing=false", w.env);
    expect_some(db, 0, 100, "a");
    expect_some(db, 100, 200, "b");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void iterators_go_on_over_a_refresh_and_snapshots_hold_it_back(void **state)
{
    (void)state;
    struct world w = world_new(4);
    tamiz *db = test_open("s", "threads=0", w.env);
    put_some(db, 0, 20, "old");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    tamiz *reader = test_open("s", "read_only=true", w.env);
    tamiz_iter *it;
    tamiz_snapshot *snapshot;
    assert_public(tamiz_iter_open(reader, NULL, &it), TAMIZ_OK);
    assert_public(tamiz_snapshot_take(reader, &snapshot), TAMIZ_OK);
    put_some(db, 0, 30, "new");
    assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_OK);
    assert_int_equal(tamiz_refresh(reader), TAMIZ_BUSY);
    test_expect(reader, key_of(5), "old", snapshot);
    tamiz_snapshot_release(snapshot);
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    test_expect(reader, key_of(5), "new", NULL);
    int n = 0;
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it), n++) {
        size_t size;
        assert_memory_equal(tamiz_iter_value(it, &size), "old", 3);
    }
    assert_int_equal(n, 20);
    tamiz_iter_close(it);
    test_close(reader);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void more_tables_than_may_be_open_are_read_all_the_same(void **state)
{
    (void)state;
    struct world w = world_new(5);
    tamiz *db = test_open("s", "threads=0 compaction=off", w.env);
    for (int i = 0; i < 40; i++) {
        put_some(db, i, i + 1, "v");
        assert_public(tamiz_flush(db), TAMIZ_OK);
    }
    const uint64_t before = tamiz_env_sim_files_open(w.sim);
    tamiz *reader = test_open("s", "read_only=true max_open_files=24", w.env);
    expect_some(reader, 0, 40, "v");
    assert_true(tamiz_env_sim_files_open(w.sim) - before <= 24);
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    expect_some(reader, 0, 40, "v");
    test_close(reader);
    assert_int_equal(tamiz_env_sim_files_open(w.sim), before);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void what_is_damaged_is_told_and_the_old_picture_stays(void **state)
{
    (void)state;
    struct world w = world_new(6);
    tamiz *db = test_open("s", "threads=0", w.env);
    put_some(db, 0, 20, "v");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    tamiz *reader = test_open("s", "read_only=true", w.env);
    put_some(db, 20, 30, "v");
    test_close(db);
    assert_int_equal(w.env->ops->rename(w.env->ctx, "s/CURRENT", "s/gone"), 0);
    assert_int_equal(tamiz_refresh(reader), TAMIZ_CORRUPTION);
    expect_some(reader, 0, 20, "v");
    test_expect(reader, key_of(20), NULL, NULL);
    assert_int_equal(w.env->ops->rename(w.env->ctx, "s/gone", "s/CURRENT"), 0);
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    expect_some(reader, 20, 30, "v");
    test_close(reader);
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = w.env;
    o.read_only = true;
    assert_int_equal(tamiz_open("nowhere", &o, &reader), TAMIZ_NOT_FOUND);
    tamiz_env_sim_free(w.sim);
}

/* ---- two processes ---- */

enum { KEYS = 2000, REFRESHES = 60 };

/* Write number i goes to key i % KEYS, so that of any moment one can tell whether it is one. */
struct shared {
    _Atomic uint64_t acknowledged;
    _Atomic bool ready, stop;
};

/* Until told to stop, or the test that would tell it is gone. */
static void write_on(const char *path, struct shared *shared, pid_t test)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *db;
    if (tamiz_options_set(&o, "memtable=64KiB table=32KiB size_ratio=2 level0_runs=2") ||
        tamiz_open(path, &o, &db))
        _exit(1);
    for (uint64_t i = 0; !atomic_load(&shared->stop) && getppid() == test; i++) {
        const char *key = key_of((int)(i % KEYS));
        if (tamiz_put(db, key, strlen(key), &i, sizeof i, NULL))
            _exit(2);
        atomic_store(&shared->acknowledged, i + 1);
        if (i >= 2 * KEYS)
            atomic_store(&shared->ready, true);
    }
    _exit(tamiz_close(db) ? 3 : 0);
}

/* All keys are there, and their values are the last KEYS numbers before some moment; which one. */
static uint64_t moment_of(tamiz *reader)
{
    tamiz_iter *it;
    uint64_t least = UINT64_MAX, most = 0, n = 0;
    assert_public(tamiz_iter_open(reader, NULL, &it), TAMIZ_OK);
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it), n++) {
        size_t size;
        uint64_t value;
        const void *at = tamiz_iter_value(it, &size);
        assert_int_equal(size, sizeof value);
        memcpy(&value, at, sizeof value);
        assert_int_equal(value % KEYS, n);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    assert_public(tamiz_iter_status(it), TAMIZ_OK);
    tamiz_iter_close(it);
    assert_int_equal(n, KEYS);
    assert_int_equal(most - least, KEYS - 1);
    return most + 1;
}

static void beside_a_writing_process_each_refresh_is_a_later_moment(void **state)
{
    (void)state;
    char directory[300], path[340];
    test_directory_make(directory, sizeof directory);
    (void)snprintf(path, sizeof path, "%s/s", directory);
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    const pid_t test = getpid(), writer = fork();
    assert_true(writer >= 0);
    if (writer == 0)
        write_on(path, shared, test);
    int status = 0;
    while (!atomic_load(&shared->ready) && waitpid(writer, &status, WNOHANG) == 0)
        (void)usleep(1000);
    tamiz *reader = test_open(path, "read_only=true cache=64KiB", NULL);
    uint64_t before = moment_of(reader);
    for (int i = 0; i < REFRESHES; i++) {
        assert_int_equal(moment_of(reader), before); /* also while the writer merges */
        const uint64_t acknowledged = atomic_load(&shared->acknowledged);
        assert_public(tamiz_refresh(reader), TAMIZ_OK);
        const uint64_t now = moment_of(reader);
        assert_true(now >= before && now >= acknowledged);
        before = now;
    }
    test_close(reader);
    for (int i = 0; i < 20; i++) { /* opening is the same */
        const uint64_t acknowledged = atomic_load(&shared->acknowledged);
        reader = test_open(path, "read_only=true", NULL);
        assert_true(moment_of(reader) >= acknowledged);
        test_close(reader);
    }
    atomic_store(&shared->stop, true);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    tamiz *db = test_open(path, "threads=0 create_if_missing=false", NULL);
    assert_int_equal(moment_of(db), atomic_load(&shared->acknowledged));
    test_close(db);
    (void)munmap(shared, sizeof *shared);
    test_directory_remove(directory);
}

/* ---- a writer that goes on while a picture is taken ---- */

/* The reader's env: before it reads a log the writer does something. By then the reader
 * has the manifest. */
static struct meanwhile {
    tamiz_env_ops ops;
    tamiz_env env;
    const tamiz_env *below;
    void *log; /* as opened last */
    void (*act)(tamiz *db);
    tamiz *db;
} meanwhile;

static int open_below(void *ctx, const char *path, int flags, void **file)
{
    const int error = meanwhile.below->ops->open(ctx, path, flags, file);
    const size_t n = strlen(path);
    if (error == 0 && n > 4 && strcmp(path + n - 4, ".log") == 0)
        meanwhile.log = *file;
    return error;
}

static int size_after_the_act(void *ctx, void *file, tamiz_file_info *info)
{
    if (file == meanwhile.log && meanwhile.act) {
        void (*act)(tamiz * db) = meanwhile.act;
        meanwhile.act = NULL;
        act(meanwhile.db);
    }
    return meanwhile.below->ops->file_info(ctx, file, info);
}

static void ingest_and_write(tamiz *db)
{
    const char *const paths[] = {"ingested"};
    assert_public(tamiz_ingest(db, paths, 1), TAMIZ_OK);
    test_put(db, "z after it", "1");
}

static void drop_and_write(tamiz *db)
{
    assert_public(tamiz_keyspace_drop(db, "side"), TAMIZ_OK);
    test_put(db, "z after it", "1");
}

static void flush_and_write(tamiz *db)
{
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_put(db, "z after it", "1");
}

static tamiz *open_meanwhile(struct world w, tamiz *db, void (*act)(tamiz *db))
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *reader;
    meanwhile = (struct meanwhile){.ops = *w.env->ops, .below = w.env, .act = act, .db = db};
    meanwhile.ops.open = open_below;
    meanwhile.ops.file_info = size_after_the_act;
    meanwhile.env = (tamiz_env){&meanwhile.ops, w.env->ctx};
    o.read_only = true;
    o.env = &meanwhile.env;
    assert_public(tamiz_open("s", &o, &reader), TAMIZ_OK);
    assert_null(meanwhile.act);
    return reader;
}

/* It was taken between two edits of the manifest, and the log had what came after both. */
static void what_is_seen_is_one_moment_whatever_comes_in_between(void **state)
{
    (void)state;
    void (*const acts[])(tamiz * db) = {ingest_and_write, drop_and_write, flush_and_write};
    for (size_t i = 0; i < 3; i++) {
        struct world w = world_new(20 + i);
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        tamiz_table_writer *table;
        tamiz *side, *again;
        o.env = w.env;
        assert_public(tamiz_table_writer_open("ingested", &o, &table), TAMIZ_OK);
        assert_public(tamiz_table_writer_put(table, "x", 1, "1", 1), TAMIZ_OK);
        assert_public(tamiz_table_writer_finish(table, NULL, NULL), TAMIZ_OK);
        tamiz *db = test_open("s", "threads=0", w.env);
        assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
        test_put(side, "moved away", "1");
        test_put(db, "a", "1");
        tamiz *reader = open_meanwhile(w, db, acts[i]);
        const bool after = tamiz_exists(reader, "z after it", 10, NULL) == TAMIZ_OK;
        const tamiz_status there = tamiz_keyspace_open(reader, "side", NULL, &again);
        if (acts[i] == ingest_and_write)
            assert_int_equal(tamiz_exists(reader, "x", 1, NULL) == TAMIZ_OK, after);
        else if (acts[i] == drop_and_write)
            assert_int_equal(there == TAMIZ_NOT_FOUND, after);
        else
            test_expect(reader, "a", "1", NULL);
        test_close(reader);
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_keeps_what_it_saw_and_refreshing_moves_on),
        cmocka_unit_test(a_reader_changes_nothing_and_takes_no_lock),
        cmocka_unit_test(closing_a_reader_removes_no_file_of_the_writer),
        cmocka_unit_test(iterators_go_on_over_a_refresh_and_snapshots_hold_it_back),
        cmocka_unit_test(more_tables_than_may_be_open_are_read_all_the_same),
        cmocka_unit_test(what_is_damaged_is_told_and_the_old_picture_stays),
        cmocka_unit_test(what_is_seen_is_one_moment_whatever_comes_in_between),
        cmocka_unit_test(beside_a_writing_process_each_refresh_is_a_later_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
