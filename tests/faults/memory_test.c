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
    (void)run_open(r);
    for (int i = 0; i < STEPS; i++) {
        if (!r->db)
            (void)run_open(r);
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
        st = run_flush(r, 2);
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
    const uint64_t first = test_first_seed();
    for (uint64_t seed = first; seed < first + (long_form() ? 3 : 1); seed++)
        for (int sticky = 0; sticky < 2; sticky++)
            for (uint64_t nth = 1; trial(seed, sticky, nth); nth += stride)
                trials++;
    print_message("%llu refusals\n", (unsigned long long)trials);
    assert_true(trials > 100);
}

/* How many of the batch's keys are there. */
static int batch_keys(tamiz *db)
{
    int there = 0;
    for (int i = 0; i < 30; i++) {
        char key[16];
        const size_t n = (size_t)snprintf(key, sizeof key, "b%02d", i);
        there += tamiz_exists(db, key, n, NULL) == TAMIZ_OK;
    }
    return there;
}

/* Memory runs out in the middle of a batch, on its way into the memtable: nothing of it shows, then
 * or when later writes take the next sequences, or when the store is opened again. */
static void a_batch_that_met_the_end_of_memory_shows_nothing(void **state)
{
    (void)state;
    bool acted = true;
    int halves = 0;
    for (uint64_t nth = 1; acted; nth++) {
        struct alloc_fail memory;
        struct run *r = run_new(1, RUN_OPTIONS, 0);
        tamiz_batch *batch = tamiz_batch_new();
        alloc_fail_init(&memory);
        r->allocator = &memory.alloc;
        (void)snprintf(r->moment, sizeof r->moment, "test_faults_memory (batch, request %llu)",
                       (unsigned long long)nth);
        assert_public(run_open_on(r, r->sim, &r->db), TAMIZ_OK);
        for (int i = 0; i < 30; i++) {
            char key[16], value[200];
            const size_t n = (size_t)snprintf(key, sizeof key, "b%02d", i);
            memset(value, 'v', sizeof value);
            assert_public(tamiz_batch_put(batch, NULL, key, n, value, sizeof value), TAMIZ_OK);
        }
        alloc_fail_at(&memory, nth, false);
        const tamiz_status st = tamiz_write(r->db, batch, NULL);
        acted = memory.failed > 0;
        alloc_fail_at(&memory, 0, false);
        CHECK(r, batch_keys(r->db) == (st == TAMIZ_OK ? 30 : 0), "half a batch is there");
        for (int i = 0; i < 40; i++) {
            char key[16];
            const size_t n = (size_t)snprintf(key, sizeof key, "x%02d", i);
            halves += tamiz_put(r->db, key, n, "1", 1, NULL) == TAMIZ_READ_ONLY;
        }
        CHECK(r, batch_keys(r->db) == (st == TAMIZ_OK ? 30 : 0), "a failed batch shows later");
        assert_public(tamiz_close(r->db), TAMIZ_OK);
        assert_public(run_open_on(r, r->sim, &r->db), TAMIZ_OK);
        CHECK(r, batch_keys(r->db) == (st == TAMIZ_OK ? 30 : 0), "a failed batch is replayed");
        assert_public(tamiz_close(r->db), TAMIZ_OK);
        tamiz_batch_free(batch);
        alloc_fail_done(&memory);
        run_free(r);
    }
    assert_true(halves > 0);
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
        cmocka_unit_test(a_batch_that_met_the_end_of_memory_shows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
