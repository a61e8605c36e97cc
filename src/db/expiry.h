/* SPDX-License-Identifier: MIT
 *
 * Values for a time. Whether one has expired is judged when it is read, or merged, by one clock a
 * store, which never goes back while the store is open: what was seen expired, or was dropped for
 * it, stays so. docs/expiry.md
 */
#ifndef TAMIZ_DB_EXPIRY_H
#define TAMIZ_DB_EXPIRY_H

#include "base/expiry.h"
#include "db/store.h"

/* Microseconds since 1970 by the env's clock, or the latest that this store has seen, if the clock
 * has stepped back. Any thread. */
uint64_t store_now(struct store *s);

/* The stored value of a version of KIND_EXPIRING. TAMIZ_OK: *value is the user's;
 * TAMIZ_NOT_FOUND: it has expired; TAMIZ_CORRUPTION: it is too short to be one. *now_us is when
 * the operation reads: 0 until it needs to know. */
tamiz_status expiry_judge(struct op *op, struct store *s, uint64_t *now_us, struct slice *value);

/* The same for the version that a point read found, of whatever kind but a plain put. Tells the
 * listeners. */
tamiz_status expiry_answer(struct op *op, struct store *s, uint64_t *now_us, uint64_t stamp,
                           struct slice *value) __attribute__((cold, noinline));

#endif
