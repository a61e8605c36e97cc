/* SPDX-License-Identifier: MIT
 *
 * Opening a table: header, then the last few KiB, which have the footer and nearly always the
 * properties; then index and filter, unless they were in there too. Two reads for a small table,
 * four for a large one.
 */
#include <stdio.h>

#include "table/table_inside.h"

typedef unsigned long long ull; /* for printing */

enum {
    TAIL_MOST = 4096,
    PLACES_ALIGN = 64, /* the places beside a node of the index are two lines, not three */
};

/* Where what gets touch is kept. */
static const struct alloc *room_of(const struct table *t)
{
    return heap_alloc(cache_heap(t->world->cache));
}

/* The end of the file, read in one piece. */
struct tail {
    struct buf bytes;
    uint64_t offset;
};

static tamiz_status check_size(struct op *op, const struct table *t, struct table_loaded *l)
{
    tamiz_status st;
    TRY(file_size(op, l->file, &l->file_size));
    if (t->file_size && t->file_size != l->file_size)
        TRY(op_fail(op, TAMIZ_CORRUPTION, "%s: offset 0: expected a file of %llu bytes, found %llu",
                    t->path, (ull)t->file_size, (ull)l->file_size));
    if (l->file_size < TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE)
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "%s: offset 0: expected a table of at least %d bytes, found %llu", t->path,
                    TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE, (ull)l->file_size));
done:
    return st;
}

static tamiz_status read_header(struct op *op, const struct table *t, struct table_loaded *l)
{
    uint8_t bytes[TABLE_HEADER_SIZE];
    tamiz_status st;
    TRY(file_read(op, l->file, IO_META, 0, bytes, sizeof bytes));
    TRY(table_header_decode(op, slice_of(bytes, sizeof bytes), t->path, &l->file_id));
    if (t->file_id && t->file_id != l->file_id)
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "%s: offset 16: expected file id %016llx, found %016llx: another table's file",
                    t->path, (ull)t->file_id, (ull)l->file_id));
done:
    return st;
}

static tamiz_status read_tail(struct op *op, const struct table *t, struct table_loaded *l,
                              struct tail *tail, struct table_footer *footer)
{
    const uint64_t most = l->file_size - TABLE_HEADER_SIZE;
    const size_t size = most < TAIL_MOST ? (size_t)most : TAIL_MOST;
    tail->offset = l->file_size - size;
    tamiz_status st;
    if (!buf_reserve(&tail->bytes, size))
        TRY(op_fail_memory(op));
    TRY(file_read(op, l->file, IO_META, tail->offset, tail->bytes.data, size));
    tail->bytes.size = size;
    const struct slice last =
        slice_of(tail->bytes.data + (size - TABLE_FOOTER_SIZE), TABLE_FOOTER_SIZE);
    TRY(table_footer_decode(op, last, l->file_size, t->path, footer));
    if (footer->file_id != l->file_id)
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "%s: offset %llu: expected file id %016llx as in the header, found %016llx",
                    t->path, (ull)(l->file_size - TABLE_FOOTER_SIZE + 80), (ull)l->file_id,
                    (ull)footer->file_id));
done:
    return st;
}

/* The payload of a part as stored: none but data blocks is packed. */
static tamiz_status part_unseal(struct op *op, const struct table *t, const struct table_loaded *l,
                                struct slice stored, struct extent extent, struct slice *payload)
{
    enum codec codec;
    tamiz_status st;
    TRY(block_unseal(op, stored, l->file_id, extent.offset, t->path, true, payload, &codec));
    if (codec != CODEC_NONE)
        TRY(op_fail(op, TAMIZ_NOT_SUPPORTED, "%s: block at offset %llu: expected codec 0, found %d",
                    t->path, (ull)extent.offset, codec));
done:
    return st;
}

/* The payload of a part: from the tail, or read into `own`. */
static tamiz_status read_part(struct op *op, const struct table *t, struct table_loaded *l,
                              const struct tail *tail, struct extent extent,
                              enum io_purpose purpose, struct buf *own, struct slice *payload)
{
    const uint64_t whole = extent_whole(extent);
    const uint8_t *stored = NULL;
    tamiz_status st = TAMIZ_OK;
    if (extent.offset >= tail->offset) {
        stored = tail->bytes.data + (extent.offset - tail->offset);
    } else {
        if (whole > SIZE_MAX / 2 || !buf_reserve(own, (size_t)whole))
            TRY(op_fail_memory(op));
        TRY(file_read(op, l->file, purpose, extent.offset, own->data, (size_t)whole));
        stored = own->data;
    }
    TRY(part_unseal(op, t, l, slice_of(stored, (size_t)whole), extent, payload));
done:
    return st;
}

/* The same, kept in `copy`. */
static tamiz_status copy_part(struct op *op, const struct table *t, struct table_loaded *l,
                              const struct tail *tail, struct extent extent, struct buf *copy)
{
    struct slice payload;
    struct buf own = buf_init(t->world->alloc);
    tamiz_status st;
    TRY(read_part(op, t, l, tail, extent, IO_META, &own, &payload));
    buf_slice_append(copy, payload);
    if (copy->failed)
        TRY(op_fail_memory(op));
done:
    buf_free(&own);
    return st;
}

/* What an ordinary block is like, near enough for what only costs time. Of packed blocks only keys
 * and values are known. */
static void judge_blocks(struct table_loaded *l)
{
    const struct table_properties *p = &l->properties;
    if (p->data_blocks == 0 || p->entries == 0)
        return;
    const uint64_t entries = (p->entries + p->data_blocks - 1) / p->data_blocks;
    const uint64_t raw = p->raw_key_bytes / p->entries + p->raw_value_bytes / p->entries;
    const uint64_t stored = p->data_bytes / p->entries;
    const uint64_t bytes = stored > raw / 4 * 3 ? stored - (stored > 3 ? 3 : 0) : raw;
    l->block_entries = (uint32_t)(entries < UINT32_MAX ? entries : UINT32_MAX);
    l->entry_bytes = (uint32_t)(bytes < UINT32_MAX ? bytes : UINT32_MAX);
}

static tamiz_status load_properties(struct op *op, const struct table *t, struct table_loaded *l,
                                    const struct tail *tail, const struct table_footer *footer)
{
    tamiz_status st;
    TRY(copy_part(op, t, l, tail, footer->properties, &l->properties_bytes));
    TRY(table_properties_decode(op, buf_slice(&l->properties_bytes), t->path, &l->properties));
    judge_blocks(l);
    l->seq_max = l->properties.seq_max;
    if (l->seq_max == 0 && t->sequence) {
        l->seq_max = t->sequence;
        l->stamp_base = stamp_of(t->sequence, 0);
    }
    if (!slice_equal(l->properties.hash_name, slice_of_text(KEY_HASH_NAME))) {
        char found[40];
        TRY(op_fail(op, TAMIZ_NOT_SUPPORTED,
                    "%s: properties at offset %llu: expected key hash %s, found %s", t->path,
                    (ull)footer->properties.offset, KEY_HASH_NAME,
                    slice_print(l->properties.hash_name, found, sizeof found)));
    }
done:
    return st;
}

static tamiz_status load_index(struct op *op, const struct table *t, struct table_loaded *l,
                               const struct tail *tail, const struct table_footer *footer)
{
    struct slice payload;
    struct buf own = buf_init(t->world->alloc);
    tamiz_status st;
    TRY(read_part(op, t, l, tail, footer->index, IO_INDEX, &own, &payload));
    TRY(index_open(op, payload, table_data_end(footer), t->path, room_of(t), &l->index));
    if (index_count(l->index) != l->properties.data_blocks)
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "%s: index at offset %llu: expected %llu blocks as in the properties, found %u",
                    t->path, (ull)footer->index.offset, (ull)l->properties.data_blocks,
                    index_count(l->index)));
    const size_t places_bytes = index_count(l->index) * sizeof *l->places;
    l->places = mem_new_aligned(room_of(t), places_bytes, PLACES_ALIGN);
    if (!l->places)
        TRY(op_fail_memory(op));
    memset(l->places, 0, places_bytes);
done:
    buf_free(&own);
    return st;
}

/* Without it no block that was packed with it can be read: what is wrong with it is wrong with the
 * table. */
static tamiz_status load_dictionary(struct op *op, const struct table *t, struct table_loaded *l,
                                    const struct tail *tail, struct extent extent)
{
    struct slice payload;
    struct buf own = buf_init(t->world->alloc);
    tamiz_status st = TAMIZ_OK;
    if (extent.size == 0)
        return TAMIZ_OK;
    if (extent.size > TABLE_DICTIONARY_MOST)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: dictionary at offset %llu: expected at most %d bytes, found %llu",
                       t->path, (ull)extent.offset, TABLE_DICTIONARY_MOST, (ull)extent.size);
    TRY(read_part(op, t, l, tail, extent, IO_META, &own, &payload));
    TRY(codec_reader_open(op, payload, t->path, extent.offset, &l->dictionary));
done:
    buf_free(&own);
    return st;
}

/* ---- range deletes ---- */

static tamiz_status read_ranges(struct op *op, const struct table *t, struct table_loaded *l,
                                const struct tail *tail, const struct table_footer *footer)
{
    tamiz_status st;
    TRY(copy_part(op, t, l, tail, footer->ranges, &l->ranges_bytes));
    TRY(ranges_decode(op, t->world->alloc, buf_slice(&l->ranges_bytes), &l->ranges));
done:
    return st;
}

/* Where they are damaged, the table can be opened all the same, so that its values can be saved;
 * but no read may pass it by: table_ranges() fails. */
static tamiz_status load_ranges(struct op *op, const struct table *t, struct table_loaded *l,
                                const struct tail *tail, const struct table_footer *footer)
{
    if (footer->ranges.size == 0)
        return TAMIZ_OK;
    l->ranges_status = read_ranges(op, t, l, tail, footer);
    if (l->ranges_status != TAMIZ_CORRUPTION && l->ranges_status != TAMIZ_NOT_SUPPORTED)
        return l->ranges_status;
    (void)snprintf(l->ranges_damage, sizeof l->ranges_damage, "%s: ranges block at offset %llu: %s",
                   t->path, (ull)footer->ranges.offset, op->text);
    op_forgive(op);
    return TAMIZ_OK;
}

/* ---- the filters ---- */

/* The block, checked: its payload. */
static tamiz_status read_filter_block(struct op *op, const struct table *t, struct table_loaded *l,
                                      struct extent extent, struct slice *payload)
{
    const uint64_t whole = extent_whole(extent);
    tamiz_status st;
    l->filter_memory =
        whole > SIZE_MAX / 2 ? NULL : mem_new_aligned(room_of(t), (size_t)whole, FILTER_ALIGN);
    if (!l->filter_memory)
        return op_fail_memory(op);
    l->filter_memory_size = (size_t)whole;
    TRY(file_read(op, l->file, IO_FILTER, extent.offset, l->filter_memory, (size_t)whole));
    TRY(part_unseal(op, t, l, slice_of(l->filter_memory, (size_t)whole), extent, payload));
done:
    return st;
}

static tamiz_status read_filters(struct op *op, const struct table *t, struct table_loaded *l,
                                 struct extent extent)
{
    const tamiz_filter_family *custom = t->world->custom_filter;
    struct slice payload, keys, prefixes;
    tamiz_status st;
    TRY(read_filter_block(op, t, l, extent, &payload));
    if (!table_filter_images(payload, &l->properties, &keys, &prefixes))
        TRY(op_fail(op, TAMIZ_CORRUPTION, "a filter block of %zu bytes: no room for two filters",
                    payload.size));
    TRY(filter_view_open_custom(op, keys, custom, &l->filter));
    if (prefixes.size)
        TRY(filter_view_open_custom(op, prefixes, custom, &l->prefix_filter));
done:
    return st;
}

static void drop_filters(const struct table *t, struct table_loaded *l)
{
    mem_free_aligned(room_of(t), l->filter_memory, l->filter_memory_size, FILTER_ALIGN);
    l->filter_memory = NULL;
    l->filter_memory_size = 0;
    l->filter = l->prefix_filter = (struct filter_view){.expected_fpr = 1};
}

static void name_filters(struct table_loaded *l)
{
    if (l->filter.family) {
        tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
        filter_view_header(&l->filter, &info);
        memcpy(l->filter_name, info.kind, sizeof l->filter_name);
    } else {
        (void)snprintf(l->filter_missing, sizeof l->filter_missing, "it is of the kind none");
    }
}

/* A filter can cost time, never truth: whatever is wrong with it is told once, and the table read
 * without. Only where memory is out the table is not opened: it may be there the next time. */
static tamiz_status load_filters(struct op *op, const struct table *t, struct table_loaded *l,
                                 struct extent extent)
{
    l->filter = l->prefix_filter = (struct filter_view){.expected_fpr = 1};
    (void)snprintf(l->prefix_missing, sizeof l->prefix_missing, "the table has none");
    if (extent.size == 0) {
        (void)snprintf(l->filter_missing, sizeof l->filter_missing, "the table has none");
        return TAMIZ_OK;
    }
    l->filter_status = read_filters(op, t, l, extent);
    if (l->filter_status == TAMIZ_OUT_OF_MEMORY)
        return l->filter_status;
    if (l->filter_status == TAMIZ_OK) {
        name_filters(l);
        return TAMIZ_OK;
    }
    (void)snprintf(l->filter_missing, sizeof l->filter_missing, "%s", op->text);
    if (l->properties.prefix.keys_size)
        memcpy(l->prefix_missing, l->filter_missing, sizeof l->prefix_missing);
    op_forgive(op);
    drop_filters(t, l);
    return TAMIZ_OK;
}

static void tell_events(const struct table *t, const struct table_loaded *l)
{
    const tamiz_event_log *log = &t->world->log;
    char text[2 * OP_TEXT_MAX];
    if (!log->event)
        return;
    if (l->filter_status != TAMIZ_OK) {
        (void)snprintf(text, sizeof text, "%s: filter ignored: %s", t->path, l->filter_missing);
        log->event(log->ctx, TAMIZ_EVENT_FILTER_IGNORED, text);
    }
    if (t->world->direct_io && !file_is_direct(l->file)) {
        (void)snprintf(text, sizeof text, "%s: the file system refuses direct I/O: read buffered",
                       t->path);
        log->event(log->ctx, TAMIZ_EVENT_NOTE, text);
    }
}

/* ---- all of it ---- */

void table_loaded_close(const struct table *t, struct table_loaded *l)
{
    if (!l)
        return;
    const struct alloc *alloc = t->world->alloc;
    if (l->places) {
        cache_drop(t->world->cache, l->places, index_count(l->index));
        mem_free_aligned(room_of(t), l->places, index_count(l->index) * sizeof *l->places,
                         PLACES_ALIGN);
    }
    drop_filters(t, l);
    index_free(l->index);
    codec_reader_free(l->dictionary);
    buf_free(&l->properties_bytes);
    ranges_free(&l->ranges);
    buf_free(&l->ranges_bytes);
    mem_free(alloc, l, sizeof *l);
}

tamiz_status table_loaded_open(struct op *op, struct table *t, struct table_loaded **loaded)
{
    const struct alloc *alloc = t->world->alloc;
    struct tail tail = {buf_init(alloc), 0};
    struct table_footer footer;
    tamiz_status st = TAMIZ_OK;
    struct table_loaded *l = mem_new_array(alloc, 1, sizeof *l);
    if (!l)
        return op_fail_memory(op);
    l->properties_bytes = l->ranges_bytes = buf_init(alloc);
    TRY(file_pool_acquire(op, t->world->files, &t->file, &l->file));
    TRY(check_size(op, t, l));
    TRY(read_header(op, t, l));
    TRY(read_tail(op, t, l, &tail, &footer));
    TRY(load_properties(op, t, l, &tail, &footer));
    TRY(load_index(op, t, l, &tail, &footer));
    TRY(load_dictionary(op, t, l, &tail, footer.dictionary));
    TRY(load_ranges(op, t, l, &tail, &footer));
    TRY(load_filters(op, t, l, footer.filter));
    tell_events(t, l);
done:
    if (l->file)
        file_pool_release(t->world->files, &t->file);
    l->file = NULL;
    if (st == TAMIZ_OK) {
        *loaded = l;
        l = NULL;
    }
    buf_free(&tail.bytes);
    table_loaded_close(t, l);
    return st;
}
