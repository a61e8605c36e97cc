/* SPDX-License-Identifier: MIT
 *
 * Changing the tree, one change at a time: apply the edit to the newest version, make it durable in
 * the manifest, show it to readers as a new view.
 */
#ifndef TAMIZ_DB_INSTALL_H
#define TAMIZ_DB_INSTALL_H

#include "db/view.h"

/*
 * `added` and `removed` as in version_edit. `flushed`: the memtable whose contents the added tables
 * have, which leaves the view (NULL: none). `log_number`: 0, or logs below it are not needed any
 * more. On failure nothing changed for readers; the added tables' files may be named by the
 * manifest (a failed sync) and are left for the next open to judge unless the manifest is settled.
 */
tamiz_status install(struct op *op, struct tamiz *db, const struct version_edit *edit,
                     struct mem_ref *flushed, uint64_t log_number);

/* Removes the files of tables that were built but never installed. */
void discard_tables(struct op *op, struct store *s, struct buf *tables);

#endif
