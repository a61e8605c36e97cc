/* SPDX-License-Identifier: MIT
 *
 * Small workloads, all of them: every sequence of at most three operations out of sixteen, each
 * with a crash before every call that follows a change of the disk, in every mode. What a random
 * workload meets seldom, a short sequence meets at once.
 *
 *     small_test                     the short form: one sequence in 23
 *     small_test A B C               one sequence; C or B and C may be -1
 *     TAMIZ_LONG=1                   all 16 + 256 + 4096
 */
#include "faults/machine.h"

enum operation {
    PUT_ONE,
    PUT_SYNCED,
    DELETE_ONE,
    BATCH,
    BATCH_SYNCED,
    PUT_LARGE,
    FLUSH,
    SYNC,
    COMPACT,
    COMPACT_TABLE,
    REOPEN,
    PUT_OTHER,
    PUT_SIDE,
    BATCH_ACROSS,
    DELETE_BETWEEN,
    DROP_SIDE,
    OPERATIONS
};

static uint64_t first_seed = 1;

struct watch {
    struct run *r;
    bool changed;
    uint64_t crashes;
};

static tamiz_status write_changes(struct run *r, const struct change *changes, int count, bool sync)
{
    struct group *g = history_begin(&r->h);
    g->count = count;
    memcpy(g->changes, changes, (size_t)count * sizeof *changes);
    return run_write_group(r, g, sync);
}

/* A hundred keys' worth at once, so that a memtable of 16 KiB is over. */
static tamiz_status fill(struct run *r)
{
    tamiz_status st = TAMIZ_OK;
    for (int i = 0; st == TAMIZ_OK && i < 30; i++)
        st =
            write_changes(r, &(struct change){.key = (uint8_t)(3 + i % 26), .kind = PUT}, 1, false);
    return st;
}

static const struct change put_1 = {.key = 1, .kind = PUT}, delete_1 = {.key = 1},
                           put_2 = {.key = 2, .kind = PUT}, delete_2 = {.key = 2},
                           put_side = {.key = SIDE + 1, .kind = PUT},
                           between = {.key = 2, .to = 18, .kind = DELETE_RANGE}; /* 2, 19 and 1 */

static tamiz_status operate(struct run *r, int operation)
{
    tamiz_status st = TAMIZ_OK;
    switch ((enum operation)operation) {
    case PUT_ONE: return write_changes(r, &put_1, 1, false);
    case PUT_SYNCED: return write_changes(r, &put_1, 1, true);
    case DELETE_ONE: return write_changes(r, &delete_1, 1, false);
    case BATCH: return write_changes(r, (struct change[]){put_1, put_2, delete_1}, 3, false);
    case BATCH_SYNCED: return write_changes(r, (struct change[]){delete_2, put_1}, 2, true);
    case PUT_SIDE: return write_changes(r, &put_side, 1, false);
    case BATCH_ACROSS:
        return write_changes(r, (struct change[]){put_1, put_side, delete_2}, 3, false);
    case DELETE_BETWEEN: return write_changes(r, &between, 1, false);
    case DROP_SIDE: return run_drop(r);
    case PUT_LARGE: return fill(r);
    case PUT_OTHER: return write_changes(r, &put_2, 1, false);
    case FLUSH: return run_flush(r, 2);
    case SYNC: st = tamiz_sync(r->db); break;
    case COMPACT: st = run_compact(r); break;
    case COMPACT_TABLE:
        st = tamiz_compact_table(r->db, 0, 0);
        return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : st;
    case REOPEN: return run_reopen(r);
    case OPERATIONS: break;
    }
    if (st == TAMIZ_OK)
        run_all_in_tables(r);
    return st;
}

static void before_call(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    struct watch *w = ctx;
    const bool changed = w->changed;
    (void)name;
    w->changed = kind != TAMIZ_SIM_OPEN && kind != TAMIZ_SIM_CLOSE && kind != TAMIZ_SIM_READ &&
                 kind != TAMIZ_SIM_INFO && kind != TAMIZ_SIM_LIST && kind != TAMIZ_SIM_UNLOCK;
    for (int mode = TAMIZ_SIM_KEEP; changed && mode <= TAMIZ_SIM_REORDER; mode++) {
        if (!long_form() && (uint64_t)mode != number % 6)
            continue;
        tamiz_env_sim *copy = tamiz_env_sim_copy(w->r->sim);
        assert_non_null(copy);
        tamiz_env_sim_crash(copy, (tamiz_sim_crash)mode, NULL, number * 7 % 97);
        run_recover(w->r, copy,
                    mode == TAMIZ_SIM_KEEP ? history_acknowledged(&w->r->h) : w->r->h.durable);
        tamiz_env_sim_free(copy);
        w->crashes++;
    }
}

static uint64_t sequence(const int *operations, int count)
{
    struct run *r = run_new(first_seed, RUN_OPTIONS, 0);
    struct watch w = {r, true, 0};
    (void)snprintf(r->moment, sizeof r->moment, "test_faults_small %d %d %d", operations[0],
                   count > 1 ? operations[1] : -1, count > 2 ? operations[2] : -1);
    assert_public(run_open_on(r, r->sim, &r->db), TAMIZ_OK);
    tamiz_env_sim_on_call(r->sim, before_call, &w);
    for (int i = 0; i < count; i++) {
        const tamiz_status st = operate(r, operations[i]);
        CHECK(r, st == TAMIZ_OK, "operation %d: %s", operations[i], tamiz_status_name(st));
        (void)run_check_live(r);
    }
    const tamiz_status st = tamiz_close(r->db);
    CHECK(r, st == TAMIZ_OK, "close: %s", tamiz_status_name(st));
    tamiz_env_sim_on_call(r->sim, NULL, NULL);
    run_recover(r, r->sim, r->h.count);
    run_free(r);
    return w.crashes;
}

static void every_short_sequence_survives_every_crash(void **state)
{
    (void)state;
    enum { ALL = OPERATIONS * OPERATIONS * OPERATIONS };
    const int stride = long_form() ? 1 : 23;
    uint64_t crashes = 0, sequences = 0;
    first_seed = test_first_seed();
    for (int length = 1; length <= 3; length++) {
        const int all = length == 1 ? OPERATIONS : length == 2 ? OPERATIONS * OPERATIONS : ALL;
        for (int i = 0; i < all; i += length < 3 ? 1 : stride, sequences++) {
            const int operations[3] = {i % OPERATIONS, i / OPERATIONS % OPERATIONS,
                                       i / OPERATIONS / OPERATIONS};
            crashes += sequence(operations, length);
        }
    }
    print_message("%llu sequences, %llu crashes\n", (unsigned long long)sequences,
                  (unsigned long long)crashes);
}

static int one[3], one_count;

static void the_one_sequence_that_was_asked_for(void **state)
{
    (void)state;
    first_seed = test_first_seed();
    (void)sequence(one, one_count);
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        for (int i = 0; i < 3; i++) {
            one[i] = atoi(argv[i + 1]);
            one_count += one[i] >= 0 && one[i] < OPERATIONS;
        }
        const struct CMUnitTest tests[] = {cmocka_unit_test(the_one_sequence_that_was_asked_for)};
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_sequence_survives_every_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
