/* SPDX-License-Identifier: MIT
 *
 * The table file, drawn. docs/format/table.md has every byte; this is the frame that the blocks
 * hang in.
 *
 *     +--------------------+ 0
 *     | header        40 B |  magic "TAMIZTAB", format version, file id, checksum
 *     +--------------------+ 40
 *     | data block 0       |  each block: payload, then a 9-byte trailer: codec u8, checksum u64
 *     | data block 1       |
 *     | …                  |
 *     +--------------------+
 *     | dictionary block   |  what the data blocks were packed with; absent but for zstd-dict
 *     +--------------------+
 *     | ranges block       |  its range deletes (base/ranges.h); absent where it has none
 *     +--------------------+
 *     | filter block       |  an image (docs/format/filter.md); absent with filter=none. Behind it
 *     |                    |  perhaps another, over the prefixes of the keys: the properties say
 *     +--------------------+
 *     | index block        |  one fence a data block, and its size
 *     +--------------------+
 *     | properties block   |  counts, smallest and largest key, sequence range, filter, hash name,
 *     |                    |  …
 *     +--------------------+
 *     | footer       112 B |  extents of dictionary, ranges, filter, index, properties; file id;
 *     |                    |  checksum; magic
 *     +--------------------+ file size
 *
 * No byte between two parts is left over: each begins where the one before ends, and a reader
 * insists on it. The checksum of a block covers its payload and codec byte and is seeded with the
 * file's id and the block's offset. A block is packed where that makes it an eighth smaller, so
 * that stored size = raw size says that it is not.
 */
#ifndef TAMIZ_TABLE_FORMAT_H
#define TAMIZ_TABLE_FORMAT_H

#include "base/buf.h"
#include "base/coding.h"
#include "base/op.h"
#include "table/prefix.h"

#define TABLE_MAGIC UINT64_C(0x4241545a494d4154) /* "TAMIZTAB" read as little-endian */
enum {
    TABLE_FORMAT_VERSION = 1,
    TABLE_HEADER_SIZE = 40,
    TABLE_FOOTER_SIZE = 112,
    BLOCK_TRAILER_SIZE = 9,
    BLOCK_RAW_MAX_COMPRESSED =
        16 << 20, /* a block that unpacks to more is stored as it is, and refused packed: the bound
                     on what a crafted file can make a reader allocate */
    TABLE_DICTIONARY_MOST = 1 << 20, /* a reader refuses a larger dictionary */
};

/* Packed are the columns of a block (columns.h). 1 and 2 were other ways before any release. */
enum codec {
    CODEC_NONE = 0,
    CODEC_ZSTD = 3,
    CODEC_ZSTD_DICT = 4,
};

/* A block's place: offset of its payload and payload bytes as stored, the trailer not counted. */
struct extent {
    uint64_t offset;
    uint64_t size;
};

struct table_footer {
    struct extent dictionary; /* size 0: none */
    struct extent ranges;     /* size 0: none */
    struct extent filter;     /* size 0: none */
    struct extent index;
    struct extent properties;
    uint64_t file_id;
};

/* The filter over the prefixes of the keys: an image of its own in the filter block, from the next
 * multiple of PREFIX_IMAGE_ALIGN behind the one over the keys on. */
enum { PREFIX_IMAGE_ALIGN = 64 };
struct prefix_filter_place {
    struct prefix_rule rule; /* NONE: there is none, or it is made by a rule unknown here */
    uint64_t keys_size;      /* of the image over the keys; 0: that is the whole payload */
};

/* Everything a table says of itself. Slices borrow the decoded block. Sequences and keys at either
 * end are those of its entries and of its range deletes together; the largest key may be one too
 * many, where a range delete ends there (range_last_key). */
struct table_properties {
    uint64_t entries; /* versions                       */
    uint64_t keys;    /* distinct user keys             */
    uint64_t tombstones;
    uint64_t raw_key_bytes, raw_value_bytes;
    uint64_t data_blocks, data_bytes; /* stored, trailers included */
    uint64_t seq_min, seq_max;
    uint64_t created_us;    /* since 1970 */
    uint64_t block_raw_max; /* largest data block, unpacked */
    double filter_expected_fpr;
    double filter_bits_per_key;
    struct slice filter_kind; /* "none" where there is none */
    struct slice hash_name;
    struct slice smallest, largest; /* user keys */
    struct prefix_filter_place prefix;
    /* Whose it is, for who has no manifest: 0 and no name for the default keyspace's, and for one
     * that was built with no store. */
    uint64_t keyspace;
    struct slice keyspace_name;
};

/* The extent with its trailer, as it is read. */
static inline uint64_t extent_whole(struct extent e)
{
    return e.size + BLOCK_TRAILER_SIZE;
}

void table_header_encode(struct buf *out, uint64_t file_id);
tamiz_status table_header_decode(struct op *op, struct slice bytes, const char *path,
                                 uint64_t *file_id);
void table_footer_encode(struct buf *out, const struct table_footer *footer);
/* `bytes` are the last TABLE_FOOTER_SIZE of a file of file_size bytes; extents are checked against
 * it: they lie one behind the other, up to the footer. */
tamiz_status table_footer_decode(struct op *op, struct slice bytes, uint64_t file_size,
                                 const char *path, struct table_footer *footer);
/* Where the data blocks end: the first part behind them begins there. */
uint64_t table_data_end(const struct table_footer *footer);
void table_properties_encode(struct buf *out, const struct table_properties *p);
tamiz_status table_properties_decode(struct op *op, struct slice payload, const char *path,
                                     struct table_properties *p);

/* The filter block's payload taken apart: the image over the keys, and that over their prefixes,
 * empty where the table has none. false: the first is said to be larger than the payload. */
bool table_filter_images(struct slice payload, const struct table_properties *p, struct slice *keys,
                         struct slice *prefixes);

/* Appends trailer for the payload that is the last `size` bytes of `out`, standing at `offset` in
 * the file. */
void block_seal(struct buf *out, size_t size, enum codec codec, uint64_t file_id, uint64_t offset);
/* `stored` is payload and trailer as read. Checks (where `verify`) and yields the payload, still
 * packed, and its codec. */
tamiz_status block_unseal(struct op *op, struct slice stored, uint64_t file_id, uint64_t offset,
                          const char *path, bool verify, struct slice *payload, enum codec *codec);

#endif
