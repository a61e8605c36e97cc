/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* struct winsize */
#include "grid.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void grid_free(struct grid *g)
{
    for (size_t i = 0; i < g->cells; i++)
        text_free(&g->cell[i]);
    free(g->cell);
    *g = (struct grid){0};
}

struct text *grid_cell(struct grid *g)
{
    g->cell = tool_resize(g->cell, (g->cells + 1) * sizeof *g->cell);
    g->cell[g->cells] = (struct text){0};
    text_add(&g->cell[g->cells], "", 0);
    return &g->cell[g->cells++];
}

struct text *grid_heading(struct grid *g, const char *words)
{
    struct text *cell = grid_cell(g);
    text_word(cell, words);
    g->columns++;
    return cell;
}

/* Characters, not bytes: all cells are UTF-8 of characters one column wide. */
static size_t width_of(const struct text *t)
{
    size_t width = 0;
    for (size_t i = 0; i < t->size; i++)
        width += ((unsigned char)t->data[i] & 0xc0) != 0x80;
    return width;
}

static void widths_take(const struct grid *g, size_t *widths)
{
    for (size_t i = 0; i < g->cells; i++) {
        const size_t width = width_of(&g->cell[i]);
        if (width > widths[i % g->columns])
            widths[i % g->columns] = width;
    }
}

static void pad(FILE *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)fputc(' ', to);
}

static void row_print(const struct grid *g, size_t row, size_t from, size_t end,
                      const size_t *widths, FILE *to)
{
    const struct text *first = &g->cell[row * g->columns];
    (void)fputs(first->data, to);
    pad(to, widths[0] - width_of(first));
    for (size_t i = from; i < end; i++) {
        const struct text *cell = &g->cell[row * g->columns + i];
        pad(to, 2 + widths[i] - width_of(cell));
        (void)fputs(cell->data, to);
    }
    (void)fputc('\n', to);
}

/* How many columns from `from` on fit beside the first: at least one. */
static size_t fitting(const struct grid *g, size_t from, const size_t *widths, size_t width)
{
    size_t used = widths[0], i = from;
    for (; i < g->columns; i++) {
        used += 2 + widths[i];
        if (width && used > width && i > from)
            break;
    }
    return i;
}

void grid_print(const struct grid *g, size_t width, FILE *to)
{
    size_t widths[GRID_COLUMNS_MAX] = {0};
    if (!g->columns || g->columns > GRID_COLUMNS_MAX)
        return;
    widths_take(g, widths);
    const size_t rows = g->cells / g->columns;
    size_t from = 1;
    do {
        const size_t end = fitting(g, from, widths, width);
        if (from > 1)
            (void)fputc('\n', to);
        for (size_t row = 0; row < rows; row++)
            row_print(g, row, from, end, widths, to);
        from = end;
    } while (from < g->columns);
}

size_t terminal_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}
