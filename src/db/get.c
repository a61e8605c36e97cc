/* SPDX-License-Identifier: MIT */
#include "db/get.h"

#include "db/audit.h"
#include "db/expiry.h"
#include "db/ledger.h"
#include "db/read_options.h"

/* Tables that could have the key, one a run, newest run first. Runs beyond the array's end take
 * another round. */
enum { CANDIDATES_MAX = 48 };
struct candidates {
    uint32_t count;
    uint32_t asked_count; /* by line */
    uint32_t located;     /* table_expect() of the last one; 0: nothing is expected */
    uint64_t said;        /* by those, in their order: bit set: maybe */
    struct {
        struct table *table;
        int level;
        bool asked;
    } at[CANDIDATES_MAX];
};

/* Fills in from run `from` on; returns the run to go on with. The filters' lines are all on their
 * way before the first is tested: that is one cache miss of time for all runs together. `hopeful`:
 * so is the block of the last run's table, which has most of the keys. */
static uint32_t candidates_find(struct op *op, const struct version *v, uint32_t from,
                                const struct lookup *lookup, uint64_t word, bool use_filters,
                                bool hopeful, struct candidates *c)
{
    struct filter_line lines[CANDIDATES_MAX];
    const uint64_t mixed = filter_lines_mix(lookup->hash);
    uint32_t r = from, n = 0, asked = 0;
    for (; r < v->run_count && n < CANDIDATES_MAX; r++) {
        const struct run *run = &v->runs[r];
        const uint32_t i = run_place(run, lookup->key, word);
        if (i == run->count) {
            if (op->trace)
                op_tell(op, &(tamiz_step_info){.kind = TAMIZ_STEP_OUTSIDE_RANGE,
                                               .level = (int)run->level});
            continue;
        }
        struct table *t = run->handles[i];
        c->at[n].asked = use_filters && table_has_lines(t);
        if (c->at[n].asked)
            lines[asked++] = filter_line_of(&table_face(t)->filter, mixed);
        c->at[n].table = t;
        c->at[n++].level = (int)run->level;
    }
    c->count = n;
    c->asked_count = asked;
    c->located =
        hopeful && n && r == v->run_count ? table_expect(c->at[n - 1].table, lookup->key) : 0;
    c->said = filter_lines_ask(lines, asked);
    return r;
}

/* What theory expects of the filters that were asked. */
static __attribute__((noinline)) uint64_t expected_fp_1e9(const struct candidates *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->count; i++)
        sum += table_face(c->at[i].table)->expected_fp_1e9;
    return sum;
}

/* Did every run's filter deny the key? Then that is all of this read, and it is counted. */
static bool clean_miss(struct miss_seat *seat, const struct view *view, const struct candidates *c)
{
    if (c->said || c->asked_count != view->version->run_count || !view->misses.alike || !seat)
        return false;
    if (misses_count(seat))
        misses_expect(seat, expected_fp_1e9(c));
    return true;
}

/* What the i-th candidate says; its turn, if it was asked, is next in c->said. */
static tamiz_status candidate_get(struct op *op, struct candidates *c, uint32_t i,
                                  const struct lookup *lookup, struct table_read *how,
                                  uint64_t *stamp, struct found *found)
{
    how->level = c->at[i].level;
    how->asked = c->at[i].asked;
    how->located = i + 1 == c->count ? c->located : 0;
    if (how->asked) {
        const bool maybe = c->said & 1;
        c->said >>= 1;
        table_answered(op, c->at[i].table, how, maybe);
        if (!maybe)
            return TAMIZ_NOT_FOUND;
    }
    return table_get(op, c->at[i].table, lookup, how, stamp, &found->value, &found->pinned);
}

static tamiz_status get_from_memtables(struct op *op, const struct view *view,
                                       const struct lookup *lookup, uint64_t *stamp,
                                       struct slice *value)
{
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t i = 0; st == TAMIZ_NOT_FOUND && i < view->memtable_count; i++)
        st = memtable_get(op, view->memtables[i]->memtable, lookup, stamp, value);
    if (st == TAMIZ_OK)
        counter_add(&op->count->memtable_hits, 1);
    return st;
}

/* The same where tables have range deletes: which cover the key whatever the filter says, but only
 * what is older. */
static tamiz_status candidate_get_ranged(struct op *op, struct candidates *c, uint32_t i,
                                         const struct lookup *lookup, struct table_read *how,
                                         uint64_t *stamp, struct found *found)
{
    uint64_t cover;
    bool all;
    tamiz_status st = table_cover(op, c->at[i].table, lookup, &cover, &all);
    if (st != TAMIZ_OK)
        return st;
    if (!all)
        st = candidate_get(op, c, i, lookup, how, stamp, found);
    if (cover == 0 || st < 0 || (!all && st == TAMIZ_OK && stamp_seq(*stamp) > cover))
        return st;
    cached_block_unpin(found->pinned);
    *found = (struct found){0};
    *stamp = stamp_of(cover, KIND_DELETE);
    how->level = c->at[i].level;
    table_covered(op, c->at[i].table, how);
    return TAMIZ_OK;
}

static tamiz_status get_from_tables(struct op *op, struct view *view, const struct lookup *lookup,
                                    struct table_read *how, uint64_t *stamp, struct found *found)
{
    const struct version *version = view->version;
    const bool ranged = version->ranged;
    const uint64_t word = run_word(&version->runs[0], lookup->key);
    struct miss_seat *seat = op->trace ? NULL : &view->misses.seats[op->seat];
    const bool hopeful = seat && seat->hopeful;
    struct candidates c;
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t next = 0; st == TAMIZ_NOT_FOUND && next < version->run_count;) {
        next = candidates_find(op, version, next, lookup, word, how->use_filter, hopeful, &c);
        if (!ranged && clean_miss(seat, view, &c)) {
            if (hopeful)
                seat->hopeful = false;
            return TAMIZ_NOT_FOUND;
        }
        for (uint32_t i = 0; st == TAMIZ_NOT_FOUND && i < c.count; i++) {
            st = __builtin_expect(ranged, 0)
                     ? candidate_get_ranged(op, &c, i, lookup, how, stamp, found)
                     : candidate_get(op, &c, i, lookup, how, stamp, found);
            if (st == TAMIZ_OK)
                found->table = c.at[i].table;
        }
    }
    if (st == TAMIZ_OK && seat && !hopeful)
        seat->hopeful = true;
    return st;
}

/* One read in many also pays for the estimate of what it would have cost without filters, or is
 * audited. */
static __attribute__((noinline)) tamiz_status
get_sampled(struct op *op, struct tamiz *db, struct view *view, const struct lookup *lookup,
            struct table_read *how, unsigned due, bool newest, uint64_t *stamp, struct found *found)
{
    const struct version *version = view->version;
    struct followed read = {
        .at = counter_get(&op->count->gets), .lookup = lookup, .newest = newest};
    if (due & LEDGER_AUDIT)
        audit_read(op, db->store, version, lookup);
    ledger_reads_take(op, version, read.device_reads);
    const tamiz_status st = get_from_tables(op, view, lookup, how, stamp, found);
    read.answered = found->table;
    ledger_reads_since(op, version, read.device_reads);
    if (st >= 0 && due & LEDGER_FOLLOW)
        ledger_follow(op, db->ledger, version, &read);
    return st;
}

/* What was found is no plain put: a tombstone, or a value for a time. */
static __attribute__((noinline)) tamiz_status settle(struct op *op, struct store *s, uint64_t stamp,
                                                     struct found *found)
{
    uint64_t now_us = 0;
    const tamiz_status st = expiry_answer(op, s, &now_us, stamp, &found->value);
    if (st != TAMIZ_OK) {
        cached_block_unpin(found->pinned);
        *found = (struct found){0};
    }
    return st;
}

/* `asked`: the ledger wants to be asked about this read. */
static inline __attribute__((always_inline)) tamiz_status get(struct op *op, struct tamiz *db,
                                                              struct slice key,
                                                              const tamiz_read_options *options,
                                                              bool asked, struct found *found)
{
    *found = (struct found){0};
    uint64_t seq;
    struct view *view = view_borrow(db, &seq);
    const struct lookup lookup = lookup_make(key, read_options_seq(options, seq));
    struct table_read how = read_options_table(options);
    uint64_t stamp = 0;
    if (__builtin_expect(op->trace != NULL, 0))
        op->subject_hash = lookup.hash;

    tamiz_status st = get_from_memtables(op, view, &lookup, &stamp, &found->value);
    if (st == TAMIZ_NOT_FOUND && view->version->run_count) {
        const unsigned due = asked ? ledger_decide(op, db->ledger, &lookup, options) : 0;
        if (due == 0)
            st = get_from_tables(op, view, &lookup, &how, &stamp, found);
        else
            st = get_sampled(op, db, view, &lookup, &how, due, !options->snapshot, &stamp, found);
    }

    if (st == TAMIZ_OK && stamp_kind(stamp) != KIND_PUT)
        st = settle(op, db->store, stamp, found);
    if (st == TAMIZ_OK)
        counter_add(&op->count->gets_found, 1);
    return st;
}

static __attribute__((noinline)) tamiz_status get_asking(struct op *op, struct tamiz *db,
                                                         struct slice key,
                                                         const tamiz_read_options *options,
                                                         struct found *found)
{
    return get(op, db, key, options, true, found);
}

tamiz_status db_get(struct op *op, struct tamiz *db, struct slice key,
                    const tamiz_read_options *options, struct found *found)
{
    if (__builtin_expect(ledger_count_get(op), 0))
        return get_asking(op, db, key, options, found);
    return get(op, db, key, options, false, found);
}
