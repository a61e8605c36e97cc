/* SPDX-License-Identifier: MIT
 *
 * What the lab found, as a table for a terminal and as JSON. In the table, "no" are probes the
 * filter answered in the negative; "reads" are device reads: two things that are never mixed.
 */
#include "lab.h"

#include "grid.h"
#include "json.h"

static void row_json(struct json *j, const struct lab_row *r)
{
    json_open(j, NULL, '{');
    json_text(j, "filter", r->filter);
    json_real(j, "bits_per_key", r->bits_per_key);
    json_u64(j, "filter_bytes", r->filter_bytes);
    json_real(j, "expected_fpr", r->expected_fpr);
    json_real(j, "measured_fpr", r->measured_fpr);
    json_real(j, "measured_fpr_sigmas", r->sigmas);
    json_u64(j, "probes", r->probes);
    json_u64(j, "absent_probes", r->absent_probes);
    json_u64(j, "filter_negatives", r->filter_negatives);
    json_u64(j, "filter_false_positives", r->filter_false_positives);
    json_u64(j, "device_reads_without", r->device_reads_without);
    json_u64(j, "device_reads_with", r->device_reads_with);
    json_i64(j, "device_reads_avoided", r->device_reads_avoided);
    json_u64(j, "absent_device_reads_without", r->absent_reads_without);
    json_u64(j, "absent_device_reads_with", r->absent_reads_with);
    json_u64(j, "estimated_reads_avoided", r->estimated_reads_avoided);
    json_u64(j, "estimated_reads_avoided_error", r->estimated_reads_avoided_error);
    json_u64(j, "kernel_read_bytes", r->kernel_read_bytes);
    json_u64(j, "store_read_bytes", r->store_read_bytes);
    json_u64(j, "kernel_read_bytes_without", r->kernel_read_bytes_without);
    json_u64(j, "store_read_bytes_without", r->store_read_bytes_without);
    json_real(j, "ns_per_get", r->ns_per_get);
    json_real(j, "ns_per_get_without", r->ns_per_get_without);
    json_u64(j, "tables", r->tables);
    json_u64(j, "table_bytes", r->table_bytes);
    json_u64(j, "keys_checked", r->keys_checked);
    json_u64(j, "false_negatives", r->false_negatives);
    json_close(j, '}');
}

void lab_json(const struct lab *lab, struct text *out)
{
    struct json j = json_to(out);
    json_open(&j, NULL, '{');
    json_text(&j, "experiment", "avoided-reads");
    json_text(&j, "version", tamiz_version());
    json_text(&j, "machine", lab->machine.data);
    json_u64(&j, "seed", lab->seed);
    json_text(&j, "order", lab->shuffled ? "shuffled" : "file");
    json_text(&j, "cache", lab->cache);
    json_bool(&j, "direct_io", !lab->note[0]);
    json_u64(&j, "keys", lab->key_count);
    json_u64(&j, "probes", lab->probe_count);
    json_u64(&j, "absent_probes", lab->absent_count);
    json_open(&j, "rows", '[');
    for (size_t i = 0; i < lab->row_count; i++)
        row_json(&j, &lab->rows[i]);
    json_close(&j, ']');
    json_close(&j, '}');
}

static void headings(struct grid *g)
{
    static const char *const words[] = {
        "filter", "bits/key", "filter",   "expected", "measured", "no",     "false pos.", "reads",
        "reads",  "reads",    "estimate", "kernel",   "store",    "ns/get", "ns/get",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        grid_heading(g, words[i]);
    static const char *const below[] = {
        "",     "",        "size",    "rate", "rate", "",        "",     "without",
        "with", "avoided", "avoided", "read", "read", "without", "with",
    };
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        text_word(grid_cell(g), below[i]);
}

void lab_avoided_show(struct text *out, const struct lab_row *r)
{
    const int64_t avoided = r->device_reads_avoided;
    if (avoided < 0)
        text_word(out, "-");
    count_show(out, (uint64_t)(avoided < 0 ? -avoided : avoided));
}

void lab_estimate_show(struct text *out, const struct lab_row *r)
{
    count_show(out, r->estimated_reads_avoided);
    text_word(out, " ± ");
    count_show(out, r->estimated_reads_avoided_error);
}

static void row_print(struct grid *g, const struct lab_row *r)
{
    text_word(grid_cell(g), r->filter);
    text_printf(grid_cell(g), "%.2f", r->bits_per_key);
    size_show(grid_cell(g), r->filter_bytes);
    text_printf(grid_cell(g), "%.4f %%", r->expected_fpr * 100);
    text_printf(grid_cell(g), "%.4f %%", r->measured_fpr * 100);
    count_show(grid_cell(g), r->filter_negatives);
    count_show(grid_cell(g), r->filter_false_positives);
    count_show(grid_cell(g), r->device_reads_without);
    count_show(grid_cell(g), r->device_reads_with);
    lab_avoided_show(grid_cell(g), r);
    lab_estimate_show(grid_cell(g), r);
    if (r->kernel_read_bytes == UINT64_MAX)
        text_word(grid_cell(g), "-");
    else
        size_show(grid_cell(g), r->kernel_read_bytes);
    size_show(grid_cell(g), r->store_read_bytes);
    count_show(grid_cell(g), (uint64_t)r->ns_per_get_without);
    count_show(grid_cell(g), (uint64_t)r->ns_per_get);
}

static void setting_print(const struct lab *lab)
{
    struct text out = {0};
    count_show(&out, lab->key_count);
    text_word(&out, " keys, ");
    count_show(&out, lab->probe_count);
    text_word(&out, " probes (");
    count_show(&out, lab->absent_count);
    text_printf(&out, " of absent keys)\n%s, seed %llu, cache %s, %s\n",
                lab->shuffled ? "shuffled" : "as in the file", (unsigned long long)lab->seed,
                lab->cache, lab->note[0] ? "buffered I/O" : "direct I/O");
    if (lab->note[0])
        text_printf(&out, "note: %s: the kernel may have answered from memory\n", lab->note);
    text_printf(&out, "%s\n\n", lab->machine.data);
    text_fold(&out, terminal_width());
    (void)text_flush(&out, stdout);
    text_free(&out);
}

/* Direct I/O on a file system in memory is granted, and reaches no device. */
static void device_doubt_print(const struct lab *lab)
{
    const struct lab_row *r = &lab->rows[0];
    if (r->kernel_read_bytes_without == 0 && r->store_read_bytes_without > 0)
        (void)puts("\nnote: the kernel says that nothing was read from a device here: the files "
                   "may lie in memory");
}

static void conclusion_print(const struct lab *lab)
{
    struct text out = {0};
    text_word(&out, "\n");
    for (size_t i = 0; i < lab->row_count; i++) {
        const struct lab_row *r = &lab->rows[i];
        text_printf(&out, "%s: absent keys cost ", r->filter);
        count_show(&out, r->absent_reads_with);
        text_word(&out, " device reads instead of ");
        count_show(&out, r->absent_reads_without);
        if (r->absent_reads_without)
            text_printf(&out, " (%.2f %%)",
                        100 * (double)r->absent_reads_with / (double)r->absent_reads_without);
        text_printf(&out, "\n  rate %+.1f sigma from theory; ", r->sigmas);
        count_show(&out, r->keys_checked);
        text_word(&out, " keys asked for, ");
        count_show(&out, r->false_negatives);
        text_word(&out, " denied\n");
    }
    text_fold(&out, terminal_width());
    (void)text_flush(&out, stdout);
    text_free(&out);
}

void lab_print(const struct lab *lab)
{
    struct grid g = {0};
    headings(&g);
    for (size_t i = 0; i < lab->row_count; i++)
        row_print(&g, &lab->rows[i]);
    setting_print(lab);
    grid_print(&g, terminal_width(), stdout);
    grid_free(&g);
    device_doubt_print(lab);
    conclusion_print(lab);
}
