/* SPDX-License-Identifier: MIT
 *
 * Background work that failed: its error stands until the same work succeeds, and it is tried again
 * at growing distances. store->mutex held in all of them.
 */
#ifndef TAMIZ_DB_STANDING_H
#define TAMIZ_DB_STANDING_H

#include "db/store.h"

/* What a try came to: a success clears `e`; a failure stands in it with the op's words, and the
 * event log is told what failed. TAMIZ_CLOSED is neither: it was given up. */
void standing_judge(struct store *s, struct standing_error *e, const struct op *op, tamiz_status st,
                    const char *what);

/* Whether it may be tried now. */
bool standing_is_due(const struct store *s, const struct standing_error *e);

#endif
