/* SPDX-License-Identifier: MIT
 *
 * Many keys at once. All of them see one view. Keys go through the sieve (db/sieve.h) in chunks, in
 * the caller's order, and most that are absent are answered by that. What is left goes on in
 * rounds: each key to the first table that may have it, all of them waiting for memory in step, and
 * whatever must come from the device is read together. A key whose read was wasted is in the next
 * round with its next table. Two keys that want the same block read it once. What a filter says of
 * a key counts only when the key gets there, as in a single get: below the table that answers none
 * was needed.
 *
 * Where tables have range deletes, the newest one over a key ends its list of tables: what it finds
 * is there or deleted, and whatever is older is deleted.
 *
 * Only where there is more than one chunk are keys sorted, and of them only what the sieve left, so
 * that those of one block meet in one round.
 */
#include <assert.h>
#include <stdlib.h>

#include "db/audit.h"
#include "db/expiry.h"
#include "db/get.h"
#include "db/ledger.h"
#include "db/read_options.h"
#include "db/sieve.h"

enum { CHUNK = SIEVE_KEYS, PAIRS = SIEVE_PAIRS };

/* A key that the sieve has left. */
struct left {
    struct slice key;
    size_t index;     /* in the caller's arrays */
    uint64_t at;      /* as in struct followed  */
    bool is_followed; /* by the ledger          */
    uint8_t bit;      /* of the sieve's words   */
};

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
    uint32_t located;    /* table_expect() of the next one; 0: not known */
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
    uint64_t seq;
    uint64_t now_us; /* when all keys are read; 0: none has needed it yet */
    bool failed;     /* some status is an error */
    struct sieve sieve;
    struct left room[CHUNK];
    struct left *left; /* room, or an array for all keys */
    size_t left_count;
    struct pending keys[CHUNK];
    uint32_t count;
    struct pair pairs[PAIRS];
    struct table_wait waits[CHUNK];
    uint32_t waiting[CHUNK]; /* which key each wait is for */
    struct file_request requests[CHUNK];
};

/* Whoever listens is told which key the steps are about. */
static void tell_subject(const struct multi *m, const struct lookup *lookup)
{
    if (!m->op->trace)
        return;
    m->op->subject = lookup->key;
    m->op->subject_hash = lookup->hash;
}

/* ---- answers ---- */

/* `table`: which knew the key; NULL: none did. */
static void follow(const struct multi *m, struct pending *p, const struct table *table)
{
    p->followed.lookup = &p->lookup;
    p->followed.answered = table;
    ledger_follow(m->op, m->db->ledger, m->view->version, &p->followed);
}

/* Of the key at `index`, over which `cover` is a range delete (0: none). */
static void answer(struct multi *m, size_t index, uint64_t cover, tamiz_status st, uint64_t stamp,
                   struct slice value)
{
    if (st == TAMIZ_OK && stamp_seq(stamp) < cover)
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
            m->values[index] = copy;
            m->value_sizes[index] = value.size;
            counter_add(&m->op->count->gets_found, 1);
        }
    }
    m->statuses[index] = st;
    m->failed |= st < 0;
}

/* Removes key `i` from the chunk by moving the last one into its place. */
static void settle(struct multi *m, uint32_t i)
{
    m->keys[i] = m->keys[--m->count];
}

/* ---- the sieve ---- */

static struct lookup lookup_of(const struct multi *m, uint32_t i)
{
    return (struct lookup){m->sieve.keys[i], m->sieve.hashes[i], m->seq << 4 | 15};
}

/* Which keys are to be looked for in the memtables: some filter of theirs says maybe. Whoever
 * listens is told what each says of each. */
static uint64_t memtable_maybes(const struct multi *m)
{
    uint64_t maybe = 0;
    for (uint32_t k = 0; k < m->view->memtable_count; k++)
        maybe |= sieve_memtable(&m->sieve, m->view, k);
    return m->op->trace ? sieve_all(&m->sieve) : maybe;
}

/* Answers what memtables know. Returns the others; the chunk begins at `from` of the caller's. */
static uint64_t search_memtables(struct multi *m, size_t from)
{
    uint64_t left = sieve_all(&m->sieve);
    for (uint64_t bits = memtable_maybes(m); bits; bits &= bits - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(bits);
        const struct lookup lookup = lookup_of(m, i);
        uint64_t stamp = 0;
        struct slice value = {0};
        tamiz_status st = TAMIZ_NOT_FOUND;
        tell_subject(m, &lookup);
        for (uint32_t k = 0; st == TAMIZ_NOT_FOUND && k < m->view->memtable_count; k++)
            st = memtable_get(m->op, m->view->memtables[k]->memtable, &lookup, &stamp, &value);
        if (st == TAMIZ_NOT_FOUND)
            continue;
        counter_add(&m->op->count->memtable_hits, 1);
        answer(m, from + i, 0, st, stamp, value);
        left &= ~(UINT64_C(1) << i);
    }
    return left;
}

static void audit(const struct multi *m, uint64_t audited)
{
    for (uint64_t bits = audited; bits; bits &= bits - 1) {
        const struct lookup lookup = lookup_of(m, (uint32_t)__builtin_ctzll(bits));
        audit_read(m->op, m->db->store, m->view->version, &lookup);
    }
}

/* The next `n` keys from `from` on: what memtables and filters can answer is answered, and the rest
 * goes to m->left. Whoever listens hears the filters one by one, and under range deletes they are
 * not the last word. */
static void sift(struct multi *m, const void *const keys[], const size_t key_sizes[], size_t from,
                 size_t n)
{
    struct sieve *s = &m->sieve;
    const struct version *v = m->view->version;
    const uint64_t gets = counter_get(&m->op->count->gets);
    s->count = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        s->keys[i] = slice_of(keys[from + i], key_sizes[from + i]);
    sieve_hash(s);
    const struct chosen chosen = ledger_count_many(m->op, m->db->ledger, s->keys, n, m->options);
    audit(m, chosen.audit);
    uint64_t left = search_memtables(m, from);
    sieve_tables(s, v, m->options->use_filters);
    if (!m->op->trace && !v->ranged) {
        const uint64_t denied = sieve_denied(s, v, left & ~chosen.follow);
        sieve_count(m->op, s, v, denied);
        left &= ~denied;
    }
    for (; left; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        m->left[m->left_count++] =
            (struct left){s->keys[i], from + i, gets + i + 1, chosen.follow >> i & 1, (uint8_t)i};
    }
}

/* ---- filters, heard one by one ---- */

/* Every run's table for a key, behind the `n` pairs there are. Returns how many there are now. */
static uint32_t find_pairs_of(struct multi *m, struct pending *p, uint32_t bit, uint32_t n)
{
    const struct version *v = m->view->version;
    const struct lookup *lookup = &p->lookup;
    for (uint32_t r = 0; r < v->run_count && p->cover == 0; r++) {
        const struct sieve_run *said = &m->sieve.runs[r];
        if (!(said->met >> bit & 1))
            continue;
        struct table *t = sieve_table(&m->sieve, v, r, bit);
        bool all = false;
        if (__builtin_expect(v->ranged, 0)) {
            p->failed = table_cover(m->op, t, lookup, &p->cover, &all);
            if (p->failed != TAMIZ_OK || all)
                return n;
        }
        const bool asked = said->asked >> bit & 1;
        m->pairs[n++] = (struct pair){.table = t,
                                      .level = (int16_t)v->runs[r].level,
                                      .asked = asked,
                                      .maybe = said->maybe >> bit & 1};
        if (m->options->use_filters && !asked)
            table_prefetch(t, lookup);
    }
    return n;
}

/* The keys of the next rounds, as the sieve knows them. */
static void take_left(struct multi *m, const struct left *left, size_t n)
{
    uint32_t pairs = 0;
    m->count = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct pending *p = &m->keys[i];
        *p = (struct pending){.index = left[i].index,
                              .lookup = lookup_of(m, left[i].bit),
                              .next = pairs,
                              .is_followed = left[i].is_followed};
        p->followed.at = left[i].at;
        p->followed.newest = !m->options->snapshot;
        p->end = pairs = find_pairs_of(m, p, left[i].bit, pairs);
    }
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
    p->located = 0;
    const tamiz_status st = hear_next(m, p);
    return st == TAMIZ_OK ? TAMIZ_NOT_FOUND : st;
}

/* Brings each key to the first table that may have it; most that are absent are answered by that.
 * An error is the key's answer. */
static void hear_filters(struct multi *m)
{
    for (uint32_t i = 0; i < m->count;) {
        struct pending *p = &m->keys[i];
        tell_subject(m, &p->lookup);
        const tamiz_status st = p->failed ? p->failed : hear_next(m, p);
        if (st == TAMIZ_OK && p->next < p->end) {
            i++;
            continue;
        }
        if (p->is_followed && st == TAMIZ_OK)
            follow(m, p, NULL);
        answer(m, p->index, p->cover, st == TAMIZ_OK ? TAMIZ_NOT_FOUND : st, 0, (struct slice){0});
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
    tell_subject(m, &p->lookup);
    while (st == TAMIZ_NOT_FOUND && p->next < p->end) {
        const struct pair *pair = &m->pairs[p->next];
        struct table_wait *w = &m->waits[*waits];
        struct table_read how = read_options_table(m->options);
        how.level = pair->level;
        how.asked = pair->asked;
        w->request.file = NULL;
        w->table = pair->table;
        w->impatient = *waits > 0;
        if (!p->located)
            p->located = table_expect(pair->table, p->lookup.key);
        how.located = p->located;
        if (p->located) {
            w->block = p->located - 1;
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
    answer(m, p->index, p->cover, st, stamp, value);
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
    tell_subject(m, &p->lookup);
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
        answer(m, p->index, p->cover, st, stamp, value);
        p->next = p->end = 0; /* answered: removed below */
    }
    cached_block_unpin(pinned);
}

/* What the next round will look at is fetched first: a step for all keys, then the next. */
static void approach(struct multi *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->keys[i].next < m->keys[i].end)
            table_approach(m->pairs[m->keys[i].next].table, m->keys[i].lookup.key);
    for (uint32_t i = 0; i < m->count; i++)
        if (m->keys[i].next < m->keys[i].end)
            m->keys[i].located =
                table_expect(m->pairs[m->keys[i].next].table, m->keys[i].lookup.key);
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

/* Chunks of what is left, in the order of their keys: those of one block meet in one. */
static int compare_left(const void *a, const void *b)
{
    const struct left *x = a, *y = b;
    return slice_compare(x->key, y->key);
}

static void run_left(struct multi *m, const struct left *left, size_t n)
{
    take_left(m, left, n);
    if (m->options->use_filters)
        hear_filters(m);
    run_rounds(m);
}

/* The sieve has seen other keys since: once more, uncounted. */
static void run_left_sorted(struct multi *m, size_t chunk)
{
    qsort(m->left, m->left_count, sizeof *m->left, compare_left);
    for (size_t at = 0; at < m->left_count; at += chunk) {
        const size_t n = m->left_count - at < chunk ? m->left_count - at : chunk;
        m->sieve.count = (uint32_t)n;
        for (size_t i = 0; i < n; i++) {
            m->sieve.keys[i] = m->left[at + i].key;
            m->left[at + i].bit = (uint8_t)i;
        }
        sieve_hash(&m->sieve);
        sieve_tables(&m->sieve, m->view->version, m->options->use_filters);
        run_left(m, m->left + at, n);
    }
}

static tamiz_status error_of(const tamiz_status statuses[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (statuses[i] < 0)
            return statuses[i];
    return TAMIZ_OK;
}

tamiz_status db_multi_get(struct op *op, struct tamiz *db, size_t n, const void *const keys[],
                          const size_t key_sizes[], void *values[], size_t value_sizes[],
                          tamiz_status statuses[], const tamiz_read_options *options)
{
    uint64_t seq;
    const struct view *view = view_borrow(db, &seq);
    const size_t chunk = sieve_room(view->version);
    const size_t many = n > chunk ? n : 0;
    struct multi *m = mem_new(op->alloc, sizeof *m);
    struct left *left = many ? mem_new_array(op->alloc, many, sizeof *left) : NULL;
    tamiz_status st = TAMIZ_OK;
    if (!chunk)
        st = op_fail(op, TAMIZ_NOT_SUPPORTED, "multi_get: the tree has %u runs: want at most %d",
                     view->version->run_count, PAIRS);
    else if (!m || (many && !left))
        st = op_fail_memory(op);
    for (size_t i = 0; i < n && st != TAMIZ_OK; i++)
        statuses[i] = st;
    TRY(st);
    m->op = op;
    m->db = db;
    m->options = options;
    m->values = values;
    m->value_sizes = value_sizes;
    m->statuses = statuses;
    m->view = view;
    m->seq = read_options_seq(options, seq);
    m->now_us = 0;
    m->failed = false;
    m->left = many ? left : m->room;
    m->left_count = 0;
    for (size_t at = 0; at < n; at += chunk)
        sift(m, keys, key_sizes, at, n - at < chunk ? n - at : chunk);
    if (many)
        run_left_sorted(m, chunk);
    else if (m->left_count)
        run_left(m, m->left, m->left_count);
    if (m->failed)
        st = error_of(statuses, n);
done:
    mem_free(op->alloc, m, sizeof *m);
    mem_free(op->alloc, left, many * sizeof *left);
    return st;
}
