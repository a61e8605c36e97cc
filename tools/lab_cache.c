/* SPDX-License-Identifier: MIT
 *
 * `lab cache`: probes avoided and device reads avoided, as the cache grows. Where little is cached
 * nearly every "no" of a filter spared a device read; where all is, hardly any did. Who counts
 * negatives and calls them reads is off by the factor in the last column.
 */
#include <math.h>

#include "lab_kit.h"

static const double shares[] = {0, 0.001, 0.01, 0.05, 0.2, 0.5, 1.2};
enum { SHARES = sizeof shares / sizeof *shares };

static void columns_make(struct sheet *s)
{
    sheet_column(s, "cache_share", "of data", SHEET_PERCENT);
    sheet_column(s, "cache_bytes", "cache", SHEET_SIZE);
    sheet_column(s, "filter_negatives", "probes avoided", SHEET_COUNT);
    sheet_column(s, "device_reads_without", "reads without", SHEET_COUNT);
    sheet_column(s, "device_reads_with", "reads with", SHEET_COUNT);
    sheet_column(s, "device_reads_avoided", "reads avoided", SHEET_COUNT);
    sheet_column(s, "estimated_reads_avoided", "estimate", SHEET_COUNT);
    sheet_column(s, "estimated_reads_avoided_error", "+-", SHEET_COUNT);
    sheet_column(s, "negatives_over_avoided", "too high by", SHEET_REAL);
    sheet_column(s, "ns_per_get", "ns/get", SHEET_COUNT);
    sheet_chart(s, &(struct sheet_chart){
                       .title = "Two numbers that are not one",
                       .caption = "Probes avoided stay; device reads avoided fall as the cache "
                                  "grows. The store's own estimate is beside the fact.",
                       .x = "cache_bytes",
                       .y = {"filter_negatives", "device_reads_avoided", "estimated_reads_avoided"},
                       .dashed = "estimated_reads_avoided",
                       .y_label = "count",
                       .log_x = true,
                       .log_y = true});
}

static int share_run(struct sheet *s, struct kit *kit, double share, uint64_t data_bytes)
{
    char options[128];
    struct kit_pass with, without;
    int status;
    const uint64_t cache = (uint64_t)(share * (double)data_bytes);
    (void)snprintf(options, sizeof options, "direct_io=true cache=%llu", (unsigned long long)cache);
    if ((status = kit_pass(kit, options, true, "with filters", &with)) ||
        (status = kit_pass(kit, options, false, "without filters", &without)))
        return status;
    const double avoided =
        (double)without.stats.total.device_reads - (double)with.stats.total.device_reads;
    sheet_number(s, share);
    sheet_number(s, (double)cache);
    sheet_number(s, (double)with.stats.total.filter_negatives);
    sheet_number(s, (double)without.stats.total.device_reads);
    sheet_number(s, (double)with.stats.total.device_reads);
    sheet_number(s, avoided);
    sheet_number(s, (double)with.stats.total.device_reads_avoided);
    sheet_number(s, (double)with.stats.total.device_reads_avoided_error);
    sheet_number(s, avoided > 0 ? (double)with.stats.total.filter_negatives / avoided : NAN);
    sheet_number(s, with.ns_per_get);
    return EXIT_DONE;
}

int lab_cache(struct call *call)
{
    struct sheet s = {.experiment = "cache", .title = "Why negatives are not device reads avoided"};
    struct kit kit;
    struct kit_pass first;
    int status = kit_take(&kit, call, 200000, 100000);
    s.seed = kit.seed;
    columns_make(&s);
    if (status == EXIT_DONE)
        status = kit_store_make(&kit, "memtable=2MiB table=2MiB", kit.key_count);
    if (status == EXIT_DONE)
        status = kit_pass(&kit, "cache=0", true, "looking at the data", &first);
    for (int i = 0; i < SHARES && status == EXIT_DONE; i++)
        status = share_run(&s, &kit, shares[i], first.stats.total.bytes);
    status = kit_store_remove(&kit, status);
    if (status == EXIT_DONE) {
        kit_show(&s.setting, &kit);
        text_word(&s.setting, "; the same store, opened anew for each pass, with direct I/O where "
                              "the file system has it.");
        text_printf(
            &s.conclusion,
            "Called device reads, negatives are %.0f %% off with no cache, and %.0f times too "
            "high where all fits.",
            s.cell_count ? fabs(s.cells[8].number - 1) * 100 : 0,
            s.cell_count ? s.cells[s.cell_count - 2].number : 0);
        status = sheet_tell(&s, call);
    }
    sheet_free(&s);
    kit_free(&kit);
    return status;
}
