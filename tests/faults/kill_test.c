/* SPDX-License-Identifier: MIT
 *
 * Real processes, real threads, real files: a child writes to a store, this process keeps the model
 * and kills the child at a random moment. What the child had acknowledged (it says so through a
 * pipe) is there when the next child opens the store, and what is there is a prefix of what was
 * written. On the directory of the build, and on a memory file system where there is one.
 *
 *     kill_test                       the short form
 *     TAMIZ_TEST_SEED=N               another run;  TAMIZ_LONG=1: many more kills
 *
 * Every second write is a batch over two keyspaces: both have it, or neither.
 *
 * A kill leaves the page cache alone, so that no sync is needed for what was acknowledged; power
 * cuts are for the simulated machine.
 */
#define _XOPEN_SOURCE 700
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tamiz/tamiz.h"

enum { KEYS = 300 };

/* The n-th write of all, from 1 on: which key, and whether it deletes. Both processes know. */
static int key_of(uint32_t n)
{
    struct test_random r = {n};
    return (int)test_random_below(&r, KEYS);
}

static bool deletes(uint32_t n)
{
    struct test_random r = {n * UINT64_C(77)};
    return test_random_below(&r, 5) == 0;
}

static bool in_side(uint32_t n)
{
    return n % 2 == 0;
}

static size_t value_of(uint32_t n, char out[700])
{
    struct test_random r = {n * UINT64_C(131)};
    const size_t size = 11 + (size_t)test_random_below(&r, 600);
    memset(out, 'a' + (int)(n % 26), 700);
    (void)snprintf(out, 12, "%010u", n);
    out[10] = ':';
    return size;
}

static tamiz_status open_at(const char *path, tamiz **db)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    (void)tamiz_options_set(&o, "memtable=64KiB table=64KiB block=1KiB level0_runs=2 level0_stop=6 "
                                "size_ratio=3 threads=2");
    return tamiz_open(path, &o, db);
}

/* To the second keyspace as well. */
static tamiz_status write_both(tamiz *db, tamiz *side, uint32_t n, const char *key, size_t key_size,
                               const char *value, size_t size, const tamiz_write_options *w)
{
    tamiz_batch *batch = tamiz_batch_new();
    tamiz *const both[] = {db, side};
    tamiz_status st = batch ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY;
    for (int i = 0; i < 2 && st == TAMIZ_OK; i++)
        st = deletes(n) ? tamiz_batch_delete(batch, both[i], key, key_size)
                        : tamiz_batch_put(batch, both[i], key, key_size, value, size);
    if (st == TAMIZ_OK)
        st = tamiz_write(db, batch, w);
    tamiz_batch_free(batch);
    return st;
}

/* Writes from `from` on until it is killed; says so after each. */
static void child(const char *path, uint32_t from, int said)
{
    tamiz *db = NULL, *side = NULL;
    if (open_at(path, &db) != TAMIZ_OK || tamiz_keyspace_open(db, "side", NULL, &side) != TAMIZ_OK)
        _exit(3);
    for (uint32_t n = from;; n++) {
        char key[16], value[700];
        const size_t size = value_of(n, value);
        tamiz_write_options w = TAMIZ_WRITE_OPTIONS_INIT;
        w.sync = n % 64 == 0;
        const size_t key_size = (size_t)snprintf(key, sizeof key, "k%05d", key_of(n));
        const tamiz_status st = in_side(n) ? write_both(db, side, n, key, key_size, value, size, &w)
                                : deletes(n) ? tamiz_delete(db, key, key_size, &w)
                                             : tamiz_put(db, key, key_size, value, size, &w);
        if (st != TAMIZ_OK || write(said, &n, sizeof n) != sizeof n)
            _exit(4);
        if (n % 997 == 0 && tamiz_compact(db, NULL, 0, NULL, 0) != TAMIZ_OK)
            _exit(5);
    }
}

/* Does the keyspace hold what writes 1..n made? */
static bool holds_in(tamiz *db, bool side, uint32_t n)
{
    uint32_t last[KEYS] = {0};
    for (uint32_t i = 1; i <= n; i++)
        if (!side || in_side(i))
            last[key_of(i)] = i;
    for (int i = 0; i < KEYS; i++) {
        char key[16], want[700], got[700];
        size_t size = 0;
        const size_t key_size = (size_t)snprintf(key, sizeof key, "k%05d", i);
        const tamiz_status st = tamiz_get_into(db, key, key_size, got, sizeof got, &size, NULL);
        const bool there = last[i] && !deletes(last[i]);
        assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
        if ((st == TAMIZ_OK) != there)
            return false;
        if (there && (size != value_of(last[i], want) || memcmp(got, want, size) != 0))
            return false;
    }
    return true;
}

static bool holds(tamiz *db, uint32_t n)
{
    tamiz *side = NULL;
    assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
    return holds_in(db, false, n) && holds_in(side, true, n);
}

/* One life of a child; the number of the last write that is there afterwards. */
static uint32_t one_life(const char *path, uint32_t from, uint32_t after_us)
{
    int ends[2];
    uint32_t acknowledged = from - 1, n;
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        child(path, from, ends[1]);
    }
    close(ends[1]);
    const struct timespec pause = {after_us / 1000000, (long)(after_us % 1000000) * 1000};
    /* Its first word: it has opened the store, so that there is something to kill. */
    if (after_us % 4 != 0 && read(ends[0], &n, sizeof n) == sizeof n)
        acknowledged = n;
    (void)nanosleep(&pause, NULL);
    assert_int_equal(kill(pid, SIGKILL), 0);
    while (read(ends[0], &n, sizeof n) == sizeof n)
        acknowledged = n;
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status))
        fail_msg("the child ended by itself with %d", WEXITSTATUS(status));
    tamiz *db = NULL;
    assert_public(open_at(path, &db), TAMIZ_OK);
    /* The write that was under way may be there or not. */
    uint32_t there = acknowledged;
    if (!holds(db, there) && !holds(db, ++there))
        fail_msg("neither %u nor %u writes are there", acknowledged, there);
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_verify(db, &report), TAMIZ_OK);
    assert_public(tamiz_close(db), TAMIZ_OK);
    return there + 1;
}

static void kill_often(const char *place, uint64_t seed)
{
    struct test_random r = {seed};
    const char *text = getenv("TAMIZ_LONG");
    const int kills = text && *text && *text != '0' ? 300 : 8;
    char path[100];
    uint32_t next = 1;
    (void)snprintf(path, sizeof path, "%s/tamiz-kill-XXXXXX", place);
    if (access(place, W_OK) != 0 || !mkdtemp(path)) {
        print_message("%s: not here\n", place);
        return;
    }
    for (int i = 0; i < kills; i++)
        next = one_life(path, next, (uint32_t)test_random_below(&r, 150000));
    print_message("%s: %d kills, %u writes\n", place, kills, next - 1);
    assert_public(tamiz_destroy(path), TAMIZ_OK);
}

static void killed_at_any_moment_all_that_was_acknowledged_is_there(void **state)
{
    (void)state;
    struct test_random seed = test_random_start(9);
    kill_often(".", test_random_u64(&seed));
    kill_often("/dev/shm", test_random_u64(&seed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_any_moment_all_that_was_acknowledged_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
