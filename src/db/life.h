/* SPDX-License-Identifier: MIT
 *
 * Making and unmaking the store's struct, for those who begin or end its life: db.c,
 * destroy.c, repair.c.
 */
#ifndef TAMIZ_DB_LIFE_H
#define TAMIZ_DB_LIFE_H

#include "db/store.h"

/* The record of an operation that has no slot yet: opening, closing, destroying, repairing. */
struct loose_op {
    struct op op;
    struct counters count;
};
/* Freed with libc's allocator. NULL: memory is out. */
struct loose_op *loose_op_new(const struct alloc *alloc);

/* The caller's options completed and checked, the path looked at. */
tamiz_status store_options(const char *path, const tamiz_options *options, tamiz_options *taken);
/* Loose op and struct of a store for `path`, as far as needs no disk. *store NULL: memory is out;
 * else both are the caller's, also where the status is a failure, which then stands in the op.
 * `options` are store_options' own. */
tamiz_status store_make(const char *path, const tamiz_options *options, struct loose_op **loose,
                        struct store **store);
/* Takes the directory's lock, unless read-only. */
tamiz_status store_lock(struct op *op, struct store *s);
/* Frees everything; nothing runs any more. Safe at any stage of opening. */
void store_free(struct op *op, struct store *s);

#endif
