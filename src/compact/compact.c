/* SPDX-License-Identifier: MIT */
#include "compact/compact.h"

#include "base/expiry.h"
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
    struct ranges ranges; /* of the inputs, thinned out */
    size_t cover;         /* the first of them that ends above the key */
    size_t next_range;    /* the first that is not written yet, or not whole … */
    struct buf cut;       /* … and where its rest begins; empty: at its beginning */
    size_t stripe;        /* of its version before this one */
    bool pending; /* a tombstone of it waits: for an older version to hide, or the key's end */
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
                                    .keyspace = m->out->build.keyspace,
                                    .file_id = s->file_id,
                                    .file_size = s->file_size,
                                    .level = m->out->level,
                                    .run = m->out->run,
                                    .entries = s->entries,
                                    .keys = s->keys,
                                    .tombstones = s->tombstones,
                                    .seq_min = s->seq_min,
                                    .seq_max = s->seq_max,
                                    .ranges = s->ranges,
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

/* ---- range deletes ---- */

/* One piece into the table at hand, without what nobody needs. */
static tamiz_status put_range(struct merge *m, const struct range *piece)
{
    struct range r = *piece;
    const uint64_t oldest = r.seqs[r.seq_count - 1];
    if (m->in->bottom && seq_stripe(m->in->snapshots, m->in->snapshot_count, oldest) == 0)
        r.seq_count--; /* everyone sees it, and there is nothing below */
    if (r.seq_count == 0)
        return TAMIZ_OK;
    const tamiz_status st = m->builder ? TAMIZ_OK : table_begin(m);
    return st == TAMIZ_OK ? table_builder_add_range(m->op, m->builder, &r) : st;
}

/* What is left of the next piece. */
static struct range rest_of(const struct merge *m)
{
    struct range r = m->ranges.list[m->next_range];
    if (m->cut.size && slice_compare(buf_slice(&m->cut), r.from) > 0)
        r.from = buf_slice(&m->cut);
    return r;
}

/* All that begins at or below the key at hand, up to and with that key. */
static tamiz_status put_ranges_to_key(struct merge *m)
{
    const struct slice key = buf_slice(&m->key);
    struct buf end = buf_init(m->op->alloc);
    tamiz_status st = TAMIZ_OK;
    buf_slice_append(&end, key);
    buf_u8(&end, 0);
    TRY(end.failed ? op_fail_memory(m->op) : TAMIZ_OK);
    for (; m->next_range < m->ranges.count; m->next_range++) {
        struct range r = rest_of(m);
        if (slice_compare(r.from, key) > 0)
            break;
        const bool goes_on = slice_compare(r.to, buf_slice(&end)) > 0;
        if (goes_on)
            r.to = buf_slice(&end);
        TRY(put_range(m, &r));
        if (goes_on)
            break;
    }
    buf_clear(&m->cut);
    buf_slice_append(&m->cut, buf_slice(&end));
    TRY(m->cut.failed ? op_fail_memory(m->op) : TAMIZ_OK);
done:
    buf_free(&end);
    return st;
}

static tamiz_status put_ranges_left(struct merge *m)
{
    tamiz_status st = TAMIZ_OK;
    for (; st == TAMIZ_OK && m->next_range < m->ranges.count; m->next_range++) {
        const struct range r = rest_of(m);
        st = put_range(m, &r);
    }
    return st;
}

/* A piece that goes on behind the longest key there can be has no place to be cut at. */
static bool can_end_table(const struct merge *m)
{
    return m->key.size < KEY_SIZE_MAX || m->next_range == m->ranges.count;
}

/* Is this version of the key at hand under a range delete that all its readers see? */
static bool is_covered(struct merge *m, uint64_t seq, size_t stripe)
{
    const struct slice key = buf_slice(&m->key);
    const struct ranges *all = &m->ranges;
    while (m->cover < all->count && slice_compare(all->list[m->cover].to, key) <= 0)
        m->cover++;
    if (m->cover == all->count || slice_compare(all->list[m->cover].from, key) > 0)
        return false;
    const struct range *r = &all->list[m->cover];
    for (size_t i = 0; i < r->seq_count && r->seqs[i] > seq; i++)
        if (seq_stripe(m->in->snapshots, m->in->snapshot_count, r->seqs[i]) == stripe)
            return true;
    return false;
}

/* ---- tables ---- */

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
    if (m->builder && table_builder_size(m->builder) >= m->out->table_bytes && can_end_table(m)) {
        TRY(put_ranges_to_key(m));
        TRY(table_end(m));
    }
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

/* What has expired becomes a tombstone in its place. */
static tamiz_status judge_expiry(struct merge *m, uint64_t *stamp, struct slice value)
{
    uint64_t expires_us;
    char key[100];
    if (!expiry_split(&value, &expires_us))
        return op_fail(m->op, TAMIZ_CORRUPTION,
                       "merge: %s: a value for a time: expected at least %d bytes, found %zu",
                       slice_print(buf_slice(&m->key), key, sizeof key), EXPIRY_SIZE, value.size);
    if (expires_us <= m->in->now_us)
        *stamp = stamp_of(stamp_seq(*stamp), KIND_DELETE);
    return TAMIZ_OK;
}

static tamiz_status version_in(struct merge *m, uint64_t stamp, struct slice value)
{
    tamiz_status st = TAMIZ_OK;
    if (stamp_kind(stamp) > KIND_POINT_LAST)
        return op_fail(m->op, TAMIZ_NOT_SUPPORTED, "merge: a version of unknown kind %u",
                       stamp_kind(stamp));
    const uint64_t seq = stamp_seq(stamp);
    const size_t stripe = seq_stripe(m->in->snapshots, m->in->snapshot_count, seq);
    if (stripe == m->stripe || (m->ranges.count && is_covered(m, seq, stripe)))
        return TAMIZ_OK; /* whoever sees it sees something newer */
    m->stripe = stripe;
    if (stamp_kind(stamp) == KIND_EXPIRING)
        TRY(judge_expiry(m, &stamp, value));
    const bool unseen = stripe == m->in->snapshot_count; /* by all snapshots */
    if (m->in->judge && unseen && stamp_kind(stamp) != KIND_DELETE)
        TRY(judge_version(m->op, m->in->judge, buf_slice(&m->key), &stamp, &value));
    if (stamp_kind(stamp) == KIND_DELETE) {
        m->pending = true; /* in the place of a newer one, if that waits */
        m->pending_stamp = stamp;
        return TAMIZ_OK;
    }
    if (m->pending)
        TRY(emit_pending(m));
    const bool settled = m->in->bottom && stripe == 0; /* everyone sees it, and nothing older */
    st = emit(m, settled ? stamp_of(0, (enum kind)stamp_kind(stamp)) : stamp, value);
done:
    return st;
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
    TRY(put_ranges_left(m));
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
                      .key = buf_init(out->alloc),
                      .cut = buf_init(out->alloc)};
    tamiz_status st = TAMIZ_OK;
    buf_printf(&m.path, "%s/", out->directory);
    TRY(buf_reserve(&m.path, FILE_NAME_MAX) && !m.path.failed ? TAMIZ_OK : op_fail_memory(op));
    TRY(ranges_build(op, op->alloc, in->ranges, in->range_count, in->snapshots, in->snapshot_count,
                     &m.ranges));
    st = merge_all(&m);
    if (st != TAMIZ_OK)
        undo(&m);
done:
    ranges_free(&m.ranges);
    buf_free(&m.cut);
    buf_free(&m.path);
    buf_free(&m.key);
    return st;
}
