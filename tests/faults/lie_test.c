/* SPDX-License-Identifier: MIT
 *
 * The disk lies: a write is reported as done and is not, or lands elsewhere; a read gives what was
 * there before, what is elsewhere, or a wrong bit. Each once, at every call that it can be. No call
 * ever answers with what nobody wrote, and nothing is silently missing: an answer is right, or it
 * is an error. Only of a log can the very end be lost unnoticed; what is there then is a prefix. A
 * disk that is merely slow changes nothing.
 *
 *     lie_test                      the short form: every so many calls
 *     lie_test SEED LIE NTH         one; LIE is an index into lies[]
 *     TAMIZ_LONG=1                  every call, more seeds
 */
#include "faults/machine.h"

enum { STEPS = 90 };

static const struct lie {
    const char *name;
    tamiz_sim_call call;
    tamiz_sim_effect effect;
    uint64_t argument;
    const char *file;
    bool of_log;   /* the end may be lost */
    bool harmless; /* nothing may fail */
} lies[] = {
    {"a table's write lost", TAMIZ_SIM_WRITE, TAMIZ_SIM_STALE, 0, "*.sst", false, false},
    {"a table's write elsewhere", TAMIZ_SIM_WRITE, TAMIZ_SIM_MISDIRECT, 512, "*.sst", false, false},
    {"a manifest's write lost", TAMIZ_SIM_WRITE, TAMIZ_SIM_STALE, 0, "MANIFEST-*", true, false},
    {"a manifest's write elsewhere", TAMIZ_SIM_WRITE, TAMIZ_SIM_MISDIRECT, 64, "MANIFEST-*", true,
     false},
    {"CURRENT's write lost", TAMIZ_SIM_WRITE, TAMIZ_SIM_STALE, 0, "CURRENT*", false, false},
    {"a log's write lost", TAMIZ_SIM_WRITE, TAMIZ_SIM_STALE, 0, "*.log", true, false},
    {"a log's write elsewhere", TAMIZ_SIM_WRITE, TAMIZ_SIM_MISDIRECT, 64, "*.log", true, false},
    {"an old read of a table", TAMIZ_SIM_READ, TAMIZ_SIM_STALE, 0, "*.sst", false, false},
    {"a table read elsewhere", TAMIZ_SIM_READ, TAMIZ_SIM_MISDIRECT, 4096, "*.sst", false, false},
    {"a wrong bit in any read", TAMIZ_SIM_READ, TAMIZ_SIM_FLIP, 98765, NULL, true, false},
    {"any read elsewhere", TAMIZ_SIM_READ, TAMIZ_SIM_MISDIRECT, 8, NULL, true, false},
    {"a call that takes an hour", TAMIZ_SIM_ANY, TAMIZ_SIM_DELAY, UINT64_C(3600000000), NULL, false,
     true},
};
enum { LIES = sizeof lies / sizeof *lies };

/* Each key on its own: right, or an error. */
static void look(struct run *r)
{
    tamiz *side = NULL;
    if (r->db && run_side(r, r->db, false, &side) < 0)
        return; /* an error */
    for (int i = 0; r->db && i < KEYS; i++) {
        char key[16];
        void *value = NULL;
        size_t size = 0;
        const size_t n = key_text(i, key);
        tamiz *in = is_side(i) ? side : r->db;
        const tamiz_status st = in ? tamiz_get(in, key, n, &value, &size, NULL) : TAMIZ_NOT_FOUND;
        const int got = st == TAMIZ_OK ? group_of(i, value, size) : ABSENT;
        tamiz_free(value);
        CHECK(r, st < 0 || got == r->h.states[i],
              "%s: %d is there, %d was written, and no error is told", key, got, r->h.states[i]);
    }
}

/* Whether the lie was told. */
static bool trial(uint64_t seed, int which, uint64_t nth)
{
    const struct lie *lie = &lies[which];
    struct run *r = run_new(seed, NULL, STEPS);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    (void)snprintf(r->moment, sizeof r->moment, "test_faults_lie %llu %d %llu  (%s)",
                   (unsigned long long)seed, which, (unsigned long long)nth, lie->name);
    fault.call = lie->call;
    fault.effect = lie->effect;
    fault.argument = lie->argument;
    fault.name = lie->file;
    fault.nth = nth;
    r->lies = lie->of_log;
    assert_true(tamiz_env_sim_fault(r->sim, &fault));
    tamiz_status st = run_open(r);
    for (int i = 0; r->db && i < STEPS; i++) {
        st = run_step(r);
        CHECK(r, st == TAMIZ_OK || !lie->harmless, "step %d: %s", i, tamiz_status_name(st));
    }
    CHECK(r, st >= 0 || r->db || st == TAMIZ_CORRUPTION || st == TAMIZ_NOT_SUPPORTED, "opening: %s",
          tamiz_status_name(st));
    look(r);
    if (r->db)
        (void)run_reopen(r);
    look(r);
    (void)tamiz_close(r->db);
    const bool told = tamiz_env_sim_faults_acted(r->sim) > 0;
    run_free(r);
    return told;
}

static void a_disk_that_lies_is_never_believed(void **state)
{
    (void)state;
    uint64_t told = 0;
    const uint64_t first = test_first_seed();
    for (uint64_t seed = first; seed < first + (long_form() ? 4 : 1); seed++)
        for (int which = 0; which < LIES; which++) {
            const uint64_t stride = long_form() || lies[which].file ? 1 : 23;
            for (uint64_t nth = 1; trial(seed, which, nth); nth += stride)
                told++;
        }
    print_message("%llu lies\n", (unsigned long long)told);
    assert_true(told > 200);
}

static struct {
    uint64_t seed, nth;
    int which;
} one;

static void the_one_lie_that_was_asked_for(void **state)
{
    (void)state;
    assert_true(trial(one.seed, one.which, one.nth));
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        one.seed = strtoull(argv[1], NULL, 10);
        one.which = atoi(argv[2]) % LIES;
        one.nth = strtoull(argv[3], NULL, 10);
        const struct CMUnitTest tests[] = {cmocka_unit_test(the_one_lie_that_was_asked_for)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_disk_that_lies_is_never_believed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
