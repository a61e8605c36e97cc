/* SPDX-License-Identifier: MIT
 *
 * Text that grows, and bytes as people type and read them. Keys and values are any bytes; on the
 * command line they are text in which \xNN stands for one byte and \\ for a backslash, or, with
 * --hex, pairs of hex digits. What is shown can be typed back and gives the same bytes.
 *
 * A tool may end when memory is out, and these do: a line on stderr and exit status 3.
 */
#ifndef TAMIZ_TOOLS_TEXT_H
#define TAMIZ_TOOLS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Owned, NUL-terminated once something was added; {0} is empty. */
struct text {
    char *data;
    size_t size;
    size_t capacity;
};

void *tool_resize(void *p, size_t size); /* realloc that ends the program where memory is out */

void text_add(struct text *t, const void *data, size_t size);
void text_word(struct text *t, const char *word);
void text_printf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_clear(struct text *t);
void text_free(struct text *t);
/* Breaks lines that are wider than `width` (0: none is) at blanks; they go on two columns further
 * in than they began. */
void text_fold(struct text *t, size_t width);
/* Writes all of it to `to` and empties it; false: the file refused. */
bool text_flush(struct text *t, FILE *to);

/* Typed bytes, appended to `out`. false: `why` (may be NULL) gets words for what is wrong. */
bool bytes_parse(const char *typed, bool hex, struct text *out, struct text *why);
/* The other way: printable characters and valid UTF-8 that is seen as they are, all else as \xNN;
 * or hex. */
void bytes_show(struct text *out, const void *data, size_t size, bool hex);

/* Words for a person, in which a name may be any bytes: what would move a terminal is \xNN, all
 * else as it is. */
void words_show(struct text *out, const char *words);

/* "1,234,567" */
void count_show(struct text *out, uint64_t n);
/* "1.2 MiB" */
void size_show(struct text *out, uint64_t bytes);

/* The whole of `word` as a number; false: it is none, or out of range. */
bool number_parse(const char *word, uint64_t *n);
/* The same, or a number and a unit, as the bench takes them: k, m are 10^3, 10^6; K, M, G 2^10...
 */
bool count_parse(const char *word, uint64_t *n);
bool real_parse(const char *word, double *x);

#endif
