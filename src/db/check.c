/* SPDX-License-Identifier: MIT
 *
 * Verifying an open store: every block of every table of all keyspaces, what the manifest says of
 * it, and the filters.
 */
#include <stdio.h>

#include "db/keyspace.h"
#include "db/report.h"

/* What is to be looked at: the views of all keyspaces, of one moment each. */
struct inspection {
    struct op op;
    tamiz_report *report;
    struct view **views;
    size_t count;
    uint64_t total, done; /* bytes */
};

static tamiz_status take_views(struct inspection *in, struct store *s)
{
    struct buf list = buf_init(&s->alloc);
    tamiz_status st;
    TRY(keyspaces_list(&in->op, s, &list));
    struct tamiz *const *all = (struct tamiz *const *)(const void *)list.data;
    const size_t n = list.size / sizeof(struct tamiz *);
    in->views = mem_new_array(&s->alloc, n, sizeof(struct view *));
    TRY(in->views ? TAMIZ_OK : op_fail_memory(&in->op));
    struct epoch_slot *slot = epoch_enter(&s->epoch);
    for (; in->count < n; in->count++) {
        uint64_t seq;
        in->views[in->count] = view_acquire(all[in->count], &seq);
        for (int i = 0; i < TAMIZ_LEVELS; i++)
            in->total += in->views[in->count]->version->level_bytes[i];
    }
    epoch_leave(slot);
done:
    buf_free(&list);
    return st;
}

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

static tamiz_status inspect(struct inspection *in, const struct version *v)
{
    tamiz_status st = TAMIZ_OK;
    for (uint32_t i = 0; i < v->table_count && st >= 0; i++) {
        const struct table_meta *meta = v->tables[i];
        st = table_verify(&in->op, meta->table, in->report);
        check_ranges(meta, in->report);
        if (st == TAMIZ_CORRUPTION)
            st = TAMIZ_OK; /* counted in the report; the other tables are looked at too */
        in->done += meta->file_size;
        if (in->report->progress)
            in->report->progress(in->report->ctx, in->done, in->total);
    }
    return st;
}

tamiz_status tamiz_verify(tamiz *db, tamiz_report *given)
{
    tamiz_report room, *report;
    tamiz_status st = store_check(db);
    if (st == TAMIZ_OK && !given)
        st = op_refuse(TAMIZ_INVALID_ARGUMENT, "report: NULL");
    if (st == TAMIZ_OK)
        st = report_open(given, &room, &report);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    struct inspection in = {.report = report};
    struct epoch_slot *slot = epoch_enter_at(&s->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(&in.op, &s->alloc, &slot->count);
    st = take_views(&in, s);
    for (size_t i = 0; i < in.count && st >= 0; i++)
        st = inspect(&in, in.views[i]->version);
    epoch_leave(slot);
    for (size_t i = 0; i < in.count; i++)
        view_unref(in.views[i]);
    mem_free(&s->alloc, in.views, in.count * sizeof(struct view *));
    report_close(given, report);
    if (st == TAMIZ_OK && report->damaged)
        return op_refuse(TAMIZ_CORRUPTION, "%s: %llu finds", s->directory,
                         (unsigned long long)report->damaged);
    return op_publish(&in.op, st);
}
