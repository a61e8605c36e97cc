/* SPDX-License-Identifier: MIT */
#include "version/filename.h"

#include <string.h>

#include "support/test.h"

static void names_come_back_as_what_they_were(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {1, 12, 999999, 1000000, FILE_NUMBER_END - 1};
    for (int kind = FILE_CURRENT; kind <= FILE_TABLE; kind++) {
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            char name[FILE_NAME_MAX];
            uint64_t number;
            filename_format((enum file_kind)kind, numbers[i], name);
            assert_int_equal(filename_parse(name, &number), kind);
            assert_true(number == (kind >= FILE_MANIFEST ? numbers[i] : 0));
        }
    }
}

static void names_look_as_documented(void **state)
{
    (void)state;
    char name[FILE_NAME_MAX];
    filename_format(FILE_TABLE, 12, name);
    assert_string_equal(name, "000012.sst");
    filename_format(FILE_MANIFEST, 7, name);
    assert_string_equal(name, "MANIFEST-000007");
    filename_format(FILE_LOG, 1234567, name);
    assert_string_equal(name, "1234567.log");
    char *path = filename_path(&alloc_libc, "a/b", FILE_CURRENT, 0);
    assert_string_equal(path, "a/b/CURRENT");
    mem_free_text(&alloc_libc, path);
}

static void what_we_would_not_write_is_not_ours(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        ".",
        "CURRENT.",
        "CURRENT.ne",
        "CURRENT.new2",
        "current",
        "LOCK ",
        "12.log",
        "0000012.log",
        "000000.log",
        "000012.LOG",
        "000012.logs",
        "000012",
        ".log",
        "000012.sst.tmp",
        "-00012.sst",
        "+00012.sst",
        " 000012.sst",
        "MANIFEST",
        "MANIFEST-",
        "MANIFEST-7",
        "MANIFEST-000000",
        "MANIFEST-000007x",
        "MANIFEST-000007.log",
        "4611686018427387904.sst",  /* 2^62 */
        "18446744073709551617.sst", /* 2^64 + 1 */
        "999999999999999999999999999999999999999999999999999999999999999999999999.sst"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint64_t number = 99;
        if (filename_parse(others[i], &number) != FILE_OTHER || number != 0)
            fail_msg("%s was taken for ours", others[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_back_as_what_they_were),
        cmocka_unit_test(names_look_as_documented),
        cmocka_unit_test(what_we_would_not_write_is_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
