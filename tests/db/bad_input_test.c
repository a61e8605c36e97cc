/* SPDX-License-Identifier: MIT
 *
 * A store on a disk that went bad, and callers who ask for what there is not. Whatever byte of
 * whatever file is cut off or flipped: every answer is right or an error that names the file;
 * nothing crashes, nothing is silently missing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env/env.h"
#include "support/store.h"
#include "version/filename.h"

enum { KEYS = 120 };

#define OPTIONS "threads=0 compaction=off block=256"

static void key_of(int i, char *out)
{
    (void)snprintf(out, 16, "key%05d", i);
}

/* Two tables and a log; closed, so that everything is sealed. */
static void make_store(const tamiz_env *env)
{
    tamiz *db = test_open("s", OPTIONS, env);
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        key_of(i, key);
        test_put(db, key, i % 3 ? "a value that is there" : "another");
        if (i == KEYS / 3 || i == 2 * KEYS / 3)
            assert_public(tamiz_flush(db), TAMIZ_OK);
    }
    test_close(db);
}

/* One file of the store, and its bytes. */
struct victim {
    char path[96];
    uint8_t *bytes;
    size_t size;
};

struct victims {
    const tamiz_env *env;
    struct victim at[16];
    size_t count;
};

static void collect(void *ctx, const char *name)
{
    struct victims *v = ctx;
    uint64_t number;
    const enum file_kind kind = filename_parse(name, &number);
    if (kind == FILE_OTHER || kind == FILE_LOCK)
        return; /* what stands in the lock file is for people */
    assert_true(v->count < sizeof v->at / sizeof *v->at);
    struct victim *one = &v->at[v->count++];
    (void)snprintf(one->path, sizeof one->path, "s/%s", name);
    struct test_op t;
    test_op_init(&t);
    struct buf content = buf_init(&alloc_libc);
    assert_status(&t.op, env_read_file(&t.op, v->env, one->path, IO_META, 1 << 24, &content),
                  TAMIZ_OK);
    one->bytes = content.data;
    one->size = content.size;
}

/* Puts `size` bytes in the place of the file, or of what is there. */
static void put_file(const tamiz_env *env, const char *path, const uint8_t *bytes, size_t size)
{
    struct test_op t;
    struct file *file;
    test_op_init(&t);
    (void)env_remove(&t.op, env, path);
    op_forgive(&t.op);
    assert_status(&t.op, file_open(&t.op, env, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file),
                  TAMIZ_OK);
    if (size)
        assert_status(&t.op, file_write(&t.op, file, IO_META, 0, bytes, size), TAMIZ_OK);
    assert_status(&t.op, file_close(&t.op, file), TAMIZ_OK);
}

static void restore(const struct victims *v)
{
    struct victims now = {.env = v->env};
    assert_int_equal(v->env->ops->list(v->env->ctx, "s", collect, &now), 0);
    for (size_t i = 0; i < now.count; i++) {
        assert_int_equal(v->env->ops->remove(v->env->ctx, now.at[i].path), 0);
        mem_free(&alloc_libc, now.at[i].bytes, now.at[i].size);
    }
    for (size_t i = 0; i < v->count; i++)
        put_file(v->env, v->at[i].path, v->at[i].bytes, v->at[i].size);
}

/* Opens and reads everything; true: something was refused. The words must name the file. */
static bool read_everything(const struct victims *v, const char *damaged)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *db;
    assert_public(tamiz_options_set(&o, OPTIONS " read_only=true"), TAMIZ_OK);
    o.env = v->env;
    const tamiz_status opened = tamiz_open("s", &o, &db);
    const char *name = strrchr(damaged, '/') + 1;
    if (opened != TAMIZ_OK) {
        assert_true(opened == TAMIZ_CORRUPTION || opened == TAMIZ_NOT_SUPPORTED);
        if (!strstr(tamiz_error_detail(), name) && strcmp(name, "CURRENT") != 0)
            fail_msg("%s damaged: the detail is \"%s\"", name, tamiz_error_detail());
        return true;
    }
    bool refused = false;
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        void *value;
        size_t size;
        key_of(i, key);
        const tamiz_status st = tamiz_get(db, key, strlen(key), &value, &size, NULL);
        if (st == TAMIZ_CORRUPTION || st == TAMIZ_NOT_SUPPORTED) {
            refused = true;
            assert_non_null(strstr(tamiz_error_detail(), name));
            continue;
        }
        const char *want = i % 3 ? "a value that is there" : "another";
        if (st != TAMIZ_OK || size != strlen(want) || memcmp(value, want, size) != 0)
            fail_msg("%s damaged: %s is %s", damaged, key, tamiz_status_name(st));
        tamiz_free(value);
    }
    test_close(db);
    return refused;
}

static void no_damaged_byte_of_any_file_goes_for_a_wrong_answer(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    struct victims v = {.env = env};
    make_store(env);
    assert_int_equal(env->ops->list(env->ctx, "s", collect, &v), 0);
    assert_true(v.count >= 5); /* CURRENT, manifest, two tables, log */
    size_t told = 0, tried = 0;
    for (size_t i = 0; i < v.count; i++) {
        const struct victim *one = &v.at[i];
        for (size_t at = 0; at < one->size; at++) {
            one->bytes[at] ^= 0x21;
            put_file(env, one->path, one->bytes, one->size);
            told += read_everything(&v, one->path);
            tried++;
            one->bytes[at] ^= 0x21;
        }
        put_file(env, one->path, one->bytes, one->size);
    }
    restore(&v);
    assert_false(read_everything(&v, v.at[0].path));
    assert_true(told >
                tried * 9 /
                    10); /* the rest: filters, which may be damaged without harm, and padding */
    for (size_t i = 0; i < v.count; i++)
        mem_free(&alloc_libc, v.at[i].bytes, v.at[i].size);
    tamiz_env_memory_free(env);
}

static void no_truncated_table_or_manifest_goes_for_a_wrong_answer(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    struct victims v = {.env = env};
    make_store(env);
    assert_int_equal(env->ops->list(env->ctx, "s", collect, &v), 0);
    for (size_t i = 0; i < v.count; i++) {
        const struct victim *one = &v.at[i];
        const size_t length = strlen(one->path);
        if (strcmp(one->path + length - 4, ".log") == 0)
            continue; /* a log that lost its tail is what a crash leaves: see the cases R07 to R10
                       */
        for (size_t size = 0; size < one->size; size++) {
            put_file(env, one->path, one->bytes, size);
            const bool refused = read_everything(&v, one->path);
            /* What only seals the manifest may go. */
            assert_true(refused || strstr(one->path, "MANIFEST"));
        }
        put_file(env, one->path, one->bytes, one->size);
    }
    assert_false(read_everything(&v, v.at[0].path));
    for (size_t i = 0; i < v.count; i++)
        mem_free(&alloc_libc, v.at[i].bytes, v.at[i].size);
    tamiz_env_memory_free(env);
}

static void what_is_no_store_is_refused_with_words(void **state)
{
    (void)state;
    char directory[64], path[128];
    tamiz *db;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    test_directory_make(directory, sizeof directory);
    (void)snprintf(path, sizeof path, "%s/file", directory);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fclose(f);
    assert_int_equal(tamiz_open(path, NULL, &db), TAMIZ_INVALID_ARGUMENT);
    assert_non_null(strstr(tamiz_error_detail(), path));
    (void)snprintf(path, sizeof path, "%s/missing/parent", directory);
    assert_int_equal(tamiz_open(path, NULL, &db), TAMIZ_IO_ERROR);
    assert_non_null(strstr(tamiz_error_detail(), path));
    (void)snprintf(path, sizeof path, "%s/none", directory);
    o.create_if_missing = false;
    assert_int_equal(tamiz_open(path, &o, &db), TAMIZ_NOT_FOUND);
    assert_non_null(strstr(tamiz_error_detail(), path));
    assert_int_equal(access(path, F_OK), -1);
    if (geteuid() != 0) { /* root may everywhere */
        (void)snprintf(path, sizeof path, "%s/closed", directory);
        assert_int_equal(mkdir(path, 0500), 0);
        assert_int_equal(tamiz_open(path, NULL, &db), TAMIZ_IO_ERROR);
        assert_non_null(strstr(tamiz_error_detail(), "ermission"));
    }
    test_directory_remove(directory);
}

static void a_store_of_a_newer_format_is_refused_by_name(void **state)
{
    (void)state;
    tamiz_env *env = tamiz_env_memory_new();
    struct victims v = {.env = env};
    make_store(env);
    assert_int_equal(env->ops->list(env->ctx, "s", collect, &v), 0);
    for (size_t i = 0; i < v.count; i++) {
        struct victim *one = &v.at[i];
        if (strstr(one->path, "CURRENT"))
            continue;
        struct victim newer = *one;
        newer.bytes = mem_new(&alloc_libc, one->size);
        memcpy(newer.bytes, one->bytes, one->size);
        newer.bytes[8]++; /* the version stands behind the magic in every file; its checksum is not
                             repaired here */
        put_file(env, one->path, newer.bytes, newer.size);
        assert_true(read_everything(&v, one->path));
        put_file(env, one->path, one->bytes, one->size);
        mem_free(&alloc_libc, newer.bytes, one->size);
    }
    for (size_t i = 0; i < v.count; i++)
        mem_free(&alloc_libc, v.at[i].bytes, v.at[i].size);
    tamiz_env_memory_free(env);
}

static void a_second_handle_is_told_who_holds_the_store(void **state)
{
    (void)state;
    char directory[64], alias[160];
    tamiz *db, *second;
    test_directory_make(directory, sizeof directory);
    db = test_open(directory, "threads=0", NULL);
    (void)snprintf(alias, sizeof alias, "%s/../%s", directory, directory);
    assert_int_equal(tamiz_open(directory, NULL, &second), TAMIZ_BUSY);
    assert_int_equal(tamiz_open(alias, NULL, &second), TAMIZ_BUSY);
    char pid[24];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    if (!strstr(tamiz_error_detail(), pid))
        fail_msg("the detail does not name process %s: %s", pid, tamiz_error_detail());
    assert_int_equal(tamiz_destroy(directory), TAMIZ_BUSY);
    test_put(db, "k", "v");
    test_close(db);
    db = test_open(directory, "threads=0", NULL);
    test_expect(db, "k", "v", NULL);
    test_close(db);
    test_directory_remove(directory);
}

/* Another program's store: refused, and as it was. */
static void a_foreign_directory_is_left_as_it_was(void **state)
{
    static const char current[] = "MANIFEST-000004\n", manifest[] = "leveldb.BytewiseComparator";
    tamiz_env *env = tamiz_env_memory_new();
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *db;
    (void)state;
    o.env = env;
    assert_int_equal(env->ops->make_directory(env->ctx, "other"), 0);
    put_file(env, "other/CURRENT", (const uint8_t *)current, sizeof current - 1);
    put_file(env, "other/MANIFEST-000004", (const uint8_t *)manifest, sizeof manifest - 1);
    assert_true(tamiz_open("other", &o, &db) < 0);
    assert_int_equal(test_count_files(env, "other", ""), 2);
    tamiz_env_memory_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_directory_is_left_as_it_was),
        cmocka_unit_test(no_damaged_byte_of_any_file_goes_for_a_wrong_answer),
        cmocka_unit_test(no_truncated_table_or_manifest_goes_for_a_wrong_answer),
        cmocka_unit_test(what_is_no_store_is_refused_with_words),
        cmocka_unit_test(a_store_of_a_newer_format_is_refused_by_name),
        cmocka_unit_test(a_second_handle_is_told_who_holds_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
