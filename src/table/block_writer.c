/* SPDX-License-Identifier: MIT */
#include "table/block_writer.h"

#include <assert.h>

#include "table/columns.h"

enum { WORTH = 64 }; /* a dictionary that saves less than so manieth is not worth its memory */

void block_writer_init(struct block_writer *w, const struct alloc *alloc, enum codec codec,
                       int level)
{
    memset(w, 0, sizeof *w);
    w->waiting = codec == CODEC_ZSTD_DICT;
    w->codec = codec == CODEC_NONE ? CODEC_NONE : CODEC_ZSTD;
    w->packer.level = level;
    index_builder_init(&w->index, alloc);
    w->raw = w->columns = w->blocks = w->sizes = w->fences = w->dictionary = buf_init(alloc);
}

void block_writer_free(struct block_writer *w)
{
    codec_packer_free(&w->packer);
    index_builder_free(&w->index);
    buf_free(&w->raw);
    buf_free(&w->columns);
    buf_free(&w->blocks);
    buf_free(&w->sizes);
    buf_free(&w->fences);
    buf_free(&w->dictionary);
}

uint64_t block_writer_waiting(const struct block_writer *w)
{
    return w->blocks.size;
}

/* ---- one block ---- */

/* Seals the payload that is the end of `out` from `at` on, and enters it. */
static void enter(struct block_writer *w, struct slice fence, struct buf *out, size_t at,
                  size_t raw, enum codec codec, uint64_t base)
{
    const size_t stored = out->size - at;
    block_seal(out, stored, codec, w->file_id, base + at);
    index_builder_add(&w->index, fence, stored, raw);
    w->count++;
    w->stored_bytes += stored + BLOCK_TRAILER_SIZE;
    w->raw_most = raw > w->raw_most ? raw : w->raw_most;
}

/* Appends the columns of a block that was written here. */
static tamiz_status turn(struct op *op, struct slice raw, struct buf *columns)
{
    struct block b;
    const bool whole = block_open(raw, &b) && columns_append(&b, columns);
    assert(whole);
    (void)whole;
    return columns->failed ? op_fail_memory(op) : TAMIZ_OK;
}

/* Appends the block `raw`, packed, to `out` where that makes it at least an eighth smaller. */
static tamiz_status pack(struct op *op, struct block_writer *w, struct slice raw, struct buf *out,
                         bool *packed)
{
    tamiz_status st;
    *packed = false;
    if (raw.size > BLOCK_RAW_MAX_COMPRESSED)
        return TAMIZ_OK;
    buf_clear(&w->columns);
    TRY(turn(op, raw, &w->columns));
    TRY(codec_pack(op, &w->packer, buf_slice(&w->columns), raw.size - raw.size / 8, out, packed));
done:
    return st;
}

/* Out with the block `raw`, packed where that pays. */
static tamiz_status put_raw(struct op *op, struct block_writer *w, struct slice raw,
                            struct slice fence, struct buf *out, uint64_t base)
{
    const size_t at = out->size;
    bool packed = false;
    tamiz_status st;
    TRY(pack(op, w, raw, out, &packed));
    if (!packed)
        buf_slice_append(out, raw);
    enter(w, fence, out, at, raw.size, packed ? w->codec : CODEC_NONE, base);
done:
    return st;
}

/* ---- blocks that wait ---- */

static tamiz_status keep(struct op *op, struct block_writer *w, struct block_builder *block,
                         struct slice fence)
{
    const size_t before = w->blocks.size;
    tamiz_status st;
    TRY(block_builder_finish(op, block, &w->blocks));
    const size_t size = w->blocks.size - before;
    buf_append(&w->sizes, &size, sizeof size);
    buf_block(&w->fences, fence);
    if (w->blocks.failed || w->sizes.failed || w->fences.failed)
        TRY(op_fail_memory(op));
done:
    return st;
}

static size_t kept_size(const struct block_writer *w, size_t i)
{
    size_t size;
    memcpy(&size, w->sizes.data + i * sizeof size, sizeof size);
    return size;
}

static size_t kept_count(const struct block_writer *w)
{
    return w->sizes.size / sizeof(size_t);
}

/* What the waiting blocks would take as the packer packs now. */
static tamiz_status packed_size(struct op *op, struct block_writer *w, uint64_t *size)
{
    const uint8_t *at = w->blocks.data;
    tamiz_status st = TAMIZ_OK;
    *size = 0;
    for (size_t i = 0; i < kept_count(w); at += kept_size(w, i++)) {
        bool packed = false;
        buf_clear(&w->raw);
        TRY(pack(op, w, slice_of(at, kept_size(w, i)), &w->raw, &packed));
        *size += packed ? w->raw.size : kept_size(w, i);
    }
done:
    return st;
}

/* A dictionary for what is packed of the waiting blocks; none where they teach nothing. */
static tamiz_status train(struct op *op, struct block_writer *w)
{
    struct buf samples = buf_init(w->blocks.alloc), sizes = buf_init(w->blocks.alloc);
    const uint8_t *at = w->blocks.data;
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < kept_count(w); at += kept_size(w, i++)) {
        const size_t before = samples.size;
        TRY(turn(op, slice_of(at, kept_size(w, i)), &samples));
        const size_t size = samples.size - before;
        buf_append(&sizes, &size, sizeof size);
    }
    if (sizes.failed)
        TRY(op_fail_memory(op));
    TRY(codec_train(op, buf_slice(&samples), (const size_t *)(const void *)sizes.data,
                    kept_count(w), &w->dictionary));
done:
    buf_free(&samples);
    buf_free(&sizes);
    return st;
}

/* Trains, and keeps what pays. */
static tamiz_status choose_dictionary(struct op *op, struct block_writer *w)
{
    uint64_t without = 0, with = 0;
    tamiz_status st;
    if (w->blocks.size > 4 * BLOCK_WRITER_WAIT)
        return TAMIZ_OK; /* blocks of one large value each */
    TRY(train(op, w));
    if (w->dictionary.size == 0)
        return TAMIZ_OK;
    TRY(packed_size(op, w, &without));
    TRY(codec_packer_use(op, &w->packer, buf_slice(&w->dictionary)));
    TRY(packed_size(op, w, &with));
    if (with + w->dictionary.size + without / WORTH < without) {
        w->codec = CODEC_ZSTD_DICT;
    } else {
        buf_clear(&w->dictionary);
        TRY(codec_packer_use(op, &w->packer, slice_of(NULL, 0)));
    }
done:
    return st;
}

static tamiz_status release(struct op *op, struct block_writer *w, struct buf *out, uint64_t base)
{
    struct reader fences = reader_of(buf_slice(&w->fences));
    const uint8_t *at = w->blocks.data;
    tamiz_status st;
    TRY(choose_dictionary(op, w));
    for (size_t i = 0; i < kept_count(w); at += kept_size(w, i++))
        TRY(put_raw(op, w, slice_of(at, kept_size(w, i)), reader_block(&fences), out, base));
    w->waiting = false;
    buf_free(&w->blocks);
    buf_free(&w->sizes);
    buf_free(&w->fences);
done:
    return st;
}

/* ---- the face ---- */

tamiz_status block_writer_put(struct op *op, struct block_writer *w, struct block_builder *block,
                              struct slice fence, struct buf *out, uint64_t base)
{
    const size_t at = out->size;
    tamiz_status st;
    if (w->waiting) {
        TRY(keep(op, w, block, fence));
        if (w->blocks.size >= BLOCK_WRITER_WAIT)
            TRY(release(op, w, out, base));
    } else if (w->codec == CODEC_NONE) { /* straight into its place */
        TRY(block_builder_finish(op, block, out));
        enter(w, fence, out, at, out->size - at, CODEC_NONE, base);
    } else {
        buf_clear(&w->raw);
        TRY(block_builder_finish(op, block, &w->raw));
        TRY(put_raw(op, w, buf_slice(&w->raw), fence, out, base));
    }
    block_builder_clear(block);
done:
    return st;
}

tamiz_status block_writer_end(struct op *op, struct block_writer *w, struct buf *out, uint64_t base)
{
    return w->waiting ? release(op, w, out, base) : TAMIZ_OK;
}
