/* SPDX-License-Identifier: MIT
 *
 * Tables with range deletes: what they say of themselves, and what damage to them does. The golden
 * file is written anew with TAMIZ_GOLDEN_WRITE=1: a change of format.
 */
#include "kit.h"
#include "table/repair.h"

static const uint64_t some_seqs[] = {40, 30, 7};

static struct range range_of(const char *from, const char *to, size_t seqs)
{
    return (struct range){slice_of_text(from), slice_of_text(to), some_seqs, seqs};
}

static const struct range *ranges_of_test(size_t *n)
{
    static struct range list[3];
    list[0] = range_of("a", "c", 1);
    list[1] = range_of("c", "f", 3);
    list[2] = range_of("h", "user", 2);
    *n = 3;
    return list;
}

/* `keys`: with two entries, d and z. */
static void make(struct kit *k, const char *path, bool keys, struct table_summary *s)
{
    struct table_builder *b;
    struct op *op = &k->t.op;
    const struct table_build_options options = kit_options("blocked:10", CODEC_NONE);
    size_t n;
    const struct range *list = ranges_of_test(&n);
    assert_status(op, table_builder_open(op, k->env, &alloc_libc, path, &options, &b), TAMIZ_OK);
    if (keys)
        assert_status(op,
                      table_builder_add(op, b, slice_of_text("d"), stamp_of(35, KIND_PUT),
                                        slice_of_text("value")),
                      TAMIZ_OK);
    for (size_t i = 0; i < n; i++)
        assert_status(op, table_builder_add_range(op, b, &list[i]), TAMIZ_OK);
    if (keys)
        assert_status(op,
                      table_builder_add(op, b, slice_of_text("z"), stamp_of(50, KIND_DELETE),
                                        slice_of(NULL, 0)),
                      TAMIZ_OK);
    summary_init(s);
    assert_status(op, table_builder_finish(op, b, s), TAMIZ_OK);
    assert_int_equal(s->ranges, 3);
}

static uint64_t cover_of(struct kit *k, struct table *t, const char *key, uint64_t seq, bool *all)
{
    const struct lookup lookup = lookup_make(slice_of_text(key), seq);
    uint64_t cover;
    assert_status(&k->t.op, table_cover(&k->t.op, t, &lookup, &cover, all), TAMIZ_OK);
    return cover;
}

static void a_table_may_have_range_deletes_and_nothing_else(void **state)
{
    (void)state;
    struct kit k;
    struct table_summary s;
    bool all;
    kit_make(&k, 1 << 16);
    make(&k, "t.sst", false, &s);
    assert_int_equal(s.entries, 0);
    assert_int_equal(s.seq_min, 7);
    assert_int_equal(s.seq_max, 40);
    assert_true(slice_equal(buf_slice(&s.smallest), slice_of_text("a")));
    assert_true(slice_equal(buf_slice(&s.largest), slice_of_text("user")));
    summary_free(&s);
    struct table *t = kit_table(&k, "t.sst");
    assert_int_equal(cover_of(&k, t, "b", 100, &all), 40);
    assert_true(all);
    assert_int_equal(cover_of(&k, t, "c", 39, &all), 30);
    assert_false(all);
    assert_int_equal(cover_of(&k, t, "c", 6, &all), 0);
    assert_int_equal(cover_of(&k, t, "f", 100, &all), 0);
    assert_int_equal(cover_of(&k, t, "user", 100, &all), 0);
    const struct lookup lookup = lookup_make(slice_of_text("b"), 100);
    assert_int_equal(kit_get(&k, t, &lookup, &kit_read).status, TAMIZ_NOT_FOUND);
    struct iter *it = table_iter(&k.t.op, t, &kit_read);
    assert_non_null(it);
    iter_seek_first(it);
    assert_false(it->valid);
    iter_seek_last(it);
    assert_false(it->valid);
    iter_seek(it, slice_of_text("b"), UINT64_MAX);
    assert_false(it->valid);
    assert_int_equal(it->status, TAMIZ_OK);
    iter_close(it);
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_status(&k.t.op, table_verify(&k.t.op, t, &report), TAMIZ_OK);
    table_free(t);
    kit_free(&k);
}

static void bounds_and_sequences_are_of_entries_and_ranges_together(void **state)
{
    (void)state;
    struct kit k;
    struct table_summary s;
    kit_make(&k, 1 << 16);
    make(&k, "t.sst", true, &s);
    assert_int_equal(s.entries, 2);
    assert_int_equal(s.seq_max, 50);
    assert_true(slice_equal(buf_slice(&s.smallest), slice_of_text("a")));
    assert_true(slice_equal(buf_slice(&s.largest), slice_of_text("z")));
    summary_free(&s);
    struct table *t = kit_table(&k, "t.sst");
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_status(&k.t.op, table_verify(&k.t.op, t, &report), TAMIZ_OK);
    table_free(t);
    kit_free(&k);
}

static void the_first_range_counts_with_all_its_sequences(void **state)
{
    (void)state;
    struct kit k;
    struct table_summary s;
    struct table_builder *b;
    const struct table_build_options options = kit_options("blocked:10", CODEC_NONE);
    const struct range first = range_of("c", "f", 3);
    kit_make(&k, 1 << 16);
    struct op *op = &k.t.op;
    assert_true(first.seqs[0] > first.seqs[2]);
    assert_status(op, table_builder_open(op, k.env, &alloc_libc, "t.sst", &options, &b), TAMIZ_OK);
    assert_status(op, table_builder_add_range(op, b, &first), TAMIZ_OK);
    summary_init(&s);
    assert_status(op, table_builder_finish(op, b, &s), TAMIZ_OK);
    assert_int_equal(s.seq_min, first.seqs[2]);
    assert_int_equal(s.seq_max, first.seqs[0]);
    summary_free(&s);
    struct table *t = kit_table(&k, "t.sst");
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_status(op, table_verify(op, t, &report), TAMIZ_OK);
    table_free(t);
    kit_free(&k);
}

static void a_builder_refuses_ranges_out_of_order(void **state)
{
    (void)state;
    const struct range bad[] = {range_of("b", "b", 1), range_of("c", "b", 1), range_of("a", "b", 0),
                                range_of("0", "1", 1), range_of("a", "c", 1)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kit k;
        struct table_builder *b;
        struct op *op = &k.t.op;
        const struct table_build_options options = kit_options("none", CODEC_NONE);
        const struct range good = range_of("a", "b", 1);
        kit_make(&k, 0);
        assert_status(op, table_builder_open(op, k.env, &alloc_libc, "t", &options, &b), TAMIZ_OK);
        assert_status(op, table_builder_add_range(op, b, &good), TAMIZ_OK);
        assert_int_equal(table_builder_add_range(op, b, &bad[i]), TAMIZ_INVALID_ARGUMENT);
        table_builder_abandon(op, b);
        kit_free(&k);
    }
}

/* Values may be saved from such a table, but no read may pass its range deletes by. */
static void damaged_ranges_are_told_by_each_question_and_by_verify(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) { /* a byte; one that the checksum was made right for */
        struct kit k;
        struct table_summary s;
        struct buf bytes;
        kit_make(&k, 1 << 16);
        make(&k, "t.sst", true, &s);
        summary_free(&s);
        kit_read_file(&k, "t.sst", &bytes);
        const struct extent e = repair_extent(bytes.data + bytes.size - TABLE_FOOTER_SIZE + 16);
        bytes.data[e.offset] ^= 1; /* the count */
        if (which)
            repair_table(&k.t.op, bytes.data, bytes.size, &alloc_libc);
        kit_write_file(&k, "bad.sst", bytes.data, bytes.size);
        struct table *t = kit_table(&k, "bad.sst");
        const struct ranges *ranges;
        assert_int_equal(table_ranges(&k.t.op, t, &ranges), TAMIZ_CORRUPTION);
        assert_null(ranges);
        assert_non_null(strstr(k.t.op.text, "bad.sst: ranges block at offset"));
        op_forgive(&k.t.op);
        assert_null(table_ranges_near(t));
        tamiz_report report = TAMIZ_REPORT_INIT;
        assert_int_equal(table_verify(&k.t.op, t, &report), TAMIZ_CORRUPTION);
        op_forgive(&k.t.op);
        assert_int_equal(report.damaged, 1);
        table_free(t);
        buf_free(&bytes);
        kit_free(&k);
    }
}

static void the_golden_file_is_written_and_read_the_same(void **state)
{
    (void)state;
    static const char path[] = TEST_SOURCE_DIR "/tests/golden/table/ranges.sst";
    const tamiz_env *posix = tamiz_env_posix();
    struct kit k;
    struct table_summary s;
    struct buf image, golden = buf_init(&alloc_libc);
    struct op *op = &k.t.op;
    kit_make(&k, 1 << 16);
    make(&k, "t.sst", true, &s);
    summary_free(&s);
    kit_read_file(&k, "t.sst", &image);
    if (getenv("TAMIZ_GOLDEN_WRITE")) {
        struct file *file;
        if (env_remove(op, posix, path) != TAMIZ_OK)
            op_forgive(op);
        assert_status(op, file_open(op, posix, path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file),
                      TAMIZ_OK);
        assert_status(op, file_write(op, file, IO_META, 0, image.data, image.size), TAMIZ_OK);
        assert_status(op, file_close(op, file), TAMIZ_OK);
    }
    assert_status(op, env_read_file(op, posix, path, IO_META, 1 << 20, &golden), TAMIZ_OK);
    assert_int_equal(golden.size, image.size);
    assert_memory_equal(golden.data, image.data, golden.size);
    buf_free(&image);
    buf_free(&golden);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_may_have_range_deletes_and_nothing_else),
        cmocka_unit_test(bounds_and_sequences_are_of_entries_and_ranges_together),
        cmocka_unit_test(the_first_range_counts_with_all_its_sequences),
        cmocka_unit_test(a_builder_refuses_ranges_out_of_order),
        cmocka_unit_test(damaged_ranges_are_told_by_each_question_and_by_verify),
        cmocka_unit_test(the_golden_file_is_written_and_read_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
