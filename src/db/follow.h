/* SPDX-License-Identifier: MIT
 *
 * Reading a store that another process may be writing: no lock, nothing changed, nothing removed.
 *
 * What the manifest says at one moment is only good as long as its files are there, and the writer
 * removes tables and logs once a newer edit is durable. So a picture is taken like this: look at
 * the manifest in force; read it; open all logs and tables it needs, which then stay readable
 * whatever happens to their names; look again. Where the manifest has not moved in between, nothing
 * that the picture needs had been removed before it was opened; else it is taken anew.
 *
 * Tables that the reader had before keep their handles, and so what is in memory.
 */
#ifndef TAMIZ_DB_FOLLOW_H
#define TAMIZ_DB_FOLLOW_H

#include "db/view.h"

/* The first picture of a read-only store: view, sequence, state. TAMIZ_NOT_FOUND: no store there.
 */
tamiz_status follow_open(struct op *op, struct store *s);

#endif
