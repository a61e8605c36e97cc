/* SPDX-License-Identifier: MIT
 *
 * What only the real file system has: modes, symbolic links, fifos, other processes.
 * LABEL: threads
 */
#define _GNU_SOURCE /* mkfifo, symlink */
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/env.h"
#include "env/thread.h"

static char root[64];
static struct test_op t;
static const tamiz_env *env;

static int setup(void **state)
{
    (void)state;
    test_op_init(&t);
    env = tamiz_env_posix();
    test_directory_make(root, sizeof root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_directory_remove(root);
    return 0;
}

static const char *at(const char *name)
{
    static char paths[4][128];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

#define OK(call) assert_status(&t.op, (call), TAMIZ_OK)
#define REFUSED(call, error)                                                                       \
    do {                                                                                           \
        assert_status(&t.op, (call), TAMIZ_IO_ERROR);                                              \
        assert_int_equal(t.op.os_error, (error));                                                  \
        op_forgive(&t.op);                                                                         \
    } while (0)

static void make_file(const char *name)
{
    struct file *f;
    OK(file_open(&t.op, env, at(name), TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f));
    OK(file_write(&t.op, f, IO_META, 0, "text", 4));
    OK(file_close(&t.op, f));
}

static mode_t mode_of(const char *name)
{
    struct stat s;
    assert_int_equal(lstat(at(name), &s), 0);
    return s.st_mode & 0777;
}

static void files_and_directories_are_the_owners_alone(void **state)
{
    (void)state;
    void *lock;
    const mode_t before = umask(0);
    make_file("f");
    OK(env_make_directory(&t.op, env, at("d")));
    OK(env_lock(&t.op, env, at("LOCK"), &lock));
    OK(env_unlock(&t.op, env, lock));
    (void)umask(before);
    assert_int_equal(mode_of("f"), 0600);
    assert_int_equal(mode_of("LOCK"), 0600);
    assert_int_equal(mode_of("d"), 0700);
}

static void nothing_is_written_through_a_symbolic_link(void **state)
{
    (void)state;
    struct file *f;
    void *lock;
    make_file("f");
    assert_int_equal(symlink("f", at("link")), 0);
    assert_int_equal(symlink("nothing", at("dangling")), 0);
    REFUSED(file_open(&t.op, env, at("link"), TAMIZ_OPEN_WRITE, &f), ELOOP);
    REFUSED(file_open(&t.op, env, at("dangling"), TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f),
            EEXIST);
    REFUSED(env_lock(&t.op, env, at("dangling"), &lock), ELOOP);
    assert_int_not_equal(access(at("nothing"), F_OK), 0);
    OK(file_open(&t.op, env, at("link"), TAMIZ_OPEN_READ, &f));
    OK(file_close(&t.op, f));
}

static void a_fifo_in_place_of_a_file_does_not_hang(void **state)
{
    (void)state;
    struct file *f;
    void *lock;
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    REFUSED(file_open(&t.op, env, at("fifo"), TAMIZ_OPEN_READ, &f), ENXIO);
    REFUSED(file_open(&t.op, env, at("fifo"), TAMIZ_OPEN_WRITE, &f), ENXIO);
    REFUSED(env_lock(&t.op, env, at("fifo"), &lock), ENXIO);
}

/* Runs in a child; its exit code is the answer. */
static int try_lock_elsewhere(const char *want_in_text)
{
    const pid_t child = fork();
    if (child == 0) {
        void *lock;
        const tamiz_status st = env_lock(&t.op, env, at("LOCK"), &lock);
        _exit(st == TAMIZ_BUSY && strstr(t.op.text, want_in_text) ? 1 : st == TAMIZ_OK ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void another_process_is_told_who_holds_the_lock(void **state)
{
    (void)state;
    void *lock;
    char words[64];
    (void)snprintf(words, sizeof words, "pid %ld, since 20", (long)getpid());
    OK(env_lock(&t.op, env, at("LOCK"), &lock));
    assert_int_equal(try_lock_elsewhere(words), 1);
    /* What fcntl's locks get wrong: opening and closing the file elsewhere in this process. */
    const int fd = open(at("LOCK"), O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(try_lock_elsewhere(words), 1);
    OK(env_unlock(&t.op, env, lock));
    assert_int_equal(try_lock_elsewhere(words), 0);
    OK(env_lock(&t.op, env, at("LOCK"), &lock)); /* a dead process's lock is free */
    OK(env_unlock(&t.op, env, lock));
}

static void a_child_that_outlives_the_handle_does_not_keep_the_lock(void **state)
{
    (void)state;
    void *lock;
    int pipe_ends[2];
    OK(env_lock(&t.op, env, at("LOCK"), &lock));
    assert_int_equal(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        (void)close(pipe_ends[1]);
        _exit(read(pipe_ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    OK(env_unlock(&t.op, env, lock));
    OK(env_lock(&t.op, env, at("LOCK"), &lock));
    OK(env_unlock(&t.op, env, lock));
    (void)close(pipe_ends[0]);
    (void)close(pipe_ends[1]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

struct removers {
    _Atomic int inside, locked, wrong;
};

/* As destroying a store does it: under the lock, the lock's file goes last. */
static void lock_remove_unlock(void *ctx)
{
    struct removers *r = ctx;
    struct test_op own;
    test_op_init(&own);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/LOCK", root);
    while (atomic_load(&r->locked) < 3000) {
        void *lock;
        const tamiz_status st = env_lock(&own.op, env, path, &lock);
        op_forgive(&own.op);
        if (st < 0)
            continue;
        atomic_fetch_add(&r->locked, 1);
        if (atomic_fetch_add(&r->inside, 1) != 0)
            atomic_fetch_add(&r->wrong, 1);
        thread_yield();
        atomic_fetch_sub(&r->inside, 1);
        if (env_remove(&own.op, env, path) < 0) /* from here on a new one may be made and locked */
            atomic_fetch_add(&r->wrong, 1);
        if (env_unlock(&own.op, env, lock) < 0)
            atomic_fetch_add(&r->wrong, 1);
    }
}

static void removing_the_lock_file_never_lets_two_in(void **state)
{
    (void)state;
    struct removers r = {0};
    struct thread threads[3];
    for (int i = 0; i < 3; i++)
        OK(thread_start(&t.op, &threads[i], "remover", lock_remove_unlock, &r));
    for (int i = 0; i < 3; i++)
        thread_join(&threads[i]);
    assert_int_equal(r.wrong, 0);
}

static void a_strangers_lock_file_cannot_garble_the_message(void **state)
{
    (void)state;
    void *lock, *second;
    OK(env_lock(&t.op, env, at("LOCK"), &lock));
    FILE *f = fopen(at("LOCK"), "w");
    assert_non_null(f);
    assert_true(fputs("\033[31mevil\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_status(&t.op, env_lock(&t.op, env, at("LOCK"), &second), TAMIZ_BUSY);
    assert_null(strchr(t.op.text, '\033'));
    assert_non_null(strstr(t.op.text, "unknown holder"));
    op_forgive(&t.op);
    OK(env_unlock(&t.op, env, lock));
}

static void many_reads(struct file *f)
{
    uint8_t bytes[40][2];
    struct file_request r[40];
    for (size_t i = 0; i < 40; i++)
        r[i] = (struct file_request){f, 2 * i, bytes[i], 2, TAMIZ_IO_ERROR};
    file_read_many(&t.op, IO_DATA, r, 40);
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(r[i].status, TAMIZ_OK);
        assert_int_equal(bytes[i][0], 2 * i);
        assert_int_equal(bytes[i][1], 2 * i + 1);
    }
}

static void many_reads_work_on_both_sides_of_a_fork(void **state)
{
    (void)state;
    struct file *f;
    uint8_t bytes[80];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    print_message("%s\n", env->ops->read_many_name(env->ctx));
    OK(file_open(&t.op, env, at("f"), TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f));
    OK(file_write(&t.op, f, IO_DATA, 0, bytes, sizeof bytes));
    many_reads(f);
    const pid_t child = fork();
    if (child == 0) {
        many_reads(f);
        _exit(strcmp(env->ops->read_many_name(env->ctx), "io_uring") == 0 ? 0 : 3);
    }
    many_reads(f);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    const bool ring = strcmp(env->ops->read_many_name(env->ctx), "io_uring") == 0;
    assert_int_equal(WEXITSTATUS(status), ring ? 0 : 3);
    many_reads(f);
    OK(file_close(&t.op, f));
}

static void a_refused_read_is_an_error_of_its_request_alone(void **state)
{
    (void)state;
    struct file *good, *bad;
    char b[2][4];
    make_file("good");
    make_file("bad");
    OK(file_open(&t.op, env, at("good"), TAMIZ_OPEN_READ, &good));
    OK(file_open(&t.op, env, at("bad"), TAMIZ_OPEN_WRITE, &bad)); /* not for reading */
    struct file_request r[] = {{bad, 0, b[0], 4, TAMIZ_OK}, {good, 0, b[1], 4, TAMIZ_IO_ERROR}};
    file_read_many(&t.op, IO_DATA, r, 2);
    assert_int_equal(r[0].status, TAMIZ_IO_ERROR);
    assert_int_equal(r[1].status, TAMIZ_OK);
    assert_memory_equal(b[1], "text", 4);
    assert_int_equal(t.op.status, TAMIZ_OK);
    OK(file_close(&t.op, good));
    OK(file_close(&t.op, bad));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_and_directories_are_the_owners_alone),
        TEST(nothing_is_written_through_a_symbolic_link),
        TEST(a_fifo_in_place_of_a_file_does_not_hang),
        TEST(another_process_is_told_who_holds_the_lock),
        TEST(a_child_that_outlives_the_handle_does_not_keep_the_lock),
        TEST(removing_the_lock_file_never_lets_two_in),
        TEST(a_strangers_lock_file_cannot_garble_the_message),
        TEST(many_reads_work_on_both_sides_of_a_fork),
        TEST(a_refused_read_is_an_error_of_its_request_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
