/* SPDX-License-Identifier: MIT
 *
 * Files that were written once and are read by every later version. TAMIZ_GOLDEN_WRITE=1 writes
 * them anew: a change of format.
 */
#include "base/expiry.h"
#include "kit.h"
#include "repair.h"

static const struct golden {
    const char *name;
    const char *filter;
    enum codec codec;
    struct prefix_rule prefix;
    size_t versions;
    bool expiring;        /* some of the values are for a time */
    const char *keyspace; /* its name; its id is 300. NULL: the default one's */
} goldens[] = {
    {"plain.sst", "none", CODEC_NONE, {TAMIZ_PREFIX_NONE, 0}, 150, false, NULL},
    {"bloom-zstd.sst", "bloom:10", CODEC_ZSTD, {TAMIZ_PREFIX_NONE, 0}, 150, false, NULL},
    {"blocked.sst", "blocked:10", CODEC_NONE, {TAMIZ_PREFIX_NONE, 0}, 150, false, NULL},
    {"prefix.sst", "bloom:9", CODEC_NONE, {TAMIZ_PREFIX_BYTES, 11}, 150, false, NULL},
    {"zstd-dict.sst", "blocked:10", CODEC_ZSTD_DICT, {TAMIZ_PREFIX_NONE, 0}, 900, false, NULL},
    {"expiring.sst", "blocked:10", CODEC_NONE, {TAMIZ_PREFIX_NONE, 0}, 150, true, NULL},
    {"keyspace.sst", "bloom:10", CODEC_NONE, {TAMIZ_PREFIX_BYTES, 11}, 150, false, "people"},
};
enum { GOLDENS = sizeof goldens / sizeof *goldens };

/* The same each time, whatever seed the environment says. */
static void golden_model(struct model *m, const struct golden *g)
{
    struct test_random random = {2024};
    model_make(m, &random, g->versions, 50);
    for (size_t i = 0; g->expiring && i < m->count; i++) {
        struct version *v = &m->versions[i];
        if (i % 3 != 0 || stamp_kind(v->stamp) != KIND_PUT || v->value_size < EXPIRY_SIZE)
            continue;
        store_u64(v->value, UINT64_C(2000000000000000) + i);
        v->stamp = stamp_of(stamp_seq(v->stamp), KIND_EXPIRING);
    }
}

static void golden_make(struct kit *k, const struct golden *g, const struct model *m,
                        struct buf *image)
{
    struct table_build_options options = kit_options(g->filter, g->codec);
    options.prefix = g->prefix;
    options.prefix_filter = options.filter;
    options.keyspace = g->keyspace ? 300 : 0;
    options.keyspace_name = slice_of_text(g->keyspace ? g->keyspace : "");
    struct table_summary summary;
    kit_build(k, g->name, m, &options, &summary);
    kit_read_file(k, g->name, image);
}

static void golden_path(const struct golden *g, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/tests/golden/table/%s", TEST_SOURCE_DIR, g->name);
}

static void write_golden(struct kit *k, const char *path, const struct buf *image)
{
    struct op *op = &k->t.op;
    const tamiz_env *posix = tamiz_env_posix();
    struct file *file;
    if (env_remove(op, posix, path) != TAMIZ_OK)
        op_forgive(op);
    assert_status(op, file_open(op, posix, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file),
                  TAMIZ_OK);
    assert_status(op, file_write(op, file, IO_META, 0, image->data, image->size), TAMIZ_OK);
    assert_status(op, file_close(op, file), TAMIZ_OK);
}

static void read_golden(struct kit *k, const char *path, struct buf *golden)
{
    *golden = buf_init(&alloc_libc);
    assert_status(&k->t.op,
                  env_read_file(&k->t.op, tamiz_env_posix(), path, IO_META, 1 << 20, golden),
                  TAMIZ_OK);
}

static void what_is_written_now_equals_the_golden_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDENS; i++) {
        struct kit k;
        struct model m;
        struct buf image, golden;
        char path[500];
        kit_make(&k, 1 << 16);
        golden_model(&m, &goldens[i]);
        golden_make(&k, &goldens[i], &m, &image);
        golden_path(&goldens[i], path, sizeof path);
        if (getenv("TAMIZ_GOLDEN_WRITE"))
            write_golden(&k, path, &image);
        read_golden(&k, path, &golden);
        if (goldens[i].codec == CODEC_NONE) { /* zstd's bytes differ from version to version */
            assert_int_equal(golden.size, image.size);
            assert_memory_equal(golden.data, image.data, golden.size);
        }
        buf_free(&image);
        buf_free(&golden);
        model_free(&m);
        kit_free(&k);
    }
}

static void the_golden_files_are_read_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDENS; i++) {
        struct kit k;
        struct model m;
        struct buf golden;
        char path[500];
        kit_make(&k, 1 << 16);
        golden_model(&m, &goldens[i]);
        golden_path(&goldens[i], path, sizeof path);
        read_golden(&k, path, &golden);
        kit_write_file(&k, "g.sst", golden.data, golden.size);
        struct table *t = kit_table(&k, "g.sst");
        for (uint64_t number = 0; number < 101; number++) {
            struct version v;
            version_key(&v, number);
            for (uint64_t seq = 0; seq <= KIT_SEQS; seq += 7) {
                const struct lookup lookup = lookup_make(key_of(&v), seq);
                const struct answer a = kit_get(&k, t, &lookup, &kit_read);
                assert_true(kit_right(&m, &lookup, &a));
            }
        }
        tamiz_report report = TAMIZ_REPORT_INIT;
        assert_status(&k.t.op, table_verify(&k.t.op, t, &report), TAMIZ_OK);
        assert_int_equal(table_properties(t)->created_us, 1000000);
        assert_int_equal(table_file_id(t), 0x1234);
        assert_int_equal(repair_extent(golden.data + golden.size - TABLE_FOOTER_SIZE).size > 0,
                         goldens[i].codec == CODEC_ZSTD_DICT);
        assert_int_equal(*table_filter_missing(t) != 0, i == 0);
        assert_int_equal(table_prefix_filter(t)->family != NULL,
                         goldens[i].prefix.kind != TAMIZ_PREFIX_NONE);
        assert_int_equal(table_properties(t)->prefix.rule.value, goldens[i].prefix.value);
        assert_int_equal(table_properties(t)->keyspace, goldens[i].keyspace ? 300 : 0);
        assert_true(slice_equal(table_properties(t)->keyspace_name,
                                slice_of_text(goldens[i].keyspace ? goldens[i].keyspace : "")));
        table_free(t);
        buf_free(&golden);
        model_free(&m);
        kit_free(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_now_equals_the_golden_file),
        cmocka_unit_test(the_golden_files_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
