/* SPDX-License-Identifier: MIT
 *
 * Every call fails. The workload runs with a fault at its n-th call and goes on whatever fails:
 * reads in between show all that was acknowledged and nothing that failed; soon after the fault
 * the process may end, or the power. Then the fault ends, and
 * without being reopened the store must read, write and close; and both a kill and a power cut at
 * that moment must leave what they have to leave.
 *
 *     fault_test                                        the short form: every so many n
 *     fault_test SEED KIND NTH                          one fault; KIND is an index into kinds[]
 *     TAMIZ_LONG=1                                      every n, more seeds
 */
#include "faults/machine.h"

enum { STEPS = 70 };

struct kind {
    const char *name;
    tamiz_sim_call call;
    tamiz_sim_effect effect;
    int error;
    bool sticky, after;
    uint64_t argument;
    const char *file; /* NULL: any */
};

static const struct kind kinds[] = {
    {"EIO", TAMIZ_SIM_ANY, TAMIZ_SIM_FAIL, EIO, false, false, 0, NULL},
    {"EIO, effect first", TAMIZ_SIM_ANY, TAMIZ_SIM_FAIL, EIO, false, true, 0, NULL},
    {"EIO from then on", TAMIZ_SIM_ANY, TAMIZ_SIM_FAIL, EIO, true, false, 0, NULL},
    {"EIO from then on, effect first", TAMIZ_SIM_ANY, TAMIZ_SIM_FAIL, EIO, true, true, 0, NULL},
    {"ENOSPC", TAMIZ_SIM_CHANGE, TAMIZ_SIM_FAIL, ENOSPC, false, false, 0, NULL},
    {"ENOSPC from then on", TAMIZ_SIM_CHANGE, TAMIZ_SIM_FAIL, ENOSPC, true, false, 0, NULL},
    {"EMFILE", TAMIZ_SIM_OPEN, TAMIZ_SIM_FAIL, EMFILE, false, false, 0, NULL},
    {"EMFILE from then on", TAMIZ_SIM_CREATE, TAMIZ_SIM_FAIL, EMFILE, true, false, 0, NULL},
    {"short write", TAMIZ_SIM_WRITE, TAMIZ_SIM_SHORT, ENOSPC, false, false, 0, NULL},
    {"short writes from then on", TAMIZ_SIM_WRITE, TAMIZ_SIM_SHORT, EIO, true, false, 7, NULL},
    {"sync that fails", TAMIZ_SIM_FSYNC, TAMIZ_SIM_FAIL, EIO, false, false, 0, NULL},
    {"sync that loses", TAMIZ_SIM_FSYNC, TAMIZ_SIM_LOSE, EIO, false, false, 0, NULL},
    {"sync that loses and reverts", TAMIZ_SIM_FSYNC, TAMIZ_SIM_LOSE, EIO, false, false, 1, NULL},
    {"directory sync", TAMIZ_SIM_DIRSYNC, TAMIZ_SIM_FAIL, EIO, false, false, 0, NULL},
    {"rename", TAMIZ_SIM_RENAME, TAMIZ_SIM_FAIL, EIO, false, true, 0, NULL},
    {"unlink", TAMIZ_SIM_UNLINK, TAMIZ_SIM_FAIL, EACCES, true, false, 0, NULL},
    {"a wrong bit read from a table", TAMIZ_SIM_READ, TAMIZ_SIM_FLIP, EIO, false, false, 1234567,
     "*.sst"},
    {"a table read elsewhere", TAMIZ_SIM_READ, TAMIZ_SIM_MISDIRECT, EIO, false, false, 512,
     "*.sst"},
    {"table reads cut short", TAMIZ_SIM_READ, TAMIZ_SIM_SHORT, EIO, true, false, 9, "*.sst"},
    {"manifests from then on, effect first", TAMIZ_SIM_CHANGE, TAMIZ_SIM_FAIL, EIO, true, true, 0,
     "MANIFEST-*"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What was done under the fault goes on after it: reading at once, writing after a while. */
static void resume(struct run *r)
{
    tamiz_status st = run_check_live(r);
    CHECK(r, st == TAMIZ_OK, "reading after the fault: %s", tamiz_status_name(st));
    for (int i = 0; i < 50; i++) {
        bool more;
        st = run_write(r, 1, true);
        if (st == TAMIZ_OK)
            break;
        tamiz_env_sim_clock_advance(r->sim, 1000000);
        (void)tamiz_step(r->db, 1000, &more);
    }
    CHECK(r, st == TAMIZ_OK, "writing after the fault: %s", tamiz_status_name(st));
    st = run_flush(r, 2);
    CHECK(r, st == TAMIZ_OK, "flushing after the fault: %s", tamiz_status_name(st));
    tamiz_env_sim_clock_advance(r->sim, 10000000);
    st = run_compact(r);
    CHECK(r, st == TAMIZ_OK, "compacting after the fault: %s", tamiz_status_name(st));
    st = tamiz_health(r->db);
    CHECK(r, st == TAMIZ_OK, "health after the fault: %s", tamiz_status_name(st));
    st = run_check_live(r);
    CHECK(r, st == TAMIZ_OK, "reading at the end: %s", tamiz_status_name(st));
}

static void crash_copy(struct run *r, tamiz_sim_crash mode, int least)
{
    tamiz_env_sim *copy = tamiz_env_sim_copy(r->sim);
    assert_non_null(copy);
    tamiz_env_sim_clear(copy);
    tamiz_env_sim_crash(copy, mode, NULL, 99);
    run_recover(r, copy, least);
    tamiz_env_sim_free(copy);
}

/* The process or the power ends at one of the first calls after the fault, or at a later one. */
struct aftermath {
    struct run *r;
    uint64_t calls;
};

static void end_after_the_fault(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    struct aftermath *a = ctx;
    struct run *r = a->r;
    (void)number, (void)kind, (void)name;
    if (tamiz_env_sim_faults_acted(r->sim) == 0 || ++a->calls > 40)
        return;
    const bool kill = a->calls % 3 != 0;
    if (a->calls > 3 && a->calls % (long_form() ? 5 : 20) != 0)
        return;
    crash_copy(r, kill ? TAMIZ_SIM_KEEP : TAMIZ_SIM_DROP,
               kill && !r->may_lose ? history_acknowledged(&r->h) : r->h.durable);
}

/* Whether the fault acted. */
static bool trial(uint64_t seed, int kind, uint64_t nth)
{
    const struct kind *k = &kinds[kind];
    struct run *r = run_new(seed, NULL, STEPS);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    (void)snprintf(r->moment, sizeof r->moment, "test_faults_fault %llu %d %llu  (%s)",
                   (unsigned long long)seed, kind, (unsigned long long)nth, k->name);
    fault.call = k->call;
    fault.effect = k->effect;
    fault.error = k->error;
    fault.sticky = k->sticky;
    fault.after = k->after;
    fault.argument = k->argument;
    fault.name = k->file;
    fault.nth = nth;
    r->may_lose = k->effect == TAMIZ_SIM_LOSE;
    assert_true(tamiz_env_sim_fault(r->sim, &fault));
    struct aftermath aftermath = {.r = r};
    tamiz_env_sim_on_call(r->sim, end_after_the_fault, &aftermath);
    (void)run_open(r);
    for (int i = 0; i < STEPS; i++) {
        if (!r->db)
            (void)run_open(r);
        if (r->db)
            (void)run_step(r);
    }
    const bool acted = tamiz_env_sim_faults_acted(r->sim) > 0;
    tamiz_env_sim_on_call(r->sim, NULL, NULL);
    /* A failed sync means that the disk may lie about what was not synced: only what was counts. */
    crash_copy(r, TAMIZ_SIM_KEEP, r->may_lose ? r->h.durable : r->h.count);
    crash_copy(r, TAMIZ_SIM_DROP, r->h.durable);
    crash_copy(r, TAMIZ_SIM_REORDER, r->h.durable);
    tamiz_env_sim_clear(r->sim);
    if (!r->db) {
        const tamiz_status st = run_open(r);
        CHECK(r, st == TAMIZ_OK, "opening after the fault: %s", tamiz_status_name(st));
    } else {
        resume(r);
        crash_copy(r, TAMIZ_SIM_DROP, r->h.durable);
    }
    const tamiz_status st = tamiz_close(r->db);
    CHECK(r, st == TAMIZ_OK, "closing after the fault: %s", tamiz_status_name(st));
    CHECK(r, tamiz_env_sim_files_open(r->sim) == 0, "files are still open");
    run_recover(r, r->sim, r->h.count);
    run_free(r);
    return acted;
}

static void any_call_may_fail_and_the_store_goes_on_when_it_no_longer_does(void **state)
{
    (void)state;
    uint64_t trials = 0;
    const uint64_t seeds = long_form() ? 4 : 1;
    const uint64_t first = test_first_seed();
    for (uint64_t seed = first; seed < first + seeds; seed++)
        for (int kind = 0; kind < KINDS; kind++) {
            const uint64_t stride = long_form() || kinds[kind].call == TAMIZ_SIM_RENAME ? 1 : 17;
            uint64_t nth = 1 + (uint64_t)kind % stride;
            for (; trial(seed, kind, nth); nth += stride)
                trials++;
        }
    print_message("%llu faults\n", (unsigned long long)trials);
    assert_true(trials > 100);
}

static struct {
    uint64_t seed, nth;
    int kind;
} one;

static void the_one_fault_that_was_asked_for(void **state)
{
    (void)state;
    assert_true(trial(one.seed, one.kind, one.nth));
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        one.seed = strtoull(argv[1], NULL, 10);
        one.kind = atoi(argv[2]) % KINDS;
        one.nth = strtoull(argv[3], NULL, 10);
        const struct CMUnitTest tests[] = {cmocka_unit_test(the_one_fault_that_was_asked_for)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_call_may_fail_and_the_store_goes_on_when_it_no_longer_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
