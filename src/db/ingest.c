/* SPDX-License-Identifier: MIT
 *
 * Taking finished tables in. First, beside the writers: the tables are opened and looked at, and
 * get names in the store. Then, as a writer among writers, so that no write can come between: they
 * get the next sequences, a place in the tree, and are installed with one edit.
 *
 * A reader that sees the new view before the new sequence does not see the tables' entries, for
 * their stamps are above what it reads at; publishing the sequence shows all of them at once. The
 * log is told which sequences are taken, so that replaying it finds no gap.
 */
#include "db/asked.h"
#include "db/background.h"
#include "db/install.h"
#include "db/merging.h"
#include "db/output.h"
#include "db/place.h"
#include "db/write.h"

struct ingestion {
    struct tamiz *db;
    size_t n;
    struct table_meta *metas;            /* n of them; keys owned */
    struct placed *places;               /* n */
    struct buf tables;                   /* struct table_meta *, as they will be */
    size_t linked;                       /* files that have a name in the store */
    bool overlapped;                     /* out of the work: memtables overlap, nothing was done */
    uint64_t bytes_linked, bytes_copied; /* of the files */
};

/* ---- looking at the files ---- */

static tamiz_status keep_key(struct op *op, struct slice *key)
{
    uint8_t *copy = mem_new(op->alloc, key->size);
    if (!copy)
        return op_fail_memory(op);
    if (key->size)
        memcpy(copy, key->data, key->size);
    *key = slice_of(copy, key->size);
    return TAMIZ_OK;
}

static tamiz_status check_properties(struct op *op, const char *path,
                                     const struct table_properties *p)
{
    if (p->seq_max == 0 && p->keys == p->entries && p->smallest.size <= KEY_SIZE_MAX &&
        p->largest.size <= KEY_SIZE_MAX)
        return TAMIZ_OK;
    return op_fail(op, TAMIZ_INVALID_ARGUMENT,
                   "%s: expected a table that was built with no store (sequence 0, one version a "
                   "key), found sequences up to %llu and %llu versions of %llu keys",
                   path, (unsigned long long)p->seq_max, (unsigned long long)p->entries,
                   (unsigned long long)p->keys);
}

/* What the manifest will say of it, but for number, place and sequence. */
static tamiz_status look_at(struct op *op, const struct tamiz *db, const char *path,
                            struct table_meta *m)
{
    struct table *t = table_new(op, &db->world, path, 0, 0, 0);
    tamiz_status st = t ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY;
    struct slice smallest, largest;
    TRY(st);
    TRY(table_load(op, t));
    const struct table_properties *p = table_properties(t);
    TRY(check_properties(op, path, p));
    smallest = p->smallest;
    largest = p->largest;
    TRY(keep_key(op, &smallest));
    m->smallest = smallest;
    TRY(keep_key(op, &largest));
    m->largest = largest;
    m->keyspace = db->id;
    m->file_id = table_file_id(t);
    m->file_size = table_file_size(t);
    m->entries = p->entries;
    m->keys = p->keys;
    m->tombstones = p->tombstones;
    m->filter_bytes = table_filter_bytes(t);
done:
    table_free(t);
    return st;
}

static void free_key(const struct alloc *alloc, struct slice key)
{
    union {
        const uint8_t *borrowed;
        uint8_t *owned;
    } bytes = {key.data};
    mem_free(alloc, bytes.owned, key.size);
}

/* ---- names in the store ---- */

/* A linked file may never have been synced: whoever copied it here did not say. */
static tamiz_status sync_file(struct op *op, const struct store *s, const char *path)
{
    struct file *file = NULL;
    tamiz_status st = file_open(op, s->env, path, TAMIZ_OPEN_READ, &file);
    if (st != TAMIZ_OK)
        return st;
    st = file_sync(op, file);
    const tamiz_status closed = file_close(op, file);
    return st != TAMIZ_OK ? st : closed;
}

static tamiz_status bring_in(struct op *op, struct store *s, const char *from, struct table_meta *m,
                             bool *linked)
{
    m->number = store_next_file(s);
    char *to = store_path(op, s, FILE_TABLE, m->number);
    if (!to)
        return TAMIZ_OUT_OF_MEMORY;
    tamiz_status st = env_link_or_copy(op, s->env, from, to, IO_COMPACTION, linked);
    if (st == TAMIZ_OK && *linked) {
        st = sync_file(op, s, to);
        if (st != TAMIZ_OK) {
            struct op quiet;
            op_init(&quiet, &s->alloc, op->count);
            (void)env_remove(&quiet, s->env, to);
        }
    }
    mem_free_text(&s->alloc, to);
    return st;
}

static void take_out(struct op *op, struct store *s, const struct ingestion *in)
{
    struct op quiet;
    op_init(&quiet, &s->alloc, op->count);
    for (size_t i = 0; i < in->linked; i++) {
        char *path = atomic_load_explicit(&s->unsettled, memory_order_acquire)
                         ? NULL
                         : store_path(&quiet, s, FILE_TABLE, in->metas[i].number);
        if (path)
            (void)env_remove(&quiet, s->env, path);
        mem_free_text(&s->alloc, path);
    }
}

/* ---- memtables ---- */

/* Does a memtable have a key, or a range delete, in one of the ranges? */
static tamiz_status memtable_overlaps(struct op *op, struct memtable *m, const struct ingestion *in,
                                      bool *overlaps)
{
    const struct skyline *ranges = memtable_skyline(m, SEQ_MAX);
    struct iter *it = memtable_iter(op, m);
    if (!it)
        return TAMIZ_OUT_OF_MEMORY;
    for (size_t i = 0; i < in->n && !*overlaps; i++) {
        iter_seek(it, in->metas[i].smallest, UINT64_MAX);
        *overlaps = it->valid && slice_compare(it->key, in->metas[i].largest) <= 0;
        const struct cover *c = skyline_from(ranges, in->metas[i].smallest);
        *overlaps |= c && slice_compare(c->from, in->metas[i].largest) <= 0;
    }
    iter_close(it);
    return TAMIZ_OK;
}

static tamiz_status memtables_overlap(struct op *op, const struct ingestion *in, bool *overlap)
{
    struct store *s = in->db->store;
    uint64_t seq;
    tamiz_status st = TAMIZ_OK;
    struct epoch_slot *slot = epoch_enter(&s->epoch);
    struct view *v = view_acquire(in->db, &seq);
    epoch_leave(slot);
    *overlap = false;
    for (uint32_t i = 0; st == TAMIZ_OK && i < v->memtable_count && !*overlap; i++)
        if (memtable_count(v->memtables[i]->memtable))
            st = memtable_overlaps(op, v->memtables[i]->memtable, in, overlap);
    view_unref(v);
    return st;
}

/* Nobody writes: the sealed ones are flushed by the background, or here. */
static tamiz_status wait_for_sealed(struct op *op, struct tamiz *db)
{
    struct store *s = db->store;
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->mutex);
    const uint32_t failures = db->flush_error.failures;
    db->flush_error.retry_ns = 0;
    store_call_work(s);
    while (st == TAMIZ_OK &&
           atomic_load_explicit(&db->view, memory_order_relaxed)->memtable_count > 1) {
        if (db->flush_error.failures > failures) {
            st = op_fail(op, db->flush_error.status, "%s", db->flush_error.text);
        } else if (s->options.threads == 0) {
            mutex_unlock(&s->mutex);
            const bool did = background_step(s);
            mutex_lock(&s->mutex);
            if (!did)
                store_wait(s, &s->progress, 1000);
        } else {
            (void)condition_wait_us(&s->progress, &s->mutex, 10000);
        }
    }
    mutex_unlock(&s->mutex);
    return st;
}

/* ---- the work, alone among the writers ---- */

static tamiz_status place_all(struct op *op, const struct ingestion *in)
{
    struct store *s = in->db->store;
    mutex_lock(&s->mutex);
    const struct pick_options o = pick_options_of(in->db);
    struct version *v = atomic_load_explicit(&in->db->view, memory_order_relaxed)->version;
    version_ref(v);
    mutex_unlock(&s->mutex);
    for (size_t i = 0; i < in->n; i++)
        in->places[i] = (struct placed){.smallest = in->metas[i].smallest,
                                        .largest = in->metas[i].largest,
                                        .bytes = in->metas[i].file_size};
    const tamiz_status st = place_tables(op, v, &o, in->places, in->n);
    version_unref(v);
    return st;
}

/* Runs of each level and group, handed out in the order of the groups. */
static void number_runs(struct store *s, const struct ingestion *in)
{
    uint32_t groups = 0;
    for (size_t i = 0; i < in->n; i++)
        if (in->places[i].group >= groups)
            groups = in->places[i].group + 1;
    for (uint32_t g = 0; g < groups; g++) {
        uint64_t run[TAMIZ_LEVELS] = {0};
        for (size_t i = 0; i < in->n; i++) {
            const struct placed *p = &in->places[i];
            if (p->join == 0 && p->group == g && run[p->level] == 0)
                run[p->level] = output_next_run(s);
            if (p->join != 0 || p->group == g)
                in->metas[i].run = p->join ? p->join : run[p->level];
        }
    }
}

static tamiz_status make_metas(struct op *op, struct ingestion *in, uint64_t first_seq)
{
    struct store *s = in->db->store;
    for (size_t i = 0; i < in->n; i++) {
        struct table_meta *like = &in->metas[i];
        like->level = in->places[i].level;
        like->seq_min = like->seq_max = first_seq + i;
        struct table_meta *meta = table_meta_new(op, &s->alloc, like);
        if (!meta)
            return TAMIZ_OUT_OF_MEMORY;
        buf_append(&in->tables, &meta, sizeof meta);
        if (in->tables.failed) {
            table_meta_unref(&s->alloc, meta);
            return op_fail_memory(op);
        }
    }
    return TAMIZ_OK;
}

static tamiz_status ingest_work(struct op *op, struct writer *w)
{
    struct ingestion *in = w->work_ctx;
    struct store *s = in->db->store;
    const uint64_t first_seq = atomic_load_explicit(&s->seq, memory_order_relaxed) + 1;
    tamiz_status st;
    if (w->seal)
        TRY(wait_for_sealed(op, in->db));
    TRY(memtables_overlap(op, in, &in->overlapped));
    if (in->overlapped)
        return TAMIZ_OK;
    if (first_seq + in->n > SEQ_MAX)
        TRY(op_fail(op, TAMIZ_NOT_SUPPORTED, "%s: the sequence has reached its end", s->directory));
    TRY(place_all(op, in));
    number_runs(s, in);
    TRY(make_metas(op, in, first_seq));
    TRY(store_log_skip(op, s, first_seq + in->n - 1));
    const struct version_edit edit = {
        .added = (struct table_meta *const *)(const void *)in->tables.data, .added_count = in->n};
    st = install_tables(op, in->db, &edit);
    if (st != TAMIZ_OK)
        install_doubt(s);
    /* The log has passed them, whether the tables came in or not. */
    atomic_store_explicit(&s->seq, first_seq + in->n - 1, memory_order_release);
done:
    return st;
}

/* ---- all of it ---- */

static tamiz_status prepare(struct op *op, struct ingestion *in, const char *const paths[])
{
    struct store *s = in->db->store;
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < in->n; i++)
        TRY(look_at(op, in->db, paths[i], &in->metas[i]));
    for (size_t i = 0; i < in->n; i++) {
        bool linked = false;
        TRY(bring_in(op, s, paths[i], &in->metas[i], &linked));
        in->linked = i + 1;
        *(linked ? &in->bytes_linked : &in->bytes_copied) += in->metas[i].file_size;
    }
    TRY(env_sync_directory(op, s->env, s->directory));
done:
    return st;
}

static tamiz_status ingest(struct op *op, struct ingestion *in, const char *const paths[])
{
    struct store *s = in->db->store;
    bool overlap = false;
    tamiz_status st;
    TRY(prepare(op, in, paths));
    TRY(memtables_overlap(op, in, &overlap));
    if (overlap)
        TRY(db_flush(op, in->db)); /* beside the writers; often enough */
    merging_exclude(in->db);
    for (int attempt = 0; attempt < 2; attempt++) {
        struct writer w = {.db = in->db,
                           .trees = &w.db,
                           .tree_count = 1,
                           .work = ingest_work,
                           .work_ctx = in,
                           .seal = attempt > 0};
        st = db_write(op, &w);
        if (st != TAMIZ_OK || !in->overlapped)
            break;
    }
    merging_include(in->db);
    if (st == TAMIZ_OK) {
        counter_add(&op->count->ingests, 1);
        counter_add(&op->count->ingested_tables, in->n);
        counter_add(&op->count->ingested_bytes_linked, in->bytes_linked);
        counter_add(&op->count->ingested_bytes_copied, in->bytes_copied);
        store_event(s, TAMIZ_EVENT_NOTE, "%s: %zu tables ingested", s->directory, in->n);
    }
done:
    if (st != TAMIZ_OK)
        take_out(op, s, in);
    return st;
}

static void ingestion_free(struct store *s, struct ingestion *in)
{
    struct table_meta **tables = (struct table_meta **)(void *)in->tables.data;
    for (size_t i = 0; i < in->tables.size / sizeof *tables; i++)
        table_meta_unref(&s->alloc, tables[i]); /* the version has its own */
    for (size_t i = 0; in->metas && i < in->n; i++) {
        free_key(&s->alloc, in->metas[i].smallest);
        free_key(&s->alloc, in->metas[i].largest);
    }
    mem_free(&s->alloc, in->metas, in->n * sizeof *in->metas);
    mem_free(&s->alloc, in->places, in->n * sizeof *in->places);
    buf_free(&in->tables);
}

tamiz_status tamiz_ingest(tamiz *db, const char *const paths[], size_t n)
{
    tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    if (s->options.read_only)
        return op_refuse(TAMIZ_READ_ONLY, "%s: opened read-only", s->directory);
    for (size_t i = 0; i < n; i++)
        if (!paths || !paths[i] || !*paths[i])
            return op_refuse(TAMIZ_INVALID_ARGUMENT, "ingest: path %zu is NULL or empty", i);
    if (n == 0)
        return TAMIZ_OK;
    struct op op;
    struct ingestion in = {.db = db, .n = n, .tables = buf_init(&s->alloc)};
    struct epoch_slot *slot = epoch_enter_at(&s->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    in.metas = mem_new_array(&s->alloc, n, sizeof *in.metas);
    in.places = mem_new_array(&s->alloc, n, sizeof *in.places);
    st = in.metas && in.places ? ingest(&op, &in, paths) : op_fail_memory(&op);
    st = op_publish(&op, st);
    epoch_leave(slot);
    ingestion_free(s, &in);
    store_collect(s);
    return st;
}
