/* SPDX-License-Identifier: MIT
 *
 * Verifying an open store: every block of every table in the view, what the manifest says of it,
 * and the filters.
 */
#include <stdio.h>

#include "db/view.h"

/* The manifest says which tables have range deletes: of one that it forgets none would be asked. */
static void check_ranges(const struct table_meta *meta, tamiz_report *report)
{
    char text[OP_TEXT_MAX];
    const struct ranges *ranges = table_ranges_near(meta->table);
    if (!ranges || ranges->count == meta->ranges)
        return;
    (void)snprintf(text, sizeof text,
                   "%s: expected %llu range deletes as the manifest says, found %zu",
                   table_path(meta->table), (unsigned long long)meta->ranges, ranges->count);
    report->damaged++;
    if (report->find)
        report->find(report->ctx, text);
}

tamiz_status tamiz_verify(tamiz *db, tamiz_report *report)
{
    tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    if (!report || report->struct_size < sizeof *report)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "report: NULL, or not from TAMIZ_REPORT_INIT");
    struct store *s = db->store;
    struct op op;
    uint64_t seq, total = 0, done = 0;
    struct epoch_slot *slot = epoch_enter(&s->epoch);
    struct view *view = view_acquire(db, &seq);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    report->files = report->blocks = report->keys = report->damaged = report->lost_bytes = 0;
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        total += view->version->level_bytes[i];
    for (uint32_t r = 0; r < view->version->run_count && st >= 0; r++)
        for (uint32_t i = 0; i < view->version->runs[r].count && st >= 0; i++) {
            const struct table_meta *meta = view->version->runs[r].tables[i];
            st = table_verify(&op, meta->table, report);
            check_ranges(meta, report);
            if (st == TAMIZ_CORRUPTION)
                st = TAMIZ_OK; /* counted in the report; the other tables are looked at too */
            done += meta->file_size;
            if (report->progress)
                report->progress(report->ctx, done, total);
        }
    epoch_leave(slot);
    view_unref(view);
    if (st == TAMIZ_OK && report->damaged)
        return op_refuse(TAMIZ_CORRUPTION, "%s: %llu finds", s->directory,
                         (unsigned long long)report->damaged);
    return op_publish(&op, st);
}
