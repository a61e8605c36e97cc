/* SPDX-License-Identifier: MIT
 *
 * `lab size`: what an absent key costs as the store grows: time, device reads with filters and
 * without, and the shape of the tree that they come from.
 */
#include <math.h>

#include "lab_kit.h"

enum { SIZES = 6 };

static void columns_make(struct sheet *s)
{
    sheet_column(s, "keys", "keys", SHEET_COUNT);
    sheet_column(s, "bytes", "tables' bytes", SHEET_SIZE);
    sheet_column(s, "tables", "tables", SHEET_COUNT);
    sheet_column(s, "levels", "levels", SHEET_COUNT);
    sheet_column(s, "filter_bytes", "filters", SHEET_SIZE);
    sheet_column(s, "probes_per_get", "filters a get", SHEET_REAL);
    sheet_column(s, "reads_per_get", "reads/get with", SHEET_REAL);
    sheet_column(s, "reads_per_get_without", "reads/get without", SHEET_REAL);
    sheet_column(s, "ns_per_get", "ns/get with", SHEET_COUNT);
    sheet_column(s, "ns_per_get_without", "ns/get without", SHEET_COUNT);
    sheet_chart(s, &(struct sheet_chart){.title = "Device reads of a get",
                                         .caption = "The same cache for all sizes. With filters "
                                                    "the line stays near what present keys cost.",
                                         .x = "keys",
                                         .y = {"reads_per_get", "reads_per_get_without"},
                                         .y_label = "device reads a get",
                                         .log_x = true});
    sheet_chart(s, &(struct sheet_chart){.title = "Time of a get",
                                         .caption = "Wall time, one thread, the clock included.",
                                         .x = "keys",
                                         .y = {"ns_per_get", "ns_per_get_without"},
                                         .y_label = "ns a get",
                                         .log_x = true,
                                         .log_y = true});
}

static int size_run(struct sheet *s, struct kit *kit, size_t count)
{
    static const char reading[] = "direct_io=true cache=1MiB";
    struct kit_pass with, without;
    const double probes = (double)kit->probe_count;
    double levels = 0;
    int status = kit_store_make(kit, "memtable=1MiB table=1MiB", count);
    if (status == EXIT_DONE)
        status = kit_pass(kit, reading, true, "with filters", &with);
    if (status == EXIT_DONE)
        status = kit_pass(kit, reading, false, "without filters", &without);
    status = kit_store_remove(kit, status);
    if (status != EXIT_DONE)
        return status;
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        levels += with.stats.level[i].tables > 0;
    sheet_number(s, (double)with.stats.total.keys);
    sheet_number(s, (double)with.stats.total.bytes);
    sheet_number(s, (double)with.stats.total.tables);
    sheet_number(s, levels);
    sheet_number(s, (double)with.stats.total.filter_bytes);
    sheet_number(s, (double)with.stats.total.filter_probes / probes);
    sheet_number(s, (double)with.stats.total.device_reads / probes);
    sheet_number(s, (double)without.stats.total.device_reads / probes);
    sheet_number(s, with.ns_per_get);
    sheet_number(s, without.ns_per_get);
    return EXIT_DONE;
}

int lab_size(struct call *call)
{
    struct sheet s = {.experiment = "size", .title = "What an absent key costs as the store grows"};
    struct kit kit;
    int status = kit_take(&kit, call, 500000, 50000);
    s.seed = kit.seed;
    columns_make(&s);
    for (int i = 0; i < SIZES && status == EXIT_DONE; i++) {
        const size_t count = kit.key_count >> (2 * (SIZES - 1 - i));
        if (count)
            status = size_run(&s, &kit, count);
    }
    if (status == EXIT_DONE) {
        kit_show(&s.setting, &kit);
        text_word(&s.setting, ", each store four times the one before; 1 MiB of cache.");
        status = sheet_tell(&s, call);
    }
    sheet_free(&s);
    kit_free(&kit);
    return status;
}
