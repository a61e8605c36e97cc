/* SPDX-License-Identifier: MIT
 *
 * Which prefix a range leaves, against all keys of a small world; and tables with a filter over
 * prefixes, whole and damaged.
 */
#include "table/prefix.h"

#include "kit.h"
#include "repair.h"

/* ---- rules ---- */

/* Four bytes that matter: the lowest, a separator and its neighbour, the highest. */
static const uint8_t letters[] = {0x00, 0x2e, 0x2f, 0xff};
enum { LETTERS = 4, WORLD_LENGTH = 4, WORLD = 1 + 4 + 16 + 64 + 256 };

struct world {
    uint8_t bytes[WORLD][WORLD_LENGTH];
    size_t sizes[WORLD];
};

/* Every key of up to WORLD_LENGTH letters. */
static void world_make(struct world *w)
{
    size_t n = 0;
    w->sizes[n++] = 0;
    for (size_t from = 0, to = 1; w->sizes[from] < WORLD_LENGTH; from = to, to = n)
        for (size_t i = from; i < to && w->sizes[i] < WORLD_LENGTH; i++)
            for (size_t c = 0; c < LETTERS; c++) {
                memcpy(w->bytes[n], w->bytes[i], w->sizes[i]);
                w->bytes[n][w->sizes[i]] = letters[c];
                w->sizes[n++] = w->sizes[i] + 1;
            }
    assert_int_equal(n, WORLD);
}

static struct slice world_key(const struct world *w, size_t i)
{
    return slice_of(w->bytes[i], w->sizes[i]);
}

static const struct prefix_rule rules[] = {
    {TAMIZ_PREFIX_BYTES, 1},        {TAMIZ_PREFIX_BYTES, 2},        {TAMIZ_PREFIX_BYTES, 3},
    {TAMIZ_PREFIX_BYTES, 4},        {TAMIZ_PREFIX_SEPARATOR, 0x2f}, {TAMIZ_PREFIX_SEPARATOR, 0x00},
    {TAMIZ_PREFIX_SEPARATOR, 0xff}, {TAMIZ_PREFIX_BYTES, 11},       {TAMIZ_PREFIX_SEPARATOR, '4'},
};
enum { RULES = sizeof rules / sizeof *rules };

/* All keys in the range have `prefix` (given), or not all have one and the same. */
static void check_range(const struct world *w, struct prefix_rule rule,
                        const struct read_range *range, uint64_t *given)
{
    struct slice prefix, own;
    const char *why = NULL;
    const bool one = prefix_of_range(rule, range, &prefix, &why);
    for (size_t i = 0; i < WORLD; i++) {
        const struct slice key = world_key(w, i);
        if (range_ends_before(range, key) || range_begins_behind(range, key) || !one)
            continue;
        assert_true(prefix_of(rule, key, &own));
        assert_true(slice_equal(own, prefix));
    }
    *given += one;
    assert_true(one || *why);
}

static void a_range_that_leaves_one_prefix_has_no_key_without_it(void **state)
{
    struct world w = {{{0}}, {0}};
    (void)state;
    world_make(&w);
    for (size_t r = 0; r < RULES; r++) {
        uint64_t given = 0, unbounded = 0;
        for (size_t i = 0; i < WORLD; i++) {
            struct read_range range = {.has_lower = true, .lower = world_key(&w, i)};
            check_range(&w, rules[r], &range, &unbounded);
            range.has_upper = true;
            for (size_t j = 0; j < WORLD; j++) {
                range.upper = world_key(&w, j);
                check_range(&w, rules[r], &range, &given);
            }
        }
        assert_true(given > WORLD || r >= 7); /* else this proves little */
    }
}

static void the_range_of_a_prefix_asks_for_it(void **state)
{
    static const struct {
        struct prefix_rule rule;
        const char *lower, *upper, *prefix; /* NULL: nothing to ask */
    } cases[] = {
        {{TAMIZ_PREFIX_BYTES, 4}, "abcd", "abce", "abcd"},
        {{TAMIZ_PREFIX_BYTES, 4}, "abcdef", "abcdeg", "abcd"},
        {{TAMIZ_PREFIX_BYTES, 4}, "abc", "abd", NULL},
        {{TAMIZ_PREFIX_BYTES, 4}, "abcd", "abcf", NULL},
        {{TAMIZ_PREFIX_BYTES, 4}, "abcd", NULL, NULL},
        {{TAMIZ_PREFIX_BYTES, 2}, "\xff\xff z", NULL, "\xff\xff"},
        {{TAMIZ_PREFIX_BYTES, 2}, "a\xff", "b", "a\xff"},
        {{TAMIZ_PREFIX_BYTES, 2}, "a\xff", "b\x01", NULL},
        {{TAMIZ_PREFIX_SEPARATOR, '/'}, "a/b/", "a/b0", "a/"},
        {{TAMIZ_PREFIX_SEPARATOR, '/'}, "ab", "ac", NULL},
        {{TAMIZ_PREFIX_SEPARATOR, '/'}, "/", "0", "/"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct read_range range = {true, cases[i].upper != NULL,
                                         slice_of_text(cases[i].lower),
                                         slice_of_text(cases[i].upper ? cases[i].upper : "")};
        struct slice prefix;
        const char *why = "";
        assert_int_equal(prefix_of_range(cases[i].rule, &range, &prefix, &why),
                         cases[i].prefix != NULL);
        assert_true(!cases[i].prefix || slice_equal(prefix, slice_of_text(cases[i].prefix)));
    }
}

/* ---- tables ---- */

static struct table_build_options prefix_options(const char *filter, struct prefix_rule rule)
{
    struct table_build_options o = kit_options(filter, CODEC_NONE);
    o.prefix = rule;
    assert_public(tamiz_filter_policy_parse("bloom:16", &o.prefix_filter), TAMIZ_OK);
    return o;
}

/* Asked about every prefix that the model's keys have, and about the keys' ranges. */
static void every_prefix_is_admitted(struct kit *k, struct table *t, const struct model *m,
                                     struct prefix_rule rule, uint64_t *asked)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct slice key = key_of(&m->versions[i]);
        const struct read_range range = {true, true, key, key};
        enum table_verdict verdict;
        struct slice prefix;
        assert_status(&k->t.op, table_ask_range(&k->t.op, t, &kit_read, &range, &verdict),
                      TAMIZ_OK);
        assert_int_equal(verdict, prefix_of(rule, key, &prefix) ? TABLE_MAYBE : TABLE_NO_FILTER);
        *asked += verdict == TABLE_MAYBE;
    }
}

static void a_table_admits_all_prefixes_that_it_has(void **state)
{
    static const char *const filters[] = {"bloom:10", "blocked:10", "fuse8", "none"};
    (void)state;
    for (size_t f = 0; f < sizeof filters / sizeof *filters; f++)
        for (size_t r = 0; r < RULES; r++) {
            struct kit k;
            struct model m;
            struct test_random random = {7};
            struct table_summary s;
            uint64_t asked = 0;
            kit_make(&k, 1 << 16);
            model_make(&m, &random, 400, 50);
            const struct table_build_options options = prefix_options(filters[f], rules[r]);
            kit_build(&k, "t.sst", &m, &options, &s);
            struct table *t = kit_table(&k, "t.sst");
            every_prefix_is_admitted(&k, t, &m, rules[r], &asked);
            tamiz_report report = TAMIZ_REPORT_INIT;
            assert_status(&k.t.op, table_verify(&k.t.op, t, &report), TAMIZ_OK);
            assert_int_equal(table_filter(t)->family == NULL, f == 3);
            assert_non_null(table_prefix_filter(t)->family);
            assert_true(asked > 0 || rules[r].kind == TAMIZ_PREFIX_SEPARATOR);
            table_free(t);
            model_free(&m);
            kit_free(&k);
        }
}

static void a_damaged_filter_block_costs_both_filters_and_no_answer(void **state)
{
    struct kit k;
    struct model m;
    struct test_random random = {8};
    struct table_summary s;
    struct buf image;
    (void)state;
    kit_make(&k, 1 << 16);
    model_make(&m, &random, 300, 50);
    const struct table_build_options options =
        prefix_options("bloom:10", (struct prefix_rule){TAMIZ_PREFIX_BYTES, 2});
    kit_build(&k, "t.sst", &m, &options, &s);
    kit_read_file(&k, "t.sst", &image);
    struct table_footer footer;
    assert_status(&k.t.op,
                  table_footer_decode(
                      &k.t.op,
                      slice_of(image.data + image.size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE),
                      image.size, "t.sst", &footer),
                  TAMIZ_OK);
    image.data[footer.filter.offset + footer.filter.size - 1] ^= 1;
    kit_write_file(&k, "t.sst", image.data, image.size);
    struct table *t = kit_table(&k, "t.sst");
    const struct slice key = key_of(&m.versions[0]);
    const struct read_range range = {true, true, key, key};
    enum table_verdict verdict;
    assert_status(&k.t.op, table_ask_range(&k.t.op, t, &kit_read, &range, &verdict), TAMIZ_OK);
    assert_int_equal(verdict, TABLE_NO_FILTER);
    assert_non_null(strstr(table_filter_missing(t), "checksum"));
    assert_int_equal(k.events[TAMIZ_EVENT_FILTER_IGNORED], 1);
    table_free(t);
    buf_free(&image);
    model_free(&m);
    kit_free(&k);
}

/* Properties as a later version might write them, or a careless one. */
static void additions_are_passed_over_or_refused(void **state)
{
    struct table_properties p, back;
    struct buf bytes = buf_init(&alloc_libc);
    struct test_op t;
    (void)state;
    test_op_init(&t);
    memset(&p, 0, sizeof p);
    p.prefix = (struct prefix_filter_place){{TAMIZ_PREFIX_SEPARATOR, 0x3a}, 128};
    table_properties_encode(&bytes, &p);
    const size_t plain = bytes.size;
    assert_status(&t.op, table_properties_decode(&t.op, buf_slice(&bytes), "t", &back), TAMIZ_OK);
    assert_int_equal(back.prefix.rule.kind, TAMIZ_PREFIX_SEPARATOR);
    assert_int_equal(back.prefix.rule.value, 0x3a);
    assert_int_equal(back.prefix.keys_size, 128);
    buf_varint(&bytes, 99); /* a tag of the future */
    buf_block(&bytes, slice_of_text("whatever"));
    assert_status(&t.op, table_properties_decode(&t.op, buf_slice(&bytes), "t", &back), TAMIZ_OK);
    assert_int_equal(back.prefix.keys_size, 128);
    for (size_t size = plain + 1; size < bytes.size; size++) { /* cut within the addition */
        op_forgive(&t.op);
        assert_int_equal(table_properties_decode(&t.op, slice_of(bytes.data, size), "t", &back),
                         TAMIZ_CORRUPTION);
    }
    op_forgive(&t.op);
    bytes.size = plain;
    buf_varint(&bytes, 1); /* the same tag again */
    buf_block(&bytes, slice_of("\1\1\1", 3));
    assert_int_equal(table_properties_decode(&t.op, buf_slice(&bytes), "t", &back),
                     TAMIZ_CORRUPTION);
    op_forgive(&t.op);
    p.prefix.rule.kind = (tamiz_prefix_kind)7; /* a rule of the future: no filter to ask */
    buf_clear(&bytes);
    table_properties_encode(&bytes, &p);
    assert_status(&t.op, table_properties_decode(&t.op, buf_slice(&bytes), "t", &back), TAMIZ_OK);
    assert_int_equal(back.prefix.rule.kind, TAMIZ_PREFIX_NONE);
    assert_int_equal(back.prefix.keys_size, 128);
    buf_free(&bytes);
}

static bool decodes(struct table_properties *p, struct table_properties *back)
{
    struct buf bytes = buf_init(&alloc_libc);
    struct test_op t;
    test_op_init(&t);
    table_properties_encode(&bytes, p);
    const tamiz_status st = table_properties_decode(&t.op, buf_slice(&bytes), "t", back);
    assert_true(st == TAMIZ_OK || st == TAMIZ_CORRUPTION);
    if (st == TAMIZ_OK) /* the bytes go */
        assert_true(slice_equal(back->keyspace_name, p->keyspace_name));
    back->keyspace_name = slice_of(NULL, 0);
    buf_free(&bytes);
    return st == TAMIZ_OK;
}

static void a_keyspace_has_an_id_and_a_name_or_is_refused(void **state)
{
    struct table_properties p, back;
    char name[KEYSPACE_NAME_MAX + 1];
    (void)state;
    memset(&p, 0, sizeof p);
    memset(name, 'n', sizeof name);
    assert_true(decodes(&p, &back) && back.keyspace == 0);
    p.keyspace = 7;
    p.keyspace_name = slice_of_text("people");
    assert_true(decodes(&p, &back) && back.keyspace == 7);
    p.keyspace = KEYSPACE_ID_MAX;
    p.keyspace_name = slice_of(name, KEYSPACE_NAME_MAX);
    assert_true(decodes(&p, &back) && back.keyspace == KEYSPACE_ID_MAX);
    p.keyspace_name = slice_of(name, KEYSPACE_NAME_MAX + 1);
    assert_false(decodes(&p, &back));
    p.keyspace_name = slice_of(NULL, 0);
    assert_false(decodes(&p, &back));
    p.keyspace_name = slice_of("a\0b", 3);
    assert_false(decodes(&p, &back));
    p.keyspace_name = slice_of_text("a");
    p.keyspace = KEYSPACE_ID_MAX + 1;
    assert_false(decodes(&p, &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_that_leaves_one_prefix_has_no_key_without_it),
        cmocka_unit_test(the_range_of_a_prefix_asks_for_it),
        cmocka_unit_test(a_table_admits_all_prefixes_that_it_has),
        cmocka_unit_test(a_damaged_filter_block_costs_both_filters_and_no_answer),
        cmocka_unit_test(a_keyspace_has_an_id_and_a_name_or_is_refused),
        cmocka_unit_test(additions_are_passed_over_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
