/* SPDX-License-Identifier: MIT */
#include "table/codec.h"

#if defined(TAMIZ_NO_ZSTD)

/* Built without zstd: what is packed is refused, and nothing is packed. */

tamiz_status codec_pool_init(struct op *op, struct codec_pool *pool)
{
    pool->count = 0;
    return mutex_init(op, &pool->mutex);
}

void codec_pool_free(struct codec_pool *pool)
{
    mutex_free(&pool->mutex);
}

tamiz_status codec_unpack(struct op *op, struct codec_pool *pool, enum codec codec,
                          struct slice packed, uint8_t *out, uint64_t size, const char *path,
                          uint64_t offset)
{
    (void)pool, (void)packed, (void)out, (void)size;
    return op_fail(op, TAMIZ_NOT_SUPPORTED,
                   "%s: block at offset %llu: packed with codec %d: this build has none", path,
                   (unsigned long long)offset, codec);
}

tamiz_status codec_pack(struct op *op, struct codec_packer *packer, struct slice raw,
                        struct buf *out, bool *packed)
{
    (void)op, (void)packer, (void)raw, (void)out;
    *packed = false;
    return TAMIZ_OK;
}

void codec_packer_free(struct codec_packer *packer)
{
    (void)packer;
}

#else

#include <zstd.h>

typedef unsigned long long ull; /* for printing */

tamiz_status codec_pool_init(struct op *op, struct codec_pool *pool)
{
    pool->count = 0;
    return mutex_init(op, &pool->mutex);
}

void codec_pool_free(struct codec_pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        ZSTD_freeDCtx(pool->contexts[i]);
    pool->count = 0;
    mutex_free(&pool->mutex);
}

static ZSTD_DCtx *context_take(struct codec_pool *pool)
{
    ZSTD_DCtx *context = NULL;
    mutex_lock(&pool->mutex);
    if (pool->count)
        context = pool->contexts[--pool->count];
    mutex_unlock(&pool->mutex);
    return context ? context : ZSTD_createDCtx();
}

static void context_give(struct codec_pool *pool, ZSTD_DCtx *context)
{
    mutex_lock(&pool->mutex);
    const bool room = pool->count < CODEC_POOL;
    if (room)
        pool->contexts[pool->count++] = context;
    mutex_unlock(&pool->mutex);
    if (!room)
        ZSTD_freeDCtx(context);
}

static tamiz_status check_size(struct op *op, struct slice packed, uint64_t size, const char *path,
                               uint64_t offset)
{
    if (size > BLOCK_RAW_MAX_COMPRESSED)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: packed block at offset %llu: expected at most %d bytes unpacked, "
                       "found %llu",
                       path, (ull)offset, BLOCK_RAW_MAX_COMPRESSED, (ull)size);
    const ull found = ZSTD_getFrameContentSize(packed.data, packed.size);
    if (found != size)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: packed block at offset %llu: expected a frame of %llu bytes, found "
                       "%llu",
                       path, (ull)offset, (ull)size, found);
    return TAMIZ_OK;
}

tamiz_status codec_unpack(struct op *op, struct codec_pool *pool, enum codec codec,
                          struct slice packed, uint8_t *out, uint64_t size, const char *path,
                          uint64_t offset)
{
    if (codec != CODEC_ZSTD)
        return op_fail(op, TAMIZ_NOT_SUPPORTED,
                       "%s: block at offset %llu: expected codec zstd, found %d: not built in",
                       path, (ull)offset, codec);
    const tamiz_status st = check_size(op, packed, size, path, offset);
    if (st)
        return st;
    ZSTD_DCtx *context = context_take(pool);
    if (!context)
        return op_fail_memory(op);
    const size_t got = ZSTD_decompressDCtx(context, out, (size_t)size, packed.data, packed.size);
    context_give(pool, context);
    if (ZSTD_isError(got) || got != size)
        return op_fail(
            op, TAMIZ_CORRUPTION, "%s: packed block at offset %llu: expected %llu bytes, found %s",
            path, (ull)offset, (ull)size, ZSTD_isError(got) ? ZSTD_getErrorName(got) : "fewer");
    return TAMIZ_OK;
}

tamiz_status codec_pack(struct op *op, struct codec_packer *packer, struct slice raw,
                        struct buf *out, bool *packed)
{
    *packed = false;
    if (raw.size > BLOCK_RAW_MAX_COMPRESSED)
        return TAMIZ_OK;
    if (!packer->context)
        packer->context = ZSTD_createCCtx();
    const size_t bound = ZSTD_compressBound(raw.size);
    if (!packer->context || !buf_reserve(out, bound))
        return op_fail_memory(op);
    const size_t got = ZSTD_compressCCtx(packer->context, out->data + out->size, bound, raw.data,
                                         raw.size, packer->level);
    if (ZSTD_isError(got))
        return op_fail(op, TAMIZ_OUT_OF_MEMORY, "zstd: %s", ZSTD_getErrorName(got));
    *packed = got <= raw.size - raw.size / 8 && got < raw.size;
    if (*packed)
        out->size += got;
    return TAMIZ_OK;
}

void codec_packer_free(struct codec_packer *packer)
{
    ZSTD_freeCCtx(packer->context);
    packer->context = NULL;
}

#endif
