/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void *tool_resize(void *p, size_t size)
{
    void *q = realloc(p, size ? size : 1);
    if (!q) {
        (void)fputs("tamiz: out of memory\n", stderr);
        exit(3);
    }
    return q;
}

static void text_reserve(struct text *t, size_t more)
{
    const size_t want = t->size + more + 1;
    if (want <= t->capacity)
        return;
    const size_t doubled = t->capacity * 2;
    t->capacity = want > doubled ? want : doubled;
    t->data = tool_resize(t->data, t->capacity);
}

void text_add(struct text *t, const void *data, size_t size)
{
    text_reserve(t, size);
    if (size)
        memcpy(t->data + t->size, data, size);
    t->size += size;
    t->data[t->size] = 0;
}

void text_word(struct text *t, const char *word)
{
    text_add(t, word, strlen(word));
}

void text_printf(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size > 0) {
        text_reserve(t, (size_t)size);
        (void)vsnprintf(t->data + t->size, (size_t)size + 1, format, again);
        t->size += (size_t)size;
    }
    va_end(again);
}

void text_clear(struct text *t)
{
    t->size = 0;
    if (t->data)
        t->data[0] = 0;
}

void text_free(struct text *t)
{
    free(t->data);
    *t = (struct text){0};
}

/* How many bytes of the line fit into `width` columns, ended by a blank where there is one behind
 * its indent; all of it where it fits. */
static size_t fold_at(const char *line, size_t size, size_t indent, size_t width)
{
    size_t columns = 0, blank = 0;
    for (size_t i = 0; i < size; i++) {
        if (((unsigned char)line[i] & 0xc0) != 0x80 && ++columns > width)
            return blank ? blank : size;
        if (line[i] == ' ' && i > indent && columns <= width)
            blank = i;
    }
    return size;
}

static void fold_line(struct text *out, const char *line, size_t size, size_t width)
{
    size_t indent = 0;
    while (indent < size && indent < width / 4 && line[indent] == ' ')
        indent++;
    size_t part = fold_at(line, size, indent, width);
    text_add(out, line, part);
    while (part < size) {
        line += part;
        size -= part;
        while (size && *line == ' ') {
            line++;
            size--;
        }
        if (size)
            text_printf(out, "\n%*s", (int)indent + 2, "");
        part = fold_at(line, size, 0, width - indent - 2);
        text_add(out, line, part);
    }
}

void text_fold(struct text *t, size_t width)
{
    struct text folded = {0};
    if (!t->data || width < 40)
        return;
    for (const char *at = t->data; *at;) {
        const size_t size = strcspn(at, "\n");
        fold_line(&folded, at, size, width);
        at += size;
        if (*at) {
            text_word(&folded, "\n");
            at++;
        }
    }
    text_free(t);
    *t = folded;
}

bool text_flush(struct text *t, FILE *to)
{
    const bool fine = t->size == 0 || fwrite(t->data, 1, t->size, to) == t->size;
    text_clear(t);
    return fine;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Two hex digits at `at`, or -1. */
static int byte_of(const char *at)
{
    const int high = digit_of(at[0]);
    const int low = high < 0 ? -1 : digit_of(at[1]);
    return low < 0 ? -1 : high * 16 + low;
}

static bool refuse(struct text *why, const char *typed, const char *wanted)
{
    if (why)
        text_printf(why, "\"%s\": %s", typed, wanted);
    return false;
}

static bool hex_parse(const char *typed, struct text *out, struct text *why)
{
    if (strlen(typed) % 2)
        return refuse(why, typed, "want an even number of hex digits");
    for (const char *at = typed; *at; at += 2) {
        const int byte = byte_of(at);
        if (byte < 0)
            return refuse(why, typed, "want hex digits only");
        const char one = (char)byte;
        text_add(out, &one, 1);
    }
    return true;
}

bool bytes_parse(const char *typed, bool hex, struct text *out, struct text *why)
{
    text_add(out, "", 0);
    if (hex)
        return hex_parse(typed, out, why);
    for (const char *at = typed; *at; at++) {
        char one = *at;
        if (one == '\\' && at[1] == '\\') {
            at++;
        } else if (one == '\\') {
            const int byte = at[1] == 'x' ? byte_of(at + 2) : -1;
            if (byte < 0)
                return refuse(why, typed, "after a backslash want xNN (two hex digits) or another");
            one = (char)byte;
            at += 3;
        }
        text_add(out, &one, 1);
    }
    return true;
}

/* Code points that are not seen, or change the order in which others are (Unicode's format
 * characters and its separators of lines): two keys would look alike, or one like another. */
static bool is_unseen(uint32_t point)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {{0xad, 0xad},       {0x600, 0x605},    {0x61c, 0x61c},   {0x6dd, 0x6dd},
                  {0x70f, 0x70f},     {0x180e, 0x180e},  {0x200b, 0x200f}, {0x2028, 0x202e},
                  {0x2060, 0x206f},   {0xfeff, 0xfeff},  {0xfff9, 0xfffb}, {0x1bca0, 0x1bca3},
                  {0x1d173, 0x1d17a}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (point >= ranges[i].from && point <= ranges[i].to)
            return true;
    return false;
}

/* Bytes of the well-formed UTF-8 sequence at `at` of a code point that can be seen, from U+00A0
 * on, or 0. */
static size_t utf8_size(const unsigned char *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
    const size_t size = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || size > left)
        return 0;
    uint32_t point = at[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (at[i] & 0x3fu);
    }
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    return point >= least[size] && point <= 0x10ffff && !surrogate && !is_unseen(point) ? size : 0;
}

void words_show(struct text *out, const char *words)
{
    const unsigned char *at = (const unsigned char *)words;
    size_t left = strlen(words);
    while (left) {
        const size_t sequence = *at < 0x80 ? 0 : utf8_size(at, left);
        const size_t whole = sequence ? sequence : 1;
        if (sequence || (*at >= ' ' && *at < 0x7f) || *at == '\n')
            text_add(out, at, whole);
        else
            text_printf(out, "\\x%02x", *at);
        at += whole;
        left -= whole;
    }
}

void bytes_show(struct text *out, const void *data, size_t size, bool hex)
{
    const unsigned char *at = data;
    text_add(out, "", 0);
    for (size_t i = 0; i < size;) {
        const size_t sequence = hex || at[i] < 0x80 ? 0 : utf8_size(at + i, size - i);
        if (hex)
            text_printf(out, "%02x", at[i]);
        else if (sequence)
            text_add(out, at + i, sequence);
        else if (at[i] >= ' ' && at[i] < 0x7f && at[i] != '\\')
            text_add(out, at + i, 1);
        else
            text_printf(out, "\\x%02x", at[i]);
        i += sequence ? sequence : 1;
    }
}

void count_show(struct text *out, uint64_t n)
{
    char digits[24];
    const int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < count; i++) {
        text_add(out, digits + i, 1);
        if ((count - i) % 3 == 1 && i + 1 < count)
            text_add(out, ",", 1);
    }
}

void size_show(struct text *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double n = (double)bytes;
    size_t unit = 0;
    for (; n >= 1024 && unit < 6; unit++)
        n /= 1024;
    text_printf(out, unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
}

bool number_parse(const char *word, uint64_t *n)
{
    char *end;
    errno = 0;
    if (word[0] < '0' || word[0] > '9')
        return false;
    const unsigned long long got = strtoull(word, &end, 10);
    if (*end || errno)
        return false;
    *n = got;
    return true;
}

bool count_parse(const char *word, uint64_t *n)
{
    static const struct unit {
        char letter;
        double factor;
    } units[] = {{'k', 1e3}, {'K', 1 << 10}, {'m', 1e6}, {'M', 1 << 20}, {'G', 1 << 30}};
    char *end;
    double factor = 1;
    if (number_parse(word, n))
        return true;
    if (word[0] < '0' || word[0] > '9')
        return false;
    const double got = strtod(word, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (*end == units[i].letter)
            factor = units[i].factor;
    if (factor == 1 || end[1] || !(got * factor <= 1e18))
        return false;
    *n = (uint64_t)(got * factor);
    return true;
}

bool real_parse(const char *word, double *x)
{
    char *end;
    const double got = strtod(word, &end);
    if (end == word || *end || !isfinite(got))
        return false;
    *x = got;
    return true;
}
