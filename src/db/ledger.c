/* SPDX-License-Identifier: MIT */
#include "db/ledger.h"

enum {
    WAYS = 8,            /* of the ghost: names in one set, most recent first */
    SAMPLE_ONE_IN = 256, /* once the ghost is full */
    WARM_UP_MAX = 16384, /* names up to which every read is followed until then */
    GHOST_MAX = 1 << 22, /* names: 32 MiB, a cache of 16 GiB in 4 KiB blocks */
};

struct ledger {
    const struct alloc *alloc;
    struct mutex mutex;
    _Atomic uint64_t one_in; /* reads for each that is followed */
    uint64_t *names;         /* sets × WAYS; 0: free. Guarded by mutex */
    uint64_t sets;
    uint64_t taken;
};

struct ledger *ledger_new(const struct alloc *alloc, uint64_t cache_bytes, uint64_t block_bytes)
{
    struct ledger *l = mem_new_array(alloc, 1, sizeof *l);
    if (!l)
        return NULL;
    l->alloc = alloc;
    uint64_t names = cache_bytes / (block_bytes ? block_bytes : 1);
    if (names > GHOST_MAX)
        names = GHOST_MAX;
    l->sets = names / WAYS;
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, alloc, &nowhere);
    l->names = mem_new_array(alloc, l->sets * WAYS, sizeof *l->names);
    if (!l->names || mutex_init(&op, &l->mutex) != TAMIZ_OK) {
        mem_free(alloc, l->names, l->sets * WAYS * sizeof *l->names);
        mem_free(alloc, l, sizeof *l);
        return NULL;
    }
    uint64_t warm_up =
        1; /* of a large ghost not every read is followed even while it fills: that would be felt */
    while (warm_up * WARM_UP_MAX < names && warm_up < SAMPLE_ONE_IN)
        warm_up *= 2;
    atomic_init(&l->one_in, l->sets ? warm_up : SAMPLE_ONE_IN);
    return l;
}

void ledger_free(struct ledger *l)
{
    if (!l)
        return;
    mutex_free(&l->mutex);
    mem_free(l->alloc, l->names, l->sets * WAYS * sizeof *l->names);
    mem_free(l->alloc, l, sizeof *l);
}

bool ledger_due(const struct op *op, const struct ledger *l, const tamiz_read_options *options)
{
    const uint64_t one_in = atomic_load_explicit(&l->one_in, memory_order_relaxed);
    return (counter_get(&op->count->gets) & (one_in - 1)) == 0 && options->use_filters;
}

void ledger_begin(const struct op *op, struct ledger_sample *sample)
{
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        sample->device_reads[i] = counter_get(&op->count->level[i].steps[TAMIZ_STEP_BLOCK_DEVICE]);
}

/* Touches a name in the ghost; true: it was there. */
static bool ghost_touch(struct ledger *l, uint64_t name)
{
    if (l->sets == 0)
        return false;
    const uint64_t mixed = name * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t *set = l->names + (mixed >> 32) * l->sets / (UINT64_C(1) << 32) * WAYS;
    int at = 0;
    while (at < WAYS - 1 && set[at] != name && set[at] != 0)
        at++;
    const bool hit = set[at] == name;
    if (set[at] == 0 &&
        ++l->taken >= l->sets * WAYS * 7 / 8) /* sets fill unevenly: near enough to full */
        atomic_store_explicit(&l->one_in, SAMPLE_ONE_IN, memory_order_relaxed);
    memmove(set + 1, set, (size_t)at * sizeof *set);
    set[0] = name;
    return hit;
}

void ledger_end(struct op *op, struct ledger *l, const struct ledger_sample *sample,
                const struct version *version, const struct lookup *lookup,
                const struct table *answered)
{
    uint64_t misses[TAMIZ_LEVELS] = {0};
    const uint64_t key8 = slice_prefix8(lookup->key, 0);
    const uint64_t weight = atomic_load_explicit(&l->one_in, memory_order_relaxed);
    mutex_lock(&l->mutex);
    for (uint32_t r = 0; r < version->run_count; r++) {
        const struct run *run = &version->runs[r];
        const struct table_meta *meta = run_find(run, lookup->key, key8);
        uint32_t block;
        if (!meta || !table_locate(meta->table, lookup->key, &block))
            continue;
        if (!ghost_touch(l, (meta->number << 32 | block) + 1))
            misses[run->level]++;
        if (meta->table == answered)
            break;
    }
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
