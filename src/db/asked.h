/* SPDX-License-Identifier: MIT
 *
 * Background work that a caller asks for and waits for: flush now, compact this.
 */
#ifndef TAMIZ_DB_ASKED_H
#define TAMIZ_DB_ASKED_H

#include "db/view.h"

/* Seals and flushes everything that was acknowledged before the call. No lock held. */
tamiz_status db_flush(struct op *op, struct tamiz *db);
/* The same of every keyspace. */
tamiz_status db_flush_all(struct op *op, struct store *s);

#endif
