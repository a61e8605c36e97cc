/* SPDX-License-Identifier: MIT */
#include "compact/toll.h"

#include "support/test.h"

enum { MB = 1000000 };

/* The examples of toll.h. */
static void a_merge_is_due_when_reads_have_paid_what_it_costs(void **state)
{
    struct toll t = {0};
    (void)state;
    toll_look(&t, (struct toll_reads){1 * MB, 0}, 6); /* 5 in vain, 50 ns each: 250 ms */
    assert_int_equal(toll_buys(&t), 60 * MB);         /* 10 ms a merge, 4 ns a byte */
    toll_spend(&t, 40 * MB);
    assert_int_equal(toll_buys(&t), 70 * MB / 4);
    toll_spend(&t, 1000 * MB);
    assert_int_equal(toll_buys(&t), 0);
}

static void a_few_reads_buy_nothing(void **state)
{
    struct toll t = {0};
    (void)state;
    toll_look(&t, (struct toll_reads){10000, 1000}, 2); /* 0.5 and 0.7 ms */
    assert_int_equal(toll_buys(&t), 0);
    toll_look(&t, (struct toll_reads){10000, 20000}, 2); /* 14.5 ms in all */
    assert_int_equal(toll_buys(&t), 45 * MB / 40);
}

static void where_there_is_one_run_nothing_is_in_vain(void **state)
{
    struct toll t = {0};
    (void)state;
    toll_look(&t, (struct toll_reads){1000 * MB, MB}, 1);
    toll_look(&t, (struct toll_reads){2000 * MB, 2 * MB}, 0);
    assert_int_equal(toll_buys(&t), 0);
    toll_look(&t, (struct toll_reads){2001 * MB, 2 * MB}, 2); /* only what came since */
    assert_int_equal(toll_buys(&t), 10 * MB);
}

/* It is not asked again and again whether there is something for what there was nothing for. */
static void what_buys_nothing_is_kept_until_it_is_a_quarter_more(void **state)
{
    struct toll t = {0};
    (void)state;
    toll_look(&t, (struct toll_reads){2 * MB, 0}, 2); /* 100 ms */
    assert_true(toll_buys(&t) > 0);
    toll_in_vain(&t);
    assert_int_equal(toll_buys(&t), 0);
    toll_look(&t, (struct toll_reads){2 * MB + 490000, 0}, 2);
    assert_int_equal(toll_buys(&t), 0);
    toll_look(&t, (struct toll_reads){2 * MB + 510000, 0}, 2);
    assert_true(toll_buys(&t) > 28 * MB);
    toll_in_vain(&t);
    toll_changed(&t);
    assert_true(toll_buys(&t) > 28 * MB);
    toll_forget(&t);
    assert_int_equal(toll_buys(&t), 0);
}

static void counters_that_begin_anew_pay_nothing(void **state)
{
    struct toll t = {0};
    (void)state;
    toll_look(&t, (struct toll_reads){MB, MB}, 1);
    toll_look(&t, (struct toll_reads){0, 0}, 100);
    assert_int_equal(toll_buys(&t), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_merge_is_due_when_reads_have_paid_what_it_costs),
        cmocka_unit_test(a_few_reads_buy_nothing),
        cmocka_unit_test(where_there_is_one_run_nothing_is_in_vain),
        cmocka_unit_test(what_buys_nothing_is_kept_until_it_is_a_quarter_more),
        cmocka_unit_test(counters_that_begin_anew_pay_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
