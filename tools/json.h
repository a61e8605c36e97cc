/* SPDX-License-Identifier: MIT
 *
 * JSON, written in the order it is said: open an object or an array, name and value, close. Commas
 * come by themselves. Inside an array the name is NULL.
 *
 * Bytes are not text: a key goes through bytes_show first (json_bytes), so that what stands in the
 * document is valid Unicode and can be typed back.
 */
#ifndef TAMIZ_TOOLS_JSON_H
#define TAMIZ_TOOLS_JSON_H

#include "text.h"

struct json {
    struct text *out; /* borrowed */
    bool open;        /* something was just opened: no comma before the next */
};

struct json json_to(struct text *out);
void json_open(struct json *j, const char *name, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);                  /* '}' or ']' */
void json_text(struct json *j, const char *name, const char *value);
void json_bytes(struct json *j, const char *name, const void *data, size_t size, bool hex);
void json_u64(struct json *j, const char *name, uint64_t value);
void json_i64(struct json *j, const char *name, int64_t value);
void json_real(struct json *j, const char *name, double value); /* null where it is no number */
void json_bool(struct json *j, const char *name, bool value);
/* A value that is JSON already. */
void json_raw(struct json *j, const char *name, const char *value);

/*
 * One member of a JSON object that stands on one line: its string decoded (\uNNNN to UTF-8), any
 * other value as its own text. Appended to `out`. false: the line is no such object, or lacks the
 * member; `why` says which.
 */
bool json_member(const char *line, const char *name, struct text *out, struct text *why);

#endif
