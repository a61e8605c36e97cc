/* SPDX-License-Identifier: MIT
 *
 * Each allocation of the env's calls fails once: an error, nothing leaked, nothing half done.
 */
#include "support/alloc_fail.h"

#include <string.h>

#include "env/env.h"
#include "env/epoch.h"

/* The env in memory has no read_many; here it has one. */
static const tamiz_env_ops *plain;

static void read_many(void *ctx, tamiz_read_request *requests, size_t n)
{
    for (size_t i = 0; i < n; i++)
        requests[i].result = plain->read(ctx, requests[i].file, requests[i].offset,
                                         requests[i].buffer, requests[i].size);
}

/* The whole of the floor that allocates, on a fresh machine. */
static tamiz_status use_all(struct op *op, const tamiz_env *env)
{
    struct buf content = buf_init(op->alloc);
    struct file *direct = NULL;
    struct file_request requests[3];
    char bytes[3][6000];
    struct epoch epoch = {0};
    tamiz_status st;
    TRY(env_make_directory(op, env, "a/b"));
    TRY(env_replace_file(op, env, "a/b", "a/b/tmp", "a/b/f", IO_META, slice_of(bytes, 0)));
    TRY(file_open(op, env, "a/f", TAMIZ_OPEN_READ | TAMIZ_OPEN_DIRECT, &direct));
    TRY(file_read(op, direct, IO_DATA, 1, bytes, sizeof bytes));
    for (size_t i = 0; i < 3; i++)
        requests[i] = (struct file_request){direct, i * 3, bytes[i], sizeof bytes[i], TAMIZ_OK};
    file_read_many(op, IO_DATA, requests, 3);
    for (size_t i = 0; i < 3; i++)
        if (requests[i].status < 0)
            TRY(op_fail(op, requests[i].status, "request %zu", i));
    TRY(env_read_file(op, env, "a/f", IO_META, 1 << 20, &content));
    TRY(epoch_init(op, &epoch, op->alloc));
done:
    epoch_free(&epoch);
    buf_free(&content);
    const tamiz_status closed = file_close(op, direct);
    return st < 0 ? st : closed;
}

static tamiz_env *machine_new(void)
{
    static char bytes[20000];
    struct test_op t;
    struct file *f;
    test_op_init(&t);
    static tamiz_env_ops ops;
    tamiz_env *env = tamiz_env_memory_new();
    assert_non_null(env);
    plain = env->ops;
    ops = *env->ops;
    ops.read_many = read_many;
    env->ops = &ops;
    assert_status(&t.op, env_make_directory(&t.op, env, "a"), TAMIZ_OK);
    assert_status(&t.op, file_open(&t.op, env, "a/f", TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &f),
                  TAMIZ_OK);
    assert_status(&t.op, file_write(&t.op, f, IO_DATA, 0, bytes, sizeof bytes), TAMIZ_OK);
    assert_status(&t.op, file_close(&t.op, f), TAMIZ_OK);
    return env;
}

static void each_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    for (int sticky = 0; sticky < 2; sticky++) {
        bool finished = false;
        uint64_t nth = 0;
        while (!finished) {
            struct alloc_fail a;
            struct test_op t;
            tamiz_env *env = machine_new();
            alloc_fail_init(&a);
            alloc_fail_at(&a, ++nth, sticky);
            test_op_init(&t);
            t.op.alloc = &a.alloc;
            const tamiz_status st = use_all(&t.op, env);
            finished = a.failed == 0;
            if (finished)
                assert_status(&t.op, st, TAMIZ_OK);
            else if (st != TAMIZ_OK) /* many reads may do without their common buffer */
                assert_status(&t.op, st, TAMIZ_OUT_OF_MEMORY);
            alloc_fail_done(&a);
            tamiz_env_memory_free(env);
        }
        assert_int_equal(nth, 1 + 8); /* so many there are */
    }
}

static void the_allocator_itself_counts_and_checks(void **state)
{
    (void)state;
    struct alloc_fail a;
    alloc_fail_init(&a);
    void *p = mem_new(&a.alloc, 10);
    p = mem_resize(&a.alloc, p, 10, 30);
    assert_non_null(p);
    assert_true(a.blocks == 1 && a.bytes == 30 && a.most_bytes == 30 && a.asked == 2);
    alloc_fail_at(&a, 2, false);
    void *q = mem_new(&a.alloc, 1);
    assert_non_null(q);
    assert_null(mem_resize(&a.alloc, q, 1, 5));
    assert_int_equal(a.failed, 1);
    mem_free(&a.alloc, q, 1);
    mem_free(&a.alloc, p, 29); /* wrong */
    assert_int_equal(a.wrong, 1);
    a.wrong = 0;
    alloc_fail_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failing_allocation_is_an_error_and_leaks_nothing),
        cmocka_unit_test(the_allocator_itself_counts_and_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
