/* SPDX-License-Identifier: MIT
 *
 * From a directory to a store that can be written: which tables, which logs, what to replay, what
 * is garbage.
 */
#ifndef TAMIZ_DB_RECOVER_H
#define TAMIZ_DB_RECOVER_H

#include "db/view.h"

/* Makes the keyspaces with their views, sequence, numbers and logs from what the directory holds.
 * TAMIZ_NOT_FOUND: no store there and none wanted. */
tamiz_status recover(struct op *op, struct store *s);

/* Removes files of the store that nothing names: half-built tables, finished logs, old manifests.
 * What can't be removed is left. */
void remove_garbage(struct op *op, struct store *s);

#endif
