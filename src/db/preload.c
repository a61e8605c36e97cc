/* SPDX-License-Identifier: MIT */
#include "db/preload.h"

#include <assert.h>

/* The keyspace's next table from where the last one was found; those that are open already count.
 * A version that was changed since then has others in those places: one that is passed over is
 * opened by who reads it. */
static struct table_meta *next_of(struct preload *p, const struct version *v, uint64_t room)
{
    for (; p->table < v->table_count && p->bytes < room; p->table++) {
        struct table_meta *t = v->tables[p->table];
        if (table_is_loaded(t->table))
            p->bytes += table_memory(t->table);
        else
            return t;
    }
    return NULL;
}

struct table_meta *preload_pick(struct store *s, struct tamiz **db)
{
    struct preload *p = &s->preload;
    assert(mutex_held(&s->mutex));
    for (; p->keyspace < s->keyspace_count; p->keyspace++, p->table = 0) {
        struct tamiz *k = s->keyspaces[p->keyspace];
        const struct view *v = atomic_load_explicit(&k->view, memory_order_relaxed);
        struct table_meta *t =
            k->named && !k->dropped ? next_of(p, v->version, s->options.cache) : NULL;
        if (t) {
            p->table++;
            k->opening++;
            table_meta_ref(t);
            *db = k;
            return t;
        }
    }
    return NULL;
}

void preload_run(struct op *op, struct table_meta *table)
{
    (void)table_load(op, table->table);
    op_forgive(op);
}

void preload_end(struct tamiz *db, struct table_meta *table)
{
    struct store *s = db->store;
    mutex_lock(&s->mutex);
    s->preload.bytes += table_memory(table->table);
    db->opening--;
    condition_broadcast(&s->progress);
    mutex_unlock(&s->mutex);
    table_meta_unref(&s->alloc, table);
}

void preload_again(struct store *s)
{
    s->preload = (struct preload){0};
}
