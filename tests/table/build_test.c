/* SPDX-License-Identifier: MIT */
#include "table/table_build.h"

#include <errno.h>

#include "kit.h"
#include "repair.h"

static bool is_there(struct kit *k, const char *path)
{
    bool exists = false;
    tamiz_file_info info;
    assert_status(&k->t.op, env_path_info(&k->t.op, k->env, path, &exists, &info), TAMIZ_OK);
    return exists;
}

static struct table_builder *builder(struct kit *k, const tamiz_env *env,
                                     const struct table_build_options *options)
{
    struct table_builder *b;
    assert_status(&k->t.op, table_builder_open(&k->t.op, env, &alloc_libc, "t.sst", options, &b),
                  TAMIZ_OK);
    return b;
}

static tamiz_status add(struct kit *k, struct table_builder *b, const char *key, uint64_t stamp)
{
    return table_builder_add(&k->t.op, b, slice_of_text(key), stamp, slice_of_text("v"));
}

static void entries_out_of_order_are_refused_with_both_keys(void **state)
{
    (void)state;
    const struct {
        const char *key;
        uint64_t stamp;
    } wrong[] = {{"a", 100}, {"bbb", 101}, {"bbb", 100}, {"", 1}};
    for (size_t i = 0; i < 4; i++) {
        struct kit k;
        kit_make(&k, 0);
        const struct table_build_options options = kit_options("none", CODEC_NONE);
        struct table_builder *b = builder(&k, k.env, &options);
        assert_status(&k.t.op, add(&k, b, "bbb", 100 << 4), TAMIZ_OK);
        const uint64_t stamp = wrong[i].stamp << 4;
        assert_int_equal(add(&k, b, wrong[i].key, stamp), TAMIZ_INVALID_ARGUMENT);
        assert_non_null(strstr(k.t.op.text, "bbb"));
        assert_non_null(strstr(k.t.op.text, wrong[i].key));
        op_forgive(&k.t.op);
        /* Nothing may come of it any more. */
        struct table_summary s;
        summary_init(&s);
        assert_int_equal(table_builder_finish(&k.t.op, b, &s), TAMIZ_INVALID_ARGUMENT);
        assert_false(is_there(&k, "t.sst"));
        op_forgive(&k.t.op);
        summary_free(&s);
        kit_free(&k);
    }
}

static void what_is_too_large_or_of_an_unknown_kind_is_refused(void **state)
{
    (void)state;
    struct kit k;
    kit_make(&k, 0);
    const struct table_build_options options = kit_options("none", CODEC_NONE);
    uint8_t *large = mem_new_array(&alloc_libc, 1, KEY_SIZE_MAX + 1);
    for (int i = 0; i < 2; i++) {
        struct table_builder *b = builder(&k, k.env, &options);
        const struct slice key = i ? slice_of(large, KEY_SIZE_MAX + 1) : slice_of_text("a");
        const uint64_t stamp = i ? stamp_of(1, KIND_PUT) : UINT64_C(1) << 4 | 7;
        assert_int_equal(table_builder_add(&k.t.op, b, key, stamp, slice_of_text("v")),
                         TAMIZ_INVALID_ARGUMENT);
        op_forgive(&k.t.op);
        table_builder_abandon(&k.t.op, b);
        assert_false(is_there(&k, "t.sst"));
    }
    mem_free(&alloc_libc, large, KEY_SIZE_MAX + 1);
    kit_free(&k);
}

static void the_largest_key_and_a_large_value_come_back(void **state)
{
    (void)state;
    struct kit k;
    kit_make(&k, 1 << 20);
    static uint8_t key[KEY_SIZE_MAX];
    memset(key, 'k', sizeof key);
    const size_t value_size = (size_t)3 << 20;
    uint8_t *value = mem_new_array(&alloc_libc, 1, value_size);
    for (int codec = 0; codec < 2; codec++) {
        const struct table_build_options options =
            kit_options("bloom:10", codec ? CODEC_ZSTD : CODEC_NONE);
        struct table_builder *b = builder(&k, k.env, &options);
        const struct slice keys[] = {slice_of("", 0), slice_of(key, sizeof key - 1),
                                     slice_of(key, sizeof key)};
        for (size_t i = 0; i < 3; i++)
            assert_status(&k.t.op,
                          table_builder_add(&k.t.op, b, keys[i], stamp_of(i, KIND_PUT),
                                            slice_of(value, value_size - i)),
                          TAMIZ_OK);
        struct table_summary s;
        summary_init(&s);
        assert_status(&k.t.op, table_builder_finish(&k.t.op, b, &s), TAMIZ_OK);
        assert_true(slice_equal(buf_slice(&s.largest), keys[2]) && s.smallest.size == 0);
        summary_free(&s);
        struct table *t = kit_table(&k, "t.sst");
        for (size_t i = 0; i < 3; i++) {
            const struct lookup lookup = lookup_make(keys[i], SEQ_MAX);
            struct slice got;
            uint64_t stamp;
            struct cached_block *pinned;
            struct epoch_slot *slot = epoch_enter(&k.epoch);
            assert_status(&k.t.op, table_get(&k.t.op, t, &lookup, &kit_read, &stamp, &got, &pinned),
                          TAMIZ_OK);
            assert_true(got.size == value_size - i && memcmp(got.data, value, got.size) == 0);
            epoch_leave(slot);
            assert_non_null(pinned); /* larger than the whole cache */
            cached_block_unpin(pinned);
        }
        table_free(t);
        assert_status(&k.t.op, env_remove(&k.t.op, k.env, "t.sst"), TAMIZ_OK);
    }
    mem_free(&alloc_libc, value, value_size);
    kit_free(&k);
}

static void an_abandoned_table_leaves_no_file(void **state)
{
    (void)state;
    struct kit k;
    kit_make(&k, 0);
    const struct table_build_options options = kit_options("bloom:10", CODEC_ZSTD);
    struct table_builder *b = builder(&k, k.env, &options);
    assert_status(&k.t.op, add(&k, b, "a", 16), TAMIZ_OK);
    assert_true(slice_equal(table_builder_last_key(b), slice_of_text("a")));
    assert_int_equal(table_builder_entries(b), 1);
    table_builder_abandon(&k.t.op, b);
    assert_false(is_there(&k, "t.sst"));
    table_builder_abandon(&k.t.op, NULL);
    kit_free(&k);
}

static void a_file_that_is_there_is_not_overwritten(void **state)
{
    (void)state;
    struct kit k;
    kit_make(&k, 0);
    kit_write_file(&k, "t.sst", "precious", 8);
    const struct table_build_options options = kit_options("none", CODEC_NONE);
    struct table_builder *b;
    assert_int_equal(table_builder_open(&k.t.op, k.env, &alloc_libc, "t.sst", &options, &b),
                     TAMIZ_IO_ERROR);
    assert_null(b);
    assert_true(is_there(&k, "t.sst"));
    kit_free(&k);
}

static void an_empty_table_is_refused_and_leaves_no_file(void **state)
{
    (void)state;
    struct kit k;
    kit_make(&k, 0);
    const struct table_build_options options = kit_options("none", CODEC_NONE);
    struct table_builder *b = builder(&k, k.env, &options);
    struct table_summary s;
    summary_init(&s);
    assert_int_equal(table_builder_finish(&k.t.op, b, &s), TAMIZ_INVALID_ARGUMENT);
    assert_false(is_there(&k, "t.sst"));
    summary_free(&s);
    kit_free(&k);
}

static void the_size_so_far_is_near_the_size_at_the_end(void **state)
{
    (void)state;
    struct kit k;
    kit_make(&k, 0);
    const struct table_build_options options = kit_options("none", CODEC_NONE);
    struct table_builder *b = builder(&k, k.env, &options);
    char key[20];
    for (unsigned i = 0; i < 20000; i++) {
        (void)snprintf(key, sizeof key, "key%08u", i);
        assert_status(&k.t.op, add(&k, b, key, 16), TAMIZ_OK);
    }
    const uint64_t before = table_builder_size(b);
    struct table_summary s;
    summary_init(&s);
    assert_status(&k.t.op, table_builder_finish(&k.t.op, b, &s), TAMIZ_OK);
    assert_true(before > s.file_size * 9 / 10 && before < s.file_size * 11 / 10);
    assert_true(counter_get(&k.t.count.io[IO_DATA].writes) < s.file_size / (200 << 10) + 2);
    assert_int_equal(counter_get(&k.t.count.io[IO_DATA].write_bytes), s.file_size);
    assert_int_equal(counter_get(&k.t.count.syncs), 1);
    summary_free(&s);
    kit_free(&k);
}

/* ---- blocks ---- */

static void blocks_keep_their_size_and_never_part_a_key(void **state)
{
    (void)state;
    struct test_random random = test_random_start(81);
    struct kit k;
    struct model m;
    struct table_summary s;
    kit_make(&k, 0);
    model_make(&m, &random, 3000, 60); /* some fifty versions a key: more than a block's worth */
    const struct table_build_options options = kit_options("none", CODEC_NONE);
    kit_build(&k, "t.sst", &m, &options, &s);
    struct buf bytes;
    kit_read_file(&k, "t.sst", &bytes);
    struct table_footer footer;
    struct index *index;
    assert_status(&k.t.op,
                  table_footer_decode(
                      &k.t.op,
                      slice_of(bytes.data + bytes.size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE),
                      bytes.size, "t.sst", &footer),
                  TAMIZ_OK);
    assert_status(&k.t.op,
                  index_open(&k.t.op, slice_of(bytes.data + footer.index.offset, footer.index.size),
                             table_data_end(&footer), "t.sst", &alloc_libc, &index),
                  TAMIZ_OK);
    size_t at = 0;
    for (uint32_t i = 0; i < index_count(index); i++) {
        const struct extent e = index_extent(index, i);
        struct block b;
        assert_true(block_open(slice_of(bytes.data + e.offset, e.size), &b));
        const bool one_key =
            slice_equal(key_of(&m.versions[at]), key_of(&m.versions[at + b.count - 1]));
        assert_true(e.size <= options.block_bytes || one_key);
        at += b.count;
        assert_true(at == m.count ||
                    !slice_equal(key_of(&m.versions[at - 1]), key_of(&m.versions[at])));
        if (i + 1 < index_count(index)) { /* the fence lies between */
            assert_int_equal(index_find(index, key_of(&m.versions[at - 1])), i);
            assert_int_equal(index_find(index, key_of(&m.versions[at])), i + 1);
        }
    }
    assert_int_equal(at, m.count);
    index_free(index);
    buf_free(&bytes);
    model_free(&m);
    kit_free(&k);
}

static void packing_is_used_only_where_it_pays(void **state)
{
    (void)state;
    struct test_random random = test_random_start(82);
    struct kit k;
    kit_make(&k, 0);
    for (int noise = 0; noise < 2; noise++) {
        const struct table_build_options options = kit_options("none", CODEC_ZSTD);
        struct table_builder *b = builder(&k, k.env, &options);
        for (uint64_t i = 0; i < 500; i++) {
            uint64_t value[8] = {0};
            uint8_t key[8];
            for (size_t j = 0; j < 8 && noise; j++)
                value[j] = test_random_u64(&random);
            for (size_t j = 0; j < 8; j++)
                key[j] = (uint8_t)(i >> (56 - 8 * j));
            assert_status(
                &k.t.op,
                table_builder_add(&k.t.op, b, slice_of(key, 8), 16, slice_of(value, sizeof value)),
                TAMIZ_OK);
        }
        struct table_summary s;
        summary_init(&s);
        assert_status(&k.t.op, table_builder_finish(&k.t.op, b, &s), TAMIZ_OK);
        summary_free(&s);
        struct table *t = kit_table(&k, "t.sst");
        assert_status(&k.t.op, table_load(&k.t.op, t), TAMIZ_OK);
        const struct table_properties *p = table_properties(t);
        assert_true((p->data_bytes < p->raw_value_bytes) == !noise);
        tamiz_report report = TAMIZ_REPORT_INIT;
        assert_status(&k.t.op, table_verify(&k.t.op, t, &report), TAMIZ_OK);
        table_free(t);
        assert_status(&k.t.op, env_remove(&k.t.op, k.env, "t.sst"), TAMIZ_OK);
    }
    kit_free(&k);
}

/* ---- filters of the embedder's own ---- */

static tamiz_status odd_plan(void *ctx, const tamiz_filter_policy *policy, uint64_t keys,
                             uint64_t *payload_bytes, double *expected_fpr)
{
    (void)ctx;
    (void)policy;
    (void)keys;
    *payload_bytes = 64;
    *expected_fpr = 0.5;
    return TAMIZ_OK;
}

static tamiz_status odd_build(void *ctx, const uint64_t *hashes, size_t n, void *payload,
                              uint64_t payload_bytes)
{
    (void)hashes;
    (void)n;
    (void)payload;
    (void)payload_bytes;
    return *(const bool *)ctx ? TAMIZ_OK : TAMIZ_NOT_SUPPORTED;
}

static bool odd_check(void *ctx, const void *payload, uint64_t payload_bytes)
{
    (void)ctx;
    (void)payload;
    return payload_bytes == 64;
}

static bool odd_may_contain(void *ctx, const void *payload, uint64_t payload_bytes, uint64_t hash)
{
    (void)ctx;
    (void)payload;
    (void)payload_bytes;
    return hash & 1; /* denies half of its members */
}

static void a_filter_that_fails_or_lies_is_not_written(void **state)
{
    (void)state;
    for (int lies = 0; lies < 2; lies++) {
        struct test_random random = test_random_start(83);
        struct kit k;
        struct model m;
        struct table_summary s;
        kit_make(&k, 1 << 16);
        model_make(&m, &random, 200, 100);
        bool works = lies;
        const tamiz_filter_family odd = {sizeof odd, "odd",     0x8001,         1, &works, odd_plan,
                                         odd_build,  odd_check, odd_may_contain};
        struct table_build_options options = kit_options("none", CODEC_NONE);
        options.filter = (tamiz_filter_policy){"odd", 0, 0, &odd};
        options.log = (tamiz_event_log){kit_event, &k};
        kit_build(&k, "t.sst", &m, &options, &s);
        assert_int_equal(s.filter_bytes, 0);
        assert_int_equal(k.events[TAMIZ_EVENT_FILTER_IGNORED], 1);
        assert_status(&k.t.op, k.t.op.status, TAMIZ_OK);
        struct table *t = kit_table(&k, "t.sst");
        for (size_t i = 0; i < m.count; i++) {
            const struct lookup lookup = lookup_make(key_of(&m.versions[i]), SEQ_MAX);
            const struct answer a = kit_get(&k, t, &lookup, &kit_read);
            assert_true(kit_right(&m, &lookup, &a));
        }
        assert_true(*table_filter_missing(t));
        table_free(t);
        model_free(&m);
        kit_free(&k);
    }
}

/* ---- a device that refuses ---- */

static struct {
    tamiz_env_ops inner;
    int left; /* calls that still work */
} refusing;

static int refusing_write(void *ctx, void *file, uint64_t offset, const void *data, size_t size)
{
    return refusing.left-- <= 0 ? -ENOSPC : refusing.inner.write(ctx, file, offset, data, size);
}

static int refusing_sync(void *ctx, void *file)
{
    return refusing.left-- <= 0 ? -EIO : refusing.inner.sync(ctx, file);
}

static int refusing_close(void *ctx, void *file)
{
    const int error = refusing.inner.close(ctx, file);
    return refusing.left-- <= 0 ? -EIO : error;
}

static void a_device_that_refuses_leaves_no_table(void **state)
{
    (void)state;
    bool succeeded = false;
    for (int works = 0; works < 30 && !succeeded; works++) {
        struct kit k;
        kit_make(&k, 0);
        refusing.inner = *k.env->ops;
        refusing.left = works;
        tamiz_env_ops ops = refusing.inner;
        ops.write = refusing_write;
        ops.sync = refusing_sync;
        ops.close = refusing_close;
        const tamiz_env env = {&ops, k.env->ctx};
        const struct table_build_options options = kit_options("bloom:10", CODEC_NONE);
        struct table_builder *b = builder(&k, &env, &options);
        tamiz_status st = TAMIZ_OK;
        char key[20];
        for (unsigned i = 0; i < 40000 && st == TAMIZ_OK; i++) {
            (void)snprintf(key, sizeof key, "key%08u", i);
            st = add(&k, b, key, 16);
        }
        struct table_summary s;
        summary_init(&s);
        const tamiz_status end = table_builder_finish(&k.t.op, b, &s);
        succeeded = end == TAMIZ_OK;
        if (st != TAMIZ_OK)
            assert_int_equal(end, st);
        if (!succeeded)
            assert_true(end == TAMIZ_NO_SPACE || end == TAMIZ_IO_ERROR);
        assert_int_equal(is_there(&k, "t.sst"), succeeded);
        summary_free(&s);
        kit_free(&k);
    }
    assert_true(succeeded);
}

/* ---- verify ---- */

struct finds {
    size_t count;
    char last[500];
};

static void finds_add(void *ctx, const char *text)
{
    struct finds *finds = ctx;
    finds->count++;
    (void)snprintf(finds->last, sizeof finds->last, "%s", text);
}

static void verify_names_the_damage_and_goes_on(void **state)
{
    (void)state;
    struct test_random random = test_random_start(84);
    struct kit k;
    struct model m;
    struct table_summary s;
    kit_make(&k, 1 << 20);
    model_make(&m, &random, 1000, 500);
    const struct table_build_options options = kit_options("bloom:10", CODEC_NONE);
    kit_build(&k, "t.sst", &m, &options, &s);
    struct buf bytes;
    kit_read_file(&k, "t.sst", &bytes);
    bytes.data[TABLE_HEADER_SIZE + 50] ^= 1;   /* block 0 */
    bytes.data[TABLE_HEADER_SIZE + 5000] ^= 1; /* another */
    kit_write_file(&k, "t.sst", bytes.data, bytes.size);
    struct table *t = kit_table(&k, "t.sst");
    struct finds finds = {0, ""};
    tamiz_report report = TAMIZ_REPORT_INIT;
    report.find = finds_add;
    report.ctx = &finds;
    assert_int_equal(table_verify(&k.t.op, t, &report), TAMIZ_CORRUPTION);
    assert_true(report.damaged == 2 && finds.count == 2 && report.blocks == table_blocks(t));
    assert_true(report.lost_bytes > 500 && report.lost_bytes < 2000);
    assert_non_null(strstr(finds.last, "t.sst: block at offset"));
    table_free(t);
    buf_free(&bytes);
    model_free(&m);
    kit_free(&k);
}

static void verify_notices_a_wrong_tag_and_a_wrong_count(void **state)
{
    (void)state;
    struct test_random random = test_random_start(85);
    struct kit k;
    struct model m;
    struct table_summary s;
    kit_make(&k, 1 << 20);
    model_make(&m, &random, 100, 50);
    const struct table_build_options options = kit_options("none", CODEC_NONE);
    kit_build(&k, "t.sst", &m, &options, &s);
    for (int which = 0; which < 2; which++) {
        struct buf bytes;
        kit_read_file(&k, "t.sst", &bytes);
        const uint8_t *footer = bytes.data + bytes.size - TABLE_FOOTER_SIZE;
        const size_t place = which ? (size_t)load_u64(footer + 64) /* properties: entries */
                                   : TABLE_HEADER_SIZE + BLOCK_HEADER_SIZE;
        bytes.data[place] ^= 1;
        repair_table(&k.t.op, bytes.data, bytes.size, &alloc_libc);
        kit_write_file(&k, "wrong.sst", bytes.data, bytes.size);
        struct table *t = kit_table(&k, "wrong.sst");
        struct finds finds = {0, ""};
        tamiz_report report = TAMIZ_REPORT_INIT;
        report.find = finds_add;
        report.ctx = &finds;
        assert_int_equal(table_verify(&k.t.op, t, &report), TAMIZ_CORRUPTION);
        assert_int_equal(finds.count, 1);
        assert_non_null(strstr(finds.last, which ? "entries" : "tag"));
        op_forgive(&k.t.op);
        table_free(t);
        buf_free(&bytes);
    }
    model_free(&m);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_out_of_order_are_refused_with_both_keys),
        cmocka_unit_test(what_is_too_large_or_of_an_unknown_kind_is_refused),
        cmocka_unit_test(the_largest_key_and_a_large_value_come_back),
        cmocka_unit_test(an_abandoned_table_leaves_no_file),
        cmocka_unit_test(a_file_that_is_there_is_not_overwritten),
        cmocka_unit_test(an_empty_table_is_refused_and_leaves_no_file),
        cmocka_unit_test(the_size_so_far_is_near_the_size_at_the_end),
        cmocka_unit_test(blocks_keep_their_size_and_never_part_a_key),
        cmocka_unit_test(packing_is_used_only_where_it_pays),
        cmocka_unit_test(a_filter_that_fails_or_lies_is_not_written),
        cmocka_unit_test(a_device_that_refuses_leaves_no_table),
        cmocka_unit_test(verify_names_the_damage_and_goes_on),
        cmocka_unit_test(verify_notices_a_wrong_tag_and_a_wrong_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
