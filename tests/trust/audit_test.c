/* SPDX-License-Identifier: MIT
 *
 * Filters that lie. A family of our own denies a member, or says maybe too often; the store must
 * find out by itself: the audit, by reading what was denied; drift, by what its probes turn out to
 * be. And the bookkeeping: the tallies add up, and stand in every form that the figures have.
 */
#include <stdlib.h>
#include <string.h>

#include "support/store.h"

enum { KEYS = 4000 };

/* ---- a family that is right about everything but what it is told to lie about */

struct liar {
    _Atomic uint64_t denied;       /* this hash is denied, member or not */
    _Atomic uint32_t maybe_one_in; /* of absent hashes; what it promises is one in 100 */
};

static tamiz_status liar_plan(void *ctx, const tamiz_filter_policy *policy, uint64_t keys,
                              uint64_t *payload_bytes, double *expected_fpr)
{
    (void)ctx, (void)policy;
    *payload_bytes = keys * 8;
    *expected_fpr = 0.01;
    return TAMIZ_OK;
}

static tamiz_status liar_build(void *ctx, const uint64_t *hashes, size_t n, void *payload,
                               uint64_t payload_bytes)
{
    (void)ctx, (void)payload_bytes;
    memcpy(payload, hashes, n * 8);
    return TAMIZ_OK;
}

static bool liar_check(void *ctx, const void *payload, uint64_t payload_bytes)
{
    (void)ctx, (void)payload;
    return payload_bytes % 8 == 0;
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool liar_may_contain(void *ctx, const void *payload, uint64_t payload_bytes, uint64_t hash)
{
    struct liar *liar = ctx;
    if (hash == liar->denied)
        return false;
    return bsearch(&hash, payload, payload_bytes / 8, 8, compare_u64) ||
           (hash >> 20) % liar->maybe_one_in == 0;
}

struct events {
    int denied, drifted;
    char text[512];
};

static void event_take(void *ctx, tamiz_event_kind kind, const char *text)
{
    struct events *events = ctx;
    if (kind != TAMIZ_EVENT_FILTER_DENIED && kind != TAMIZ_EVENT_FILTER_DRIFT)
        return;
    events->denied += kind == TAMIZ_EVENT_FILTER_DENIED;
    events->drifted += kind == TAMIZ_EVENT_FILTER_DRIFT;
    (void)snprintf(events->text, sizeof events->text, "%s", text);
}

struct world {
    tamiz_env *env;
    struct liar liar;
    tamiz_filter_family family;
    struct events events;
    tamiz *db;
};

static size_t key_text(char *key, uint64_t number)
{
    return (size_t)snprintf(key, 24, "%016llu", (unsigned long long)number);
}

static void world_open(struct world *w, const char *options)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    *w = (struct world){.env = tamiz_env_memory_new()};
    w->liar.maybe_one_in = 100;
    w->family =
        (tamiz_filter_family){sizeof w->family, "liar",     0x8001,          1, &w->liar, liar_plan,
                              liar_build,       liar_check, liar_may_contain};
    assert_public(tamiz_options_set(&o, options), TAMIZ_OK);
    o.env = w->env;
    o.filter = (tamiz_filter_policy){"liar", 10, 0, &w->family};
    o.log = (tamiz_event_log){event_take, &w->events};
    assert_public(tamiz_open("store", &o, &w->db), TAMIZ_OK);
    for (uint64_t i = 0; i < KEYS; i++) {
        char key[24];
        assert_public(tamiz_put(w->db, key, key_text(key, 2 * i), "sieve", 5, NULL), TAMIZ_OK);
    }
    assert_public(tamiz_flush(w->db), TAMIZ_OK);
}

static void world_close(struct world *w)
{
    test_close(w->db);
    tamiz_env_memory_free(w->env);
}

static tamiz_stats stats_of(tamiz *db)
{
    tamiz_stats stats = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    return stats;
}

static void ask(tamiz *db, uint64_t number, tamiz_status want)
{
    char key[24];
    const size_t size = key_text(key, number);
    assert_int_equal(tamiz_exists(db, key, size, NULL), want);
}

/* ---- the audit */

static void a_filter_that_denies_a_key_hides_it_where_nothing_audits(void **state)
{
    struct world w;
    char key[24];
    (void)state;
    world_open(&w, "threads=0");
    ask(w.db, 84, TAMIZ_OK);
    w.liar.denied = tamiz_hash(key, key_text(key, 84));
    ask(w.db, 84, TAMIZ_NOT_FOUND); /* so the lie is one */
    world_close(&w);
}

static void the_audit_finds_the_denied_key_and_the_read_tells_the_truth(void **state)
{
    struct world w;
    char key[24];
    (void)state;
    world_open(&w, "threads=0 audit=1");
    ask(w.db, 84, TAMIZ_OK);
    w.liar.denied = tamiz_hash(key, key_text(key, 84));
    ask(w.db, 84, TAMIZ_OK);
    assert_int_equal(w.events.denied, 1);
    assert_non_null(strstr(w.events.text, ".sst: the filter denied a key that is in the table"));
    tamiz_stats stats = stats_of(w.db);
    assert_int_equal(stats.filter_denials, 1);
    /* Quarantined: that filter is asked no more, and no key is lost. */
    const uint64_t probes = stats.total.filter_probes;
    for (uint64_t i = 0; i < KEYS; i++)
        ask(w.db, 2 * i, TAMIZ_OK);
    stats = stats_of(w.db);
    assert_int_equal(stats.total.filter_probes, probes);
    assert_true(stats.total.filter_unavailable >= KEYS);
    assert_int_equal(w.events.denied, 1);
    char *text = NULL;
    assert_public(tamiz_property(w.db, "stats.json", &text), TAMIZ_OK);
    assert_non_null(strstr(text, "\"quarantined\":true"));
    tamiz_free(text);
    world_close(&w);
}

static void the_audit_finds_the_denied_key_in_a_batch_too(void **state)
{
    struct world w;
    char text[3][24];
    (void)state;
    world_open(&w, "threads=0 audit=1");
    const void *keys[3] = {text[0], text[1], text[2]};
    const size_t sizes[3] = {key_text(text[0], 10), key_text(text[1], 84), key_text(text[2], 85)};
    void *values[3];
    size_t value_sizes[3];
    tamiz_status statuses[3];
    ask(w.db, 84, TAMIZ_OK);
    w.liar.denied = tamiz_hash(text[1], sizes[1]);
    assert_public(tamiz_multi_get(w.db, 3, keys, sizes, values, value_sizes, statuses, NULL),
                  TAMIZ_OK);
    assert_int_equal(statuses[0], TAMIZ_OK);
    assert_int_equal(statuses[1], TAMIZ_OK);
    assert_int_equal(statuses[2], TAMIZ_NOT_FOUND);
    for (int i = 0; i < 3; i++)
        tamiz_free(values[i]);
    world_close(&w);
}

static void one_in_so_many_negatives_is_looked_into(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "threads=0 audit=50");
    for (uint64_t i = 0; i < 10000; i++)
        ask(w.db, 2 * (i % KEYS) + 1, TAMIZ_NOT_FOUND);
    const tamiz_stats stats = stats_of(w.db);
    assert_in_range(stats.filter_audits, 190, 201);
    assert_int_equal(stats.filter_denials, 0);
    /* What the audit read is in nobody's account of filtered reads. */
    assert_true(stats.total.device_reads <= stats.total.filter_false_positives);
    world_close(&w);
}

/* ---- drift */

static void a_rate_above_the_promise_is_told_once(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "threads=0");
    w.liar.maybe_one_in = 20;
    for (uint64_t i = 0; i < KEYS; i++)
        ask(w.db, 2 * i + 1, TAMIZ_NOT_FOUND);
    assert_int_equal(w.events.drifted, 1);
    assert_non_null(strstr(w.events.text, "expected 1 %"));
    char *text = NULL;
    assert_public(tamiz_property(w.db, "stats", &text), TAMIZ_OK);
    assert_non_null(strstr(text, "DRIFTED"));
    tamiz_free(text);
    world_close(&w);
}

static void a_kept_promise_is_no_event(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "threads=0");
    for (uint64_t i = 0; i < 2 * KEYS; i++)
        ask(w.db, 2 * (i % KEYS) + 1, TAMIZ_NOT_FOUND);
    assert_int_equal(w.events.drifted, 0);
    world_close(&w);
}

/* One absent key that happens to be a false positive, asked for again and again, says nothing of
 * the filter. */
static void a_favourite_false_positive_is_counted_once(void **state)
{
    struct world w;
    uint64_t favourite = 1;
    char key[24];
    (void)state;
    world_open(&w, "threads=0");
    while ((tamiz_hash(key, key_text(key, favourite)) >> 20) % 100)
        favourite += 2;
    for (uint64_t i = 0; i < 2000; i++) {
        ask(w.db, favourite, TAMIZ_NOT_FOUND);
        ask(w.db, 2 * i + 1, TAMIZ_NOT_FOUND);
    }
    assert_int_equal(w.events.drifted, 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_that_denies_a_key_hides_it_where_nothing_audits),
        cmocka_unit_test(the_audit_finds_the_denied_key_and_the_read_tells_the_truth),
        cmocka_unit_test(the_audit_finds_the_denied_key_in_a_batch_too),
        cmocka_unit_test(one_in_so_many_negatives_is_looked_into),
        cmocka_unit_test(a_rate_above_the_promise_is_told_once),
        cmocka_unit_test(a_kept_promise_is_no_event),
        cmocka_unit_test(a_favourite_false_positive_is_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
