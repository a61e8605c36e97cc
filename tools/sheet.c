/* SPDX-License-Identifier: MIT */
#include "sheet.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"

void sheet_column(struct sheet *s, const char *name, const char *label, enum sheet_kind kind)
{
    if (s->column_count == SHEET_COLUMNS)
        return;
    s->columns[s->column_count].name = name;
    s->columns[s->column_count].label = label;
    s->columns[s->column_count++].kind = kind;
}

static struct sheet_cell *cell_new(struct sheet *s)
{
    s->cells = tool_resize(s->cells, (s->cell_count + 1) * sizeof *s->cells);
    s->cells[s->cell_count] = (struct sheet_cell){.number = NAN};
    return &s->cells[s->cell_count++];
}

void sheet_word(struct sheet *s, const char *word)
{
    struct sheet_cell *cell = cell_new(s);
    (void)snprintf(cell->word, sizeof cell->word, "%s", word);
}

void sheet_number(struct sheet *s, double number)
{
    cell_new(s)->number = number;
}

void sheet_chart(struct sheet *s, const struct sheet_chart *chart)
{
    if (s->chart_count < SHEET_CHARTS)
        s->charts[s->chart_count++] = *chart;
}

void sheet_free(struct sheet *s)
{
    text_free(&s->setting);
    text_free(&s->conclusion);
    free(s->cells);
    *s = (struct sheet){0};
}

/* ---- cells ---- */

void sheet_cell_show(struct text *out, const struct sheet *s, size_t cell)
{
    const struct sheet_cell *c = &s->cells[cell];
    const enum sheet_kind kind = s->columns[cell % s->column_count].kind;
    if (kind == SHEET_WORD) {
        text_word(out, c->word);
    } else if (isnan(c->number)) {
        text_word(out, "-");
    } else if (kind == SHEET_COUNT) {
        text_word(out, c->number < 0 ? "-" : "");
        count_show(out, (uint64_t)(fabs(c->number) + 0.5));
    } else if (kind == SHEET_SIZE) {
        size_show(out, (uint64_t)c->number);
    } else if (kind == SHEET_PERCENT) {
        text_printf(out, fabs(c->number) < 1e-3 && c->number != 0 ? "%.5f %%" : "%.3f %%",
                    c->number * 100);
    } else {
        text_printf(out, fabs(c->number) < 10 ? "%.3f" : "%.1f", c->number);
    }
}

static void cell_json(struct json *j, const struct sheet *s, size_t cell)
{
    const char *name = s->columns[cell % s->column_count].name;
    const struct sheet_cell *c = &s->cells[cell];
    const enum sheet_kind kind = s->columns[cell % s->column_count].kind;
    if (kind == SHEET_WORD)
        json_text(j, name, c->word);
    else if ((kind == SHEET_COUNT || kind == SHEET_SIZE) && !isnan(c->number))
        json_i64(j, name, (int64_t)llround(c->number));
    else
        json_real(j, name, c->number);
}

void sheet_json(const struct sheet *s, struct json *j)
{
    struct text machine = {0};
    machine_show(&machine);
    json_text(j, "experiment", s->experiment);
    json_text(j, "version", tamiz_version());
    json_text(j, "machine", machine.data);
    json_u64(j, "seed", s->seed);
    json_text(j, "setting", s->setting.size ? s->setting.data : "");
    json_text(j, "conclusion", s->conclusion.size ? s->conclusion.data : "");
    json_open(j, "rows", '[');
    for (size_t i = 0; i < s->cell_count; i++) {
        if (i % s->column_count == 0)
            json_open(j, NULL, '{');
        cell_json(j, s, i);
        if ((i + 1) % s->column_count == 0)
            json_close(j, '}');
    }
    json_close(j, ']');
    text_free(&machine);
}

/* ---- text ---- */

/* The blank at which a label breaks into two lines of about the same length; its end: at none. */
static size_t label_break(const char *label)
{
    const size_t size = strlen(label);
    size_t best = size;
    for (size_t i = 0; i < size; i++) {
        const size_t longer = i > size - i - 1 ? i : size - i - 1;
        const size_t before = best > size - best - 1 || best == size ? best : size - best - 1;
        if (label[i] == ' ' && longer < before)
            best = i;
    }
    return best;
}

/* Labels of several words stand in two lines, so that narrow columns stay narrow. */
static void headings_of(const struct sheet *s, struct grid *g)
{
    for (size_t i = 0; i < s->column_count; i++) {
        const char *label = s->columns[i].label;
        const size_t at = label_break(label);
        struct text *heading = grid_heading(g, "");
        if (label[at])
            text_add(heading, label, at);
    }
    for (size_t i = 0; i < s->column_count; i++) {
        const char *label = s->columns[i].label;
        const size_t at = label_break(label);
        text_word(grid_cell(g), label[at] ? label + at + 1 : label);
    }
}

static void grid_of(const struct sheet *s, struct grid *g)
{
    headings_of(s, g);
    for (size_t i = 0; i < s->cell_count; i++)
        sheet_cell_show(grid_cell(g), s, i);
}

static void text_print(const struct sheet *s)
{
    struct text out = {0};
    struct grid g = {0};
    text_printf(&out, "%s\n%s\nseed %llu; ", s->title, s->setting.size ? s->setting.data : "",
                (unsigned long long)s->seed);
    machine_show(&out);
    text_word(&out, "\n\n");
    text_fold(&out, terminal_width());
    (void)text_flush(&out, stdout);
    grid_of(s, &g);
    grid_print(&g, terminal_width(), stdout);
    grid_free(&g);
    if (s->conclusion.size)
        text_printf(&out, "\n%s\n", s->conclusion.data);
    text_fold(&out, terminal_width());
    (void)text_flush(&out, stdout);
    text_free(&out);
}

/* ---- CSV ---- */

static int file_write(const struct call *call, const char *path, struct text *out)
{
    FILE *file = fopen(path, "wb");
    const bool written = file && text_flush(out, file);
    const bool closed = file && fclose(file) == 0;
    text_free(out);
    return written && closed ? EXIT_DONE : fail(call, "%s: %s", path, strerror(errno));
}

static int csv_write(const struct sheet *s, const struct call *call, const char *path)
{
    struct text out = {0};
    for (size_t i = 0; i < s->column_count; i++)
        text_printf(&out, "%s%s", i ? "," : "", s->columns[i].name);
    for (size_t i = 0; i < s->cell_count; i++) {
        text_word(&out, i % s->column_count ? "," : "\n");
        if (s->columns[i % s->column_count].kind == SHEET_WORD)
            text_printf(&out, "\"%s\"", s->cells[i].word);
        else if (!isnan(s->cells[i].number))
            text_printf(&out, "%.10g", s->cells[i].number);
    }
    text_word(&out, "\n");
    return file_write(call, path, &out);
}

/* ---- all of it ---- */

int sheet_write(const struct sheet *s, const struct call *call)
{
    int status = EXIT_DONE;
    if (call_flag(call, "--csv"))
        status = csv_write(s, call, call_flag(call, "--csv"));
    if (status == EXIT_DONE && call_flag(call, "--report"))
        status = sheet_report(s, call, call_flag(call, "--report"));
    return status;
}

int sheet_tell(const struct sheet *s, const struct call *call)
{
    struct text out = {0};
    int status = EXIT_DONE;
    if (call->json) {
        struct json j = json_to(&out);
        json_open(&j, NULL, '{');
        sheet_json(s, &j);
        json_close(&j, '}');
        status = deliver_json(call, &out);
    } else {
        text_print(s);
    }
    return status == EXIT_DONE ? sheet_write(s, call) : status;
}
