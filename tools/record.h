/* SPDX-License-Identifier: MIT
 *
 * Keys and values from lines of text. A line is a key whose value is its number (lines), or
 * "key TAB value" as `scan` prints it (tsv), or an object with "key" and "value" (jsonl).
 */
#ifndef TAMIZ_TOOLS_RECORD_H
#define TAMIZ_TOOLS_RECORD_H

#include <stdio.h>

#include "tool.h"

#define RECORD_FORMATS "lines (key is the line, value its number), tsv or jsonl"

struct record {
    bool hex;
    uint64_t number; /* of its line, from 1 */
    struct text key, value;
    struct text why; /* words for what is wrong with the line */
};

/* false: record->why. */
typedef bool record_take(struct record *r, char *line, size_t size);
/* name NULL: lines. NULL: there is no such format. */
record_take *record_format(const char *name);
void record_free(struct record *r);

/* A good line's record, or, `fine` false, a bad line; EXIT_DONE: go on. */
typedef int record_each(void *ctx, struct record *r, bool fine);
/* All lines of `file`, with a bar that is called `verb`; an exit status. Counts on in r->number. */
int records_read(const struct call *call, FILE *file, const char *name, const char *verb,
                 record_take *take, struct record *r, record_each *each, void *ctx);

/* "-" is stdin. NULL, and it was said: it can't be opened. */
FILE *records_open(const struct call *call, const char *name);

#endif
