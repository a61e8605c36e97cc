/* SPDX-License-Identifier: MIT
 *
 * Compression by level: a table is packed as its level says, through flush, merge, ingestion and
 * repair, and what was packed in whatever way is read.
 */
#include <stdlib.h>
#include <string.h>

#include "env/env.h"
#include "support/store.h"
#include "table/format.h"

enum { KEYS = 6000 };

static void fill(tamiz *db, int from, int step)
{
    char key[24], value[120];
    for (int i = from; i < KEYS; i += step) {
        (void)snprintf(key, sizeof key, "user%08d", i);
        (void)snprintf(value, sizeof value,
                       "{\"name\":\"user %d\",\"country\":\"%s\",\"plan\":\"%s\",\"balance\":%d}",
                       i, i % 3 ? "Norway" : "Portugal", i % 5 ? "basic" : "premium",
                       i * 7919 % 10007);
        test_put(db, key, value);
    }
}

static void expect_all(tamiz *db)
{
    tamiz_iter *it;
    int count = 0;
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it); tamiz_iter_next(it), count++) {
        char key[24];
        size_t size;
        (void)snprintf(key, sizeof key, "user%08d", count);
        assert_memory_equal(tamiz_iter_key(it, &size), key, 12);
    }
    assert_int_equal(tamiz_iter_status(it), TAMIZ_OK);
    assert_int_equal(count, KEYS);
    tamiz_iter_close(it);
}

static enum codec codec_of_file(const tamiz_env *env, const char *path)
{
    struct test_op t;
    struct buf bytes = buf_init(&alloc_libc);
    struct table_footer footer;
    test_op_init(&t);
    assert_status(&t.op, env_read_file(&t.op, env, path, IO_META, (size_t)1 << 30, &bytes),
                  TAMIZ_OK);
    const struct slice foot =
        slice_of(bytes.data + bytes.size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE);
    assert_status(&t.op, table_footer_decode(&t.op, foot, bytes.size, path, &footer), TAMIZ_OK);
    struct table_properties p;
    const struct slice properties =
        slice_of(bytes.data + footer.properties.offset, (size_t)footer.properties.size);
    assert_status(&t.op, table_properties_decode(&t.op, properties, path, &p), TAMIZ_OK);
    const bool packed = p.data_bytes * 2 < p.raw_key_bytes + p.raw_value_bytes;
    buf_free(&bytes);
    return footer.dictionary.size ? CODEC_ZSTD_DICT : packed ? CODEC_ZSTD : CODEC_NONE;
}

/* Every table of the store, by the level that it is in. */
static unsigned check_levels(tamiz *db, const tamiz_env *env, const enum codec wanted[3])
{
    char *text, path[64];
    unsigned seen = 0;
    assert_public(tamiz_property(db, "tables", &text), TAMIZ_OK);
    for (char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        char *end;
        const unsigned long level = strtoul(line + 1, &end, 10);
        (void)strtoul(end, &end, 10); /* the run */
        const unsigned long number = strtoul(end, NULL, 10);
        assert_in_range(level, 0, 2);
        (void)snprintf(path, sizeof path, "store/%06lu.sst", number);
        assert_int_equal(codec_of_file(env, path), wanted[level]);
        seen |= 1u << level;
    }
    tamiz_free(text);
    return seen;
}

static void every_level_has_its_own_codec(void **state)
{
    static const struct {
        const char *text;
        enum codec codecs[3];
    } cases[] = {
        {"none,zstd:1,zstd-dict:3", {CODEC_NONE, CODEC_ZSTD, CODEC_ZSTD_DICT}},
        {"zstd-dict,none,zstd:5", {CODEC_ZSTD_DICT, CODEC_NONE, CODEC_ZSTD}},
        {"zstd,zstd-dict:19,none", {CODEC_ZSTD, CODEC_ZSTD_DICT, CODEC_NONE}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tamiz_env *env = tamiz_env_memory_new();
        char options[160];
        (void)snprintf(options, sizeof options,
                       "threads=0 compaction=off block=1KiB memtable=8MiB compression=%s",
                       cases[i].text);
        tamiz *db = test_open("store", options, env);
        fill(db, 0, 1);
        assert_public(tamiz_flush(db), TAMIZ_OK);
        assert_int_equal(check_levels(db, env, cases[i].codecs), 1);
        /* A second version of all: a table alone would only be moved, with its bytes. */
        fill(db, 0, 2);
        assert_public(tamiz_flush(db), TAMIZ_OK);
        assert_public(tamiz_compact_table(db, 0, 1), TAMIZ_OK);
        unsigned seen = check_levels(db, env, cases[i].codecs);
        assert_true(seen & 2);
        fill(db, 1, 2);
        assert_public(tamiz_flush(db), TAMIZ_OK);
        assert_true(check_levels(db, env, cases[i].codecs) & 1);
        expect_all(db);
        tamiz_report report = TAMIZ_REPORT_INIT;
        assert_public(tamiz_verify(db, &report), TAMIZ_OK);
        test_close(db);
        db = test_open("store", options, env);
        expect_all(db);
        test_close(db);
        tamiz_env_memory_free(env);
    }
}

static void tables_built_apart_are_taken_in_and_repaired(void **state)
{
    tamiz_env *env = tamiz_env_memory_new();
    static const char text[] = "threads=0 compaction=off block=1KiB compression=zstd-dict:3";
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz_table_writer *writer;
    char key[24], value[100];
    const char *const path = "made.sst";
    (void)state;
    options.env = env;
    assert_public(tamiz_options_set(&options, text), TAMIZ_OK);
    assert_public(tamiz_table_writer_open(path, &options, &writer), TAMIZ_OK);
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "user%08d", i);
        (void)snprintf(value, sizeof value, "{\"name\":\"user %d\",\"plan\":\"basic\"}", i);
        assert_public(tamiz_table_writer_put(writer, key, 12, value, strlen(value)), TAMIZ_OK);
    }
    assert_public(tamiz_table_writer_finish(writer, NULL, NULL), TAMIZ_OK);
    assert_int_equal(codec_of_file(env, path), CODEC_ZSTD_DICT);
    tamiz *db = test_open("store", text, env);
    assert_public(tamiz_ingest(db, &path, 1), TAMIZ_OK);
    expect_all(db);
    test_close(db);
    struct test_op t;
    test_op_init(&t);
    assert_status(&t.op, env_remove(&t.op, env, "store/CURRENT"), TAMIZ_OK);
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_repair("store", &options, &report), TAMIZ_OK);
    db = test_open("store", text, env);
    expect_all(db);
    test_close(db);
    tamiz_env_memory_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_has_its_own_codec),
        cmocka_unit_test(tables_built_apart_are_taken_in_and_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
