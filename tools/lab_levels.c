/* SPDX-License-Identifier: MIT
 *
 * `lab levels`: the same memory for filters, spread in two ways: as many bits for each key on every
 * level, or more where there are few keys (Monkey: N. Dayan, M. Athanassoulis, S. Idreos, SIGMOD
 * 2017). Wasted reads of an absent key are the sum of all runs' rates, and a small run's rate is
 * cheap to lower.
 */
#include <math.h>

#include "lab_kit.h"

static void columns_make(struct sheet *s)
{
    sheet_column(s, "filter_memory", "memory", SHEET_WORD);
    sheet_column(s, "level", "level", SHEET_WORD);
    sheet_column(s, "tables", "tables", SHEET_COUNT);
    sheet_column(s, "keys", "keys", SHEET_COUNT);
    sheet_column(s, "filter_bytes", "filters", SHEET_SIZE);
    sheet_column(s, "bits_per_key", "bits a key", SHEET_REAL);
    sheet_column(s, "expected_fpr", "expected", SHEET_PERCENT);
    sheet_column(s, "measured_fpr", "measured", SHEET_PERCENT);
    sheet_column(s, "filter_false_positives", "false pos.", SHEET_COUNT);
    sheet_column(s, "wasted_per_absent", "wasted reads an absent key", SHEET_REAL);
    sheet_column(s, "device_reads", "device reads", SHEET_COUNT);
}

static void row_add(struct sheet *s, const char *memory, const char *level,
                    const tamiz_level_stats *l, double absent)
{
    const double asked = (double)(l->filter_false_positives + l->filter_negatives);
    sheet_word(s, memory);
    sheet_word(s, level);
    sheet_number(s, (double)l->tables);
    sheet_number(s, (double)l->keys);
    sheet_number(s, (double)l->filter_bytes);
    sheet_number(s, l->keys ? (double)l->filter_bytes * 8 / (double)l->keys : NAN);
    sheet_number(s, asked > 0 ? l->filter_expected_false_positives / asked : NAN);
    sheet_number(s, asked > 0 ? (double)l->filter_false_positives / asked : NAN);
    sheet_number(s, (double)l->filter_false_positives);
    sheet_number(s, (double)l->filter_false_positives / absent);
    sheet_number(s, (double)l->device_reads);
}

static int memory_run(struct sheet *s, struct kit *kit, const char *memory, double *wasted)
{
    char options[160];
    struct kit_pass pass;
    const char *filter = call_flag(kit->call, "--filters");
    (void)snprintf(options, sizeof options,
                   "memtable=256KiB table=512KiB size_ratio=4 filter=%s filter_memory=%s",
                   filter ? filter : "bloom:8", memory);
    int status = kit_store_make(kit, options, kit->key_count);
    if (status == EXIT_DONE)
        status = kit_pass(kit, "direct_io=true cache=1MiB", true, memory, &pass);
    status = kit_store_remove(kit, status);
    if (status != EXIT_DONE)
        return status;
    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        char level[16];
        (void)snprintf(level, sizeof level, "%d", i);
        if (pass.stats.level[i].tables)
            row_add(s, memory, level, &pass.stats.level[i], (double)kit->absent_count);
    }
    row_add(s, memory, "all", &pass.stats.total, (double)kit->absent_count);
    *wasted = (double)pass.stats.total.filter_false_positives / (double)kit->absent_count;
    return EXIT_DONE;
}

int lab_levels(struct call *call)
{
    struct sheet s = {.experiment = "levels", .title = "Bits where they count: uniform and Monkey"};
    struct kit kit;
    double uniform = 0, monkey = 0;
    int status = kit_take(&kit, call, 300000, 100000);
    s.seed = kit.seed;
    columns_make(&s);
    if (status == EXIT_DONE)
        status = memory_run(&s, &kit, "uniform", &uniform);
    if (status == EXIT_DONE)
        status = memory_run(&s, &kit, "monkey", &monkey);
    if (status == EXIT_DONE) {
        kit_show(&s.setting, &kit);
        text_word(&s.setting, "; small tables, so that there are levels.");
        text_printf(&s.conclusion,
                    "An absent key costs %.4f wasted reads with uniform bits, %.4f with Monkey's: "
                    "%.0f %%.",
                    uniform, monkey, uniform > 0 ? 100 * monkey / uniform : 0);
        status = sheet_tell(&s, call);
    }
    sheet_free(&s);
    kit_free(&kit);
    return status;
}
