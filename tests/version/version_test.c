/* SPDX-License-Identifier: MIT
 *
 * Versions: an edit makes the next list of tables, or is refused and changes nothing.
 */
#include "version/version.h"

#include <stdlib.h>

#include "support/test.h"
#include "version/metas.h"

/* base + edit, which must be fine; base is let go. */
static struct version *apply(struct version *base, const uint64_t *removed, size_t removed_count,
                             struct table_meta *const *added, size_t added_count)
{
    struct test_op t;
    struct version *v;
    const struct version_edit edit = {removed, removed_count, added, added_count};
    test_op_init(&t);
    assert_status(&t.op, version_apply(&t.op, &alloc_libc, base, &edit, &v), TAMIZ_OK);
    version_unref(base);
    return v;
}

/* The words with which the edit is refused; `base` is as it was. */
static tamiz_status refused(const struct version *base, const uint64_t *removed,
                            size_t removed_count, struct table_meta *const *added,
                            size_t added_count, const char *words)
{
    struct test_op t;
    struct version *v = (struct version *)&t; /* anything but NULL */
    const struct version_edit edit = {removed, removed_count, added, added_count};
    test_op_init(&t);
    const tamiz_status st = version_apply(&t.op, &alloc_libc, base, &edit, &v);
    assert_null(v);
    assert_int_equal(t.op.status, st);
    if (!strstr(t.op.text, words))
        fail_msg("\"%s\" lacks \"%s\"", t.op.text, words);
    return st;
}

static void runs_are_newest_first_and_tables_in_key_order(void **state)
{
    (void)state;
    struct table_meta *m[] = {
        meta_make(1, 1, 3, "m", "p"), meta_make(2, 0, 7, "a", "z"),   meta_make(3, 1, 3, "a", "c"),
        meta_make(4, 0, 9, "d", "e"), meta_make(5, 2, 1, "", "\xff"),
    };
    struct version *v = apply(NULL, NULL, 0, m, 5);
    static const uint64_t order[] = {4, 2, 3, 1, 5};
    assert_true(v->run_count == 4 && v->table_count == 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(v->tables[i]->number, order[i]);
    assert_true(v->runs[0].level == 0 && v->runs[0].id == 9 && v->runs[1].id == 7);
    assert_true(v->runs[2].level == 1 && v->runs[2].count == 2 && v->runs[2].bytes == 400);
    assert_true(v->level_runs[0] == 2 && v->level_tables[1] == 2 && v->level_bytes[2] == 500);
    assert_ptr_equal(version_table(v, 4), m[3]);
    assert_null(version_table(v, 6));
    version_unref(v);
    metas_free(m, 5);
}

static void an_edit_takes_out_and_puts_in_and_the_base_stays(void **state)
{
    (void)state;
    struct table_meta *m[] = {meta_make(1, 0, 1, "a", "m"), meta_make(2, 0, 2, "a", "m"),
                              meta_make(3, 1, 1, "a", "f"), meta_make(4, 1, 1, "g", "m")};
    static const uint64_t out[] = {2, 1};
    struct test_op t;
    struct version *base = apply(NULL, NULL, 0, m, 2), *next;
    const struct version_edit edit = {out, 2, m + 2, 2};
    test_op_init(&t);
    assert_status(&t.op, version_apply(&t.op, &alloc_libc, base, &edit, &next), TAMIZ_OK);
    assert_true(base->table_count == 2 && base->level_tables[0] == 2);
    assert_true(next->table_count == 2 && next->level_tables[0] == 0 && next->level_runs[1] == 1);
    version_unref(base);
    version_unref(next);
    metas_free(m, 4);
}

static void a_table_may_be_moved_to_another_level_in_one_edit(void **state)
{
    (void)state;
    struct table_meta *m[] = {meta_make(1, 0, 1, "a", "m"), meta_make(1, 1, 2, "a", "m")};
    static const uint64_t out[] = {1};
    struct version *v = apply(apply(NULL, NULL, 0, m, 1), out, 1, m + 1, 1);
    assert_true(v->table_count == 1 && v->tables[0] == m[1] && v->level_tables[1] == 1);
    version_unref(v);
    metas_free(m, 2);
}

static void R22_edits_that_make_no_sense_are_refused_in_words(void **state)
{
    (void)state;
    struct table_meta *m[] = {meta_make(1, 1, 1, "d", "f"), meta_make(2, 1, 1, "k", "m")};
    struct version *base = apply(NULL, NULL, 0, m, 2);
    static const uint64_t unknown[] = {3}, twice[] = {1, 1};
    struct table_meta *same = meta_make(2, 0, 5, "a", "b");
    struct table_meta *left = meta_make(5, 1, 1, "a", "d"), *right = meta_make(6, 1, 1, "m", "z");
    struct table_meta *in = meta_make(7, 1, 1, "e", "e"), *over = meta_make(8, 1, 1, "a", "z");
    struct table_meta *backward = meta_make(9, 0, 5, "b", "a"),
                      *deep = meta_make(10, 8, 1, "a", "b");
    struct table_meta *pair[] = {same, same};
    struct table_meta *touching[] = {meta_make(12, 0, 6, "a", "b"), meta_make(13, 0, 6, "b", "c")};
    const tamiz_status bad = TAMIZ_CORRUPTION;
    assert_int_equal(refused(base, unknown, 1, NULL, 0, "no table 3"), bad);
    assert_int_equal(refused(NULL, unknown, 1, NULL, 0, "no table 3"), bad);
    assert_int_equal(refused(base, twice, 2, NULL, 0, "table 1 removed once, found it twice"), bad);
    assert_int_equal(refused(base, NULL, 0, &same, 1, "found table 2 there already"), bad);
    assert_int_equal(refused(NULL, NULL, 0, pair, 2, "table 2 added once, found it twice"), bad);
    assert_int_equal(refused(base, NULL, 0, &left, 1, "table 1 of level 1, run 1"), bad);
    assert_int_equal(refused(base, NULL, 0, &right, 1, "the largest of table 2, found m"), bad);
    assert_int_equal(refused(base, NULL, 0, &in, 1, "table 7 of level 1, run 1"), bad);
    assert_int_equal(refused(base, NULL, 0, &over, 1, "table 1 of level 1, run 1"), bad);
    assert_int_equal(refused(base, NULL, 0, &backward, 1, "table 9: expected a largest key"), bad);
    assert_int_equal(refused(base, NULL, 0, &deep, 1, "level below 8, found 8"), bad);
    assert_int_equal(refused(NULL, NULL, 0, touching, 2, "table 13 of level 0, run 6"), bad);
    assert_true(base->table_count == 2);
    struct table_meta *all[] = {same, left, right, in, over, backward, deep};
    metas_free(all, sizeof all / sizeof *all);
    metas_free(touching, 2);
    version_unref(base);
    metas_free(m, 2);
}

/* ---- finding ---- */

/* What run_find must answer, asked of each table. */
static struct table_meta *find_slowly(const struct run *run, struct slice key)
{
    for (uint32_t i = 0; i < run->count; i++) {
        if (slice_compare(run->tables[i]->smallest, key) <= 0 &&
            slice_compare(key, run->tables[i]->largest) <= 0)
            return run->tables[i];
    }
    return NULL;
}

static uint32_t lower_bound_slowly(const struct run *run, struct slice key)
{
    uint32_t i = 0;
    while (i < run->count && slice_compare(run->tables[i]->largest, key) < 0)
        i++;
    return i;
}

/* Side by side as one by one. */
static void ask_together(const struct run *run, const struct slice *keys, size_t n)
{
    uint64_t words[64];
    uint32_t places[64];
    assert_true(n <= 64);
    run_words(run, keys, n, words);
    run_places(run, keys, words, n, places);
    for (size_t i = 0; i < n; i++) {
        assert_true(words[i] == run_word(run, keys[i]));
        assert_int_equal(places[i], run_place(run, keys[i], words[i]));
    }
}

/* n tables [p x, p x + 1] for x = 0, 4, 8, …: every key around them is asked for. */
static void ask_around(const char *prefix, int n)
{
    struct table_meta **m = calloc((size_t)n, sizeof *m);
    assert_non_null(m);
    char a[40], b[40];
    for (int i = 0; i < n; i++) {
        (void)snprintf(a, sizeof a, "%s%06d", prefix, i * 4);
        (void)snprintf(b, sizeof b, "%s%06d", prefix, i * 4 + 1);
        m[i] = meta_make((uint64_t)i + 1, 1, 1, a, b);
    }
    struct version *v = apply(NULL, NULL, 0, m, (size_t)n);
    char texts[64][40];
    struct slice keys[64];
    size_t together = 0;
    for (int i = -1; i <= n * 4 + 4; i++) {
        (void)snprintf(a, sizeof a, "%s%06d%s", prefix, i, i % 3 ? "" : "x");
        const struct slice key = i < 0 ? slice_of_text("") : slice_of_text(a);
        memcpy(texts[together], a, sizeof a);
        keys[together] = i < 0 ? key : slice_of_text(texts[together]);
        if (++together == 64 || i == n * 4 + 4) {
            ask_together(v->runs, keys, together);
            together = 0;
        }
        const uint64_t word = run_word(v->runs, key);
        assert_ptr_equal(run_find(v->runs, key, word), find_slowly(v->runs, key));
        assert_int_equal(run_lower_bound(v->runs, key, word), lower_bound_slowly(v->runs, key));
    }
    const struct slice last = slice_of_text("\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    assert_null(run_find(v->runs, last, run_word(v->runs, last)));
    assert_int_equal(run_lower_bound(v->runs, last, run_word(v->runs, last)), n);
    version_unref(v);
    metas_free(m, (size_t)n);
    free(m);
}

static void the_one_table_that_can_have_a_key_is_found(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"", "k", "all begin alike and differ late ",
                                           "\xff\xff\xff\xff\xff\xff\xff\xff"};
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
        for (int n = 1; n <= 33; n++)
            ask_around(prefixes[p], n);
    }
}

/* ---- many edits against a list that is kept by hand ---- */

static void random_edits_agree_with_a_version_made_at_once(void **state)
{
    (void)state;
    struct test_random random = test_random_start(41);
    enum { PLACES = 60 };
    struct table_meta *there[PLACES] = {0};
    struct version *v = apply(NULL, NULL, 0, NULL, 0);
    uint64_t number = 1;
    for (int round = 0; round < 300; round++) {
        uint64_t removed[PLACES];
        struct table_meta *added[PLACES], *now[PLACES];
        size_t removed_count = 0, added_count = 0, count = 0;
        for (int i = 0; i < PLACES; i++) {
            if (test_random_below(&random, 8))
                continue;
            if (there[i]) {
                removed[removed_count++] = there[i]->number;
                table_meta_unref(&alloc_libc, there[i]);
                there[i] = NULL;
            }
            if (test_random_below(&random, 2)) {
                char a[8], b[8];
                (void)snprintf(a, sizeof a, "%03da", i % 20);
                (void)snprintf(b, sizeof b, "%03dz", i % 20);
                there[i] = meta_make(number++, (uint32_t)i / 40, 1 + (uint64_t)i / 20 % 2, a, b);
                added[added_count++] = there[i];
            }
        }
        v = apply(v, removed, removed_count, added, added_count);
        for (int i = 0; i < PLACES; i++) {
            if (there[i])
                now[count++] = there[i];
        }
        struct version *at_once = apply(NULL, NULL, 0, now, count);
        assert_true(versions_equal(v, at_once));
        for (uint32_t i = 0; i < v->table_count; i++)
            assert_true(v->largest8[i] == run_word(v->runs, v->tables[i]->largest) &&
                        v->smallest8[i] == run_word(v->runs, v->tables[i]->smallest));
        version_unref(at_once);
    }
    version_unref(v);
    for (int i = 0; i < PLACES; i++)
        table_meta_unref(&alloc_libc, there[i]);
}

struct budget {
    int left;
    size_t in_use;
};

static void *from_budget(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct budget *b = ctx;
    if (new_size == 0) {
        b->in_use -= old_size;
        mem_free(&alloc_libc, p, old_size);
        return NULL;
    }
    if (b->left-- <= 0)
        return NULL;
    b->in_use += new_size - (p ? old_size : 0);
    return mem_resize(&alloc_libc, p, old_size, new_size);
}

static void memory_that_runs_out_changes_nothing_and_leaks_nothing(void **state)
{
    (void)state;
    struct budget budget = {1000, 0};
    const struct alloc limited = {{from_budget, &budget}, NULL};
    struct table_meta *m[] = {meta_make(1, 0, 1, "a", "m"), meta_make(2, 0, 2, "a", "m")};
    const struct version_edit edit = {NULL, 0, m, 2};
    struct test_op t;
    struct version *v = NULL;
    int tries = 0;
    do {
        test_op_init(&t);
        budget.left = tries++;
        (void)version_apply(&t.op, &limited, NULL, &edit, &v);
        assert_true(v || (t.op.status == TAMIZ_OUT_OF_MEMORY && budget.in_use == 0));
    } while (!v && tries < 100);
    assert_true(tries > 4);
    version_unref(v);
    assert_int_equal(budget.in_use, 0);
    metas_free(m, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_newest_first_and_tables_in_key_order),
        cmocka_unit_test(an_edit_takes_out_and_puts_in_and_the_base_stays),
        cmocka_unit_test(a_table_may_be_moved_to_another_level_in_one_edit),
        cmocka_unit_test(R22_edits_that_make_no_sense_are_refused_in_words),
        cmocka_unit_test(the_one_table_that_can_have_a_key_is_found),
        cmocka_unit_test(random_edits_agree_with_a_version_made_at_once),
        cmocka_unit_test(memory_that_runs_out_changes_nothing_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
