/* SPDX-License-Identifier: MIT */
#include "db/ledger.h"

#include <math.h>

#include "db/ghost.h"

enum {
    GHOST_ROOM = 16384, /* names */
    LAST_NAMES = 64,
    AVOIDED_UNIT = 16, /* fixed point of the counters                */
    MODEL_PERCENT = 5, /* a ghost is not the cache: of the twin's reads, either way */
};

struct ledger {
    struct sampler sampler; /* first: ledger_decide() looks there */
    const struct store *store;
    const struct alloc *alloc;
    struct mutex mutex; /* of all that follows */
    struct ghost ghost;
    struct tallies tallies;
    uint64_t last[LAST_NAMES]; /* by run: what the followed read before touched */
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
        l->sampler.cache_bytes = cache_bytes;
        l->sampler.block_bytes = block_bytes;
        l->sampler.audit = s->options.audit;
        done = mutex_init(&op, &l->mutex) == TAMIZ_OK;
    }
    mem_free(alloc, nowhere, sizeof *nowhere);
    if (!done) {
        mem_free(alloc, l, sizeof *l);
        return NULL;
    }
    if (tallies_init(&l->tallies, alloc) && ghost_init(&l->ghost, alloc, GHOST_ROOM))
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
    tallies_free(&l->tallies, l->alloc);
    mutex_free(&l->mutex);
    mem_free(l->alloc, l, sizeof *l);
}

void ledger_reset(struct ledger *l, uint64_t block_bytes)
{
    mutex_lock(&l->mutex);
    l->sampler.block_bytes = block_bytes;
    l->sampler.configured_bytes = 0; /* the rest is chosen anew */
    ghost_clear(&l->ghost);
    mutex_unlock(&l->mutex);
}

/* Behind the get that is number `gets`: the next that is asked about. */
static uint64_t hush(const struct op *op, const struct sampler *s, uint64_t gets)
{
    if (sampler_in_row(s, gets + 1))
        return gets + 1;
    const uint64_t until = sampler_quiet(s, gets);
    atomic_store_explicit(&op->count->quiet_until, until, memory_order_relaxed);
    return until;
}

unsigned ledger_decide(const struct op *op, const struct ledger *l, const struct lookup *lookup,
                       const tamiz_read_options *options)
{
    const struct sampler *s = &l->sampler;
    const uint64_t gets = counter_get(&op->count->gets);
    if (!options->use_filters)
        return 0;
    (void)hush(op, s, gets);
    const unsigned due = s->audit && gets % s->audit == 0 ? LEDGER_AUDIT : 0;
    return sampler_follows(s, lookup->key, gets) ? due | LEDGER_FOLLOW : due;
}

#ifndef TAMIZ_NO_LEDGER
/* Of gets from number `first` on, which are followed. */
static uint64_t choose(struct op *op, const struct sampler *s, const struct slice *keys, size_t n,
                       uint64_t first)
{
    const uint32_t end = sampler_load(&s->cells_end);
    uint64_t until = counter_get(&op->count->quiet_until), follow = 0;
    if (!end || sampler_load(&s->period)) {
        for (uint64_t i = 0; i < n; i++) {
            if (first + i < until)
                continue;
            follow |= (uint64_t)sampler_follows(s, keys[i], first + i) << i;
            until = hush(op, s, first + i);
        }
    } else {
        for (uint64_t i = 0; i < n; i++)
            follow |= (uint64_t)(sampler_cell(s, keys[i]) < end) << i;
    }
    return follow;
}
#endif

struct chosen ledger_count_many(struct op *op, const struct ledger *l, const struct slice *keys,
                                size_t n, const tamiz_read_options *options)
{
    struct chosen chosen = {0, 0};
#ifndef TAMIZ_NO_LEDGER
    const struct sampler *s = &l->sampler;
    const uint64_t first = counter_get(&op->count->gets) + 1;
    counter_add(&op->count->gets, n);
    if (first + n <= counter_get(&op->count->quiet_until) || !options->use_filters)
        return chosen;
    chosen.follow = choose(op, s, keys, n, first);
    const uint64_t audit = s->audit ? (first + s->audit - 1) / s->audit * s->audit : UINT64_MAX;
    for (uint64_t i = audit - first; i < n; i += s->audit)
        chosen.audit |= UINT64_C(1) << i;
#else
    (void)op, (void)l, (void)keys, (void)n, (void)options;
#endif
    return chosen;
}

/* Levels below the last run's have no tables. */
static uint32_t level_count(const struct version *v)
{
    return v->run_count ? v->runs[v->run_count - 1].level + 1 : 0;
}

void ledger_reads_take(const struct op *op, const struct version *v, int64_t reads[TAMIZ_LEVELS])
{
    for (uint32_t i = 0; i < level_count(v); i++)
        reads[i] = (int64_t)counter_get(&op->count->level[i].steps[TAMIZ_STEP_BLOCK_DEVICE]);
}

void ledger_reads_since(const struct op *op, const struct version *v, int64_t reads[TAMIZ_LEVELS])
{
    for (uint32_t i = 0; i < level_count(v); i++)
        reads[i] =
            (int64_t)counter_get(&op->count->level[i].steps[TAMIZ_STEP_BLOCK_DEVICE]) - reads[i];
}

/* ---- following one read ---- */

/* The ghost holds what the sampler follows, of a cache cut down as the sample is. mutex held. */
static void fit_ghost(struct ledger *l)
{
    const struct sampler *s = &l->sampler;
    const uint32_t end = sampler_load(&s->cells_end);
    if (end && !s->all_fits) /* what was seen once is no first read again */
        ghost_keep(&l->ghost, end);
    /* Where all fits, nothing is evicted, though chance may put more into the sample than its part
     * of the cache. */
    ghost_limit(&l->ghost, s->all_fits ? (uint64_t)GHOST_ROOM * GHOST_UNIT
                                       : (uint64_t)(s->cached * GHOST_UNIT / s->one_in_space));
}

struct weights {
    double read; /* of what the followed read did: 0, it only keeps the ghost up to date */
    double miss; /* of a miss in the ghost, of an ordinary run */
};

static struct weights weights_now(const struct sampler *s, uint64_t gets)
{
    if (sampler_warms(s, gets))
        return (struct weights){0, 0};
    /* Where all fits, a miss is a block's first read: seen late, but seen once. */
    return (struct weights){s->one_in, s->all_fits ? s->one_in_space : s->one_in};
}

/* What a filterless read would have looked at in one table goes through the ghost: the reads that
 * a miss stands for, or 0. mutex held. */
static double touch(struct ledger *l, const struct version *v, uint32_t r,
                    const struct table_meta *meta, const struct followed *read,
                    const struct weights *weights, uint32_t cell)
{
    struct sampler *s = &l->sampler;
    uint32_t block;
    if (!table_locate(meta->table, read->lookup->key, &block))
        return 0;
    const double part = 1 / (sampler_share(s, &v->runs[r]) * s->one_in_space); /* at most 1 */
    const uint64_t name = meta->number << 32 | block;
    /* A block that a row begins with and goes on with is at home in the cache, and must not
     * compete with others of its read for one place. */
    const bool settled = weights->read == 0 && l->last[r % LAST_NAMES] == name;
    l->last[r % LAST_NAMES] = name;
    if (ghost_touch(&l->ghost, name, cell, (uint16_t)ceil(part * GHOST_UNIT), settled))
        return 0;
    return weights->miss * (s->all_fits ? part : 1);
}

/* What a followed read comes to, by level. */
struct finding {
    double twin[TAMIZ_LEVELS]; /* reads that its misses in the ghost stand for */
    uint32_t outside[TAMIZ_LEVELS], above[TAMIZ_LEVELS]; /* filters not asked, and why */
    struct table *drifted;                               /* just now; or NULL */
    bool missed;                                         /* the ghost, somewhere */
};

/* The way of a filterless read, table by table. mutex held. */
static void follow(struct ledger *l, const struct version *v, const struct followed *read,
                   const struct weights *weights, struct finding *f)
{
    const struct slice key = read->lookup->key;
    const uint32_t cell = sampler_cell(&l->sampler, key);
    const uint64_t word = v->run_count ? run_word(&v->runs[0], key) : 0;
    bool answered = false;
    for (uint32_t r = 0; r < v->run_count; r++) {
        const uint32_t level = v->runs[r].level;
        const struct table_meta *meta = run_find(&v->runs[r], key, word);
        if (answered || !meta) {
            (meta ? f->above : f->outside)[level]++;
            continue;
        }
        answered = meta->table == read->answered;
        const double missed = touch(l, v, r, meta, read, weights, cell);
        f->twin[level] += missed;
        f->missed |= missed > 0;
        if (read->newest && tallies_add(&l->tallies, meta, read->lookup, answered))
            f->drifted = meta->table;
    }
}

/* ---- what it adds to the counters ---- */

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

static void count(struct op *op, const struct version *v, const struct followed *read,
                  double weight, const struct finding *f)
{
    counter_add(&op->count->followed_squares, (uint64_t)(weight * (weight - 1)));
    for (uint32_t i = 0; i < level_count(v); i++) {
        struct level_counters *c = &op->count->level[i];
        if (f->outside[i] || f->above[i]) {
            counter_add(&c->outside_range, (uint64_t)weight * f->outside[i]);
            counter_add(&c->answered_above, (uint64_t)weight * f->above[i]);
        }
        if (f->twin[i] != 0 || read->device_reads[i])
            count_level(c, weight, f->twin[i], weight * (double)read->device_reads[i]);
    }
}

/* ---- the face ---- */

void ledger_follow(struct op *op, struct ledger *l, const struct version *version,
                   const struct followed *read)
{
    struct finding found = {0};
    mutex_lock(&l->mutex);
    if (sampler_configure(&l->sampler, version)) {
        ghost_clear(&l->ghost);
        fit_ghost(l);
    }
    const struct weights weights = weights_now(&l->sampler, read->at);
    /* Where all fits, nothing gets warm, and what is seen is not seen for the first time again. */
    const bool counts = weights.read > 0;
    if (counts || !l->sampler.all_fits)
        follow(l, version, read, &weights, &found);
    if (counts && sampler_count(&l->sampler, version, found.missed))
        fit_ghost(l);
    mutex_unlock(&l->mutex);
    if (found.drifted)
        tally_tell_drift(l->store, found.drifted);
    if (counts)
        count(op, version, read, weights.read, &found);
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
