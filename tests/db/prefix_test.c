/* SPDX-License-Identifier: MIT
 *
 * Filters over prefixes in a store: they hide nothing, whatever the keys, the rule and the history;
 * they save blocks where there is nothing; and what is said of them adds up.
 */
#include <string.h>

#include "support/store.h"

enum { WRITES = 30, KEY_MOST = 8 };

struct world {
    struct test_random random;
    tamiz_env *env;
    tamiz *db;
};

/* Short ones, empty ones, with separators or not, with bytes at both ends of what there is. */
static size_t any_key(struct test_random *r, uint8_t *key)
{
    static const uint8_t letters[] = {'a', 'b', ':', 0x00, 0xff, '9', ';'};
    const size_t size = test_random_below(r, KEY_MOST + 1);
    for (size_t i = 0; i < size; i++)
        key[i] = letters[test_random_below(r, sizeof letters)];
    return size;
}

static void write_some(struct world *w, int count)
{
    uint8_t key[KEY_MOST];
    for (int i = 0; i < count; i++) {
        const size_t size = any_key(&w->random, key);
        if (test_random_below(&w->random, 4) == 0)
            assert_public(tamiz_delete(w->db, key, size, NULL), TAMIZ_OK);
        else
            assert_public(tamiz_put(w->db, key, size, &i, sizeof i, NULL), TAMIZ_OK);
    }
}

/* ---- the same with and without filters ---- */

static bool same_place(const tamiz_iter *a, const tamiz_iter *b)
{
    size_t a_size, b_size;
    if (tamiz_iter_valid(a) != tamiz_iter_valid(b))
        return false;
    if (!tamiz_iter_valid(a))
        return tamiz_iter_status(a) == tamiz_iter_status(b);
    const void *a_key = tamiz_iter_key(a, &a_size), *b_key = tamiz_iter_key(b, &b_size);
    if (a_size != b_size || memcmp(a_key, b_key, a_size) != 0)
        return false;
    a_key = tamiz_iter_value(a, &a_size);
    b_key = tamiz_iter_value(b, &b_size);
    return a_size == b_size && memcmp(a_key, b_key, a_size) == 0;
}

static void move_both(struct test_random *r, tamiz_iter *pair[2])
{
    uint8_t key[KEY_MOST];
    const size_t size = any_key(r, key);
    const uint64_t move = test_random_below(r, 12);
    for (int i = 0; i < 2; i++) {
        if (move == 0)
            tamiz_iter_seek_first(pair[i]);
        else if (move == 1)
            tamiz_iter_seek_last(pair[i]);
        else if (move <= 3)
            tamiz_iter_seek(pair[i], key, size);
        else if (move <= 5)
            tamiz_iter_seek_for_prev(pair[i], key, size);
        else if (move <= 8)
            tamiz_iter_next(pair[i]);
        else
            tamiz_iter_prev(pair[i]);
    }
    assert_true(same_place(pair[0], pair[1]));
}

static void compare_one_range(struct world *w, const tamiz_snapshot *snapshot)
{
    struct test_random *r = &w->random;
    uint8_t prefix[KEY_MOST], lower[KEY_MOST], upper[KEY_MOST];
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    tamiz_iter *pair[2];
    o.snapshot = snapshot;
    const uint64_t shape = test_random_below(r, 8);
    if (shape < 6) {
        o.prefix = prefix;
        o.prefix_size = any_key(r, prefix);
    }
    if (shape >= 5) {
        o.lower = lower;
        o.lower_size = any_key(r, lower);
    }
    if (shape >= 4) {
        o.upper = upper;
        o.upper_size = any_key(r, upper);
    }
    for (int i = 0; i < 2; i++) {
        o.use_filters = i == 0;
        assert_public(tamiz_iter_open(w->db, &o, &pair[i]), TAMIZ_OK);
    }
    for (int i = 0; i < 2; i++)
        tamiz_iter_seek_first(pair[i]);
    assert_true(same_place(pair[0], pair[1]));
    for (int i = 0; i < 12; i++)
        move_both(r, pair);
    tamiz_iter_close(pair[0]);
    tamiz_iter_close(pair[1]);
}

/* Returns how often a filter said no. */
static uint64_t run_history(const char *shape, const char *rule, const char *rule_later)
{
    struct world w = {.random = test_random_start(41), .env = tamiz_env_memory_new()};
    char options[300];
    tamiz_stats stats = TAMIZ_STATS_INIT;
    uint64_t negatives = 0;
    (void)snprintf(options, sizeof options, "%s prefix_filter=%s threads=0", shape, rule);
    w.db = test_open("store", options, w.env);
    for (int round = 0; round < 12; round++) {
        tamiz_snapshot *snapshot;
        write_some(&w, WRITES);
        assert_public(tamiz_snapshot_take(w.db, &snapshot), TAMIZ_OK);
        write_some(&w, WRITES);
        if (round % 4 != 1)
            assert_public(tamiz_flush(w.db), TAMIZ_OK);
        if (round == 7)
            assert_public(tamiz_compact(w.db, NULL, 0, NULL, 0), TAMIZ_OK);
        for (int i = 0; i < 60; i++)
            compare_one_range(&w, i % 3 ? NULL : snapshot);
        tamiz_snapshot_release(snapshot);
        assert_public(tamiz_stats_get(w.db, &stats), TAMIZ_OK);
        negatives += stats.prefix_negatives;
        if (round % 4 == 3) { /* old tables have the one rule, new ones the other */
            test_close(w.db);
            (void)snprintf(options, sizeof options, "%s prefix_filter=%s threads=0", shape,
                           round == 3 ? rule_later : rule);
            w.db = test_open("store", options, w.env);
        }
    }
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_verify(w.db, &report), TAMIZ_OK);
    test_close(w.db);
    tamiz_env_memory_free(w.env);
    return negatives;
}

static void no_rule_and_no_history_hides_a_key(void **state)
{
    static const char *const rules[] = {"1", "2", "3", "5", "sep:0x3a", "sep:0x00", "sep:0xff"};
    static const char *const shapes[] = {
        "compaction=off filter=blocked:10 block=256",
        "compaction=leveled filter=bloom:8 block=256 table=4KiB memtable=16KiB level0_runs=2 "
        "size_ratio=2",
        "compaction=lazy filter=fuse8 filter_memory=uniform block=256 table=4KiB memtable=16KiB "
        "level0_runs=2",
        "compaction=tiered filter=bloom:6 filter_memory=monkey block=256 table=8KiB",
    };
    enum { RULES = sizeof rules / sizeof *rules };
    (void)state;
    for (size_t i = 0; i < RULES; i++) {
        const uint64_t negatives =
            run_history(shapes[i % 4], rules[i], i % 2 ? "none" : rules[(i + 2) % RULES]);
        print_message("prefix_filter=%s: %llu negatives\n", rules[i],
                      (unsigned long long)negatives);
        assert_true(negatives > 20); /* else this proves little */
    }
}

/* ---- what it saves, and what is said ---- */

/* Users with even numbers, each with some entries; several runs. */
static tamiz *users_open(tamiz_env *env, const char *more)
{
    char options[200], key[32];
    (void)snprintf(options, sizeof options,
                   "threads=0 cache=0 compaction=off block=512 filter=blocked:12 %s", more);
    tamiz *db = test_open("store", options, env);
    for (int run = 0; run < 3; run++) {
        for (int user = run; user < 600; user += 3)
            for (int i = 0; i < 5; i++) {
                (void)snprintf(key, sizeof key, "u%06d:%02d", 2 * user, i);
                test_put(db, key, "something of this user");
            }
        assert_public(tamiz_flush(db), TAMIZ_OK);
    }
    return db;
}

static uint64_t count_of_prefix(tamiz *db, const char *prefix, bool filters, bool reverse)
{
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    tamiz_iter *it;
    uint64_t count = 0;
    o.prefix = prefix;
    o.prefix_size = strlen(prefix);
    o.use_filters = filters;
    assert_public(tamiz_iter_open(db, &o, &it), TAMIZ_OK);
    if (reverse)
        tamiz_iter_seek_last(it);
    else
        tamiz_iter_seek_first(it);
    for (; tamiz_iter_valid(it); count++)
        if (reverse)
            tamiz_iter_prev(it);
        else
            tamiz_iter_next(it);
    assert_int_equal(tamiz_iter_status(it), TAMIZ_OK);
    tamiz_iter_close(it);
    return count;
}

static void absent_prefixes_cost_no_blocks(void **state)
{
    static const char *const rules[] = {"prefix_filter=7", "prefix_filter=sep:0x3a"};
    (void)state;
    for (size_t r = 0; r < 2; r++) {
        tamiz_env *env = tamiz_env_memory_new();
        tamiz *db = users_open(env, rules[r]);
        tamiz_stats at[3];
        char prefix[32];
        for (int pass = 0; pass < 3; pass++) { /* absent with, absent without, present with */
            for (int user = 0; user < 590; user++) {
                (void)snprintf(prefix, sizeof prefix, "u%06d:", 2 * (user + 3) + (pass < 2));
                assert_int_equal(count_of_prefix(db, prefix, pass != 1, user % 2),
                                 pass < 2 ? 0 : 5);
            }
            at[pass] = (tamiz_stats)TAMIZ_STATS_INIT;
            assert_public(tamiz_stats_get(db, &at[pass]), TAMIZ_OK);
        }
        const uint64_t with = at[0].total.device_reads;
        const uint64_t without = at[1].total.device_reads - with;
        assert_int_equal(at[0].prefix_probes, 3 * 590);
        assert_true(at[0].prefix_negatives > 3 * 590 * 97 / 100);
        assert_int_equal(at[0].prefix_negatives + at[0].prefix_false_positives, 3 * 590);
        assert_int_equal(at[1].prefix_probes, at[0].prefix_probes);
        assert_int_equal(at[1].prefix_unavailable - at[0].prefix_unavailable, 3 * 590);
        assert_true(with * 20 < without);
        /* Of a present one's three runs two say no. */
        assert_true(at[2].prefix_negatives - at[1].prefix_negatives > 2 * 590 * 97 / 100);
        test_close(db);
        tamiz_env_memory_free(env);
    }
}

static void explain_expects(tamiz *db, const char *prefix, const tamiz_read_options *more,
                            const char *words)
{
    tamiz_read_options o = *more;
    char *text;
    if (prefix) {
        o.prefix = prefix;
        o.prefix_size = strlen(prefix);
    }
    assert_public(
        tamiz_explain_seek(db, prefix ? prefix : "", prefix ? strlen(prefix) : 0, 3, &o, &text),
        TAMIZ_OK);
    if (!strstr(text, words))
        print_error("wanted \"%s\" in:\n%s\n", words, text);
    assert_non_null(strstr(text, words));
    tamiz_free(text);
}

static void explain_says_why_a_filter_is_not_used(void **state)
{
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = users_open(env, "prefix_filter=7");
    const tamiz_read_options plain = TAMIZ_READ_OPTIONS_INIT;
    tamiz_read_options o = plain;
    (void)state;
    explain_expects(db, "u000103", &plain, "prefix filter: definitely nothing in the range");
    explain_expects(db, "u000103", &plain, "3 of 3 prefix filters said no");
    explain_expects(db, "u000103:x", &plain, "prefix u000103: line");
    explain_expects(db, "u000104", &plain, "prefix filter: maybe something in the range");
    explain_expects(db, "u00000", &plain, "the range's keys begin with fewer bytes in common");
    explain_expects(db, NULL, &plain, "a range asks no filter");
    o.use_filters = false;
    explain_expects(db, "u000103", &o, "filters are not to be asked");
    o = plain;
    o.upper = "u000103";
    o.upper_size = 7;
    explain_expects(db, NULL, &o, "the range has no lower bound");
    o.lower = "u000101";
    o.lower_size = 7;
    explain_expects(db, NULL, &o, "the range spans more than one prefix");
    o.upper = "u000102";
    explain_expects(db, NULL, &o, "definitely nothing in the range");
    test_close(db);
    db = test_open("other", "threads=0 prefix_filter=sep:0x3a", env);
    test_put(db, "a:1", "x");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    explain_expects(db, "a", &plain, "what the range begins with has no separator");
    test_close(db);
    db = test_open("third", "threads=0 prefix_filter=7 filter=none", env);
    test_put(db, "a23456789", "x");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    explain_expects(db, "a234567", &plain, "the table has none");
    test_close(db);
    tamiz_env_memory_free(env);
}

/* A deletion that stands alone in a newer table must be found there. */
static void a_tombstone_is_in_the_filter_too(void **state)
{
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = test_open("store", "threads=0 compaction=off prefix_filter=3 filter=bloom:20", env);
    (void)state;
    test_put(db, "abc1", "old");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    test_delete(db, "abc1");
    assert_public(tamiz_flush(db), TAMIZ_OK);
    assert_int_equal(count_of_prefix(db, "abc", true, false), 0);
    assert_int_equal(count_of_prefix(db, "abc", true, true), 0);
    test_close(db);
    tamiz_env_memory_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rule_and_no_history_hides_a_key),
        cmocka_unit_test(absent_prefixes_cost_no_blocks),
        cmocka_unit_test(explain_says_why_a_filter_is_not_used),
        cmocka_unit_test(a_tombstone_is_in_the_filter_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
