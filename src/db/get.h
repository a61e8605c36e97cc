/* SPDX-License-Identifier: MIT
 *
 * The point-read path, whole. The first source that knows the key decides; only "never heard of it"
 * moves on.
 */
#ifndef TAMIZ_DB_GET_H
#define TAMIZ_DB_GET_H

#include "db/view.h"

/* An answer: the value is borrowed until the epoch is left and `pinned` is let go. */
struct found {
    struct slice value;
    struct cached_block *pinned;
    const struct table *table; /* that knew the key, borrowed like the value; NULL: a memtable, or
                                  none did */
};

/* Inside an epoch. TAMIZ_OK: *found has a value; TAMIZ_NOT_FOUND; or an error. Releases nothing of
 * *found on success. */
tamiz_status db_get(struct op *op, struct tamiz *db, struct slice key,
                    const tamiz_read_options *options, struct found *found);

/* Many at once, in one view; arrays as in tamiz_multi_get, which come in with the answers of keys
 * that are not there: no value, size 0, TAMIZ_NOT_FOUND. Each key has its own status; returns the
 * first error. Inside an epoch. */
tamiz_status db_multi_get(struct op *op, struct tamiz *db, size_t n, const void *const keys[],
                          const size_t key_sizes[], void *values[], size_t value_sizes[],
                          tamiz_status statuses[], const tamiz_read_options *options);

#endif
