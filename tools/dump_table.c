/* SPDX-License-Identifier: MIT
 *
 * Tables: header, data blocks, filter, index, properties, footer, each where it stands; and images
 * of filters.
 */
#include "dump.h"

#include <inttypes.h>
#include <string.h>

#include "base/ranges.h"
#include "filter/filter.h"
#include "table/columns.h"
#include "table/format.h"
#include "table/index.h"

struct table_parts {
    struct slice file;
    uint64_t file_id;
    struct table_footer footer;
    struct table_properties properties;
    struct codec_pool pool;
    struct codec_reader *dictionary; /* owned; NULL: none, or damaged */
    struct index *index;             /* owned */
};

static tamiz_status part_unseal(struct dump *d, const struct table_parts *t, struct extent at,
                                struct slice *payload, enum codec *codec)
{
    struct reader r = reader_of(t->file);
    (void)reader_take(&r, at.offset);
    const struct slice stored = reader_take(&r, extent_whole(at));
    if (r.bad)
        return op_fail(d->op, TAMIZ_CORRUPTION,
                       "%s: block at offset %" PRIu64 ": %" PRIu64 " bytes run off the file's end",
                       d->path, at.offset, at.size);
    return block_unseal(d->op, stored, t->file_id, at.offset, d->path, true, payload, codec);
}

/* ---- data blocks ---- */

static void entry_dump(struct dump *d, const struct block *b, uint32_t i,
                       const struct block_entry *e)
{
    struct buf key = buf_init(d->op->alloc);
    buf_slice_append(&key, e->shared);
    buf_slice_append(&key, e->suffix);
    dump_item(d, NO_OFFSET,
              stamp_kind(e->stamp) == KIND_PUT        ? "put"
              : stamp_kind(e->stamp) == KIND_EXPIRING ? "put for a time"
                                                      : "delete");
    dump_number(d, "tag", b->tags[i]);
    dump_number(d, "shared", e->shared.size);
    dump_number(d, "seq", stamp_seq(e->stamp));
    dump_bytes(d, "key", buf_slice(&key));
    dump_value(d, stamp_kind(e->stamp), e->value);
    dump_end(d);
    buf_free(&key);
}

/* `raw` has BLOCK_SLACK bytes behind `size`. */
static tamiz_status entries_dump(struct dump *d, uint64_t offset, const uint8_t *raw, size_t size)
{
    struct block b;
    bool fine = block_open(slice_of(raw, size), &b);
    for (uint32_t i = 0; fine && d->entries && i < b.count; i++) {
        struct block_entry e;
        fine = block_entry_at(&b, i, &e);
        if (fine)
            entry_dump(d, &b, i, &e);
    }
    return fine ? TAMIZ_OK
                : op_fail(d->op, TAMIZ_CORRUPTION,
                          "%s: block at offset %" PRIu64 ": an entry runs out of it", d->path,
                          offset);
}

static void block_line(struct dump *d, const struct table_parts *t, uint32_t i, struct extent at,
                       enum codec codec)
{
    struct slice prefix;
    const struct slice rest = index_fence(t->index, i, &prefix);
    struct buf fence = buf_init(d->op->alloc);
    buf_slice_append(&fence, prefix);
    buf_slice_append(&fence, rest);
    dump_item(d, at.offset, "block");
    dump_number(d, "index", i);
    dump_number(d, "stored", at.size);
    dump_number(d, "raw", index_raw_size(t->index, i));
    dump_words(d, "codec", codec == CODEC_NONE ? "none" : codec == CODEC_ZSTD ? "zstd" : "dict");
    dump_bytes(d, "fence", buf_slice(&fence));
    dump_end(d);
    buf_free(&fence);
}

static tamiz_status block_dump(struct dump *d, struct table_parts *t, uint32_t i)
{
    const struct extent at = index_extent(t->index, i);
    struct slice payload = slice_of(NULL, 0);
    enum codec codec = CODEC_NONE;
    tamiz_status st = part_unseal(d, t, at, &payload, &codec);
    if (st < 0)
        return st;
    block_line(d, t, i, at, codec);
    const uint64_t size = codec == CODEC_NONE ? payload.size : index_raw_size(t->index, i);
    struct buf raw = buf_init(d->op->alloc);
    if (size > BLOCK_RAW_MAX_COMPRESSED && codec != CODEC_NONE)
        return op_fail(d->op, TAMIZ_CORRUPTION,
                       "%s: block at offset %" PRIu64 ": unpacks to %" PRIu64 ": want at most %d",
                       d->path, at.offset, size, BLOCK_RAW_MAX_COMPRESSED);
    if (!buf_reserve(&raw, (size_t)size + BLOCK_SLACK))
        return op_fail_memory(d->op);
    memset(raw.data, 0, (size_t)size + BLOCK_SLACK);
    if (codec == CODEC_NONE && size)
        memcpy(raw.data, payload.data, (size_t)size);
    else if (codec != CODEC_NONE)
        st = columns_unpack(
            d->op, &t->pool,
            &(const struct packed_block){payload, size, codec, t->dictionary, d->path, at.offset},
            raw.data);
    if (st >= 0)
        st = entries_dump(d, at.offset, raw.data, (size_t)size);
    buf_free(&raw);
    return st;
}

/* Each block by itself: one that is damaged does not hide the ones behind it. */
static tamiz_status blocks_dump(struct dump *d, struct table_parts *t)
{
    tamiz_status worst = TAMIZ_OK;
    for (uint32_t i = 0; i < index_count(t->index); i++) {
        const tamiz_status st = block_dump(d, t, i);
        if (st >= 0)
            continue;
        worst = st;
        dump_item(d, index_extent(t->index, i).offset, "damaged block");
        dump_number(d, "index", i);
        dump_end(d);
    }
    return worst;
}

/* ---- the other parts ---- */

static void filter_line(struct dump *d, uint64_t offset, const char *what, struct slice image)
{
    tamiz_filter *filter = NULL;
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    dump_item(d, offset, what);
    dump_number(d, "size", image.size);
    if (tamiz_filter_deserialize(image.data, image.size, &filter) != TAMIZ_OK) {
        dump_words(d, "unreadable", tamiz_error_detail());
    } else {
        tamiz_filter_info_get(filter, &info);
        dump_words(d, "kind", info.kind);
        dump_number(d, "keys", info.keys);
        dump_real(d, "bits_per_key", info.bits_per_key);
        dump_real(d, "fill", info.fill);
        dump_real(d, "expected_fpr", info.expected_fpr);
    }
    dump_end(d);
    tamiz_filter_free(filter);
}

/* The block's one filter, or both. */
static void filters_dump(struct dump *d, const struct table_parts *t, struct slice payload)
{
    const uint64_t offset = t->footer.filter.offset;
    struct slice keys, prefixes;
    if (!table_filter_images(payload, &t->properties, &keys, &prefixes)) {
        filter_line(d, offset, "filter", payload);
        return;
    }
    filter_line(d, offset, "filter", keys);
    if (prefixes.size)
        filter_line(d, offset + (uint64_t)(prefixes.data - payload.data), "prefix filter",
                    prefixes);
}

static void prefix_words(struct dump *d, struct prefix_rule rule)
{
    char words[24];
    if (rule.kind == TAMIZ_PREFIX_NONE)
        return;
    (void)snprintf(words, sizeof words, rule.kind == TAMIZ_PREFIX_BYTES ? "%u" : "sep:0x%02x",
                   rule.value);
    dump_words(d, "prefix_filter", words);
}

static void properties_line(struct dump *d, uint64_t offset, const struct table_properties *p)
{
    dump_item(d, offset, "properties");
    dump_number(d, "entries", p->entries);
    dump_number(d, "keys", p->keys);
    dump_number(d, "tombstones", p->tombstones);
    dump_number(d, "raw_key_bytes", p->raw_key_bytes);
    dump_number(d, "raw_value_bytes", p->raw_value_bytes);
    dump_number(d, "data_blocks", p->data_blocks);
    dump_number(d, "data_bytes", p->data_bytes);
    dump_number(d, "seq_min", p->seq_min);
    dump_number(d, "seq_max", p->seq_max);
    dump_number(d, "created_us", p->created_us);
    dump_bytes(d, "filter", p->filter_kind);
    dump_real(d, "filter_bits_per_key", p->filter_bits_per_key);
    dump_real(d, "filter_expected_fpr", p->filter_expected_fpr);
    dump_bytes(d, "hash", p->hash_name);
    dump_bytes(d, "smallest", p->smallest);
    dump_bytes(d, "largest", p->largest);
    prefix_words(d, p->prefix.rule);
    if (p->keyspace) {
        dump_number(d, "keyspace", p->keyspace);
        dump_bytes(d, "keyspace_name", p->keyspace_name);
    }
    dump_end(d);
}

static tamiz_status ranges_dump(struct dump *d, uint64_t offset, struct slice payload)
{
    struct ranges r;
    const tamiz_status st = ranges_decode(d->op, d->op->alloc, payload, &r);
    if (st < 0) {
        ranges_free(&r);
        return st;
    }
    dump_item(d, offset, "ranges");
    dump_number(d, "size", payload.size);
    dump_number(d, "count", r.count);
    dump_end(d);
    for (size_t i = 0; d->entries && i < r.count; i++)
        for (size_t k = 0; k < r.list[i].seq_count; k++) {
            dump_item(d, NO_OFFSET, "delete range");
            dump_number(d, "seq", r.list[i].seqs[k]);
            dump_bytes(d, "from", r.list[i].from);
            dump_bytes(d, "to", r.list[i].to);
            dump_end(d);
        }
    ranges_free(&r);
    return st;
}

static void footer_line(struct dump *d, uint64_t offset, const struct table_footer *f)
{
    dump_item(d, offset, "footer");
    dump_number(d, "dictionary_offset", f->dictionary.offset);
    dump_number(d, "dictionary_size", f->dictionary.size);
    dump_number(d, "ranges_offset", f->ranges.offset);
    dump_number(d, "ranges_size", f->ranges.size);
    dump_number(d, "filter_offset", f->filter.offset);
    dump_number(d, "filter_size", f->filter.size);
    dump_number(d, "index_offset", f->index.offset);
    dump_number(d, "index_size", f->index.size);
    dump_number(d, "properties_offset", f->properties.offset);
    dump_number(d, "properties_size", f->properties.size);
    dump_id(d, "file_id", f->file_id);
    dump_end(d);
}

static tamiz_status parts_open(struct dump *d, struct table_parts *t)
{
    struct slice payload = slice_of(NULL, 0);
    enum codec codec = CODEC_NONE;
    tamiz_status st;
    if (t->file.size < TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE)
        return op_fail(d->op, TAMIZ_CORRUPTION, "%s: %zu bytes: want at least %d for a table",
                       d->path, t->file.size, TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE);
    const struct slice head = slice_of(t->file.data, TABLE_HEADER_SIZE);
    const struct slice foot =
        slice_of(t->file.data + t->file.size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE);
    TRY(table_header_decode(d->op, head, d->path, &t->file_id));
    dump_item(d, 0, "header");
    dump_number(d, "format", TABLE_FORMAT_VERSION);
    dump_id(d, "file_id", t->file_id);
    dump_end(d);
    TRY(table_footer_decode(d->op, foot, t->file.size, d->path, &t->footer));
    TRY(part_unseal(d, t, t->footer.properties, &payload, &codec));
    TRY(table_properties_decode(d->op, payload, d->path, &t->properties));
    TRY(part_unseal(d, t, t->footer.index, &payload, &codec));
    TRY(index_open(d->op, payload, table_data_end(&t->footer), d->path, d->op->alloc, &t->index));
done:
    return st;
}

/* Damage of it is told, and then every block that needs it. */
static tamiz_status dictionary_open(struct dump *d, struct table_parts *t)
{
    const struct extent at = t->footer.dictionary;
    struct slice payload = slice_of(NULL, 0);
    enum codec codec = CODEC_NONE;
    if (at.size == 0)
        return TAMIZ_OK;
    tamiz_status st = part_unseal(d, t, at, &payload, &codec);
    if (st >= 0)
        st = codec_reader_open(d->op, payload, d->path, at.offset, &t->dictionary);
    dump_item(d, at.offset, st < 0 ? "damaged dictionary" : "dictionary");
    dump_number(d, "size", at.size);
    dump_end(d);
    return st;
}

tamiz_status dump_table(struct dump *d, struct slice content)
{
    struct table_parts t = {.file = content};
    struct slice image = slice_of(NULL, 0);
    enum codec codec = CODEC_NONE;
    tamiz_status st = codec_pool_init(d->op, &t.pool);
    if (st < 0)
        return st;
    TRY(parts_open(d, &t));
    const tamiz_status dictionary = dictionary_open(d, &t);
    const tamiz_status blocks = blocks_dump(d, &t);
    if (t.footer.ranges.size) {
        TRY(part_unseal(d, &t, t.footer.ranges, &image, &codec));
        TRY(ranges_dump(d, t.footer.ranges.offset, image));
    }
    if (t.footer.filter.size) {
        TRY(part_unseal(d, &t, t.footer.filter, &image, &codec));
        filters_dump(d, &t, image);
    }
    dump_item(d, t.footer.index.offset, "index");
    dump_number(d, "size", t.footer.index.size);
    dump_number(d, "blocks", index_count(t.index));
    dump_end(d);
    properties_line(d, t.footer.properties.offset, &t.properties);
    footer_line(d, content.size - TABLE_FOOTER_SIZE, &t.footer);
    st = dictionary < 0 ? dictionary : blocks;
done:
    codec_reader_free(t.dictionary);
    index_free(t.index);
    codec_pool_free(&t.pool);
    return st;
}

tamiz_status dump_filter_image(struct dump *d, struct slice content)
{
    tamiz_filter *filter = NULL;
    const tamiz_status st = tamiz_filter_deserialize(content.data, content.size, &filter);
    if (st != TAMIZ_OK)
        return op_fail(d->op, st, "%s: no file of a store, and no filter: %s", d->path,
                       tamiz_error_detail());
    tamiz_filter_free(filter);
    filter_line(d, 0, "filter", content);
    return TAMIZ_OK;
}
