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
#include "progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct flag lab_flags[] = {
    {"--keys", "FILE", "one key a line (none: 16-digit even numbers)"},
    {"--probes", "FILE", "one probe a line (none: absent neighbours of keys, and some keys)"},
    {"--count", "N", "how many keys to make up (500,000)"},
    {"--filters", "LIST", "such as bloom:10,blocked:10 (default: every kind there is)"},
    {"--cache", "SIZE", "the block cache (1MiB)"},
    {"--order", "ORDER", "of the probes: shuffled (default) or file"},
    {"--seed", "N", "of every shuffle (default: from the clock, printed)"},
    {"--tree", NULL, "leave the tree as it grows, not one merged run"},
    {"--probe-count", "N", "how many probes to make up"},
    {"--keys-as", "WAY", "made-up keys: decimal (default) or hashed, as YCSB's"},
    {"--probes-as", "WAY", "made-up probes: uniform (default), zipf (YCSB's) or sequential"},
    {"--csv", "FILE", "write the rows"},
    {"--dir", "DIR", "where the stores are made for a while (.)"},
    {"--report", "FILE", "write a page with the table and charts"},
    {NULL, NULL, NULL},
};

enum { PROBES_SYNTHETIC = 100000, PRESENT_ONE_IN = 16 };

/* ---- keys and probes ---- */

static int keys_make(struct lab *lab, uint64_t count)
{
    if (!lab->keys_path)
        words_synthetic_keys(&lab->key_words, count);
    else if (!words_read(&lab->key_words, lab->keys_path))
        return fail(lab->call, "%s: %s", lab->keys_path, strerror(errno));
    if (!lab->key_words.count)
        return fail(lab->call, "%s: no line in it, so no key", lab->keys_path);
    lab->keys = words_array(&lab->key_words);
    lab->key_count = word_sort(lab->keys, lab->key_words.count);
    return EXIT_DONE;
}

/* A key with one more byte stands just behind it: absent, unless the list has it too, and within
 * every table's range. */
static void probes_synthetic(struct lab *lab, struct random *random)
{
    struct text probe = {0};
    for (int i = 0; i < PROBES_SYNTHETIC; i++) {
        const struct word key = lab->keys[random_below(random, lab->key_count)];
        text_clear(&probe);
        text_add(&probe, key.data, key.size);
        if (random_below(random, PRESENT_ONE_IN) != 0)
            text_add(&probe, "~", 1);
        words_add(&lab->probe_words, probe.data, probe.size);
    }
    text_free(&probe);
}

static int probes_make(struct lab *lab, struct random *random)
{
    if (!lab->probes_path)
        probes_synthetic(lab, random);
    else if (!words_read(&lab->probe_words, lab->probes_path))
        return fail(lab->call, "%s: %s", lab->probes_path, strerror(errno));
    lab->probe_count = lab->probe_words.count;
    if (!lab->probe_count)
        return fail(lab->call, "%s: no line in it, so no probe", lab->probes_path);
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

static int lab_go(struct lab *lab, uint64_t count)
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
        !(status = probes_make(lab, &random))) {
        load_order_make(lab, &random);
        independent_count(lab);
        machine_show(&lab->machine);
        status = policies_run(lab, list.data);
    }
    text_free(&list);
    return status;
}

static bool lab_take(struct lab *lab, uint64_t *count)
{
    struct call *call = lab->call;
    const char *order = call_flag(call, "--order");
    lab->keys_path = call_flag(call, "--keys");
    lab->probes_path = call_flag(call, "--probes");
    lab->filters = call_flag(call, "--filters");
    lab->cache = call_flag(call, "--cache") ? call_flag(call, "--cache") : "1MiB";
    lab->directory = call_flag(call, "--dir") ? call_flag(call, "--dir") : ".";
    lab->tree = call_flag(call, "--tree") != NULL;
    lab->shuffled = !order || strcmp(order, "shuffled") == 0;
    lab->seed = (uint64_t)time(NULL);
    if (!lab->shuffled && strcmp(order, "file") != 0)
        return misuse(call, "--order %s: want shuffled or file", order), false;
    if (!call_number(call, "--seed", &lab->seed) || !call_number(call, "--count", count))
        return false;
    if (*count == 0 || *count > 1000000000)
        return misuse(call, "--count: want 1..1000000000"), false;
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

/* Those beside avoided-reads, each in a file of its own. */
static const struct {
    const char *name;
    int (*run)(struct call *call);
} experiments[] = {{"curve", lab_curve}, {"levels", lab_levels_run}, {"cache", lab_cache},
                   {"size", lab_size},   {"whatif", lab_whatif},     {NULL, NULL}};

int lab_run(struct call *call, tamiz *db)
{
    struct lab lab = {.call = call};
    uint64_t count = 500000;
    (void)db;
    for (size_t i = 0; experiments[i].name; i++)
        if (strcmp(call->operands[0], experiments[i].name) == 0)
            return experiments[i].run(call);
    if (strcmp(call->operands[0], "avoided-reads") != 0)
        return misuse(call,
                      "no experiment \"%s\"; there is avoided-reads, curve, levels, cache, size, "
                      "whatif",
                      call->operands[0]);
    int status = lab_take(&lab, &count) ? lab_go(&lab, count) : EXIT_USAGE;
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
