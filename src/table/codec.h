/* SPDX-License-Identifier: MIT
 *
 * Packing and unpacking of blocks with zstd (RFC 8878). Unpacking needs a context of some 100 KiB;
 * a few of them wait in a pool, so that a read neither makes one nor waits for another reader's.
 * Their memory is zstd's own, from libc.
 */
#ifndef TAMIZ_TABLE_CODEC_H
#define TAMIZ_TABLE_CODEC_H

#include "base/buf.h"
#include "env/thread.h"
#include "table/format.h"

enum { CODEC_POOL = 8 };

struct codec_pool {
    struct mutex mutex;
    void *contexts[CODEC_POOL]; /* guarded by mutex */
    size_t count;
};

tamiz_status codec_pool_init(struct op *op, struct codec_pool *pool);
void codec_pool_free(struct codec_pool *pool);

/* Exactly `size` bytes at `out` from `packed`; what the frame says of its size must agree, and is
 * bounded by BLOCK_RAW_MAX_COMPRESSED. Words name `path` and `offset`. CODEC_ZSTD_DICT is
 * TAMIZ_NOT_SUPPORTED. Any thread. */
tamiz_status codec_unpack(struct op *op, struct codec_pool *pool, enum codec codec,
                          struct slice packed, uint8_t *out, uint64_t size, const char *path,
                          uint64_t offset);

/* One thread's means to pack. */
struct codec_packer {
    void *context; /* made when first used */
    int level;
};

/* Appends `raw` packed to `out` where that makes it at least an eighth smaller: *packed says
 * whether; where not, `out` is as it was. */
tamiz_status codec_pack(struct op *op, struct codec_packer *packer, struct slice raw,
                        struct buf *out, bool *packed);
void codec_packer_free(struct codec_packer *packer);

#endif
