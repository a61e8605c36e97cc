/* SPDX-License-Identifier: MIT
 *
 * The power goes at every call. One run of the workload; before each call that follows a change of
 * the disk the machine is copied and the copy crashes, in every mode; it must recover. A crash
 * before a call that follows a mere read would leave the same disk as the one before it. Of some
 * of those crashes, the recovery itself is stopped in the same way, before each of its calls.
 *
 *     crash_test                             the short form: of every so many calls, each mode once
 *     crash_test SEED CALL MODE N            one crash
 *     crash_test SEED CALL MODE N CALL2      and a second one inside its recovery
 *     TAMIZ_LONG=1                           every call, every mode, 8 reorders, more seeds
 */
#include "faults/machine.h"

enum { STEPS = 500, REORDERS = 8, MODES = 6 };

struct sweep {
    struct run *r;
    uint64_t stride, second_stride;
    bool changed; /* since the last crash */
    uint64_t calls, crashes, second_crashes;
    /* One only: these; call 0: all. */
    uint64_t call, n, second_call;
    int mode;
};

/* ---- the second crash */

struct second {
    struct sweep *s;
    tamiz_env_sim *sim;
    uint64_t first_call, first_n;
    int first_mode, least;
    bool changed;
};

static void tell(struct sweep *s, uint64_t call, int mode, uint64_t n, uint64_t second_call)
{
    (void)snprintf(s->r->moment, sizeof s->r->moment, "test_faults_crash %llu %llu %d %llu %llu",
                   (unsigned long long)s->r->seed, (unsigned long long)call, mode,
                   (unsigned long long)n, (unsigned long long)second_call);
}

static bool is_change(tamiz_sim_call kind)
{
    return kind != TAMIZ_SIM_OPEN && kind != TAMIZ_SIM_CLOSE && kind != TAMIZ_SIM_READ &&
           kind != TAMIZ_SIM_INFO && kind != TAMIZ_SIM_LIST && kind != TAMIZ_SIM_UNLOCK;
}

static void crash_in_recovery(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    struct second *c = ctx;
    const bool wanted = c->s->second_call ? number == c->s->second_call : c->changed;
    (void)name;
    c->changed = is_change(kind);
    if (!wanted)
        return;
    tell(c->s, c->first_call, c->first_mode, c->first_n, number);
    static const tamiz_sim_crash modes[] = {TAMIZ_SIM_KEEP, TAMIZ_SIM_DROP, TAMIZ_SIM_REORDER};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        tamiz_env_sim *copy = tamiz_env_sim_copy(c->sim);
        assert_non_null(copy);
        tamiz_env_sim_crash(copy, modes[i], NULL, number);
        run_recover(c->s->r, copy, c->least);
        tamiz_env_sim_free(copy);
        c->s->second_crashes++;
    }
}

/* ---- the first */

static void crash(struct sweep *s, uint64_t call, int mode, uint64_t n, bool second)
{
    struct run *r = s->r;
    /* A killed process loses nothing that was acknowledged; a power cut, what was not synced. */
    const int least = mode == TAMIZ_SIM_KEEP ? history_acknowledged(&r->h) : r->h.durable;
    tamiz_env_sim *copy = tamiz_env_sim_copy(r->sim);
    /* What the kill left unsynced, the power cut in the recovery may still take. */
    struct second c = {s, copy, call, n, mode, r->h.durable, true};
    assert_non_null(copy);
    tell(s, call, mode, n, 0);
    tamiz_env_sim_crash(copy, (tamiz_sim_crash)mode, NULL, n);
    if (second)
        tamiz_env_sim_on_call(copy, crash_in_recovery, &c);
    run_recover(r, copy, least);
    tamiz_env_sim_free(copy);
    s->crashes++;
}

static uint64_t argument_of(int mode, uint64_t call)
{
    return mode == TAMIZ_SIM_REORDER ? call : 1 + call * 37 % 700;
}

static void before_call(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    struct sweep *s = ctx;
    const bool changed = s->changed;
    (void)name;
    s->calls = number;
    s->changed = is_change(kind);
    if (s->call) {
        if (number == s->call)
            crash(s, s->call, s->mode, s->n, s->second_call != 0);
        return;
    }
    if (!changed)
        return;
    if (s->stride == 1) {
        for (int mode = 0; mode < TAMIZ_SIM_REORDER; mode++)
            crash(s, number, mode, argument_of(mode, number), false);
        for (uint64_t i = 0; i < REORDERS; i++)
            crash(s, number, TAMIZ_SIM_REORDER, number * REORDERS + i,
                  i == 0 && number % s->second_stride == 0);
    } else if (number % s->stride < 2) {
        const int mode = (int)(number / s->stride % MODES);
        crash(s, number, mode, argument_of(mode, number),
              number / s->stride % s->second_stride == 0);
    }
}

static void sweep(struct sweep *s, uint64_t seed, const char *options)
{
    struct run *r = s->r = run_new(seed, options, STEPS);
    s->changed = true;
    tamiz_env_sim_on_call(r->sim, before_call, s);
    assert_public(run_open_on(r, r->sim, &r->db), TAMIZ_OK);
    for (int i = 0; i < STEPS; i++)
        assert_public(run_step(r), TAMIZ_OK);
    assert_public(run_check_live(r), TAMIZ_OK);
    assert_public(tamiz_close(r->db), TAMIZ_OK);
    print_message("seed %llu: %llu calls, %d groups of writes, %llu crashes, %llu second crashes\n",
                  (unsigned long long)seed, (unsigned long long)s->calls, r->h.count,
                  (unsigned long long)s->crashes, (unsigned long long)s->second_crashes);
    run_free(r);
}

static void a_crash_at_any_call_leaves_a_prefix_with_all_that_was_synced(void **state)
{
    (void)state;
    const bool whole = long_form();
    const uint64_t first = test_first_seed();
    for (uint64_t seed = first; seed < first + (whole ? 3 : 1); seed++) {
        struct sweep s = {.stride = whole ? 1 : 13, .second_stride = whole ? 1 : 17};
        sweep(&s, seed, NULL);
        assert_true(s.calls >= 3000);
        assert_true(s.crashes > 100 && s.second_crashes > 20);
    }
}

static struct sweep one;
static uint64_t one_seed;

static void the_one_crash_that_was_asked_for(void **state)
{
    (void)state;
    sweep(&one, one_seed, NULL);
    assert_true(one.crashes > 0);
}

int main(int argc, char **argv)
{
    if (argc >= 5) {
        one_seed = strtoull(argv[1], NULL, 10);
        one = (struct sweep){.stride = 1, .second_stride = 1};
        one.call = strtoull(argv[2], NULL, 10);
        one.mode = atoi(argv[3]);
        one.n = strtoull(argv[4], NULL, 10);
        one.second_call = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
        const struct CMUnitTest tests[] = {cmocka_unit_test(the_one_crash_that_was_asked_for)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_at_any_call_leaves_a_prefix_with_all_that_was_synced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
