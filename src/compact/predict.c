/* SPDX-License-Identifier: MIT */
#include "compact/predict.h"

#include <math.h>

#include "base/coding.h"

enum { KEY = 8 }; /* big-endian numbers: all keys there are, evenly spread */

struct model {
    struct op *op;
    const struct pick_options *o;
    struct version *version;
    struct buf cursors[TAMIZ_LEVELS];
    double distinct; /* bytes of all keys there are; 0: none is written twice */
    uint64_t number, run;
    struct prediction *out;
};

static void key_store(uint8_t *to, uint64_t key)
{
    for (int i = 0; i < KEY; i++)
        to[i] = (uint8_t)(key >> (56 - 8 * i));
}

/* Where tables go, how much of the keys they cover, and what is in them: bytes of versions that
 * were written (a table's `entries`), and what is left of them, the newest of each key. */
struct stretch {
    const struct job *from; /* whose tables it is made of; NULL: a memtable */
    uint32_t level;
    uint64_t run, smallest, largest, written, bytes;
    bool fresh; /* a run of its own, not part of one that was there */
};

/* Bytes below `key` of what was written, each table even in itself. */
static double written_below(const struct stretch *s, uint64_t key)
{
    double sum = 0;
    for (size_t i = 0; i < job_count(s->from); i++) {
        const struct table_meta *t = job_input(s->from, i);
        const uint64_t first = slice_prefix8(t->smallest, 0), last = slice_prefix8(t->largest, 0);
        const double wide = (double)(last - first) + 1;
        if (key > last)
            sum += (double)t->entries;
        else if (key > first)
            sum += (double)t->entries * ((double)(key - first) / wide);
    }
    return sum;
}

/* The key that the part in front of it is so large; found by halving. */
static uint64_t key_of_part(const struct stretch *s, double part)
{
    if (part >= 1) /* as a double the largest key may not fit */
        return s->largest;
    if (!s->from)
        return s->smallest + (uint64_t)(part * (double)(s->largest - s->smallest));
    uint64_t from = s->smallest, to = s->largest;
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (written_below(s, middle) < part * (double)s->written)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Where the stretch is cut at byte `at`. A run of its own is cut where no other one is, a little
 * beside the even places, as with random keys; within a run that is joined cuts stay. */
static uint64_t key_at(const struct model *m, const struct stretch *s, uint64_t at)
{
    const uint64_t mixed = s->run * UINT64_C(0x9e3779b97f4a7c15);
    const double beside = ((double)(mixed >> 40) / (1 << 24) - 0.5) * 0.04;
    const double byte = (double)at + (s->fresh ? beside * (double)m->o->table_bytes : 0);
    const double part = byte / (double)s->bytes;
    return at == 0 ? s->smallest : key_of_part(s, part);
}

/*
 * What keys drawn at random leave of `written` bytes where `all` bytes of them exist: each draw
 * misses a key with 1 - 1/n, so that of n keys e^(-draws/n) were never drawn.
 *     all 100, written 50: 39;  100: 63;  300: 95
 */
static uint64_t newest_of(const struct model *m, const struct stretch *s)
{
    const double all = m->distinct * ((double)(s->largest - s->smallest) / 0x1p64);
    if (m->distinct <= 0 || all < 1)
        return s->written;
    return (uint64_t)(-all * expm1(-(double)s->written / all));
}

/* The other way round: how much was written for a memtable to leave so much. */
static uint64_t written_for(const struct model *m, uint64_t bytes)
{
    const double part = m->distinct > 0 ? (double)bytes / m->distinct : 0;
    enum { MOST = 20 }; /* times all keys: more cannot be told from everything */
    if (part <= 0)
        return bytes;
    const double times = part < 1 ? -log1p(-part) : MOST;
    return (uint64_t)(m->distinct * (times < MOST ? times : MOST));
}

/* One table of it: bytes [at, at + size) of the stretch's. */
static tamiz_status table_make(struct model *m, const struct stretch *s, uint64_t at, uint64_t size,
                               struct buf *made)
{
    const bool last = at + size == s->bytes;
    uint8_t smallest[KEY], largest[KEY];
    key_store(smallest, key_at(m, s, at));
    key_store(largest, last ? s->largest : key_at(m, s, at + size) - 1);
    const struct table_meta like = {
        .number = ++m->number,
        .file_size = size,
        .level = s->level,
        .run = s->run,
        .entries = (uint64_t)((double)s->written * (double)size / (double)s->bytes),
        .keys = size,
        .smallest = slice_of(smallest, KEY),
        .largest = slice_of(largest, KEY)};
    struct table_meta *meta = table_meta_new(m->op, m->op->alloc, &like);
    if (!meta)
        return TAMIZ_OUT_OF_MEMORY;
    buf_append(made, &meta, sizeof meta);
    if (!made->failed)
        return TAMIZ_OK;
    made->failed = false;
    table_meta_unref(m->op->alloc, meta);
    return op_fail_memory(m->op);
}

/* Full tables and the rest, as compact_run cuts them, appended to `made`. */
static tamiz_status tables_make(struct model *m, const struct stretch *s, struct buf *made)
{
    tamiz_status st = TAMIZ_OK;
    for (uint64_t at = 0, size; st == TAMIZ_OK && at < s->bytes; at += size) {
        size = s->bytes - at < m->o->table_bytes ? s->bytes - at : m->o->table_bytes;
        st = table_make(m, s, at, size, made);
    }
    return st;
}

/* Puts `made` in the place of `removed`; both are empty afterwards. */
static tamiz_status apply(struct model *m, struct buf *removed, struct buf *made)
{
    struct version *next = NULL;
    struct table_meta **list = (struct table_meta **)(void *)made->data;
    const size_t n = made->size / sizeof *list;
    const struct version_edit edit = {(const uint64_t *)(const void *)removed->data,
                                      removed->size / sizeof(uint64_t), list, n};
    const tamiz_status st = removed->failed
                                ? op_fail_memory(m->op)
                                : version_apply(m->op, m->op->alloc, m->version, &edit, &next);
    for (size_t i = 0; i < n; i++)
        table_meta_unref(m->op->alloc, list[i]);
    buf_free(made);
    buf_free(removed);
    if (st == TAMIZ_OK) {
        version_unref(m->version);
        m->version = next;
    }
    return st;
}

static tamiz_status flush(struct model *m, uint64_t bytes)
{
    struct buf made = buf_init(m->op->alloc), none = buf_init(m->op->alloc);
    const struct stretch s = {.run = ++m->run,
                              .largest = UINT64_MAX,
                              .written = written_for(m, bytes),
                              .bytes = bytes,
                              .fresh = true};
    const tamiz_status st = tables_make(m, &s, &made);
    m->out->flushed += bytes;
    const tamiz_status applied = apply(m, &none, &made);
    return st == TAMIZ_OK ? applied : st;
}

/* All that went in comes out, each key where it was. */
static tamiz_status carry_out(struct model *m, const struct job *j)
{
    struct buf made = buf_init(m->op->alloc), removed = buf_init(m->op->alloc);
    struct stretch s = {.from = j,
                        .level = j->output_level,
                        .run = j->new_run || !j->output_run ? ++m->run : j->output_run,
                        .smallest = slice_prefix8(buf_slice(&j->smallest), 0),
                        .largest = slice_prefix8(buf_slice(&j->largest), 0),
                        .fresh = j->new_run};
    for (size_t i = 0; i < job_count(j); i++) {
        buf_append(&removed, &job_input(j, i)->number, sizeof(uint64_t));
        s.written += job_input(j, i)->entries;
        s.bytes += job_input(j, i)->file_size;
    }
    if (!j->move)
        s.bytes = newest_of(m, &s);
    const tamiz_status st = tables_make(m, &s, &made);
    m->out->merged += j->move ? 0 : s.bytes;
    const tamiz_status applied = apply(m, &removed, &made);
    return st == TAMIZ_OK ? applied : st;
}

static tamiz_status settle(struct model *m)
{
    for (;;) {
        struct job j;
        job_init(&j, m->op->alloc);
        tamiz_status st = pick_auto(m->op, m->version, m->o, NULL, m->cursors, &j);
        const bool more = st == TAMIZ_OK;
        if (more)
            st = carry_out(m, &j);
        job_free(&j);
        if (!more || st != TAMIZ_OK)
            return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : st;
    }
}

tamiz_status predict_writes(struct op *op, const struct pick_options *o, uint64_t flush_bytes,
                            uint32_t flushes, uint64_t distinct_bytes, struct prediction *out)
{
    struct model m = {.op = op, .o = o, .out = out, .distinct = (double)distinct_bytes};
    const struct version_edit nothing = {0};
    *out = (struct prediction){0};
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        m.cursors[i] = buf_init(op->alloc);
    tamiz_status st = version_apply(op, op->alloc, NULL, &nothing, &m.version);
    for (uint32_t i = 0; st == TAMIZ_OK && i < flushes; i++) {
        st = flush(&m, flush_bytes);
        if (st == TAMIZ_OK)
            st = settle(&m);
    }
    out->runs = m.version ? m.version->run_count : 0;
    version_unref(m.version);
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        buf_free(&m.cursors[i]);
    return st;
}
