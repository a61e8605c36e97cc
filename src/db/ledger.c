/* SPDX-License-Identifier: MIT */
#include "db/ledger.h"

#include "db/ghost.h"

enum {
    ONE_IN = 256,        /* reads for each that is followed, in the long run                  */
    GHOST_ROOM = 16384,  /* names                                                             */
    SAMPLE_NAMES = 4096, /* of all blocks or of the cache's, whichever are fewer: so many are wanted
                            in the followed cells */
    CELL_BLOCKS = 4,     /* of the data in a cell: enough that few blocks lie across its edges */
    CELLS_MAX = 1 << 16,
    WARM_TOUCHES = 16, /* for each name, until first reads are few                          */
};

struct ledger {
    const struct alloc *alloc;
    uint64_t cache_bytes, block_bytes;
    /* Read by every get, written under the mutex; a torn picture of them misplaces one read. */
    _Atomic uint64_t lowest;                     /* leading bytes of the smallest key        */
    _Atomic uint32_t skip;                       /* bytes that all keys begin with           */
    _Atomic uint32_t shift;                      /* from the distance to `lowest` to a cell  */
    _Atomic uint32_t cells_one_in, reads_one_in; /* powers of two */
    struct mutex mutex;
    struct ghost ghost;
    uint64_t touches;
    uint64_t configured_bytes; /* of the tables, when the numbers above were chosen */
};

struct ledger *ledger_new(const struct alloc *alloc, uint64_t cache_bytes, uint64_t block_bytes)
{
    struct ledger *l = mem_new_array(alloc, 1, sizeof *l);
    if (!l)
        return NULL;
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, alloc, &nowhere);
    l->alloc = alloc;
    l->cache_bytes = cache_bytes;
    l->block_bytes = block_bytes;
    atomic_init(&l->cells_one_in, 1);
    atomic_init(&l->reads_one_in, 1);
    if (mutex_init(&op, &l->mutex) != TAMIZ_OK) {
        mem_free(alloc, l, sizeof *l);
        return NULL;
    }
    if (!ghost_init(&l->ghost, alloc, GHOST_ROOM)) {
        ledger_free(l);
        return NULL;
    }
    return l;
}

void ledger_free(struct ledger *l)
{
    if (!l)
        return;
    ghost_free(&l->ghost);
    mutex_free(&l->mutex);
    mem_free(l->alloc, l, sizeof *l);
}

/* ---- which reads ---- */

static uint32_t load_u32_relaxed(const _Atomic uint32_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

bool ledger_due(const struct op *op, const struct ledger *l, const struct lookup *lookup,
                const tamiz_read_options *options)
{
    if ((counter_get(&op->count->gets) & (load_u32_relaxed(&l->reads_one_in) - 1)) != 0 ||
        !options->use_filters)
        return false;
    const uint32_t one_in = load_u32_relaxed(&l->cells_one_in);
    if (one_in == 1)
        return true;
    const uint64_t at = slice_prefix8(lookup->key, load_u32_relaxed(&l->skip));
    const uint64_t lowest = atomic_load_explicit(&l->lowest, memory_order_relaxed);
    const uint64_t cell = (at > lowest ? at - lowest : 0) >> load_u32_relaxed(&l->shift);
    return ((cell * UINT64_C(0x9e3779b97f4a7c15)) >> 40 & (one_in - 1)) == 0;
}

/* ---- choosing the numbers ---- */

static uint32_t power_of_two_near(uint64_t n, uint32_t most)
{
    uint32_t p = 1;
    while ((uint64_t)p * 2 <= n && p < most)
        p *= 2;
    return p;
}

/* The whole range of keys, borrowed from the version. */
static void key_range(const struct version *v, struct slice *smallest, struct slice *largest)
{
    *smallest = v->runs[0].tables[0]->smallest;
    *largest = v->runs[0].tables[0]->largest;
    for (uint32_t r = 0; r < v->run_count; r++) {
        const struct run *run = &v->runs[r];
        const struct slice low = run->tables[0]->smallest,
                           high = run->tables[run->count - 1]->largest;
        if (slice_compare(low, *smallest) < 0)
            *smallest = low;
        if (slice_compare(high, *largest) > 0)
            *largest = high;
    }
}

static uint64_t table_bytes(const struct version *v)
{
    uint64_t sum = 0;
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        sum += v->level_bytes[i];
    return sum;
}

/* Cells of at most CELLS_MAX and about CELL_BLOCKS blocks each, were the keys spread evenly. */
static void cut_cells(struct ledger *l, const struct version *v, uint64_t blocks)
{
    struct slice smallest, largest;
    key_range(v, &smallest, &largest);
    const size_t skip = slice_common_prefix(smallest, largest);
    const uint64_t lowest = slice_prefix8(smallest, skip);
    const uint64_t span = slice_prefix8(largest, skip) - lowest;
    const uint64_t cells = blocks / CELL_BLOCKS < CELLS_MAX ? blocks / CELL_BLOCKS + 1 : CELLS_MAX;
    uint32_t shift = 0;
    while (shift < 63 && span >> shift >= cells)
        shift++;
    atomic_store_explicit(&l->skip, (uint32_t)skip, memory_order_relaxed);
    atomic_store_explicit(&l->lowest, lowest, memory_order_relaxed);
    atomic_store_explicit(&l->shift, shift, memory_order_relaxed);
}

/* Where the data have grown or shrunk much since the numbers were chosen: once more, with an empty
 * ghost. mutex held. */
static void configure(struct ledger *l, const struct version *v)
{
    const uint64_t bytes = table_bytes(v);
    if (v->run_count == 0 || (l->configured_bytes && bytes <= l->configured_bytes * 2 &&
                              bytes >= l->configured_bytes / 2))
        return;
    const uint64_t block = l->block_bytes ? l->block_bytes : 1;
    const uint64_t cached = l->cache_bytes / block, blocks = bytes / block + 1;
    const uint32_t one_in =
        power_of_two_near((cached < blocks ? cached : blocks) / SAMPLE_NAMES, ONE_IN);
    cut_cells(l, v, blocks);
    const uint64_t share = cached / one_in;
    ghost_reset(&l->ghost, share < GHOST_ROOM ? (uint32_t)share : GHOST_ROOM);
    l->touches = 0;
    l->configured_bytes = bytes;
    atomic_store_explicit(&l->cells_one_in, one_in, memory_order_relaxed);
    atomic_store_explicit(&l->reads_one_in, cached ? 1 : ONE_IN, memory_order_relaxed);
}

/* Once first reads are few, only some of the followed cells' reads are. mutex held. */
static void thin_out(struct ledger *l)
{
    const uint32_t cells = load_u32_relaxed(&l->cells_one_in);
    const uint64_t names = l->configured_bytes / (l->block_bytes ? l->block_bytes : 1) / cells + 1;
    const uint64_t warm = WARM_TOUCHES * (names < l->ghost.capacity ? names : l->ghost.capacity);
    if (l->touches > warm)
        atomic_store_explicit(&l->reads_one_in, ONE_IN / cells, memory_order_relaxed);
}

/* ---- following ---- */

void ledger_begin(const struct op *op, struct ledger_sample *sample)
{
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        sample->device_reads[i] = counter_get(&op->count->level[i].steps[TAMIZ_STEP_BLOCK_DEVICE]);
}

/* The blocks of a filterless read, level by level those that the ghost does not have. mutex held.
 */
static void follow(struct ledger *l, const struct version *v, const struct lookup *lookup,
                   const struct table *answered, uint64_t misses[TAMIZ_LEVELS])
{
    const uint64_t key8 = slice_prefix8(lookup->key, 0);
    for (uint32_t r = 0; r < v->run_count; r++) {
        const struct table_meta *meta = run_find(&v->runs[r], lookup->key, key8);
        uint32_t block;
        if (!meta || !table_locate(meta->table, lookup->key, &block))
            continue;
        l->touches++;
        if (!ghost_touch(&l->ghost, meta->number << 32 | block))
            misses[v->runs[r].level]++;
        if (meta->table == answered)
            break;
    }
}

void ledger_end(struct op *op, struct ledger *l, const struct ledger_sample *sample,
                const struct version *version, const struct lookup *lookup,
                const struct table *answered)
{
    uint64_t misses[TAMIZ_LEVELS] = {0};
    mutex_lock(&l->mutex);
    const uint64_t weight =
        (uint64_t)load_u32_relaxed(&l->cells_one_in) * load_u32_relaxed(&l->reads_one_in);
    follow(l, version, lookup, answered, misses);
    configure(l, version);
    thin_out(l);
    mutex_unlock(&l->mutex);

    for (int i = 0; i < TAMIZ_LEVELS; i++) {
        struct level_counters *c = &op->count->level[i];
        const uint64_t did =
            counter_get(&c->steps[TAMIZ_STEP_BLOCK_DEVICE]) - sample->device_reads[i];
        const uint64_t avoided =
            misses[i] - did; /* may be below 0: a sum modulo 2^64, read as signed */
        if (avoided) {
            counter_add(&c->avoided, weight * avoided);
            counter_add(&c->avoided_squares, weight * (weight - 1) * avoided * avoided);
        }
    }
}
