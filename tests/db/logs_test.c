/* SPDX-License-Identifier: MIT
 *
 * Which logs are kept, and what their sequences say. A log goes when no memtable needs it any more,
 * and not before. Sequences that no log has, on purpose: those of no_log writes, and those that
 * went with the power though the manifest had passed them. What follows them is no damage, whenever
 * the process ends; and what was acknowledged is there as far as it was promised.
 */
#include <errno.h>
#include <string.h>

#include "db/kit.h"

#define OPTIONS "threads=0 memtable=64KiB compaction=off"

static const tamiz_write_options unlogged = {sizeof(tamiz_write_options), false, true, false, 0};
static const tamiz_write_options synced = {sizeof(tamiz_write_options), true, false, false, 0};

static tamiz_status put(tamiz *db, const char *key, const tamiz_write_options *how)
{
    return tamiz_put(db, key, strlen(key), "v", 1, how);
}

static void expect(tamiz *db, const char *present, const char *absent)
{
    for (; *present; present++)
        test_expect(db, (char[2]){*present}, "v", NULL);
    for (; *absent; absent++)
        test_expect(db, (char[2]){*absent}, NULL, NULL);
}

/* Opens a copy of the machine as `mode` leaves it. */
static void expect_after(tamiz_env_sim *sim, tamiz_sim_crash mode, const char *present,
                         const char *absent)
{
    tamiz_env_sim *copy = tamiz_env_sim_copy(sim);
    assert_non_null(copy);
    tamiz_env_sim_clear(copy);
    tamiz_env_sim_crash(copy, mode, NULL, 1);
    tamiz *db = test_open("store", OPTIONS, tamiz_env_sim_env(copy));
    expect(db, present, absent);
    test_close(db);
    tamiz_env_sim_free(copy);
}

static void fail_next(tamiz_env_sim *sim, tamiz_sim_call call)
{
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.call = call;
    fault.name = "*.log";
    fault.error = EIO;
    assert_true(tamiz_env_sim_fault(sim, &fault));
}

static void closing_keeps_unlogged_writes_that_a_logged_one_follows(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("store", OPTIONS, w.env);
    assert_public(put(db, "a", &unlogged), TAMIZ_OK);
    assert_public(put(db, "b", NULL), TAMIZ_OK);
    test_close(db);
    db = test_open("store", OPTIONS, w.env);
    expect(db, "ab", "");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static void a_log_that_fails_behind_unlogged_writes_leaves_a_store_that_opens(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        struct world w = world_new(1);
        tamiz *db = test_open("store", OPTIONS, w.env);
        assert_public(put(db, "a", &synced), TAMIZ_OK);
        assert_public(put(db, "x", &unlogged), TAMIZ_OK);
        fail_next(w.sim, TAMIZ_SIM_WRITE);
        assert_public(put(db, "y", NULL), TAMIZ_IO_ERROR);
        tamiz_env_sim_clear(w.sim);
        expect_after(w.sim, TAMIZ_SIM_KEEP, "a", "xy");
        expect_after(w.sim, TAMIZ_SIM_DROP, "a", "xy");
        assert_public(put(db, "b", &synced), TAMIZ_OK);
        assert_public(put(db, "c", &synced), TAMIZ_OK);
        if (sealed)
            assert_public(tamiz_flush(db), TAMIZ_OK);
        expect(db, "abcx", "y");
        expect_after(w.sim, TAMIZ_SIM_KEEP, sealed ? "abcx" : "abc", sealed ? "y" : "xy");
        expect_after(w.sim, TAMIZ_SIM_DROP, sealed ? "abcx" : "abc", sealed ? "y" : "xy");
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
}

/* The new log's name is durable though its sync failed, and its removal is not: after the power it
 * is there again, and must not speak against what an older log got afterwards. */
static void a_log_given_up_says_nothing_of_later_writes(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("store", OPTIONS, w.env);
    assert_public(put(db, "a", &synced), TAMIZ_OK);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.call = TAMIZ_SIM_DIRSYNC;
    fault.error = EIO;
    fault.after = true;
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    assert_public(tamiz_flush(db), TAMIZ_IO_ERROR);
    tamiz_env_sim_clear(w.sim);
    assert_public(put(db, "b", &synced), TAMIZ_OK);
    expect_after(w.sim, TAMIZ_SIM_KEEP, "ab", "");
    expect_after(w.sim, TAMIZ_SIM_DROP, "ab", "");
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* ---- at every call */

struct at_calls {
    tamiz_env_sim *sim;
    const char *present, *absent;
    int crashes;
};

static void kill_here(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    struct at_calls *a = ctx;
    (void)number, (void)kind, (void)name;
    expect_after(a->sim, TAMIZ_SIM_KEEP, a->present, a->absent);
    expect_after(a->sim, TAMIZ_SIM_DROP, a->present, a->absent);
    a->crashes++;
}

static void sealing_behind_unlogged_writes_may_end_at_any_call(void **state)
{
    (void)state;
    struct world w = world_new(1);
    struct at_calls a = {w.sim, "ab", "", 0};
    tamiz *db = test_open("store", OPTIONS, w.env);
    assert_public(put(db, "a", &synced), TAMIZ_OK);
    assert_public(put(db, "x", &unlogged), TAMIZ_OK);
    assert_public(put(db, "b", &synced), TAMIZ_OK);
    assert_public(put(db, "y", &unlogged), TAMIZ_OK);
    tamiz_env_sim_on_call(w.sim, kill_here, &a);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    a.present = "abxy";
    assert_public(put(db, "c", &synced), TAMIZ_OK);
    test_close(db);
    assert_true(a.crashes > 10);
    tamiz_env_sim_free(w.sim);
}

struct kept {
    tamiz_env_sim *sim;
    const char *value;
    int count, crashes;
};

static void all_is_there(void *ctx, uint64_t number, tamiz_sim_call kind, const char *name)
{
    struct kept *k = ctx;
    (void)number, (void)kind, (void)name;
    tamiz_env_sim *copy = tamiz_env_sim_copy(k->sim);
    assert_non_null(copy);
    tamiz_env_sim_crash(copy, TAMIZ_SIM_KEEP, NULL, 1);
    tamiz *db = test_open("store", OPTIONS, tamiz_env_sim_env(copy));
    expect_some(db, 0, k->count, k->value);
    test_close(db);
    tamiz_env_sim_free(copy);
    k->crashes++;
}

/* An edit of the manifest passes a write that is nowhere but in the cache; the power goes. */
static void what_the_power_took_behind_an_edit_is_no_gap(void **state)
{
    (void)state;
    struct world w = world_new(1);
    struct at_calls a = {NULL, "abc", "d", 0};
    tamiz *db = test_open("store", OPTIONS, w.env);
    assert_public(put(db, "a", NULL), TAMIZ_OK);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_public(put(db, "b", NULL), TAMIZ_OK);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_public(put(db, "c", &synced), TAMIZ_OK);
    assert_public(put(db, "d", NULL), TAMIZ_OK);
    assert_public(tamiz_compact_table(db, 0, 0), TAMIZ_OK);
    tamiz_env_sim *after = tamiz_env_sim_copy(w.sim);
    assert_non_null(after);
    tamiz_env_sim_crash(after, TAMIZ_SIM_DROP, NULL, 0);
    test_close(db);
    tamiz_env_sim_free(w.sim);

    a.sim = after;
    tamiz_env_sim_on_call(after, kill_here, &a);
    db = test_open("store", OPTIONS, tamiz_env_sim_env(after));
    expect(db, "abc", "d");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_public(put(db, "e", &synced), TAMIZ_OK);
    assert_public(put(db, "f", &synced), TAMIZ_OK);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_close(db);
    assert_true(a.crashes > 30);
    tamiz_env_sim_free(after);
}

/* Two memtables wait for their flush, and after the first of them has reached a table, the logs of
 * the second and of the active one must still be there. */
static void a_log_stays_while_a_sealed_memtable_needs_it(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("store", "threads=0 memtable=16KiB compaction=off", w.env);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    fault.call = TAMIZ_SIM_CREATE;
    fault.name = "*.sst";
    fault.error = ENOSPC;
    fault.sticky = true;
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    char value[4001];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    int count = 0;
    while (test_count_files(w.env, "store", ".log") < 3)
        test_put(db, key_of(count++), value);
    test_put(db, key_of(count++), value);
    tamiz_env_sim_clear(w.sim);
    struct kept kept = {w.sim, value, count, 0};
    tamiz_env_sim_on_call(w.sim, all_is_there, &kept);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    tamiz_env_sim_on_call(w.sim, NULL, NULL);
    assert_true(kept.crashes > 20);
    assert_int_equal(test_count_files(w.env, "store", ".log"), 1);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* A flush of one keyspace makes the log durable for what another has of the same batches. Where
 * that sync fails, what the log lost is in memory yet: all keyspaces go to tables together, at once
 * where somebody waits, and writing, flushing and closing go on. */
static void a_sync_that_fails_under_a_flush_is_made_up_for(void **state)
{
    (void)state;
    for (uint64_t revert = 0; revert < 2; revert++) {
        struct world w = world_new(1);
        tamiz *db = test_open("store", OPTIONS, w.env), *side = NULL;
        assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
        assert_public(put(db, "a", NULL), TAMIZ_OK);
        assert_public(put(side, "s", NULL), TAMIZ_OK);
        tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
        fault.call = TAMIZ_SIM_FSYNC;
        fault.effect = TAMIZ_SIM_LOSE;
        fault.name = "*.log";
        fault.error = EIO;
        fault.argument = revert;
        /* The first sync is of the header of the log that the flush begins. */
        fault.nth = 2;
        assert_true(tamiz_env_sim_fault(w.sim, &fault));
        assert_public(tamiz_flush(db), TAMIZ_OK);
        assert_int_equal(tamiz_env_sim_faults_acted(w.sim), 1);
        assert_public(tamiz_health(db), TAMIZ_OK);
        expect_after(w.sim, TAMIZ_SIM_DROP, "a", "");
        assert_public(put(db, "b", &synced), TAMIZ_OK);
        assert_public(put(side, "t", NULL), TAMIZ_OK);
        assert_public(tamiz_flush(side), TAMIZ_OK);
        test_close(db);
        db = test_open("store", OPTIONS, w.env);
        assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
        expect(db, "ab", "st");
        expect(side, "st", "ab");
        test_close(db);
        tamiz_env_sim_free(w.sim);
    }
}

/* The log is kept for the default keyspace; what another one has flushed of it stays where it is.
 */
static void what_is_in_tables_is_not_replayed_above_newer_ones(void **state)
{
    (void)state;
    struct world w = world_new(1);
    tamiz *db = test_open("store", OPTIONS, w.env), *side = NULL;
    assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
    assert_public(put(db, "a", NULL), TAMIZ_OK);
    test_put(side, "k", "1");
    assert_public(tamiz_flush(side), TAMIZ_OK);
    assert_public(tamiz_put(side, "k", 1, "2", 1, &unlogged), TAMIZ_OK); /* in no log */
    assert_public(tamiz_flush(side), TAMIZ_OK);
    tamiz_env_sim *copy = tamiz_env_sim_copy(w.sim);
    assert_non_null(copy);
    tamiz_env_sim_crash(copy, TAMIZ_SIM_KEEP, NULL, 1);
    test_close(db);
    tamiz_env_sim_free(w.sim);
    db = test_open("store", OPTIONS, tamiz_env_sim_env(copy));
    assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
    test_expect(side, "k", "2", NULL);
    expect(db, "a", "k");
    test_close(db);
    tamiz_env_sim_free(copy);
}

/* A copy on a disk that loses a whole log, and what its other logs and tables say is newer. */
static void a_log_that_the_manifest_needs_is_not_taken_for_one_that_was_being_made(void **state)
{
    (void)state;
    struct world w = world_new(13);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz_report report = TAMIZ_REPORT_INIT;
    tamiz *side, *db = test_open("store", OPTIONS, w.env), *copy = NULL;
    assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
    assert_public(put(db, "a", &synced), TAMIZ_OK);
    assert_public(put(side, "s", &synced), TAMIZ_OK);
    assert_public(tamiz_flush(side), TAMIZ_OK);
    assert_public(put(db, "b", &synced), TAMIZ_OK);
    assert_public(put(side, "t", &synced), TAMIZ_OK);
    assert_public(tamiz_flush(side), TAMIZ_OK);
    fault.call = TAMIZ_SIM_WRITE;
    fault.effect = TAMIZ_SIM_STALE;
    fault.name = "*.log";
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
    assert_true(tamiz_env_sim_faults_acted(w.sim) == 1);
    o.env = w.env;
    assert_public(tamiz_open("copy", &o, &copy), TAMIZ_CORRUPTION);
    assert_non_null(strstr(tamiz_error_detail(), ".log"));
    assert_public(tamiz_repair("copy", &o, &report), TAMIZ_OK);
    assert_true(report.damaged > 0);
    copy = test_open("copy", OPTIONS, w.env);
    expect(copy, "b", "a");
    test_close(copy);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

/* Of a copy the log in front of a drop is lost, which the manifest does not name. */
static void what_is_lost_in_front_of_a_drop_is_told(void **state)
{
    (void)state;
    struct world w = world_new(14);
    tamiz_sim_fault fault = TAMIZ_SIM_FAULT_INIT;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    tamiz *side, *db = test_open("store", OPTIONS, w.env), *copy = NULL;
    assert_public(tamiz_keyspace_open(db, "side", NULL, &side), TAMIZ_OK);
    assert_public(put(db, "a", &synced), TAMIZ_OK);
    assert_public(put(side, "s", &synced), TAMIZ_OK);
    assert_public(tamiz_flush(side), TAMIZ_OK);
    assert_public(put(db, "b", &synced), TAMIZ_OK);
    assert_public(tamiz_keyspace_drop(db, "side"), TAMIZ_OK);
    fault.call = TAMIZ_SIM_WRITE;
    fault.effect = TAMIZ_SIM_STALE;
    fault.name = "*.log";
    fault.nth = 2;
    assert_true(tamiz_env_sim_fault(w.sim, &fault));
    assert_public(tamiz_checkpoint(db, "copy"), TAMIZ_OK);
    assert_true(tamiz_env_sim_faults_acted(w.sim) == 1);
    o.env = w.env;
    assert_public(tamiz_open("copy", &o, &copy), TAMIZ_CORRUPTION);
    assert_non_null(strstr(tamiz_error_detail(), "are missing"));
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_given_up_says_nothing_of_later_writes),
        cmocka_unit_test(closing_keeps_unlogged_writes_that_a_logged_one_follows),
        cmocka_unit_test(a_log_that_fails_behind_unlogged_writes_leaves_a_store_that_opens),
        cmocka_unit_test(sealing_behind_unlogged_writes_may_end_at_any_call),
        cmocka_unit_test(what_the_power_took_behind_an_edit_is_no_gap),
        cmocka_unit_test(a_sync_that_fails_under_a_flush_is_made_up_for),
        cmocka_unit_test(what_is_in_tables_is_not_replayed_above_newer_ones),
        cmocka_unit_test(a_log_stays_while_a_sealed_memtable_needs_it),
        cmocka_unit_test(a_log_that_the_manifest_needs_is_not_taken_for_one_that_was_being_made),
        cmocka_unit_test(what_is_lost_in_front_of_a_drop_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
