/* SPDX-License-Identifier: MIT
 *
 * A file of a store, told item by item: where it stands, what it is, its fields. The decoders of
 * src read; `struct dump` says it, as lines for people or as JSON. The only part of the tool that
 * looks inside the library.
 *
 *     offset  item            fields
 *          0  header          format 1, file 0x9ae1, number 4
 *         64  record          size 120, durable 64
 *             put             seq 12, key "abc", value "1"
 */
#ifndef TAMIZ_TOOLS_DUMP_H
#define TAMIZ_TOOLS_DUMP_H

#include "base/buf.h"
#include "base/op.h"
#include "json.h"
#include "tool.h"

struct dump {
    const struct call *call;
    const char *path;
    bool entries; /* tables: each entry as well */
    struct text out;
    struct json json;
    bool first_field;
    struct op *op;
};

#define NO_OFFSET UINT64_MAX

void dump_item(struct dump *d, uint64_t offset, const char *what);
void dump_number(struct dump *d, const char *name, uint64_t value);
void dump_id(struct dump *d, const char *name, uint64_t value); /* in hex */
void dump_real(struct dump *d, const char *name, double value);
void dump_words(struct dump *d, const char *name, const char *value);
void dump_bytes(struct dump *d, const char *name, struct slice bytes);
/* What a version of that kind has for a value, with the moment it expires at, where it does. */
void dump_value(struct dump *d, unsigned kind, struct slice value);
void dump_end(struct dump *d); /* of the item */

/* One file whose bytes are `content` (taken over by log and manifest). What can be told is told; a
 * status below 0 says that the rest is damaged. */
tamiz_status dump_log(struct dump *d, struct buf *content);
tamiz_status dump_manifest(struct dump *d, struct buf *content);
tamiz_status dump_table(struct dump *d, struct slice content);
tamiz_status dump_filter_image(struct dump *d, struct slice content);

#endif
