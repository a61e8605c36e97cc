/* SPDX-License-Identifier: MIT
 *
 * Every allocation fails. The workload runs on an allocator that refuses its n-th request, once or
 * from then on, and goes on whatever fails; then memory is back. Where a write reached the log but
 * not memory the store takes no more writes until it is reopened; everything else goes on. All
 * memory is given back with the sizes it was asked with, and nothing acknowledged is lost.
 *
 *     memory_test                       the short form: of every so many n
 *     memory_test SEED STICKY NTH       one failure
 *     TAMIZ_LONG=1                      every n, more seeds
 */
#include "faults/machine.h"
#include "support/alloc_fail.h"

enum { STEPS = 45 };

/* Whether the refusal came. */
static bool trial(uint64_t seed, bool sticky, uint64_t nth)
{
    struct alloc_fail memory;
    struct run *r = run_new(seed, NULL, STEPS);
    alloc_fail_init(&memory);
    r->allocator = &memory.alloc;
    (void)snprintf(r->moment, sizeof r->moment, "test_faults_memory %llu %d %llu",
                   (unsigned long long)seed, sticky, (unsigned long long)nth);
    alloc_fail_at(&memory, nth, sticky);
    (void)run_open_on(r, r->sim, &r->db);
    for (int i = 0; i < STEPS; i++) {
        if (!r->db)
            (void)run_open_on(r, r->sim, &r->db);
        if (r->db)
            (void)run_step(r);
    }
    const bool acted = memory.failed > 0;
    alloc_fail_at(&memory, 0, false);
    if (r->db) {
        tamiz_status st = run_check_live(r);
        CHECK(r, st == TAMIZ_OK, "reading with memory again: %s", tamiz_status_name(st));
        tamiz_env_sim_clock_advance(r->sim, 10000000);
        st = run_write(r, 1, false);
        CHECK(r, st == TAMIZ_OK || st == TAMIZ_READ_ONLY, "writing with memory again: %s",
              tamiz_status_name(st));
        st = tamiz_flush(r->db);
        CHECK(r, st == TAMIZ_OK || st == TAMIZ_READ_ONLY, "flushing with memory again: %s",
              tamiz_status_name(st));
        st = tamiz_close(r->db);
        CHECK(r, st == TAMIZ_OK || st == TAMIZ_READ_ONLY, "closing with memory again: %s",
              tamiz_status_name(st));
    }
    CHECK(r, tamiz_env_sim_files_open(r->sim) == 0, "files are still open");
    CHECK(r, memory.blocks == 0 && memory.bytes == 0, "%llu pieces of memory were not given back",
          (unsigned long long)memory.blocks);
    CHECK(r, memory.wrong == 0, "memory was given back with another size");
    run_recover(r, r->sim, r->h.count);
    alloc_fail_done(&memory);
    run_free(r);
    return acted;
}

static void any_allocation_may_fail_and_nothing_is_lost_or_leaked(void **state)
{
    (void)state;
    uint64_t trials = 0;
    const uint64_t stride = long_form() ? 1 : 5;
    for (uint64_t seed = 1; seed <= (long_form() ? 3 : 1); seed++)
        for (int sticky = 0; sticky < 2; sticky++)
            for (uint64_t nth = 1; trial(seed, sticky, nth); nth += stride)
                trials++;
    print_message("%llu refusals\n", (unsigned long long)trials);
    assert_true(trials > 200);
}

static struct {
    uint64_t seed, nth;
    bool sticky;
} one;

static void the_one_refusal_that_was_asked_for(void **state)
{
    (void)state;
    assert_true(trial(one.seed, one.sticky, one.nth));
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        one.seed = strtoull(argv[1], NULL, 10);
        one.sticky = atoi(argv[2]) != 0;
        one.nth = strtoull(argv[3], NULL, 10);
        const struct CMUnitTest tests[] = {cmocka_unit_test(the_one_refusal_that_was_asked_for)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail_and_nothing_is_lost_or_leaked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
