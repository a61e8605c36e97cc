/* SPDX-License-Identifier: MIT
 *
 * Statistics in the text format of Prometheus (exposition format 0.0.4): a TYPE line a metric, its
 * samples behind it and nowhere else, one label set once. Names are those of tamiz_stats.
 */
#ifndef TAMIZ_DB_PROMETHEUS_H
#define TAMIZ_DB_PROMETHEUS_H

#include "base/buf.h"
#include "db/view.h"

/* `keyspace`: a name without quotes, backslashes and control bytes. */
void prometheus_print(struct buf *out, const char *keyspace, const tamiz_stats *s,
                      const struct version *v);

#endif
