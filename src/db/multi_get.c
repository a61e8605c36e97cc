/* SPDX-License-Identifier: MIT
 *
 * Many keys at once. All of them see one view. Keys go through in chunks, and a chunk in rounds:
 * first every filter of every key is asked, in one loop behind the fetches of their lines; then
 * each key goes on to the first table that may have it, all of them waiting for memory in step, and
 * whatever must come from the device is read together. A key whose read was wasted is in the next
 * round with its next table. Two keys that want the same block read it once. What a filter says of
 * a key counts only when the key gets there, as in a single get: below the table that answers none
 * was needed.
 *
 * Where tables have range deletes, the newest one over a key ends its list of tables: what it finds
 * is there or deleted, and whatever is older is deleted.
 *
 * Only where there is more than one chunk are keys sorted, so that those of one block meet in one.
 */
#include <stdlib.h>

#include "db/expiry.h"
#include "db/get.h"
#include "db/audit.h"
#include "db/ledger.h"
#include "db/read_options.h"

enum { CHUNK = 64, PAIRS = 1024 };

/* A table that may have a key. */
struct pair {
    struct table *table;
    int16_t level;
    bool asked; /* its filter was asked; else it has none, or was not to be */
    bool maybe; /* what it said, where it was asked by line */
};

struct pending {
    size_t index; /* in the caller's arrays                   */
    struct lookup lookup;
    uint32_t next, end;  /* its pairs, newest table first          */
    uint64_t cover;      /* a range delete over it, in the last of its tables; 0: none */
    bool waits;          /* a read is under way                      */
    tamiz_status failed; /* of a range delete that could not be read */
    bool is_followed;    /* by the ledger */
    struct followed followed;
};

struct multi {
    struct op *op;
    struct tamiz *db;
    const tamiz_read_options *options;
    void **values;
    size_t *value_sizes;
    tamiz_status *statuses;
    const struct view *view;
    uint64_t now_us; /* when all keys are read; 0: none has needed it yet */
    struct pending keys[CHUNK];
    uint32_t count;
    struct pair pairs[PAIRS];
    struct filter_line lines[PAIRS]; /* questions that are asked by line */
    uint16_t line_of[PAIRS];         /* … and by which pair */
    uint32_t line_count;
    struct table_wait waits[CHUNK];
    uint32_t waiting[CHUNK]; /* which key each wait is for */
    struct file_request requests[CHUNK];
};

/* Whoever listens is told which key the steps are about. */
static void tell_subject(const struct multi *m, const struct pending *p)
{
    if (!m->op->trace)
        return;
    m->op->subject = p->lookup.key;
    m->op->subject_hash = p->lookup.hash;
}

/* ---- answers ---- */

/* `table`: which knew the key; NULL: none did. */
static void follow(const struct multi *m, struct pending *p, const struct table *table)
{
    p->followed.lookup = &p->lookup;
    p->followed.answered = table;
    ledger_follow(m->op, m->db->ledger, m->view->version, &p->followed);
}

static void answer(struct multi *m, const struct pending *p, tamiz_status st, uint64_t stamp,
                   struct slice value)
{
    if (st == TAMIZ_OK && stamp_seq(stamp) < p->cover)
        st = TAMIZ_NOT_FOUND;
    else if (st == TAMIZ_OK && stamp_kind(stamp) != KIND_PUT)
        st = expiry_answer(m->op, m->db->store, &m->now_us, stamp, &value);
    if (st == TAMIZ_OK) {
        void *copy = mem_handout(m->op->alloc, value.size);
        if (!copy) {
            st = op_fail_memory(m->op);
        } else {
            if (value.size)
                memcpy(copy, value.data, value.size);
            m->values[p->index] = copy;
            m->value_sizes[p->index] = value.size;
            counter_add(&m->op->count->gets_found, 1);
        }
    }
    m->statuses[p->index] = st;
}

/* Removes key `i` from the chunk by moving the last one into its place. */
static void settle(struct multi *m, uint32_t i)
{
    m->keys[i] = m->keys[--m->count];
}

/* ---- memtables and filters ---- */

static void search_memtables(struct multi *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        for (uint32_t k = 0; k < m->view->memtable_count; k++)
            memtable_prefetch(m->view->memtables[k]->memtable, m->keys[i].lookup.hash);
    for (uint32_t i = 0; i < m->count;) {
        uint64_t stamp = 0;
        struct slice value = {0};
        tamiz_status st = TAMIZ_NOT_FOUND;
        tell_subject(m, &m->keys[i]);
        for (uint32_t k = 0; st == TAMIZ_NOT_FOUND && k < m->view->memtable_count; k++)
            st = memtable_get(m->op, m->view->memtables[k]->memtable, &m->keys[i].lookup, &stamp,
                              &value);
        if (st == TAMIZ_NOT_FOUND) {
            i++;
            continue;
        }
        counter_add(&m->op->count->memtable_hits, 1);
        answer(m, &m->keys[i], st, stamp, value);
        settle(m, i);
    }
}

/* Every run's table for one key, behind the `n` pairs there are. Its filters' lines are named.
 * Returns how many pairs there are now. */
static uint32_t find_pairs_of(struct multi *m, struct pending *p, uint32_t n)
{
    const struct version *v = m->view->version;
    const struct lookup *lookup = &p->lookup;
    const uint64_t word = run_word(&v->runs[0], lookup->key);
    const uint64_t mixed = filter_lines_mix(lookup->hash);
    for (uint32_t r = 0; r < v->run_count && p->cover == 0; r++) {
        const struct run *run = &v->runs[r];
        const uint32_t place = run_place(run, lookup->key, word);
        if (place == run->count)
            continue;
        struct table *t = run->handles[place];
        bool all = false;
        if (__builtin_expect(v->ranged, 0)) {
            p->failed = table_cover(m->op, t, lookup, &p->cover, &all);
            if (p->failed != TAMIZ_OK || all)
                return n;
        }
        m->pairs[n] = (struct pair){.table = t, .level = (int16_t)run->level};
        if (m->options->use_filters && table_has_lines(t)) {
            m->lines[m->line_count] = filter_line_of(&table_face(t)->filter, mixed);
            m->line_of[m->line_count++] = (uint16_t)n;
        } else if (m->options->use_filters) {
            table_prefetch(t, lookup);
        }
        n++;
    }
    return n;
}

/* All filters that answer by line, one behind the other. */
static void ask_lines(struct multi *m)
{
    for (uint32_t at = 0; at < m->line_count; at += FILTER_LINES_MOST) {
        const uint32_t left = m->line_count - at;
        const uint32_t part = left < FILTER_LINES_MOST ? left : FILTER_LINES_MOST;
        const uint64_t said = filter_lines_ask(m->lines + at, part);
        for (uint32_t i = 0; i < part; i++) {
            struct pair *pair = &m->pairs[m->line_of[at + i]];
            pair->asked = true;
            pair->maybe = said >> i & 1;
        }
    }
}

static void find_pairs(struct multi *m)
{
    uint32_t n = 0;
    m->line_count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        m->keys[i].next = n;
        if (m->view->version->run_count)
            n = find_pairs_of(m, &m->keys[i], n);
        m->keys[i].end = n;
    }
    ask_lines(m);
}

/* What the filter of one pair says; asks it, where that was not done by line. */
static tamiz_status pair_verdict(struct multi *m, const struct pending *p, struct pair *pair,
                                 enum table_verdict *verdict)
{
    struct table_read how = read_options_table(m->options);
    how.level = pair->level;
    if (pair->asked) {
        table_answered(m->op, pair->table, &how, pair->maybe);
        *verdict = pair->maybe ? TABLE_MAYBE : TABLE_NO;
        return TAMIZ_OK;
    }
    pair->asked = true;
    return table_ask(m->op, pair->table, &p->lookup, &how, verdict);
}

/* On to the next of the key's tables that may have it, or behind the last. */
static tamiz_status hear_next(struct multi *m, struct pending *p)
{
    while (m->options->use_filters && p->next < p->end) {
        enum table_verdict verdict = TABLE_NO_FILTER;
        const tamiz_status st = pair_verdict(m, p, &m->pairs[p->next], &verdict);
        if (st != TAMIZ_OK || verdict != TABLE_NO)
            return st;
        p->next++;
    }
    return TAMIZ_OK;
}

/* The table did not have it. TAMIZ_NOT_FOUND: go on; else an error. */
static tamiz_status pass(struct multi *m, struct pending *p)
{
    p->next++;
    const tamiz_status st = hear_next(m, p);
    return st == TAMIZ_OK ? TAMIZ_NOT_FOUND : st;
}

/* Brings each key to the first table that may have it; most that are absent are answered by that.
 * An error is the key's answer. */
static void hear_filters(struct multi *m)
{
    for (uint32_t i = 0; i < m->count;) {
        struct pending *p = &m->keys[i];
        tell_subject(m, p);
        const tamiz_status st = p->failed ? p->failed : hear_next(m, p);
        if (st == TAMIZ_OK && p->next < p->end) {
            i++;
            continue;
        }
        if (p->is_followed && st == TAMIZ_OK)
            follow(m, p, NULL);
        answer(m, p, st == TAMIZ_OK ? TAMIZ_NOT_FOUND : st, 0, (struct slice){0});
        settle(m, i);
    }
}

/* ---- rounds ---- */

static bool already_read(const struct multi *m, uint32_t waits, const struct table_wait *w)
{
    for (uint32_t i = 0; i < waits; i++)
        if (m->waits[i].table == w->table && m->waits[i].block == w->block)
            return true;
    return false;
}

/* Takes one key as far as memory goes. true: it is answered. Else it waits for a read (*waits
 * grew), or, where another key reads the same block, for the next round. */
static bool advance(struct multi *m, uint32_t i, uint32_t *waits)
{
    struct pending *p = &m->keys[i];
    uint64_t stamp = 0;
    struct slice value = {0};
    tamiz_status st = p->failed ? p->failed : TAMIZ_NOT_FOUND;
    tell_subject(m, p);
    while (st == TAMIZ_NOT_FOUND && p->next < p->end) {
        const struct pair *pair = &m->pairs[p->next];
        struct table_wait *w = &m->waits[*waits];
        uint32_t block;
        struct table_read how = read_options_table(m->options);
        how.level = pair->level;
        how.asked = pair->asked;
        w->request.file = NULL;
        w->table = pair->table;
        w->impatient = *waits > 0;
        if (table_locate(pair->table, p->lookup.key, &block)) {
            w->block = block;
            if (already_read(m, *waits, w))
                return false;
        }
        st = table_get_begin(m->op, pair->table, &p->lookup, &how, &stamp, &value, w);
        if (w->starved)
            return false; /* the reads under way first */
        if (w->request.file) {
            m->requests[*waits] = w->request;
            m->waiting[(*waits)++] = i;
            p->waits = true;
            return false;
        }
        if (st == TAMIZ_NOT_FOUND)
            st = pass(m, p);
    }
    if (p->is_followed && st >= 0)
        follow(m, p, st == TAMIZ_OK ? m->pairs[p->next].table : NULL);
    answer(m, p, st, stamp, value);
    return true;
}

/* The i-th read is there; others may be under way yet. */
static void read_ended(void *ctx, size_t i)
{
    struct multi *m = ctx;
    struct pending *p = &m->keys[m->waiting[i]];
    struct cached_block *pinned = NULL;
    uint64_t stamp = 0;
    struct slice value = {0};
    tell_subject(m, p);
    m->waits[i].request.status = m->requests[i].status;
    tamiz_status st = table_get_end(m->op, &m->waits[i], &stamp, &value, &pinned);
    p->followed.device_reads[m->pairs[p->next].level]++;
    if (st == TAMIZ_NOT_FOUND)
        st = pass(m, p);
    if (st == TAMIZ_NOT_FOUND) {
        p->waits = false; /* on to its next table, in the next round */
    } else {
        if (p->is_followed && st == TAMIZ_OK)
            follow(m, p, m->pairs[p->next].table);
        answer(m, p, st, stamp, value);
        p->next = p->end = 0; /* answered: removed below */
    }
    cached_block_unpin(pinned);
}

/* What the next round will look at is fetched first: a step for all keys, then the next. */
static void approach(const struct multi *m)
{
    uint32_t blocks[CHUNK];
    for (uint32_t i = 0; i < m->count; i++)
        if (m->keys[i].next < m->keys[i].end)
            table_approach(m->pairs[m->keys[i].next].table, m->keys[i].lookup.key);
    for (uint32_t i = 0; i < m->count; i++) {
        blocks[i] = UINT32_MAX;
        if (m->keys[i].next < m->keys[i].end &&
            !table_locate(m->pairs[m->keys[i].next].table, m->keys[i].lookup.key, &blocks[i]))
            blocks[i] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < m->count; i++)
        if (blocks[i] != UINT32_MAX)
            table_fetch_block(m->pairs[m->keys[i].next].table, blocks[i]);
}

static void run_rounds(struct multi *m)
{
    while (m->count) {
        uint32_t waits = 0;
        approach(m);
        for (uint32_t i = 0; i < m->count;)
            if (advance(m, i, &waits))
                settle(m, i);
            else
                i++;
        if (waits)
            file_read_each(m->op, IO_DATA, m->requests, waits, read_ended, m);
        for (uint32_t i = 0; i < m->count;)
            if (m->keys[i].waits)
                settle(m, i);
            else
                i++;
    }
}

/* ---- the call ---- */

static void run_chunk(struct multi *m, const void *const keys[], const size_t key_sizes[],
                      const size_t *order, size_t n, uint64_t seq)
{
    m->count = (uint32_t)n;
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = order ? order[i] : i;
        m->keys[i] = (struct pending){
            .index = at, .lookup = lookup_make(slice_of(keys[at], key_sizes[at]), seq)};
        const unsigned due = ledger_count_get(m->op) ? ledger_decide(m->op, m->db->ledger,
                                                                     &m->keys[i].lookup, m->options)
                                                     : 0;
        if (due & LEDGER_AUDIT)
            audit_read(m->op, m->db->store, m->view->version, &m->keys[i].lookup);
        m->keys[i].is_followed = due & LEDGER_FOLLOW;
        m->keys[i].followed.at = counter_get(&m->op->count->gets);
        m->keys[i].followed.newest = !m->options->snapshot;
    }
    search_memtables(m);
    find_pairs(m);
    if (m->options->use_filters)
        hear_filters(m);
    run_rounds(m);
}

struct sort_key {
    struct slice key;
    size_t index;
};

static int compare_keys(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    return slice_compare(x->key, y->key);
}

/* Indexes of the keys in key order. NULL: memory is out. */
static size_t *key_order(struct op *op, size_t n, const void *const keys[],
                         const size_t key_sizes[])
{
    struct sort_key *sorted = mem_new_array(op->alloc, n, sizeof *sorted);
    size_t *order = mem_new_array(op->alloc, n, sizeof *order);
    if (sorted && order) {
        for (size_t i = 0; i < n; i++)
            sorted[i] = (struct sort_key){slice_of(keys[i], key_sizes[i]), i};
        qsort(sorted, n, sizeof *sorted, compare_keys);
        for (size_t i = 0; i < n; i++)
            order[i] = sorted[i].index;
    } else {
        mem_free(op->alloc, order, n * sizeof *order);
        order = NULL;
    }
    mem_free(op->alloc, sorted, n * sizeof *sorted);
    return order;
}

tamiz_status db_multi_get(struct op *op, struct tamiz *db, size_t n, const void *const keys[],
                          const size_t key_sizes[], void *values[], size_t value_sizes[],
                          tamiz_status statuses[], const tamiz_read_options *options)
{
    uint64_t seq;
    const struct view *view = view_borrow(db, &seq);
    seq = read_options_seq(options, seq);
    const uint32_t runs = view->version->run_count;
    const size_t chunk = runs > PAIRS ? 0 : runs * CHUNK > PAIRS ? PAIRS / runs : CHUNK;
    size_t *order = n > chunk ? key_order(op, n, keys, key_sizes) : NULL;
    struct multi *m = chunk ? mem_new(op->alloc, sizeof *m) : NULL;
    tamiz_status st = TAMIZ_OK;
    if (!chunk)
        TRY(op_fail(op, TAMIZ_NOT_SUPPORTED, "more than %d runs", PAIRS));
    if (!m || (n > chunk && !order))
        TRY(op_fail_memory(op));
    m->op = op;
    m->db = db;
    m->options = options;
    m->values = values;
    m->value_sizes = value_sizes;
    m->statuses = statuses;
    m->view = view;
    m->now_us = 0;
    for (size_t at = 0; at < n; at += chunk)
        run_chunk(m, keys, key_sizes, order ? order + at : NULL, n - at < chunk ? n - at : chunk,
                  seq);
    for (size_t i = 0; i < n && st == TAMIZ_OK; i++)
        if (statuses[i] < 0)
            st = statuses[i];
done:
    mem_free(op->alloc, m, sizeof *m);
    mem_free(op->alloc, order, n * sizeof *order);
    return st;
}
