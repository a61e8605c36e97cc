/* SPDX-License-Identifier: MIT */
#include "db/checkpoint.h"

#include "db/asked.h"
#include "version/listing.h"

/* ---- one moment of a store ---- */

struct picture_log {
    uint64_t number, size;
    struct file *file;
};

/* All that the copy will say: a version whose tables stay as long as it is held, and the logs that
 * go with it. */
struct picture {
    struct manifest_state state; /* a copy of ours */
    struct buf logs;             /* struct picture_log, oldest first */
};

static tamiz_status take_log(struct op *op, const struct store *s, uint64_t number, uint64_t size,
                             struct picture *p)
{
    struct picture_log log = {number, size, NULL};
    char *path = store_path(op, s, FILE_LOG, number);
    if (!path)
        return TAMIZ_OUT_OF_MEMORY;
    tamiz_status st = file_open(op, s->env, path, TAMIZ_OPEN_READ, &log.file);
    mem_free_text(&s->alloc, path);
    if (st == TAMIZ_OK && size == UINT64_MAX)
        st = file_size(op, log.file, &log.size);
    buf_append(&p->logs, &log, sizeof log);
    if (!p->logs.failed)
        return st;
    (void)file_close(op, log.file);
    return op_fail_memory(op);
}

/* Of a running store. install_mutex keeps the tree as it is, log_mutex the logs: nobody waits here
 * for more than the opening of some files. */
static tamiz_status take_running(struct op *op, struct store *s, struct picture *p)
{
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->install_mutex);
    mutex_lock(&s->log_mutex);
    TRY(manifest_state_copy(op, &s->alloc, &s->state, &p->state));
    p->state.next_file = atomic_load_explicit(&s->next_file, memory_order_relaxed);
    for (size_t i = 0; i < s->log_count; i++)
        if (s->logs[i].number >= s->state.log_number)
            TRY(take_log(op, s, s->logs[i].number, s->logs[i].writer.end, p));
done:
    mutex_unlock(&s->log_mutex);
    mutex_unlock(&s->install_mutex);
    return st;
}

/* Of one that is only read, and that nobody writes: its logs are those in the directory. */
static tamiz_status take_still(struct op *op, struct store *s, struct picture *p)
{
    struct listing files;
    tamiz_status st = TAMIZ_OK;
    listing_init(&files, &s->alloc);
    TRY(manifest_state_copy(op, &s->alloc, &s->state, &p->state));
    TRY(listing_take(op, s->env, s->directory, &files));
    for (size_t i = 0; i < listing_count(&files, FILE_LOG); i++) {
        const uint64_t number = listing_numbers(&files, FILE_LOG)[i];
        if (number >= s->state.log_number)
            TRY(take_log(op, s, number, UINT64_MAX, p));
    }
done:
    listing_free(&files);
    return st;
}

static void picture_free(struct op *op, const struct store *s, struct picture *p)
{
    struct picture_log *logs = (struct picture_log *)(void *)p->logs.data;
    struct op quiet; /* they were only read */
    op_init(&quiet, &s->alloc, op->count);
    for (size_t i = 0; i < p->logs.size / sizeof *logs; i++)
        (void)file_close(&quiet, logs[i].file);
    buf_free(&p->logs);
    manifest_state_free(&s->alloc, &p->state);
}

/* Writes that are in no log, or in one that failed, must be in tables first. */
static bool logs_tell_all(struct store *s)
{
    mutex_lock(&s->mutex);
    bool all = true;
    for (size_t i = 0; i < s->keyspace_count; i++)
        all &= !view_unlogged(atomic_load_explicit(&s->keyspaces[i]->view, memory_order_relaxed));
    mutex_unlock(&s->mutex);
    mutex_lock(&s->log_mutex);
    for (size_t i = 0; i < s->log_count; i++)
        all &= !s->logs[i].writer.broken;
    mutex_unlock(&s->log_mutex);
    return all;
}

static tamiz_status take_picture(struct op *op, struct tamiz *db, struct picture *p)
{
    struct store *s = db->store;
    if (s->options.read_only)
        return take_still(op, s, p);
    if (!logs_tell_all(s)) {
        const tamiz_status st = db_flush_all(op, s);
        if (st != TAMIZ_OK)
            return st;
    }
    return take_running(op, s, p);
}

/* ---- a place to build it ---- */

struct site {
    const tamiz_env *env;
    const struct alloc *alloc;
    const char *path; /* borrowed */
    char *partial;
    void *lock;
    bool made;    /* the directory is ours to remove */
    void *buffer; /* COPY_BYTES */
};

/* Removes the files of a store, the lock excepted. */
static tamiz_status empty_site(struct op *op, const struct site *site)
{
    struct listing files;
    tamiz_status st = TAMIZ_OK;
    listing_init(&files, site->alloc);
    TRY(listing_take(op, site->env, site->partial, &files));
    for (int kind = FILE_CURRENT; kind <= FILE_TABLE; kind++)
        if (kind != FILE_LOCK)
            TRY(listing_remove(op, site->env, site->partial, &files, (enum file_kind)kind));
done:
    listing_free(&files);
    return st;
}

static tamiz_status site_open(struct op *op, struct site *site)
{
    bool exists;
    tamiz_file_info info;
    char *lock_path = NULL;
    struct buf name = buf_init(site->alloc);
    tamiz_status st;
    TRY(env_path_info(op, site->env, site->path, &exists, &info));
    if (exists)
        TRY(op_fail(op, TAMIZ_INVALID_ARGUMENT,
                    "%s: something stands here already: want a name that is free", site->path));
    buf_printf(&name, "%s.partial", site->path);
    buf_u8(&name, 0);
    site->partial = name.failed ? NULL : mem_text(site->alloc, (const char *)name.data);
    site->buffer = mem_new(site->alloc, COPY_BYTES);
    lock_path = site->partial ? filename_path(site->alloc, site->partial, FILE_LOCK, 0) : NULL;
    TRY(lock_path && site->buffer ? TAMIZ_OK : op_fail_memory(op));
    TRY(env_path_info(op, site->env, site->partial, &exists, &info));
    if (!exists)
        TRY(env_make_directory(op, site->env, site->partial));
    TRY(env_lock(op, site->env, lock_path, &site->lock));
    site->made = true;
    TRY(empty_site(op, site));
done:
    mem_free_text(site->alloc, lock_path);
    buf_free(&name);
    return st;
}

/* All of it is on the disk: it gets its name, the lock file with it, which is held until then. */
static tamiz_status site_finish(struct op *op, struct site *site)
{
    tamiz_status st;
    TRY(env_sync_directory(op, site->env, site->partial));
    TRY(env_rename(op, site->env, site->partial, site->path));
    site->made = false;
    TRY(env_sync_parent(op, site->env, site->path));
done:
    return st;
}

/* Where it did not come to be, it goes away; what fails here is left for the next attempt. */
static void site_close(struct op *op, struct site *site)
{
    struct op quiet;
    op_init(&quiet, site->alloc, op->count);
    if (site->made) {
        char *lock_path = filename_path(site->alloc, site->partial, FILE_LOCK, 0);
        (void)empty_site(&quiet, site);
        if (lock_path)
            (void)env_remove(&quiet, site->env, lock_path);
        (void)env_remove_directory(&quiet, site->env, site->partial);
        mem_free_text(site->alloc, lock_path);
    }
    (void)env_unlock(&quiet, site->env, site->lock);
    mem_free_text(site->alloc, site->partial);
    mem_free(site->alloc, site->buffer, COPY_BYTES);
}

/* ---- tables ---- */

/* Is the file at `path` the table that `meta` speaks of? Whatever is wrong with it: no. */
static bool is_same_table(struct op *op, const struct store *s, const char *path,
                          const struct table_meta *meta)
{
    struct op quiet;
    struct file *file = NULL;
    uint8_t head[TABLE_HEADER_SIZE];
    uint64_t size = 0, id = 0;
    op_init(&quiet, &s->alloc, op->count);
    const bool same =
        file_open(&quiet, s->env, path, TAMIZ_OPEN_READ, &file) == TAMIZ_OK &&
        file_size(&quiet, file, &size) == TAMIZ_OK && size == meta->file_size &&
        file_read(&quiet, file, IO_META, 0, head, sizeof head) == TAMIZ_OK &&
        table_header_decode(&quiet, slice_of(head, sizeof head), path, &id) == TAMIZ_OK &&
        id == meta->file_id;
    (void)file_close(&quiet, file);
    return same;
}

/* A copy is believed when every block of it was read back and checked. */
static tamiz_status verify_copy(struct op *op, struct store *s, const char *path,
                                const struct table_meta *meta)
{
    tamiz_report report = TAMIZ_REPORT_INIT;
    struct table *t =
        table_new(op, &s->first->world, path, meta->number, meta->file_id, meta->file_size);
    if (!t)
        return TAMIZ_OUT_OF_MEMORY;
    const tamiz_status st = table_verify(op, t, &report);
    table_free(t);
    return st;
}

/* From where it was in an earlier copy; *done: it was. */
static tamiz_status link_previous(struct op *op, struct store *s, const struct copy_plan *plan,
                                  const struct table_meta *meta, const char *to, bool *done)
{
    bool linked = false;
    *done = false;
    if (!plan->previous)
        return TAMIZ_OK;
    char *from = filename_path(&s->alloc, plan->previous, FILE_TABLE, meta->number);
    if (!from)
        return op_fail_memory(op);
    tamiz_status st = TAMIZ_OK;
    if (is_same_table(op, s, from, meta)) {
        st = env_link_or_copy(op, s->env, from, to, IO_COMPACTION, &linked);
        *done = st == TAMIZ_OK;
    }
    mem_free_text(&s->alloc, from);
    return st;
}

static tamiz_status place_table(struct op *op, struct store *s, const struct site *site,
                                const struct copy_plan *plan, const struct table_meta *meta,
                                struct copy_done *done)
{
    bool linked = false;
    tamiz_status st = TAMIZ_OK;
    char *from = store_path(op, s, FILE_TABLE, meta->number);
    char *to = filename_path(&s->alloc, site->partial, FILE_TABLE, meta->number);
    TRY(from && to ? TAMIZ_OK : op_fail_memory(op));
    TRY(link_previous(op, s, plan, meta, to, &linked));
    if (!linked && plan->own_files) {
        TRY(env_copy_file(op, s->env, from, to, IO_COMPACTION));
        TRY(verify_copy(op, s, to, meta));
    } else if (!linked) {
        TRY(env_link_or_copy(op, s->env, from, to, IO_COMPACTION, &linked));
    }
    done->tables_linked += linked;
    done->tables_copied += !linked;
    *(linked ? &done->bytes_linked : &done->bytes_copied) += meta->file_size;
done:
    mem_free_text(&s->alloc, from);
    mem_free_text(&s->alloc, to);
    return st;
}

/* ---- the rest of it ---- */

static tamiz_status place_log(struct op *op, struct store *s, const struct site *site,
                              const struct picture_log *log, struct copy_done *done)
{
    char *to = filename_path(&s->alloc, site->partial, FILE_LOG, log->number);
    if (!to)
        return op_fail_memory(op);
    const tamiz_status st = file_copy(op, log->file, s->env, to, IO_LOG, log->size, site->buffer);
    mem_free_text(&s->alloc, to);
    done->log_bytes += log->size;
    return st;
}

/* Manifest and CURRENT: from here on the directory is a store. */
static tamiz_status place_manifest(struct op *op, struct store *s, const struct site *site,
                                   struct picture *p)
{
    struct manifest m;
    const struct manifest_edit nothing = {.has_next_file = false};
    tamiz_status st = manifest_init(op, s->env, &s->alloc, site->partial, &m);
    if (st == TAMIZ_OK)
        st = manifest_write(op, &m, &nothing, &p->state);
    manifest_close(op, &m);
    return st;
}

static tamiz_status place_all(struct op *op, struct store *s, const struct site *site,
                              const struct copy_plan *plan, struct picture *p,
                              struct copy_done *done)
{
    const struct picture_log *logs = (const struct picture_log *)(const void *)p->logs.data;
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < p->logs.size / sizeof *logs; i++)
        TRY(place_log(op, s, site, &logs[i], done));
    for (size_t t = 0; t < p->state.tree_count; t++) {
        const struct version *v = p->state.trees[t].version;
        for (uint32_t i = 0; i < v->table_count; i++)
            TRY(place_table(op, s, site, plan, v->tables[i], done));
    }
    TRY(place_manifest(op, s, site, p));
done:
    return st;
}

tamiz_status checkpoint_make(struct op *op, struct tamiz *db, const struct copy_plan *plan,
                             struct copy_done *done)
{
    struct store *s = db->store;
    struct site site = {.env = s->env, .alloc = &s->alloc, .path = plan->path};
    struct picture p = {.logs = buf_init(&s->alloc)};
    tamiz_status st;
    *done = (struct copy_done){0};
    TRY(site_open(op, &site));
    TRY(take_picture(op, db, &p));
    TRY(place_all(op, s, &site, plan, &p, done));
    TRY(site_finish(op, &site));
    counter_add(&op->count->copied_bytes_linked, done->bytes_linked);
    counter_add(&op->count->copied_bytes, done->bytes_copied + done->log_bytes);
    store_event(s, TAMIZ_EVENT_NOTE, "%s: a copy of %llu tables linked, %llu copied", plan->path,
                (unsigned long long)done->tables_linked, (unsigned long long)done->tables_copied);
done:
    picture_free(op, s, &p);
    site_close(op, &site);
    return st;
}

/* ---- public ---- */

tamiz_status checkpoint_path(struct op *op, const struct store *s, const char *path, char **taken)
{
    const tamiz_status st = env_absolute_path(op, s->env, &s->alloc, path, taken);
    size_t size = st == TAMIZ_OK ? strlen(*taken) : 0;
    if (size < 2 || (*taken)[size - 1] != '/')
        return st;
    char *whole = *taken;
    while (size > 1 && whole[size - 1] == '/')
        size--;
    const char kept = whole[size];
    whole[size] = 0;
    *taken = mem_text(&s->alloc, whole);
    whole[size] = kept;
    mem_free_text(&s->alloc, whole);
    return *taken ? TAMIZ_OK : op_fail_memory(op);
}

tamiz_status tamiz_checkpoint(tamiz *db, const char *path)
{
    tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    if (!path || !*path)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "path: %s", path ? "empty" : "NULL");
    if (s->options.read_only)
        return op_refuse(TAMIZ_READ_ONLY,
                         "%s: opened read-only: only who holds the lock can make a checkpoint",
                         s->directory);
    struct op op;
    struct copy_done done;
    struct copy_plan plan = {0};
    char *taken = NULL;
    struct epoch_slot *slot = epoch_enter_at(&s->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    TRY(checkpoint_path(&op, s, path, &taken));
    plan.path = taken;
    TRY(checkpoint_make(&op, db, &plan, &done));
    counter_add(&op.count->checkpoints, 1);
done:
    st = op_publish(&op, st);
    epoch_leave(slot);
    mem_free_text(&s->alloc, taken);
    store_collect(s);
    return st;
}
