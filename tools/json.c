/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <math.h>
#include <string.h>

struct json json_to(struct text *out)
{
    return (struct json){out, true};
}

static void string_add(struct text *out, const char *s, size_t size)
{
    text_word(out, "\"");
    for (size_t i = 0; i < size; i++) {
        const char c = s[i];
        if (c == '"' || c == '\\')
            text_printf(out, "\\%c", c);
        else if ((unsigned char)c < ' ')
            text_printf(out, "\\u%04x", (unsigned)(unsigned char)c);
        else
            text_add(out, &c, 1);
    }
    text_word(out, "\"");
}

static void name_add(struct json *j, const char *name)
{
    if (!j->open)
        text_word(j->out, ",");
    j->open = false;
    if (name) {
        string_add(j->out, name, strlen(name));
        text_word(j->out, ":");
    }
}

void json_open(struct json *j, const char *name, char bracket)
{
    name_add(j, name);
    text_add(j->out, &bracket, 1);
    j->open = true;
}

void json_close(struct json *j, char bracket)
{
    text_add(j->out, &bracket, 1);
    j->open = false;
}

/* Words that may hold any bytes (a path, say) are shown as bytes where they are not plain. */
void json_text(struct json *j, const char *name, const char *value)
{
    json_bytes(j, name, value, strlen(value), false);
}

void json_bytes(struct json *j, const char *name, const void *data, size_t size, bool hex)
{
    struct text shown = {0};
    bytes_show(&shown, data, size, hex);
    name_add(j, name);
    string_add(j->out, shown.data, shown.size);
    text_free(&shown);
}

void json_u64(struct json *j, const char *name, uint64_t value)
{
    name_add(j, name);
    text_printf(j->out, "%llu", (unsigned long long)value);
}

void json_i64(struct json *j, const char *name, int64_t value)
{
    name_add(j, name);
    text_printf(j->out, "%lld", (long long)value);
}

void json_real(struct json *j, const char *name, double value)
{
    name_add(j, name);
    if (isfinite(value))
        text_printf(j->out, "%.12g", value);
    else
        text_word(j->out, "null");
}

void json_bool(struct json *j, const char *name, bool value)
{
    name_add(j, name);
    text_word(j->out, value ? "true" : "false");
}

void json_raw(struct json *j, const char *name, const char *value)
{
    name_add(j, name);
    text_word(j->out, value);
}

/* ---- reading one flat object ---- */

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static void utf8_add(struct text *out, uint32_t point)
{
    char c[4];
    size_t size = 1;
    if (point < 0x80) {
        c[0] = (char)point;
    } else if (point < 0x800) {
        c[0] = (char)(0xc0 | point >> 6);
        c[1] = (char)(0x80 | (point & 0x3f));
        size = 2;
    } else if (point < 0x10000) {
        c[0] = (char)(0xe0 | point >> 12);
        c[1] = (char)(0x80 | (point >> 6 & 0x3f));
        c[2] = (char)(0x80 | (point & 0x3f));
        size = 3;
    } else {
        c[0] = (char)(0xf0 | point >> 18);
        c[1] = (char)(0x80 | (point >> 12 & 0x3f));
        c[2] = (char)(0x80 | (point >> 6 & 0x3f));
        c[3] = (char)(0x80 | (point & 0x3f));
        size = 4;
    }
    text_add(out, c, size);
}

/* Four hex digits; NULL: they are not there. */
static const char *unit_read(const char *at, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdefABCDEF";
        const char *digit = at[i] ? strchr(digits, at[i]) : NULL;
        if (!digit)
            return NULL;
        const uint32_t value = (uint32_t)(digit - digits);
        *unit = *unit * 16 + (value < 16 ? value : value - 6);
    }
    return at + 4;
}

/* Behind "\u"; a pair of surrogates is one character. */
static const char *point_read(const char *at, struct text *out)
{
    uint32_t high, low;
    at = unit_read(at, &high);
    if (!at || (high >= 0xdc00 && high <= 0xdfff))
        return NULL;
    if (high >= 0xd800 && high <= 0xdbff) {
        if (at[0] != '\\' || at[1] != 'u' || !(at = unit_read(at + 2, &low)) || low < 0xdc00 ||
            low > 0xdfff)
            return NULL;
        high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    }
    utf8_add(out, high);
    return at;
}

/* `at` is behind the opening quote; returns behind the closing one, or NULL. */
static const char *string_read(const char *at, struct text *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    while (at && *at != '"') {
        if ((unsigned char)*at < ' ')
            return NULL;
        if (*at != '\\') {
            text_add(out, at++, 1);
            continue;
        }
        const char *simple = at[1] ? strchr(from, at[1]) : NULL;
        if (simple) {
            text_add(out, to + (simple - from), 1);
            at += 2;
        } else {
            at = at[1] == 'u' ? point_read(at + 2, out) : NULL;
        }
    }
    return at ? at + 1 : NULL;
}

/* Any value: a string decoded, something else as its own characters up to where it ends. */
static const char *value_read(const char *at, struct text *out)
{
    if (*at == '"')
        return string_read(at + 1, out);
    const char *start = at;
    int depth = 0;
    for (; *at && (depth || !strchr(",}", *at)); at++) {
        if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            depth--;
        } else if (*at == '"') {
            struct text skipped = {0};
            const char *behind = string_read(at + 1, &skipped);
            text_free(&skipped);
            if (!behind)
                return NULL;
            at = behind - 1;
        }
    }
    size_t size = (size_t)(at - start);
    while (size && strchr(" \t\r\n", start[size - 1]))
        size--;
    text_add(out, start, size);
    return size && depth == 0 ? at : NULL;
}

/* Reads `"name" : value` at `at`; NULL: it is not one. */
static const char *member_read(const char *at, struct text *name, struct text *value)
{
    text_clear(name);
    text_clear(value);
    text_add(name, "", 0);
    text_add(value, "", 0);
    at = skip_space(at);
    at = *at == '"' ? string_read(at + 1, name) : NULL;
    at = at ? skip_space(at) : NULL;
    at = at && *at == ':' ? value_read(skip_space(at + 1), value) : NULL;
    return at ? skip_space(at) : NULL;
}

bool json_member(const char *line, const char *name, struct text *out, struct text *why)
{
    struct text key = {0}, value = {0};
    bool found = false;
    const char *at = skip_space(line);
    at = *at == '{' ? at + 1 : NULL;
    while (at) {
        at = member_read(at, &key, &value);
        if (at && strcmp(key.data, name) == 0) {
            text_clear(out);
            text_add(out, value.data, value.size);
            found = true;
        }
        if (!at || *at != ',')
            break;
        at++;
    }
    const bool whole = at && *at == '}' && *skip_space(at + 1) == 0;
    if (!whole)
        text_word(why, "want one JSON object a line");
    else if (!found)
        text_printf(why, "the object has no \"%s\"", name);
    text_free(&key);
    text_free(&value);
    return whole && found;
}
