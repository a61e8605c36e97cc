/* SPDX-License-Identifier: MIT */
#include "compact/predict.h"

#include "base/coding.h"

enum { KEY = 8 }; /* big-endian numbers: all keys there are, evenly spread */

struct model {
    struct op *op;
    const struct pick_options *o;
    struct version *version;
    struct buf cursors[TAMIZ_LEVELS];
    uint64_t number, run;
    struct prediction *out;
};

static void key_store(uint8_t *to, uint64_t key)
{
    for (int i = 0; i < KEY; i++)
        to[i] = (uint8_t)(key >> (56 - 8 * i));
}

/* Where tables go, and how much of the keys they cover. */
struct stretch {
    uint32_t level;
    uint64_t run, smallest, largest, bytes;
    bool fresh; /* a run of its own, not part of one that was there */
};

/* Where the key at byte `at` of the stretch lies. A run of its own is cut where no other one is,
 * a little beside the even places, as with random keys; within a run that is joined cuts stay. */
static uint64_t key_at(const struct model *m, const struct stretch *s, uint64_t at)
{
    const uint64_t mixed = s->run * UINT64_C(0x9e3779b97f4a7c15);
    const double beside = ((double)(mixed >> 40) / (1 << 24) - 0.5) * 0.04;
    const double byte = (double)at + (s->fresh && at > 0 ? beside * (double)m->o->table_bytes : 0);
    const double part = byte / (double)s->bytes;
    return s->smallest + (uint64_t)((part < 1 ? part : 1) * (double)(s->largest - s->smallest));
}

/* One table of it: bytes [at, at + size) of the stretch's. */
static tamiz_status table_make(struct model *m, const struct stretch *s, uint64_t at, uint64_t size,
                               struct buf *made)
{
    const bool last = at + size == s->bytes;
    uint8_t smallest[KEY], largest[KEY];
    key_store(smallest, key_at(m, s, at));
    key_store(largest, last ? s->largest : key_at(m, s, at + size) - 1);
    const struct table_meta like = {.number = ++m->number,
                                    .file_size = size,
                                    .level = s->level,
                                    .run = s->run,
                                    .entries = size,
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

/* Tables of one size, appended to `made`. */
static tamiz_status tables_make(struct model *m, const struct stretch *s, struct buf *made)
{
    const uint64_t whole = (s->bytes + m->o->table_bytes - 1) / m->o->table_bytes;
    const uint64_t n = whole ? whole : 1;
    tamiz_status st = TAMIZ_OK;
    for (uint64_t i = 0; st == TAMIZ_OK && i < n; i++) {
        const uint64_t at = s->bytes * i / n;
        st = table_make(m, s, at, s->bytes * (i + 1) / n - at, made);
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
    const bool tiers = m->o->policy != TAMIZ_COMPACTION_LEVELED; /* else all goes to one run */
    const struct stretch s = {0, ++m->run, 0, UINT64_MAX, bytes, tiers};
    const tamiz_status st = tables_make(m, &s, &made);
    m->out->flushed += bytes;
    const tamiz_status applied = apply(m, &none, &made);
    return st == TAMIZ_OK ? applied : st;
}

/* All that went in comes out, in one stretch from the smallest key to the largest. */
static tamiz_status carry_out(struct model *m, const struct job *j)
{
    struct buf made = buf_init(m->op->alloc), removed = buf_init(m->op->alloc);
    struct stretch s = {.level = j->output_level,
                        .run = j->new_run || !j->output_run ? ++m->run : j->output_run,
                        .smallest = slice_prefix8(buf_slice(&j->smallest), 0),
                        .largest = slice_prefix8(buf_slice(&j->largest), 0),
                        .fresh = j->new_run};
    for (size_t i = 0; i < job_count(j); i++) {
        buf_append(&removed, &job_input(j, i)->number, sizeof(uint64_t));
        s.bytes += job_input(j, i)->file_size;
    }
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
                            uint32_t flushes, struct prediction *out)
{
    struct model m = {.op = op, .o = o, .out = out};
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
