/* SPDX-License-Identifier: MIT
 *
 * The lab's outcome as one page that needs nothing else: the setting, bars drawn as SVG, the whole
 * table, and the numbers as JSON for whoever wants to go on with them. No script; light and dark as
 * the reader's system asks.
 */
#include "lab.h"

#include <errno.h>
#include <string.h>

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>tamiz: device reads avoided</title>\n<style>\n"
    ":root{color-scheme:light dark;--ink:#1c2733;--soft:#5b6b7b;--paper:#fff;--line:#d7dee6;"
    "--with:#0b7285;--without:#c2ccd6;--theory:#e8590c}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa8b5;--paper:#10161d;"
    "--line:#2c3742;--with:#3bc9db;--without:#46525e;--theory:#ff922b}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);"
    "max-width:80rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2rem}\n"
    "p,figcaption{color:var(--soft);max-width:48rem}figure{margin:0}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;"
    "font-size:.82rem}\n"
    "th,td{padding:.3rem .45rem;text-align:right;border-bottom:1px solid var(--line);"
    "white-space:nowrap}th:first-child,td:first-child{text-align:left}\n"
    "svg{max-width:100%;height:auto}svg text{fill:var(--ink);font:13px system-ui,sans-serif}\n"
    ".a{fill:var(--with)}.b{fill:var(--without)}.t{stroke:var(--theory);stroke-width:2}\n"
    "details pre{overflow-x:auto;font-size:.8rem}\n</style>\n";

static void html_add(struct text *out, const char *words)
{
    for (; *words; words++) {
        if (*words == '<')
            text_word(out, "&lt;");
        else if (*words == '&')
            text_word(out, "&amp;");
        else
            text_add(out, words, 1);
    }
}

enum { BAR_X = 150, BAR_WIDTH = 460, ROW_HEIGHT = 46, CHART_WIDTH = 880 };

static void svg_open(struct text *out, size_t rows, const char *label)
{
    text_printf(out,
                "<figure><svg viewBox=\"0 0 %d %zu\" width=\"%d\" role=\"img\" "
                "aria-label=\"%s\">\n",
                CHART_WIDTH, rows * ROW_HEIGHT + 6, CHART_WIDTH, label);
}

static void bar(struct text *out, const char *style, size_t y, double share, uint64_t value)
{
    const double width = share * BAR_WIDTH;
    text_printf(out,
                "<rect class=\"%s\" x=\"%d\" y=\"%zu\" width=\"%.1f\" height=\"16\" rx=\"2\"/>"
                "<text x=\"%.1f\" y=\"%zu\">",
                style, BAR_X, y, width < 1 ? 1 : width, BAR_X + width + 6, y + 13);
    count_show(out, value);
    text_word(out, "</text>\n");
}

/* Device reads of absent keys: the bar of the twin above the bar of the filter. */
static void reads_chart(struct text *out, const struct lab *lab)
{
    uint64_t most = 1;
    for (size_t i = 0; i < lab->row_count; i++)
        if (lab->rows[i].absent_reads_without > most)
            most = lab->rows[i].absent_reads_without;
    svg_open(out, lab->row_count, "Device reads for absent keys");
    for (size_t i = 0; i < lab->row_count; i++) {
        const struct lab_row *r = &lab->rows[i];
        const size_t y = i * ROW_HEIGHT + 4;
        text_printf(out, "<text x=\"0\" y=\"%zu\">", y + 22);
        html_add(out, r->filter);
        text_word(out, "</text>");
        bar(out, "b", y, (double)r->absent_reads_without / (double)most, r->absent_reads_without);
        bar(out, "a", y + 18, (double)r->absent_reads_with / (double)most, r->absent_reads_with);
    }
    text_word(out, "</svg><figcaption>Grey: the filterless twin. Colour: with the filter, on the "
                   "same files and the same probes in the same order.</figcaption></figure>\n");
}

/* Measured rate as a bar, the filter's own theory as a line across it. */
static void rate_chart(struct text *out, const struct lab *lab)
{
    double most = 1e-9;
    for (size_t i = 0; i < lab->row_count; i++) {
        const struct lab_row *r = &lab->rows[i];
        most = r->measured_fpr > most ? r->measured_fpr : most;
        most = r->expected_fpr > most ? r->expected_fpr : most;
    }
    svg_open(out, lab->row_count, "False-positive rate, measured and expected");
    for (size_t i = 0; i < lab->row_count; i++) {
        const struct lab_row *r = &lab->rows[i];
        const size_t y = i * ROW_HEIGHT + 10;
        const double width = r->measured_fpr / most * BAR_WIDTH;
        const double theory = BAR_X + r->expected_fpr / most * BAR_WIDTH;
        text_printf(out, "<text x=\"0\" y=\"%zu\">", y + 16);
        html_add(out, r->filter);
        text_printf(out,
                    "</text><rect class=\"a\" x=\"%d\" y=\"%zu\" width=\"%.1f\" height=\"20\" "
                    "rx=\"2\"/><line class=\"t\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%zu\" y2=\"%zu\"/>",
                    BAR_X, y, width < 1 ? 1 : width, theory, theory, y - 4, y + 24);
        text_printf(out, "<text x=\"%.1f\" y=\"%zu\">%.4f %% (expected %.4f %%)</text>\n",
                    (width + BAR_X > theory ? width + BAR_X : theory) + 8, y + 15,
                    r->measured_fpr * 100, r->expected_fpr * 100);
    }
    text_word(out, "</svg><figcaption>FP / (FP + TN). The line across is what the filter's own "
                   "parameters promise.</figcaption></figure>\n");
}

static void cell_count(struct text *out, uint64_t n)
{
    text_word(out, "<td>");
    count_show(out, n);
}

static void cell_size(struct text *out, uint64_t bytes)
{
    text_word(out, "<td>");
    if (bytes == UINT64_MAX)
        text_word(out, "–");
    else
        size_show(out, bytes);
}

static void table_row(struct text *out, const struct lab_row *r)
{
    text_word(out, "<tr><td>");
    html_add(out, r->filter);
    text_printf(out, "<td>%.2f", r->bits_per_key);
    cell_size(out, r->filter_bytes);
    text_printf(out, "<td>%.4f %%<td>%.4f %%<td>%+.1f", r->expected_fpr * 100,
                r->measured_fpr * 100, r->sigmas);
    cell_count(out, r->filter_negatives);
    cell_count(out, r->filter_false_positives);
    cell_count(out, r->device_reads_without);
    cell_count(out, r->device_reads_with);
    text_word(out, "<td>");
    lab_avoided_show(out, r);
    text_word(out, "<td>");
    lab_estimate_show(out, r);
    cell_size(out, r->kernel_read_bytes);
    cell_size(out, r->store_read_bytes);
    text_printf(out, "<td>%.0f<td>%.0f", r->ns_per_get_without, r->ns_per_get);
    cell_count(out, r->keys_checked);
    cell_count(out, r->false_negatives);
    text_word(out, "</tr>\n");
}

static void table_add(struct text *out, const struct lab *lab)
{
    text_word(out, "<h2>All figures</h2>\n<div class=\"wide\"><table>\n"
                   "<tr><th>filter<th>bits/key<th>size<th>expected<th>measured<th>sigma"
                   "<th>negatives<th>false pos.<th>reads without<th>reads with<th>reads avoided"
                   "<th>estimate<th>kernel read<th>store read<th>ns/get without<th>ns/get with"
                   "<th>keys checked<th>denied</tr>\n");
    for (size_t i = 0; i < lab->row_count; i++)
        table_row(out, &lab->rows[i]);
    text_word(out, "</table></div>\n");
}

static void setting_add(struct text *out, const struct lab *lab)
{
    text_word(out, "<h1>Device reads that filters avoid</h1>\n<p>");
    count_show(out, lab->key_count);
    text_word(out, " keys, ");
    count_show(out, lab->probe_count);
    text_word(out, " probes, ");
    count_show(out, lab->absent_count);
    text_printf(out, " of them of absent keys. Order: %s, seed %llu. Cache %s, %s. tamiz %s.<br>",
                lab->shuffled ? "shuffled" : "file", (unsigned long long)lab->seed, lab->cache,
                lab->note[0] ? "buffered I/O" : "direct I/O", tamiz_version());
    html_add(out, lab->machine.data);
    text_word(out, "</p>\n");
}

int lab_report(const struct lab *lab)
{
    struct text out = {0}, json = {0};
    text_word(&out, head);
    setting_add(&out, lab);
    text_word(&out, "<h2>Device reads for absent keys</h2>\n");
    reads_chart(&out, lab);
    text_word(&out, "<h2>False-positive rate, theory beside practice</h2>\n");
    rate_chart(&out, lab);
    table_add(&out, lab);
    lab_json(lab, &json);
    text_word(&out, "<details><summary>The same as JSON</summary><pre>");
    html_add(&out, json.data);
    text_word(&out, "</pre></details>\n</html>\n");
    FILE *file = fopen(lab->report_path, "wb");
    const bool written = file && text_flush(&out, file);
    const bool closed = file && fclose(file) == 0;
    text_free(&out);
    text_free(&json);
    return written && closed ? EXIT_DONE
                             : fail(lab->call, "%s: %s", lab->report_path, strerror(errno));
}
