/* SPDX-License-Identifier: MIT
 *
 * What an experiment of the lab brings home: named columns, rows, what it was made of, and which
 * charts are worth drawing. Told as a table for a terminal, as JSON, as CSV, and as a page that
 * needs nothing but itself.
 */
#ifndef TAMIZ_TOOLS_SHEET_H
#define TAMIZ_TOOLS_SHEET_H

#include "json.h"
#include "tool.h"

enum { SHEET_COLUMNS = 20, SHEET_CHARTS = 6, SHEET_LINES = 4 };

enum sheet_kind { SHEET_WORD, SHEET_COUNT, SHEET_SIZE, SHEET_PERCENT, SHEET_REAL };

struct sheet_cell {
    char word[48]; /* of SHEET_WORD */
    double number; /* NAN: there is none */
};

struct sheet_chart {
    const char *title, *caption;
    const char *x, *y[SHEET_LINES]; /* names of columns; y NULL-terminated or full */
    const char *by;                 /* one line for each of its values; NULL: one for each y */
    const char *dashed;             /* the y that is theory, or NULL */
    const char *y_label;
    bool log_x, log_y;
};

struct sheet {
    const char *experiment; /* "curve" */
    const char *title;
    struct text setting;    /* sentences: what was done, with what; owned */
    struct text conclusion; /* sentences; owned */
    uint64_t seed;
    struct {
        const char *name, *label;
        enum sheet_kind kind;
    } columns[SHEET_COLUMNS];
    size_t column_count;
    struct sheet_cell *cells; /* row by row; owned */
    size_t cell_count;
    struct sheet_chart charts[SHEET_CHARTS];
    size_t chart_count;
};

/* All names and labels are borrowed, and static in practice. */
void sheet_column(struct sheet *s, const char *name, const char *label, enum sheet_kind kind);
/* The next cell of the row. */
void sheet_word(struct sheet *s, const char *word);
void sheet_number(struct sheet *s, double number);
void sheet_chart(struct sheet *s, const struct sheet_chart *chart);
void sheet_free(struct sheet *s);

/* Prints it as --json asks, and writes what --csv and --report ask for. An exit status. */
int sheet_tell(const struct sheet *s, const struct call *call);
/* The same without printing. */
int sheet_write(const struct sheet *s, const struct call *call);
/* The cell as people read it. */
void sheet_cell_show(struct text *out, const struct sheet *s, size_t cell);
/* The outcome as members of an open object: experiment, setting, rows. */
void sheet_json(const struct sheet *s, struct json *j);
/* The page. An exit status. */
int sheet_report(const struct sheet *s, const struct call *call, const char *path);

/* "Linux 6.1 x86_64, Some Processor, 2 processors" */
void machine_show(struct text *out);

#endif
