/* SPDX-License-Identifier: MIT
 *
 * What the units of a table share: its handle, what is in memory once it is loaded, and how one
 * block gets from the file into memory. For src/table/table*.c alone.
 */
#ifndef TAMIZ_TABLE_TABLE_INSIDE_H
#define TAMIZ_TABLE_TABLE_INSIDE_H

#include "table/table.h"

/* All of an open table. Frozen but for the places. What a get touches stands first. */
struct table_loaded {
    struct filter_view filter;
    uint64_t expected_fp_1e9; /* of the filter, × 1e9 */
    uint64_t seq_max;
    struct index *index;
    cache_place *places; /* one a data block */
    struct file *file;   /* while it is being loaded; NULL afterwards */
    uint64_t file_id;
    uint64_t file_size;
    char filter_name[16]; /* "" where there is none in use */

    uint8_t *filter_memory; /* image and trailer; FILTER_ALIGN aligned */
    size_t filter_memory_size;
    tamiz_status filter_status; /* OK: in use, or the table was written without one */
    char filter_missing[OP_TEXT_MAX];
    struct table_properties properties; /* borrows the bytes below */
    struct buf properties_bytes;
};

struct table {
    _Atomic(struct table_loaded *) loaded; /* NULL until the first use */
    _Atomic uint32_t holders;
    const struct table_world *world;
    uint64_t number;
    uint64_t file_id, file_size; /* as expected */
    char *path;
    struct pooled_file file; /* acquired for each read of the device */
    struct mutex loading;    /* held by who loads */
    struct table_tally tally;
    _Atomic bool quarantined; /* the filter */
};

/* The file is opened where it is not: table_load.c. Owned by the caller on success. */
tamiz_status table_loaded_open(struct op *op, struct table *t, struct table_loaded **loaded);
void table_loaded_close(const struct table *t, struct table_loaded *l);

static inline struct table_loaded *table_loaded_of(const struct table *t)
{
    return atomic_load_explicit(&t->loaded, memory_order_acquire);
}

/* Is there a filter to ask? */
static inline bool table_asks(const struct table *t, const struct table_loaded *l)
{
    return l->filter.family && !atomic_load_explicit(&t->quarantined, memory_order_relaxed);
}

/* One block on its way into memory. */
struct block_load {
    uint32_t block;
    struct extent extent;
    struct cached_block *target;
    uint8_t *packed; /* NULL: is read straight into the target, the trailer into its slack */
    uint8_t *bytes;  /* where extent_whole(extent) bytes are to be read to */
};

/* Memory for the block. On failure *load holds nothing. */
tamiz_status block_load_begin(struct op *op, struct table *t, struct table_loaded *l,
                              uint32_t block, struct block_load *load);
/* The bytes are there: checks, unpacks, opens. The target is the caller's, pinned; on failure it is
 * gone. */
tamiz_status block_load_end(struct op *op, struct table *t, struct table_loaded *l,
                            struct block_load *load, struct cached_block **block);
void block_load_abandon(struct table *t, struct block_load *load);

/* A step of a read of this table, counted and, where somebody listens, told: with the place of
 * `block` (TABLE_NO_BLOCK: of none) and `size` bytes (0: the block's). */
enum { TABLE_NO_BLOCK = -1 };
void table_step_told(struct op *op, const struct table *t, const struct table_loaded *l,
                     const struct table_read *how, tamiz_step_kind kind, const char *text,
                     int64_t block, uint64_t size, uint64_t nanoseconds);

static inline void table_step(struct op *op, const struct table *t, const struct table_loaded *l,
                              const struct table_read *how, tamiz_step_kind kind, const char *text,
                              int64_t block, uint64_t size, uint64_t nanoseconds)
{
    /* What the story needs is not even looked at where nobody listens. */
    if (__builtin_expect(op->trace != NULL, 0))
        table_step_told(op, t, l, how, kind, text, block, size, nanoseconds);
    else
        op_step(op, &(const tamiz_step_info){.kind = kind, .level = how->level});
}

static inline struct level_counters *table_level(struct op *op, const struct table_read *how)
{
    return how->level < 0 ? &op->count->memtables : &op->count->level[how->level];
}

#endif
