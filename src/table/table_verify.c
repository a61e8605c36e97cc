/* SPDX-License-Identifier: MIT
 *
 * Every byte of a table looked at, and everything it says of itself compared with what is in it.
 * What cannot be read is a find, and the search goes on behind it; what follows from the counts is
 * then not judged.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/expiry.h"
#include "table/table_inside.h"

typedef unsigned long long ull; /* for printing */

struct verifier {
    struct op *op;
    struct table *t;
    struct table_loaded *l;
    tamiz_report *report;
    uint64_t finds;
    uint64_t unreadable; /* blocks */
    struct buf first;    /* key */
    struct buf last;     /* key before the current one */
    uint64_t last_stamp;
    struct table_properties seen; /* counted: only numbers */
};

static void find(struct verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void find(struct verifier *v, const char *format, ...)
{
    char text[OP_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    v->finds++;
    v->report->damaged++;
    if (v->report->find)
        v->report->find(v->report->ctx, text);
}

/* The op's failure was a find: told, and forgiven so that the next one has words again. */
static void find_failure(struct verifier *v, uint64_t lost_bytes)
{
    find(v, "%s", v->op->text);
    op_forgive(v->op);
    v->report->lost_bytes += lost_bytes;
}

/* What is newer than this library is not: of that it can say nothing. */
static bool is_damage(tamiz_status st)
{
    return st == TAMIZ_CORRUPTION || st == TAMIZ_IO_ERROR;
}

/* ---- entries ---- */

static void check_order(struct verifier *v, struct slice key, uint64_t stamp, uint64_t offset)
{
    if (v->seen.entries == 0 || version_compare(buf_slice(&v->last), v->last_stamp, key, stamp) < 0)
        return;
    char a[60], b[60];
    find(v, "%s: block at offset %llu: expected a version behind %s, found %s", v->t->path,
         (ull)offset, slice_print(buf_slice(&v->last), a, sizeof a), slice_print(key, b, sizeof b));
}

/* Fence of the block before < key <= fence of this one. */
static bool above_fence(const struct verifier *v, uint32_t block, struct slice key)
{
    return index_find(v->l->index, key) != block;
}

static void check_key(struct verifier *v, uint32_t block, const struct block *b, uint32_t i,
                      struct slice key, uint64_t offset)
{
    char text[60];
    const uint64_t hash = hash_key(key);
    if (above_fence(v, block, key))
        find(v,
             "%s: block at offset %llu: expected the key %s between its fences, found the index "
             "to name block %u",
             v->t->path, (ull)offset, slice_print(key, text, sizeof text),
             index_find(v->l->index, key));
    if (b->tags[i] != hash_tag(hash))
        find(v, "%s: block at offset %llu: key %s: expected tag %02x, found %02x", v->t->path,
             (ull)offset, slice_print(key, text, sizeof text), hash_tag(hash), b->tags[i]);
    if (!filter_view_may_contain(&v->l->filter, hash))
        find(v, "%s: expected the filter to say maybe of the key %s, found that it denies it",
             v->t->path, slice_print(key, text, sizeof text));
}

static void check_prefix(struct verifier *v, struct slice key)
{
    struct slice prefix;
    char text[60];
    if (v->l->prefix_filter.family && prefix_of(v->l->properties.prefix.rule, key, &prefix) &&
        !filter_view_may_contain(&v->l->prefix_filter, hash_key(prefix)))
        find(v, "%s: expected the prefix filter to say maybe of %s, found that it denies it",
             v->t->path, slice_print(prefix, text, sizeof text));
}

static void count_entry(struct table_properties *seen, struct slice key, uint64_t stamp,
                        struct slice value, bool fresh)
{
    const uint64_t seq = stamp_seq(stamp);
    seen->seq_min = seen->entries == 0 || seq < seen->seq_min ? seq : seen->seq_min;
    seen->seq_max = seen->entries == 0 || seq > seen->seq_max ? seq : seen->seq_max;
    seen->entries++;
    seen->keys += fresh;
    seen->tombstones += stamp_kind(stamp) == KIND_DELETE;
    seen->raw_key_bytes += key.size;
    seen->raw_value_bytes += value.size;
}

static tamiz_status check_entries(struct verifier *v, uint32_t block, const struct block *b,
                                  uint64_t offset)
{
    struct buf key = buf_init(v->op->alloc);
    tamiz_status st = TAMIZ_OK;
    for (uint32_t i = 0; i < b->count; i++) {
        struct block_entry e;
        if (!block_entry_at(b, i, &e)) {
            find(v, "%s: block at offset %llu: expected whole entries, found damage at entry %u",
                 v->t->path, (ull)offset, i);
            v->unreadable++;
            break;
        }
        buf_clear(&key);
        buf_slice_append(&key, e.shared);
        buf_slice_append(&key, e.suffix);
        const bool fresh =
            v->seen.entries == 0 || !slice_equal(buf_slice(&v->last), buf_slice(&key));
        check_order(v, buf_slice(&key), e.stamp, offset);
        check_key(v, block, b, i, buf_slice(&key), offset);
        check_prefix(v, buf_slice(&key));
        if (stamp_kind(e.stamp) == KIND_EXPIRING && e.value.size < EXPIRY_SIZE)
            find(v,
                 "%s: block at offset %llu: expected a value for a time of %d bytes at least, "
                 "found %zu at entry %u",
                 v->t->path, (ull)offset, EXPIRY_SIZE, e.value.size, i);
        count_entry(&v->seen, buf_slice(&key), e.stamp, e.value, fresh);
        if (v->seen.entries == 1)
            buf_slice_append(&v->first, buf_slice(&key));
        buf_clear(&v->last);
        buf_slice_append(&v->last, buf_slice(&key));
        v->last_stamp = e.stamp;
        if (key.failed || v->last.failed || v->first.failed)
            TRY(op_fail_memory(v->op));
    }
done:
    buf_free(&key);
    return st;
}

/* ---- blocks ---- */

tamiz_status table_read_checked(struct op *op, struct table *t, struct table_loaded *l,
                                uint32_t block, struct cached_block **b)
{
    struct block_load load;
    tamiz_status st;
    TRY(block_load_begin(op, t, l, block, &load));
    struct file *file;
    st = file_pool_acquire(op, t->world->files, &t->file, &file);
    if (st == TAMIZ_OK) {
        st = file_read(op, file, IO_DATA, load.extent.offset, load.bytes,
                       (size_t)extent_whole(load.extent));
        file_pool_release(t->world->files, &t->file);
    }
    if (st == TAMIZ_OK) {
        struct slice payload;
        enum codec codec;
        st = block_unseal(op, slice_of(load.bytes, (size_t)extent_whole(load.extent)), l->file_id,
                          load.extent.offset, t->path, true, &payload, &codec);
    }
    if (st < 0) {
        block_load_abandon(t, &load);
        return st;
    }
    TRY(block_load_end(op, t, l, &load, b));
done:
    return st;
}

static tamiz_status check_block(struct verifier *v, uint32_t block)
{
    const struct extent e = index_extent(v->l->index, block);
    struct cached_block *b = NULL;
    tamiz_status st = table_read_checked(v->op, v->t, v->l, block, &b);
    v->report->blocks++;
    v->seen.data_blocks++;
    v->seen.data_bytes += extent_whole(e);
    if (is_damage(st)) {
        v->unreadable++;
        find_failure(v, extent_whole(e));
        return TAMIZ_OK;
    }
    if (st == TAMIZ_OK) {
        const uint64_t raw = index_raw_size(v->l->index, block);
        v->seen.block_raw_max = raw > v->seen.block_raw_max ? raw : v->seen.block_raw_max;
        st = check_entries(v, block, &b->block, e.offset);
    }
    cached_block_unpin(b);
    return st;
}

/* ---- what it says of itself ---- */

static void check_number(struct verifier *v, const char *name, uint64_t said, uint64_t counted)
{
    if (said != counted)
        find(v, "%s: properties: %s: expected %llu as counted, found %llu", v->t->path, name,
             (ull)counted, (ull)said);
}

/* Counts the range deletes; smallest and largest key are those of entries and ranges together. */
static void count_ranges(struct verifier *v, struct slice *smallest, struct slice *largest)
{
    const struct ranges *r = &v->l->ranges;
    struct table_properties *seen = &v->seen;
    *smallest = buf_slice(&v->first);
    *largest = buf_slice(&v->last);
    if (r->count == 0)
        return;
    const struct slice end = range_last_key(r->list[r->count - 1].to);
    if (seen->entries == 0 || slice_compare(r->list[0].from, *smallest) < 0)
        *smallest = r->list[0].from;
    if (seen->entries == 0 || slice_compare(end, *largest) > 0)
        *largest = end;
    for (size_t i = 0; i < r->seqs_room; i++) {
        const bool first = seen->entries == 0 && i == 0;
        seen->seq_min = first || r->seqs[i] < seen->seq_min ? r->seqs[i] : seen->seq_min;
        seen->seq_max = first || r->seqs[i] > seen->seq_max ? r->seqs[i] : seen->seq_max;
    }
}

static void check_properties(struct verifier *v)
{
    struct slice smallest, largest;
    count_ranges(v, &smallest, &largest);
    const struct table_properties *said = &v->l->properties, *seen = &v->seen;
    check_number(v, "entries", said->entries, seen->entries);
    check_number(v, "keys", said->keys, seen->keys);
    check_number(v, "tombstones", said->tombstones, seen->tombstones);
    check_number(v, "raw key bytes", said->raw_key_bytes, seen->raw_key_bytes);
    check_number(v, "raw value bytes", said->raw_value_bytes, seen->raw_value_bytes);
    check_number(v, "data blocks", said->data_blocks, seen->data_blocks);
    check_number(v, "data bytes", said->data_bytes, seen->data_bytes);
    check_number(v, "smallest sequence", said->seq_min, seen->seq_min);
    check_number(v, "largest sequence", said->seq_max, seen->seq_max);
    check_number(v, "largest block", said->block_raw_max, seen->block_raw_max);
    if (!slice_equal(said->smallest, smallest))
        find(v, "%s: properties: expected the first key as the smallest, found another",
             v->t->path);
    if (!slice_equal(said->largest, largest))
        find(v, "%s: properties: expected the last key as the largest, found another", v->t->path);
}

static tamiz_status check_all(struct verifier *v)
{
    const uint32_t count = index_count(v->l->index);
    tamiz_status st = TAMIZ_OK;
    if (v->l->filter_status == TAMIZ_CORRUPTION || v->l->filter_status == TAMIZ_IO_ERROR)
        find(v, "%s: filter: %s", v->t->path, v->l->filter_missing);
    for (uint32_t block = 0; block < count; block++) {
        TRY(check_block(v, block));
        if (v->report->progress) {
            const struct extent e = index_extent(v->l->index, block);
            v->report->progress(v->report->ctx, e.offset + extent_whole(e), v->l->file_size);
        }
    }
    if (v->l->ranges_status != TAMIZ_OK)
        find(v, "%s", v->l->ranges_damage);
    else if (v->unreadable == 0)
        check_properties(v);
    v->report->keys += v->seen.keys;
done:
    return st;
}

tamiz_status table_verify(struct op *op, struct table *t, tamiz_report *report)
{
    struct verifier v = {.op = op,
                         .t = t,
                         .report = report,
                         .first = buf_init(op->alloc),
                         .last = buf_init(op->alloc)};
    report->files++;
    tamiz_status st = table_load(op, t);
    if (is_damage(st)) {
        find_failure(&v, t->file_size);
        st = TAMIZ_OK;
    } else if (st == TAMIZ_OK) {
        v.l = table_loaded_of(t);
        st = check_all(&v);
    }
    buf_free(&v.first);
    buf_free(&v.last);
    if (st == TAMIZ_OK && v.finds)
        st = op_fail(op, TAMIZ_CORRUPTION, "%s: expected no damage, found %llu", t->path,
                     (ull)v.finds);
    return st;
}
