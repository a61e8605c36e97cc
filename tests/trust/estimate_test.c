/* SPDX-License-Identifier: MIT
 *
 * The second number of the ledger, device reads avoided, is an estimate while a store runs. Here
 * stands the truth beside it: the same reads in the same order on the same tables, once with the
 * filters and once without. Four sizes of cache, from a thousandth of the data to all of it, by
 * three workloads: absent keys asked for evenly, absent keys with favourites (Zipf, YCSB's 0.99,
 * scrambled), and every other read one of a present key. The estimate lies within the error that it
 * states, and within 10 % of the truth, or half a hundredth of the reads where the truth is small.
 *
 * All in memory and with no threads: the same numbers each time.
 *
 *     CTEST: get multi_get sorted
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/store.h"

enum { KEYS = 80000, READS = 120000, BATCH = 32 };

enum workload { UNIFORM, ZIPF, HALF, SORTED };
static const char *const workload_names[] = {"absent uniform", "absent zipf", "half present",
                                             "absent sorted"};
static const double cache_shares[] = {0.001, 0.03, 0.4, 1.3};

/* ---- YCSB's zipf: the rank of the i-th favourite by one uniform number */

#define ZIPF_EXPONENT 0.99
static double zeta(uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 1; i <= n; i++)
        sum += 1 / pow((double)i, ZIPF_EXPONENT);
    return sum;
}

static uint64_t zipf(struct test_random *r, double zeta_n)
{
    const double u = (double)(test_random_u64(r) >> 11) / 9007199254740992.0;
    const double uz = u * zeta_n, alpha = 1 / (1 - ZIPF_EXPONENT);
    if (uz < 1)
        return 0;
    if (uz < 1 + pow(0.5, ZIPF_EXPONENT))
        return 1;
    const double eta =
        (1 - pow(2.0 / KEYS, 1 - ZIPF_EXPONENT)) / (1 - (1 + pow(0.5, ZIPF_EXPONENT)) / zeta_n);
    const uint64_t rank = (uint64_t)(KEYS * pow(eta * u - eta + 1, alpha));
    return rank < KEYS ? rank : KEYS - 1;
}

static uint64_t scramble(uint64_t rank)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (rank >> (8 * i) & 255)) * UINT64_C(0x100000001b3);
    return hash % KEYS;
}

/* ---- the reads */

static uint64_t next_key(enum workload w, uint64_t i, struct test_random *r, double zeta_n)
{
    switch (w) {
    case UNIFORM: return 2 * test_random_below(r, KEYS) + 1;
    case ZIPF: return 2 * scramble(zipf(r, zeta_n)) + 1;
    case HALF: return 2 * test_random_below(r, KEYS) + i % 2;
    case SORTED: return (2 * (i * KEYS / READS) + 1);
    }
    return 0;
}

static size_t key_text(char *key, uint64_t number)
{
    return (size_t)snprintf(key, 24, "%016llu", (unsigned long long)number);
}

static void ask_one_by_one(tamiz *db, enum workload w, const tamiz_read_options *options)
{
    struct test_random r = {7};
    const double zeta_n = zeta(KEYS);
    for (uint64_t i = 0; i < READS; i++) {
        char key[24];
        const uint64_t number = next_key(w, i, &r, zeta_n);
        assert_int_equal(tamiz_exists(db, key, key_text(key, number), options),
                         number % 2 ? TAMIZ_NOT_FOUND : TAMIZ_OK);
    }
}

static void ask_in_batches(tamiz *db, enum workload w, const tamiz_read_options *options)
{
    struct test_random r = {7};
    const double zeta_n = zeta(KEYS);
    for (uint64_t i = 0; i < READS; i += BATCH) {
        char text[BATCH][24];
        const void *keys[BATCH];
        size_t sizes[BATCH], value_sizes[BATCH];
        void *values[BATCH];
        tamiz_status statuses[BATCH];
        for (uint64_t k = 0; k < BATCH; k++) {
            sizes[k] = key_text(text[k], next_key(w, i + k, &r, zeta_n));
            keys[k] = text[k];
        }
        assert_public(
            tamiz_multi_get(db, BATCH, keys, sizes, values, value_sizes, statuses, options),
            TAMIZ_OK);
        for (uint64_t k = 0; k < BATCH; k++)
            tamiz_free(values[k]);
    }
}

/* ---- with and without */

static uint64_t data_bytes;

static void fill(const tamiz_env *env)
{
    tamiz *db = test_open("store",
                          "memtable=1MiB table=1MiB threads=0 filter=blocked:10 "
                          "compaction=leveled level0_runs=8 level0_stop=24",
                          env);
    struct test_random r = {3};
    char key[24], value[64];
    for (uint64_t i = 0; i < KEYS; i++) {
        memset(value, (int)('a' + i % 26), sizeof value);
        const uint64_t number = 2 * (i * UINT64_C(77777) % KEYS);
        assert_public(
            tamiz_put(db, key, key_text(key, number), value, 32 + test_random_below(&r, 32), NULL),
            TAMIZ_OK);
    }
    assert_public(tamiz_flush(db), TAMIZ_OK);
    for (bool more = true; more;)
        assert_public(tamiz_step(db, 1000000, &more), TAMIZ_OK);
    test_close(db);
}

static tamiz_stats run(const tamiz_env *env, uint64_t cache, enum workload w, bool use_filters,
                       void (*ask)(tamiz *, enum workload, const tamiz_read_options *))
{
    char options[128];
    (void)snprintf(options, sizeof options, "read_only=true threads=0 cache=%llu",
                   (unsigned long long)cache);
    tamiz *db = test_open("store", options, env);
    tamiz_read_options read = TAMIZ_READ_OPTIONS_INIT;
    tamiz_stats stats = TAMIZ_STATS_INIT;
    read.use_filters = use_filters;
    ask(db, w, &read);
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    test_close(db);
    data_bytes = stats.total.bytes;
    return stats;
}

static bool compare(const tamiz_env *env, uint64_t cache, enum workload w, double most,
                    void (*ask)(tamiz *, enum workload, const tamiz_read_options *))
{
    const tamiz_stats with = run(env, cache, w, true, ask);
    const tamiz_stats without = run(env, cache, w, false, ask);
    const double truth = (double)without.total.device_reads - (double)with.total.device_reads;
    const double estimate = (double)with.total.device_reads_avoided;
    const double error = (double)with.total.device_reads_avoided_error;
    const double bound = fmax(most * truth, 0.005 * READS);
    const bool fine =
        fabs(estimate - truth) <= bound && fabs(estimate - truth) <= fmax(error, 0.005 * READS);
    print_message("%-15s cache %9llu: %8.0f without %7llu with; avoided %8.0f, estimate %8.0f "
                  "+- %6.0f (%+.1f %%)%s\n",
                  workload_names[w], (unsigned long long)cache, (double)without.total.device_reads,
                  (unsigned long long)with.total.device_reads, truth, estimate, error,
                  truth != 0 ? 100 * (estimate - truth) / truth : 0, fine ? "" : "  <-- off");
    assert_true(with.total.device_reads_avoided_error < READS / 4);
    return fine;
}

static void all_caches(const enum workload *workloads, size_t count, double most,
                       void (*ask)(tamiz *, enum workload, const tamiz_read_options *))
{
    tamiz_env *env = tamiz_env_memory_new();
    assert_non_null(env);
    fill(env);
    (void)run(env, 0, SORTED, true, ask_one_by_one);
    bool fine = true;
    for (size_t w = 0; w < count; w++)
        for (size_t c = 0; c < sizeof cache_shares / sizeof *cache_shares; c++)
            fine &= compare(env, (uint64_t)(cache_shares[c] * (double)data_bytes), workloads[w],
                            most, ask);
    tamiz_env_memory_free(env);
    assert_true(fine);
}

static void the_estimate_is_near_the_truth_of_the_twin(void **state)
{
    static const enum workload all[] = {UNIFORM, ZIPF, HALF};
    (void)state;
    all_caches(all, 3, 0.10, ask_one_by_one);
}

static void the_estimate_follows_batches_too(void **state)
{
    static const enum workload all[] = {UNIFORM, HALF};
    (void)state;
    all_caches(all, 2, 0.10, ask_in_batches);
}

/* Keys that lie near each other share their blocks: rows of reads show that, single ones would not.
 */
static void sorted_probes_are_not_taken_for_scattered_ones(void **state)
{
    static const enum workload all[] = {SORTED};
    (void)state;
    all_caches(all, 1, 0.25, ask_one_by_one);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_estimate_is_near_the_truth_of_the_twin),
        cmocka_unit_test(the_estimate_follows_batches_too),
        cmocka_unit_test(sorted_probes_are_not_taken_for_scattered_ones),
    };
    static const char *const names[] = {"get", "multi_get", "sorted"};
    int failures = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        const struct CMUnitTest one[] = {tests[i]};
        if (argc < 2 || strcmp(argv[1], names[i]) == 0)
            failures += cmocka_run_group_tests_name(names[i], one, NULL, NULL);
    }
    return failures;
}
