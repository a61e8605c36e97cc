/* SPDX-License-Identifier: MIT */
#include "db/audit.h"

/* Does the table have the key that its filter denied? Told and counted apart: of the read that is
 * audited this is no part. */
static bool denied_wrongly(struct op *op, struct table *t, const struct lookup *lookup, int level)
{
    const struct table_read how = {.level = level, .purpose = IO_DATA};
    struct counters apart = {0};
    struct op own;
    uint64_t stamp;
    struct slice value;
    struct cached_block *pinned = NULL;
    op_init(&own, op->alloc, &apart);
    const tamiz_status st = table_get(&own, t, lookup, &how, &stamp, &value, &pinned);
    cached_block_unpin(pinned);
    counter_add(&op->count->io[IO_DATA].reads, counter_get(&apart.io[IO_DATA].reads));
    counter_add(&op->count->io[IO_DATA].read_bytes, counter_get(&apart.io[IO_DATA].read_bytes));
    counter_add(&op->count->filter_audits, 1);
    return st == TAMIZ_OK; /* what goes wrong here would not have been read: no error of the read */
}

void audit_read(struct op *op, const struct store *s, const struct version *version,
                const struct lookup *lookup)
{
    for (uint32_t r = 0; r < version->run_count; r++) {
        const struct run *run = &version->runs[r];
        const struct table_meta *meta = run_find(run, lookup->key, run_word(run, lookup->key));
        if (!meta || !table_is_loaded(meta->table) || table_peek(meta->table, lookup) != TABLE_NO ||
            !denied_wrongly(op, meta->table, lookup, (int)version->runs[r].level))
            continue;
        table_quarantine(meta->table);
        counter_add(&op->count->filter_denials, 1);
        store_event(s, TAMIZ_EVENT_FILTER_DENIED,
                    "%s: the filter denied a key that is in the table; it is not asked any more",
                    table_path(meta->table));
    }
}
