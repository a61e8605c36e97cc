/* SPDX-License-Identifier: MIT */
#include "db/install.h"

#include <assert.h>

#include "db/logs.h"
#include "db/snapshot.h"

/* ---- which logs are needed ---- */

static bool leaves(const struct tree_change *c, const struct mem_ref *m)
{
    for (size_t i = 0; c && i < c->flushed_count; i++)
        if (c->flushed[i] == m)
            return true;
    return false;
}

/* The oldest log that a memtable of the keyspace needs, once those that `c` flushes are gone. The
 * active log is always needed: what a leader is writing to it is in no memtable yet. mutex held. */
static uint64_t logs_needed(const struct store *s, const struct tamiz *db,
                            const struct tree_change *c)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    uint64_t least = atomic_load_explicit(&s->active_log, memory_order_relaxed);
    for (uint32_t i = 0; v && i < v->memtable_count; i++) {
        const struct mem_ref *m = v->memtables[i];
        if (!leaves(c, m) && memtable_count(m->memtable) > 0 && m->first_log < least)
            least = m->first_log;
    }
    return least;
}

static const struct tree_change *change_of(const struct tree_change *changes, size_t n,
                                           const struct tamiz *db)
{
    for (size_t i = 0; i < n; i++)
        if (changes[i].db == db)
            return &changes[i];
    return NULL;
}

/* ---- what is being installed ---- */

/* A change on its way: the version and the view it makes, and what it replaces. */
struct installing {
    const struct tree_change *change;
    struct manifest_tree *tree;
    struct version *version; /* the new one; once it is in the state: the old one */
    uint64_t log_number;     /* likewise */
    struct view *view;
    struct obsolete *obsolete;
};

tamiz_status obsolete_add(struct op *op, struct store *s, struct table_meta *meta,
                          struct obsolete **list)
{
    struct obsolete *o = mem_new(&s->alloc, sizeof *o);
    if (!o)
        return op_fail_memory(op);
    table_meta_ref(meta);
    *o = (struct obsolete){meta, *list};
    *list = o;
    return TAMIZ_OK;
}

/* Remembers removed tables until nobody reads them. The references are taken before anything
 * becomes durable. */
static tamiz_status obsolete_collect(struct op *op, struct store *s, const struct version *base,
                                     const struct version_edit *edit, struct obsolete **list)
{
    for (size_t i = 0; i < edit->removed_count; i++) {
        bool moved = false;
        for (size_t k = 0; k < edit->added_count; k++)
            moved |= edit->added[k]->number == edit->removed[i];
        struct table_meta *meta = version_table(base, edit->removed[i]);
        if (moved || !meta)
            continue; /* a moved table keeps its file; version_apply refuses unknown ones */
        const tamiz_status st = obsolete_add(op, s, meta, list);
        if (st != TAMIZ_OK)
            return st;
    }
    return TAMIZ_OK;
}

void obsolete_free(struct store *s, struct obsolete *list)
{
    while (list) {
        struct obsolete *next = list->next;
        table_meta_unref(&s->alloc, list->meta);
        mem_free(&s->alloc, list, sizeof *list);
        list = next;
    }
}

void obsolete_join(struct store *s, struct obsolete *list)
{
    while (list) {
        struct obsolete *next = list->next;
        list->next = s->obsolete;
        s->obsolete = list;
        list = next;
    }
}

static tamiz_status prepare(struct op *op, struct store *s, const struct tree_change *change,
                            struct installing *in)
{
    tamiz_status st = TAMIZ_OK;
    *in = (struct installing){.change = change,
                              .tree = manifest_tree_find(&s->state, change->db->id)};
    if (!in->tree)
        return op_fail(op, TAMIZ_CLOSED, "%s: keyspace %s was dropped", s->directory,
                       change->db->name);
    in->log_number = in->tree->log_number;
    in->view = view_reserve(op, s);
    TRY(in->view ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(obsolete_collect(op, s, in->tree->version, &change->tables, &in->obsolete));
    TRY(version_apply(op, &s->alloc, in->tree->version, &change->tables, &in->version));
    TRY(version_attach(op, in->version, &change->db->world, s->directory));
done:
    return st;
}

/* Version and log number of the state and of `in` change places: once for the picture after, once
 * more to take it back. */
static void exchange(struct installing *in)
{
    struct version *version = in->tree->version;
    const uint64_t log_number = in->tree->log_number;
    in->tree->version = in->version;
    in->tree->log_number = in->log_number;
    in->version = version;
    in->log_number = log_number;
}

/* The view after: without what was flushed, over the new version. mutex held. */
static void show(struct installing *in)
{
    struct tamiz *db = in->change->db;
    const struct view *now = atomic_load_explicit(&db->view, memory_order_relaxed);
    struct mem_ref *list[VIEW_ROOM];
    uint32_t count = 0;
    for (uint32_t i = 0; now && i < now->memtable_count; i++)
        if (!leaves(in->change, now->memtables[i]))
            list[count++] = now->memtables[i];
    view_fill(in->view, list, count, in->tree->version);
    view_publish(db, in->view);
    in->view = NULL;
    db->pace.since = UINT64_MAX; /* work it out anew */
    obsolete_join(db->store, in->obsolete);
    in->obsolete = NULL;
}

/* What logs will be needed for, of every keyspace whose memtables were flushed, and of all. */
static void work_out_logs(struct store *s, struct installing *list, size_t n,
                          const struct tree_change *changes, uint64_t log_number)
{
    mutex_lock(&s->mutex);
    uint64_t least = log_number;
    for (size_t i = 0; !log_number && i < s->keyspace_count; i++) {
        const struct tamiz *db = s->keyspaces[i];
        const uint64_t needed = logs_needed(s, db, change_of(changes, n, db));
        least = least && least < needed ? least : needed;
    }
    for (size_t i = 0; i < n; i++)
        if (changes[i].flushed_count)
            list[i].log_number =
                log_number ? log_number : logs_needed(s, changes[i].db, &changes[i]);
    mutex_unlock(&s->mutex);
    if (least > s->state.log_number)
        s->state.log_number = least;
}

void install_advance_logs(struct store *s, const struct tamiz *without)
{
    uint64_t least = 0;
    mutex_lock(&s->mutex);
    for (size_t i = 0; i < s->keyspace_count; i++) {
        if (s->keyspaces[i] == without)
            continue;
        const uint64_t needed = logs_needed(s, s->keyspaces[i], NULL);
        least = least && least < needed ? least : needed;
    }
    mutex_unlock(&s->mutex);
    if (least > s->state.log_number)
        s->state.log_number = least;
}

/* What was judged changes for all who come from now on: nobody may have seen it otherwise and still
 * be there. From here until it is shown no snapshot is taken. */
static tamiz_status bar_snapshots(struct op *op, struct store *s, const struct tree_change *changes,
                                  size_t n, bool *barred)
{
    for (size_t i = 0; i < n && !*barred; i++) {
        if (!changes[i].judged)
            continue;
        mutex_lock(&s->mutex);
        *barred = snapshots_bar(s, changes[i].ticket);
        mutex_unlock(&s->mutex);
        if (!*barred)
            return op_fail(op, TAMIZ_BUSY, "%s: a snapshot was taken meanwhile", s->directory);
    }
    return TAMIZ_OK;
}

static void admit_snapshots(struct store *s)
{
    mutex_lock(&s->mutex);
    snapshots_admit(s);
    mutex_unlock(&s->mutex);
}

/* ---- making it durable ---- */

static void numbers_seen(struct store *s)
{
    atomic_store_explicit(&s->unsettled, s->manifest.unsettled, memory_order_release);
    if (!s->manifest.unsettled)
        atomic_store_explicit(&s->in_doubt, false, memory_order_relaxed);
    /* A new manifest took a number. */
    if (s->state.next_file > atomic_load_explicit(&s->next_file, memory_order_relaxed))
        atomic_store_explicit(&s->next_file, s->state.next_file, memory_order_relaxed);
}

tamiz_status install_record(struct op *op, struct store *s, struct manifest_edit *record)
{
    struct manifest_state *after = &s->state;
    after->next_file = atomic_load_explicit(&s->next_file, memory_order_relaxed);
    after->last_seq = atomic_load_explicit(&s->seq, memory_order_relaxed);
    for (size_t t = 0; t < record->tree_count; t++) /* ingested ones are not published yet */
        for (size_t i = 0; i < record->trees[t].tables.added_count; i++)
            if (record->trees[t].tables.added[i]->seq_max > after->last_seq)
                after->last_seq = record->trees[t].tables.added[i]->seq_max;
    record->has_next_file = record->has_last_seq = record->has_next_run = true;
    record->next_file = after->next_file;
    record->last_seq = after->last_seq;
    record->next_run = after->next_run;
    const tamiz_status st = manifest_write(op, &s->manifest, record, after);
    numbers_seen(s);
    return st;
}

static tamiz_status write_picture(struct op *op, struct store *s)
{
    const struct manifest_edit nothing = {.has_next_file = false};
    s->state.next_file = atomic_load_explicit(&s->next_file, memory_order_relaxed);
    const tamiz_status st = manifest_write(op, &s->manifest, &nothing, &s->state);
    numbers_seen(s);
    return st;
}

/* An edit failed and may be in force all the same: of a flush or a merge that says nothing new, but
 * an ingestion or a drop that was reported as failed would be there after a crash. So the picture
 * without it is written anew at once. Where that fails too, the next edit settles it, or the next
 * write, which must not be acknowledged before. */
void install_settle(struct op *op, struct store *s)
{
    struct op quiet;
    op_init(&quiet, &s->alloc, op->count);
    if (s->manifest.unsettled)
        (void)write_picture(&quiet, s);
}

void install_doubt(struct store *s)
{
    mutex_lock(&s->install_mutex);
    atomic_store_explicit(&s->in_doubt, s->manifest.unsettled, memory_order_relaxed);
    mutex_unlock(&s->install_mutex);
}

tamiz_status install_leave_doubt(struct op *op, struct store *s)
{
    mutex_lock(&s->install_mutex);
    const tamiz_status st = s->manifest.unsettled ? write_picture(op, s) : TAMIZ_OK;
    mutex_unlock(&s->install_mutex);
    return st;
}

static tamiz_status make_durable(struct op *op, struct store *s, struct installing *list, size_t n,
                                 uint64_t log_number)
{
    struct tree_edit *trees = mem_new_array(&s->alloc, n, sizeof *trees);
    if (!trees)
        return op_fail_memory(op);
    const struct manifest_state before = s->state; /* its numbers: the trees change places */
    for (size_t i = 0; i < n; i++) {
        exchange(&list[i]);
        trees[i] =
            (struct tree_edit){.keyspace = list[i].tree->id, .tables = list[i].change->tables};
        if (list[i].tree->log_number > s->state.log_number)
            trees[i].log_number = list[i].tree->log_number;
    }
    struct manifest_edit record = {.trees = trees, .tree_count = n};
    record.has_log_number = log_number != s->state.log_number;
    record.log_number = s->state.log_number;
    const tamiz_status st = install_record(op, s, &record);
    if (st != TAMIZ_OK) {
        for (size_t i = 0; i < n; i++)
            exchange(&list[i]);
        s->state.last_seq = before.last_seq;
        s->state.log_number = log_number;
        install_settle(op, s);
    }
    mem_free(&s->alloc, trees, n * sizeof *trees);
    return st;
}

tamiz_status install(struct op *op, struct store *s, const struct tree_change *changes, size_t n,
                     uint64_t log_number)
{
    struct installing *list = mem_new_array(&s->alloc, n, sizeof *list);
    tamiz_status st = list ? TAMIZ_OK : op_fail_memory(op);
    bool barred = false;
    env_point(s->env, "manifest.append");
    mutex_lock(&s->install_mutex);
    const uint64_t log_before = s->state.log_number;
    for (size_t i = 0; st == TAMIZ_OK && i < n; i++)
        st = prepare(op, s, &changes[i], &list[i]);
    if (st == TAMIZ_OK)
        st = bar_snapshots(op, s, changes, n, &barred);
    if (st == TAMIZ_OK) {
        work_out_logs(s, list, n, changes, log_number);
        st = make_durable(op, s, list, n, log_before);
    }
    if (st == TAMIZ_OK) {
        /* Durable: from here on nothing can fail, or the next edit would not follow from this
         * one. */
        mutex_lock(&s->mutex);
        for (size_t i = 0; i < n; i++)
            show(&list[i]);
        condition_broadcast(&s->progress);
        mutex_unlock(&s->mutex);
    }
    if (barred)
        admit_snapshots(s);
    for (size_t i = 0; list && i < n; i++) {
        obsolete_free(s, list[i].obsolete);
        version_unref(list[i].version);
        view_unref(list[i].view);
    }
    mutex_unlock(&s->install_mutex);
    mem_free(&s->alloc, list, n * sizeof *list);
    return st;
}

tamiz_status install_tables(struct op *op, struct tamiz *db, const struct version_edit *tables)
{
    const struct tree_change change = {.db = db, .tables = *tables};
    return install(op, db->store, &change, 1, 0);
}

void discard_tables(struct op *op, struct store *s, struct buf *tables)
{
    struct table_meta **list = (struct table_meta **)(void *)tables->data;
    const size_t n = tables->size / sizeof *list;
    for (size_t i = 0; i < n; i++) {
        char *path = atomic_load_explicit(&s->unsettled, memory_order_acquire)
                         ? NULL
                         : store_path(op, s, FILE_TABLE, list[i]->number);
        if (path) {
            struct op quiet;
            op_init(&quiet, &s->alloc, op->count);
            (void)env_remove(&quiet, s->env, path);
        }
        mem_free_text(&s->alloc, path);
        table_meta_unref(&s->alloc, list[i]);
    }
    buf_clear(tables);
}

/* Nobody but the list refers to it. A table that was moved has a meta for each place it stood in,
 * and views from before hold the older one: they have the handle in common. */
static bool is_unread(const struct table_meta *m)
{
    return atomic_load_explicit(&m->refs, memory_order_acquire) == 1 &&
           (!m->table || !table_is_shared(m->table));
}

/* One obsolete table that nobody reads, taken off the list; NULL: none. mutex held. */
static struct obsolete *obsolete_take(struct store *s)
{
    for (struct obsolete **at = &s->obsolete; *at; at = &(*at)->next) {
        struct obsolete *o = *at;
        if (is_unread(o->meta)) {
            *at = o->next;
            return o;
        }
    }
    return NULL;
}

void store_collect(struct store *s)
{
    (void)epoch_reclaim(&s->epoch);
    for (;;) {
        mutex_lock(&s->mutex);
        struct obsolete *o =
            atomic_load_explicit(&s->unsettled, memory_order_acquire) ? NULL : obsolete_take(s);
        mutex_unlock(&s->mutex);
        if (!o)
            return;
        struct counters nowhere = {0};
        struct op op;
        op_init(&op, &s->alloc, &nowhere);
        const uint64_t number = o->meta->number;
        char *path = store_path(&op, s, FILE_TABLE, number);
        o->next = NULL;
        obsolete_free(s, o); /* closes the file before its name goes */
        if (path && env_remove(&op, s->env, path) == TAMIZ_OK)
            store_event(s, TAMIZ_EVENT_FILE_DELETED, "%s", path);
        mem_free_text(&s->alloc,
                      path); /* a file that can't be removed now is garbage for the next open */
    }
}
