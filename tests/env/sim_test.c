/* SPDX-License-Identifier: MIT
 *
 * What the simulated machine forgets, breaks and refuses, and that it does nothing else.
 */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "env/env.h"
#include "tamiz/env_sim.h"

static struct test_op t;
static tamiz_env_sim *sim;
static const tamiz_env *env;

static int setup(void **state)
{
    (void)state;
    test_op_init(&t);
    sim = tamiz_env_sim_new(7);
    assert_non_null(sim);
    env = tamiz_env_sim_env(sim);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tamiz_env_sim_free(sim);
    return 0;
}

#define OK(call) assert_status(&t.op, (call), TAMIZ_OK)
#define FAILS(call, status, error)                                                                 \
    do {                                                                                           \
        assert_status(&t.op, (call), (status));                                                    \
        assert_int_equal(t.op.os_error, (error));                                                  \
        op_forgive(&t.op);                                                                         \
    } while (0)

static struct file *open_file(const char *path, int flags)
{
    struct file *f;
    OK(file_open(&t.op, env, path, flags, &f));
    return f;
}

static struct file *create(const char *path)
{
    return open_file(path, TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE);
}

static void write_at(struct file *f, uint64_t offset, const char *text)
{
    OK(file_write(&t.op, f, IO_DATA, offset, text, strlen(text)));
}

static void make(const char *path, const char *text, bool synced)
{
    struct file *f = create(path);
    write_at(f, 0, text);
    if (synced)
        OK(file_sync(&t.op, f));
    OK(file_close(&t.op, f));
}

static bool exists(const char *path)
{
    bool there;
    tamiz_file_info info;
    OK(env_path_info(&t.op, env, path, &there, &info));
    return there;
}

/* "-" where there is no such file. In a static buffer. */
static const char *content(const char *path)
{
    static char text[8192];
    if (!exists(path))
        return "-";
    struct buf b = buf_init(&alloc_libc);
    OK(env_read_file(&t.op, env, path, IO_DATA, sizeof text - 1, &b));
    if (b.size)
        memcpy(text, b.data, b.size);
    text[b.size] = 0;
    buf_free(&b);
    return text;
}

static void crash(tamiz_sim_crash mode, const char *name, uint64_t n)
{
    tamiz_env_sim_crash(sim, mode, name, n);
}

static void sync_root(void)
{
    OK(env_sync_directory(&t.op, env, "/"));
}

/* ---- what is forgotten ---- */

static void a_power_cut_forgets_what_was_not_synced(void **state)
{
    (void)state;
    make("a", "synced", true);
    make("b", "not", false);
    sync_root();
    make("c", "no entry", true);
    struct file *f = open_file("a", TAMIZ_OPEN_WRITE);
    write_at(f, 6, " and more");
    OK(file_close(&t.op, f));
    assert_string_equal(content("a"), "synced and more");
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("a"), "synced");
    assert_string_equal(content("b"), "");
    assert_string_equal(content("c"), "-");
}

static void a_killed_process_loses_nothing_but_is_not_synced_by_it(void **state)
{
    (void)state;
    make("a", "text", false);
    const uint64_t boot = env_boot_id(env);
    crash(TAMIZ_SIM_KEEP, NULL, 0);
    assert_string_equal(content("a"), "text");
    assert_true(env_boot_id(env) == boot);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("a"), "-");
    assert_true(env_boot_id(env) != boot);
}

static void names_change_with_the_directorys_sync_alone(void **state)
{
    (void)state;
    make("old", "1", true);
    make("gone", "2", true);
    make("current", "before", true);
    make("next", "after", true);
    sync_root();
    OK(env_rename(&t.op, env, "old", "new"));
    OK(env_remove(&t.op, env, "gone"));
    OK(env_rename(&t.op, env, "next", "current"));
    OK(env_link(&t.op, env, "new", "link"));
    tamiz_env_sim *second = tamiz_env_sim_copy(sim);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("old"), "1");
    assert_string_equal(content("new"), "-");
    assert_string_equal(content("gone"), "2");
    assert_string_equal(content("current"), "before");
    assert_string_equal(content("next"), "after");
    assert_string_equal(content("link"), "-");

    tamiz_env_sim_free(sim);
    sim = second;
    env = tamiz_env_sim_env(sim);
    sync_root();
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("old"), "-");
    assert_string_equal(content("new"), "1");
    assert_string_equal(content("gone"), "-");
    assert_string_equal(content("current"), "after");
    assert_string_equal(content("next"), "-");
    assert_string_equal(content("link"), "1");
}

static void a_new_directory_lasts_once_its_parent_is_synced(void **state)
{
    (void)state;
    tamiz_env_sim *s = sim;
    assert_int_equal(env->ops->make_directory(s, "d"), 0);
    make("d/f", "text", true);
    OK(env_sync_directory(&t.op, env, "d"));
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_false(exists("d"));
    OK(env_make_directory(&t.op, env, "d")); /* syncs the parent */
    make("d/f", "text", true);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_true(exists("d"));
    assert_string_equal(content("d/f"), "-");
    make("d/f", "text", true);
    OK(env_sync_directory(&t.op, env, "d"));
    OK(env_make_directory(&t.op, env, "e"));
    OK(env_rename(&t.op, env, "d/f", "e/g"));
    OK(env_sync_directory(&t.op, env, "e")); /* one half of a rename brings the other */
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("d/f"), "-");
    assert_string_equal(content("e/g"), "text");
}

static void replacing_a_file_survives_at_every_call(void **state)
{
    (void)state;
    const tamiz_sim_crash modes[] = {TAMIZ_SIM_KEEP, TAMIZ_SIM_DROP, TAMIZ_SIM_TEAR,
                                     TAMIZ_SIM_ZERO, TAMIZ_SIM_JUNK, TAMIZ_SIM_REORDER};
    make("CURRENT", "old", true);
    sync_root();
    tamiz_env_sim *start = sim;
    size_t old = 0, new = 0, crashes = 0;
    bool finished = false;
    for (uint64_t call = 1; !finished; call++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        tamiz_env_sim_stop_at(sim, call);
        finished = env_replace_file(&t.op, env, "/", "CURRENT.tmp", "CURRENT", IO_META,
                                    slice_of_text("fresh")) == TAMIZ_OK;
        op_forgive(&t.op);
        for (uint64_t i = 0; i < 5 + 8; i++) {
            tamiz_env_sim *stopped = sim;
            sim = tamiz_env_sim_copy(stopped);
            env = tamiz_env_sim_env(sim);
            crash(modes[i < 5 ? i : 5], NULL, i < 5 ? 3 : i);
            const bool is_new = strcmp(content("CURRENT"), "fresh") == 0;
            assert_true(is_new || strcmp(content("CURRENT"), "old") == 0);
            assert_true(is_new || !finished);
            new += is_new;
            old += !is_new;
            crashes++;
            tamiz_env_sim_free(sim);
            sim = stopped;
        }
        tamiz_env_sim_free(sim);
    }
    sim = start;
    assert_int_equal(crashes, 13 * 8); /* remove, create, write, sync, close, rename, sync, none */
    assert_true(old > 50 && new > 15);
}

static void tearing_takes_only_unsynced_bytes_of_the_newest_file(void **state)
{
    (void)state;
    make("1.log", "first", false);
    struct file *f = create("2.log");
    write_at(f, 0, "synced");
    OK(file_sync(&t.op, f));
    write_at(f, 6, "tail");
    make("x.sst", "table", false);
    OK(file_close(&t.op, f));
    tamiz_env_sim *start = sim;
    for (uint64_t n = 0; n < 9; n++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        crash(TAMIZ_SIM_TEAR, "*.log", n);
        assert_string_equal(content("1.log"), "first");
        assert_string_equal(content("x.sst"), "table");
        assert_int_equal(strlen(content("2.log")), n < 4 ? 10 - n : 6);
        assert_memory_equal(content("2.log"), "synced", 6);
        tamiz_env_sim_free(sim);
    }
    sim = start;
}

static void zeros_and_junk_take_only_unsynced_bytes(void **state)
{
    (void)state;
    struct file *f = create("2.log");
    char b[11] = {0};
    write_at(f, 0, "synced");
    OK(file_sync(&t.op, f));
    write_at(f, 6, "tail");
    OK(file_close(&t.op, f));
    tamiz_env_sim *start = sim;
    for (int i = 0; i < 2; i++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        crash(i ? TAMIZ_SIM_JUNK : TAMIZ_SIM_ZERO, "*", i ? 100 : 3);
        f = open_file("2.log", TAMIZ_OPEN_READ);
        OK(file_read(&t.op, f, IO_DATA, 0, b, 10));
        OK(file_close(&t.op, f));
        assert_memory_equal(b, "synced", 6);
        if (i == 0)
            assert_memory_equal(b + 6, "t\0\0\0", 4);
        else
            assert_memory_not_equal(b + 6, "tail", 4);
        tamiz_env_sim_free(sim);
    }
    sim = start;
}

/* Three sectors, each of one letter; a second and a third write over them. */
static void reordering_leaves_each_sector_at_some_version(void **state)
{
    (void)state;
    enum { SECTORS = 3, SIZE = SECTORS * 512 };
    static char bytes[3][SIZE];
    bool seen[27] = {false}, cut = false;
    for (int i = 0; i < 3; i++)
        memset(bytes[i], 'a' + i, SIZE);
    struct file *f = create("f");
    OK(file_write(&t.op, f, IO_DATA, 0, bytes[0], SIZE));
    OK(file_sync(&t.op, f));
    sync_root();
    OK(file_write(&t.op, f, IO_DATA, 0, bytes[1], SIZE));
    OK(file_write(&t.op, f, IO_DATA, 0, bytes[2], SIZE));
    OK(file_write(&t.op, f, IO_DATA, SIZE, "z", 1));
    OK(file_close(&t.op, f));
    tamiz_env_sim *start = sim;
    for (uint64_t seed = 0; seed < 600; seed++) {
        char b[2][SIZE + 1];
        size_t got[2];
        for (int again = 0; again < 2; again++) {
            sim = tamiz_env_sim_copy(start);
            env = tamiz_env_sim_env(sim);
            crash(TAMIZ_SIM_REORDER, NULL, seed);
            f = open_file("f", TAMIZ_OPEN_READ);
            OK(file_read_some(&t.op, f, IO_DATA, 0, b[again], SIZE + 1, &got[again]));
            OK(file_close(&t.op, f));
            tamiz_env_sim_free(sim);
        }
        assert_int_equal(got[0], got[1]);
        assert_memory_equal(b[0], b[1], got[0]);
        assert_true(got[0] == SIZE ||
                    (got[0] == SIZE + 1 && (b[0][SIZE] == 0 || b[0][SIZE] == 'z')));
        cut |= got[0] == SIZE;
        int code = 0;
        for (int s = 0; s < SECTORS; s++) {
            const char letter = b[0][s * 512];
            assert_true(letter >= 'a' && letter <= 'c');
            for (int i = 0; i < 512; i++)
                assert_int_equal(b[0][s * 512 + i], letter);
            code = code * 3 + (letter - 'a');
        }
        seen[code] = true;
    }
    sim = start;
    for (int i = 0; i < 27; i++)
        assert_true(seen[i]);
    assert_true(cut);
}

static void reordering_lets_each_name_survive_on_its_own(void **state)
{
    (void)state;
    bool seen[16] = {false};
    make("a", "", true);
    make("b", "", true);
    sync_root();
    OK(env_remove(&t.op, env, "a"));
    OK(env_rename(&t.op, env, "b", "c"));
    make("d", "", true);
    OK(env_make_directory(&t.op, env, "unrelated")); /* syncs: these four are on the disk */
    OK(env_remove(&t.op, env, "c"));
    make("a", "", true);
    OK(env_rename(&t.op, env, "d", "e"));
    assert_int_equal(env->ops->make_directory(sim, "dir"), 0);
    OK(env_rename(&t.op, env, "dir", "dir2"));
    tamiz_env_sim *start = sim;
    for (uint64_t seed = 0; seed < 400; seed++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        crash(TAMIZ_SIM_REORDER, NULL, seed);
        assert_true(exists("d") != exists("e"));
        assert_false(exists("b"));
        assert_false(exists("dir") && exists("dir2"));
        seen[exists("c") + 2 * exists("a") + 4 * exists("e") + 8 * exists("dir2")] = true;
        tamiz_env_sim_free(sim);
    }
    sim = start;
    for (int i = 0; i < 16; i++)
        assert_true(seen[i]);
}

static void truncation_is_a_change_like_any_other(void **state)
{
    (void)state;
    bool seen_long = false, seen_short = false;
    struct file *f = create("f");
    write_at(f, 0, "0123456789");
    OK(file_sync(&t.op, f));
    sync_root();
    OK(file_truncate(&t.op, f, 4));
    OK(file_close(&t.op, f));
    assert_string_equal(content("f"), "0123");
    tamiz_env_sim *start = sim;
    for (uint64_t seed = 0; seed < 50; seed++) {
        sim = tamiz_env_sim_copy(start);
        env = tamiz_env_sim_env(sim);
        crash(TAMIZ_SIM_REORDER, NULL, seed);
        seen_long |= strcmp(content("f"), "0123456789") == 0;
        seen_short |= strcmp(content("f"), "0123") == 0;
        tamiz_env_sim_free(sim);
    }
    sim = start;
    env = tamiz_env_sim_env(sim);
    assert_true(seen_long && seen_short);
    crash(TAMIZ_SIM_DROP, NULL, 0);
    assert_string_equal(content("f"), "0123456789");
}

/* ---- faults ---- */

static void set_fault(tamiz_sim_call call, const char *name, uint64_t nth, tamiz_sim_effect effect,
                      int error)
{
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.call = call;
    fault.name = name;
    fault.nth = nth;
    fault.effect = effect;
    fault.error = error;
    assert_true(tamiz_env_sim_fault(sim, &fault));
}

static void the_nth_call_fails_once(void **state)
{
    (void)state;
    struct file *f = create("000001.log");
    struct file *other = create("000002.sst");
    set_fault(TAMIZ_SIM_WRITE, "*.log", 2, TAMIZ_SIM_FAIL, ENOSPC);
    write_at(f, 0, "a");
    write_at(other, 0, "x");
    FAILS(file_write(&t.op, f, IO_LOG, 1, "b", 1), TAMIZ_NO_SPACE, ENOSPC);
    assert_string_equal(content("000001.log"), "a");
    write_at(f, 1, "c");
    assert_int_equal(tamiz_env_sim_faults_acted(sim), 1);
    OK(file_close(&t.op, f));
    OK(file_close(&t.op, other));
}

static void a_sticky_fault_stays_until_it_is_cleared(void **state)
{
    (void)state;
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.call = TAMIZ_SIM_UNLINK;
    fault.sticky = true;
    fault.nth = 2;
    make("a", "", false);
    make("b", "", false);
    make("c", "", false);
    assert_true(tamiz_env_sim_fault(sim, &fault));
    OK(env_remove(&t.op, env, "a"));
    FAILS(env_remove(&t.op, env, "b"), TAMIZ_IO_ERROR, EIO);
    FAILS(env_remove(&t.op, env, "c"), TAMIZ_IO_ERROR, EIO);
    tamiz_env_sim_clear(sim);
    OK(env_remove(&t.op, env, "b"));
}

static void a_fault_after_the_effect_leaves_the_effect(void **state)
{
    (void)state;
    struct file *f;
    make("a", "", false);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.after = fault.sticky = true;
    assert_true(tamiz_env_sim_fault(sim, &fault));
    FAILS(env_rename(&t.op, env, "a", "b"), TAMIZ_IO_ERROR, EIO);
    FAILS(file_open(&t.op, env, "c", TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f), TAMIZ_IO_ERROR,
          EIO);
    tamiz_env_sim_clear(sim);
    assert_true(exists("b") && !exists("a") && exists("c"));
    assert_int_equal(tamiz_env_sim_files_open(sim), 0);
}

static void each_kind_of_call_can_fail(void **state)
{
    (void)state;
    struct file *f = create("f");
    void *lock;
    bool there;
    uint64_t size;
    char byte;
    tamiz_file_info info;
    write_at(f, 0, "x");
#define KIND(kind, call_)                                                                          \
    do {                                                                                           \
        const uint64_t before = tamiz_env_sim_calls(sim, kind);                                    \
        set_fault(kind, NULL, 1, TAMIZ_SIM_FAIL, EDOM);                                            \
        FAILS(call_, TAMIZ_IO_ERROR, EDOM);                                                        \
        assert_int_equal(tamiz_env_sim_calls(sim, kind), before + 1);                              \
        tamiz_env_sim_clear(sim);                                                                  \
    } while (0)
    struct file *g;
    KIND(TAMIZ_SIM_OPEN, file_open(&t.op, env, "f", TAMIZ_OPEN_READ, &g));
    KIND(TAMIZ_SIM_CREATE, file_open(&t.op, env, "g", TAMIZ_OPEN_CREATE, &g));
    KIND(TAMIZ_SIM_READ, file_read(&t.op, f, IO_DATA, 0, &byte, 1));
    KIND(TAMIZ_SIM_WRITE, file_write(&t.op, f, IO_DATA, 0, "y", 1));
    KIND(TAMIZ_SIM_FSYNC, file_sync(&t.op, f));
    KIND(TAMIZ_SIM_TRUNCATE, file_truncate(&t.op, f, 0));
    KIND(TAMIZ_SIM_ALLOCATE, file_allocate(&t.op, f, 10));
    KIND(TAMIZ_SIM_INFO, file_size(&t.op, f, &size));
    KIND(TAMIZ_SIM_INFO, env_path_info(&t.op, env, "f", &there, &info));
    KIND(TAMIZ_SIM_LIST, env_list(&t.op, env, "/", NULL, NULL));
    KIND(TAMIZ_SIM_MKDIR, env_make_directory(&t.op, env, "d"));
    KIND(TAMIZ_SIM_RMDIR, env_remove_directory(&t.op, env, "d"));
    KIND(TAMIZ_SIM_RENAME, env_rename(&t.op, env, "f", "g"));
    KIND(TAMIZ_SIM_LINK, env_link(&t.op, env, "f", "g"));
    KIND(TAMIZ_SIM_UNLINK, env_remove(&t.op, env, "f"));
    KIND(TAMIZ_SIM_DIRSYNC, env_sync_directory(&t.op, env, "/"));
    KIND(TAMIZ_SIM_LOCK, env_lock(&t.op, env, "LOCK", &lock));
    assert_string_equal(content("f"), "x");
    OK(env_lock(&t.op, env, "LOCK", &lock));
    KIND(TAMIZ_SIM_UNLOCK, env_unlock(&t.op, env, lock));
    KIND(TAMIZ_SIM_CLOSE, file_close(&t.op, f));
    assert_int_equal(tamiz_env_sim_files_open(sim), 0);
    assert_int_equal(tamiz_env_sim_calls(sim, TAMIZ_SIM_CHANGE), 15);
}

static void short_transfers_do_a_part(void **state)
{
    (void)state;
    struct file *f = create("f");
    char b[8] = {0};
    size_t got;
    set_fault(TAMIZ_SIM_WRITE, NULL, 1, TAMIZ_SIM_SHORT, EIO);
    FAILS(file_write(&t.op, f, IO_DATA, 0, "12345678", 8), TAMIZ_IO_ERROR, EIO);
    assert_string_equal(content("f"), "1234");
    tamiz_env_sim_clear(sim);
    set_fault(TAMIZ_SIM_READ, NULL, 1, TAMIZ_SIM_SHORT, EIO);
    OK(file_read_some(&t.op, f, IO_DATA, 0, b, 4, &got));
    assert_int_equal(got, 2);
    OK(file_close(&t.op, f));
}

static void a_sync_that_lost_its_data_cannot_be_repaired_by_another(void **state)
{
    (void)state;
    for (uint64_t revert = 0; revert < 2; revert++) {
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.call = TAMIZ_SIM_FSYNC;
        fault.effect = TAMIZ_SIM_LOSE;
        fault.argument = revert;
        struct file *f = create("f");
        sync_root();
        write_at(f, 0, "kept");
        OK(file_sync(&t.op, f));
        write_at(f, 1000, "lost");
        assert_true(tamiz_env_sim_fault(sim, &fault));
        FAILS(file_sync(&t.op, f), TAMIZ_IO_ERROR, EIO);
        uint64_t size;
        OK(file_size(&t.op, f, &size));
        assert_int_equal(size, revert ? 4 : 1004);
        OK(file_sync(&t.op, f)); /* says that all is well */
        write_at(f, 2000, "new");
        OK(file_sync(&t.op, f));
        OK(file_close(&t.op, f));
        crash(TAMIZ_SIM_DROP, NULL, 0);
        char b[2003];
        f = open_file("f", TAMIZ_OPEN_READ);
        OK(file_read(&t.op, f, IO_DATA, 0, b, sizeof b));
        OK(file_close(&t.op, f));
        assert_memory_equal(b, "kept", 4);
        assert_memory_equal(b + 1000, "\0\0\0\0", 4);
        assert_memory_equal(b + 2000, "new", 3);
        OK(env_remove(&t.op, env, "f"));
        tamiz_env_sim_clear(sim);
    }
}

static void reads_can_lie(void **state)
{
    (void)state;
    char b[4];
    struct file *f = create("f");
    write_at(f, 0, "old!");
    write_at(f, 4096, "far!");
    OK(file_sync(&t.op, f));
    write_at(f, 0, "new!");
    set_fault(TAMIZ_SIM_READ, NULL, 1, TAMIZ_SIM_STALE, EIO);
    set_fault(TAMIZ_SIM_READ, NULL, 2, TAMIZ_SIM_MISDIRECT, EIO);
    set_fault(TAMIZ_SIM_READ, NULL, 3, TAMIZ_SIM_FLIP, EIO);
    const char *const want[] = {"old!", "far!", "oew!", "new!"};
    for (int i = 0; i < 4; i++) {
        OK(file_read(&t.op, f, IO_DATA, 0, b, 4));
        assert_memory_equal(b, want[i], 4);
    }
    tamiz_env_sim_clear(sim);
    set_fault(TAMIZ_SIM_WRITE, NULL, 1, TAMIZ_SIM_STALE, EIO);
    write_at(f, 0, "void");
    OK(file_read(&t.op, f, IO_DATA, 0, b, 4));
    assert_memory_equal(b, "new!", 4);
    OK(file_close(&t.op, f));
    assert_true(tamiz_env_sim_flip(sim, "f", 9));
    assert_false(tamiz_env_sim_flip(sim, "f", 4100 * 8));
    assert_false(tamiz_env_sim_flip(sim, "g", 0));
    assert_memory_equal(content("f"), "ngw!", 4);
}

static void senseless_faults_are_refused(void **state)
{
    (void)state;
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.nth = 0;
    assert_false(tamiz_env_sim_fault(sim, &fault));
    fault.nth = 1;
    fault.struct_size = 3;
    assert_false(tamiz_env_sim_fault(sim, &fault));
    fault.struct_size = sizeof fault;
    fault.name = "a pattern that is longer than the sixty-three bytes that there is room for";
    assert_false(tamiz_env_sim_fault(sim, &fault));
    fault.name = NULL;
    for (int i = 0; i < 16; i++)
        assert_true(tamiz_env_sim_fault(sim, &fault));
    assert_false(tamiz_env_sim_fault(sim, &fault));
    tamiz_env_sim_clear(sim);
    assert_true(tamiz_env_sim_fault(sim, &fault));
}

static void a_stopped_machine_does_nothing_until_the_crash(void **state)
{
    (void)state;
    struct file *f = create("f");
    void *lock;
    OK(env_lock(&t.op, env, "LOCK", &lock));
    write_at(f, 0, "a");
    tamiz_env_sim_stop_at(sim, tamiz_env_sim_calls(sim, TAMIZ_SIM_ANY) + 2);
    write_at(f, 1, "b");
    assert_false(tamiz_env_sim_stopped(sim));
    FAILS(file_write(&t.op, f, IO_DATA, 2, "c", 1), TAMIZ_IO_ERROR, EIO);
    assert_true(tamiz_env_sim_stopped(sim));
    FAILS(env_remove(&t.op, env, "f"), TAMIZ_IO_ERROR, EIO);
    crash(TAMIZ_SIM_KEEP, NULL, 0);
    assert_string_equal(content("f"), "ab");
    void *second;
    OK(env_lock(&t.op, env, "LOCK", &second)); /* the dead program's is free */
    FAILS(file_write(&t.op, f, IO_DATA, 2, "c", 1), TAMIZ_IO_ERROR, EIO);
    FAILS(file_close(&t.op, f), TAMIZ_IO_ERROR, EIO);
    FAILS(env_unlock(&t.op, env, lock), TAMIZ_IO_ERROR, EIO);
    assert_string_equal(content("f"), "ab");
    FAILS(env_lock(&t.op, env, "LOCK", &lock), TAMIZ_BUSY, 0); /* not freed by its ghost */
    OK(env_unlock(&t.op, env, second));
    assert_int_equal(tamiz_env_sim_files_open(sim), 0);
}

/* ---- limits ---- */

static void the_disk_is_full_to_the_byte(void **state)
{
    (void)state;
    struct file *f = create("f");
    uint64_t size;
    tamiz_env_sim_limit_disk(sim, 100);
    write_at(f, 0, "0123456789");
    OK(file_allocate(&t.op, f, 60));
    assert_int_equal(tamiz_env_sim_disk_used(sim), 60);
    FAILS(file_allocate(&t.op, f, 101), TAMIZ_NO_SPACE, ENOSPC);
    make("g", "1234567890123456789012345678901234567890", true);
    assert_int_equal(tamiz_env_sim_disk_used(sim), 100);
    OK(file_write(&t.op, f, IO_DATA, 50, "0123456789", 10)); /* into what was allocated */
    FAILS(file_write(&t.op, f, IO_DATA, 55, "abcdefghij", 10), TAMIZ_NO_SPACE, ENOSPC);
    OK(file_size(&t.op, f, &size));
    assert_int_equal(size, 60); /* what fitted was written */
    FAILS(file_truncate(&t.op, f, 61), TAMIZ_NO_SPACE, ENOSPC);
    struct file *g = open_file("g", TAMIZ_OPEN_READ);
    OK(env_remove(&t.op, env, "g"));
    assert_int_equal(tamiz_env_sim_disk_used(sim), 100); /* still open */
    OK(file_close(&t.op, g));
    assert_int_equal(tamiz_env_sim_disk_used(sim), 60);
    OK(file_write(&t.op, f, IO_DATA, 60, "abcdefghij", 10));
    OK(file_truncate(&t.op, f, 5));
    assert_int_equal(tamiz_env_sim_disk_used(sim), 5);
    OK(file_close(&t.op, f));
}

static void open_files_are_limited_exactly(void **state)
{
    (void)state;
    struct file *f[3];
    void *lock;
    tamiz_env_sim_limit_files(sim, 3);
    f[0] = create("0");
    f[1] = create("1");
    OK(env_lock(&t.op, env, "LOCK", &lock));
    FAILS(file_open(&t.op, env, "2", TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f[2]), TAMIZ_IO_ERROR,
          EMFILE);
    assert_false(exists("2"));
    FAILS(env_sync_directory(&t.op, env, "/"), TAMIZ_IO_ERROR, EMFILE);
    OK(env_unlock(&t.op, env, lock));
    f[2] = create("2");
    for (int i = 0; i < 3; i++)
        OK(file_close(&t.op, f[i]));
}

static void the_clock_is_the_tests(void **state)
{
    (void)state;
    tamiz_env_sim_clock_tick(sim, 0);
    const uint64_t wall = env_wall_us(env), ns = env_monotonic_ns(env);
    assert_true(env_monotonic_ns(env) == ns);
    env_sleep_us(env, 5);
    tamiz_env_sim_clock_advance(sim, 6);
    tamiz_env_sim_clock_step(sim, -1000);
    assert_true(env_monotonic_ns(env) == ns + 11000);
    assert_true(env_wall_us(env) == wall + 11 - 1000);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.effect = TAMIZ_SIM_DELAY;
    fault.argument = 70;
    assert_true(tamiz_env_sim_fault(sim, &fault));
    make("a", "x", false);
    assert_true(env_monotonic_ns(env) == ns + 81000);
}

/* ---- watching ---- */

struct watch {
    uint64_t calls;
    char story[200];
    tamiz_env_sim *copy;
};

static void watch_call(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    struct watch *w = ctx;
    w->calls++;
    const size_t end = strlen(w->story);
    (void)snprintf(w->story + end, sizeof w->story - end, "%llu %s %s; ",
                   (unsigned long long)number, tamiz_sim_call_name(kind), name);
    if (kind == TAMIZ_SIM_RENAME)
        w->copy = tamiz_env_sim_copy(sim);
}

static void a_watcher_sees_each_call_before_it_happens(void **state)
{
    (void)state;
    struct watch w = {0};
    tamiz_env_sim_on_call(sim, watch_call, &w);
    make("/a", "x", true);
    OK(env_rename(&t.op, env, "/a", "/b"));
    tamiz_env_sim_on_call(sim, NULL, NULL);
    assert_string_equal(w.story, "1 create a; 2 write a; 3 fsync a; 4 close a; 5 rename a; ");
    tamiz_env_sim_free(sim);
    sim = w.copy;
    env = tamiz_env_sim_env(sim);
    assert_string_equal(content("a"), "x");
    assert_string_equal(content("b"), "-");
}

/* ---- laws, at random ---- */

/* One random call out of few files; its result. Equal seeds make equal calls on any env. */
static int64_t random_call(struct test_random *r, const tamiz_env *on, const char *root)
{
    static const char *const names[] = {"a", "b", "d", "d/a", "d/b", "e"};
    char from[160], to[160], b[3000];
    void *file;
    tamiz_file_info info;
    (void)snprintf(from, sizeof from, "%s/%s", root, names[test_random_below(r, 6)]);
    (void)snprintf(to, sizeof to, "%s/%s", root, names[test_random_below(r, 6)]);
    const uint64_t what = test_random_below(r, 12), offset = test_random_below(r, 2000);
    const size_t size = (size_t)test_random_below(r, 1500);
    memset(b, 'a' + (int)(offset % 26), sizeof b);
    const tamiz_env_ops *ops = on->ops;
    int64_t result;
    switch (what) {
    case 0: return ops->rename(on->ctx, from, to);
    case 1: return ops->link(on->ctx, from, to);
    case 2: return ops->remove(on->ctx, from);
    case 3: return ops->make_directory(on->ctx, from);
    case 4: return ops->remove_directory(on->ctx, from);
    case 5: return ops->sync_directory(on->ctx, from);
    case 6:
        result = ops->path_info(on->ctx, from, &info);
        return result ? result : (int64_t)(info.size + info.is_directory);
    default: break;
    }
    const int flags = TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE | (what < 10 ? TAMIZ_OPEN_CREATE : 0);
    result = ops->open(on->ctx, from, flags, &file);
    if (result)
        return result;
    if (what % 2)
        result = ops->write(on->ctx, file, offset, b, size);
    else
        result = ops->truncate(on->ctx, file, offset);
    if (!result && size % 3 == 0)
        result = ops->sync(on->ctx, file);
    if (!result) {
        result = ops->read(on->ctx, file, 0, b, sizeof b);
        for (int64_t i = 0, n = result; i < n; i++)
            result = (result * 31 + b[i]) % 1000000007;
    }
    const int closed = ops->close(on->ctx, file);
    return closed ? closed : result;
}

static void the_simulated_machine_answers_like_the_real_one(void **state)
{
    (void)state;
    enum { CALLS = 4000 };
    struct test_random seed = test_random_start(3);
    char root[64];
    test_directory_make(root, sizeof root);
    assert_int_equal(env->ops->make_directory(env->ctx, "r"), 0);
    size_t good = 0;
    for (int i = 0; i < CALLS; i++) {
        const uint64_t start = test_random_u64(&seed);
        struct test_random here = {start}, there = {start};
        const int64_t simulated = random_call(&here, env, "r");
        const int64_t real = random_call(&there, tamiz_env_posix(), root);
        if (simulated != real)
            fail_msg("call %d: simulated %lld, real %lld", i, (long long)simulated,
                     (long long)real);
        good += real >= 0;
    }
    assert_true(good > CALLS / 4);
    test_directory_remove(root);
}

/* What is below a directory: a sum of names, contents and sizes. */
struct survey {
    const char *directory;
    uint64_t digest, bytes, files;
};

static void survey_entry(void *ctx, const char *name)
{
    struct survey *v = ctx;
    tamiz_file_info info;
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", v->directory, name);
    assert_int_equal(env->ops->path_info(env->ctx, path, &info), 0);
    uint64_t mark = info.inode * 31 + info.size;
    for (const char *p = path; *p; p++)
        mark = mark * 131 + (unsigned char)*p;
    if (info.is_directory) {
        struct survey below = {path, 0, 0, 0};
        assert_int_equal(env->ops->list(env->ctx, path, survey_entry, &below), 0);
        mark = mark * 131 + below.digest;
        v->bytes += below.bytes;
        v->files += below.files;
    } else {
        for (const char *p = content(path); *p; p++)
            mark = mark * 131 + (unsigned char)*p;
        v->bytes += info.size;
        v->files++;
    }
    v->digest += mark;
}

static struct survey survey(void)
{
    struct survey v = {"", 0, 0, 0};
    assert_int_equal(env->ops->list(env->ctx, "/", survey_entry, &v), 0);
    return v;
}

static void a_second_power_cut_loses_nothing_more(void **state)
{
    (void)state;
    enum { ROUNDS = 200 };
    struct test_random seed = test_random_start(4);
    uint64_t files = 0;
    for (int round = 0; round < ROUNDS; round++) {
        (void)env->ops->make_directory(env->ctx, "r");
        for (int i = 0; i < 60; i++)
            (void)random_call(&seed, env, "r");
        const struct survey before = survey();
        tamiz_env_sim *original = sim;
        sim = tamiz_env_sim_copy(original);
        env = tamiz_env_sim_env(sim);
        assert_true(survey().digest == before.digest);
        tamiz_env_sim_free(original);
        crash((tamiz_sim_crash)(1 + test_random_below(&seed, 5)), NULL,
              test_random_below(&seed, 3000));
        const struct survey first = survey();
        assert_true(tamiz_env_sim_disk_used(sim) <= first.bytes); /* links count once */
        crash(round % 2 ? TAMIZ_SIM_REORDER : TAMIZ_SIM_DROP, NULL, 1);
        assert_true(survey().digest == first.digest);
        files += first.files;
    }
    assert_true(files > ROUNDS);
}

/* With all below. `ctx` is the directory's path. */
static void sync_entry(void *ctx, const char *name)
{
    const char *directory = ctx;
    char path[128];
    void *f;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    if (env->ops->open(env->ctx, path, TAMIZ_OPEN_WRITE, &f) == 0) {
        assert_int_equal(env->ops->sync(env->ctx, f), 0);
        assert_int_equal(env->ops->close(env->ctx, f), 0);
    } else {
        assert_int_equal(env->ops->list(env->ctx, path, sync_entry, path), 0);
        assert_int_equal(env->ops->sync_directory(env->ctx, path), 0);
    }
}

static void everything_synced_survives_every_power_cut(void **state)
{
    (void)state;
    struct test_random seed = test_random_start(5);
    for (int round = 0; round < 50; round++) {
        (void)env->ops->make_directory(env->ctx, "r");
        for (int i = 0; i < 60; i++)
            (void)random_call(&seed, env, "r");
        char top[] = "";
        sync_entry(top, "r");
        sync_root();
        const struct survey before = survey();
        crash((tamiz_sim_crash)(1 + round % 5), NULL, (uint64_t)round + 1);
        assert_true(survey().digest == before.digest);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_power_cut_forgets_what_was_not_synced),
        TEST(a_killed_process_loses_nothing_but_is_not_synced_by_it),
        TEST(names_change_with_the_directorys_sync_alone),
        TEST(a_new_directory_lasts_once_its_parent_is_synced),
        TEST(replacing_a_file_survives_at_every_call),
        TEST(tearing_takes_only_unsynced_bytes_of_the_newest_file),
        TEST(zeros_and_junk_take_only_unsynced_bytes),
        TEST(reordering_leaves_each_sector_at_some_version),
        TEST(reordering_lets_each_name_survive_on_its_own),
        TEST(truncation_is_a_change_like_any_other),
        TEST(the_nth_call_fails_once),
        TEST(a_sticky_fault_stays_until_it_is_cleared),
        TEST(a_fault_after_the_effect_leaves_the_effect),
        TEST(each_kind_of_call_can_fail),
        TEST(short_transfers_do_a_part),
        TEST(a_sync_that_lost_its_data_cannot_be_repaired_by_another),
        TEST(reads_can_lie),
        TEST(senseless_faults_are_refused),
        TEST(a_stopped_machine_does_nothing_until_the_crash),
        TEST(the_disk_is_full_to_the_byte),
        TEST(open_files_are_limited_exactly),
        TEST(the_clock_is_the_tests),
        TEST(a_watcher_sees_each_call_before_it_happens),
        TEST(the_simulated_machine_answers_like_the_real_one),
        TEST(a_second_power_cut_loses_nothing_more),
        TEST(everything_synced_survives_every_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
