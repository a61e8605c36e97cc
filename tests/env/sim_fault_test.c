/* SPDX-License-Identifier: MIT
 *
 * What the simulated machine breaks, refuses and lets others watch.
 */
#include "env/sim_kit.h"

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
    make("g", "123", false);
    OK(env_link(&t.op, env, "f", "h"));
    OK(env_rename(&t.op, env, "g", "f"));
    assert_int_equal(tamiz_env_sim_disk_used(sim), 8);
    OK(env_remove(&t.op, env, "h")); /* the last name of the replaced file */
    assert_int_equal(tamiz_env_sim_disk_used(sim), 3);
    OK(env_remove(&t.op, env, "f"));
    assert_int_equal(tamiz_env_sim_disk_used(sim), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
