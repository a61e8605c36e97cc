/* SPDX-License-Identifier: MIT
 *
 * Tables whose blocks share a dictionary: smaller where blocks are alike, plain where there is
 * nothing to learn, and damage of the dictionary is damage of the table.
 */
#include "kit.h"
#include "repair.h"
#include "table/codec.h"

enum { ROWS = 4000, VALUE_MOST = 160 };

struct rows {
    bool noise; /* nothing to learn from */
    int count;
};

static struct slice row_key(int i, char *key)
{
    return slice_of(key, (size_t)snprintf(key, 24, "user%08d", i));
}

static struct slice row_value(const struct rows *rows, int i, char *value)
{
    static const char *const plans[] = {"free", "basic", "premium", "enterprise"};
    struct test_random r = {(uint64_t)i};
    if (rows->noise) {
        for (size_t at = 0; at < VALUE_MOST; at += 8) {
            const uint64_t word = test_random_u64(&r);
            memcpy(value + at, &word, 8);
        }
        return slice_of(value, VALUE_MOST);
    }
    return slice_of(value, (size_t)snprintf(value, VALUE_MOST,
                                            "{\"plan\":\"%s\",\"country\":\"%c%c\",\"balance\":%u,"
                                            "\"last_login\":\"2024-%02u-%02uT00:00:00Z\"}",
                                            plans[test_random_below(&r, 4)],
                                            (int)('A' + test_random_below(&r, 6)),
                                            (int)('M' + test_random_below(&r, 6)),
                                            (unsigned)test_random_below(&r, 100000),
                                            (unsigned)test_random_below(&r, 12) + 1,
                                            (unsigned)test_random_below(&r, 28) + 1));
}

static uint64_t build(struct kit *k, const char *path, const struct rows *rows, enum codec codec)
{
    struct op *op = &k->t.op;
    struct table_build_options options = kit_options("bloom:10", codec);
    struct table_builder *b;
    struct table_summary s;
    char key[24], value[VALUE_MOST];
    options.block_bytes = 1024;
    summary_init(&s);
    assert_status(op, table_builder_open(op, k->env, &alloc_libc, path, &options, &b), TAMIZ_OK);
    for (int i = 0; i < rows->count; i++)
        assert_status(op,
                      table_builder_add(op, b, row_key(i, key), stamp_of(1, KIND_PUT),
                                        row_value(rows, i, value)),
                      TAMIZ_OK);
    assert_status(op, table_builder_finish(op, b, &s), TAMIZ_OK);
    summary_free(&s);
    return s.file_size;
}

static struct extent dictionary_of(struct kit *k, const char *path)
{
    struct buf bytes;
    kit_read_file(k, path, &bytes);
    const struct extent e = repair_extent(bytes.data + bytes.size - TABLE_FOOTER_SIZE);
    buf_free(&bytes);
    return e;
}

static void all_rows_are_there(struct kit *k, struct table *t, const struct rows *rows)
{
    char key[24], value[VALUE_MOST];
    tamiz_report report = TAMIZ_REPORT_INIT;
    for (int i = 0; i < rows->count; i += 7) {
        const struct lookup lookup = lookup_make(row_key(i, key), SEQ_MAX);
        const struct answer a = kit_get(k, t, &lookup, &kit_read);
        const struct slice want = row_value(rows, i, value);
        assert_int_equal(a.status, TAMIZ_OK);
        assert_true(want.size > sizeof a.value ||
                    slice_equal(slice_of(a.value, a.value_size), want));
    }
    struct iter *it = table_iter(&k->t.op, t, &kit_read);
    int i = 0;
    for (iter_seek_first(it); it->valid; iter_next(it), i++)
        assert_true(slice_equal(it->key, row_key(i, key)) &&
                    slice_equal(it->value, row_value(rows, i, value)));
    assert_int_equal(it->status, TAMIZ_OK);
    assert_int_equal(i, rows->count);
    iter_close(it);
    assert_status(&k->t.op, table_verify(&k->t.op, t, &report), TAMIZ_OK);
    assert_int_equal(report.keys, rows->count);
}

static void small_blocks_that_are_alike_take_less_room(void **state)
{
    /* The larger one does not fit into what waits, so that blocks come behind the training. */
    static const struct rows sizes[] = {{false, ROWS}, {false, 6 * ROWS}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct kit k;
        kit_make(&k, 1 << 20);
        const uint64_t plain = build(&k, "plain.sst", &sizes[i], CODEC_ZSTD);
        const uint64_t shared = build(&k, "dict.sst", &sizes[i], CODEC_ZSTD_DICT);
        print_message("%d rows: %llu bytes with zstd, %llu with a dictionary\n", sizes[i].count,
                      (unsigned long long)plain, (unsigned long long)shared);
        assert_true(shared * 100 < plain * 85);
        const struct extent e = dictionary_of(&k, "dict.sst");
        assert_in_range(e.size, 256, CODEC_DICTIONARY_MOST);
        struct table *t = kit_table(&k, "dict.sst"), *other = kit_table(&k, "plain.sst");
        all_rows_are_there(&k, t, &sizes[i]);
        all_rows_are_there(&k, other, &sizes[i]);
        assert_true(table_memory(t) > e.size);
        table_free(t);
        table_free(other);
        kit_free(&k);
    }
}

static void where_there_is_nothing_to_learn_it_is_plain_zstd(void **state)
{
    static const struct rows nothing[] = {{false, 40}, {true, 400}, {true, 9000}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct kit k;
        kit_make(&k, 1 << 20);
        const uint64_t plain = build(&k, "plain.sst", &nothing[i], CODEC_ZSTD);
        assert_int_equal(build(&k, "dict.sst", &nothing[i], CODEC_ZSTD_DICT), plain);
        assert_int_equal(dictionary_of(&k, "dict.sst").size, 0);
        struct table *t = kit_table(&k, "dict.sst");
        all_rows_are_there(&k, t, &nothing[i]);
        table_free(t);
        kit_free(&k);
    }
}

static void the_same_rows_make_the_same_bytes(void **state)
{
    const struct rows rows = {false, ROWS};
    struct kit k;
    struct buf a, b;
    (void)state;
    kit_make(&k, 1 << 20);
    (void)build(&k, "a.sst", &rows, CODEC_ZSTD_DICT);
    (void)build(&k, "b.sst", &rows, CODEC_ZSTD_DICT);
    kit_read_file(&k, "a.sst", &a);
    kit_read_file(&k, "b.sst", &b);
    assert_true(slice_equal(buf_slice(&a), buf_slice(&b)));
    buf_free(&a);
    buf_free(&b);
    kit_free(&k);
}

static void a_damaged_dictionary_is_a_damaged_table(void **state)
{
    const struct rows rows = {false, ROWS};
    struct kit k;
    struct buf bytes;
    (void)state;
    kit_make(&k, 1 << 20);
    (void)build(&k, "t.sst", &rows, CODEC_ZSTD_DICT);
    kit_read_file(&k, "t.sst", &bytes);
    const struct extent e = dictionary_of(&k, "t.sst");
    for (uint64_t i = 0; i < extent_whole(e); i += 37) {
        bytes.data[e.offset + i] ^= 0x20;
        kit_write_file(&k, "damaged.sst", bytes.data, bytes.size);
        bytes.data[e.offset + i] ^= 0x20;
        struct table *t = kit_table(&k, "damaged.sst");
        tamiz_report report = TAMIZ_REPORT_INIT;
        assert_int_equal(table_load(&k.t.op, t), TAMIZ_CORRUPTION);
        assert_non_null(strstr(k.t.op.text, "damaged.sst"));
        op_forgive(&k.t.op);
        assert_int_equal(table_verify(&k.t.op, t, &report), TAMIZ_CORRUPTION);
        assert_int_equal(report.damaged, 1);
        op_forgive(&k.t.op);
        table_free(t);
    }
    buf_free(&bytes);
    kit_free(&k);
}

/* The checksum is made right, what is in it is not: an error or other bytes, and no more. */
static void a_crafted_dictionary_is_an_error_at_most(void **state)
{
    const struct rows rows = {false, ROWS / 4};
    struct kit k;
    struct buf bytes;
    (void)state;
    kit_make(&k, 1 << 20);
    (void)build(&k, "t.sst", &rows, CODEC_ZSTD_DICT);
    kit_read_file(&k, "t.sst", &bytes);
    const struct extent e = dictionary_of(&k, "t.sst");
    assert_true(e.size > 0);
    for (uint64_t i = 0; i < e.size; i += 11) {
        bytes.data[e.offset + i] ^= 0xa5;
        const struct slice covered = slice_of(bytes.data + e.offset, (size_t)e.size + 1);
        store_u64(bytes.data + e.offset + e.size + 1, checksum(0x1234, e.offset, covered));
        kit_write_file(&k, "crafted.sst", bytes.data, bytes.size);
        bytes.data[e.offset + i] ^= 0xa5;
        struct table *t = kit_table(&k, "crafted.sst");
        if (table_load(&k.t.op, t) == TAMIZ_OK) {
            struct iter *it = table_iter(&k.t.op, t, &kit_read);
            for (iter_seek_first(it); it->valid; iter_next(it))
                ;
            iter_close(it);
        }
        op_forgive(&k.t.op);
        table_free(t);
    }
    buf_free(&bytes);
    kit_free(&k);
}

static void a_packed_block_without_its_dictionary_is_corruption(void **state)
{
    struct test_op t;
    struct codec_pool pool;
    uint8_t out[16];
    (void)state;
    test_op_init(&t);
    assert_status(&t.op, codec_pool_init(&t.op, &pool), TAMIZ_OK);
    const struct packed_block packed = {
        slice_of_text("whatever"), 16, CODEC_ZSTD_DICT, NULL, "t.sst", 40};
    size_t size;
    assert_int_equal(codec_unpack(&t.op, &pool, &packed, out, &size), TAMIZ_CORRUPTION);
    assert_non_null(strstr(t.op.text, "t.sst: block at offset 40"));
    codec_pool_free(&pool);
}

static void a_block_of_an_unknown_codec_is_not_supported(void **state)
{
    static const uint8_t unknown[] = {1, 2, 5, 255};
    struct test_op t;
    (void)state;
    test_op_init(&t);
    for (size_t i = 0; i < sizeof unknown; i++) {
        struct buf stored = buf_init(&alloc_libc);
        struct slice payload;
        enum codec codec;
        buf_slice_append(&stored, slice_of_text("payload"));
        block_seal(&stored, 7, (enum codec)unknown[i], 9, 40);
        assert_int_equal(
            block_unseal(&t.op, buf_slice(&stored), 9, 40, "t.sst", true, &payload, &codec),
            TAMIZ_NOT_SUPPORTED);
        assert_non_null(
            strstr(t.op.text, "t.sst: block at offset 40: expected codec 0, 3 or 4, found"));
        op_forgive(&t.op);
        buf_free(&stored);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_blocks_that_are_alike_take_less_room),
        cmocka_unit_test(where_there_is_nothing_to_learn_it_is_plain_zstd),
        cmocka_unit_test(the_same_rows_make_the_same_bytes),
        cmocka_unit_test(a_damaged_dictionary_is_a_damaged_table),
        cmocka_unit_test(a_crafted_dictionary_is_an_error_at_most),
        cmocka_unit_test(a_block_of_an_unknown_codec_is_not_supported),
        cmocka_unit_test(a_packed_block_without_its_dictionary_is_corruption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
