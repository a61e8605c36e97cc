/* SPDX-License-Identifier: MIT
 *
 * What the units of a table share: its handle, what is in memory once it is loaded, and how one
 * block gets from the file into memory. For src/table/table*.c alone.
 */
#ifndef TAMIZ_TABLE_TABLE_INSIDE_H
#define TAMIZ_TABLE_TABLE_INSIDE_H

#include "table/codec.h"
#include "table/table.h"

/* All of an open table. Frozen but for the places. What a get touches stands first. */
struct table_loaded {
    struct index *index;
    cache_place *places; /* one a data block */
    uint64_t seq_max;
    struct codec_reader *dictionary; /* of packed blocks; NULL: the table has none */
    uint64_t stamp_base; /* added to every stamp in the file: 0, or that of an ingested table */
    uint32_t block_entries, entry_bytes; /* of an ordinary block, about */
    struct filter_view filter;
    struct file *file; /* while it is being loaded; NULL afterwards */
    uint64_t file_id;
    uint64_t file_size;
    char filter_name[16]; /* "" where there is none in use */

    uint8_t *filter_memory; /* image and trailer; FILTER_ALIGN aligned */
    size_t filter_memory_size;
    tamiz_status filter_status; /* OK: in use, or the table was written without one */
    char filter_missing[OP_TEXT_MAX];
    struct filter_view prefix_filter; /* family NULL: none to ask, which the words say */
    char prefix_missing[OP_TEXT_MAX];
    struct table_properties properties; /* borrows the bytes below */
    struct buf properties_bytes;
    struct ranges ranges; /* borrow the bytes below */
    struct buf ranges_bytes;
    tamiz_status ranges_status;
    char ranges_damage[2 * OP_TEXT_MAX]; /* words, where that is not TAMIZ_OK */
};

struct table {
    struct table_face face; /* first: table_face() hands it out */
    const struct table_world *world;
    _Atomic uint32_t holders;
    uint64_t number;
    uint64_t file_id, file_size; /* as expected */
    uint64_t sequence;           /* of entries that have none; see table_set_sequence */
    char *path;
    struct pooled_file file; /* acquired for each read of the device */
    struct mutex loading;    /* held by who loads */
    struct table_tally tally;
};

/* The file is opened where it is not: table_load.c. Owned by the caller on success. */
tamiz_status table_loaded_open(struct op *op, struct table *t, struct table_loaded **loaded);
void table_loaded_close(const struct table *t, struct table_loaded *l);

static inline struct table_loaded *table_loaded_of(const struct table *t)
{
    return atomic_load_explicit(&t->face.loaded, memory_order_acquire);
}

/* Is there a filter to ask? */
static inline bool table_asks(const struct table *t, const struct table_loaded *l)
{
    return l->filter.family && !atomic_load_explicit(&t->face.quarantined, memory_order_relaxed);
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
/* One block from the device, whatever the cache has, and checked, whatever the options say. The
 * caller's, pinned. */
tamiz_status table_read_checked(struct op *op, struct table *t, struct table_loaded *l,
                                uint32_t block, struct cached_block **b);

/* Beside a step: which block it is about, and how many bytes. */
struct step_about {
    uint32_t block; /* STEP_NO_BLOCK */
    uint64_t size;  /* STEP_WHOLE_BLOCK: as the index says */
    const char *text;
    uint64_t nanoseconds;
};
#define STEP_NO_BLOCK    UINT32_MAX
#define STEP_WHOLE_BLOCK UINT64_MAX

/* For who listens: table.c. */
void table_tell(struct op *op, const struct table *t, const struct table_read *how,
                tamiz_step_kind kind, struct step_about about) __attribute__((cold));

/* A step of a read of this table, counted and told. What is told is only gathered where somebody
 * listens: the block's place in the file is a cache miss of its own. */
static inline void table_step(struct op *op, const struct table *t, const struct table_read *how,
                              tamiz_step_kind kind, struct step_about about)
{
    struct level_counters *at =
        how->level < 0 ? &op->count->memtables : &op->count->level[how->level];
    counter_add(&at->steps[kind], 1);
    if (__builtin_expect(op->trace != NULL, 0))
        table_tell(op, t, how, kind, about);
}

static inline struct step_about step_plain(const char *text)
{
    return (struct step_about){STEP_NO_BLOCK, 0, text, 0};
}

static inline struct step_about step_block(uint32_t block)
{
    return (struct step_about){block, STEP_WHOLE_BLOCK, "", 0};
}

static inline struct level_counters *table_level(struct op *op, const struct table_read *how)
{
    return how->level < 0 ? &op->count->memtables : &op->count->level[how->level];
}

#endif
