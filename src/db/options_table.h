/* SPDX-License-Identifier: MIT
 *
 * All knobs in one table: name, where it is, bounds, meaning. It serves the check, the parser, the
 * printer, the help and the documents; a test proves that the rows cover the struct.
 */
#ifndef TAMIZ_DB_OPTIONS_TABLE_H
#define TAMIZ_DB_OPTIONS_TABLE_H

#include "db/options.h"

enum option_type {
    OPTION_BOOLEAN,
    OPTION_SIZE,
    OPTION_NUMBER,
    OPTION_SECONDS,
    OPTION_FILTER,
    OPTION_FILTER_MEMORY,
    OPTION_PREFIX,
    OPTION_COMPRESSION,
    OPTION_COMPACTION,
    OPTION_SYNC
};

struct option_row {
    const char *name;
    enum option_type type;
    size_t offset;
    uint64_t least, most; /* of sizes, numbers and seconds */
    const char *help;
};

enum { OPTION_ROWS = 23 };
extern const struct option_row option_rows[OPTION_ROWS];

enum { SYNC_INTERVAL_MS_MAX = 3600000, ZSTD_LEVEL_MAX = 19 };

/* As much of the caller's struct as both sides know. */
size_t options_known_size(const tamiz_options *given);
/* The caller's fields over the defaults; env as given. */
tamiz_status options_merge(const tamiz_options *given, tamiz_options *taken);

#endif
