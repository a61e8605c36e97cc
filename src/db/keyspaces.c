/* SPDX-License-Identifier: MIT
 *
 * Keyspaces as the public calls make and drop them. Both are done by a writer among writers, so
 * that no write can come between, with one edit of the manifest: before it the keyspace is not
 * there, or all of it is. Its id is never used again, so that what logs still have of one that was
 * dropped is known for what it is.
 */
#include <string.h>

#include "db/background.h"
#include "db/install.h"
#include "db/keyspace.h"
#include "db/logs.h"
#include "db/options.h"
#include "db/preload.h"
#include "db/write.h"

static const char default_name[] = "default";

/* ---- names and options ---- */

static tamiz_status check_name(const char *name)
{
    const size_t size = name ? strlen(name) : 0;
    if (size == 0 || size > KEYSPACE_NAME_MAX)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "a keyspace's name of %zu bytes: want 1..%d", size,
                         KEYSPACE_NAME_MAX);
    const uint8_t *fault = keyspace_name_fault(slice_of(name, size));
    if (fault)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "a keyspace's name with the byte 0x%02x: want no control bytes, quotes "
                         "or backslashes",
                         (unsigned)*fault);
    return TAMIZ_OK;
}

/* By name, among those that can be used; NULL: none. mutex held, or who changes the list. */
static struct tamiz *find_named(const struct store *s, const char *name)
{
    for (size_t i = 0; i < s->keyspace_count; i++)
        if (strcmp(s->keyspaces[i]->name, name) == 0)
            return s->keyspaces[i];
    return NULL;
}

/* What is the store's stays as it is there. */
static void adopt_shared(tamiz_options *o, const tamiz_options *stores)
{
    o->create_if_missing = stores->create_if_missing;
    o->error_if_exists = stores->error_if_exists;
    o->read_only = stores->read_only;
    o->direct_io = stores->direct_io;
    o->verify = stores->verify;
    o->cache = stores->cache;
    o->threads = stores->threads;
    o->sync = stores->sync;
    o->sync_interval_ms = stores->sync_interval_ms;
    o->max_open_files = stores->max_open_files;
    o->log = stores->log;
    o->env = stores->env;
    o->allocator = stores->allocator;
    o->audit = stores->audit;
}

/* Would the two make the same trees? */
static bool options_alike(const tamiz_options *a, const tamiz_options *b)
{
    struct buf x = buf_init(&alloc_libc), y = buf_init(&alloc_libc);
    options_print(&x, a);
    options_print(&y, b);
    const bool alike = !x.failed && !y.failed && slice_equal(buf_slice(&x), buf_slice(&y)) &&
                       a->filter.custom == b->filter.custom &&
                       a->compaction_filter.judge == b->compaction_filter.judge &&
                       a->compaction_filter.ctx == b->compaction_filter.ctx;
    buf_free(&x);
    buf_free(&y);
    return alike;
}

/* ---- opening one that is there ---- */

/* The first time: its options count from now on, and it is merged like any other. mutex held. */
static void take_name(struct tamiz *db, const tamiz_options *options)
{
    struct store *s = db->store;
    while (db->flushing || db->merging > 0)
        store_wait(s, &s->progress, 1000);
    db->options = *options;
    db->world.custom_filter = options->filter.custom;
    db->named = true;
    db->pace.since = UINT64_MAX;
    preload_again(s);
    store_call_work(s);
}

static tamiz_status refuse_other_options(const struct tamiz *db)
{
    return op_refuse(TAMIZ_INVALID_ARGUMENT,
                     "%s: keyspace %s is open with other options: want the same, or NULL",
                     db->store->directory, db->name);
}

/* *found NULL: it is not there. */
static tamiz_status open_named(struct store *s, const char *name, const tamiz_options *options,
                               const tamiz_options *taken, bool must_be_new, struct tamiz **found)
{
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->mutex);
    struct tamiz *db = *found = find_named(s, name);
    if (db && must_be_new)
        st = op_refuse(TAMIZ_INVALID_ARGUMENT, "%s: keyspace %s is there (error_if_exists)",
                       s->directory, name);
    else if (db && !db->named)
        take_name(db, taken);
    else if (db && options && !options_alike(&db->options, taken))
        st = refuse_other_options(db);
    mutex_unlock(&s->mutex);
    return st;
}

/* ---- making ---- */

struct making {
    const char *name;
    const tamiz_options *options;
    struct tamiz *made;
};

/* All that a new keyspace needs but the manifest. Freed by newborn_free. */
struct newborn {
    struct tamiz *db;
    struct mem_ref *memtable;
    struct view *view;
};

static void newborn_free(struct store *s, struct newborn *n)
{
    view_unref(n->view);
    mem_ref_unref(s, n->memtable);
    keyspace_free(n->db);
}

static tamiz_status newborn_make(struct op *op, struct store *s, const struct making *m,
                                 uint64_t id, struct newborn *n)
{
    const uint64_t log = atomic_load_explicit(&s->active_log, memory_order_relaxed);
    *n = (struct newborn){.db = keyspace_new(op, s, id, m->name, m->options)};
    if (!n->db)
        return TAMIZ_OUT_OF_MEMORY;
    n->db->named = true;
    n->memtable = mem_ref_new(op, n->db, log);
    return n->memtable ? keyspaces_reserve(op, s, s->keyspace_count + 1) : TAMIZ_OUT_OF_MEMORY;
}

/* install_mutex held. */
static tamiz_status make_durable(struct op *op, struct store *s, const struct making *m,
                                 struct newborn *n)
{
    const uint64_t id = n->db->id;
    const struct manifest_keyspace made = {.id = id, .name = slice_of_text(m->name)};
    struct manifest_edit record = {.has_next_keyspace = true,
                                   .next_keyspace = id + 1,
                                   .keyspaces = &made,
                                   .keyspace_count = 1};
    tamiz_status st = manifest_tree_add(op, &s->alloc, &s->state, id, made.name);
    if (st != TAMIZ_OK)
        return st;
    s->state.next_keyspace = id + 1; /* for good: a failed edit may have been seen */
    struct manifest_tree *tree = manifest_tree_find(&s->state, id);
    n->view = view_new(op, s, &n->memtable, 1, tree->version);
    st = n->view ? install_record(op, s, &record) : TAMIZ_OUT_OF_MEMORY;
    if (st == TAMIZ_OK)
        return TAMIZ_OK;
    struct manifest_tree gone = manifest_tree_take(&s->state, id);
    manifest_tree_free(&s->alloc, &gone);
    install_settle(op, s);
    return st;
}

static tamiz_status make_work(struct op *op, struct writer *w)
{
    struct making *m = w->work_ctx;
    struct store *s = w->db->store;
    struct newborn n = {.db = NULL};
    mutex_lock(&s->install_mutex);
    const uint64_t id = s->state.next_keyspace ? s->state.next_keyspace : 1;
    tamiz_status st = TAMIZ_OK;
    m->made = find_named(s, m->name); /* by another thread, meanwhile */
    if (!m->made) {
        st = newborn_make(op, s, m, id, &n);
        if (st == TAMIZ_OK)
            st = make_durable(op, s, m, &n);
    }
    if (n.db && st == TAMIZ_OK) {
        mutex_lock(&s->mutex);
        view_publish(n.db, n.view);
        keyspace_enlist(s, n.db);
        mutex_unlock(&s->mutex);
        m->made = n.db;
        n.db = NULL;
        n.view = NULL;
    }
    mutex_unlock(&s->install_mutex);
    newborn_free(s, &n);
    return st;
}

/* Runs `work` alone among the writers, with the counters of `db`. */
static tamiz_status run_alone(struct tamiz *db,
                              tamiz_status (*work)(struct op *op, struct writer *w), void *ctx)
{
    struct store *s = db->store;
    struct op op;
    struct writer w = {.db = db, .trees = &w.db, .work = work, .work_ctx = ctx};
    struct epoch_slot *slot = epoch_enter_at(&s->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    const tamiz_status st = op_publish(&op, db_write(&op, &w));
    epoch_leave(slot);
    return st;
}

tamiz_status tamiz_keyspace_open(tamiz *db, const char *name, const tamiz_options *options,
                                 tamiz **keyspace)
{
    if (!keyspace)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "keyspace: NULL where the handle should go");
    *keyspace = NULL;
    tamiz_options taken;
    tamiz_status st = store_check(db);
    if (st == TAMIZ_OK)
        st = check_name(name);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    taken = keyspace_options_default(s);
    if (options)
        st = options_take(options, &taken);
    const bool create = !options || taken.create_if_missing;
    const bool must_be_new = options && taken.error_if_exists;
    adopt_shared(&taken, &s->options);
    if (st == TAMIZ_OK)
        st = open_named(s, name, options, &taken, must_be_new, keyspace);
    if (st != TAMIZ_OK || *keyspace) {
        if (st != TAMIZ_OK)
            *keyspace = NULL;
        return st;
    }
    if (s->options.read_only || !create)
        return op_refuse(TAMIZ_NOT_FOUND, "%s: no keyspace %s", s->directory, name);
    struct making m = {.name = name, .options = &taken};
    st = run_alone(s->first, make_work, &m);
    if (st == TAMIZ_OK)
        *keyspace = m.made;
    return st;
}

/* ---- dropping ---- */

struct dropping {
    const char *name;
    struct tamiz *db;
};

/* No job of it begins any more, and those that run are cancelled and waited for. */
static void stop_jobs(struct tamiz *db)
{
    struct store *s = db->store;
    mutex_lock(&s->mutex);
    atomic_store_explicit(&db->dropped, true, memory_order_relaxed);
    condition_broadcast(&s->progress);
    while (db->flushing || db->merging > 0 || db->opening > 0)
        store_wait(s, &s->progress, 1000);
    mutex_unlock(&s->mutex);
}

/* install_mutex held. */
static tamiz_status drop_durably(struct op *op, struct store *s, struct tamiz *db,
                                 struct obsolete **obsolete)
{
    struct manifest_tree tree = manifest_tree_take(&s->state, db->id);
    const struct manifest_keyspace gone = {.id = db->id, .dropped = true};
    const uint64_t log_before = s->state.log_number;
    struct manifest_edit record = {.keyspaces = &gone, .keyspace_count = 1};
    tamiz_status st = TAMIZ_OK;
    for (uint32_t i = 0; i < tree.version->table_count; i++)
        TRY(obsolete_add(op, s, tree.version->tables[i], obsolete));
    install_advance_logs(s, db);
    record.has_log_number = s->state.log_number != log_before;
    record.log_number = s->state.log_number;
    TRY(install_record(op, s, &record));
    manifest_tree_free(&s->alloc, &tree);
done:
    if (st != TAMIZ_OK) {
        manifest_tree_put_back(&s->state, tree);
        s->state.log_number = log_before;
        install_settle(op, s);
    }
    return st;
}

/* All that was written is on the disk, and a new log says up to where that goes: else a disk that
 * lost the end would leave a drop without what was before it, and nobody could tell. */
static tamiz_status end_logs(struct op *op, struct store *s)
{
    uint64_t number;
    tamiz_status st = store_secure_logs(op, s);
    if (st != TAMIZ_OK)
        return st;
    st = store_switch_log(op, s, &number);
    mutex_lock(&s->mutex);
    s->moving_on |= atomic_load_explicit(&s->stray_log, memory_order_relaxed);
    mutex_unlock(&s->mutex);
    return st;
}

static tamiz_status drop_work(struct op *op, struct writer *w)
{
    struct dropping *d = w->work_ctx;
    struct store *s = w->db->store;
    struct obsolete *obsolete = NULL;
    struct tamiz *db = find_named(s, d->name); /* only writers change the list */
    if (!db) {
        op_fail(op, TAMIZ_NOT_FOUND, "%s: no keyspace %s", s->directory, d->name);
        return TAMIZ_NOT_FOUND;
    }
    /* What was written before the drop is durable before it is: else a power cut could leave what
     * came last without what was before, and who moved data to another keyspace would have lost
     * both. */
    tamiz_status st = end_logs(op, s);
    if (st != TAMIZ_OK)
        return st;
    struct view *nothing = view_nothing(op, s);
    if (!nothing)
        return TAMIZ_OUT_OF_MEMORY;
    stop_jobs(db);
    mutex_lock(&s->install_mutex);
    st = drop_durably(op, s, db, &obsolete);
    mutex_lock(&s->mutex);
    if (st == TAMIZ_OK) {
        keyspace_retire(db, nothing);
        obsolete_join(s, obsolete);
        obsolete = NULL;
        nothing = NULL;
    } else {
        atomic_store_explicit(&db->dropped, false, memory_order_relaxed);
    }
    condition_broadcast(&s->progress);
    mutex_unlock(&s->mutex);
    mutex_unlock(&s->install_mutex);
    if (st != TAMIZ_OK)
        install_doubt(s);
    obsolete_free(s, obsolete);
    view_unref(nothing);
    return st;
}

tamiz_status tamiz_keyspace_drop(tamiz *db, const char *name)
{
    tamiz_status st = store_check(db);
    if (st == TAMIZ_OK)
        st = check_name(name);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    if (strcmp(name, default_name) == 0)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "%s: the default keyspace is there as long as its store", s->directory);
    if (s->options.read_only)
        return op_refuse(TAMIZ_READ_ONLY, "%s: opened read-only", s->directory);
    struct dropping d = {.name = name};
    st = run_alone(s->first, drop_work, &d);
    if (st == TAMIZ_NOT_FOUND)
        return op_refuse(TAMIZ_NOT_FOUND, "%s: no keyspace %s", s->directory, name);
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, &s->alloc, &nowhere);
    if (st == TAMIZ_OK)
        store_drop_logs(&op, s);
    store_collect(s);
    return st;
}
