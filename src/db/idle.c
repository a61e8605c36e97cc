/* SPDX-License-Identifier: MIT */
#include "db/idle.h"

#include "db/scan.h"

enum { LOOK_NS = 100 * 1000 * 1000 }; /* between two looks at what reads paid */

bool idle_is(struct tamiz *db)
{
    struct quiet *q = &db->quiet;
    const uint64_t now = env_monotonic_ns(db->store->env);
    const uint64_t count = memtable_count(db->active->memtable);
    if (q->active != db->active || q->count != count) {
        q->active = db->active;
        q->count = count;
        q->since_ns = now;
    }
    return db->options.idle_merge > 0 &&
           now - q->since_ns >= (uint64_t)db->options.idle_merge * 1000000;
}

void idle_rest(struct tamiz *db)
{
    db->quiet.rest = db->view_changes;
    toll_forget(&db->quiet.toll);
}

bool idle_at_rest(const struct tamiz *db)
{
    return db->options.idle_merge == 0 || db->quiet.rest == db->view_changes;
}

/* Of all threads, iterators that are open and those that are closed. */
static struct toll_reads reads_so_far(const struct tamiz *db)
{
    struct toll_reads sum = {.seeks = counter_get(&db->ended.seeks)};
    for (int i = 0; i < EPOCH_SLOTS; i++) {
        const struct counters *c = &db->slots[i].count;
        const uint64_t gets = counter_get(&c->gets), above = counter_get(&c->memtable_hits);
        sum.gets += gets > above ? gets - above : 0;
    }
    for (const struct tamiz_iter *it = db->store->iters; it; it = it->following)
        if (it->db == db)
            sum.seeks += counter_get(&it->count.seeks);
    return sum;
}

uint64_t idle_paid(struct tamiz *db)
{
    struct quiet *q = &db->quiet;
    const struct version *v = atomic_load_explicit(&db->view, memory_order_relaxed)->version;
    if (v->run_count < 2 || idle_at_rest(db)) {
        q->counting = false;
        return 0;
    }
    const uint64_t now = env_monotonic_ns(db->store->env);
    if (now >= q->look_ns) {
        toll_look(&q->toll, reads_so_far(db), q->counting ? v->run_count : 1);
        q->look_ns = now + LOOK_NS;
        q->counting = true;
    }
    if (q->changes != db->view_changes)
        toll_changed(&q->toll);
    q->changes = db->view_changes;
    return toll_buys(&q->toll);
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
