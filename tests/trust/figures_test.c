/* SPDX-License-Identifier: MIT
 *
 * How the figures are said. Prometheus's text is read by a small reader that knows its rules: a
 * TYPE line before a metric's samples, those together, no sample twice, names and labels well
 * formed, every value a number. And the interval of a rate is Wilson's, beside figures that were
 * worked out by hand.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter/theory.h"
#include "support/store.h"

enum { METRICS = 200, SERIES = 2000, NAME = 64, LABELS = 200, KEYS = 4000 };

/* ---- a reader of the text format */

struct lint {
    char metric[METRICS][NAME]; /* declared so far; the last one is being told */
    size_t metrics;
    char series[SERIES][NAME + LABELS];
    size_t count;
};

static size_t name_size(const char *at)
{
    size_t n = 0;
    while (isalpha((unsigned char)at[n]) || at[n] == '_' || (n && isdigit((unsigned char)at[n])))
        n++;
    return n;
}

static void read_type(struct lint *l, const char *line)
{
    char name[NAME], type[NAME];
    assert_int_equal(sscanf(line, "# TYPE %63s %63s", name, type), 2);
    assert_int_equal(name_size(name), strlen(name));
    assert_true(strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0);
    for (size_t i = 0; i < l->metrics; i++)
        assert_string_not_equal(l->metric[i], name);
    assert_true(l->metrics < METRICS);
    memcpy(l->metric[l->metrics++], name, sizeof name);
}

/* {name="value",...}; returns what follows. */
static const char *read_labels(const char *at)
{
    assert_int_equal(*at, '{');
    do {
        const size_t n = name_size(++at);
        assert_true(n > 0);
        at += n;
        assert_int_equal(at[0], '=');
        assert_int_equal(at[1], '"');
        at += 2;
        while (*at && *at != '"') {
            assert_true(*at != '\\' && *at != '\n');
            at++;
        }
        assert_int_equal(*at++, '"');
    } while (*at == ',');
    assert_int_equal(*at, '}');
    return at + 1;
}

static void read_sample(struct lint *l, const char *line)
{
    const size_t n = name_size(line);
    assert_true(l->metrics > 0); /* behind its TYPE, and behind no other's */
    assert_int_equal(n, strlen(l->metric[l->metrics - 1]));
    assert_memory_equal(line, l->metric[l->metrics - 1], n);
    const char *at = read_labels(line + n);
    const size_t size = (size_t)(at - line);
    assert_true(size < NAME + LABELS && l->count < SERIES);
    memcpy(l->series[l->count], line, size);
    for (size_t i = 0; i < l->count; i++)
        assert_string_not_equal(l->series[i], l->series[l->count]);
    l->count++;
    char *end;
    assert_int_equal(*at, ' ');
    (void)strtod(at + 1, &end);
    assert_true(end > at + 1);
    assert_int_equal(*end, 0);
}

/* How many samples there are. */
static size_t lint(char *text)
{
    struct lint *l = calloc(1, sizeof *l);
    assert_non_null(l);
    assert_int_equal(text[strlen(text) - 1], '\n');
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (line[0] == '#')
            read_type(l, line);
        else
            read_sample(l, line);
    const size_t count = l->count;
    free(l);
    return count;
}

/* ---- */

static size_t key_text(char *key, uint64_t number)
{
    return (size_t)snprintf(key, 24, "%016llu", (unsigned long long)number);
}

static void what_prometheus_reads_keeps_its_rules(void **state)
{
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = test_open("store", "threads=0 memtable=64KiB compaction=off", env);
    char key[24], *text;
    (void)state;
    assert_public(tamiz_property(db, "stats.prometheus", &text), TAMIZ_OK);
    const size_t of_none = lint(text);
    tamiz_free(text);
    for (uint64_t i = 0; i < KEYS; i++)
        assert_public(tamiz_put(db, key, key_text(key, 2 * i), "sieve", 5, NULL), TAMIZ_OK);
    assert_public(tamiz_flush(db), TAMIZ_OK);
    for (uint64_t i = 0; i < KEYS; i++)
        assert_int_equal(tamiz_exists(db, key, key_text(key, 2 * i + 1), NULL), TAMIZ_NOT_FOUND);
    tamiz_stats stats = TAMIZ_STATS_INIT;
    assert_public(tamiz_stats_get(db, &stats), TAMIZ_OK);
    assert_true(stats.total.tables > 2);
    assert_public(tamiz_property(db, "stats.prometheus", &text), TAMIZ_OK);
    assert_int_equal(lint(text), of_none + 7 * stats.total.tables);
    tamiz_free(text);
    test_close(db);
    tamiz_env_memory_free(env);
}

/* Newcombe 1998, table I, method 3 (Wilson's score without correction): 81 of 263, 15 of 148, 0 of
 * 20, 1 of 29. */
static void the_interval_is_wilsons(void **state)
{
    static const struct {
        double hits, n, low, high;
    } known[] = {{81, 263, 0.2553, 0.3662},
                 {15, 148, 0.0624, 0.1605},
                 {0, 20, 0.0000, 0.1611},
                 {1, 29, 0.0061, 0.1718}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double low, high;
        theory_wilson(known[i].hits, known[i].n, 1.959964, &low, &high);
        assert_true(fabs(low - known[i].low) < 0.00006);
        assert_true(fabs(high - known[i].high) < 0.00006);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_prometheus_reads_keeps_its_rules),
        cmocka_unit_test(the_interval_is_wilsons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
