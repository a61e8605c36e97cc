/* SPDX-License-Identifier: MIT */
#include "version/listing.h"

#include "support/test.h"

#include "tamiz/env.h"

static void make(struct op *op, const tamiz_env *env, const char *path)
{
    struct file *file = NULL;
    assert_status(op, file_open(op, env, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file),
                  TAMIZ_OK);
    assert_status(op, file_close(op, file), TAMIZ_OK);
}

/* A directory with files of ours and of others. */
static tamiz_env *directory(struct op *op)
{
    static const char *const names[] = {"000010.log", "000002.log",      "000033.sst",
                                        "CURRENT",    "MANIFEST-000007", "LOCK",
                                        "notes.txt",  "99.log",          "000009.sst.old"};
    tamiz_env *env = tamiz_env_memory_new();
    assert_non_null(env);
    assert_status(op, env_make_directory(op, env, "d"), TAMIZ_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[40];
        (void)snprintf(path, sizeof path, "d/%s", names[i]);
        make(op, env, path);
    }
    return env;
}

static void files_are_listed_by_kind_with_ascending_numbers(void **state)
{
    (void)state;
    struct test_op t;
    struct listing l;
    test_op_init(&t);
    tamiz_env *env = directory(&t.op);
    listing_init(&l, &alloc_libc);
    for (int again = 0; again < 2; again++) {
        assert_status(&t.op, listing_take(&t.op, env, "d", &l), TAMIZ_OK);
        assert_int_equal(listing_count(&l, FILE_LOG), 2);
        assert_int_equal(listing_numbers(&l, FILE_LOG)[0], 2);
        assert_int_equal(listing_numbers(&l, FILE_LOG)[1], 10);
        assert_int_equal(listing_count(&l, FILE_TABLE), 1);
        assert_int_equal(listing_count(&l, FILE_MANIFEST), 1);
        assert_int_equal(listing_count(&l, FILE_CURRENT), 1);
        assert_int_equal(listing_count(&l, FILE_CURRENT_NEW), 0);
        assert_int_equal(l.largest, 33);
    }
    assert_true(listing_has(&l, FILE_TABLE, 33));
    assert_false(listing_has(&l, FILE_TABLE, 10));
    assert_false(listing_has(&l, FILE_CURRENT_NEW, 0));
    listing_free(&l);
    tamiz_env_memory_free(env);
}

static void a_kind_is_removed_and_the_rest_stays(void **state)
{
    (void)state;
    struct test_op t;
    struct listing l;
    bool exists;
    tamiz_file_info info;
    test_op_init(&t);
    tamiz_env *env = directory(&t.op);
    listing_init(&l, &alloc_libc);
    assert_status(&t.op, listing_take(&t.op, env, "d", &l), TAMIZ_OK);
    assert_status(&t.op, listing_remove(&t.op, env, "d", &l, FILE_LOG), TAMIZ_OK);
    assert_status(&t.op, listing_take(&t.op, env, "d", &l), TAMIZ_OK);
    assert_int_equal(listing_count(&l, FILE_LOG), 0);
    assert_int_equal(listing_count(&l, FILE_TABLE), 1);
    assert_status(&t.op, env_path_info(&t.op, env, "d/99.log", &exists, &info), TAMIZ_OK);
    assert_true(exists);
    listing_free(&l);
    tamiz_env_memory_free(env);
}

static void a_directory_without_our_files_is_empty(void **state)
{
    (void)state;
    struct test_op t;
    struct listing l;
    test_op_init(&t);
    tamiz_env *env = tamiz_env_memory_new();
    listing_init(&l, &alloc_libc);
    assert_status(&t.op, listing_take(&t.op, env, "d", &l), TAMIZ_IO_ERROR);
    op_forgive(&t.op);
    assert_status(&t.op, env_make_directory(&t.op, env, "d"), TAMIZ_OK);
    make(&t.op, env, "d/notes.txt");
    assert_status(&t.op, listing_take(&t.op, env, "d", &l), TAMIZ_OK);
    assert_true(listing_is_empty(&l));
    make(&t.op, env, "d/LOCK");
    assert_status(&t.op, listing_take(&t.op, env, "d", &l), TAMIZ_OK);
    assert_false(listing_is_empty(&l));
    assert_int_equal(l.largest, 0);
    listing_free(&l);
    tamiz_env_memory_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_listed_by_kind_with_ascending_numbers),
        cmocka_unit_test(a_kind_is_removed_and_the_rest_stays),
        cmocka_unit_test(a_directory_without_our_files_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
