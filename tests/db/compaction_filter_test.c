/* SPDX-License-Identifier: MIT
 *
 * A compaction filter says its word on what is merged and on nothing else: never on what a snapshot
 * sees, nor on what is deleted, and what it drops stays as deleted as by a tombstone.
 *
 * LABEL: threads
 */
#define _POSIX_C_SOURCE 200809L
#include "kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SECOND UINT64_C(1000000)
#define SMALL  "threads=0 compaction=off memtable=1MiB table=16KiB block=1KiB "

/* ---- a filter whose verdict stands in the value */

struct shown {
    char text[512]; /* "key=value@level " of all that it was shown, since cleared */
    uint64_t expires_us;
    char keyspace[16];
};

static bool begins(const tamiz_merged *e, const char *with)
{
    return e->value_size >= strlen(with) && memcmp(e->value, with, strlen(with)) == 0;
}

static void note(struct shown *to, const tamiz_merged *e)
{
    const size_t used = strlen(to->text);
    (void)snprintf(to->text + used, sizeof to->text - used, "%.*s=%.*s@%u ", (int)e->key_size,
                   (const char *)e->key, (int)e->value_size, (const char *)e->value, e->level);
    (void)snprintf(to->keyspace, sizeof to->keyspace, "%s", e->keyspace);
    to->expires_us = e->expires_us;
    assert_int_equal(e->struct_size, sizeof *e);
}

static tamiz_verdict judge(void *ctx, const tamiz_merged *e, tamiz_change *change)
{
    char text[64];
    if (ctx)
        note(ctx, e);
    if (begins(e, "drop"))
        return TAMIZ_DROP;
    if (begins(e, "wrong"))
        return (tamiz_verdict)7;
    if (begins(e, "nothing"))
        return TAMIZ_CHANGE;
    if (begins(e, "long")) {
        assert_int_equal(tamiz_change_value(change, "", (size_t)1 << 40), TAMIZ_INVALID_ARGUMENT);
        return TAMIZ_KEEP;
    }
    if (begins(e, "empty"))
        return tamiz_change_value(change, NULL, 0) == TAMIZ_OK ? TAMIZ_CHANGE : TAMIZ_KEEP;
    if (!begins(e, "old"))
        return TAMIZ_KEEP;
    (void)snprintf(text, sizeof text, "new%.*s", (int)e->value_size - 3,
                   (const char *)e->value + 3);
    assert_int_equal(tamiz_change_value(change, "not this", 8), TAMIZ_OK);
    assert_int_equal(tamiz_change_value(change, text, strlen(text)), TAMIZ_OK);
    return TAMIZ_CHANGE;
}

static tamiz_options options_with(const struct world *w, const char *text, struct shown *shown)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    assert_public(tamiz_options_set(&o, text), TAMIZ_OK);
    o.env = w->env;
    o.compaction_filter = (tamiz_compaction_filter){judge, shown};
    return o;
}

static tamiz *open_with(const struct world *w, const char *text, struct shown *shown)
{
    const tamiz_options o = options_with(w, text, shown);
    tamiz *db;
    assert_public(tamiz_open("s", &o, &db), TAMIZ_OK);
    return db;
}

/* What each test has: a store on a simulated disk, and what its filter was shown. */
static struct world w;
static tamiz *db;
static struct shown shown;

static void start(const char *text)
{
    shown = (struct shown){.text = ""};
    w = world_new(11);
    db = open_with(&w, text, &shown);
}

static void finish(void)
{
    tamiz_report report = TAMIZ_REPORT_INIT;
    assert_public(tamiz_verify(db, &report), TAMIZ_OK);
    test_close(db);
    tamiz_env_sim_free(w.sim);
}

static int set_up(void **state)
{
    (void)state;
    start(SMALL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    finish();
    return 0;
}

static void flush(void)
{
    assert_public(tamiz_flush(db), TAMIZ_OK);
}

static void compact(tamiz *keyspace)
{
    assert_public(tamiz_flush(keyspace), TAMIZ_OK);
    assert_public(tamiz_compact(keyspace, NULL, 0, NULL, 0), TAMIZ_OK);
}

static tamiz_stats stats_of(tamiz *keyspace)
{
    tamiz_stats s = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(keyspace, &s), TAMIZ_OK);
    return s;
}

/* ---- one thread ---- */

static void it_keeps_drops_and_changes_what_is_merged(void **state)
{
    (void)state;
    test_put(db, "a", "1");
    test_put(db, "b", "drop me");
    test_put(db, "c", "old one");
    test_put(db, "d", "empty it");
    test_put(db, "", "drop the empty key");
    test_delete(db, "e");
    flush();
    assert_string_equal(shown.text, "");
    assert_string_equal(test_scan(db, NULL),
                        "=drop the empty key a=1 b=drop me c=old one d=empty it");
    compact(db);
    assert_string_equal(shown.text,
                        "=drop the empty key@1 a=1@1 b=drop me@1 c=old one@1 d=empty it@1 ");
    assert_string_equal(shown.keyspace, "default");
    assert_string_equal(test_scan(db, NULL), "a=1 c=new one d=");
    test_expect(db, "b", NULL, NULL);
    const tamiz_stats s = stats_of(db);
    assert_int_equal(s.compaction_filter_dropped, 2);
    assert_int_equal(s.compaction_filter_changed, 2);
    assert_int_equal(s.compaction_filter_again, 0);
    char *text;
    assert_public(tamiz_property(db, "stats.prometheus", &text), TAMIZ_OK);
    assert_non_null(strstr(text, "tamiz_compaction_filter_dropped{keyspace=\"default\"} 2"));
    tamiz_free(text);
    test_close(db);
    db = test_open("s", SMALL, w.env);
    assert_string_equal(test_scan(db, NULL), "a=1 c=new one d=");
}

/* Dropped where older values lie below it, table after table. */
static void nothing_older_shows_below_what_was_dropped(void **state)
{
    (void)state;
    test_put(db, "a", "1");
    test_put(db, "b", "1");
    test_put(db, "c", "1");
    flush();
    assert_public(tamiz_compact_table(db, 0, 0), TAMIZ_OK);
    assert_public(tamiz_compact_table(db, 1, 0), TAMIZ_OK); /* in level 2 by now */
    test_put(db, "b", "2");
    test_put(db, "c", "2");
    flush();
    test_put(db, "b", "drop");
    flush();
    assert_string_equal(test_scan(db, NULL), "a=1 b=drop c=2");
    assert_public(tamiz_compact_table(db, 0, 0), TAMIZ_OK);
    assert_int_equal(stats_of(db).compaction_filter_dropped, 1);
    for (unsigned level = 0; level < 3; level++) {
        assert_string_equal(test_scan(db, NULL), "a=1 c=2");
        test_expect(db, "b", NULL, NULL);
        const tamiz_status st = tamiz_compact_table(db, level, 0);
        assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
    }
    compact(db);
    assert_string_equal(test_scan(db, NULL), "a=1 c=2");
    test_put(db, "b", "3");
    assert_string_equal(test_scan(db, NULL), "a=1 b=3 c=2");
}

static void what_a_snapshot_sees_is_not_shown_to_it(void **state)
{
    (void)state;
    tamiz_snapshot *at;
    test_put(db, "a", "drop");
    test_put(db, "b", "old");
    test_put(db, "c", "drop");
    assert_public(tamiz_snapshot_take(db, &at), TAMIZ_OK);
    test_put(db, "c", "drop later");
    test_put(db, "d", "drop");
    compact(db);
    assert_string_equal(shown.text, "c=drop later@1 d=drop@1 ");
    assert_string_equal(test_scan(db, NULL), "a=drop b=old");
    assert_string_equal(test_scan(db, at), "a=drop b=old c=drop");
    compact(db);
    assert_string_equal(test_scan(db, at), "a=drop b=old c=drop");
    tamiz_snapshot_release(at);
    compact(db);
    assert_string_equal(test_scan(db, NULL), "b=new");
}

/* ---- snapshots that are taken while it works */

struct taking {
    const char *point; /* where */
    tamiz *db;
    int left;
    bool release; /* at once */
    tamiz_snapshot *taken;
};

static void take_there(void *ctx, const char *name)
{
    struct taking *t = ctx;
    if (t->left == 0 || strcmp(name, t->point) != 0)
        return;
    t->left--;
    assert_public(tamiz_snapshot_take(t->db, &t->taken), TAMIZ_OK);
    if (t->release) {
        tamiz_snapshot_release(t->taken);
        t->taken = NULL;
    }
}

static void one_taken_meanwhile_sees_no_change(void **state)
{
    static const char *const points[] = {"compact.output", "compact.install", "manifest.append"};
    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        test_put(db, "a", "drop");
        test_put(db, "b", "old");
        test_put(db, "c", "1");
        flush();
        struct taking t = {.point = points[i], .db = db, .left = 1};
        tamiz_env_sim_on_point(w.sim, take_there, &t);
        compact(db);
        tamiz_env_sim_on_point(w.sim, NULL, NULL);
        assert_non_null(t.taken);
        assert_string_equal(test_scan(db, t.taken), "a=drop b=old c=1");
        assert_string_equal(test_scan(db, NULL), "a=drop b=old c=1");
        assert_int_equal(stats_of(db).compaction_filter_again, 1);
        assert_int_equal(stats_of(db).compaction_filter_dropped, 0);
        tamiz_snapshot_release(t.taken);
        t = (struct taking){.point = points[i], .db = db, .left = 1, .release = true};
        tamiz_env_sim_on_point(w.sim, take_there, &t);
        compact(db);
        tamiz_env_sim_on_point(w.sim, NULL, NULL);
        assert_int_equal(t.left, 0);
        assert_string_equal(test_scan(db, NULL), "b=new c=1");
        assert_int_equal(stats_of(db).compaction_filter_again, 1);
        finish();
        start(SMALL);
    }
}

/* One that is open goes on over what it began with. */
static void an_iterator_keeps_what_it_began_with(void **state)
{
    (void)state;
    tamiz_iter *it;
    size_t size;
    test_put(db, "a", "drop");
    test_put(db, "b", "old");
    flush();
    assert_public(tamiz_iter_open(db, NULL, &it), TAMIZ_OK);
    compact(db);
    assert_string_equal(test_scan(db, NULL), "b=new");
    tamiz_iter_seek_first(it);
    assert_true(tamiz_iter_valid(it));
    assert_memory_equal(tamiz_iter_value(it, &size), "drop", 4);
    tamiz_iter_next(it);
    assert_memory_equal(tamiz_iter_value(it, &size), "old", 3);
    tamiz_iter_close(it);
}

static void a_value_for_a_time_keeps_its_time(void **state)
{
    (void)state;
    tamiz_write_options o = TAMIZ_WRITE_OPTIONS_INIT;
    o.ttl = 10;
    assert_public(tamiz_put(db, "a", 1, "old", 3, &o), TAMIZ_OK);
    o.ttl = 5;
    assert_public(tamiz_put(db, "b", 1, "old", 3, &o), TAMIZ_OK);
    tamiz_env_sim_clock_advance(w.sim, 6 * SECOND);
    compact(db);
    assert_string_equal(shown.text, "a=old@1 "); /* b is as good as deleted */
    assert_true(shown.expires_us >= 10 * SECOND);
    assert_string_equal(test_scan(db, NULL), "a=new");
    compact(db);
    assert_string_equal(test_scan(db, NULL), "a=new");
    tamiz_env_sim_clock_advance(w.sim, 5 * SECOND);
    assert_string_equal(test_scan(db, NULL), "");
}

static void what_is_deleted_or_hidden_is_not_shown_to_it(void **state)
{
    (void)state;
    test_put(db, "a", "1");
    test_put(db, "b", "1");
    test_put(db, "c", "1");
    flush();
    test_put(db, "a", "2");
    test_delete(db, "b");
    assert_public(tamiz_delete_range(db, "c", 1, "d", 1, NULL), TAMIZ_OK);
    test_put(db, "d", "1");
    compact(db);
    assert_string_equal(shown.text, "a=2@1 d=1@1 ");
}

static void what_is_ingested_is_judged_like_the_rest(void **state)
{
    (void)state;
    tamiz_table_writer *t;
    const char *const path = "in";
    test_put(db, "a", "1");
    test_put(db, "b", "1");
    compact(db);
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = w.env;
    assert_public(tamiz_table_writer_open(path, &o, &t), TAMIZ_OK);
    assert_public(tamiz_table_writer_put(t, "a", 1, "drop", 4), TAMIZ_OK);
    assert_public(tamiz_table_writer_put(t, "c", 1, "old", 3), TAMIZ_OK);
    assert_public(tamiz_table_writer_finish(t, NULL, NULL), TAMIZ_OK);
    assert_public(tamiz_ingest(db, &path, 1), TAMIZ_OK);
    assert_string_equal(test_scan(db, NULL), "a=drop b=1 c=old");
    compact(db);
    assert_string_equal(test_scan(db, NULL), "b=1 c=new");
}

static void it_is_of_the_keyspace_that_it_was_given_for(void **state)
{
    (void)state;
    struct shown of_own = {.text = ""};
    tamiz *plain, *own, *again;
    tamiz_options o = options_with(&w, SMALL, &of_own);
    assert_public(tamiz_keyspace_open(db, "plain", NULL, &plain), TAMIZ_OK);
    assert_public(tamiz_keyspace_open(db, "own", &o, &own), TAMIZ_OK);
    assert_public(tamiz_keyspace_open(db, "own", &o, &again), TAMIZ_OK);
    o.compaction_filter.ctx = &shown;
    assert_public(tamiz_keyspace_open(db, "own", &o, &again), TAMIZ_INVALID_ARGUMENT);
    tamiz *const all[] = {db, plain, own};
    for (size_t i = 0; i < 3; i++) {
        test_put(all[i], "a", "drop");
        test_put(all[i], "b", "old");
        compact(all[i]);
    }
    assert_string_equal(test_scan(db, NULL), "b=new");
    assert_string_equal(test_scan(plain, NULL), "a=drop b=old");
    assert_string_equal(test_scan(own, NULL), "b=new");
    assert_string_equal(shown.keyspace, "default");
    assert_string_equal(of_own.text, "a=drop@1 b=old@1 ");
    assert_string_equal(of_own.keyspace, "own");
    assert_int_equal(stats_of(own).compaction_filter_dropped, 1);
    assert_int_equal(stats_of(plain).compaction_filter_dropped, 0);
}

static void a_wrong_answer_fails_the_merge_and_loses_nothing(void **state)
{
    static const struct {
        const char *value, *detail;
    } wrong[] = {{"wrong", "compaction filter of keyspace default, key b: none of its verdicts"},
                 {"nothing", "key b: a change without a value"},
                 {"long", "key b: the new value is too long"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        test_put(db, "a", "drop");
        test_put(db, "b", wrong[i].value);
        flush();
        assert_public(tamiz_compact(db, NULL, 0, NULL, 0), TAMIZ_INVALID_ARGUMENT);
        if (!strstr(tamiz_error_detail(), wrong[i].detail))
            fail_msg("%s: %s", wrong[i].value, tamiz_error_detail());
        assert_public(tamiz_health(db), TAMIZ_OK); /* who asked was told */
        test_expect(db, "a", "drop", NULL);
        test_expect(db, "b", wrong[i].value, NULL);
        assert_int_equal(stats_of(db).compaction_filter_dropped, 0);
        assert_int_equal(test_count_files(w.env, "s", ".sst"), 1);
        test_put(db, "b", "good");
        compact(db);
        assert_string_equal(test_scan(db, NULL), "b=good");
        finish();
        start(SMALL);
    }
}

static void the_background_says_so_and_tries_again(void **state)
{
    (void)state;
    bool more = true;
    finish();
    start("threads=0 memtable=16KiB level0_runs=2 level0_stop=20");
    for (int i = 0; i < 3; i++) {
        test_put(db, "a", "wrong");
        flush();
    }
    (void)tamiz_step(db, 1000, &more);
    assert_public(tamiz_health(db), TAMIZ_INVALID_ARGUMENT);
    assert_non_null(strstr(tamiz_error_detail(), "none of its verdicts"));
    test_put(db, "a", "good");
    flush();
    tamiz_env_sim_clock_advance(w.sim, 10 * SECOND);
    assert_public(tamiz_step(db, 1000, &more), TAMIZ_OK);
    assert_public(tamiz_health(db), TAMIZ_OK);
    assert_true(stats_of(db).compactions > 0);
    assert_string_equal(test_scan(db, NULL), "a=good");
}

static void a_reader_never_asks_it(void **state)
{
    (void)state;
    struct shown of_reader = {.text = ""};
    tamiz *reader;
    test_put(db, "a", "drop");
    test_put(db, "b", "1");
    flush();
    reader = open_with(&w, SMALL "read_only=true", &of_reader);
    assert_string_equal(test_scan(reader, NULL), "a=drop b=1");
    assert_public(tamiz_compact(reader, NULL, 0, NULL, 0), TAMIZ_READ_ONLY);
    compact(db);
    assert_string_equal(test_scan(reader, NULL), "a=drop b=1");
    assert_public(tamiz_refresh(reader), TAMIZ_OK);
    assert_string_equal(test_scan(reader, NULL), "b=1");
    assert_string_equal(of_reader.text, "");
    test_close(reader);
}

static void merges_of_the_background_ask_it(void **state)
{
    (void)state;
    finish();
    start("threads=0 memtable=16KiB table=16KiB block=1KiB level0_runs=2 size_ratio=2");
    for (int round = 0; round < 6; round++)
        for (int i = 0; i < 1000; i++)
            test_put(db, key_of(i), i % 3 ? "kept, and long enough for some tables" : "drop");
    const tamiz_stats s = stats_of(db);
    assert_true(s.compactions > 4);
    assert_true(s.compaction_filter_dropped > 100);
    compact(db);
    for (int i = 0; i < 1000; i++)
        test_expect(db, key_of(i), i % 3 ? "kept, and long enough for some tables" : NULL, NULL);
}

/* ---- threads: snapshots hold what they saw, whatever is merged meanwhile ---- */

struct crowd {
    tamiz *db;
    _Atomic bool done;
};

enum { CROWD_KEYS = 300, CROWD_ROUNDS = 40 };

static void *watch(void *ctx)
{
    struct crowd *c = ctx;
    static char first[CROWD_KEYS][16];
    while (!atomic_load(&c->done)) {
        tamiz_snapshot *at;
        assert_public(tamiz_snapshot_take(c->db, &at), TAMIZ_OK);
        tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
        o.snapshot = at;
        for (int look = 0; look < 2; look++)
            for (int i = 0; i < CROWD_KEYS; i++) {
                char key[16], got[16] = "";
                size_t size = 0;
                (void)snprintf(key, sizeof key, "k%06d", i);
                const tamiz_status st = tamiz_get_into(c->db, key, 7, got, 15, &size, &o);
                assert_true(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND);
                if (look == 0)
                    memcpy(first[i], got, sizeof got);
                else
                    assert_string_equal(got, first[i]);
            }
        tamiz_snapshot_release(at);
    }
    return NULL;
}

static void snapshots_hold_what_they_saw_while_threads_merge(void **state)
{
    (void)state;
    struct crowd c = {.db = NULL};
    const struct world threaded = {.env = tamiz_env_memory_new()};
    pthread_t watcher;
    c.db = open_with(&threaded,
                     "threads=2 memtable=16KiB table=16KiB block=1KiB level0_runs=1 level0_stop=8 "
                     "size_ratio=2",
                     NULL);
    assert_int_equal(pthread_create(&watcher, NULL, watch, &c), 0);
    for (int round = 0; round < CROWD_ROUNDS; round++)
        for (int i = 0; i < CROWD_KEYS; i++)
            test_put(c.db, key_of(i), i % 3 == 0 ? "drop" : i % 3 == 1 ? "old value" : "kept");
    atomic_store(&c.done, true);
    assert_int_equal(pthread_join(watcher, NULL), 0);
    compact(c.db);
    for (int i = 0; i < CROWD_KEYS; i++)
        test_expect(c.db, key_of(i), i % 3 == 0 ? NULL : i % 3 == 1 ? "new value" : "kept", NULL);
    test_close(c.db);
    tamiz_env_memory_free((tamiz_env *)(uintptr_t)threaded.env);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(it_keeps_drops_and_changes_what_is_merged),
        CASE(nothing_older_shows_below_what_was_dropped),
        CASE(what_a_snapshot_sees_is_not_shown_to_it),
        CASE(one_taken_meanwhile_sees_no_change),
        CASE(an_iterator_keeps_what_it_began_with),
        CASE(a_value_for_a_time_keeps_its_time),
        CASE(what_is_deleted_or_hidden_is_not_shown_to_it),
        CASE(what_is_ingested_is_judged_like_the_rest),
        CASE(it_is_of_the_keyspace_that_it_was_given_for),
        CASE(a_wrong_answer_fails_the_merge_and_loses_nothing),
        CASE(the_background_says_so_and_tries_again),
        CASE(a_reader_never_asks_it),
        CASE(merges_of_the_background_ask_it),
        cmocka_unit_test(snapshots_hold_what_they_saw_while_threads_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
