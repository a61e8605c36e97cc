/* SPDX-License-Identifier: MIT
 *
 * Packing and unpacking of blocks with zstd (RFC 8878), by themselves or with a dictionary that the
 * blocks of one table share. Unpacking needs a context of some 100 KiB; a few of them wait in a
 * pool, so that a read neither makes one nor waits for another reader's. The memory of contexts and
 * digested dictionaries is zstd's own, from libc.
 */
#ifndef TAMIZ_TABLE_CODEC_H
#define TAMIZ_TABLE_CODEC_H

#include "base/buf.h"
#include "env/thread.h"
#include "table/format.h"

enum {
    CODEC_POOL = 8,
    CODEC_DICTIONARY_MOST = 16 << 10, /* bytes of one that is trained */
};

struct codec_pool {
    struct mutex mutex;
    void *contexts[CODEC_POOL]; /* guarded by mutex */
    size_t count;
};

tamiz_status codec_pool_init(struct op *op, struct codec_pool *pool);
void codec_pool_free(struct codec_pool *pool);

/* A dictionary made ready for unpacking: frozen, for any number of threads. */
struct codec_reader;
/* From the bytes that the table has, which are copied. TAMIZ_CORRUPTION: zstd does not take them.
 */
tamiz_status codec_reader_open(struct op *op, struct slice dictionary, const char *path,
                               uint64_t offset, struct codec_reader **reader);
size_t codec_reader_memory(const struct codec_reader *reader); /* NULL: 0 */
void codec_reader_free(struct codec_reader *reader);           /* NULL is fine */

/* One packed block. */
struct packed_block {
    struct slice frame;
    uint64_t size;                     /* of the block: as the index says */
    enum codec codec;                  /* not CODEC_NONE */
    const struct codec_reader *reader; /* its table's dictionary; NULL: the table has none */
    const char *path;                  /* where it stands, for words */
    uint64_t offset;
};

/* What the frame holds, to `out`, and its size, which is at most the block's, and that at most
 * BLOCK_RAW_MAX_COMPRESSED. A codec that takes a dictionary, without a reader, is TAMIZ_CORRUPTION.
 * Any thread. */
tamiz_status codec_unpack(struct op *op, struct codec_pool *pool, const struct packed_block *from,
                          uint8_t *out, size_t *size);

/* One thread's means to pack. */
struct codec_packer {
    void *context;    /* made when first used */
    void *dictionary; /* digested; NULL: none */
    int level;
};

/* From now on blocks are packed with the dictionary; an empty one: with none. */
tamiz_status codec_packer_use(struct op *op, struct codec_packer *packer, struct slice dictionary);
/* Appends `raw` packed to `out` where that takes at most `most` bytes: *packed says whether; where
 * not, `out` is as it was. */
tamiz_status codec_pack(struct op *op, struct codec_packer *packer, struct slice raw, size_t most,
                        struct buf *out, bool *packed);
void codec_packer_free(struct codec_packer *packer);

/* Appends a dictionary for blocks like these, which stand one behind the other in `samples`;
 * nothing where they are too few or too much alike to learn from. */
tamiz_status codec_train(struct op *op, struct slice samples, const size_t *sizes, size_t count,
                         struct buf *dictionary);

#endif
