/* SPDX-License-Identifier: MIT
 *
 * The audit: a filter's "no" is not believed but checked, for one read in so many (option `audit`).
 * A filter that denies a key which is in its table hides data, and nothing else would notice.
 */
#ifndef TAMIZ_DB_AUDIT_H
#define TAMIZ_DB_AUDIT_H

#include "db/store.h"

/* Before the read: looks into every table whose filter denies the key. Where one has it, that
 * filter is never asked again, an event says so, and the read to come tells the truth. Inside an
 * epoch. */
void audit_read(struct op *op, const struct store *s, const struct version *version,
                const struct lookup *lookup);

#endif
