/* SPDX-License-Identifier: MIT */
#include "compact/monkey.h"

#include <math.h>
#include <string.h>

#include "support/test.h"

#define assert_near(a, b, within) assert_true(fabs((a) - (b)) <= (within))

enum { RUNS_MAX = 16 };
#define LN2        0.69314718055994530942
#define BLOOM_COST (1 / LN2) /* bits a key that halve the rate of an ideal Bloom filter */

static double sum(const double *x, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += x[i];
    return s;
}

/* `levels` runs, each `ratio` times the one before. Returns all keys. */
static double leveled(struct monkey_run *runs, size_t levels, double ratio, double cost)
{
    double all = 0;
    for (size_t i = 0; i < levels; i++) {
        runs[i] = (struct monkey_run){1000 * pow(ratio, (double)i), 1, cost, 60};
        all += runs[i].keys;
    }
    return all;
}

static double bits_taken(const struct monkey_run *runs, const double *rates, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += runs[i].keys * monkey_bits(&runs[i], rates[i]);
    return s;
}

/* R = T^(T/(T-1)) / (T-1) e^(-(M/N) ln^2 2), for a tree of many levels. */
static void the_sum_is_the_closed_form_of_a_leveled_tree(void **state)
{
    (void)state;
    for (int t = 2; t <= 10; t += 2) {
        struct monkey_run runs[RUNS_MAX];
        double rates[RUNS_MAX];
        const double ratio = t, all = leveled(runs, RUNS_MAX, ratio, BLOOM_COST);
        for (int bits = 4; bits <= 12; bits += 4) {
            monkey_rates(runs, RUNS_MAX, all * bits, rates);
            const double closed =
                pow(ratio, ratio / (ratio - 1)) / (ratio - 1) * exp(-bits * LN2 * LN2);
            assert_near(sum(rates, RUNS_MAX) / closed, 1, 0.001);
            assert_near(bits_taken(runs, rates, RUNS_MAX) / (all * bits), 1, 1e-9);
        }
    }
}

/* The example of the paper's shape: T = 10, five levels: 3.48 times fewer. */
static void five_levels_of_ratio_ten_waste_3_48_times_less(void **state)
{
    (void)state;
    struct monkey_run runs[RUNS_MAX];
    double rates[RUNS_MAX];
    const double all = leveled(runs, 5, 10, BLOOM_COST);
    monkey_rates(runs, 5, all * 10, rates);
    assert_near(5 * exp(-10 * LN2 * LN2) / sum(rates, 5), 3.48, 0.02);
    for (int i = 1; i < 5; i++)
        assert_near(rates[i] / rates[i - 1], 10, 1e-6);
}

/* With little memory the largest level gets no filter, and the others share it all. */
static void a_level_whose_rate_would_be_one_gets_none(void **state)
{
    (void)state;
    struct monkey_run runs[RUNS_MAX];
    double rates[RUNS_MAX];
    const double all = leveled(runs, 5, 10, BLOOM_COST);
    monkey_rates(runs, 5, all * 0.1, rates);
    assert_near(rates[4], 1, 1e-12);
    assert_near(monkey_bits(&runs[4], rates[4]), 0, 1e-9);
    assert_true(rates[3] < 1);
    assert_near(bits_taken(runs, rates, 5) / (all * 0.1), 1, 1e-9);
}

/* No exchange of bits between two runs wastes less: families of several costs, weights, sizes. */
static void no_exchange_of_bits_is_better(void **state)
{
    (void)state;
    struct test_random random = test_random_start(7);
    for (int round = 0; round < 300; round++) {
        struct monkey_run runs[RUNS_MAX];
        double rates[RUNS_MAX], all = 0;
        const size_t n = 2 + test_random_below(&random, RUNS_MAX - 2);
        for (size_t i = 0; i < n; i++) {
            runs[i] =
                (struct monkey_run){.keys = 1 + (double)test_random_below(&random, 1000000),
                                    .weight = 0.1 + (double)test_random_below(&random, 100) / 10,
                                    .cost = 1 + (double)test_random_below(&random, 60) / 100,
                                    .bits_most = 24};
            all += runs[i].keys;
        }
        monkey_rates(runs, n, all * (0.5 + (double)test_random_below(&random, 15)), rates);
        for (int k = 0; k < 50; k++) {
            const size_t a = test_random_below(&random, n), b = test_random_below(&random, n);
            const double bits = 0.01 * fmin(runs[a].keys, runs[b].keys);
            const double at_a = monkey_bits(&runs[a], rates[a]) - bits / runs[a].keys;
            const double at_b = monkey_bits(&runs[b], rates[b]) + bits / runs[b].keys;
            if (a == b || at_a < 0 || at_b > runs[b].bits_most)
                continue;
            const double before = runs[a].weight * rates[a] + runs[b].weight * rates[b];
            const double after = runs[a].weight * exp2(-at_a / runs[a].cost) +
                                 runs[b].weight * exp2(-at_b / runs[b].cost);
            assert_true(after >= before * (1 - 1e-9));
        }
    }
}

static void equal_runs_get_the_average(void **state)
{
    (void)state;
    struct monkey_run runs[3];
    double rates[3];
    for (int i = 0; i < 3; i++)
        runs[i] = (struct monkey_run){5000, 1, 1.5, 24};
    monkey_rates(runs, 3, 15000 * 7.5, rates);
    for (int i = 0; i < 3; i++)
        assert_near(monkey_bits(&runs[i], rates[i]), 7.5, 1e-9);
}

static double cost_of(const char *text)
{
    tamiz_filter_policy policy;
    assert_public(tamiz_filter_policy_parse(text, &policy), TAMIZ_OK);
    return monkey_cost(&policy);
}

static void a_family_says_by_itself_what_halving_the_rate_costs(void **state)
{
    (void)state;
    assert_near(cost_of("bloom:10"), 1.44, 0.02);
    assert_true(cost_of("blocked:10") > 1.44 && cost_of("blocked:10") < 1.8);
    assert_near(cost_of("ribbon:10"), 1.05, 0.05);
    assert_near(cost_of("fuse:10"), 1.13, 0.03);
    assert_true(cost_of("fuse8") == 0); /* one width only */
    assert_true(cost_of("none") == 0);
}

/* ---- a tree ---- */

static void table_add_between(struct test_op *t, struct table_meta **list, size_t *n,
                              uint32_t level, uint64_t run, uint64_t keys, const char *range)
{
    const struct slice smallest = slice_of(range, 1), largest = slice_of(range + 1, 1);
    const struct table_meta like = {.number = *n + 1,
                                    .file_size = 100,
                                    .level = level,
                                    .run = run,
                                    .entries = keys,
                                    .keys = keys,
                                    .smallest = smallest,
                                    .largest = largest};
    list[*n] = table_meta_new(&t->op, &alloc_libc, &like);
    assert_non_null(list[(*n)++]);
}

static void table_add(struct test_op *t, struct table_meta **list, size_t *n, uint32_t level,
                      uint64_t run, uint64_t keys)
{
    table_add_between(t, list, n, level, run, keys, "az");
}

static void the_output_is_seen_in_the_tree_as_it_will_be(void **state)
{
    (void)state;
    struct test_op t;
    struct table_meta *list[3];
    size_t n = 0;
    struct version *v;
    struct job j;
    tamiz_filter_policy policy, spread;
    test_op_init(&t);
    assert_public(tamiz_filter_policy_parse("bloom:10", &policy), TAMIZ_OK);
    table_add(&t, list, &n, 0, 9, 1000);
    table_add(&t, list, &n, 1, 5, 9000);
    table_add(&t, list, &n, 2, 1, 100000);
    const struct version_edit edit = {.added = list, .added_count = n};
    assert_status(&t.op, version_apply(&t.op, &alloc_libc, NULL, &edit, &v), TAMIZ_OK);

    assert_status(&t.op, monkey_policy(&t.op, v, NULL, 1000, &policy, &spread), TAMIZ_OK);
    const double flushed = spread.bits_per_key;
    job_init(&j, &alloc_libc);
    buf_append(&j.inputs, &list[0], sizeof list[0]);
    buf_append(&j.inputs, &list[1], sizeof list[1]);
    buf_slice_append(&j.smallest, slice_of_text("a"));
    buf_slice_append(&j.largest, slice_of_text("z"));
    j.output_level = 1;
    j.output_run = 5;
    assert_status(&t.op, monkey_policy(&t.op, v, &j, 0, &policy, &spread), TAMIZ_OK);
    const double merged = spread.bits_per_key;
    /* ten times the keys: log2(10) x 1.44 bits apart */
    assert_near(flushed - merged, log2(10) * cost_of("bloom:10"), 0.3);
    buf_append(&j.inputs, &list[2], sizeof list[2]);
    j.output_level = 2;
    j.output_run = 1;
    assert_status(&t.op, monkey_policy(&t.op, v, &j, 0, &policy, &spread), TAMIZ_OK);
    assert_near(spread.bits_per_key, 10, 0.01); /* all there is: the average */

    assert_public(tamiz_filter_policy_parse("fuse8", &policy), TAMIZ_OK);
    assert_status(&t.op, monkey_policy(&t.op, v, &j, 0, &policy, &spread), TAMIZ_OK);
    assert_memory_equal(&spread, &policy, sizeof policy);
    job_free(&j);
    version_unref(v);
    for (size_t i = 0; i < n; i++)
        table_meta_unref(&alloc_libc, list[i]);
}

/* Bits of what a merge of list[take] with nothing else gets, in the tree of the `n` tables. */
static double bits_of(struct test_op *t, struct table_meta *const *list, size_t n, size_t take,
                      const tamiz_filter_policy *policy)
{
    struct version *v;
    struct job j;
    tamiz_filter_policy spread;
    const struct version_edit edit = {.added = list, .added_count = n};
    assert_status(&t->op, version_apply(&t->op, &alloc_libc, NULL, &edit, &v), TAMIZ_OK);
    job_init(&j, &alloc_libc);
    buf_append(&j.inputs, &list[take], sizeof list[take]);
    buf_slice_append(&j.smallest, list[take]->smallest);
    buf_slice_append(&j.largest, list[take]->largest);
    j.output_level = list[take]->level;
    j.output_run = list[take]->run;
    assert_status(&t->op, monkey_policy(&t->op, v, &j, 0, policy, &spread), TAMIZ_OK);
    job_free(&j);
    version_unref(v);
    return strcmp(spread.kind, "none") == 0 ? 0 : spread.bits_per_key;
}

static void tables_free(struct table_meta **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        table_meta_unref(&alloc_libc, list[i]);
}

/* A run of 10,000 over everything among 100,000, and one of 10,000 in a tenth of them, which is
 * asked a tenth of the time: log2(10) halvings fewer. */
static void a_run_that_covers_a_part_is_asked_as_often(void **state)
{
    (void)state;
    struct test_op t;
    struct table_meta *list[3], *parts[4];
    size_t n = 0, m = 0;
    tamiz_filter_policy policy;
    test_op_init(&t);
    assert_public(tamiz_filter_policy_parse("bloom:10", &policy), TAMIZ_OK);
    table_add_between(&t, list, &n, 1, 7, 10000, "ak");
    table_add_between(&t, list, &n, 2, 5, 100000, "ak");
    const double whole = bits_of(&t, list, n, 0, &policy);
    table_add_between(&t, parts, &m, 1, 7, 10000, "ab");
    table_add_between(&t, parts, &m, 2, 5, 100000, "ak");
    const double part = bits_of(&t, parts, m, 0, &policy);
    /* (10,000 + 10,000) of 110,000 keys are there: 2 / 11 */
    assert_near(whole - part, log2(11.0 / 2) * cost_of("bloom:10"), 0.4);
    tables_free(list, n);
    tables_free(parts, m);
}

/* Keys put in order: each run has keys of its own and is asked for those alone. */
static void runs_beside_each_other_are_one(void **state)
{
    (void)state;
    struct test_op t;
    struct table_meta *list[3];
    size_t n = 0;
    tamiz_filter_policy policy;
    test_op_init(&t);
    assert_public(tamiz_filter_policy_parse("bloom:10", &policy), TAMIZ_OK);
    table_add_between(&t, list, &n, 1, 9, 1000, "xz");
    table_add_between(&t, list, &n, 2, 5, 10000, "mp");
    table_add_between(&t, list, &n, 3, 1, 100000, "ad");
    for (size_t i = 0; i < n; i++)
        assert_near(bits_of(&t, list, n, i, &policy), 10, 0.05);
    tables_free(list, n);
}

/* Blocked Bloom filters lose more than their formula at many bits and at few: where the spread
 * would waste more by the family's own arithmetic, it is left: a run gets what the policy says. */
static void the_spread_is_never_worse_than_the_average(void **state)
{
    static const char *const kinds[] = {"blocked:4", "blocked:20", "bloom:2",
                                        "ribbon:6",  "cuckoo:12",  "split:10"};
    (void)state;
    struct test_random random = test_random_start(8);
    for (int round = 0; round < 120; round++) {
        tamiz_filter_policy policy;
        struct table_meta *list[6];
        struct test_op t;
        const size_t many = 2 + test_random_below(&random, 4);
        double keys[6], spread = 0, even = 0;
        size_t n = 0;
        test_op_init(&t);
        assert_public(tamiz_filter_policy_parse(kinds[round % 6], &policy), TAMIZ_OK);
        if (monkey_cost(&policy) <= 0)
            continue;
        for (size_t i = 0; i < many; i++) {
            keys[i] = (double)(1000 + test_random_below(&random, 1000000));
            table_add(&t, list, &n, (uint32_t)i + 1, 20 - i, (uint64_t)keys[i]);
        }
        for (size_t i = 0; i < many; i++) {
            tamiz_filter_policy p = policy;
            tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
            assert_public(tamiz_filter_plan(&policy, 1 << 20, &info), TAMIZ_OK);
            even += info.expected_fpr;
            p.fpr = 0;
            p.bits_per_key = bits_of(&t, list, n, i, &policy);
            if (p.bits_per_key > 0)
                assert_public(tamiz_filter_plan(&p, 1 << 20, &info), TAMIZ_OK);
            spread += p.bits_per_key > 0 ? info.expected_fpr : 1;
        }
        assert_true(spread <= even * (1 + 1e-9));
        tables_free(list, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_the_closed_form_of_a_leveled_tree),
        cmocka_unit_test(five_levels_of_ratio_ten_waste_3_48_times_less),
        cmocka_unit_test(a_level_whose_rate_would_be_one_gets_none),
        cmocka_unit_test(no_exchange_of_bits_is_better),
        cmocka_unit_test(equal_runs_get_the_average),
        cmocka_unit_test(a_family_says_by_itself_what_halving_the_rate_costs),
        cmocka_unit_test(the_output_is_seen_in_the_tree_as_it_will_be),
        cmocka_unit_test(a_run_that_covers_a_part_is_asked_as_often),
        cmocka_unit_test(runs_beside_each_other_are_one),
        cmocka_unit_test(the_spread_is_never_worse_than_the_average),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
