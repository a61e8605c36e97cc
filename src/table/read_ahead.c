/* SPDX-License-Identifier: MIT */
#include "table/read_ahead.h"

enum {
    SEQUENTIAL_FROM = 2,    /* device reads in a row before the first read ahead */
    AHEAD_FIRST = 32 << 10, /* bytes of the first piece */
};

/* A read and where it counts. */
struct taking {
    struct op *op;
    struct table *table;
    const struct table_read *how;
    uint64_t nanoseconds; /* of what was read, where somebody listens */
};

static bool compacting(const struct taking *take)
{
    return take->how->purpose == IO_COMPACTION;
}

static bool is_ahead(const struct read_ahead *a, struct extent e)
{
    return e.offset >= a->offset && e.offset - a->offset <= a->bytes.size &&
           extent_whole(e) <= a->bytes.size - (e.offset - a->offset);
}

/* Bytes to read at once from `block` on: whole blocks, as many as the walk has earned. */
static size_t piece(const struct read_ahead *a, const struct index *index, uint32_t block)
{
    uint64_t size = extent_whole(index_extent(index, block));
    if (a->sequential < SEQUENTIAL_FROM)
        return (size_t)size;
    const uint32_t count = index_count(index);
    for (uint32_t b = block + 1; b < count; b++) {
        const uint64_t more = extent_whole(index_extent(index, b));
        if (size + more > a->piece_bytes)
            break;
        size += more;
    }
    return (size_t)size;
}

static tamiz_status device_read(struct taking *take, uint64_t offset, void *buffer, size_t size)
{
    struct op *op = take->op;
    const struct table_world *world = take->table->world;
    const uint64_t started = op->trace ? env_monotonic_ns(world->env) : 0;
    struct file *file;
    tamiz_status st = file_pool_acquire(op, world->files, &take->table->file, &file);
    if (st != TAMIZ_OK)
        return st;
    st = file_read(op, file, take->how->purpose, offset, buffer, size);
    file_pool_release(world->files, &take->table->file);
    take->nanoseconds = op->trace ? env_monotonic_ns(world->env) - started : 0;
    if (st == TAMIZ_OK && !compacting(take))
        counter_add(&table_level(op, take->how)->device_read_bytes, size);
    return st;
}

/* The buffer is filled with `size` bytes from `offset` on. */
static tamiz_status fill(struct read_ahead *a, struct taking *take, uint64_t offset, size_t size)
{
    tamiz_status st;
    buf_clear(&a->bytes);
    if (!buf_reserve(&a->bytes, size))
        TRY(op_fail_memory(take->op));
    TRY(device_read(take, offset, a->bytes.data, size));
    a->bytes.size = size;
    a->offset = offset;
    a->piece_bytes = a->piece_bytes * 2 < TABLE_READ_AHEAD ? a->piece_bytes * 2 : TABLE_READ_AHEAD;
done:
    return st;
}

/* The stored bytes to where the load wants them: from what was read ahead, or from the device. */
static tamiz_status fetch(struct read_ahead *a, struct taking *take, const struct block_load *load)
{
    const struct extent e = load->extent;
    const size_t whole = (size_t)extent_whole(e);
    tamiz_status st = TAMIZ_OK;
    if (!is_ahead(a, e)) {
        const size_t size = piece(a, table_loaded_of(take->table)->index, load->block);
        if (size == whole)
            return device_read(take, e.offset, load->bytes, whole);
        TRY(fill(a, take, e.offset, size));
    }
    memcpy(load->bytes, a->bytes.data + (e.offset - a->offset), whole);
done:
    return st;
}

void read_ahead_init(struct read_ahead *a, const struct alloc *alloc)
{
    *a = (struct read_ahead){.piece_bytes = AHEAD_FIRST, .bytes = buf_init(alloc)};
}

void read_ahead_break(struct read_ahead *a)
{
    a->sequential = 0;
    a->piece_bytes = AHEAD_FIRST;
}

tamiz_status read_ahead_take(struct op *op, struct read_ahead *a, struct table *t,
                             const struct table_read *how, uint32_t block, struct cached_block **b)
{
    struct table_loaded *l = table_loaded_of(t);
    struct taking take = {.op = op, .table = t, .how = how};
    struct block_load load;
    tamiz_status st;
    TRY(block_load_begin(op, t, l, block, &load));
    st = fetch(a, &take, &load);
    if (st < 0) {
        block_load_abandon(t, &load);
        return st;
    }
    if (!compacting(&take))
        table_step(op, t, how, TAMIZ_STEP_BLOCK_DEVICE,
                   (struct step_about){block, extent_whole(load.extent), "", take.nanoseconds});
    TRY(block_load_end(op, t, l, &load, b));
    a->sequential++;
done:
    return st;
}

void read_ahead_free(struct read_ahead *a)
{
    buf_free(&a->bytes);
}
