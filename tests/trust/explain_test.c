/* SPDX-License-Identifier: MIT
 *
 * A read that is explained is counted as any other, and what its story says is what the counters
 * say: 100,000 explanations, added up, are the statistics, level by level.
 */
#include <stdlib.h>
#include <string.h>

#include "support/store.h"

enum { KEYS = 20000, READS = 100000 };

static size_t key_text(char *key, uint64_t number)
{
    return (size_t)snprintf(key, 24, "%016llu", (unsigned long long)number);
}

/* Several runs in several levels, newer versions of some keys, and deletions. */
static tamiz *tree_open(tamiz_env *env, const char *filter)
{
    char options[200], key[24];
    (void)snprintf(options, sizeof options,
                   "memtable=64KiB table=64KiB cache=300KiB threads=0 level0_runs=4 filter=%s",
                   filter);
    tamiz *db = test_open("store", options, env);
    struct test_random r = {5};
    for (uint64_t i = 0; i < 2 * KEYS; i++) {
        const uint64_t number = 2 * test_random_below(&r, KEYS);
        if (i % 11 == 0)
            assert_public(tamiz_delete(db, key, key_text(key, number), NULL), TAMIZ_OK);
        else
            assert_public(
                tamiz_put(db, key, key_text(key, number), "a value of some bytes", 21, NULL),
                TAMIZ_OK);
    }
    return db;
}

/* ---- adding up what the stories say */

enum { STEPS = 15 };
static const char *const step_names[STEPS] = {"memtable",        "memtable_filter_negative",
                                              "outside_range",   "filter_negative",
                                              "filter_maybe",    "no_filter",
                                              "index",           "block_cached",
                                              "block_device",    "found",
                                              "tombstone",       "absent_in_block",
                                              "prefix_negative", "prefix_maybe",
                                              "no_prefix_filter"};

struct sums {
    uint64_t steps[STEPS][TAMIZ_LEVELS];
    uint64_t found, false_positives[TAMIZ_LEVELS];
    double expected[TAMIZ_LEVELS];
};

static const char *member(const char *object, const char *name)
{
    const char *at = strstr(object, name);
    assert_non_null(at);
    return at + strlen(name);
}

static void add_up(const char *json, struct sums *sums)
{
    bool maybe = false;
    for (const char *at = json; (at = strstr(at, "{\"step\":\"")) != NULL; at++) {
        const char *name = at + 9;
        const long level = strtol(member(at, "\"level\":"), NULL, 10);
        const double rate = strtod(member(at, "\"expected_fpr\":"), NULL);
        const size_t size = strcspn(name, "\"");
        int kind = 0;
        while (strlen(step_names[kind]) != size || memcmp(step_names[kind], name, size) != 0)
            assert_true(++kind < STEPS);
        if (level < 0)
            continue;
        assert_in_range(level, 0, TAMIZ_LEVELS - 1);
        sums->steps[kind][level]++;
        if (strcmp(step_names[kind], "filter_maybe") == 0)
            maybe = true;
        if (strcmp(step_names[kind], "filter_negative") == 0)
            sums->expected[level] += rate;
        if (strcmp(step_names[kind], "absent_in_block") == 0 && maybe) {
            sums->false_positives[level]++;
            sums->expected[level] += rate;
        }
        if (strcmp(step_names[kind], "filter_maybe") != 0 && kind >= 9)
            maybe = false;
    }
    sums->found += strstr(json, "\"found\":true") != NULL;
}

static uint64_t sum_of(const struct sums *sums, const char *name, int level)
{
    int kind = 0;
    while (strcmp(step_names[kind], name) != 0)
        kind++;
    return sums->steps[kind][level];
}

static void the_sum_of_explanations_is_the_statistics(void **state)
{
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = tree_open(env, "blocked:6");
    struct sums *sums = calloc(1, sizeof *sums);
    struct test_random r = {9};
    tamiz_stats before = TAMIZ_STATS_INIT, after = TAMIZ_STATS_INIT;
    (void)state;
    assert_non_null(sums);
    assert_public(tamiz_stats_get(db, &before), TAMIZ_OK);
    for (uint64_t i = 0; i < READS; i++) {
        char key[24], *json;
        const size_t size = key_text(key, test_random_below(&r, 2 * KEYS));
        assert_public(tamiz_explain_json(db, key, size, NULL, &json), TAMIZ_OK);
        add_up(json, sums);
        tamiz_free(json);
    }
    assert_public(tamiz_stats_get(db, &after), TAMIZ_OK);
    assert_int_equal(after.gets - before.gets, READS);
    assert_int_equal(after.gets_found - before.gets_found, sums->found);
    uint64_t device_reads = 0, levels = 0;
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        const tamiz_level_stats *a = &after.level[i], *b = &before.level[i];
        assert_int_equal(a->filter_negatives - b->filter_negatives,
                         sum_of(sums, "filter_negative", i));
        assert_int_equal(a->filter_probes - b->filter_probes,
                         sum_of(sums, "filter_negative", i) + sum_of(sums, "filter_maybe", i));
        assert_int_equal(a->filter_unavailable - b->filter_unavailable,
                         sum_of(sums, "no_filter", i));
        assert_int_equal(a->filter_false_positives - b->filter_false_positives,
                         sums->false_positives[i]);
        assert_int_equal(a->block_cache_hits - b->block_cache_hits,
                         sum_of(sums, "block_cached", i));
        assert_int_equal(a->device_reads - b->device_reads, sum_of(sums, "block_device", i));
        const double theory =
            a->filter_expected_false_positives - b->filter_expected_false_positives;
        assert_true(theory - sums->expected[i] < 0.01 * theory + 0.01 &&
                    sums->expected[i] - theory < 0.01 * theory + 0.01);
        device_reads += sum_of(sums, "block_device", i);
        levels += sum_of(sums, "filter_negative", i) > 0;
    }
    assert_int_equal(after.data.reads - before.data.reads, device_reads);
    assert_true(device_reads > 1000 && levels >= 2); /* else this proves little */
    free(sums);
    test_close(db);
    tamiz_env_memory_free(env);
}

/* The same of ordered reads, and of filters over prefixes. */
static void the_sum_of_explained_ranges_is_the_statistics(void **state)
{
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = tree_open(env, "blocked:8 prefix_filter=15");
    struct sums *sums = calloc(1, sizeof *sums);
    struct test_random r = {11};
    tamiz_stats before = TAMIZ_STATS_INIT, after = TAMIZ_STATS_INIT;
    uint64_t probes = 0, negatives = 0, unasked = 0, device_reads = 0;
    (void)state;
    assert_non_null(sums);
    assert_public(tamiz_stats_get(db, &before), TAMIZ_OK);
    for (uint64_t i = 0; i < 3000; i++) {
        char key[24], *json;
        tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
        (void)key_text(key, test_random_below(&r, 4 * KEYS));
        o.prefix = key;
        o.prefix_size = 14 + i % 3;
        o.use_filters = i % 7 != 0;
        assert_public(tamiz_explain_seek_json(db, key, o.prefix_size, 3, &o, &json), TAMIZ_OK);
        add_up(json, sums);
        tamiz_free(json);
    }
    assert_public(tamiz_stats_get(db, &after), TAMIZ_OK);
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        negatives += sum_of(sums, "prefix_negative", i);
        probes += sum_of(sums, "prefix_negative", i) + sum_of(sums, "prefix_maybe", i);
        unasked += sum_of(sums, "no_prefix_filter", i);
        assert_int_equal(after.level[i].device_reads - before.level[i].device_reads,
                         sum_of(sums, "block_device", i));
        device_reads += sum_of(sums, "block_device", i);
    }
    assert_int_equal(after.prefix_probes - before.prefix_probes, probes);
    assert_int_equal(after.prefix_negatives - before.prefix_negatives, negatives);
    assert_int_equal(after.prefix_unavailable - before.prefix_unavailable, unasked);
    assert_true(after.prefix_false_positives <= probes - negatives);
    assert_int_equal(after.data.reads - before.data.reads, device_reads);
    assert_true(negatives > 500 && probes > negatives && unasked > 500 && device_reads > 500);
    free(sums);
    test_close(db);
    tamiz_env_memory_free(env);
}

/* ---- words */

static void expect_words(const char *text, const char *words)
{
    if (!strstr(text, words))
        print_error("wanted \"%s\" in:\n%s\n", words, text);
    assert_non_null(strstr(text, words));
}

static void every_kind_tells_what_it_probed(void **state)
{
    static const struct {
        const char *filter, *words;
    } kinds[] = {
        {"bloom:10", "bits "},
        {"blocked:10", "of its 512 bits"},
        {"split:10", "of its 256 bits"},
        {"ribbon:7", "fingerprint 0x"},
        {"bumped:7", "fingerprint 0x"},
        {"fuse8", "slots"},
        {"fuse4", "slots"},
        {"xor8", "slots"},
        {"cuckoo:12", "buckets"},
        {"none", "no filter to ask"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tamiz_env *env = tamiz_env_memory_new();
        tamiz *db = tree_open(env, kinds[i].filter);
        char key[24], *text;
        assert_public(tamiz_explain(db, key, key_text(key, 1001), NULL, &text), TAMIZ_OK);
        expect_words(text, kinds[i].words);
        expect_words(text, "absent: ");
        tamiz_free(text);
        test_close(db);
        tamiz_env_memory_free(env);
    }
}

static void the_last_sentence_says_what_each_device_read_was_for(void **state)
{
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = test_open("store", "threads=0 cache=0 compaction=off filter=blocked:4", env);
    char key[24], *text = NULL;
    (void)state;
    for (uint64_t i = 0; i < 2000; i++)
        assert_public(tamiz_put(db, key, key_text(key, 4 * i), "old", 3, NULL), TAMIZ_OK);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    for (uint64_t i = 0; i < 2000; i++)
        assert_public(tamiz_put(db, key, key_text(key, 4 * i + 2), "new", 3, NULL), TAMIZ_OK);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    bool both = false;
    for (uint64_t i = 0; i < 2000 && !both; i++) {
        assert_public(tamiz_explain(db, key, key_text(key, 4 * i), NULL, &text), TAMIZ_OK);
        expect_words(text, "present: ");
        both = strstr(text, "present: 2 device reads: one was a false positive of ") != NULL;
        if (both) {
            expect_words(text, " (level 0, blocked 4.");
            expect_words(text, " bits, expected ");
            expect_words(text, "; one found the value in ");
        }
        tamiz_free(text);
    }
    assert_true(both);
    tamiz_read_options twin = TAMIZ_READ_OPTIONS_INIT;
    twin.use_filters = false;
    assert_public(tamiz_explain(db, key, key_text(key, 4), &twin, &text), TAMIZ_OK);
    expect_words(text, "whose filter was not to be asked");
    tamiz_free(text);
    test_close(db);
    tamiz_env_memory_free(env);
}

static void batches_and_ranges_are_explained_too(void **state)
{
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = tree_open(env, "blocked:10");
    char one[24], two[24], *text = NULL;
    const void *keys[2] = {one, two};
    const size_t sizes[2] = {key_text(one, 1001), key_text(two, 20)};
    (void)state;
    assert_public(tamiz_explain_many(db, 2, keys, sizes, NULL, &text), TAMIZ_OK);
    expect_words(text, one);
    expect_words(text, two);
    expect_words(text, " of 2 present: ");
    tamiz_free(text);
    assert_public(tamiz_explain_many_json(db, 2, keys, sizes, NULL, &text), TAMIZ_OK);
    expect_words(text, "\"key\":\"0000000000001001\"");
    tamiz_free(text);
    assert_public(tamiz_explain_seek(db, one, sizes[0], 5, NULL, &text), TAMIZ_OK);
    expect_words(text, "5 entries in order, ");
    expect_words(text, "a range asks no filter");
    tamiz_free(text);
    assert_public(tamiz_explain_seek_json(db, one, sizes[0], 5, NULL, &text), TAMIZ_OK);
    expect_words(text, "\"entries\":5");
    tamiz_free(text);
    test_close(db);
    tamiz_env_memory_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_of_explanations_is_the_statistics),
        cmocka_unit_test(the_sum_of_explained_ranges_is_the_statistics),
        cmocka_unit_test(every_kind_tells_what_it_probed),
        cmocka_unit_test(the_last_sentence_says_what_each_device_read_was_for),
        cmocka_unit_test(batches_and_ranges_are_explained_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
