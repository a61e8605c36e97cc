/* SPDX-License-Identifier: MIT */
#include "table/format.h"

#include <math.h>

#include "base/checksum.h"
#include "base/key.h"

typedef unsigned long long ull; /* for printing */

/* Magic, version, file id and checksum stand at the same places of header and footer in every
 * version, so that a reader can tell a newer file from a damaged one. */
static tamiz_status check_version(struct op *op, uint32_t version, const char *path,
                                  uint64_t offset)
{
    if (version > TABLE_FORMAT_VERSION)
        return op_fail(op, TAMIZ_NOT_SUPPORTED,
                       "%s: offset %llu: expected table format up to %d, found %u: written by a "
                       "newer version",
                       path, (ull)offset, TABLE_FORMAT_VERSION, version);
    if (version == 0)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: offset %llu: expected a table format from 1 on, found 0", path,
                       (ull)offset);
    return TAMIZ_OK;
}

static tamiz_status mismatch(struct op *op, const char *path, uint64_t offset, const char *what,
                             uint64_t expected, uint64_t found)
{
    return op_fail(op, TAMIZ_CORRUPTION, "%s: offset %llu: %s: expected %016llx, found %016llx",
                   path, (ull)offset, what, (ull)expected, (ull)found);
}

/*
 * Header, 40 bytes:
 *
 *      0  u64  magic
 *      8  u32  format version
 *     12  u32  0
 *     16  u64  file id, random, never 0
 *     24  u64  0
 *     32  u64  checksum of bytes 0..31, seeded with the file id and offset 0
 */
void table_header_encode(struct buf *out, uint64_t file_id)
{
    uint8_t bytes[TABLE_HEADER_SIZE] = {0};
    store_u64(bytes, TABLE_MAGIC);
    store_u32(bytes + 8, TABLE_FORMAT_VERSION);
    store_u64(bytes + 16, file_id);
    store_u64(bytes + 32, checksum(file_id, 0, slice_of(bytes, 32)));
    buf_append(out, bytes, sizeof bytes);
}

tamiz_status table_header_decode(struct op *op, struct slice bytes, const char *path,
                                 uint64_t *file_id)
{
    *file_id = 0;
    struct reader r = reader_of(bytes);
    const uint64_t magic = reader_u64(&r);
    const uint32_t version = reader_u32(&r);
    (void)reader_u32(&r);
    const uint64_t id = reader_u64(&r);
    (void)reader_u64(&r);
    const uint64_t sum = reader_u64(&r);
    if (r.bad)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: offset 0: expected a table header of %d bytes, found %zu", path,
                       TABLE_HEADER_SIZE, bytes.size);
    if (magic != TABLE_MAGIC)
        return mismatch(op, path, 0, "magic", TABLE_MAGIC, magic);
    const uint64_t expected = checksum(id, 0, slice_of(bytes.data, 32));
    if (sum != expected)
        return mismatch(op, path, 32, "checksum of the header", expected, sum);
    const tamiz_status st = check_version(op, version, path, 8);
    if (st == TAMIZ_OK)
        *file_id = id;
    return st;
}

/*
 * Footer, the last 112 bytes:
 *
 *      0  u64 offset, u64 size   dictionary block; 0, 0: none
 *     16  u64 offset, u64 size   ranges block;     0, 0: none
 *     32  u64 offset, u64 size   filter block;     0, 0: none
 *     48  u64 offset, u64 size   index block
 *     64  u64 offset, u64 size   properties block
 *     80  u64  file id
 *     88  u32  0
 *     92  u32  format version
 *     96  u64  checksum of bytes 0..95, seeded with the file id and the footer's offset, which is
 *              where the properties block ends
 *    104  u64  magic
 */
static uint64_t footer_offset(const struct table_footer *f)
{
    return f->properties.offset + extent_whole(f->properties);
}

static uint8_t *put_extent(uint8_t *to, struct extent e)
{
    store_u64(to, e.size ? e.offset : 0);
    store_u64(to + 8, e.size);
    return to + 16;
}

void table_footer_encode(struct buf *out, const struct table_footer *f)
{
    uint8_t bytes[TABLE_FOOTER_SIZE] = {0};
    uint8_t *at = bytes;
    at = put_extent(at, f->dictionary);
    at = put_extent(at, f->ranges);
    at = put_extent(at, f->filter);
    at = put_extent(at, f->index);
    at = put_extent(at, f->properties);
    store_u64(at, f->file_id);
    store_u32(bytes + 92, TABLE_FORMAT_VERSION);
    store_u64(bytes + 96, checksum(f->file_id, footer_offset(f), slice_of(bytes, 96)));
    store_u64(bytes + 104, TABLE_MAGIC);
    buf_append(out, bytes, sizeof bytes);
}

static struct extent get_extent(struct reader *r)
{
    const uint64_t offset = reader_u64(r);
    return (struct extent){offset, reader_u64(r)};
}

/* Does `e`, trailer included, begin at or behind *at and end at or before `end`? Moves *at to its
 * end. */
static bool extent_follows(struct extent e, bool first, uint64_t *at, uint64_t end)
{
    if (e.size == 0)
        return e.offset == 0;
    const bool begins = first ? e.offset >= *at : e.offset == *at;
    if (!begins || e.offset > end || end - e.offset < BLOCK_TRAILER_SIZE ||
        e.size > end - e.offset - BLOCK_TRAILER_SIZE)
        return false;
    *at = e.offset + extent_whole(e);
    return true;
}

static tamiz_status check_extents(struct op *op, const struct table_footer *f, uint64_t end,
                                  const char *path)
{
    const struct extent all[] = {f->dictionary, f->ranges, f->filter, f->index, f->properties};
    static const char *const names[] = {"dictionary", "ranges", "filter", "index", "properties"};
    uint64_t at = TABLE_HEADER_SIZE;
    bool first = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!extent_follows(all[i], first, &at, end) || (i >= 3 && all[i].size == 0))
            return op_fail(op, TAMIZ_CORRUPTION,
                           "%s: offset %llu: expected the %s block between %llu and %llu, found "
                           "offset %llu, size %llu",
                           path, (ull)(end + 16 * i), names[i], (ull)at, (ull)end,
                           (ull)all[i].offset, (ull)all[i].size);
        first = first && all[i].size == 0;
    }
    if (at != end)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: expected the properties block to end at offset %llu, found %llu", path,
                       (ull)end, (ull)at);
    return TAMIZ_OK;
}

uint64_t table_data_end(const struct table_footer *f)
{
    return f->dictionary.size ? f->dictionary.offset
           : f->ranges.size   ? f->ranges.offset
           : f->filter.size   ? f->filter.offset
                              : f->index.offset;
}

tamiz_status table_footer_decode(struct op *op, struct slice bytes, uint64_t file_size,
                                 const char *path, struct table_footer *footer)
{
    memset(footer, 0, sizeof *footer);
    if (bytes.size != TABLE_FOOTER_SIZE || file_size < TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: expected a table of at least %d bytes, found %llu", path,
                       TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE, (ull)file_size);
    const uint64_t offset = file_size - TABLE_FOOTER_SIZE;
    struct reader r = reader_of(bytes);
    struct table_footer f;
    f.dictionary = get_extent(&r);
    f.ranges = get_extent(&r);
    f.filter = get_extent(&r);
    f.index = get_extent(&r);
    f.properties = get_extent(&r);
    f.file_id = reader_u64(&r);
    (void)reader_u32(&r);
    const uint32_t version = reader_u32(&r);
    const uint64_t sum = reader_u64(&r), magic = reader_u64(&r);
    if (magic != TABLE_MAGIC)
        return mismatch(op, path, offset + 104, "magic at the end", TABLE_MAGIC, magic);
    const uint64_t expected = checksum(f.file_id, offset, slice_of(bytes.data, 96));
    if (sum != expected)
        return mismatch(op, path, offset + 96, "checksum of the footer", expected, sum);
    tamiz_status st = check_version(op, version, path, offset + 92);
    if (st == TAMIZ_OK)
        st = check_extents(op, &f, offset, path);
    if (st == TAMIZ_OK)
        *footer = f;
    return st;
}

/*
 * Properties: varints entries, keys, tombstones, raw key bytes, raw value bytes, data blocks, data
 * bytes, seq_min, seq_max, created_us, block_raw_max; u64 (the bits of a double) expected rate and
 * bits per key of the filter; and each with a varint size before it: filter kind, hash name,
 * smallest key, largest key. Behind those: additions, each a varint tag and, with a varint size
 * before them, its bytes, tags ascending; those with unknown tags are passed over.
 *
 *     tag 1   prefix filter: varints kind (1: bytes, 2: separator), value, and the size of the
 *             image over the keys, behind which its own stands
 *     tag 2   keyspace, where it is not the default one: varint id, and to the end its name
 */
enum { ADDITION_PREFIX_FILTER = 1, ADDITION_KEYSPACE = 2 };

static void buf_double(struct buf *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    buf_u64(out, bits);
}

static double reader_double(struct reader *r)
{
    const uint64_t bits = reader_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static void put_addition(struct buf *out, uint64_t tag, const uint64_t *numbers, size_t count)
{
    uint8_t bytes[8 * VARINT_MAX], *at = bytes;
    for (size_t i = 0; i < count; i++)
        at = varint_store(at, numbers[i]);
    buf_varint(out, tag);
    buf_block(out, slice_of(bytes, (size_t)(at - bytes)));
}

/* A rule that a later version made up leaves the table without a prefix filter. */
static bool take_prefix_filter(struct slice bytes, struct prefix_filter_place *place)
{
    struct reader r = reader_of(bytes);
    const uint64_t kind = reader_varint(&r), value = reader_varint(&r);
    place->keys_size = reader_varint(&r);
    const bool named = kind <= TAMIZ_PREFIX_SEPARATOR && value <= UINT32_MAX;
    const struct prefix_rule rule = {(tamiz_prefix_kind)kind, (uint32_t)value};
    if (named && prefix_rule_is_known(rule))
        place->rule = rule;
    return !r.bad && place->keys_size > 0;
}

static void put_keyspace(struct buf *out, const struct table_properties *p)
{
    uint8_t id[VARINT_MAX];
    const size_t size = (size_t)(varint_store(id, p->keyspace) - id);
    buf_varint(out, ADDITION_KEYSPACE);
    buf_varint(out, size + p->keyspace_name.size);
    buf_append(out, id, size);
    buf_slice_append(out, p->keyspace_name);
}

static bool take_keyspace(struct slice bytes, struct table_properties *p)
{
    struct reader r = reader_of(bytes);
    p->keyspace = reader_varint(&r);
    p->keyspace_name = reader_take(&r, reader_left(&r));
    return !r.bad && p->keyspace > 0 && p->keyspace <= KEYSPACE_ID_MAX &&
           keyspace_name_is_proper(p->keyspace_name);
}

static bool take_additions(struct reader *r, struct table_properties *p)
{
    for (uint64_t before = 0; !r->bad && reader_left(r) > 0;) {
        const uint64_t tag = reader_varint(r);
        const struct slice bytes = reader_block(r);
        if (r->bad || tag <= before)
            return false;
        if (tag == ADDITION_PREFIX_FILTER && !take_prefix_filter(bytes, &p->prefix))
            return false;
        if (tag == ADDITION_KEYSPACE && !take_keyspace(bytes, p))
            return false;
        before = tag;
    }
    return !r->bad;
}

bool table_filter_images(struct slice payload, const struct table_properties *p, struct slice *keys,
                         struct slice *prefixes)
{
    const uint64_t size = p->prefix.keys_size;
    *keys = payload;
    *prefixes = slice_of(NULL, 0);
    if (size == 0)
        return true;
    if (size > payload.size || payload.size - size < PREFIX_IMAGE_ALIGN)
        return false;
    const size_t at = ((size_t)size + PREFIX_IMAGE_ALIGN - 1) & ~(size_t)(PREFIX_IMAGE_ALIGN - 1);
    *keys = slice_of(payload.data, (size_t)size);
    *prefixes = slice_of(payload.data + at, payload.size - at);
    return true;
}

void table_properties_encode(struct buf *out, const struct table_properties *p)
{
    const uint64_t numbers[] = {
        p->entries,         p->keys,        p->tombstones,   p->raw_key_bytes,
        p->raw_value_bytes, p->data_blocks, p->data_bytes,   p->seq_min,
        p->seq_max,         p->created_us,  p->block_raw_max};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        buf_varint(out, numbers[i]);
    buf_double(out, p->filter_expected_fpr);
    buf_double(out, p->filter_bits_per_key);
    buf_block(out, p->filter_kind);
    buf_block(out, p->hash_name);
    buf_block(out, p->smallest);
    buf_block(out, p->largest);
    const uint64_t prefix[] = {p->prefix.rule.kind, p->prefix.rule.value, p->prefix.keys_size};
    if (p->prefix.rule.kind != TAMIZ_PREFIX_NONE)
        put_addition(out, ADDITION_PREFIX_FILTER, prefix, 3);
    if (p->keyspace)
        put_keyspace(out, p);
}

static bool properties_plausible(const struct table_properties *p)
{
    return p->keys <= p->entries && p->tombstones <= p->entries && p->seq_min <= p->seq_max &&
           p->seq_max <= SEQ_MAX && isfinite(p->filter_expected_fpr) &&
           p->filter_expected_fpr >= 0 && p->filter_expected_fpr <= 1 &&
           isfinite(p->filter_bits_per_key) && p->filter_bits_per_key >= 0 &&
           p->smallest.size <= KEY_SIZE_MAX && p->largest.size <= KEY_SIZE_MAX &&
           slice_compare(p->smallest, p->largest) <= 0;
}

tamiz_status table_properties_decode(struct op *op, struct slice payload, const char *path,
                                     struct table_properties *p)
{
    memset(p, 0, sizeof *p);
    struct reader r = reader_of(payload);
    uint64_t *const numbers[] = {
        &p->entries,         &p->keys,        &p->tombstones,   &p->raw_key_bytes,
        &p->raw_value_bytes, &p->data_blocks, &p->data_bytes,   &p->seq_min,
        &p->seq_max,         &p->created_us,  &p->block_raw_max};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = reader_varint(&r);
    p->filter_expected_fpr = reader_double(&r);
    p->filter_bits_per_key = reader_double(&r);
    p->filter_kind = reader_block(&r);
    p->hash_name = reader_block(&r);
    p->smallest = reader_block(&r);
    p->largest = reader_block(&r);
    if (!r.bad && take_additions(&r, p) && properties_plausible(p))
        return TAMIZ_OK;
    memset(p, 0, sizeof *p);
    return op_fail(op, TAMIZ_CORRUPTION,
                   "%s: properties: expected whole and plausible ones, found %zu bytes%s", path,
                   payload.size, r.bad ? " that end too early" : " that contradict each other");
}

/* A block as stored: payload | codec u8 | checksum u64 of payload and codec. */
void block_seal(struct buf *out, size_t size, enum codec codec, uint64_t file_id, uint64_t offset)
{
    buf_u8(out, (uint8_t)codec);
    if (out->failed)
        return; /* the caller asks once, at its end */
    const struct slice covered = slice_of(out->data + (out->size - size - 1), size + 1);
    buf_u64(out, checksum(file_id, offset, covered));
}

tamiz_status block_unseal(struct op *op, struct slice stored, uint64_t file_id, uint64_t offset,
                          const char *path, bool verify, struct slice *payload, enum codec *codec)
{
    *payload = slice_of(NULL, 0);
    *codec = CODEC_NONE;
    if (stored.size < BLOCK_TRAILER_SIZE)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: offset %llu: expected a block and its trailer, found %zu bytes", path,
                       (ull)offset, stored.size);
    const size_t size = stored.size - BLOCK_TRAILER_SIZE;
    if (verify) {
        const uint64_t expected = checksum(file_id, offset, slice_of(stored.data, size + 1));
        const uint64_t found = load_u64(stored.data + size + 1);
        if (expected != found)
            return op_fail(op, TAMIZ_CORRUPTION,
                           "%s: block at offset %llu, %zu bytes: checksum: expected %016llx, found "
                           "%016llx",
                           path, (ull)offset, size, (ull)expected, (ull)found);
    }
    const uint8_t named = stored.data[size];
    if (named != CODEC_NONE && named != CODEC_ZSTD && named != CODEC_ZSTD_DICT)
        return op_fail(op, TAMIZ_NOT_SUPPORTED,
                       "%s: block at offset %llu: expected codec %d, %d or %d, found %u", path,
                       (ull)offset, CODEC_NONE, CODEC_ZSTD, CODEC_ZSTD_DICT, named);
    *payload = slice_of(stored.data, size);
    *codec = (enum codec)named;
    return TAMIZ_OK;
}
