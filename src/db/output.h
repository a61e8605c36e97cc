/* SPDX-License-Identifier: MIT
 *
 * The tables that flushes and merges write: how they are built, and the edit that makes them part
 * of the tree.
 */
#ifndef TAMIZ_DB_OUTPUT_H
#define TAMIZ_DB_OUTPUT_H

#include "compact/compact.h"
#include "db/view.h"

/* How the keyspace's options want tables of a level; its filter is output_filter's to choose. */
struct compact_output output_of(struct tamiz *db, uint32_t level, uint64_t run,
                                enum io_purpose purpose);

/* The filters of what job `j` writes; NULL: of a flush of `keys`. No lock held. */
tamiz_status output_filter(struct op *op, struct tamiz *db, const struct job *j, uint64_t keys,
                           tamiz_filter_policy *filter);

/* A number for a new run, newer than all. No lock held. */
uint64_t output_next_run(struct store *s);

/* Of a list of struct table_meta *: the bytes of their files. */
uint64_t output_bytes(const struct buf *tables);

/* Out: `removed` (u64 numbers; NULL: none); in: `added` (struct table_meta *). Borrows both. */
struct version_edit output_edit(const struct buf *removed, const struct buf *added);

/* They are installed: the versions have references of their own, and the list becomes empty. */
void output_installed(const struct op *op, struct store *s, struct buf *tables);

#endif
