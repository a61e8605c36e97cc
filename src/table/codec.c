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

tamiz_status codec_reader_open(struct op *op, struct slice dictionary, const char *path,
                               uint64_t offset, struct codec_reader **reader)
{
    *reader = NULL;
    return op_fail(op, TAMIZ_NOT_SUPPORTED,
                   "%s: dictionary at offset %llu, %zu bytes: this build has no zstd", path,
                   (unsigned long long)offset, dictionary.size);
}

size_t codec_reader_memory(const struct codec_reader *reader)
{
    (void)reader;
    return 0;
}

void codec_reader_free(struct codec_reader *reader)
{
    (void)reader;
}

tamiz_status codec_unpack(struct op *op, struct codec_pool *pool, const struct packed_block *from,
                          uint8_t *out, size_t *size)
{
    (void)pool, (void)out, (void)size;
    return op_fail(op, TAMIZ_NOT_SUPPORTED,
                   "%s: block at offset %llu: packed with codec %d: this build has none",
                   from->path, (unsigned long long)from->offset, from->codec);
}

tamiz_status codec_pack(struct op *op, struct codec_packer *packer, struct slice raw, size_t most,
                        struct buf *out, bool *packed)
{
    (void)op, (void)packer, (void)raw, (void)most, (void)out;
    *packed = false;
    return TAMIZ_OK;
}

tamiz_status codec_packer_use(struct op *op, struct codec_packer *packer, struct slice dictionary)
{
    (void)op, (void)packer, (void)dictionary;
    return TAMIZ_OK;
}

void codec_packer_free(struct codec_packer *packer)
{
    (void)packer;
}

tamiz_status codec_train(struct op *op, struct slice samples, const size_t *sizes, size_t count,
                         struct buf *dictionary)
{
    (void)op, (void)samples, (void)sizes, (void)count, (void)dictionary;
    return TAMIZ_OK;
}

#else

#include <zdict.h>
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

/* What the frame says of its size. */
static tamiz_status check_size(struct op *op, const struct packed_block *from, size_t *size)
{
    if (from->size > BLOCK_RAW_MAX_COMPRESSED)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: packed block at offset %llu: expected at most %d bytes unpacked, "
                       "found %llu",
                       from->path, (ull)from->offset, BLOCK_RAW_MAX_COMPRESSED, (ull)from->size);
    const ull found = ZSTD_getFrameContentSize(from->frame.data, from->frame.size);
    if (found > from->size) /* unknown and wrong are the largest numbers */
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: packed block at offset %llu: expected a frame of at most %llu bytes, "
                       "found %llu",
                       from->path, (ull)from->offset, (ull)from->size, found);
    *size = (size_t)found;
    return TAMIZ_OK;
}

/* ---- dictionaries ---- */

/* Only a name for zstd's own. */
static const ZSTD_DDict *digested(const struct codec_reader *reader)
{
    return (const ZSTD_DDict *)(const void *)reader;
}

tamiz_status codec_reader_open(struct op *op, struct slice dictionary, const char *path,
                               uint64_t offset, struct codec_reader **reader)
{
    /* What begins with zstd's magic number must be whole; anything else it would take for raw
       content, which is never written. */
    *reader = NULL;
    if (ZSTD_getDictID_fromDict(dictionary.data, dictionary.size) != 0)
        *reader = (struct codec_reader *)(void *)ZSTD_createDDict(dictionary.data, dictionary.size);
    if (*reader)
        return TAMIZ_OK;
    return op_fail(op, TAMIZ_CORRUPTION,
                   "%s: dictionary at offset %llu: expected one of zstd, found %zu bytes that are "
                   "none",
                   path, (ull)offset, dictionary.size);
}

size_t codec_reader_memory(const struct codec_reader *reader)
{
    return ZSTD_sizeof_DDict(digested(reader));
}

void codec_reader_free(struct codec_reader *reader)
{
    (void)ZSTD_freeDDict((ZSTD_DDict *)(void *)reader);
}

/* Below these nothing is learnt that is worth its room. */
enum { TRAIN_BLOCKS_LEAST = 8, TRAIN_BYTES_LEAST = 16 << 10, TRAIN_DICTIONARY_LEAST = 512 };

/* A 32nd of what it is made from, for its own bytes have to be saved first. */
static size_t dictionary_room(size_t samples)
{
    const size_t room = samples / 32;
    return room < TRAIN_DICTIONARY_LEAST  ? TRAIN_DICTIONARY_LEAST
           : room > CODEC_DICTIONARY_MOST ? CODEC_DICTIONARY_MOST
                                          : room;
}

tamiz_status codec_train(struct op *op, struct slice samples, const size_t *sizes, size_t count,
                         struct buf *dictionary)
{
    if (count < TRAIN_BLOCKS_LEAST || samples.size < TRAIN_BYTES_LEAST || count > UINT32_MAX)
        return TAMIZ_OK;
    const size_t room = dictionary_room(samples.size);
    if (!buf_reserve(dictionary, room))
        return op_fail_memory(op);
    const size_t got = ZDICT_trainFromBuffer(dictionary->data + dictionary->size, room,
                                             samples.data, sizes, (unsigned)count);
    if (!ZDICT_isError(got))
        dictionary->size += got;
    return TAMIZ_OK;
}

/* ---- unpacking ---- */

tamiz_status codec_unpack(struct op *op, struct codec_pool *pool, const struct packed_block *from,
                          uint8_t *out, size_t *size)
{
    *size = 0;
    if (from->codec == CODEC_ZSTD_DICT && !from->reader)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: block at offset %llu: packed with a dictionary: expected the table to "
                       "have one, found none",
                       from->path, (ull)from->offset);
    size_t want = 0;
    const tamiz_status st = check_size(op, from, &want);
    if (st)
        return st;
    ZSTD_DCtx *context = context_take(pool);
    if (!context)
        return op_fail_memory(op);
    const ZSTD_DDict *dictionary = from->codec == CODEC_ZSTD_DICT ? digested(from->reader) : NULL;
    const size_t got = ZSTD_decompress_usingDDict(context, out, want, from->frame.data,
                                                  from->frame.size, dictionary);
    context_give(pool, context);
    if (ZSTD_isError(got) || got != want)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: packed block at offset %llu: expected %zu bytes, found %s", from->path,
                       (ull)from->offset, want,
                       ZSTD_isError(got) ? ZSTD_getErrorName(got) : "fewer");
    *size = want;
    return TAMIZ_OK;
}

/* ---- packing ---- */

/* The level, and which dictionary it is said by no frame: the table has but one. */
static void *context_make(int level)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (!context)
        return NULL;
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 0);
    return context;
}

tamiz_status codec_packer_use(struct op *op, struct codec_packer *packer, struct slice dictionary)
{
    if (!packer->context)
        packer->context = context_make(packer->level);
    if (!packer->context)
        return op_fail_memory(op);
    (void)ZSTD_CCtx_refCDict(packer->context, NULL);
    (void)ZSTD_freeCDict(packer->dictionary);
    packer->dictionary = NULL;
    if (dictionary.size == 0)
        return TAMIZ_OK;
    packer->dictionary = ZSTD_createCDict(dictionary.data, dictionary.size, packer->level);
    if (!packer->dictionary)
        return op_fail_memory(op);
    const size_t took = ZSTD_CCtx_refCDict(packer->context, packer->dictionary);
    return ZSTD_isError(took)
               ? op_fail(op, TAMIZ_OUT_OF_MEMORY, "zstd: %s", ZSTD_getErrorName(took))
               : TAMIZ_OK;
}

tamiz_status codec_pack(struct op *op, struct codec_packer *packer, struct slice raw, size_t most,
                        struct buf *out, bool *packed)
{
    *packed = false;
    if (raw.size > BLOCK_RAW_MAX_COMPRESSED)
        return TAMIZ_OK;
    if (!packer->context)
        packer->context = context_make(packer->level);
    const size_t bound = ZSTD_compressBound(raw.size);
    if (!packer->context || !buf_reserve(out, bound))
        return op_fail_memory(op);
    const size_t got =
        ZSTD_compress2(packer->context, out->data + out->size, bound, raw.data, raw.size);
    if (ZSTD_isError(got))
        return op_fail(op, TAMIZ_OUT_OF_MEMORY, "zstd: %s", ZSTD_getErrorName(got));
    *packed = got <= most;
    if (*packed)
        out->size += got;
    return TAMIZ_OK;
}

void codec_packer_free(struct codec_packer *packer)
{
    (void)ZSTD_freeCCtx(packer->context);
    (void)ZSTD_freeCDict(packer->dictionary);
    packer->context = packer->dictionary = NULL;
}

#endif
