/* SPDX-License-Identifier: MIT */
#include "table/table_build.h"

#include <assert.h>
#include <stdio.h>

#include "base/hash.h"
#include "filter/filter.h"
#include "table/block_writer.h"
#include "table/filter_block.h"

typedef unsigned long long ull; /* for printing */

enum { WRITE_PIECE = 256 << 10 };

struct table_builder {
    const tamiz_env *env;
    const struct alloc *alloc;
    struct table_build_options options;
    char *path;
    struct file *file;
    uint64_t written; /* bytes of the file so far; `out` comes behind them */
    struct buf out;
    struct block_builder block;
    struct block_writer data;
    struct buf fence;
    struct buf hashes;        /* u64 each, of distinct user keys */
    struct buf prefix_hashes; /* of distinct prefixes */
    struct buf prefix;        /* of the last key that has one */
    struct buf last;          /* user key */
    struct buf smallest;
    struct buf ranges;                 /* as bytes, but for their count */
    struct buf range_first, range_end; /* where the first begins, where the last ends */
    uint64_t range_count;
    uint64_t last_stamp;
    struct table_properties said; /* its slices are set at the end */
    struct table_footer footer;
    tamiz_status failed; /* of an add: nothing may come of it any more */
};

/* ---- the file ---- */

static uint64_t place(const struct table_builder *b)
{
    return b->written + b->out.size;
}

static tamiz_status write_out(struct op *op, struct table_builder *b)
{
    if (b->out.failed)
        return op_fail_memory(op);
    const tamiz_status st =
        file_write(op, b->file, b->options.purpose, b->written, b->out.data, b->out.size);
    b->written += b->out.size;
    buf_clear(&b->out);
    return st;
}

/* A payload that is not packed, sealed, with its extent. */
static void put_part(struct table_builder *b, struct slice payload, struct extent *extent)
{
    *extent = (struct extent){place(b), payload.size};
    buf_slice_append(&b->out, payload);
    block_seal(&b->out, payload.size, CODEC_NONE, b->footer.file_id, extent->offset);
}

/* ---- data blocks ---- */

/* Ends the open block under `fence`. */
static tamiz_status cut(struct op *op, struct table_builder *b, struct slice fence)
{
    tamiz_status st;
    TRY(block_writer_put(op, &b->data, &b->block, fence, &b->out, b->written));
    if (b->out.size >= WRITE_PIECE || b->out.failed)
        TRY(write_out(op, b));
done:
    return st;
}

static tamiz_status cut_before(struct op *op, struct table_builder *b, struct slice next)
{
    buf_clear(&b->fence);
    if (!buf_reserve(&b->fence, b->last.size))
        return op_fail_memory(op);
    b->fence.size = key_separator(buf_slice(&b->last), next, b->fence.data);
    return cut(op, b, buf_slice(&b->fence));
}

/* ---- adding ---- */

static tamiz_status check_add(struct op *op, const struct table_builder *b, struct slice key,
                              uint64_t stamp, struct slice value)
{
    char a[100], c[100];
    if (b->failed)
        return op_fail(op, b->failed, "%s: an earlier add had failed", b->path);
    if (key.size > KEY_SIZE_MAX || value.size > VALUE_SIZE_MAX ||
        stamp_kind(stamp) > KIND_POINT_LAST)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT,
                       "%s: key %s: expected at most %u bytes, a value of at most %u and kind "
                       "0..%d, found %zu, %zu, %u",
                       b->path, slice_print(key, a, sizeof a), KEY_SIZE_MAX, VALUE_SIZE_MAX,
                       KIND_POINT_LAST, key.size, value.size, stamp_kind(stamp));
    if (b->said.entries && version_compare(buf_slice(&b->last), b->last_stamp, key, stamp) >= 0)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT,
                       "%s: expected a version behind %s stamp %llu, found %s stamp %llu", b->path,
                       slice_print(buf_slice(&b->last), a, sizeof a), (ull)b->last_stamp,
                       slice_print(key, c, sizeof c), (ull)stamp);
    return TAMIZ_OK;
}

/* Would the block be too large with this entry? */
static bool is_full(const struct table_builder *b, struct slice key, struct slice value)
{
    enum { OVERHEAD = 12 }; /* an entry's varints, tag and offset, about */
    return b->block.count && block_builder_size(&b->block) + key.size + value.size + OVERHEAD >
                                 b->options.block_bytes;
}

/* Of what is about to be added: its lowest sequence, and its highest. */
static void count_seqs(struct table_builder *b, uint64_t low, uint64_t high)
{
    struct table_properties *p = &b->said;
    const bool first = p->entries == 0 && b->range_count == 0;
    p->seq_min = first || low < p->seq_min ? low : p->seq_min;
    p->seq_max = first || high > p->seq_max ? high : p->seq_max;
}

static void count_entry(struct table_builder *b, struct slice key, uint64_t stamp,
                        struct slice value)
{
    struct table_properties *p = &b->said;
    count_seqs(b, stamp_seq(stamp), stamp_seq(stamp));
    p->entries++;
    p->tombstones += stamp_kind(stamp) == KIND_DELETE;
    p->raw_key_bytes += key.size;
    p->raw_value_bytes += value.size;
}

/* Keys with one prefix are neighbours, so that each is met once. */
static void add_prefix(struct table_builder *b, struct slice key)
{
    struct slice prefix;
    if (b->prefix.size && slice_has_prefix(key, buf_slice(&b->prefix)))
        return;
    if (!prefix_of(b->options.prefix, key, &prefix))
        return;
    const uint64_t hash = hash_key(prefix);
    buf_append(&b->prefix_hashes, &hash, sizeof hash);
    buf_clear(&b->prefix);
    buf_slice_append(&b->prefix, prefix);
}

static tamiz_status add_key(struct op *op, struct table_builder *b, struct slice key,
                            struct slice value, uint64_t hash)
{
    tamiz_status st = TAMIZ_OK;
    if (is_full(b, key, value))
        TRY(cut_before(op, b, key));
    if (b->said.entries == 0)
        buf_slice_append(&b->smallest, key);
    buf_append(&b->hashes, &hash, sizeof hash);
    buf_clear(&b->last);
    buf_slice_append(&b->last, key);
    b->said.keys++;
    if (b->options.prefix.kind != TAMIZ_PREFIX_NONE)
        add_prefix(b, key);
    if (b->hashes.failed || b->last.failed || b->smallest.failed || b->prefix_hashes.failed ||
        b->prefix.failed)
        TRY(op_fail_memory(op));
done:
    return st;
}

tamiz_status table_builder_add(struct op *op, struct table_builder *b, struct slice key,
                               uint64_t stamp, struct slice value)
{
    tamiz_status st;
    TRY(check_add(op, b, key, stamp, value));
    uint64_t hash;
    if (b->said.entries == 0 || !slice_equal(key, buf_slice(&b->last))) {
        hash = hash_key(key);
        TRY(add_key(op, b, key, value, hash));
    } else {
        memcpy(&hash, b->hashes.data + (b->hashes.size - sizeof hash), sizeof hash);
    }
    block_builder_add(&b->block, key, hash, stamp, value);
    count_entry(b, key, stamp, value);
    b->last_stamp = stamp;
done:
    if (st < 0)
        b->failed = st;
    return st;
}

tamiz_status table_builder_add_range(struct op *op, struct table_builder *b, const struct range *r)
{
    tamiz_status st = TAMIZ_OK;
    if (b->failed)
        return op_fail(op, b->failed, "%s: an earlier add had failed", b->path);
    if (slice_compare(r->from, r->to) >= 0 || r->to.size > KEY_SIZE_MAX || r->seq_count == 0 ||
        (b->range_count && slice_compare(buf_slice(&b->range_end), r->from) > 0)) {
        char a[100], c[100];
        TRY(op_fail(op, TAMIZ_INVALID_ARGUMENT,
                    "%s: expected a range behind the one before, found %s to %s", b->path,
                    slice_print(r->from, a, sizeof a), slice_print(r->to, c, sizeof c)));
    }
    if (b->range_count == 0)
        buf_slice_append(&b->range_first, r->from);
    buf_clear(&b->range_end);
    buf_slice_append(&b->range_end, r->to);
    range_encode(&b->ranges, r);
    count_seqs(b, r->seqs[r->seq_count - 1], r->seqs[0]);
    b->range_count++;
    if (b->range_first.failed || b->range_end.failed || b->ranges.failed)
        TRY(op_fail_memory(op));
done:
    if (st < 0)
        b->failed = st;
    return st;
}

uint64_t table_builder_size(const struct table_builder *b)
{
    return place(b) + b->ranges.size + block_writer_waiting(&b->data) +
           (b->block.count ? block_builder_size(&b->block) : 0) + b->data.index.fences.size;
}

uint64_t table_builder_entries(const struct table_builder *b)
{
    return b->said.entries;
}

struct slice table_builder_last_key(const struct table_builder *b)
{
    return buf_slice(&b->last);
}

/* ---- the end ---- */

static tamiz_status put_filter(struct op *op, struct table_builder *b, tamiz_filter_info *info)
{
    const uint64_t from = env_monotonic_ns(b->env);
    const struct filter_keys keys = {buf_slice(&b->hashes), buf_slice(&b->prefix_hashes)};
    struct filter_block block = {.bytes = buf_init(b->alloc)};
    const tamiz_status st = filter_block_build(op, &b->options, b->path, &keys, &block);
    if (st == TAMIZ_OK && block.bytes.size)
        put_part(b, buf_slice(&block.bytes), &b->footer.filter);
    b->said.prefix = block.prefix;
    *info = block.info;
    counter_add(&op->count->filter_build_us, (env_monotonic_ns(b->env) - from) / 1000);
    buf_free(&block.bytes);
    return st;
}

/* The last block, and the dictionary behind it. */
static tamiz_status put_data_end(struct op *op, struct table_builder *b)
{
    struct block_writer *w = &b->data;
    tamiz_status st;
    if (b->said.entries)
        TRY(cut(op, b, buf_slice(&b->last)));
    TRY(block_writer_end(op, w, &b->out, b->written));
    b->said.data_blocks = w->count;
    b->said.data_bytes = w->stored_bytes;
    b->said.block_raw_max = w->raw_most;
    if (w->dictionary.size)
        put_part(b, buf_slice(&w->dictionary), &b->footer.dictionary);
done:
    return st;
}

static tamiz_status put_ranges(struct op *op, struct table_builder *b)
{
    struct buf payload = buf_init(b->alloc);
    if (b->range_count == 0)
        return TAMIZ_OK;
    buf_varint(&payload, b->range_count);
    buf_slice_append(&payload, buf_slice(&b->ranges));
    const tamiz_status st = payload.failed ? op_fail_memory(op) : TAMIZ_OK;
    if (st == TAMIZ_OK)
        put_part(b, buf_slice(&payload), &b->footer.ranges);
    buf_free(&payload);
    return st;
}

/* The ends of the keys that the table has something to say of. */
static struct slice smallest_of(const struct table_builder *b)
{
    const struct slice entry = buf_slice(&b->smallest), range = buf_slice(&b->range_first);
    if (b->range_count == 0 || (b->said.entries && slice_compare(entry, range) <= 0))
        return entry;
    return range;
}

static struct slice largest_of(const struct table_builder *b)
{
    const struct slice entry = buf_slice(&b->last);
    if (b->range_count == 0)
        return entry;
    const struct slice range = range_last_key(buf_slice(&b->range_end));
    return b->said.entries && slice_compare(entry, range) >= 0 ? entry : range;
}

static tamiz_status put_index(struct op *op, struct table_builder *b)
{
    struct buf payload = buf_init(b->alloc);
    const tamiz_status st = index_builder_finish(op, &b->data.index, &payload);
    if (st == TAMIZ_OK)
        put_part(b, buf_slice(&payload), &b->footer.index);
    buf_free(&payload);
    return st;
}

static tamiz_status put_properties(struct op *op, struct table_builder *b,
                                   const tamiz_filter_info *info)
{
    struct buf payload = buf_init(b->alloc);
    struct table_properties *p = &b->said;
    p->created_us = b->options.created_us ? b->options.created_us : env_wall_us(b->env);
    p->filter_expected_fpr = info->expected_fpr;
    p->filter_bits_per_key = info->bits_per_key;
    p->filter_kind = slice_of_text(info->kind);
    p->hash_name = slice_of_text(KEY_HASH_NAME);
    p->smallest = smallest_of(b);
    p->largest = largest_of(b);
    p->keyspace = b->options.keyspace;
    p->keyspace_name = b->options.keyspace_name;
    table_properties_encode(&payload, p);
    const tamiz_status st = payload.failed ? op_fail_memory(op) : TAMIZ_OK;
    if (st == TAMIZ_OK)
        put_part(b, buf_slice(&payload), &b->footer.properties);
    buf_free(&payload);
    return st;
}

static tamiz_status put_rest(struct op *op, struct table_builder *b)
{
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    tamiz_status st;
    if (b->failed)
        TRY(op_fail(op, b->failed, "%s: an earlier add had failed", b->path));
    if (b->said.entries == 0 && b->range_count == 0)
        TRY(op_fail(op, TAMIZ_INVALID_ARGUMENT, "%s: expected at least one entry, found none",
                    b->path));
    TRY(put_data_end(op, b));
    TRY(put_ranges(op, b));
    TRY(put_filter(op, b, &info));
    TRY(put_index(op, b));
    TRY(put_properties(op, b, &info));
    table_footer_encode(&b->out, &b->footer);
    TRY(write_out(op, b));
    TRY(file_sync(op, b->file));
done:
    return st;
}

static tamiz_status summarize(struct op *op, const struct table_builder *b, struct table_summary *s)
{
    s->file_id = b->footer.file_id;
    s->file_size = b->written;
    s->entries = b->said.entries;
    s->keys = b->said.keys;
    s->tombstones = b->said.tombstones;
    s->seq_min = b->said.seq_min;
    s->seq_max = b->said.seq_max;
    s->ranges = b->range_count;
    s->filter_bytes = b->footer.filter.size;
    buf_clear(&s->smallest);
    buf_clear(&s->largest);
    buf_slice_append(&s->smallest, smallest_of(b));
    buf_slice_append(&s->largest, largest_of(b));
    return s->smallest.failed || s->largest.failed ? op_fail_memory(op) : TAMIZ_OK;
}

static void builder_free(struct table_builder *b)
{
    block_builder_free(&b->block);
    block_writer_free(&b->data);
    buf_free(&b->out);
    buf_free(&b->fence);
    buf_free(&b->hashes);
    buf_free(&b->prefix_hashes);
    buf_free(&b->prefix);
    buf_free(&b->last);
    buf_free(&b->smallest);
    buf_free(&b->ranges);
    buf_free(&b->range_first);
    buf_free(&b->range_end);
    mem_free_text(b->alloc, b->path);
    mem_free(b->alloc, b, sizeof *b);
}

/* Removes the file; the failure that led here is the one that is told. */
static void remove_file(struct op *op, const struct table_builder *b)
{
    struct op own;
    op_init(&own, op->alloc, op->count);
    (void)env_remove(&own, b->env, b->path);
}

tamiz_status table_builder_finish(struct op *op, struct table_builder *b,
                                  struct table_summary *summary)
{
    tamiz_status st = put_rest(op, b);
    const tamiz_status closed = file_close(op, b->file);
    if (st == TAMIZ_OK)
        st = closed;
    if (st == TAMIZ_OK)
        st = summarize(op, b, summary);
    if (st != TAMIZ_OK)
        remove_file(op, b);
    builder_free(b);
    return st;
}

void table_builder_abandon(struct op *op, struct table_builder *b)
{
    if (!b)
        return;
    struct op own;
    op_init(&own, op->alloc, op->count);
    (void)file_close(&own, b->file);
    remove_file(op, b);
    builder_free(b);
}

/* ---- the beginning ---- */

static tamiz_status begin(struct op *op, struct table_builder *b)
{
    tamiz_status st;
    TRY(filter_policy_check(op, &b->options.filter));
    b->footer.file_id = b->options.file_id;
    if (b->footer.file_id == 0)
        TRY(env_random_u64(op, b->env, &b->footer.file_id));
    TRY(file_open(op, b->env, b->path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &b->file));
    table_header_encode(&b->out, b->footer.file_id);
    b->data.file_id = b->footer.file_id;
done:
    return st;
}

tamiz_status table_builder_open(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                                const char *path, const struct table_build_options *options,
                                struct table_builder **builder)
{
    *builder = NULL;
    struct table_builder *b = mem_new_array(alloc, 1, sizeof *b);
    char *copy = mem_text(alloc, path);
    if (!b || !copy) {
        mem_free(alloc, b, sizeof *b);
        mem_free_text(alloc, copy);
        return op_fail_memory(op);
    }
    b->env = env;
    b->alloc = alloc;
    b->options = *options;
    b->path = copy;
    block_builder_init(&b->block, alloc);
    block_writer_init(&b->data, alloc, options->codec, options->compression_level);
    b->out = b->fence = b->hashes = b->last = b->smallest = buf_init(alloc);
    b->ranges = b->range_first = b->range_end = buf_init(alloc);
    b->prefix_hashes = b->prefix = b->out;
    const tamiz_status st = begin(op, b);
    if (st == TAMIZ_OK)
        *builder = b;
    else
        builder_free(b);
    return st;
}
