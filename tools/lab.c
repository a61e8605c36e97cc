/* SPDX-License-Identifier: MIT
 *
 * `lab avoided-reads`: how many device reads does a filter save? Not how many probes said no, which
 * is what other engines count, but how many reads a store without the filter would have made beyond
 * those that were made. Here that is a fact: the same probes run in the same order on the same
 * files, with direct I/O and the same cache, once asking the filters and once not.
 *
 * This file sets the experiment up; lab_measure.c runs it, lab_print.c and lab_report.c tell it.
 */
#define _POSIX_C_SOURCE 200809L /* strtok_r */
#include "lab.h"

#include "filter.h"
#include "lab_kit.h"
#include "lab_words.h"
#include "progress.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct flag lab_flags[] = {
    {"--keys", "FILE", "one key a line (none: 16-digit even numbers)"},
    {"--probes", "FILE", "one probe a line (none: absent neighbours of keys, and some keys)"},
    {"--count", "N", "how many keys to make up, such as 12m (500k)"},
    {"--filters", "LIST", "such as bloom:10,blocked:10 (default: every kind there is)"},
    {"--cache", "SIZE", "the block cache (1MiB)"},
    {"--order", "ORDER", "of the probes: shuffled (default, sequential ones apart) or file"},
    {"--seed", "N", "of every shuffle (default: from the clock, printed)"},
    {"--tree", NULL, "leave the tree as it grows, not one merged run"},
    {"--probe-count", "N", "how many probes to make up (100k; size: 50k)"},
    {"--keys-as", "WAY", "made-up keys: decimal (default) or hashed, as YCSB's"},
    {"--probes-as", "WAY", "made-up probes: uniform (default), zipf (YCSB's) or sequential"},
    {"--csv", "FILE", "write the rows"},
    {"--dir", "DIR", "where the stores are made for a while (.)"},
    {"--report", "FILE", "write a page with the table and charts"},
    {NULL, NULL, NULL},
};

/* ---- keys and probes ---- */

static int keys_make(struct lab *lab, uint64_t count)
{
    const int status = lab_keys_take(lab->call, &lab->key_words, count);
    if (status != EXIT_DONE)
        return status;
    lab->keys = words_array(&lab->key_words);
    lab->key_count = word_sort(lab->keys, lab->key_words.count);
    return EXIT_DONE;
}

static int probes_make(struct lab *lab, uint64_t count, struct random *random)
{
    const int status = lab_probes_take(lab->call, &lab->probe_words, lab->keys, lab->key_count,
                                       count, random, &lab->shuffled);
    if (status != EXIT_DONE)
        return status;
    lab->probe_count = lab->probe_words.count;
    lab->probes = words_array(&lab->probe_words);
    if (lab->shuffled)
        word_shuffle(lab->probes, lab->probe_count, random);
    lab->present = tool_resize(NULL, lab->probe_count * sizeof *lab->present);
    for (size_t i = 0; i < lab->probe_count; i++) {
        lab->present[i] = word_find(lab->keys, lab->key_count, lab->probes[i]) < lab->key_count;
        lab->absent_count += !lab->present[i];
    }
    return EXIT_DONE;
}

/* A key asked for m times gets one answer m times. So the rate over all probes varies as one over
 * (sum of m)^2 / sum of m^2 independent ones would. */
static void independent_count(struct lab *lab)
{
    struct word *absent = tool_resize(NULL, lab->absent_count * sizeof *absent);
    size_t count = 0;
    for (size_t i = 0; i < lab->probe_count; i++)
        if (!lab->present[i])
            absent[count++] = lab->probes[i];
    word_order(absent, count);
    double squares = 0;
    for (size_t i = 0, m = 0; i < count; i++) {
        m++;
        if (i + 1 < count && word_equal(absent[i], absent[i + 1]))
            continue;
        squares += (double)m * (double)m;
        m = 0;
    }
    lab->absent_independent = squares > 0 ? (double)count * (double)count / squares : 0;
    free(absent);
}

/* Loaded in a shuffled order, as a store is that was not filled by a sort. */
static void load_order_make(struct lab *lab, struct random *random)
{
    lab->load_order = tool_resize(NULL, lab->key_count * sizeof *lab->load_order);
    memcpy(lab->load_order, lab->keys, lab->key_count * sizeof *lab->load_order);
    word_shuffle(lab->load_order, lab->key_count, random);
}

/* ---- the run ---- */

static int policies_run(struct lab *lab, char *list)
{
    char *rest = NULL;
    for (char *policy = strtok_r(list, ", ", &rest); policy; policy = strtok_r(NULL, ", ", &rest)) {
        lab->rows = tool_resize(lab->rows, (lab->row_count + 1) * sizeof *lab->rows);
        struct lab_row *row = &lab->rows[lab->row_count];
        *row = (struct lab_row){0};
        const int status = lab_measure(lab, policy, row);
        if (status)
            return status;
        lab->row_count++;
    }
    return lab->row_count ? EXIT_DONE : misuse(lab->call, "--filters: want at least one");
}

/* A wrong name in the middle of the list is better said before the first hour. */
static int policies_check(const struct lab *lab, const char *list)
{
    struct text copy = {0};
    char *rest = NULL;
    int status = EXIT_DONE;
    text_word(&copy, list);
    for (char *policy = strtok_r(copy.data, ", ", &rest); policy && !status;
         policy = strtok_r(NULL, ", ", &rest)) {
        tamiz_filter_policy parsed;
        const tamiz_status st = tamiz_filter_policy_parse(policy, &parsed);
        if (st != TAMIZ_OK)
            status = fail_status(lab->call, st, policy);
    }
    text_free(&copy);
    return status;
}

static int lab_go(struct lab *lab, uint64_t count, uint64_t probe_count)
{
    struct random random = {lab->seed};
    struct text list = {0};
    int status = EXIT_DONE;
    if (lab->filters)
        text_word(&list, lab->filters);
    for (size_t i = 0; !lab->filters && filter_usual(i); i++)
        text_printf(&list, "%s%s", i ? "," : "", filter_usual(i));
    text_add(&list, "", 0);
    if (!(status = policies_check(lab, list.data)) && !(status = keys_make(lab, count)) &&
        !(status = probes_make(lab, probe_count, &random))) {
        load_order_make(lab, &random);
        independent_count(lab);
        machine_show(&lab->machine);
        status = policies_run(lab, list.data);
    }
    text_free(&list);
    return status;
}

static bool lab_take(struct lab *lab, uint64_t *count, uint64_t *probe_count)
{
    struct call *call = lab->call;
    lab->filters = call_flag(call, "--filters");
    lab->cache = call_flag(call, "--cache") ? call_flag(call, "--cache") : "1MiB";
    lab->directory = call_flag(call, "--dir") ? call_flag(call, "--dir") : ".";
    lab->tree = call_flag(call, "--tree") != NULL;
    lab->seed = (uint64_t)time(NULL);
    if (!call_number(call, "--seed", &lab->seed) || !call_count(call, "--count", count) ||
        !call_count(call, "--probe-count", probe_count))
        return false;
    if (*count == 0 || *count > 1000000000 || *probe_count == 0 || *probe_count > 1000000000)
        return misuse(call, "--count and --probe-count: want 1..1000000000"), false;
    return true;
}

static uint64_t false_negatives(const struct lab *lab)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < lab->row_count; i++)
        sum += lab->rows[i].false_negatives;
    return sum;
}

static int lab_tell(struct lab *lab)
{
    struct text out = {0};
    int status = EXIT_DONE;
    if (lab->call->json) {
        lab_json(lab, &out);
        status = deliver_json(lab->call, &out);
    } else {
        lab_print(lab);
    }
    if (status == EXIT_DONE)
        status = lab_report(lab);
    if (status == EXIT_DONE && false_negatives(lab))
        status = fail(lab->call, "a filter denied a key that was loaded");
    return status;
}

static int avoided_reads_run(struct call *call)
{
    struct lab lab = {.call = call};
    uint64_t count = 500000, probe_count = 100000;
    int status =
        lab_take(&lab, &count, &probe_count) ? lab_go(&lab, count, probe_count) : EXIT_USAGE;
    if (status == EXIT_DONE)
        status = lab_tell(&lab);
    words_free(&lab.key_words);
    words_free(&lab.probe_words);
    free(lab.keys);
    free(lab.load_order);
    free(lab.probes);
    free(lab.present);
    free(lab.rows);
    text_free(&lab.machine);
    return status;
}

/* ---- the experiments ---- */

#define WORDS_FLAGS "--keys --probes --probe-count --probes-as --order --dir "

/* Each in a file of its own; `flags` beside --seed, --csv and --report, which all take: a flag that
 * would change nothing is refused, not passed over. */
static const struct experiment {
    const char *name;
    int (*run)(struct call *call);
    const char *flags;
} experiments[] = {
    {"avoided-reads", avoided_reads_run, WORDS_FLAGS "--keys-as --count --filters --cache --tree "},
    {"curve", lab_curve, "--count --filters "},
    {"levels", lab_levels_run, "--count --filters --dir "},
    {"cache", lab_cache, WORDS_FLAGS "--keys-as --count "},
    {"size", lab_size, WORDS_FLAGS "--keys-as --count "},
    {"whatif", lab_whatif, "--keys --probes --probe-count --probes-as --order --filters --cache "},
    {"writes", lab_writes, "--keys --keys-as --count --dir "},
    {NULL, NULL, NULL}};

/* Whether `name` and a blank stand in `flags`. */
static bool flag_listed(const char *flags, const char *name)
{
    const size_t size = strlen(name);
    for (const char *at = flags; (at = strstr(at, name)); at += size)
        if (at[size] == ' ')
            return true;
    return false;
}

static int flags_check(const struct call *call, const struct experiment *e)
{
    for (const struct flag *f = lab_flags; f->name; f++)
        if (call_flag(call, f->name) && !flag_listed("--seed --csv --report ", f->name) &&
            !flag_listed(e->flags, f->name))
            return misuse(call, "%s has no use for %s; it takes %s--seed --csv --report", e->name,
                          f->name, e->flags);
    return EXIT_DONE;
}

int lab_run(struct call *call, tamiz *db)
{
    (void)db;
    for (const struct experiment *e = experiments; e->name; e++)
        if (strcmp(call->operands[0], e->name) == 0) {
            const int status = flags_check(call, e);
            return status == EXIT_DONE ? e->run(call) : status;
        }
    return misuse(call,
                  "no experiment \"%s\"; there is avoided-reads, curve, levels, cache, size, "
                  "whatif, writes",
                  call->operands[0]);
}
