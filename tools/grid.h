/* SPDX-License-Identifier: MIT
 *
 * Rows and columns for people: the first column to the left, all others to the right, as wide as
 * their widest cell. Where the terminal is too narrow, the columns that do not fit come as a second
 * grid below, each beginning with the first column again.
 */
#ifndef TAMIZ_TOOLS_GRID_H
#define TAMIZ_TOOLS_GRID_H

#include "text.h"

enum { GRID_COLUMNS_MAX = 24 };

struct grid {
    size_t columns;
    size_t cells;
    struct text *cell; /* row by row; the first row is the heading. Owned */
};

void grid_free(struct grid *g);
/* The next cell, to be filled by the caller before it asks for another one. Headings first: they
 * say how many columns there are. */
struct text *grid_heading(struct grid *g, const char *words);
struct text *grid_cell(struct grid *g);
/* width 0: as wide as it gets. */
void grid_print(const struct grid *g, size_t width, FILE *to);
/* Columns of the terminal that stdout is, or 0 where it is none. */
size_t terminal_width(void);

#endif
