/* SPDX-License-Identifier: MIT
 *
 * Every kind of filter at several sizes: what it takes, what it promises, what it keeps.
 *
 *     tamiz_bench_filters [--json] [--keys N,N,…] [--filters POLICY,POLICY,…] [--repeat N]
 *
 * A row: bits per key of the image; the rate that the filter expects of itself, and the one
 * measured with absent hashes; overhead: bits over log2(1/measured rate), in percent; building in
 * ns a key, from hashes in random order, small filters many times in a row, as a compaction does; a
 * query in ns: of members, of absent hashes (independent
 * of each other), dependent (each waits for the answer before), and in batches of 32. Hashes are
 * made beforehand. CPU time, least of --repeat.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "tamiz/filter.h"

enum { QUERIES = 1 << 20, BATCH = 32, LIST_MAX = 64 };

static const char default_keys[] = "10000,100000,1000000,10000000";
static const char default_filters[] =
    "bloom:10,blocked:10,split:10,fuse:fpr=0.01,fuse8,fuse16,fuse4:8.6,xor8,xor16,ribbon:fpr=0.01,"
    "ribbon:fpr=0.0078125,bumped:fpr=0.01,bumped:fpr=0.0078125,bumped:fpr=0.00390625,"
    "cuckoo:fpr=0.01,counting:fpr=0.01,scalable:fpr=0.01";

struct row {
    char policy[32];
    uint64_t keys;
    double bits, expected, measured, overhead, build, present, absent, dependent, batch;
};

struct input {
    uint64_t *members; /* keys of them */
    uint64_t *present; /* QUERIES, members in random order */
    uint64_t *absent;  /* QUERIES */
    uint64_t keys;
    unsigned repeat;
};

static void *must(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        exit(3);
    }
    return p;
}

static struct input input_make(uint64_t keys, unsigned repeat)
{
    struct input in = {.keys = keys, .repeat = repeat};
    in.members = must(malloc(keys * sizeof *in.members));
    in.present = must(malloc(QUERIES * sizeof *in.present));
    in.absent = must(malloc(QUERIES * sizeof *in.absent));
    for (uint64_t i = 0; i < keys; i++)
        in.members[i] = measure_random(1, i);
    for (uint64_t i = 0; i < QUERIES; i++) {
        in.present[i] = in.members[measure_random(2, i) % keys];
        in.absent[i] = measure_random(3, i);
    }
    return in;
}

static void input_free(struct input *in)
{
    free(in->members);
    free(in->present);
    free(in->absent);
}

static double least(double a, double b)
{
    return a == 0 || b < a ? b : a;
}

static uint64_t ask(const tamiz_filter *filter, const uint64_t *hashes)
{
    uint64_t found = 0;
    for (size_t i = 0; i < QUERIES; i++)
        found += tamiz_filter_may_contain(filter, hashes[i]);
    return found;
}

/* The answer is added to the next hash: for an absent one, hardly ever anything. */
static uint64_t ask_dependent(const tamiz_filter *filter, const uint64_t *hashes)
{
    uint64_t found = 0, last = 0;
    for (size_t i = 0; i < QUERIES; i++) {
        last = tamiz_filter_may_contain(filter, hashes[i] + last);
        __asm__ volatile("" : "+r"(last)); /* or the compiler foresees it */
        found += last;
    }
    return found;
}

static uint64_t ask_batches(const tamiz_filter *filter, const uint64_t *hashes)
{
    uint64_t found = 0;
    bool maybe[BATCH];
    for (size_t i = 0; i < QUERIES; i += BATCH) {
        tamiz_filter_may_contain_many(filter, hashes + i, BATCH, maybe);
        for (size_t j = 0; j < BATCH; j++)
            found += maybe[j];
    }
    return found;
}

/* Prevents that a loop whose result nobody wants is left out. */
static volatile uint64_t sink;

static double ns_per_query(uint64_t (*way)(const tamiz_filter *, const uint64_t *),
                           const tamiz_filter *filter, const uint64_t *hashes, unsigned repeat)
{
    double best = 0;
    for (unsigned i = 0; i < repeat; i++) {
        const double start = measure_now_ns();
        sink += way(filter, hashes);
        best = least(best, measure_now_ns() - start);
    }
    return best / QUERIES;
}

/* With hashes of its own, enough for 10,000 false positives or 64 Mi. */
static double measured_rate(const tamiz_filter *filter)
{
    uint64_t found = 0, asked = 0, hashes[BATCH];
    bool maybe[BATCH];
    while (found < 10000 && asked < UINT64_C(1) << 26) {
        for (size_t j = 0; j < BATCH; j++)
            hashes[j] = measure_random(4, asked + j);
        tamiz_filter_may_contain_many(filter, hashes, BATCH, maybe);
        for (size_t j = 0; j < BATCH; j++)
            found += maybe[j];
        asked += BATCH;
    }
    return (double)found / (double)asked;
}

static bool measure(const char *text, const struct input *in, struct row *row)
{
    tamiz_filter_policy policy;
    tamiz_filter *filter = NULL;
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    *row = (struct row){.keys = in->keys};
    snprintf(row->policy, sizeof row->policy, "%s", text);
    if (tamiz_filter_policy_parse(text, &policy) != TAMIZ_OK)
        return false;
    const uint64_t rounds = in->keys < QUERIES ? QUERIES / in->keys : 1;
    for (unsigned i = 0; i < in->repeat; i++) {
        const double start = measure_now_ns();
        for (uint64_t round = 0; round < rounds; round++) {
            tamiz_filter_free(filter);
            if (tamiz_filter_build(&policy, in->members, in->keys, &filter) != TAMIZ_OK)
                return false;
        }
        row->build = least(row->build, (measure_now_ns() - start) / (double)(in->keys * rounds));
    }
    tamiz_filter_info_get(filter, &info);
    row->bits = (double)info.bytes * 8 / (double)in->keys;
    row->expected = info.expected_fpr;
    row->measured = measured_rate(filter);
    row->overhead = (row->bits / -log2(row->measured) - 1) * 100;
    row->present = ns_per_query(ask, filter, in->present, in->repeat);
    row->absent = ns_per_query(ask, filter, in->absent, in->repeat);
    row->dependent = ns_per_query(ask_dependent, filter, in->absent, in->repeat);
    row->batch = ns_per_query(ask_batches, filter, in->absent, in->repeat);
    tamiz_filter_free(filter);
    return true;
}

static void print_text(const struct row *r)
{
    printf("%-22s %9llu %7.3f %10.3g %10.3g %6.2f%% %7.1f %7.1f %7.1f %7.1f %7.1f\n", r->policy,
           (unsigned long long)r->keys, r->bits, r->expected, r->measured, r->overhead, r->build,
           r->present, r->absent, r->dependent, r->batch);
}

static void print_json(const struct row *r, bool first)
{
    printf("%s{\"filter\":\"%s\",\"keys\":%llu,\"bits_per_key\":%.4f,\"expected_fpr\":%.6g,"
           "\"measured_fpr\":%.6g,\"overhead_percent\":%.3f,\"build_ns\":%.2f,"
           "\"query_present_ns\":%.2f,\"query_absent_ns\":%.2f,\"query_dependent_ns\":%.2f,"
           "\"query_batch32_ns\":%.2f}",
           first ? "" : ",\n", r->policy, (unsigned long long)r->keys, r->bits, r->expected,
           r->measured, r->overhead, r->build, r->present, r->absent, r->dependent, r->batch);
}

/* Cuts `text` at its commas, in place. */
static size_t split_list(char *text, const char *parts[LIST_MAX])
{
    size_t n = 0;
    for (char *part = strtok(text, ","); part && n < LIST_MAX; part = strtok(NULL, ","))
        parts[n++] = part;
    return n;
}

struct arguments {
    char keys[256], filters[1024];
    unsigned repeat;
    bool json;
};

static bool arguments_read(int argc, char **argv, struct arguments *a)
{
    *a = (struct arguments){.repeat = 5};
    snprintf(a->keys, sizeof a->keys, "%s", default_keys);
    snprintf(a->filters, sizeof a->filters, "%s", default_filters);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            a->json = true;
            continue;
        }
        if (!value)
            return false;
        if (strcmp(argv[i], "--keys") == 0)
            snprintf(a->keys, sizeof a->keys, "%s", value);
        else if (strcmp(argv[i], "--filters") == 0)
            snprintf(a->filters, sizeof a->filters, "%s", value);
        else if (strcmp(argv[i], "--repeat") == 0)
            a->repeat = (unsigned)strtoul(value, NULL, 10);
        else
            return false;
        i++;
    }
    return a->repeat > 0;
}

static bool run_size(uint64_t keys, const char *const *filters, size_t n, const struct arguments *a,
                     bool *first)
{
    struct input in = input_make(keys, a->repeat);
    struct row row;
    bool good = true;
    for (size_t i = 0; i < n && good; i++) {
        good = measure(filters[i], &in, &row);
        if (!good)
            fprintf(stderr, "%s: %s\n", filters[i], tamiz_error_detail());
        else if (a->json)
            print_json(&row, *first);
        else
            print_text(&row);
        *first = false;
        fflush(stdout);
    }
    input_free(&in);
    return good;
}

int main(int argc, char **argv)
{
    struct arguments a;
    const char *keys[LIST_MAX], *filters[LIST_MAX];
    if (!arguments_read(argc, argv, &a)) {
        fputs("usage: tamiz_bench_filters [--json] [--keys N,N] [--filters POLICY,POLICY] "
              "[--repeat N]\n",
              stderr);
        return 2;
    }
    const size_t sizes = split_list(a.keys, keys), kinds = split_list(a.filters, filters);
    bool first = true, good = true;
    if (a.json)
        printf("{\"rows\":[\n");
    else
        printf("%-22s %9s %7s %10s %10s %7s %7s %7s %7s %7s %7s\n", "filter", "keys", "bits/key",
               "expected", "measured", "over", "build", "present", "absent", "depend", "batch32");
    for (size_t i = 0; i < sizes && good; i++) {
        const uint64_t n = strtoull(keys[i], NULL, 10);
        good = n > 0 && run_size(n, filters, kinds, &a, &first);
    }
    if (a.json)
        printf("\n]}\n");
    return good ? 0 : 3;
}
