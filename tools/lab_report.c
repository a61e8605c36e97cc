/* SPDX-License-Identifier: MIT
 *
 * The outcome of `lab avoided-reads` as a sheet, from which its page and its CSV are made, as those
 * of every other experiment.
 */
#include <math.h>

#include "lab.h"
#include "sheet.h"

static void columns_make(struct sheet *s)
{
    sheet_column(s, "filter", "filter", SHEET_WORD);
    sheet_column(s, "bits_per_key", "bits/key", SHEET_REAL);
    sheet_column(s, "filter_bytes", "size", SHEET_SIZE);
    sheet_column(s, "expected_fpr", "expected", SHEET_PERCENT);
    sheet_column(s, "measured_fpr", "measured", SHEET_PERCENT);
    sheet_column(s, "sigmas", "sigma", SHEET_REAL);
    sheet_column(s, "filter_negatives", "negatives", SHEET_COUNT);
    sheet_column(s, "filter_false_positives", "false pos.", SHEET_COUNT);
    sheet_column(s, "device_reads_without", "reads without", SHEET_COUNT);
    sheet_column(s, "device_reads_with", "reads with", SHEET_COUNT);
    sheet_column(s, "device_reads_avoided", "reads avoided", SHEET_COUNT);
    sheet_column(s, "estimated_reads_avoided", "estimate", SHEET_COUNT);
    sheet_column(s, "estimated_reads_avoided_error", "its error", SHEET_COUNT);
    sheet_column(s, "absent_reads_without", "absent, without", SHEET_COUNT);
    sheet_column(s, "absent_reads_with", "absent, with", SHEET_COUNT);
    sheet_column(s, "ns_per_get_without", "ns/get without", SHEET_COUNT);
    sheet_column(s, "ns_per_get", "ns/get with", SHEET_COUNT);
    sheet_column(s, "keys_checked", "keys checked", SHEET_COUNT);
    sheet_column(s, "false_negatives", "denied", SHEET_COUNT);
}

static void charts_make(struct sheet *s)
{
    sheet_chart(s, &(struct sheet_chart){
                       .title = "Device reads for absent keys",
                       .caption =
                           "Each point is a filter; the ring of its colour, much higher, is its "
                           "twin: the same reads on the same files, the filter not asked.",
                       .x = "bits_per_key",
                       .y = {"absent_reads_with", "absent_reads_without"},
                       .by = "filter",
                       .y_label = "device reads",
                       .log_y = true});
    sheet_chart(s, &(struct sheet_chart){
                       .title = "Two numbers",
                       .caption = "Probes that a filter made needless, and device reads that it "
                                  "really avoided. Points: the fact; rings: the estimate of the "
                                  "running store.",
                       .x = "filter_negatives",
                       .y = {"device_reads_avoided", "estimated_reads_avoided"},
                       .by = "filter",
                       .y_label = "device reads"});
    sheet_chart(s, &(struct sheet_chart){
                       .title = "False-positive rate, theory beside practice",
                       .caption = "Points: measured, FP / (FP + TN); rings: what the filter's own "
                                  "parameters promise.",
                       .x = "bits_per_key",
                       .y = {"measured_fpr", "expected_fpr"},
                       .by = "filter",
                       .y_label = "rate",
                       .log_y = true});
}

static double number_of(uint64_t n)
{
    return n == UINT64_MAX ? NAN : (double)n;
}

static void row_add(struct sheet *s, const struct lab_row *r)
{
    sheet_word(s, r->filter);
    sheet_number(s, r->bits_per_key);
    sheet_number(s, (double)r->filter_bytes);
    sheet_number(s, r->expected_fpr);
    sheet_number(s, r->measured_fpr);
    sheet_number(s, r->sigmas);
    sheet_number(s, (double)r->filter_negatives);
    sheet_number(s, (double)r->filter_false_positives);
    sheet_number(s, (double)r->device_reads_without);
    sheet_number(s, (double)r->device_reads_with);
    sheet_number(s, (double)r->device_reads_avoided);
    sheet_number(s, number_of(r->estimated_reads_avoided));
    sheet_number(s, number_of(r->estimated_reads_avoided_error));
    sheet_number(s, (double)r->absent_reads_without);
    sheet_number(s, (double)r->absent_reads_with);
    sheet_number(s, r->ns_per_get_without);
    sheet_number(s, r->ns_per_get);
    sheet_number(s, (double)r->keys_checked);
    sheet_number(s, (double)r->false_negatives);
}

int lab_report(const struct lab *lab)
{
    struct sheet s = {.experiment = "avoided-reads",
                      .title = "Device reads that filters avoid",
                      .seed = lab->seed};
    columns_make(&s);
    charts_make(&s);
    for (size_t i = 0; i < lab->row_count; i++)
        row_add(&s, &lab->rows[i]);
    count_show(&s.setting, lab->key_count);
    text_word(&s.setting, " keys, ");
    count_show(&s.setting, lab->probe_count);
    text_word(&s.setting, " probes, ");
    count_show(&s.setting, lab->absent_count);
    text_printf(&s.setting, " of them of absent keys. Order: %s. Cache %s, %s.",
                lab->shuffled ? "shuffled" : "file", lab->cache,
                lab->note[0] ? "buffered I/O" : "direct I/O");
    const int status = sheet_write(&s, lab->call);
    sheet_free(&s);
    return status;
}
