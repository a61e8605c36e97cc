/* SPDX-License-Identifier: MIT
 *
 * The same history under many option sets: whatever the shape of the tree, the filter, the codec
 * and the cache, a store says the same. Each set runs the workload of machine.h, compared with the
 * history at every reading, then loses its power and is compared again.
 *
 * A failure is made small before it is told: steps are left out, in halves, quarters and so on down
 * to single ones, as long as it still fails. Each trial is a process of its own.
 *
 *     options_test                        36 sets, one seed
 *     options_test SET SEED STEPS         one run; STEPS is a number, or a list "3,17,18"
 *     TAMIZ_LONG=1                        more seeds, longer runs
 */
#define _XOPEN_SOURCE 700
#include "faults/machine.h"

#include <sys/wait.h>
#include <unistd.h>

enum { SETS = 36, STEPS_SHORT = 150, STEPS_LONG = 3000 };

static const char *options_of(int set)
{
    static const char *const compactions[] = {"leveled", "tiered", "lazy", "off"};
    static const char *const filters[] = {
        "blocked:10",       "none",  "bloom:6", "ribbon:9", "fuse8",    "xor8", "split:10",
        "blocked:fpr=0.05", "xor16", "bumped",  "cuckoo",   "bloom:14", "fuse4"};
    static const char *const codecs[] = {"none", "zstd:1", "none,none,zstd:3"};
    static const char *const rests[] = {
        "block=256 table=4KiB cache=0 size_ratio=2 level0_runs=1 level0_stop=2 "
        "idle_merge=1",
        "block=1KiB table=16KiB cache=64KiB size_ratio=2 level0_runs=2 level0_stop=4 verify=false",
        "block=4KiB table=64KiB cache=1MiB size_ratio=4 level0_runs=4 level0_stop=5 sync=always",
        "block=512 table=4KiB cache=16KiB size_ratio=10 filter_memory=monkey direct_io=true "
        "idle_merge=1",
        "block=16KiB table=1MiB max_open_files=16 sync=interval:1"};
    static char text[400];
    (void)snprintf(text, sizeof text,
                   "threads=0 memtable=%s compaction=%s filter=%s compression=%s %s",
                   set % 2 ? "16KiB" : "32KiB", compactions[set % 4], filters[set % 13],
                   codecs[set % 3], rests[set % 5]);
    return text;
}

/* One run of the steps that are wanted; ends the process's test where it fails. */
static void run_steps(int set, uint64_t seed, const bool *wanted, int steps)
{
    struct run *r = run_new(seed, options_of(set), steps);
    (void)snprintf(r->moment, sizeof r->moment, "test_faults_options %d %llu %d", set,
                   (unsigned long long)seed, steps);
    tamiz_status st = run_open_on(r, r->sim, &r->db);
    CHECK(r, st == TAMIZ_OK, "open: %s", tamiz_status_name(st));
    for (int i = 0; i < steps; i++) {
        r->random.state = seed * 1000003 + (uint64_t)i; /* so that steps can be left out */
        if (!wanted[i])
            continue;
        st = run_step(r);
        CHECK(r, st == TAMIZ_OK, "step %d: %s", i, tamiz_status_name(st));
    }
    st = run_check_live(r);
    CHECK(r, st == TAMIZ_OK, "reading: %s", tamiz_status_name(st));
    tamiz_env_sim *copy = tamiz_env_sim_copy(r->sim);
    tamiz_env_sim_crash(copy, TAMIZ_SIM_DROP, NULL, 0);
    run_recover(r, copy, r->h.durable);
    tamiz_env_sim_free(copy);
    st = tamiz_close(r->db);
    CHECK(r, st == TAMIZ_OK, "close: %s", tamiz_status_name(st));
    run_recover(r, r->sim, r->h.count);
    run_free(r);
}

/* ---- making a failure small */

static struct {
    int set, steps;
    uint64_t seed;
    bool wanted[STEPS_LONG];
} now;

static void the_wanted_steps(void **state)
{
    (void)state;
    run_steps(now.set, now.seed, now.wanted, now.steps);
}

/* Runs `now` in a child, quietly; true: it fails there. */
static bool fails_in_child(void)
{
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stdout);
        (void)!freopen("/dev/null", "w", stderr);
        const struct CMUnitTest test[] = {cmocka_unit_test(the_wanted_steps)};
        _exit(cmocka_run_group_tests(test, NULL, NULL) != 0);
    }
    int status = 0;
    return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
           WEXITSTATUS(status) != 0;
}

static void reduce(void)
{
    for (int size = now.steps / 2; size > 0; size /= 2)
        for (int from = 0; from < now.steps; from += size) {
            bool before[STEPS_LONG];
            memcpy(before, now.wanted, sizeof before);
            for (int i = from; i < from + size && i < now.steps; i++)
                now.wanted[i] = false;
            if (!fails_in_child())
                memcpy(now.wanted, before, sizeof before);
        }
}

static void try_set(int set, uint64_t seed, int steps)
{
    now.set = set;
    now.seed = seed;
    now.steps = steps;
    for (int i = 0; i < steps; i++)
        now.wanted[i] = true;
    if (!fails_in_child())
        return;
    reduce();
    char list[2000] = "";
    size_t at = 0;
    for (int i = 0; i < steps && at + 8 < sizeof list; i++)
        if (now.wanted[i])
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%d", at ? "," : "", i);
    print_error("again: test_faults_options %d %llu %s   (%s)\n", set, (unsigned long long)seed,
                list, options_of(set));
    the_wanted_steps(NULL);
    fail_msg("failed in a process of its own, not here");
}

static void every_option_set_tells_the_same_history(void **state)
{
    (void)state;
    const uint64_t first = test_first_seed();
    for (uint64_t seed = first; seed < first + (long_form() ? 5 : 1); seed++)
        for (int set = 0; set < SETS; set++)
            try_set(set, seed, long_form() ? STEPS_LONG : STEPS_SHORT);
    print_message("%d option sets\n", SETS);
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        now.set = atoi(argv[1]);
        now.seed = strtoull(argv[2], NULL, 10);
        if (strchr(argv[3], ',')) {
            for (char *at = argv[3]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
                now.steps = atoi(at) % STEPS_LONG + 1;
                now.wanted[now.steps - 1] = true;
            }
        } else {
            now.steps = atoi(argv[3]) % (STEPS_LONG + 1);
            for (int i = 0; i < now.steps; i++)
                now.wanted[i] = true;
        }
        const struct CMUnitTest tests[] = {cmocka_unit_test(the_wanted_steps)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_set_tells_the_same_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
