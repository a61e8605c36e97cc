/* SPDX-License-Identifier: MIT */
#include "db/install.h"

#include <assert.h>

/* The view after: without `flushed`, over `version`, into `next`. mutex held. */
static void view_after(struct tamiz *db, struct version *version, const struct mem_ref *flushed,
                       struct view *next)
{
    const struct view *now = atomic_load_explicit(&db->view, memory_order_relaxed);
    struct mem_ref *list[VIEW_ROOM];
    uint32_t count = 0;
    for (uint32_t i = 0; i < now->memtable_count; i++)
        if (now->memtables[i] != flushed)
            list[count++] = now->memtables[i];
    view_fill(next, list, count, version);
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
        struct obsolete *o = mem_new(&s->alloc, sizeof *o);
        if (!o)
            return op_fail_memory(op);
        table_meta_ref(meta);
        *o = (struct obsolete){meta, *list};
        *list = o;
    }
    return TAMIZ_OK;
}

static void obsolete_free(struct store *s, struct obsolete *list)
{
    while (list) {
        struct obsolete *next = list->next;
        table_meta_unref(&s->alloc, list->meta);
        mem_free(&s->alloc, list, sizeof *list);
        list = next;
    }
}

static void obsolete_join(struct store *s, struct obsolete *list)
{
    while (list) {
        struct obsolete *next = list->next;
        list->next = s->obsolete;
        s->obsolete = list;
        list = next;
    }
}

/* An edit failed and may be in force all the same: of a flush or a merge that says nothing new, but
 * an ingestion that was reported as failed would be there after a crash. So the picture without it
 * is written anew at once. Where that fails too, the next edit settles it. install_mutex held. */
static void settle_manifest(struct op *op, struct store *s)
{
    if (!s->manifest.unsettled)
        return;
    const struct manifest_edit nothing = {.has_next_file = false};
    struct manifest_state again = s->state;
    struct op quiet;
    op_init(&quiet, &s->alloc, op->count);
    again.next_file = atomic_load_explicit(&s->next_file, memory_order_relaxed);
    if (manifest_write(&quiet, &s->manifest, &nothing, &again) == TAMIZ_OK)
        s->state.manifest_number = again.manifest_number;
    if (again.next_file > atomic_load_explicit(&s->next_file, memory_order_relaxed))
        atomic_store_explicit(&s->next_file, again.next_file, memory_order_relaxed);
    atomic_store_explicit(&s->unsettled, s->manifest.unsettled, memory_order_release);
}

tamiz_status install(struct op *op, struct tamiz *db, const struct version_edit *edit,
                     struct mem_ref *flushed, uint64_t log_number)
{
    struct store *s = db->store;
    struct version *version = NULL, *old;
    struct view *view = NULL;
    struct obsolete *obsolete = NULL;
    tamiz_status st = TAMIZ_OK;
    env_point(s->env, "manifest.append");
    mutex_lock(&s->install_mutex);
    struct manifest_state after = s->state;
    struct manifest_edit record = {.tables = *edit};
    view = view_reserve(op, s);
    TRY(view ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(obsolete_collect(op, s, s->state.version, edit, &obsolete));
    TRY(version_apply(op, &s->alloc, s->state.version, edit, &version));
    TRY(version_attach(op, version, &s->world, s->directory));
    after.version = version;
    if (log_number) {
        record.has_log_number = true;
        record.log_number = after.log_number = log_number;
    }
    record.has_next_file = record.has_last_seq = record.has_next_run = true;
    record.next_file = after.next_file = atomic_load_explicit(&s->next_file, memory_order_relaxed);
    after.last_seq = atomic_load_explicit(&s->seq, memory_order_relaxed);
    for (size_t i = 0; i < edit->added_count; i++) /* ingested ones are not published yet */
        if (edit->added[i]->seq_max > after.last_seq)
            after.last_seq = edit->added[i]->seq_max;
    record.last_seq = after.last_seq;
    record.next_run = after.next_run;
    st = manifest_write(op, &s->manifest, &record, &after);
    atomic_store_explicit(&s->unsettled, s->manifest.unsettled, memory_order_release);
    if (after.next_file >
        atomic_load_explicit(&s->next_file,
                             memory_order_relaxed)) /* a new manifest took a number */
        atomic_store_explicit(&s->next_file, after.next_file, memory_order_relaxed);
    if (st != TAMIZ_OK)
        settle_manifest(op, s);
    TRY(st);

    /* Durable: from here on nothing can fail, or the next edit would not follow from this one. */
    mutex_lock(&s->mutex);
    view_after(db, version, flushed, view);
    old = s->state.version;
    s->state = after;
    version = old;
    view_publish(db, view);
    view = NULL;
    s->pace.since = UINT64_MAX; /* work it out anew */
    condition_broadcast(&s->progress);
    obsolete_join(s, obsolete);
    obsolete = NULL;
    mutex_unlock(&s->mutex);
done:
    obsolete_free(s, obsolete);
    version_unref(version);
    view_unref(view);
    mutex_unlock(&s->install_mutex);
    return st;
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

/* One obsolete table that nobody but the list refers to, taken off the list; NULL: none. mutex
 * held. */
static struct obsolete *obsolete_take(struct store *s)
{
    for (struct obsolete **at = &s->obsolete; *at; at = &(*at)->next) {
        struct obsolete *o = *at;
        if (atomic_load_explicit(&o->meta->refs, memory_order_acquire) == 1) {
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
