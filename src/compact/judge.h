/* SPDX-License-Identifier: MIT
 *
 * What the program's compaction filter says of a version, put into the words of a merge: a value
 * that is dropped becomes a tombstone in its place, one that is changed gets its new bytes.
 *
 * Only versions that no snapshot sees are shown to it (compact.c). One that is taken while the
 * merge runs would see them change under it: who installs the outcome looks at `dropped` and
 * `changed`, and at the snapshots there are then.
 */
#ifndef TAMIZ_COMPACT_JUDGE_H
#define TAMIZ_COMPACT_JUDGE_H

#include "base/buf.h"
#include "base/key.h"
#include "base/op.h"

/* One merge's. */
struct judge {
    tamiz_compaction_filter filter; /* judge is not NULL */
    const char *keyspace;           /* borrowed */
    uint32_t level;
    uint64_t dropped, changed; /* so far */
    struct buf value;          /* the new one */
};

static inline struct judge judge_of(const tamiz_compaction_filter *filter, const char *keyspace,
                                    uint32_t level, const struct alloc *alloc)
{
    return (struct judge){
        .filter = *filter, .keyspace = keyspace, .level = level, .value = buf_init(alloc)};
}

/* Of a version with a value: *stamp and *value as it is to be written. The value is borrowed until
 * the next call. TAMIZ_INVALID_ARGUMENT: no verdict, or a value beyond its bounds. */
tamiz_status judge_version(struct op *op, struct judge *j, struct slice key, uint64_t *stamp,
                           struct slice *value);
void judge_free(struct judge *j);

#endif
