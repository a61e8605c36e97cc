/* SPDX-License-Identifier: MIT
 *
 * What a caller's read options mean inside. Those of an older caller end earlier: fields beyond its
 * struct_size have their defaults.
 */
#ifndef TAMIZ_DB_READ_OPTIONS_H
#define TAMIZ_DB_READ_OPTIONS_H

#include "db/store.h"

/* The defaults. Frozen. */
extern const tamiz_read_options read_options_default;

/* Checks and completes: *options becomes the default where it is NULL, or a full copy in *room
 * where the caller's is shorter. A snapshot of another store is TAMIZ_INVALID_ARGUMENT. */
tamiz_status read_options_resolve(const struct tamiz *db, const tamiz_read_options **options,
                                  tamiz_read_options *room);

/* The sequence to read at: the snapshot's, or `now`. */
uint64_t read_options_seq(const tamiz_read_options *options, uint64_t now);

static inline struct table_read read_options_table(const tamiz_read_options *options)
{
    return (struct table_read){
        .use_filter = options->use_filters, .fill_cache = options->fill_cache, .purpose = IO_DATA};
}

#endif
