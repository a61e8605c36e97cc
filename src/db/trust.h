/* SPDX-License-Identifier: MIT
 *
 * What the filters are worth and whether they keep their promise, in words, JSON and Prometheus's
 * text: by level from the counters, by table and kind from the tallies of sampled reads.
 */
#ifndef TAMIZ_DB_TRUST_H
#define TAMIZ_DB_TRUST_H

#include "base/buf.h"
#include "db/view.h"

enum { TRUST_SIGMAS = 2 }; /* of the intervals that are shown: 95 % */

/* ,"measured_fpr":…,"measured_fpr_low":…,"measured_fpr_high":…,"expected_fpr":…: members of an
 * object; null where no absent key was asked for. */
void trust_rate_json(struct buf *out, uint64_t false_positives, uint64_t negatives,
                     double expected_false_positives);
/* "kinds":[…],"tables":[…] */
void trust_tables_json(struct buf *out, const struct version *v);
void trust_tables_prometheus(struct buf *out, const char *keyspace, const struct version *v);
/* The matrix by level and by table, and a sentence a level on what its filters are worth. */
void trust_text(struct buf *out, const tamiz_stats *stats, const struct version *v, double seconds);

/* "35 KiB", into `to`, which is returned. */
enum { TRUST_SIZE_TEXT = 24 };
const char *trust_size(char to[TRUST_SIZE_TEXT], uint64_t bytes);

#endif
