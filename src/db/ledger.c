/* SPDX-License-Identifier: MIT */
#include "db/ledger.h"

#include <math.h>
#include <stdlib.h>

#include "db/ghost.h"
#include "filter/theory.h"

enum {
    RATE_READS = 2048,  /* followed at one rate, until it is halved                            */
    ONE_IN_MOST = 256,  /* reads for each that is followed, in the long run                    */
    ROW = 64,           /* followed reads in a row that count …                                */
    ROW_WARM = 16,      /* … behind so many that do not                                        */
    GHOST_ROOM = 16384, /* names */
    GHOST_LEAST = 2048,
    LAST_NAMES = 64,
    CELL_BLOCKS = 4, /* of all data in a cell */
    FENCES_MOST = 2048,
    CELLS_LEAST = 32,    /* that are followed */
    SEEN_BITS = 1 << 17, /* (table, key) pairs of the tallies …        */
    SEEN_MOST = 1 << 15, /* … of which so many are known at a time     */
    DRIFT_LOOK = 64,     /* each so many absent keys a tally is judged */
    AVOIDED_UNIT = 16,   /* fixed point of the counters                */
    MODEL_PERCENT = 5,   /* a ghost is not the cache: of the twin's reads, either way */
};
#define DRIFT_SIGMAS 5.0

struct ledger {
    const struct store *store;
    const struct alloc *alloc;
    uint64_t cache_bytes, block_bytes;
    uint32_t audit;
    /* Read by every get, written under the mutex; a torn picture of them misplaces one read. */
    _Atomic uint64_t lowest;    /* leading bytes of the smallest key                             */
    _Atomic uint32_t skip;      /* bytes that all keys begin with                                */
    _Atomic uint32_t shift;     /* from the distance to `lowest` to a cell                       */
    _Atomic uint32_t cells_end; /* cells whose number below is smaller are followed; 0: all      */
    _Atomic uint32_t period;    /* reads from one row to the next, a power of two; 0: all count  */
    struct mutex mutex;
    struct ghost ghost;
    uint64_t configured_bytes; /* of the tables, when the numbers here were chosen */
    double blocks, cells;      /* there are */
    double cached;             /* blocks that the cache holds */
    bool all_fits;             /* whatever is read stays */
    uint32_t one_in;           /* the rate: space times time */
    uint32_t one_in_space, one_in_space_most;
    uint32_t followed;            /* at this rate */
    uint64_t fences[FENCES_MOST]; /* by which cells are cut: distances, ascending */
    uint32_t fence_count;
    uint64_t last[LAST_NAMES]; /* by run: what the followed read before touched */
    uint64_t *seen;            /* a bit a pair */
    uint32_t seen_count;
};

struct ledger *ledger_new(const struct store *s, uint64_t cache_bytes, uint64_t block_bytes)
{
    const struct alloc *alloc = &s->alloc;
    struct ledger *l = mem_new_array(alloc, 1, sizeof *l);
    struct counters *nowhere = mem_new_array(alloc, 1, sizeof *nowhere);
    bool done = l && nowhere;
    if (done) {
        struct op op;
        op_init(&op, alloc, nowhere);
        l->store = s;
        l->alloc = alloc;
        l->cache_bytes = cache_bytes;
        l->block_bytes = block_bytes;
        l->audit = s->options.audit;
        done = mutex_init(&op, &l->mutex) == TAMIZ_OK;
    }
    mem_free(alloc, nowhere, sizeof *nowhere);
    if (!done) {
        mem_free(alloc, l, sizeof *l);
        return NULL;
    }
    l->seen = mem_new_array(alloc, SEEN_BITS / 64, sizeof *l->seen);
    if (l->seen && ghost_init(&l->ghost, alloc, GHOST_ROOM))
        return l;
    ledger_free(l);
    return NULL;
}

void ledger_free(struct ledger *l)
{
    if (!l)
        return;
    if (l->ghost.alloc)
        ghost_free(&l->ghost);
    mem_free(l->alloc, l->seen, SEEN_BITS / 64 * sizeof *l->seen);
    mutex_free(&l->mutex);
    mem_free(l->alloc, l, sizeof *l);
}

void ledger_reset(struct ledger *l, uint64_t block_bytes)
{
    mutex_lock(&l->mutex);
    l->block_bytes = block_bytes;
    l->configured_bytes = 0; /* configure() chooses the rest anew */
    ghost_clear(&l->ghost);
    mutex_unlock(&l->mutex);
}

/* ---- which reads ---- */

static uint32_t load_u32_relaxed(const _Atomic uint32_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* Where this read is in its row: 0..ROW_WARM + ROW - 1; beyond: in none. */
static uint32_t place_in_row(uint64_t gets, uint32_t period)
{
    return ((uint32_t)gets + period / 2) & (period - 1);
}

/* The leading bytes of a key, behind what all keys begin with, as a distance. */
static uint64_t distance_of(const struct ledger *l, const struct lookup *lookup)
{
    const uint64_t at = slice_prefix8(lookup->key, load_u32_relaxed(&l->skip));
    const uint64_t lowest = atomic_load_explicit(&l->lowest, memory_order_relaxed);
    return at > lowest ? at - lowest : 0;
}

/* The number of the key's cell, hashed: any part of all numbers has about the same part of the
 * cells. */
static uint32_t cell_of(const struct ledger *l, const struct lookup *lookup)
{
    const uint64_t cell = distance_of(l, lookup) >> load_u32_relaxed(&l->shift);
    const uint64_t mixed =
        (cell ^ cell >> 32 ^ UINT64_C(0x2545f4914f6cdd1d)) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((mixed ^ mixed >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
}

unsigned ledger_due(const struct op *op, const struct ledger *l, const struct lookup *lookup,
                    const tamiz_read_options *options)
{
#ifdef TAMIZ_NO_LEDGER
    (void)op, (void)l, (void)lookup, (void)options;
    return 0;
#else
    unsigned due = 0;
    if (!options->use_filters)
        return 0;
    if (__builtin_expect(l->audit != 0, 0) && counter_get(&op->count->gets) % l->audit == 0)
        due = LEDGER_AUDIT;
    const uint32_t period = load_u32_relaxed(&l->period);
    const uint32_t cells_end = load_u32_relaxed(&l->cells_end);
    if (period && place_in_row(counter_get(&op->count->gets), period) >= ROW_WARM + ROW)
        return due;
    return !cells_end || cell_of(l, lookup) < cells_end ? due | LEDGER_FOLLOW : due;
#endif
}

void ledger_reads_take(const struct op *op, int64_t reads[TAMIZ_LEVELS])
{
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        reads[i] = (int64_t)counter_get(&op->count->level[i].steps[TAMIZ_STEP_BLOCK_DEVICE]);
}

void ledger_reads_since(const struct op *op, int64_t reads[TAMIZ_LEVELS])
{
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        reads[i] =
            (int64_t)counter_get(&op->count->level[i].steps[TAMIZ_STEP_BLOCK_DEVICE]) - reads[i];
}

/* ---- choosing the numbers ---- */

/* The largest power of two that is not above `x`: 1..most. */
static uint32_t power_of_two(double x, uint32_t most)
{
    uint32_t p = 1;
    while (p < most && (double)p * 2 <= x)
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

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Fences of all loaded tables, evenly, as distances. */
static void fences_take(struct ledger *l, const struct version *v)
{
    const uint64_t lowest = atomic_load_explicit(&l->lowest, memory_order_relaxed);
    const size_t skip = load_u32_relaxed(&l->skip);
    const uint64_t stride = (uint64_t)(l->blocks / FENCES_MOST) + 1;
    uint64_t block = 0;
    l->fence_count = 0;
    for (uint32_t t = 0; t < v->table_count; t++) {
        const struct table *table = v->tables[t]->table;
        for (uint32_t i = 0; table_is_loaded(table) && i < table_blocks(table); i++) {
            if (block++ % stride || l->fence_count == FENCES_MOST)
                continue;
            const uint64_t at = table_fence8(table, i, skip);
            l->fences[l->fence_count++] = at > lowest ? at - lowest : 0;
        }
    }
    qsort(l->fences, l->fence_count, sizeof *l->fences, compare_u64);
}

/* In how many cells the fences are, were they cut so. */
static uint32_t cells_at(const struct ledger *l, uint32_t shift)
{
    uint32_t count = l->fence_count > 0;
    for (uint32_t i = 1; i < l->fence_count; i++)
        count += l->fences[i] >> shift != l->fences[i - 1] >> shift;
    return count;
}

/* Keys seldom fill their space evenly (digits are ten of 256 bytes), so the cells are cut by the
 * fences of the tables: about CELL_BLOCKS of all blocks in each, as far as these can tell. mutex
 * held. */
static void cut_cells(struct ledger *l, const struct version *v)
{
    fences_take(l, v);
    const double by_blocks = l->blocks / CELL_BLOCKS, by_fences = l->fence_count / 2.0;
    const double wanted = by_blocks < by_fences ? by_blocks : by_fences;
    uint32_t shift = 63;
    while (shift > 0 && cells_at(l, shift) < wanted)
        shift--;
    l->cells = cells_at(l, shift);
    const uint32_t most = power_of_two(l->cells / CELLS_LEAST, ONE_IN_MOST);
    if (l->one_in_space_most > most)
        l->one_in_space_most = most;
    atomic_store_explicit(&l->shift, shift, memory_order_relaxed);
}

/* Where cells are counted from. */
static void take_range(struct ledger *l, const struct version *v)
{
    struct slice smallest, largest;
    key_range(v, &smallest, &largest);
    const size_t skip = slice_common_prefix(smallest, largest);
    atomic_store_explicit(&l->skip, (uint32_t)skip, memory_order_relaxed);
    atomic_store_explicit(&l->lowest, slice_prefix8(smallest, skip), memory_order_relaxed);
}

/* Bytes that a block takes in the cache: as the loaded tables' blocks are, on average. */
static double block_memory(const struct ledger *l, const struct version *v)
{
    double bytes = 0, blocks = 0, entries = 0;
    for (uint32_t i = 0; i < v->table_count; i++) {
        const struct table *t = v->tables[i]->table;
        if (!table_is_loaded(t))
            continue;
        const struct table_properties *p = table_properties(t);
        const double n = (double)p->data_blocks, most = (double)p->block_raw_max;
        double raw = n > 0 ? (double)p->data_bytes / n : 0;
        raw = raw > (double)l->block_bytes ? raw : (double)l->block_bytes; /* may be packed */
        bytes += n * (raw < most ? raw : most);
        entries += (double)p->entries;
        blocks += n;
    }
    if (blocks == 0)
        return (double)cached_block_cost((size_t)l->block_bytes, 0);
    return (double)cached_block_cost((size_t)(bytes / blocks), (size_t)(entries / blocks));
}

/* Blocks that the cache holds: it keeps a sixteenth free (table/cache.c). */
static double cached_blocks(double capacity, double block)
{
    const double ahead = capacity / 16 > block ? capacity / 16 : block;
    return floor((capacity - block >= ahead ? capacity - ahead : capacity) / block);
}

/* How the rate is made of space and time, and the ghost's size. mutex held. */
static void apply_rate(struct ledger *l, const struct version *v)
{
    if (l->one_in == 2)
        cut_cells(l, v);
    l->one_in_space = l->one_in < l->one_in_space_most ? l->one_in : l->one_in_space_most;
    const uint32_t in_time = l->one_in / l->one_in_space;
    const uint32_t end =
        l->one_in_space > 1 ? (uint32_t)((UINT64_C(1) << 32) / l->one_in_space) : 0;
    if (end && !l->all_fits) /* what was seen once is no first read again */
        ghost_keep(&l->ghost, end);
    /* Where all fits, nothing is evicted, though chance may put more into the sample than its part
     * of the cache. */
    ghost_limit(&l->ghost, l->all_fits ? (uint64_t)GHOST_ROOM * GHOST_UNIT
                                       : (uint64_t)(l->cached * GHOST_UNIT / l->one_in_space));
    l->followed = 0;
    atomic_store_explicit(&l->cells_end, end, memory_order_relaxed);
    atomic_store_explicit(&l->period, in_time > 1 ? ROW * in_time : 0, memory_order_relaxed);
}

/* Where the data have grown or shrunk much since the numbers were chosen: once more, with an empty
 * ghost; most blocks were written anew since. mutex held. */
static void configure(struct ledger *l, const struct version *v)
{
    const uint64_t bytes = table_bytes(v);
    if (v->run_count == 0 || (l->configured_bytes && bytes <= l->configured_bytes * 2 &&
                              bytes >= l->configured_bytes / 2))
        return;
    const double block = block_memory(l, v), blocks = (double)bytes / block + 1;
    take_range(l, v);
    l->blocks = blocks;
    l->cached = cached_blocks((double)l->cache_bytes, block);
    l->all_fits = l->cached >= blocks * 1.05;
    l->one_in_space_most =
        l->all_fits ? ONE_IN_MOST : power_of_two(l->cached / GHOST_LEAST, ONE_IN_MOST);
    l->configured_bytes = bytes;
    l->one_in = 1;
    ghost_clear(&l->ghost);
    apply_rate(l, v);
}

/* ---- the estimate ---- */

/* One of the followed reads touches a block of `run`, which lies in so many cells: the part of such
 * blocks that have a followed cell. */
static double share_followed(const struct ledger *l, const struct version *v, const struct run *run)
{
    const double blocks = l->blocks * (double)run->bytes / (double)(table_bytes(v) + 1);
    const double cells = 1 + l->cells / (blocks + 1);
    return 1 - pow(1 - 1.0 / l->one_in_space, cells);
}

struct weights {
    double read; /* of what the followed read did: 0, it only keeps the ghost up to date */
    double miss; /* of a miss in the ghost, of an ordinary run */
};

static struct weights weights_now(const struct ledger *l, uint64_t gets)
{
    const uint32_t period = load_u32_relaxed(&l->period);
    if (period && place_in_row(gets, period) < ROW_WARM)
        return (struct weights){0, 0};
    /* Where all fits, a miss is a block's first read: seen late, but seen once. */
    return (struct weights){l->one_in, l->all_fits ? l->one_in_space : l->one_in};
}

/* What one level adds to the counters: x misses that stand for y reads. */
static void count_level(struct level_counters *c, double weight, double twin, double did)
{
    const double y = twin - did;
    counter_add(&c->twin, (uint64_t)llround(twin * AVOIDED_UNIT));
    counter_add(&c->avoided, (uint64_t)llround(y * AVOIDED_UNIT));
    counter_add(&c->avoided_linear, (uint64_t)llround((weight - 1) * y));
    counter_add(&c->avoided_squares,
                (uint64_t)llround(weight > 1 ? fabs(y * y * (1 - 1 / weight)) : 0));
}

/* The blocks of a filterless read, through the ghost; level by level the reads that its misses
 * stand for. mutex held. */
static void follow(struct ledger *l, const struct version *v, const struct followed *read,
                   const struct weights *weights, double twin[TAMIZ_LEVELS])
{
    const uint32_t cell = cell_of(l, read->lookup);
    for (uint32_t r = 0; r < v->run_count; r++) {
        const struct run *run = &v->runs[r];
        const struct table_meta *meta =
            run_find(run, read->lookup->key, run_word(run, read->lookup->key));
        uint32_t block;
        if (!meta || !table_locate(meta->table, read->lookup->key, &block))
            continue;
        const double share = l->one_in_space > 1 ? share_followed(l, v, run) : 1;
        const double part = 1 / (share * l->one_in_space); /* at most 1 */
        const uint64_t name = meta->number << 32 | block;
        const uint16_t cost = (uint16_t)ceil(part * GHOST_UNIT);
        /* A block that a row begins with and goes on with is at home in the cache, and must not
         * compete with others of its read for one place. */
        const bool settled = weights->read == 0 && l->last[r % LAST_NAMES] == name;
        l->last[r % LAST_NAMES] = name;
        if (!ghost_touch(&l->ghost, name, cell, cost, settled))
            twin[run->level] += weights->miss * (l->all_fits ? part : 1);
        if (meta->table == read->answered)
            break;
    }
}

/* ---- the tallies ---- */

/* Was this key looked up in this table before, as far as is remembered? It is from now on. */
static bool seen_before(struct ledger *l, uint64_t table, uint64_t hash)
{
    const uint64_t pair =
        (hash ^ table * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
    const uint64_t bit = (pair >> 32) % SEEN_BITS;
    if (l->seen[bit / 64] >> (bit % 64) & 1)
        return true;
    if (++l->seen_count > SEEN_MOST) {
        memset(l->seen, 0, SEEN_BITS / 64 * sizeof *l->seen);
        l->seen_count = 1;
    }
    l->seen[bit / 64] |= UINT64_C(1) << (bit % 64);
    return false;
}

/* Has the table's rate left what its filter promises? Said once. */
static bool has_drifted(struct table *t)
{
    struct table_tally *tally = table_tally(t);
    const uint64_t wrong = counter_get(&tally->false_positives);
    const uint64_t absent = wrong + counter_get(&tally->negatives);
    const double expected = table_filter(t)->expected_fpr;
    if (absent % DRIFT_LOOK || (double)absent * expected < 2 || counter_get(&tally->drifted))
        return false;
    double low, high;
    theory_wilson((double)wrong, (double)absent, DRIFT_SIGMAS, &low, &high);
    if (low <= expected && expected <= high)
        return false;
    counter_add(&tally->drifted, 1);
    return true;
}

/* What each filter on the way said, and what is true. Returns a table that drifted, or NULL. mutex
 * held. */
static struct table *tally(struct ledger *l, const struct version *v, const struct followed *read)
{
    struct table *drifted = NULL;
    for (uint32_t r = 0; r < v->run_count; r++) {
        const struct run *run = &v->runs[r];
        const struct table_meta *meta =
            run_find(run, read->lookup->key, run_word(run, read->lookup->key));
        if (!meta || !table_is_loaded(meta->table))
            continue;
        const bool answered = meta->table == read->answered;
        const enum table_verdict verdict = table_peek(meta->table, read->lookup);
        struct table_tally *c = table_tally(meta->table);
        if (verdict != TABLE_NO_FILTER && !seen_before(l, meta->number, read->lookup->hash)) {
            counter_add(answered              ? &c->true_positives
                        : verdict == TABLE_NO ? &c->negatives
                                              : &c->false_positives,
                        1);
            if (!answered && has_drifted(meta->table))
                drifted = meta->table;
        }
        if (answered)
            break;
    }
    return drifted;
}

/* Which filters were not asked, and why. */
static void count_not_asked(struct op *op, const struct version *v, const struct followed *read,
                            uint64_t weight)
{
    bool answered = false;
    for (uint32_t r = 0; r < v->run_count; r++) {
        const struct run *run = &v->runs[r];
        const struct table_meta *meta =
            run_find(run, read->lookup->key, run_word(run, read->lookup->key));
        struct level_counters *c = &op->count->level[v->runs[r].level];
        if (answered || !meta)
            counter_add(meta ? &c->answered_above : &c->outside_range, weight);
        else
            answered = meta->table == read->answered;
    }
}

static void tell_drift(const struct ledger *l, struct table *t)
{
    const struct table_tally *c = table_tally(t);
    const uint64_t wrong = counter_get(&c->false_positives);
    const uint64_t absent = wrong + counter_get(&c->negatives);
    store_event(l->store, TAMIZ_EVENT_FILTER_DRIFT,
                "%s: the filter said maybe to %llu of %llu absent keys, %.4g %%; expected %.4g %%",
                table_path(t), (unsigned long long)wrong, (unsigned long long)absent,
                100 * (double)wrong / (double)absent, 100 * table_filter(t)->expected_fpr);
}

/* ---- the audit ---- */

/* Does the table have the key that its filter denied? Told and counted apart: of the read that is
 * audited this is no part. */
static bool denied_wrongly(struct op *op, struct table *t, const struct lookup *lookup, int level)
{
    const struct table_read how = {.level = level, .purpose = IO_DATA};
    struct counters apart = {0};
    struct op own;
    uint64_t stamp;
    struct slice value;
    struct cached_block *pinned = NULL;
    op_init(&own, op->alloc, &apart);
    const tamiz_status st = table_get(&own, t, lookup, &how, &stamp, &value, &pinned);
    cached_block_unpin(pinned);
    counter_add(&op->count->io[IO_DATA].reads, counter_get(&apart.io[IO_DATA].reads));
    counter_add(&op->count->io[IO_DATA].read_bytes, counter_get(&apart.io[IO_DATA].read_bytes));
    counter_add(&op->count->filter_audits, 1);
    return st == TAMIZ_OK; /* what goes wrong here would not have been read: no error of the read */
}

void ledger_audit(struct op *op, struct ledger *l, const struct version *version,
                  const struct lookup *lookup)
{
    for (uint32_t r = 0; r < version->run_count; r++) {
        const struct run *run = &version->runs[r];
        const struct table_meta *meta = run_find(run, lookup->key, run_word(run, lookup->key));
        if (!meta || !table_is_loaded(meta->table) || table_peek(meta->table, lookup) != TABLE_NO ||
            !denied_wrongly(op, meta->table, lookup, (int)version->runs[r].level))
            continue;
        table_quarantine(meta->table);
        counter_add(&op->count->filter_denials, 1);
        store_event(l->store, TAMIZ_EVENT_FILTER_DENIED,
                    "%s: the filter denied a key that is in the table; it is not asked any more",
                    table_path(meta->table));
    }
}

/* ---- the face ---- */

void ledger_follow(struct op *op, struct ledger *l, const struct version *version,
                   const struct followed *read)
{
    double twin[TAMIZ_LEVELS] = {0};
    struct table *drifted = NULL;
    mutex_lock(&l->mutex);
    configure(l, version);
    const struct weights weights = weights_now(l, read->at);
    follow(l, version, read, &weights, twin);
    if (read->newest)
        drifted = tally(l, version, read);
    l->followed += weights.read > 0;
    if (l->followed >= RATE_READS && l->one_in < ONE_IN_MOST) {
        l->one_in *= 2;
        apply_rate(l, version);
    }
    mutex_unlock(&l->mutex);
    if (drifted)
        tell_drift(l, drifted);
    if (weights.read == 0)
        return;
    counter_add(&op->count->followed_squares, (uint64_t)(weights.read * (weights.read - 1)));
    count_not_asked(op, version, read, (uint64_t)weights.read);
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        if (twin[i] != 0 || read->device_reads[i])
            count_level(&op->count->level[i], weights.read, twin[i],
                        weights.read * (double)read->device_reads[i]);
}

/*
 * Of n followed reads, each with its weight w, y_i was counted for one: its estimate of what w
 * reads avoided. With M = sum w (w-1), the mean per read is L / M, L = sum (w-1) y, and the
 * variance of the sum
 *
 *     sum (1 - 1/w) y^2  -  L^2 / M
 */
struct estimate ledger_estimate(const struct counters *c, const struct level_counters *level)
{
    const double linear = (double)(int64_t)counter_get(&level->avoided_linear);
    const double weight = (double)counter_get(&c->followed_squares);
    const double squares = (double)counter_get(&level->avoided_squares);
    const double variance = squares - (weight > 0 ? linear * linear / weight : 0);
    return (struct estimate){
        .avoided = (double)(int64_t)counter_get(&level->avoided) / AVOIDED_UNIT,
        .variance = variance > 0 ? variance : 0,
        .model = (double)counter_get(&level->twin) / AVOIDED_UNIT * MODEL_PERCENT / 100,
    };
}

double ledger_error(const struct estimate *e)
{
    return 2 * sqrt(e->variance) + e->model;
}
