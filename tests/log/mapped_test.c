/* SPDX-License-Identifier: MIT
 *
 * A log that is stored through a mapping is the same file, byte for byte, as one that is written by
 * calls, and counts the same.
 */
#include <string.h>

#include "log/log.h"
#include "support/test.h"
#include "tamiz/tamiz.h"

enum { STEP = 64 << 10 };

/* The posix env without its mapping: every record by a write call. */
static tamiz_env without_map(tamiz_env_ops *room)
{
    *room = *tamiz_env_posix()->ops;
    room->map = NULL;
    return (tamiz_env){room, NULL};
}

static void fill(struct test_op *t, const tamiz_env *env, const char *path, struct buf *bytes)
{
    const struct log_header header = {
        .kind = LOG_WAL, .file_id = 77, .number = 3, .first = 1, .boot_id = 5};
    struct test_random random = {1};
    struct log_writer w;
    assert_status(&t->op, log_create(&t->op, env, &alloc_libc, path, IO_LOG, &header, STEP, &w),
                  TAMIZ_OK);
    static uint8_t body[3 * STEP];
    for (int i = 0; i < 3000; i++) {
        const size_t size = 1 + test_random_below(&random, i % 500 == 499 ? sizeof body : 300);
        memset(body, i & 0xff, size);
        const struct slice pieces[2] = {slice_of(body, size / 2),
                                        slice_of(body + size / 2, size - size / 2)};
        assert_status(&t->op, log_append(&t->op, &w, pieces, 2), TAMIZ_OK);
        if (i % 1000 == 0)
            assert_status(&t->op, log_sync(&t->op, &w), TAMIZ_OK);
    }
    assert_status(&t->op, log_seal(&t->op, &w), TAMIZ_OK);
    assert_status(&t->op, log_close(&t->op, &w), TAMIZ_OK);
    assert_status(&t->op, env_read_file(&t->op, env, path, IO_LOG, 64 << 20, bytes), TAMIZ_OK);
}

static void a_mapped_log_is_the_same_file_as_a_written_one(void **state)
{
    (void)state;
    char directory[64], mapped_path[96], written_path[96];
    struct test_op mapped, written;
    tamiz_env_ops room;
    const tamiz_env plain = without_map(&room);
    struct buf a = buf_init(&alloc_libc), b = buf_init(&alloc_libc);
    test_op_init(&mapped);
    test_op_init(&written);
    test_directory_make(directory, sizeof directory);
    (void)snprintf(mapped_path, sizeof mapped_path, "%s/mapped.log", directory);
    (void)snprintf(written_path, sizeof written_path, "%s/written.log", directory);
    fill(&mapped, tamiz_env_posix(), mapped_path, &a);
    fill(&written, &plain, written_path, &b);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    assert_int_equal(counter_get(&mapped.count.io[IO_LOG].writes),
                     counter_get(&written.count.io[IO_LOG].writes));
    assert_int_equal(counter_get(&mapped.count.io[IO_LOG].write_bytes),
                     counter_get(&written.count.io[IO_LOG].write_bytes));
    buf_free(&a);
    buf_free(&b);
    test_directory_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mapped_log_is_the_same_file_as_a_written_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
