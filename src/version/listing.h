/* SPDX-License-Identifier: MIT
 *
 * Which files of a store a directory has, by kind and number. It is taken first and worked on
 * afterwards: a directory is not changed while it is read.
 */
#ifndef TAMIZ_VERSION_LISTING_H
#define TAMIZ_VERSION_LISTING_H

#include "base/buf.h"
#include "env/env.h"
#include "version/filename.h"

struct listing {
    struct buf numbers[FILE_TABLE + 1]; /* by kind: u64, ascending; 0 where the kind has none */
    uint64_t largest;                   /* number of any file; 0: there is none */
};

void listing_init(struct listing *l, const struct alloc *alloc);
void listing_free(struct listing *l);

/* Of `directory`, in place of what `l` had. Names that are none of ours are passed over. */
tamiz_status listing_take(struct op *op, const tamiz_env *env, const char *directory,
                          struct listing *l);

size_t listing_count(const struct listing *l, enum file_kind kind);
/* listing_count of them, ascending; borrowed from `l`. */
const uint64_t *listing_numbers(const struct listing *l, enum file_kind kind);
bool listing_has(const struct listing *l, enum file_kind kind, uint64_t number);
/* No file that filename_parse knows. */
bool listing_is_empty(const struct listing *l);

/* Removes the files of a kind from `directory`; the first failure ends it. */
tamiz_status listing_remove(struct op *op, const tamiz_env *env, const char *directory,
                            const struct listing *l, enum file_kind kind);

#endif
