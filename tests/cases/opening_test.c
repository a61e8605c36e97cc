/* SPDX-License-Identifier: MIT
 *
 * R14, R24, R25, R26, R28, R30, R31, R32, R33, R35: opening and closing, locks, files that come and
 * go, clocks, paths, other options.
 *
 * R24's shared cache does not exist: every open store has its own, so that nothing cached can
 * outlive it; file numbers are never used twice (what is opened begins above every file there), and
 * tables carry a random id. What remains of it is tested here.
 *
 * R31: nothing here is removed by age: no time to live, no kept logs. What is left is that no clock
 * makes a wait endless or a retry never come.
 *
 * R35: there are no comparators (keys are ordered by memcmp), so no other one can be asked for.
 */
#define _XOPEN_SOURCE 700
#include "cases/kit.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- R14 */

static tamiz_status open_real(const char *path, tamiz **store)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.threads = 0;
    return tamiz_open(path, &o, store);
}

/* What another process gets from opening `path`: its status, as an exit code. */
static int in_child(const char *path, tamiz *inherited)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tamiz *other = NULL;
        int code = 0;
        if (inherited) {
            code = tamiz_put(inherited, "b", 1, "2", 1, NULL) == TAMIZ_INVALID_ARGUMENT ? 0 : 100;
            if (tamiz_close(inherited) != TAMIZ_INVALID_ARGUMENT)
                code = 101;
        } else {
            code = -(int)open_real(path, &other);
            if (other && tamiz_close(other) != TAMIZ_OK)
                code = 102;
        }
        _exit(code);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

/* R14: the same directory opened twice in one process; the lock lost over fork (LevelDB 126, 455).
 */
static void R14_one_directory_is_open_once_by_any_name(void **state)
{
    (void)state;
    char base[64], path[80], alias[200], here[4096], absolute[4300];
    tamiz *one = NULL, *two = NULL;
    test_directory_make(base, sizeof base);
    (void)snprintf(path, sizeof path, "%s/db", base);
    assert_non_null(getcwd(here, sizeof here));
    (void)snprintf(absolute, sizeof absolute, "%s/%s", here, path);
    OK(open_real(path, &one));
    assert_int_equal(open_real(path, &two), TAMIZ_BUSY);
    (void)snprintf(alias, sizeof alias, "%s/", path);
    assert_int_equal(open_real(alias, &two), TAMIZ_BUSY);
    (void)snprintf(alias, sizeof alias, "%s/../db", path);
    assert_int_equal(open_real(alias, &two), TAMIZ_BUSY);
    assert_int_equal(open_real(absolute, &two), TAMIZ_BUSY);
    (void)snprintf(alias, sizeof alias, "%s/link", base);
    assert_int_equal(symlink("db", alias), 0);
    assert_int_equal(open_real(alias, &two), TAMIZ_BUSY);
    assert_int_equal(tamiz_destroy(path), TAMIZ_BUSY);
    /* The refused ones have not let the lock go. */
    assert_int_equal(in_child(path, NULL), TAMIZ_BUSY);
    OK(tamiz_put(one, "a", 1, "1", 1, NULL));
    /* A child may not use what it inherited, and its end changes nothing. */
    assert_int_equal(in_child(NULL, one), 0);
    OK(tamiz_put(one, "c", 1, "3", 1, NULL));
    assert_int_equal(in_child(path, NULL), TAMIZ_BUSY);
    OK(tamiz_close(one));
    assert_int_equal(in_child(path, NULL), TAMIZ_OK);
    OK(open_real(path, &one));
    test_expect(one, "a", "1", NULL);
    test_expect(one, "b", NULL, NULL);
    test_expect(one, "c", "3", NULL);
    OK(tamiz_close(one));
    test_directory_remove(base);
}

/* A grandchild holds the handle and the parent ends: the lock is free or held, never doubled. */
static void R14_a_handle_that_outlives_its_process_refuses_all_calls(void **state)
{
    (void)state;
    char path[64];
    int started[2], finish[2];
    char byte = 0;
    test_directory_make(path, sizeof path);
    assert_int_equal(pipe(started), 0);
    assert_int_equal(pipe(finish), 0);
    const pid_t parent = fork();
    if (parent == 0) {
        tamiz *store = NULL;
        if (open_real(path, &store) != TAMIZ_OK || tamiz_put(store, "a", 1, "1", 1, NULL))
            _exit(1);
        if (fork() == 0) {
            const bool refused = tamiz_put(store, "x", 1, "y", 1, NULL) == TAMIZ_INVALID_ARGUMENT;
            byte = refused ? 'r' : 'w';
            (void)!write(started[1], &byte, 1);
            close(finish[1]);
            (void)!read(finish[0], &byte, 1);
            _exit(0);
        }
        _exit(0);
    }
    int status = 1;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(read(started[0], &byte, 1), 1);
    assert_int_equal(byte, 'r');
    tamiz *store = NULL;
    const tamiz_status st = open_real(path, &store);
    assert_true(st == TAMIZ_OK || st == TAMIZ_BUSY);
    if (store) {
        test_expect(store, "a", "1", NULL);
        OK(tamiz_close(store));
    }
    close(finish[0]), close(finish[1]), close(started[0]), close(started[1]);
    test_directory_remove(path);
}

/* ---- R24, R25, R26 */

/* R24: cache entries outlive the file number they belong to (RocksDB issue 14209). */
static void R24_a_new_store_in_an_old_place_shows_its_own_values(void **state)
{
    (void)state;
    open_with("threads=0");
    put("k", "old");
    flush();
    expect("k", "old");
    tamiz_env_sim *older = remember();
    put("k", "older");
    compact();
    expect("k", "older");
    restore(older); /* an older copy of the directory; numbers are handed out again */
    open_with("threads=0");
    put("k", "new");
    flush();
    expect("k", "new");
    crash(TAMIZ_SIM_DROP, NULL, 0);
    for (uint64_t nth = 1; nth < 12; nth++) { /* an open that fails after it has read */
        fault(TAMIZ_SIM_READ, NULL, nth, EIO, false);
        if (try_open("threads=0") == TAMIZ_OK)
            close_it();
        tamiz_env_sim_clear(sim);
        open_with("threads=0");
        put("k", v((int)nth, 8));
        compact();
        expect("k", v((int)nth, 8));
        close_it();
    }
    tamiz_env_sim_free(older);
}

static void append_listing(void *ctx, const char *name)
{
    struct buf *out = ctx;
    char path[100];
    tamiz_file_info info;
    (void)snprintf(path, sizeof path, "store/%s", name);
    assert_int_equal(env->ops->path_info(env->ctx, path, &info), 0);
    buf_printf(out, "%s %llu %llu\n", name, (unsigned long long)info.size,
               (unsigned long long)info.inode);
}

static struct buf listing(void)
{
    struct buf out = buf_init(&alloc_libc);
    assert_int_equal(env->ops->list(env->ctx, "store", append_listing, &out), 0);
    return out;
}

/* R25: closing a read-only handle deletes the writer's files (RocksDB pull 14881). */
static void R25_a_reader_changes_nothing(void **state)
{
    (void)state;
    tamiz *reader = NULL;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = env;
    o.read_only = true;
    open_with("threads=0 compaction=off");
    for (int i = 0; i < 100; i++)
        put(k(i), "1");
    flush();
    struct buf before = listing();
    const uint64_t changes = tamiz_env_sim_calls(sim, TAMIZ_SIM_CHANGE);
    OK(tamiz_open("store", &o, &reader));
    for (int i = 0; i < 100; i++)
        test_expect(reader, k(i), "1", NULL);
    assert_int_equal(tamiz_put(reader, "x", 1, "y", 1, NULL), TAMIZ_READ_ONLY);
    assert_int_equal(tamiz_flush(reader), TAMIZ_READ_ONLY);
    assert_int_equal(tamiz_compact(reader, NULL, 0, NULL, 0), TAMIZ_READ_ONLY);
    assert_int_equal(tamiz_env_sim_calls(sim, TAMIZ_SIM_CHANGE), changes);
    struct buf after = listing();
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, after.size);
    buf_free(&before);
    for (int i = 100; i < 200; i++)
        put(k(i), "1");
    flush();
    compact();
    buf_free(&after);
    after = listing();
    OK(tamiz_close(reader));
    before = listing();
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, after.size);
    buf_free(&before);
    buf_free(&after);
    reopen("threads=0");
    assert_int_equal(scan_count(NULL), 200);
}

/* And an iterator keeps the files it needs, no longer than it needs them. */
static void R25_files_go_when_their_last_reader_has_gone(void **state)
{
    (void)state;
    open_with("threads=0 compaction=off block=512");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++)
            put(k(i), v(round, 20));
        flush();
    }
    tamiz_iter *it = iter();
    for (int i = 0; i < 100; i++)
        put(k(i), "new");
    compact();
    bool more;
    OK(tamiz_step(db, 1000, &more));
    assert_true(count_files(FILE_TABLE) > 1);
    int seen = 0;
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it), seen++)
        assert_memory_equal(tamiz_iter_value(it, NULL), v(2, 20), 20);
    OK(tamiz_iter_status(it));
    assert_int_equal(seen, 100);
    tamiz_iter_close(it);
    for (int i = 0; i < 3; i++)
        OK(tamiz_step(db, 1000, &more));
    assert_int_equal(count_files(FILE_TABLE), 1);
}

static void expect_few_files(void)
{
    assert_true(count_files(FILE_LOG) <= 3);
    assert_true(count_files(FILE_MANIFEST) <= 2);
    assert_true(count_files(FILE_TABLE) <= 4);
}

/* R26: a crash loop piles up log files (RocksDB pull 11409). */
static void R26_neither_crashes_nor_openings_let_files_grow(void **state)
{
    (void)state;
    const int rounds = test_long() ? 300 : 60;
    open_with("threads=0");
    put_synced("a", "1");
    for (int i = 0; i < rounds; i++) {
        crash(TAMIZ_SIM_KEEP, NULL, 0);
        open_with("threads=0");
        expect_few_files();
    }
    for (int i = 0; i < rounds; i++) {
        reopen("threads=0");
        expect_few_files();
    }
    for (int i = 0; i < rounds; i++) {
        put("a", v(i, 8));
        crash(TAMIZ_SIM_DROP, NULL, 0);
        open_with("threads=0");
        expect_few_files();
    }
    close_it();
    assert_true(tamiz_env_sim_disk_used(sim) < 64 << 10);
}

/* Also: the manifest of one long session stays bounded (LevelDB issue 299). */
static void R26_a_long_session_has_a_small_manifest(void **state)
{
    (void)state;
    const int rounds = test_long() ? 20000 : 1500;
    tamiz_file_info info;
    uint64_t most = 0;
    open_with("threads=0");
    for (int i = 0; i < rounds; i++) {
        put("x", v(i, 8));
        flush();
        if (i % 100 == 0) {
            assert_int_equal(env->ops->path_info(env->ctx, path_of(FILE_MANIFEST, false), &info),
                             0);
            most = info.size > most ? info.size : most;
        }
    }
    print_message("%d flushes: manifest of at most %llu bytes\n", rounds, (unsigned long long)most);
    assert_true(most <= 1200 << 10);
    assert_true(count_files(FILE_TABLE) <= 40); /* level0_runs, and what those became */
    reopen("threads=0");
    expect("x", v(rounds - 1, 8));
}

/* ---- R28 */

/* R28: an iterator used or freed after the store is closed (LevelDB issue 1292). */
static void R28_closing_with_open_handles_is_refused_and_closes_nothing(void **state)
{
    (void)state;
    open_with("threads=0");
    put("a", "1"), put("z", "2");
    tamiz_iter *it = iter();
    tamiz_snapshot *s = snap();
    tamiz_batch *b = tamiz_batch_new();
    OK(tamiz_batch_put(b, db, "m", 1, "1", 1));
    assert_int_equal(tamiz_close(db), TAMIZ_BUSY);
    tamiz_iter_seek_first(it);
    assert_string_equal(at(it), "a/1");
    expect_at("z", "2", s);
    tamiz_iter_close(it);
    assert_int_equal(tamiz_close(db), TAMIZ_BUSY);
    tamiz_snapshot_release(s);
    put("q", "3");
    close_it();
    OK(tamiz_close(NULL));
    tamiz_iter_close(NULL);
    tamiz_snapshot_release(NULL);
    tamiz_batch_free(b); /* a batch needs no store */
    open_with("threads=0");
    assert_string_equal(test_scan(db, NULL), "a=1 q=3 z=2");
}

/* ---- R31 */

/* R31: the clock steps back (RocksDB pull 14016). */
static void R31_no_step_of_the_clock_hurts(void **state)
{
    (void)state;
    static const int64_t steps[] = {-86400000000, INT64_C(1) << 32, -(INT64_C(1) << 60),
                                    INT64_C(1) << 62, -1};
    open_with("threads=0 sync=interval:10");
    put("a", "1");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        tamiz_env_sim_clock_step(sim, steps[i]);
        put("b", k((int)i));
        flush();
        compact();
        expect("a", "1");
        fault(TAMIZ_SIM_CREATE, "*.sst", 1, EIO, true);
        put("c", k((int)i));
        (void)tamiz_flush(db);
        tamiz_env_sim_clear(sim);
        tamiz_env_sim_clock_step(sim, -steps[i] / 2);
        flush();
        crash(TAMIZ_SIM_KEEP, NULL, 0);
        open_with("threads=0 sync=interval:10");
        expect("a", "1");
        expect("c", k((int)i));
    }
}

/* ---- R32, R33 */

/* R32: direct I/O asked for on a file system without it (RocksDB pull 3539). Here the machine
 * refuses; fs_posix's own fallback is told by an event. */
static void R32_direct_io_works_or_falls_back_on_any_file_system(void **state)
{
    (void)state;
    static const char *const places[] = {".", "/dev/shm", "/var/tmp"};
    for (int p = 0; p < 3; p++) {
        char path[100];
        tamiz_options o = TAMIZ_OPTIONS_INIT;
        tamiz *store = NULL;
        (void)snprintf(path, sizeof path, "%s/tamiz-case-XXXXXX", places[p]);
        if (access(places[p], W_OK) != 0 || !mkdtemp(path))
            continue;
        OK(tamiz_options_set(&o, "threads=0 direct_io=true memtable=64KiB block=1KiB"));
        for (int round = 0; round < 2; round++) {
            OK(tamiz_open(path, &o, &store));
            for (int i = 0; i < 300; i++)
                OK(tamiz_put(store, k(i), 9, v(i, 200), 200, NULL));
            OK(tamiz_flush(store));
            for (int i = 0; i < 300; i++)
                test_expect(store, k(i), v(i, 200), NULL);
            OK(tamiz_compact(store, NULL, 0, NULL, 0));
            OK(tamiz_close(store));
        }
        OK(tamiz_open(path, &o, &store));
        for (int i = 0; i < 300; i++)
            test_expect(store, k(i), v(i, 200), NULL);
        OK(tamiz_close(store));
        OK(tamiz_destroy(path));
    }
}

/* File sizes around the sector and the block of a device: reads are exact at the end. */
static void R32_a_table_of_any_size_is_read_to_its_end(void **state)
{
    (void)state;
    char path[64];
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *store = NULL;
    test_directory_make(path, sizeof path);
    OK(tamiz_options_set(&o, "threads=0 direct_io=true compaction=off filter=none cache=0"));
    OK(tamiz_open(path, &o, &store));
    for (int n = 3400; n < 4200; n += test_long() ? 1 : 23) {
        OK(tamiz_put(store, "k", 1, v(n, n), (size_t)n, NULL));
        OK(tamiz_flush(store));
        test_expect(store, "k", v(n, n), NULL);
    }
    OK(tamiz_close(store));
    test_directory_remove(path);
}

/* R33: path forms that break OPEN (Pebble; leveldb-rs issue 50). */
static void R33_any_path_that_the_system_takes_works(void **state)
{
    (void)state;
    static const char *const forms[] = {"db",    "./db",  "db/",  "a/../db",  "a//db",  "My DB",
                                        "t\tab", "-dash", "日本", "\xff\xfe", "db.sst", "..db"};
    char base[64], here[4096], longest[300];
    test_directory_make(base, sizeof base);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(base), 0);
    assert_int_equal(mkdir("a", 0700), 0);
    memset(longest, 'n', 256);
    longest[255] = 0;
    for (size_t i = 0; i <= sizeof forms / sizeof *forms; i++) {
        const char *path = i < sizeof forms / sizeof *forms ? forms[i] : longest;
        tamiz *store = NULL;
        OK(open_real(path, &store));
        OK(tamiz_put(store, "a", 1, "1", 1, &synced));
        OK(tamiz_close(store));
        OK(open_real(path, &store));
        test_expect(store, "a", "1", NULL);
        OK(tamiz_close(store));
        OK(tamiz_destroy(path));
        assert_int_equal(tamiz_destroy(path), TAMIZ_NOT_FOUND);
    }
    tamiz *store = NULL;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    longest[255] = 'n', longest[256] = 0;
    assert_int_equal(open_real(longest, &store), TAMIZ_IO_ERROR);
    assert_int_equal(open_real("missing/parent/db", &store), TAMIZ_IO_ERROR);
    assert_int_equal(open_real("", &store), TAMIZ_INVALID_ARGUMENT);
    o.create_if_missing = false;
    assert_int_equal(tamiz_open("nothing", &o, &store), TAMIZ_NOT_FOUND);
    assert_int_equal(access("nothing", F_OK), -1);
    FILE *f = fopen("plain", "w");
    assert_non_null(f);
    (void)fclose(f);
    assert_true(open_real("plain", &store) < 0);
    assert_int_equal(symlink("a", "link"), 0);
    OK(open_real("link", &store));
    OK(tamiz_close(store));
    assert_int_equal(access("a/CURRENT", F_OK), 0);
    /* The directory changes while the store is open: its files stay where they were. */
    OK(open_real("db", &store));
    assert_int_equal(chdir("a"), 0);
    OK(tamiz_put(store, "a", 1, "1", 1, NULL));
    OK(tamiz_flush(store));
    OK(tamiz_compact(store, NULL, 0, NULL, 0));
    OK(tamiz_close(store));
    assert_int_equal(chdir(".."), 0);
    OK(open_real("db", &store));
    test_expect(store, "a", "1", NULL);
    OK(tamiz_close(store));
    assert_int_equal(chdir(here), 0);
    test_directory_remove(base);
}

/* Also: the name of a store's directory survives a power cut right behind its first sync. */
static void R33_the_directory_itself_survives(void **state)
{
    (void)state;
    static const char *const forms[] = {"store", "./store", "store/", "/store"};
    for (int i = 0; i < 4; i++) {
        start_over();
        db = test_open(forms[i], "threads=0", env);
        put_synced("a", "1");
        crash(TAMIZ_SIM_DROP, NULL, 0);
        db = test_open(forms[i], "threads=0", env);
        expect("a", "1");
    }
}

/* ---- R35 */

static const char *const option_sets[] = {
    "block=256 table=4KiB filter=none",
    "block=16KiB table=1MiB filter=bloom:8 compression=zstd:1",
    "filter=ribbon:9 size_ratio=2 compaction=tiered level0_runs=1",
    "filter=fuse8 cache=0 verify=false compaction=lazy",
    "filter=xor16 compression=none,zstd:1 direct_io=true",
    "filter=split:12 memtable=16KiB filter_memory=monkey",
    "filter=cuckoo block=1KiB sync=always",
    "filter=blocked:fpr=0.001 compaction=off level0_stop=40 level0_runs=30",
    "filter=bumped max_open_files=16 compression=zstd:19",
};
enum { SETS = sizeof option_sets / sizeof *option_sets };

static const char *with_threads(int set)
{
    static char text[2][200];
    static int next;
    char *out = text[next++ & 1];
    (void)snprintf(out, 200, "threads=0 memtable=32KiB %s", option_sets[set]);
    return out;
}

/* R35: opened with options that never took effect, or others than it was written with. */
static void R35_any_options_read_what_any_other_wrote(void **state)
{
    (void)state;
    int value[200] = {0}, next = 0;
    struct test_random r = test_random_start(35);
    for (int pair = 0; pair < (test_long() ? 300 : 40); pair++) {
        const int set = (int)test_random_below(&r, SETS);
        open_with(with_threads(set));
        for (int i = 0; i < 60; i++) {
            const int key = (int)test_random_below(&r, 200);
            value[key] = test_random_below(&r, 4) ? ++next : 0;
            if (value[key])
                put(k(key), v(value[key], 100));
            else
                del(k(key));
        }
        flush();
        if (pair % 3 == 0)
            compact_range(k(0), k(100));
        if (pair % 7 == 0)
            compact();
        for (int i = 0; i < 200; i++)
            expect(k(i), value[i] ? v(value[i], 100) : NULL);
        close_it();
    }
}

static void R35_what_was_asked_for_is_what_is_said(void **state)
{
    (void)state;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    assert_int_equal(tamiz_options_set(&o, "comparator=reverse"), TAMIZ_INVALID_ARGUMENT);
    assert_non_null(strstr(tamiz_error_detail(), "comparator"));
    for (int set = 0; set < SETS; set++) {
        char *said = NULL, *wanted = NULL;
        start_over();
        o = (tamiz_options)TAMIZ_OPTIONS_INIT;
        OK(tamiz_options_set(&o, with_threads(set)));
        OK(tamiz_options_text(&o, &wanted));
        open_with(with_threads(set));
        OK(tamiz_property(db, "options", &said));
        assert_non_null(strstr(said, wanted));
        tamiz_free(said);
        tamiz_free(wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(R14_one_directory_is_open_once_by_any_name),
        CASE(R14_a_handle_that_outlives_its_process_refuses_all_calls),
        CASE(R24_a_new_store_in_an_old_place_shows_its_own_values),
        CASE(R25_a_reader_changes_nothing),
        CASE(R25_files_go_when_their_last_reader_has_gone),
        CASE(R26_neither_crashes_nor_openings_let_files_grow),
        CASE(R26_a_long_session_has_a_small_manifest),
        CASE(R28_closing_with_open_handles_is_refused_and_closes_nothing),
        CASE(R31_no_step_of_the_clock_hurts),
        CASE(R32_direct_io_works_or_falls_back_on_any_file_system),
        CASE(R32_a_table_of_any_size_is_read_to_its_end),
        CASE(R33_any_path_that_the_system_takes_works),
        CASE(R33_the_directory_itself_survives),
        CASE(R35_any_options_read_what_any_other_wrote),
        CASE(R35_what_was_asked_for_is_what_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
