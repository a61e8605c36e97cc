/* SPDX-License-Identifier: MIT
 *
 * `lab levels`: where should a tree's filter memory be? Two stores get the same keys in the same
 * random order, one with filter_memory=monkey and one with uniform bits, as many a key as the first
 * one's filters really took. Then both are asked for absent keys, each between two that are there,
 * with no cache and direct I/O, so that every device read is one that a filter let through.
 *
 * The prediction knows of the tree only n_i, the keys of level i of all N, and w_i, how many of its
 * tables a probe asks on average: several runs make it more than one, ranges without a table less.
 * With b bits a key (the 64 bytes around each filter not counted) and c bits that halve a rate,
 * uniform wastes the sum of w_i rate(b), and the best spread that of w_i rate(b_i) with
 *
 *     b_i = b_last + c log2(n_last w_i / (n_i w_last)),    sum of n_i b_i = N b
 *
 * where rate() and c are the family's own arithmetic (tamiz_filter_plan).
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include "lab.h"

#include "grid.h"
#include "json.h"
#include "progress.h"
#include "sheet.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROBES = 200000, KEY_ROOM = 24, VALUE_BYTES = 100, SPREADS = 2 };

/* Small memtables, so that a million keys make four levels and more, with several runs each but the
 * last. */
#define SHAPE                                                                                      \
    "memtable=256KiB table=1MiB size_ratio=4 level0_runs=4 level0_stop=8 compaction=lazy "         \
    "compression=none threads=0 cache=0 direct_io=true idle_merge=0"

struct spread {
    const char *name;
    tamiz_stats stats; /* of the probes */
    double ask;        /* bits a key by the policy */
    double bits, expected, measured, predicted;
    uint64_t filter_bytes, wasted;
};

struct levels_lab {
    struct call *call;
    const char *filter, *directory;
    tamiz_filter_policy policy;
    uint64_t seed, count;
    uint32_t *order; /* of loading; owned */
    struct spread spreads[SPREADS];
};

/* ---- keys ---- */

static size_t key_make(uint64_t number, char *key)
{
    return (size_t)snprintf(key, KEY_ROOM, "%016llu", (unsigned long long)number);
}

static void order_make(struct levels_lab *lab)
{
    struct random random = {lab->seed};
    lab->order = tool_resize(NULL, lab->count * sizeof *lab->order);
    for (uint64_t i = 0; i < lab->count; i++)
        lab->order[i] = (uint32_t)i;
    for (uint64_t i = lab->count; i > 1; i--) {
        const uint64_t k = random_below(&random, i);
        const uint32_t other = lab->order[k];
        lab->order[k] = lab->order[i - 1];
        lab->order[i - 1] = other;
    }
}

static tamiz_status keys_load(const struct levels_lab *lab, tamiz *db)
{
    struct progress bar = progress_start("loading", lab->count);
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    char key[KEY_ROOM], value[VALUE_BYTES];
    tamiz_status st = TAMIZ_OK;
    bool more = true;
    options.no_log = true; /* the flush makes it durable */
    for (uint64_t i = 0; st == TAMIZ_OK && i < lab->count; i++) {
        const size_t size = key_make(2 * (uint64_t)lab->order[i], key);
        memset(value, key[size - 2], sizeof value);
        st = tamiz_put(db, key, size, value, sizeof value, &options);
        progress_at(&bar, i);
    }
    progress_end(&bar);
    if (st == TAMIZ_OK)
        st = tamiz_flush(db);
    while (st == TAMIZ_OK && more)
        st = tamiz_step(db, 1000000, &more);
    return st;
}

static tamiz_status absent_probe(const struct levels_lab *lab, tamiz *db)
{
    struct progress bar = progress_start("asking for absent keys", PROBES);
    struct random random = {lab->seed + 1};
    char key[KEY_ROOM], value[VALUE_BYTES];
    tamiz_status st = TAMIZ_OK;
    for (int i = 0; st >= 0 && i < PROBES; i++) {
        size_t value_size;
        const size_t size = key_make(2 * random_below(&random, lab->count) + 1, key);
        st = tamiz_get_into(db, key, size, value, sizeof value, &value_size, NULL);
        progress_at(&bar, (uint64_t)i);
    }
    progress_end(&bar);
    return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : st;
}

/* ---- theory ---- */

static double plan_rate(const struct levels_lab *lab, double bits, uint64_t keys, double *took)
{
    tamiz_filter_policy policy = lab->policy;
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    policy.fpr = 0;
    policy.bits_per_key = bits;
    if (bits < 0.1 || tamiz_filter_plan(&policy, keys, &info) != TAMIZ_OK)
        return 1;
    if (took)
        *took = info.bits_per_key;
    return info.expected_fpr;
}

static double halving_bits(const struct levels_lab *lab)
{
    double narrow = 6, wide = 14;
    const double a = plan_rate(lab, 6, 1 << 20, &narrow), b = plan_rate(lab, 14, 1 << 20, &wide);
    return a > b && wide > narrow ? (wide - narrow) / log2(a / b) : 0;
}

/* The rate of filters that take so many bits a key, their frames not counted, with what they round
 * up to: where no filter takes just so many, between two that take a little more and less. */
static double rate_within(const struct levels_lab *lab, double bits, uint64_t keys)
{
    enum { STEPS = 8 };
    double ask = bits, took = bits, rate = 1;
    for (int i = 0; i < STEPS; i++) {
        rate = plan_rate(lab, ask, keys, &took);
        ask += bits - took;
    }
    return rate < 1 ? rate * exp2((took - bits) / halving_bits(lab)) : rate;
}

/* What is around the bits of one filter: most of a bit a key where tables have a few hundred. */
static double frame_bytes(const struct levels_lab *lab)
{
    enum { KEYS = 1000 };
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    if (tamiz_filter_plan(&lab->policy, KEYS, &info) != TAMIZ_OK)
        return 0;
    return (double)info.bytes - info.bits_per_key * KEYS / 8;
}

/* Bits a key of all filters, without their frames. */
static double payload_bits(const struct levels_lab *lab, const tamiz_level_stats *total)
{
    const double bytes = (double)total->filter_bytes - (double)total->tables * frame_bytes(lab);
    return bytes > 0 ? bytes * 8 / (double)total->keys : 0;
}

/* Tables of the level that a probe asks, on average. */
static double asked(const tamiz_level_stats *l)
{
    return (double)(l->filter_negatives + l->filter_false_positives) / PROBES;
}

/* Keys of what a probe asks there. */
static double asked_keys(const tamiz_level_stats *l)
{
    return (double)l->keys / asked(l);
}

/* Wasted reads a probe. */
static double predict(const struct levels_lab *lab, const struct spread *s, bool best)
{
    const double cost = halving_bits(lab);
    const double even = payload_bits(lab, &s->stats.total);
    double all = 0, last = 1, more = 0, sum = 0;
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        const tamiz_level_stats *l = &s->stats.level[i];
        all += (double)l->keys;
        last = asked(l) > 0 ? asked_keys(l) : last;
    }
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        if (asked(&s->stats.level[i]) > 0)
            more +=
                (double)s->stats.level[i].keys * cost * log2(last / asked_keys(&s->stats.level[i]));
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        const tamiz_level_stats *l = &s->stats.level[i];
        if (asked(l) <= 0)
            continue;
        const double extra = cost * log2(last / asked_keys(l)) - more / all;
        const double bits = even + extra;
        const uint64_t keys = l->keys / l->tables;
        sum += asked(l) *
               (best ? rate_within(lab, fmin(bits, 24), keys) : plan_rate(lab, s->ask, keys, NULL));
    }
    return sum;
}

/* ---- one store ---- */

static tamiz_status store_make(struct levels_lab *lab, const char *path, const char *spread,
                               double bits, tamiz **db)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    struct text text = {0};
    text_printf(&text, "%s %s filter_memory=%s", SHAPE,
                lab->call->options.size ? lab->call->options.data : "", spread);
    tamiz_status st = tamiz_options_set(&options, text.data);
    options.filter = lab->policy;
    if (bits > 0) {
        options.filter.fpr = 0;
        options.filter.bits_per_key = bits;
    }
    if (st == TAMIZ_OK)
        st = tamiz_open(path, &options, db);
    text_free(&text);
    return st;
}

static void spread_fill(const struct levels_lab *lab, struct spread *s, bool best)
{
    const tamiz_level_stats *total = &s->stats.total;
    s->filter_bytes = total->filter_bytes;
    s->bits = total->keys ? (double)total->filter_bytes * 8 / (double)total->keys : 0;
    s->wasted = total->device_reads;
    s->expected = total->filter_expected_false_positives / PROBES;
    s->measured = (double)total->device_reads / PROBES;
    s->predicted = predict(lab, s, best);
}

static int spread_measure(struct levels_lab *lab, struct spread *s, double bits)
{
    char path[4096];
    tamiz *db = NULL;
    const int size = snprintf(path, sizeof path, "%s/tamiz-lab-XXXXXX", lab->directory);
    if (size < 0 || (size_t)size >= sizeof path || !mkdtemp(path))
        return fail(lab->call, "%s: %s", lab->directory, strerror(errno));
    s->stats = (tamiz_stats)TAMIZ_STATS_INIT;
    s->ask = bits > 0 ? bits : lab->policy.bits_per_key;
    tamiz_status st = store_make(lab, path, s->name, bits, &db);
    if (st == TAMIZ_OK)
        st = keys_load(lab, db);
    if (st == TAMIZ_OK)
        st = absent_probe(lab, db);
    if (st == TAMIZ_OK)
        st = tamiz_stats_get(db, &s->stats);
    int status = st < 0 ? fail_status(lab->call, st, s->name) : EXIT_DONE;
    (void)tamiz_close(db);
    (void)tamiz_destroy(path);
    (void)rmdir(path);
    spread_fill(lab, s, strcmp(s->name, "monkey") == 0);
    return status;
}

/* The same memory as the first, spread evenly: asked for anew where frames and rounding, which
 * count in small tables, made it another. */
static int evenly_measure(struct levels_lab *lab)
{
    enum { TRIES = 4 };
    const double want = lab->spreads[0].bits;
    double ask = want;
    int status = EXIT_DONE;
    for (int i = 0; i < TRIES && status == EXIT_DONE; i++) {
        status = spread_measure(lab, &lab->spreads[1], ask);
        if (fabs(lab->spreads[1].bits - want) < 0.01 * want)
            break;
        ask += want - lab->spreads[1].bits;
    }
    return status;
}

/* ---- telling ---- */

static double level_rate(const tamiz_level_stats *l, double hits)
{
    const uint64_t absent = l->filter_false_positives + l->filter_negatives;
    return absent ? hits / (double)absent : 0;
}

static void spread_print(const struct spread *s)
{
    static const char *const heads[] = {"level",    "tables",   "keys",     "asked",
                                        "bits/key", "expected", "measured", "wasted"};
    struct grid g = {0};
    struct text out = {0};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        (void)grid_heading(&g, heads[i]);
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        const tamiz_level_stats *l = &s->stats.level[i];
        if (!l->tables)
            continue;
        text_printf(grid_cell(&g), "%d", i);
        count_show(grid_cell(&g), l->tables);
        count_show(grid_cell(&g), l->keys);
        text_printf(grid_cell(&g), "%.2f", asked(l));
        text_printf(grid_cell(&g), "%.2f", (double)l->filter_bytes * 8 / (double)l->keys);
        text_printf(grid_cell(&g), "%.4f %%",
                    100 * level_rate(l, l->filter_expected_false_positives));
        text_printf(grid_cell(&g), "%.4f %%",
                    100 * level_rate(l, (double)l->filter_false_positives));
        count_show(grid_cell(&g), l->device_reads);
    }
    (void)printf("filter_memory=%s\n", s->name);
    grid_print(&g, terminal_width(), stdout);
    text_printf(&out, "%.3f bits a key in all (", s->bits);
    size_show(&out, s->filter_bytes);
    text_printf(&out, "); wasted device reads a probe: %.5f, predicted %.5f (%+.1f %%)\n\n",
                s->measured, s->predicted, 100 * (s->measured / s->predicted - 1));
    (void)text_flush(&out, stdout);
    text_free(&out);
    grid_free(&g);
}

static void spread_json(struct json *j, const struct spread *s)
{
    json_open(j, s->name, '{');
    json_real(j, "bits_per_key", s->bits);
    json_u64(j, "filter_bytes", s->filter_bytes);
    json_u64(j, "wasted_device_reads", s->wasted);
    json_real(j, "wasted_per_probe", s->measured);
    json_real(j, "expected_per_probe", s->expected);
    json_real(j, "predicted_per_probe", s->predicted);
    json_open(j, "levels", '[');
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        const tamiz_level_stats *l = &s->stats.level[i];
        if (!l->tables)
            continue;
        json_open(j, NULL, '{');
        json_u64(j, "level", (uint64_t)i);
        json_u64(j, "tables", l->tables);
        json_u64(j, "keys", l->keys);
        json_u64(j, "filter_bytes", l->filter_bytes);
        json_real(j, "bits_per_key", (double)l->filter_bytes * 8 / (double)l->keys);
        json_real(j, "asked", asked(l));
        json_real(j, "expected_fpr", level_rate(l, l->filter_expected_false_positives));
        json_real(j, "measured_fpr", level_rate(l, (double)l->filter_false_positives));
        json_u64(j, "wasted_device_reads", l->device_reads);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void spread_rows(struct sheet *sheet, const struct spread *s)
{
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        const tamiz_level_stats *l = &s->stats.level[i];
        if (!l->tables)
            continue;
        sheet_word(sheet, s->name);
        sheet_number(sheet, i);
        sheet_number(sheet, (double)l->tables);
        sheet_number(sheet, (double)l->keys);
        sheet_number(sheet, (double)l->filter_bytes);
        sheet_number(sheet, (double)l->filter_bytes * 8 / (double)l->keys);
        sheet_number(sheet, level_rate(l, l->filter_expected_false_positives));
        sheet_number(sheet, level_rate(l, (double)l->filter_false_positives));
        sheet_number(sheet, (double)l->device_reads);
    }
}

static void columns_make(struct sheet *s)
{
    sheet_column(s, "filter_memory", "memory", SHEET_WORD);
    sheet_column(s, "level", "level", SHEET_COUNT);
    sheet_column(s, "tables", "tables", SHEET_COUNT);
    sheet_column(s, "keys", "keys", SHEET_COUNT);
    sheet_column(s, "filter_bytes", "filters", SHEET_SIZE);
    sheet_column(s, "bits_per_key", "bits a key", SHEET_REAL);
    sheet_column(s, "expected_fpr", "expected", SHEET_PERCENT);
    sheet_column(s, "measured_fpr", "measured", SHEET_PERCENT);
    sheet_column(s, "wasted_device_reads", "wasted reads", SHEET_COUNT);
    sheet_chart(s, &(struct sheet_chart){.title = "Wasted device reads by level",
                                         .caption = "The same memory, spread in two ways.",
                                         .x = "level",
                                         .y = {"wasted_device_reads"},
                                         .by = "filter_memory",
                                         .y_label = "device reads"});
    sheet_chart(s, &(struct sheet_chart){.title = "Bits by level",
                                         .caption = "Monkey gives more where there are few keys.",
                                         .x = "level",
                                         .y = {"bits_per_key"},
                                         .by = "filter_memory",
                                         .y_label = "bits a key"});
}

/* What --csv and --report ask for. */
static int levels_write(const struct levels_lab *lab)
{
    const struct spread *monkey = &lab->spreads[0], *uniform = &lab->spreads[1];
    struct sheet s = {.experiment = "levels",
                      .title = "Bits where they count: uniform and Monkey",
                      .seed = lab->seed};
    columns_make(&s);
    spread_rows(&s, uniform);
    spread_rows(&s, monkey);
    count_show(&s.setting, lab->count);
    text_word(&s.setting, " keys, ");
    count_show(&s.setting, PROBES);
    text_printf(&s.setting, " probes of absent keys, filter %s, no cache.", lab->filter);
    text_printf(&s.conclusion,
                "An absent key costs %.5f wasted reads with uniform bits (predicted %.5f), %.5f "
                "with Monkey's (predicted %.5f).",
                uniform->measured, uniform->predicted, monkey->measured, monkey->predicted);
    const int status = sheet_write(&s, lab->call);
    sheet_free(&s);
    return status;
}

static int levels_tell(const struct levels_lab *lab)
{
    const struct spread *monkey = &lab->spreads[0], *uniform = &lab->spreads[1];
    const double measured = uniform->measured / monkey->measured;
    const double predicted = uniform->predicted / monkey->predicted;
    if (!lab->call->json) {
        (void)printf("%llu keys, %d probes of absent keys, filter %s, seed %llu, direct I/O, no "
                     "cache\n\n",
                     (unsigned long long)lab->count, PROBES, lab->filter,
                     (unsigned long long)lab->seed);
        spread_print(uniform);
        spread_print(monkey);
        (void)printf("uniform over monkey: %.2f times the wasted reads, predicted %.2f\n", measured,
                     predicted);
        return EXIT_DONE;
    }
    struct text out = {0};
    struct json j = json_to(&out);
    json_open(&j, NULL, '{');
    json_text(&j, "experiment", "levels");
    json_text(&j, "version", tamiz_version());
    json_text(&j, "filter", lab->filter);
    json_u64(&j, "seed", lab->seed);
    json_u64(&j, "keys", lab->count);
    json_u64(&j, "probes", PROBES);
    spread_json(&j, uniform);
    spread_json(&j, monkey);
    json_real(&j, "ratio_measured", measured);
    json_real(&j, "ratio_predicted", predicted);
    json_close(&j, '}');
    return deliver_json(lab->call, &out);
}

int lab_levels_run(struct call *call)
{
    struct levels_lab lab = {.call = call,
                             .filter = call_flag(call, "--filters"),
                             .directory = call_flag(call, "--dir"),
                             .seed = (uint64_t)time(NULL),
                             .count = 1000000,
                             .spreads = {{.name = "monkey"}, {.name = "uniform"}}};
    if (!lab.filter)
        lab.filter = "blocked:10";
    if (!lab.directory)
        lab.directory = ".";
    if (!call_number(call, "--seed", &lab.seed) || !call_count(call, "--count", &lab.count))
        return EXIT_USAGE;
    if (lab.count < 1000 || lab.count > 1000000000)
        return misuse(call, "--count: want 1000..1000000000");
    const tamiz_status st = tamiz_filter_policy_parse(lab.filter, &lab.policy);
    if (st != TAMIZ_OK)
        return fail_status(call, st, lab.filter);
    if (halving_bits(&lab) <= 0)
        return misuse(call, "--filters %s: want one kind whose bits can be chosen", lab.filter);
    order_make(&lab);
    int status = spread_measure(&lab, &lab.spreads[0], 0);
    if (status == EXIT_DONE)
        status = evenly_measure(&lab);
    if (status == EXIT_DONE)
        status = levels_tell(&lab);
    if (status == EXIT_DONE)
        status = levels_write(&lab);
    free(lab.order);
    return status;
}
