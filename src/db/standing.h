/* SPDX-License-Identifier: MIT
 *
 * Background work that failed: its error stands until the same work succeeds, and it is tried again
 * at growing distances.
 */
#ifndef TAMIZ_DB_STANDING_H
#define TAMIZ_DB_STANDING_H

#include "db/store.h"

/* Keeps the op's words, and tells the event log. mutex held. */
void stand(struct store *s, struct standing_error *e, const struct op *op, tamiz_status st,
           const char *what);

/* Monotonic ns before which work that failed so often in a row is not tried again. */
uint64_t retry_at(const struct store *s, uint32_t failures);

#endif
