/* SPDX-License-Identifier: MIT */
#include "db/idle.h"

bool idle_is(struct tamiz *db)
{
    struct quiet *q = &db->quiet;
    const uint64_t now = env_monotonic_ns(db->store->env);
    const uint64_t count = memtable_count(db->active->memtable);
    if (q->active != db->active || q->count != count)
        *q = (struct quiet){.active = db->active, .count = count, .since_ns = now, .rest = q->rest};
    return db->options.idle_merge > 0 &&
           now - q->since_ns >= (uint64_t)db->options.idle_merge * 1000000;
}

void idle_rest(struct tamiz *db)
{
    db->quiet.rest = db->view_changes;
}

bool idle_at_rest(const struct tamiz *db)
{
    return db->options.idle_merge == 0 || db->quiet.rest == db->view_changes;
}

/* Work that no other thread does while the merge runs: a flush, where there is only one thread, and
 * a merge of a level 0 that has become full. */
static bool is_urgent(const struct tamiz *db)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    return (db->store->options.threads == 1 && v->memtable_count > 1) ||
           (db->named && db->options.compaction != TAMIZ_COMPACTION_OFF &&
            v->version->level_runs[0] >= db->options.level0_runs);
}

void idle_yield(struct store *s)
{
    for (size_t i = 0; s->idle_merging && i < s->keyspace_count; i++)
        if (is_urgent(s->keyspaces[i]))
            atomic_store_explicit(&s->hurry, true, memory_order_relaxed);
}
