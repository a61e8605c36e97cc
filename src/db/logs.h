/* SPDX-License-Identifier: MIT
 *
 * The write-ahead logs that some memtable still needs, oldest first; the last one is written.
 */
#ifndef TAMIZ_DB_LOGS_H
#define TAMIZ_DB_LOGS_H

#include "db/store.h"

/* The log that is written; NULL: none yet. log_mutex held. */
static inline struct store_log *store_active_log(struct store *s)
{
    return s->log_count ? &s->logs[s->log_count - 1] : NULL;
}

/* A new log file, its name durable, appended to store->logs and from now on the one that is
 * written. It says that the logs before it hold writes up to `last_seq`: a reader that finds less
 * knows that some are missing, and sequences that no log ever had are no gap. log_mutex held. */
tamiz_status store_new_log(struct op *op, struct store *s, uint64_t last_seq);
/* Ends the log that is written and begins a new one; *number is the new one's. No lock held. */
tamiz_status store_switch_log(struct op *op, struct store *s, uint64_t *number);
/* Closes and removes logs that the manifest says are not needed any more. No lock held. */
void store_drop_logs(struct op *op, struct store *s);
/* All logs, oldest first, are on the disk. log_mutex held. */
tamiz_status store_sync_logs(struct op *op, struct store *s);

#endif
