/* SPDX-License-Identifier: MIT
 *
 * The newest writes, sorted, in memory. One writer at a time; any number of readers, without locks,
 * at the same time. A filter in front answers most searches for keys that are not here with one
 * cache line.
 */
#ifndef TAMIZ_MEM_MEMTABLE_H
#define TAMIZ_MEM_MEMTABLE_H

#include "base/iter.h"
#include "base/key.h"
#include "base/op.h"
#include "base/ranges.h"
#include "base/skyline.h"

struct memtable;

/* `expected_bytes`: about how large it will grow; sizes the filter. Freed by memtable_free once no
 * reader is left. NULL: memory is out. */
struct memtable *memtable_new(const struct alloc *alloc, size_t expected_bytes);
void memtable_free(struct memtable *m);

/* Adds one version, or, of KIND_RANGE_DELETE, one delete of [key, value); `hash` is hash_key(key).
 * Stamps of one key grow, those of range deletes too. TAMIZ_OUT_OF_MEMORY leaves it as it was. */
tamiz_status memtable_add(struct op *op, struct memtable *m, struct slice key, uint64_t hash,
                          uint64_t stamp, struct slice value);

/* The newest version at or below lookup->stamp_max. TAMIZ_OK: *stamp and *value (borrowed, as long
 * as the memtable) are its own, tombstones included; where a range delete is what the memtable
 * knows last of the key, the stamp is its own, of KIND_DELETE. TAMIZ_NOT_FOUND: never heard of the
 * key. Tells its step. */
tamiz_status memtable_get(struct op *op, const struct memtable *m, const struct lookup *lookup,
                          uint64_t *stamp, struct slice *value);

/* Of up to 64 keys by their hashes: bit i is 0 where memtable_get() has never heard of key i. Tells
 * no step. */
uint64_t memtable_sift(const struct memtable *m, const uint64_t *hashes, size_t n);

/* Has it a version? Range deletes are none. Any thread: whoever knows of a sequence sees that of
 * all up to it. */
bool memtable_used(const struct memtable *m);

/* Memory that its versions and its filter take; any thread. Held is up to a sixteenth of
 * expected_bytes more: the chunk that fills next. */
size_t memtable_bytes(const struct memtable *m);
uint64_t memtable_count(const struct memtable *m); /* versions and range deletes; any thread */

/* What its range deletes up to `seq` make together; NULL: there are none. Any thread. */
const struct skyline *memtable_skyline(const struct memtable *m, uint64_t seq);
/* Appends a struct range_delete each to `list`, keys borrowed from the memtable. Any thread. */
void memtable_ranges_list(const struct memtable *m, struct buf *list);

/* Sequence of the newest version, range deletes not counted; any thread. */
uint64_t memtable_newest(const struct memtable *m);

/* In version order, without range deletes. Sees all that was added before it was opened; of what is
 * added later, some: whoever walks is bounded by a stamp. NULL: memory is out (recorded in op). */
struct iter *memtable_iter(struct op *op, const struct memtable *m);

#endif
