/* SPDX-License-Identifier: MIT */
#include "compact/pace.h"

#include <math.h>

#include "support/test.h"

#define assert_near(a, b, within) assert_true(fabs((a) - (b)) <= (within))

#define MIB (UINT64_C(1) << 20)

/* A store with nothing to do: 64 MiB memtables of which two may wait, level 0 from 4 to 12 runs. */
static struct pace_state idle(void)
{
    return (struct pace_state){.memtable_bytes = 64 * MIB,
                               .sealed_most = 2,
                               .flush_rate = 100e6,
                               .runs_start = 4,
                               .runs_stop = 12,
                               .debt_start = 1024 * MIB,
                               .debt_stop = 4096 * MIB,
                               .merge_rate = 50e6};
}

static double rate_of(const struct pace_state *s, enum pace_reason *reason)
{
    const double ns = pace_ns_per_byte(s, reason);
    return ns > 0 ? 1e9 / ns : INFINITY;
}

static void nobody_is_slowed_while_the_background_keeps_up(void **state)
{
    (void)state;
    enum pace_reason reason;
    struct pace_state s = idle();
    s.unflushed = 64 * MIB; /* the active one, full */
    s.runs = 4;
    s.debt = 1024 * MIB;
    assert_true(pace_ns_per_byte(&s, &reason) == 0);
    assert_int_equal(reason, PACE_FREE);
}

static void half_full_means_as_fast_as_it_drains(void **state)
{
    (void)state;
    enum pace_reason reason;
    struct pace_state s = idle();
    s.unflushed = 128 * MIB;
    assert_near(rate_of(&s, &reason), 100e6, 1);
    assert_int_equal(reason, PACE_FLUSH);
    s = idle();
    s.runs = 8;
    assert_near(rate_of(&s, &reason), 50e6, 1);
    assert_int_equal(reason, PACE_LEVEL0);
    s = idle();
    s.debt = 2560 * MIB;
    assert_near(rate_of(&s, &reason), 50e6, 1);
    assert_int_equal(reason, PACE_DEBT);
}

static void the_scarcest_counts(void **state)
{
    (void)state;
    enum pace_reason reason;
    struct pace_state s = idle();
    s.unflushed = 128 * MIB; /* 100 MB/s */
    s.runs = 10;             /* 50 / 3 */
    s.debt = 1500 * MIB;     /* more than 250 */
    assert_near(rate_of(&s, &reason), 50e6 / 3, 1);
    assert_int_equal(reason, PACE_LEVEL0);
}

static void the_fuller_the_slower_down_to_a_floor(void **state)
{
    (void)state;
    enum pace_reason reason;
    struct pace_state s = idle();
    double before = INFINITY;
    for (uint64_t mib = 65; mib <= 400; mib++) {
        s.unflushed = mib * MIB;
        const double rate = rate_of(&s, &reason);
        assert_true(rate <= before);
        assert_true(rate >= 256.0 * 1024 - 1);
        before = rate;
    }
    assert_near(before, 256.0 * 1024, 1);
}

/* A writer that could write ten times as fast as memtables are flushed, one job a memtable: it
 * never meets the end of the room, and loses none of the background's speed. */
static void a_fast_writer_comes_to_rest_and_never_stops(void **state)
{
    (void)state;
    enum pace_reason reason;
    struct pace_state s = idle();
    const double step = 0.001; /* s */
    double unflushed = 0, written = 0, flushing = 0;
    unsigned sealed = 0;
    for (int i = 0; i < 60000; i++) {
        s.unflushed = (uint64_t)unflushed;
        double rate = rate_of(&s, &reason);
        rate = rate < 1000e6 ? rate : 1000e6;
        unflushed += rate * step;
        written += rate * step;
        while (unflushed - 64.0 * MIB * sealed >= 64.0 * MIB)
            sealed++;
        assert_true(sealed <= 2);
        flushing = sealed ? flushing + s.flush_rate * step : 0;
        if (flushing >= 64.0 * MIB) {
            flushing = 0;
            sealed--;
            unflushed -= 64.0 * MIB;
        }
    }
    assert_true(written > 0.9 * s.flush_rate * 60);
}

static void what_does_not_matter_is_left_out(void **state)
{
    (void)state;
    enum pace_reason reason;
    struct pace_state s = idle();
    s.runs = 100;
    s.debt = 1 << 30;
    s.runs_start = s.runs_stop = 0;
    s.debt_start = s.debt_stop = 0;
    assert_true(pace_ns_per_byte(&s, &reason) == 0);
}

static void a_rate_is_learned_by_halves(void **state)
{
    (void)state;
    assert_near(pace_learn(0, 1000, 1000000000), 1000, 1e-9);
    assert_near(pace_learn(1000, 3000, 1000000000), 2000, 1e-9);
    assert_near(pace_learn(1000, 3000, 0), 1000, 1e-9);
    assert_near(pace_learn(1000, 0, 5), 1000, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_slowed_while_the_background_keeps_up),
        cmocka_unit_test(half_full_means_as_fast_as_it_drains),
        cmocka_unit_test(the_scarcest_counts),
        cmocka_unit_test(the_fuller_the_slower_down_to_a_floor),
        cmocka_unit_test(a_fast_writer_comes_to_rest_and_never_stops),
        cmocka_unit_test(what_does_not_matter_is_left_out),
        cmocka_unit_test(a_rate_is_learned_by_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
