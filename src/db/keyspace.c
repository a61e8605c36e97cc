/* SPDX-License-Identifier: MIT */
#include "db/keyspace.h"

#include <assert.h>

#include "db/ledger.h"

static const _Atomic unsigned char shut; /* 0: the guard of a handle whose keyspace was dropped */

/* The ledger of a keyspace that was dropped, or a new one. Who still reads through the old handle
 * does no harm there. */
static struct ledger *ledger_for(struct store *s, uint64_t block_bytes)
{
    struct tamiz *had;
    mutex_lock(&s->mutex);
    for (had = s->dropped; had && had->ledger_lent; had = had->next_dropped)
        ;
    if (had)
        had->ledger_lent = true;
    mutex_unlock(&s->mutex);
    if (!had)
        return ledger_new(s, s->options.cache, block_bytes);
    ledger_reset(had->ledger, block_bytes);
    return had->ledger;
}

struct tamiz *keyspace_new(struct op *op, struct store *s, uint64_t id, const char *name,
                           const tamiz_options *options)
{
    struct tamiz *db = mem_new_array(&s->alloc, 1, sizeof *db);
    if (!db) {
        op_fail_memory(op);
        return NULL;
    }
    db->store = s;
    db->id = id;
    db->options = *options;
    db->named = id == 0;
    atomic_init(&db->guard, s->fork_guard);
    db->busy = buf_init(&s->alloc);
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        db->cursors[i] = buf_init(&s->alloc);
    db->world = (struct table_world){.env = s->env,
                                     .alloc = &s->alloc,
                                     .epoch = &s->epoch,
                                     .cache = s->cache,
                                     .files = &s->files,
                                     .custom_filter = options->filter.custom,
                                     .log = s->options.log,
                                     .direct_io = s->options.direct_io,
                                     .verify = s->options.verify};
    db->name = mem_text(&s->alloc, name ? name : "default");
    db->ledger = ledger_for(s, options->block);
    db->slots = id ? epoch_lend(op, &s->epoch) : s->epoch.slots;
    if (db->name && db->ledger && db->slots)
        return db;
    keyspace_free(db);
    op_fail_memory(op);
    return NULL;
}

/* What only a keyspace that is used needs. */
static void free_parts(struct tamiz *db)
{
    buf_free(&db->busy);
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        buf_free(&db->cursors[i]);
}

void keyspace_free(struct tamiz *db)
{
    if (!db)
        return;
    struct store *s = db->store;
    free_parts(db);
    if (!db->ledger_lent)
        ledger_free(db->ledger);
    if (db->slots && db->id && !db->dropped)
        epoch_give_back(&s->epoch, db->slots);
    mem_free_text(&s->alloc, db->name);
    mem_free(&s->alloc, db, sizeof *db);
}

/* ---- the list ---- */

tamiz_status keyspaces_reserve(struct op *op, struct store *s, size_t count)
{
    if (count <= s->keyspace_room)
        return TAMIZ_OK;
    const size_t room = count < 2 * s->keyspace_room ? 2 * s->keyspace_room : count;
    struct tamiz **list = mem_new_array(&s->alloc, room, sizeof(struct tamiz *));
    if (!list)
        return op_fail_memory(op);
    mutex_lock(&s->mutex);
    struct tamiz **old = s->keyspaces;
    const size_t old_room = s->keyspace_room;
    if (s->keyspace_count)
        memcpy(list, old, s->keyspace_count * sizeof(struct tamiz *));
    s->keyspaces = list;
    s->keyspace_room = room;
    mutex_unlock(&s->mutex);
    mem_free(&s->alloc, old, old_room * sizeof(struct tamiz *));
    return TAMIZ_OK;
}

void keyspace_enlist(struct store *s, struct tamiz *db)
{
    assert(s->keyspace_count < s->keyspace_room);
    assert(s->keyspace_count == 0 || s->keyspaces[s->keyspace_count - 1]->id < db->id);
    s->keyspaces[s->keyspace_count++] = db;
}

tamiz_options keyspace_options_default(const struct store *s)
{
    tamiz_options o = s->options;
    o.compaction_filter = (tamiz_compaction_filter){NULL, NULL};
    return o;
}

tamiz_status keyspaces_meet(struct op *op, struct store *s, const struct manifest_state *state)
{
    tamiz_status st = keyspaces_reserve(op, s, state->tree_count);
    const tamiz_options options = keyspace_options_default(s);
    for (size_t i = 1; st == TAMIZ_OK && i < state->tree_count; i++) {
        const struct manifest_tree *tree = &state->trees[i];
        struct tamiz *db = keyspace_new(op, s, tree->id, tree->name, &options);
        if (db)
            keyspace_enlist(s, db);
        else
            st = TAMIZ_OUT_OF_MEMORY;
    }
    return st;
}

static size_t place_of(const struct store *s, uint64_t id)
{
    size_t low = 0, high = s->keyspace_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->keyspaces[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct tamiz *keyspace_find(const struct store *s, uint64_t id)
{
    const size_t at = place_of(s, id);
    return at < s->keyspace_count && s->keyspaces[at]->id == id ? s->keyspaces[at] : NULL;
}

void keyspace_retire(struct tamiz *db, struct view *nothing)
{
    struct store *s = db->store;
    const size_t at = place_of(s, db->id);
    atomic_store_explicit(&db->guard, &shut, memory_order_relaxed);
    atomic_store_explicit(&db->dropped, true, memory_order_relaxed);
    s->keyspace_count--;
    memmove(s->keyspaces + at, s->keyspaces + at + 1,
            (s->keyspace_count - at) * sizeof(struct tamiz *));
    s->flush_turn = s->merge_turn = 0;
    epoch_give_back(&s->epoch, db->slots);
    view_publish(db, nothing);
    db->next_dropped = s->dropped;
    s->dropped = db;
}

tamiz_status keyspaces_list(struct op *op, struct store *s, struct buf *out)
{
    mutex_lock(&s->mutex);
    buf_append(out, s->keyspaces, s->keyspace_count * sizeof(struct tamiz *));
    mutex_unlock(&s->mutex);
    return out->failed ? op_fail_memory(op) : TAMIZ_OK;
}

tamiz_status store_refuse(const struct tamiz *db)
{
    if (atomic_load_explicit(&db->dropped, memory_order_relaxed))
        return op_refuse(TAMIZ_CLOSED, "%s: keyspace %s was dropped", db->store->directory,
                         db->name);
    return op_refuse(TAMIZ_INVALID_ARGUMENT,
                     "%s: opened before fork(); a child opens its own handle",
                     db->store->directory);
}
