/* SPDX-License-Identifier: MIT */
#include "compact/compact.h"

#include "version/filename.h"

enum { CANCEL_EVERY = 256 }; /* versions */

/* A merge under way. */
struct merge {
    struct op *op;
    const struct compact_input *in;
    const struct compact_output *out;
    struct buf *tables;
    size_t tables_before; /* bytes of `tables` that are the caller's */
    struct buf path;      /* "DIRECTORY/", with room for a name: removing needs no memory */
    struct table_builder *builder;
    uint64_t number; /* of the builder's file */
    struct buf key;  /* the user key at hand */
    bool any_key;
    size_t stripe; /* of its version before this one */
    bool pending;  /* a tombstone of it waits: for an older version to hide, or the key's end */
    uint64_t pending_stamp;
};

static const char *path_of(struct merge *m, uint64_t number)
{
    char name[FILE_NAME_MAX];
    filename_format(FILE_TABLE, number, name);
    memcpy(m->path.data + m->path.size, name, sizeof name);
    return (const char *)m->path.data;
}

static tamiz_status table_begin(struct merge *m)
{
    m->number = m->out->next_file(m->out->next_file_ctx);
    return table_builder_open(m->op, m->out->env, m->out->alloc, path_of(m, m->number),
                              &m->out->build, &m->builder);
}

static tamiz_status meta_append(struct merge *m, const struct table_summary *s)
{
    const struct table_meta like = {.number = m->number,
                                    .keyspace = m->out->keyspace,
                                    .file_id = s->file_id,
                                    .file_size = s->file_size,
                                    .level = m->out->level,
                                    .run = m->out->run,
                                    .entries = s->entries,
                                    .keys = s->keys,
                                    .tombstones = s->tombstones,
                                    .seq_min = s->seq_min,
                                    .seq_max = s->seq_max,
                                    .filter_bytes = s->filter_bytes,
                                    .smallest = buf_slice(&s->smallest),
                                    .largest = buf_slice(&s->largest)};
    struct table_meta *meta = table_meta_new(m->op, m->out->alloc, &like);
    if (!meta)
        return TAMIZ_OUT_OF_MEMORY;
    buf_append(m->tables, &meta, sizeof meta);
    if (!m->tables->failed)
        return TAMIZ_OK;
    m->tables->failed = false;
    table_meta_unref(m->out->alloc, meta);
    return op_fail_memory(m->op);
}

static tamiz_status table_end(struct merge *m)
{
    struct table_summary summary = {.smallest = buf_init(m->out->alloc),
                                    .largest = buf_init(m->out->alloc)};
    struct table_builder *builder = m->builder;
    m->builder = NULL; /* gone either way */
    tamiz_status st = table_builder_finish(m->op, builder, &summary);
    if (st == TAMIZ_OK) {
        st = meta_append(m, &summary);
        if (st != TAMIZ_OK) /* the first failure is the one that is told */
            (void)env_remove(m->op, m->out->env, path_of(m, m->number));
    }
    buf_free(&summary.smallest);
    buf_free(&summary.largest);
    return st;
}

static tamiz_status emit(struct merge *m, uint64_t stamp, struct slice value)
{
    tamiz_status st = m->builder ? TAMIZ_OK : table_begin(m);
    if (st == TAMIZ_OK)
        st = table_builder_add(m->op, m->builder, buf_slice(&m->key), stamp, value);
    return st;
}

static tamiz_status emit_pending(struct merge *m)
{
    m->pending = false;
    return emit(m, m->pending_stamp, slice_of(NULL, 0));
}

/* All versions of the key are through. A table ends here or nowhere: one user key never stands in
 * two tables of a run. */
static tamiz_status key_end(struct merge *m)
{
    tamiz_status st = TAMIZ_OK;
    if (m->pending && !m->in->bottom)
        TRY(emit_pending(m));
    m->pending = false;
    if (m->builder && table_builder_size(m->builder) >= m->out->table_bytes)
        TRY(table_end(m));
done:
    return st;
}

static tamiz_status key_begin(struct merge *m, struct slice key)
{
    tamiz_status st = TAMIZ_OK;
    if (m->any_key)
        TRY(key_end(m));
    buf_clear(&m->key);
    buf_slice_append(&m->key, key);
    TRY(m->key.failed ? op_fail_memory(m->op) : TAMIZ_OK);
    m->any_key = true;
    m->stripe = SIZE_MAX;
done:
    return st;
}

/* How many snapshots are too old to see the sequence: those with the same number see the same.
 *     snapshots 20, 40:  12 and 20 -> 0;  21 and 40 -> 1;  41 -> 2, only now sees it */
static size_t stripe_of(const struct compact_input *in, uint64_t seq)
{
    size_t from = 0, to = in->snapshot_count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (in->snapshots[middle] < seq)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static tamiz_status version_in(struct merge *m, uint64_t stamp, struct slice value)
{
    if (stamp_kind(stamp) > KIND_LAST)
        return op_fail(m->op, TAMIZ_NOT_SUPPORTED, "merge: a version of unknown kind %u",
                       stamp_kind(stamp));
    const size_t stripe = stripe_of(m->in, stamp_seq(stamp));
    if (stripe == m->stripe)
        return TAMIZ_OK; /* whoever sees it sees a newer one */
    m->stripe = stripe;
    if (stamp_kind(stamp) == KIND_DELETE) {
        m->pending = true; /* in the place of a newer one, if that waits */
        m->pending_stamp = stamp;
        return TAMIZ_OK;
    }
    const tamiz_status st = m->pending ? emit_pending(m) : TAMIZ_OK;
    if (st != TAMIZ_OK)
        return st;
    const bool settled = m->in->bottom && stripe == 0; /* everyone sees it, and nothing older */
    return emit(m, settled ? stamp_of(0, KIND_PUT) : stamp, value);
}

static tamiz_status merge_all(struct merge *m)
{
    struct iter *it = m->in->source;
    uint64_t count = 0;
    tamiz_status st = TAMIZ_OK;
    for (iter_seek_first(it); it->valid; iter_next(it)) {
        if (count++ % CANCEL_EVERY == 0 && m->in->cancelled && m->in->cancelled(m->in->cancel_ctx))
            TRY(op_fail(m->op, TAMIZ_CLOSED, "merge: cancelled"));
        if (!m->any_key || !slice_equal(it->key, buf_slice(&m->key)))
            TRY(key_begin(m, it->key));
        TRY(version_in(m, it->stamp, it->value));
    }
    TRY(it->status);
    if (m->any_key)
        TRY(key_end(m));
    if (m->builder)
        TRY(table_end(m));
done:
    return st;
}

/* Removes what was written. The failure that led here is the one that is told; a file that cannot
 * be removed now is garbage that the next opening sweeps. */
static void undo(struct merge *m)
{
    table_builder_abandon(m->op, m->builder);
    while (m->tables->size > m->tables_before) {
        struct table_meta *meta;
        m->tables->size -= sizeof meta;
        memcpy(&meta, m->tables->data + m->tables->size, sizeof meta);
        (void)env_remove(m->op, m->out->env, path_of(m, meta->number));
        table_meta_unref(m->out->alloc, meta);
    }
}

tamiz_status compact_run(struct op *op, const struct compact_input *in,
                         const struct compact_output *out, struct buf *tables)
{
    struct merge m = {.op = op,
                      .in = in,
                      .out = out,
                      .tables = tables,
                      .tables_before = tables->size,
                      .path = buf_init(out->alloc),
                      .key = buf_init(out->alloc)};
    tamiz_status st = TAMIZ_OK;
    buf_printf(&m.path, "%s/", out->directory);
    TRY(buf_reserve(&m.path, FILE_NAME_MAX) && !m.path.failed ? TAMIZ_OK : op_fail_memory(op));
    st = merge_all(&m);
    if (st != TAMIZ_OK)
        undo(&m);
done:
    buf_free(&m.path);
    buf_free(&m.key);
    return st;
}
