/* SPDX-License-Identifier: MIT
 *
 * A sheet as a page: the setting, charts (uPlot, inlined), the whole table, and all that is needed
 * to repeat it. Light and dark as the reader's system asks; without scripts the table says the
 * same.
 */
#define _POSIX_C_SOURCE 200809L /* uname, sysconf */
#include "sheet.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "report.h"

void machine_show(struct text *out)
{
    struct utsname name;
    if (uname(&name) == 0)
        text_printf(out, "%s %.*s %s", name.sysname, (int)strspn(name.release, "0123456789."),
                    name.release, name.machine);
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        const char *model = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
        if (!model)
            continue;
        text_printf(out, ", %.*s", (int)strcspn(model + 2, "\n"), model + 2);
        break;
    }
    if (file)
        (void)fclose(file);
    text_printf(out, ", %ld processors", sysconf(_SC_NPROCESSORS_ONLN));
}

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

/* JSON inside a script element: no "</" may stand in it. */
static void script_add(struct text *out, const struct text *json)
{
    for (size_t i = 0; i < json->size; i++) {
        if (json->data[i] == '<')
            text_word(out, "\\u003c");
        else
            text_add(out, json->data + i, 1);
    }
}

static void chart_json(struct json *j, const struct sheet_chart *c)
{
    json_open(j, NULL, '{');
    json_text(j, "x", c->x);
    json_open(j, "y", '[');
    for (int i = 0; i < SHEET_LINES && c->y[i]; i++)
        json_text(j, NULL, c->y[i]);
    json_close(j, ']');
    if (c->by)
        json_text(j, "by", c->by);
    json_open(j, "dashed", '[');
    if (c->dashed)
        json_text(j, NULL, c->dashed);
    json_close(j, ']');
    json_text(j, "y_label", c->y_label);
    json_bool(j, "log_x", c->log_x);
    json_bool(j, "log_y", c->log_y);
    json_close(j, '}');
}

static void data_json(const struct sheet *s, struct text *out)
{
    struct json j = json_to(out);
    json_open(&j, NULL, '{');
    sheet_json(s, &j);
    json_open(&j, "labels", '{');
    for (size_t i = 0; i < s->column_count; i++)
        json_text(&j, s->columns[i].name, s->columns[i].label);
    json_close(&j, '}');
    json_open(&j, "bytes", '[');
    for (size_t i = 0; i < s->column_count; i++)
        if (s->columns[i].kind == SHEET_SIZE)
            json_text(&j, NULL, s->columns[i].name);
    json_close(&j, ']');
    json_open(&j, "charts", '[');
    for (size_t i = 0; i < s->chart_count; i++)
        chart_json(&j, &s->charts[i]);
    json_close(&j, ']');
    json_close(&j, '}');
}

static void charts_add(struct text *out, const struct sheet *s)
{
    for (size_t i = 0; i < s->chart_count; i++) {
        text_word(out, "<h2>");
        html_add(out, s->charts[i].title);
        text_printf(out, "</h2>\n<figure><div id=\"chart%zu\"></div><figcaption>", i);
        html_add(out, s->charts[i].caption);
        text_word(out, "</figcaption></figure>\n");
    }
    text_word(out, "<noscript><p>The charts need scripts; the table below has every figure."
                   "</p></noscript>\n");
}

static void table_add(struct text *out, const struct sheet *s)
{
    text_word(out, "<h2>All figures</h2>\n<div class=\"wide\"><table>\n<tr>");
    for (size_t i = 0; i < s->column_count; i++) {
        text_word(out, s->columns[i].kind == SHEET_WORD ? "<th class=\"l\">" : "<th>");
        html_add(out, s->columns[i].label);
    }
    for (size_t i = 0; i < s->cell_count; i++) {
        struct text cell = {0};
        if (i % s->column_count == 0)
            text_word(out, "</tr>\n<tr>");
        text_word(out,
                  s->columns[i % s->column_count].kind == SHEET_WORD ? "<td class=\"l\">" : "<td>");
        sheet_cell_show(&cell, s, i);
        html_add(out, cell.size ? cell.data : "");
        text_free(&cell);
    }
    text_word(out, "</tr>\n</table></div>\n");
}

static void repeat_add(struct text *out, const struct sheet *s, const struct call *call)
{
    text_word(out, "<h2>To repeat it</h2>\n<pre>tamiz ");
    if (call->options.size) {
        text_word(out, "-o \"");
        html_add(out, call->options.data);
        text_word(out, "\" ");
    }
    text_word(out, call->command->name);
    for (int i = 0; i < call->count; i++) {
        text_word(out, " ");
        html_add(out, call->operands[i]);
    }
    for (size_t i = 0; call->command->flags[i].name; i++) {
        const struct flag *f = &call->command->flags[i];
        if (!call->values[i] || strcmp(f->name, "--seed") == 0 ||
            strcmp(f->name, "--report") == 0 || strcmp(f->name, "--csv") == 0)
            continue;
        text_printf(out, " %s", f->name);
        if (f->value) {
            text_word(out, " ");
            html_add(out, call->values[i]);
        }
    }
    text_printf(out, " --seed %llu</pre>\n<p>tamiz %s. ", (unsigned long long)s->seed,
                tamiz_version());
    struct text machine = {0};
    machine_show(&machine);
    html_add(out, machine.data);
    text_word(out, ".</p>\n");
    text_free(&machine);
}

int sheet_report(const struct sheet *s, const struct call *call, const char *path)
{
    struct text out = {0}, data = {0};
    text_printf(
        &out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>tamiz: %s</title>\n",
        s->title);
    text_word(&out, "<style>");
    text_word(&out, report_uplot_css);
    text_word(&out, report_page_css);
    text_printf(&out, "</style>\n<h1>%s</h1>\n<p>", s->title);
    html_add(&out, s->setting.size ? s->setting.data : "");
    text_word(&out, "</p>\n");
    if (s->conclusion.size) {
        text_word(&out, "<p>");
        html_add(&out, s->conclusion.data);
        text_word(&out, "</p>\n");
    }
    charts_add(&out, s);
    table_add(&out, s);
    repeat_add(&out, s, call);
    data_json(s, &data);
    text_word(&out, "<script type=\"application/json\" id=\"sheet\">");
    script_add(&out, &data);
    text_word(&out, "</script>\n<!-- uPlot:\n");
    text_word(&out, report_uplot_license);
    text_word(&out, "-->\n<script>");
    text_word(&out, report_uplot_js);
    text_word(&out, "</script>\n<script>");
    text_word(&out, report_page_js);
    text_word(&out, "</script>\n</html>\n");
    FILE *file = fopen(path, "wb");
    const bool written = file && text_flush(&out, file);
    const bool closed = file && fclose(file) == 0;
    text_free(&out);
    text_free(&data);
    return written && closed ? EXIT_DONE : fail(call, "%s: %s", path, strerror(errno));
}
