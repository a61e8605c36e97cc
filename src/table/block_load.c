/* SPDX-License-Identifier: MIT
 *
 * A data block on its way from the device into the cache: memory for it, its bytes as stored (the
 * caller reads them in between), checked, unpacked, opened.
 */
#include <assert.h>

#include "table/columns.h"
#include "table/table_inside.h"

typedef unsigned long long ull; /* for printing */

tamiz_status block_load_begin(struct op *op, struct table *t, struct table_loaded *l,
                              uint32_t block, struct block_load *load)
{
    const struct extent extent = index_extent(l->index, block);
    const uint64_t raw = index_raw_size(l->index, block);
    *load = (struct block_load){.block = block, .extent = extent};
    if (raw != extent.size && raw > BLOCK_RAW_MAX_COMPRESSED)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: packed block at offset %llu: expected at most %d bytes unpacked, "
                       "found %llu",
                       t->path, (ull)extent.offset, BLOCK_RAW_MAX_COMPRESSED, (ull)raw);
    static_assert((int)BLOCK_TRAILER_SIZE <= (int)BLOCK_SLACK,
                  "the trailer is read into the slack");
    load->target = cached_block_new(t->world->cache, (size_t)raw, l->block_entries);
    if (!load->target)
        return op_fail_memory(op);
    load->bytes = cached_block_payload(load->target);
    if (raw == extent.size)
        return TAMIZ_OK;
    load->bytes = load->packed = mem_new(t->world->alloc, (size_t)extent_whole(extent));
    if (load->packed)
        return TAMIZ_OK;
    block_load_abandon(t, load);
    return op_fail_memory(op);
}

void block_load_abandon(struct table *t, struct block_load *load)
{
    cached_block_unpin(load->target);
    mem_free(t->world->alloc, load->packed, (size_t)extent_whole(load->extent));
    load->target = NULL;
    load->packed = NULL;
}

/* Payload of the target, from the stored bytes. */
static tamiz_status unpack(struct op *op, struct table *t, struct table_loaded *l,
                           const struct block_load *load, struct slice *payload)
{
    const uint64_t raw = index_raw_size(l->index, load->block);
    const struct slice stored = slice_of(load->bytes, (size_t)extent_whole(load->extent));
    enum codec codec;
    tamiz_status st;
    TRY(block_unseal(op, stored, l->file_id, load->extent.offset, t->path, t->world->verify,
                     payload, &codec));
    if ((codec != CODEC_NONE) != (load->packed != NULL))
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "%s: block at offset %llu, codec %d: expected %llu bytes, found %llu", t->path,
                    (ull)load->extent.offset, codec, (ull)raw, (ull)load->extent.size));
    if (load->packed)
        TRY(columns_unpack(op, cache_codec(t->world->cache),
                           &(const struct packed_block){*payload, raw, codec, l->dictionary,
                                                        t->path, load->extent.offset},
                           cached_block_payload(load->target)));
    *payload = slice_of(cached_block_payload(load->target), (size_t)raw);
done:
    return st;
}

tamiz_status block_load_end(struct op *op, struct table *t, struct table_loaded *l,
                            struct block_load *load, struct cached_block **block)
{
    struct slice payload;
    tamiz_status st;
    TRY(unpack(op, t, l, load, &payload));
    if (!block_open(payload, &load->target->block))
        TRY(op_fail(
            op, TAMIZ_CORRUPTION,
            "%s: block at offset %llu: expected a data block, found %zu bytes that are none",
            t->path, (ull)load->extent.offset, payload.size));
    *block = load->target;
    load->target = NULL;
done:
    block_load_abandon(t, load);
    return st;
}
