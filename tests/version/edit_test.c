/* SPDX-License-Identifier: MIT
 *
 * One edit of the manifest: what goes in comes out, and what makes no sense is refused by name,
 * however valid its checksum.
 */
#include <stdlib.h>

#include "base/coding.h"
#include "support/test.h"
#include "version/manifest.h"
#include "version/metas.h"

static tamiz_status decode(struct slice body, struct manifest_decoded *d, char words[OP_TEXT_MAX])
{
    struct test_op t;
    test_op_init(&t);
    const tamiz_status st = manifest_edit_decode(&t.op, &alloc_libc, body, d);
    assert_int_equal(t.op.status, st);
    memcpy(words, t.op.text, OP_TEXT_MAX);
    return st;
}

/* Status only. */
static tamiz_status decodes(struct slice body)
{
    struct manifest_decoded d;
    char words[OP_TEXT_MAX];
    const tamiz_status st = decode(body, &d, words);
    if (st < 0)
        assert_true(d.edit.tree_count == 0 && d.added.data == NULL && strlen(words) > 10);
    manifest_decoded_free(&d);
    return st;
}

static void an_edit_comes_back_with_all_its_fields(void **state)
{
    (void)state;
    static const uint64_t removed[] = {3, 5};
    struct table_meta *m[] = {meta_make(7, 0, 9, "", ""), meta_make(8, 7, 1, "a", "b")};
    const struct manifest_keyspace spaces[] = {{2, slice_of_text("words"), false},
                                               {1, slice_of(NULL, 0), true}};
    const struct tree_edit trees[] = {{.tables = {removed, 2, m, 1}},
                                      {2, 12, {removed + 1, 1, m + 1, 1}}};
    const struct manifest_edit edit = {
        .has_next_file = true,
        .has_log_number = true,
        .has_last_seq = true,
        .has_next_run = true,
        .has_next_keyspace = true,
        .next_file = 10,
        .log_number = 9,
        .last_seq = SEQ_MAX,
        .next_run = 11,
        .next_keyspace = 3,
        .trees = trees,
        .tree_count = 2,
        .keyspaces = spaces,
        .keyspace_count = 2,
    };
    struct buf body = buf_init(&alloc_libc);
    struct manifest_decoded d;
    char words[OP_TEXT_MAX];
    m[1]->keyspace = 2;
    manifest_edit_encode(&body, &edit);
    assert_int_equal(decode(buf_slice(&body), &d, words), TAMIZ_OK);
    assert_true(d.edit.has_next_file && d.edit.has_log_number && d.edit.has_last_seq &&
                d.edit.has_next_run && d.edit.has_next_keyspace);
    assert_true(d.edit.next_file == 10 && d.edit.log_number == 9 && d.edit.last_seq == SEQ_MAX &&
                d.edit.next_run == 11 && d.edit.next_keyspace == 3);
    assert_int_equal(d.edit.tree_count, 2);
    const struct tree_edit *a = &d.edit.trees[0], *b = &d.edit.trees[1];
    assert_true(a->keyspace == 0 && a->log_number == 0 && b->keyspace == 2 && b->log_number == 12);
    assert_true(a->tables.removed_count == 2 && a->tables.removed[1] == 5 &&
                b->tables.removed_count == 1 && b->tables.removed[0] == 5);
    assert_true(a->tables.added_count == 1 && metas_equal(a->tables.added[0], m[0]) &&
                b->tables.added_count == 1 && metas_equal(b->tables.added[0], m[1]));
    assert_true(d.edit.keyspace_count == 2 && !d.edit.keyspaces[0].dropped &&
                slice_equal(d.edit.keyspaces[0].name, spaces[0].name) &&
                d.edit.keyspaces[1].dropped && d.edit.keyspaces[1].id == 1);
    manifest_decoded_free(&d);
    buf_free(&body);
    metas_free(m, 2);
}

static void an_unknown_field_is_of_a_newer_version(void **state)
{
    (void)state;
    static const uint8_t next[] = {11, 1}, zero[] = {0, 1};
    static const uint8_t large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1};
    struct manifest_decoded d;
    char words[OP_TEXT_MAX];
    assert_int_equal(decode(slice_of(next, 2), &d, words), TAMIZ_NOT_SUPPORTED);
    assert_non_null(strstr(words, "field 11"));
    assert_int_equal(decodes(slice_of(zero, 2)), TAMIZ_NOT_SUPPORTED);
    assert_int_equal(decodes(slice_of(large, sizeof large)), TAMIZ_NOT_SUPPORTED);
}

static void R22_a_counter_out_of_range_or_given_twice_is_refused(void **state)
{
    (void)state;
    /* tag, least, most */
    static const struct {
        uint8_t tag;
        uint64_t least, most;
    } fields[] = {{1, 1, FILE_NUMBER_END - 1},
                  {2, 0, FILE_NUMBER_END - 1},
                  {3, 0, SEQ_MAX},
                  {4, 0, FILE_NUMBER_END - 1},
                  {9, 1, FILE_NUMBER_END - 1}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const uint64_t values[] = {fields[i].least - 1, fields[i].least, fields[i].most,
                                   fields[i].most + 1, UINT64_MAX};
        for (size_t v = 0; v < 5; v++) {
            struct buf body = buf_init(&alloc_libc);
            const bool fine = v == 1 || v == 2;
            buf_varint(&body, fields[i].tag);
            buf_varint(&body, values[v]);
            assert_int_equal(decodes(buf_slice(&body)), fine ? TAMIZ_OK : TAMIZ_CORRUPTION);
            if (fine) {
                buf_varint(&body, fields[i].tag);
                buf_varint(&body, values[v]);
                assert_int_equal(decodes(buf_slice(&body)), TAMIZ_CORRUPTION);
            }
            buf_free(&body);
        }
    }
}

/* An added table with one number replaced: keyspace, number, file id, then the ten varints. */
static tamiz_status added_with(size_t field, uint64_t value)
{
    uint64_t f[] = {0, 12, 77, 4096, 1, 3, 10, 8, 2, 5, 9, 64, 3};
    struct buf body = buf_init(&alloc_libc);
    f[field] = value;
    buf_u8(&body, 6);
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        if (i == 2)
            buf_u64(&body, f[i]);
        else
            buf_varint(&body, f[i]);
    }
    buf_block(&body, slice_of_text("a"));
    buf_block(&body, slice_of_text("b"));
    const tamiz_status st = decodes(buf_slice(&body));
    buf_free(&body);
    return st;
}

static void R22_a_table_with_a_field_out_of_range_is_refused(void **state)
{
    (void)state;
    static const struct {
        size_t field;
        uint64_t value;
        bool fine;
    } cases[] = {
        {0, 0, true},
        {0, 5, true},
        {0, UINT64_MAX, false}, /* keyspace */
        {1, 0, false},
        {1, 1, true},
        {1, FILE_NUMBER_END - 1, true},
        {1, FILE_NUMBER_END, false},
        {1, UINT64_MAX, false}, /* number */
        {2, 0, false},
        {2, UINT64_MAX, true}, /* file id */
        {3, 0, false},
        {3, INT64_MAX, true},
        {3, (uint64_t)INT64_MAX + 1, false},
        {3, 63, false}, /* file size, below the filter's */
        {4, TAMIZ_LEVELS - 1, true},
        {4, TAMIZ_LEVELS, false},
        {4, 255, false},
        {4, UINT64_C(1) << 32, false}, /* level */
        {5, 0, true},
        {5, UINT64_MAX, false}, /* run */
        {6, 0, false},
        {6, 7, false},
        {6, 8, true}, /* entries, fewer than keys */
        {7, 0, false},
        {7, 10, true},
        {7, 11, false}, /* keys */
        {8, 10, true},
        {8, 11, false}, /* tombstones */
        {9, 9, true},
        {9, 10, false}, /* seq min above max */
        {10, 4, false},
        {10, SEQ_MAX, true},
        {10, SEQ_MAX + 1, false}, /* seq max */
        {11, 4096, true},
        {11, 4097, false}, /* filter bytes */
        {12, 0, true},
        {12, (uint64_t)INT64_MAX + 1, false}, /* range deletes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tamiz_status st = added_with(cases[i].field, cases[i].value);
        if (st != (cases[i].fine ? TAMIZ_OK : TAMIZ_CORRUPTION))
            fail_msg("field %zu = %llu: %s", cases[i].field, (unsigned long long)cases[i].value,
                     tamiz_status_name(st));
    }
}

static void R22_keys_of_every_size_and_order_are_taken_or_refused(void **state)
{
    (void)state;
    static uint8_t key[KEY_SIZE_MAX + 1];
    static const size_t sizes[] = {0, 1, 2, 7, 8, KEY_SIZE_MAX, KEY_SIZE_MAX + 1};
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++) {
        for (size_t b = 0; b < sizeof sizes / sizeof *sizes; b++) {
            struct table_meta *m = meta_make(1, 0, 1, "", "");
            struct table_meta fields = {.number = 0};
            struct table_meta *list[] = {&fields};
            const struct manifest_edit edit = {TABLES(NULL, 0, list, 1)};
            struct buf body = buf_init(&alloc_libc);
            fields.number = m->number;
            fields.file_id = m->file_id;
            fields.file_size = m->file_size;
            fields.entries = fields.keys = 1;
            fields.smallest = slice_of(key, sizes[a]);
            fields.largest = slice_of(key, sizes[b]);
            manifest_edit_encode(&body, &edit);
            const bool fine = sizes[a] <= sizes[b] && sizes[b] <= KEY_SIZE_MAX;
            assert_int_equal(decodes(buf_slice(&body)), fine ? TAMIZ_OK : TAMIZ_CORRUPTION);
            buf_free(&body);
            table_meta_unref(&alloc_libc, m);
        }
    }
}

/* A whole edit to damage. */
static struct buf sample(void)
{
    static const uint64_t removed[] = {3, 500};
    struct table_meta *m[] = {meta_make(7, 0, 9, "", "z"), meta_make(800, 7, 1, "abc", "abd")};
    const struct manifest_edit edit = {
        .has_next_file = true,
        .has_log_number = true,
        .has_last_seq = true,
        .has_next_run = true,
        .next_file = 1000,
        .log_number = 9,
        .last_seq = 123456789,
        .next_run = 11,
        TABLES(removed, 2, m, 2),
    };
    struct buf body = buf_init(&alloc_libc);
    manifest_edit_encode(&body, &edit);
    metas_free(m, 2);
    return body;
}

static void R22_an_edit_cut_anywhere_is_whole_fields_or_refused(void **state)
{
    (void)state;
    struct buf body = sample();
    size_t whole = 0;
    for (size_t size = 0; size <= body.size; size++)
        whole += decodes(slice_of(body.data, size)) == TAMIZ_OK;
    assert_int_equal(whole, 9); /* nothing, and after each of the eight fields */
    buf_free(&body);
}

static void R22_random_damage_is_survived(void **state)
{
    (void)state;
    struct test_random random = test_random_start(23);
    struct buf body = sample();
    for (int round = 0; round < 20000; round++) {
        struct buf copy = buf_init(&alloc_libc);
        buf_slice_append(&copy, buf_slice(&body));
        for (uint64_t i = 1 + test_random_below(&random, 3); i; i--)
            copy.data[test_random_below(&random, copy.size)] = (uint8_t)test_random_u64(&random);
        (void)decodes(buf_slice(&copy));
        buf_free(&copy);
    }
    buf_free(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edit_comes_back_with_all_its_fields),
        cmocka_unit_test(an_unknown_field_is_of_a_newer_version),
        cmocka_unit_test(R22_a_counter_out_of_range_or_given_twice_is_refused),
        cmocka_unit_test(R22_a_table_with_a_field_out_of_range_is_refused),
        cmocka_unit_test(R22_keys_of_every_size_and_order_are_taken_or_refused),
        cmocka_unit_test(R22_an_edit_cut_anywhere_is_whole_fields_or_refused),
        cmocka_unit_test(R22_random_damage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
