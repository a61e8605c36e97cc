/* SPDX-License-Identifier: MIT
 *
 * What the tests of the simulated machine share: the machine that the running test has, and short
 * words for what is done to it.
 */
#ifndef TAMIZ_SIM_KIT_H
#define TAMIZ_SIM_KIT_H

#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "env/env.h"
#include "tamiz/env_sim.h"

static struct test_op t;
static tamiz_env_sim *sim;
static const tamiz_env *env;

static inline int setup(void **state)
{
    (void)state;
    test_op_init(&t);
    sim = tamiz_env_sim_new(7);
    assert_non_null(sim);
    env = tamiz_env_sim_env(sim);
    return 0;
}

static inline int teardown(void **state)
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

static inline struct file *open_file(const char *path, int flags)
{
    struct file *f;
    OK(file_open(&t.op, env, path, flags, &f));
    return f;
}

static inline struct file *create(const char *path)
{
    return open_file(path, TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE);
}

static inline void write_at(struct file *f, uint64_t offset, const char *text)
{
    OK(file_write(&t.op, f, IO_DATA, offset, text, strlen(text)));
}

static inline void make(const char *path, const char *text, bool synced)
{
    struct file *f = create(path);
    write_at(f, 0, text);
    if (synced)
        OK(file_sync(&t.op, f));
    OK(file_close(&t.op, f));
}

static inline bool exists(const char *path)
{
    bool there;
    tamiz_file_info info;
    OK(env_path_info(&t.op, env, path, &there, &info));
    return there;
}

/* "-" where there is no such file. In a static buffer. */
static inline const char *content(const char *path)
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

static inline void crash(tamiz_sim_crash mode, const char *name, uint64_t n)
{
    tamiz_env_sim_crash(sim, mode, name, n);
}

static inline void sync_root(void)
{
    OK(env_sync_directory(&t.op, env, "/"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
