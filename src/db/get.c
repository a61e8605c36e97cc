/* SPDX-License-Identifier: MIT */
#include "db/get.h"

#include "db/ledger.h"
#include "db/read_options.h"

/* Tables that could have the key, one a run, newest run first. Runs beyond the array's end take
 * another round. */
enum { CANDIDATES_MAX = 48 };
struct candidates {
    uint32_t count;
    uint64_t asked; /* bit i: at[i] was asked by line */
    uint64_t maybe; /* … and said maybe */
    struct {
        struct table *table;
        int level;
    } at[CANDIDATES_MAX];
};

/* Fills in from run `from` on; returns the run to go on with. The filters' lines are all on their
 * way before the first is tested: that is one cache miss of time for all runs together. */
static uint32_t candidates_find(struct op *op, const struct version *v, uint32_t from,
                                const struct lookup *lookup, uint64_t word, bool use_filters,
                                struct candidates *c)
{
    struct filter_line lines[CANDIDATES_MAX];
    uint8_t whose[CANDIDATES_MAX];
    const uint64_t mixed = filter_lines_mix(lookup->hash);
    uint32_t r = from, n = 0, asked = 0;
    c->asked = c->maybe = 0;
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
        if (use_filters && table_has_lines(t)) {
            lines[asked] = filter_line_of(&table_face(t)->filter, mixed);
            whose[asked++] = (uint8_t)n;
        }
        c->at[n].table = t;
        c->at[n++].level = (int)run->level;
    }
    c->count = n;
    const uint64_t said = filter_lines_ask(lines, asked);
    for (uint32_t i = 0; i < asked; i++) {
        c->asked |= UINT64_C(1) << whose[i];
        c->maybe |= (said >> i & 1) << whose[i];
    }
    return r;
}

/* What one candidate says. */
static tamiz_status candidate_get(struct op *op, const struct candidates *c, uint32_t i,
                                  const struct lookup *lookup, struct table_read *how,
                                  uint64_t *stamp, struct found *found)
{
    how->level = c->at[i].level;
    how->asked = c->asked >> i & 1;
    if (how->asked) {
        const bool maybe = c->maybe >> i & 1;
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
static tamiz_status candidate_get_ranged(struct op *op, const struct candidates *c, uint32_t i,
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

static tamiz_status get_from_tables(struct op *op, const struct version *version,
                                    const struct lookup *lookup, struct table_read *how,
                                    uint64_t *stamp, struct found *found,
                                    const struct table **answered)
{
    if (version->run_count == 0)
        return TAMIZ_NOT_FOUND;
    const bool ranged = version->ranged;
    const uint64_t word = run_word(&version->runs[0], lookup->key);
    struct candidates c;
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t next = 0; st == TAMIZ_NOT_FOUND && next < version->run_count;) {
        next = candidates_find(op, version, next, lookup, word, how->use_filter, &c);
        for (uint32_t i = 0; st == TAMIZ_NOT_FOUND && i < c.count; i++) {
            st = __builtin_expect(ranged, 0)
                     ? candidate_get_ranged(op, &c, i, lookup, how, stamp, found)
                     : candidate_get(op, &c, i, lookup, how, stamp, found);
            if (st == TAMIZ_OK && answered)
                *answered = c.at[i].table;
        }
    }
    return st;
}

/* One read in many also pays for the estimate of what it would have cost without filters. */
static tamiz_status get_sampled(struct op *op, struct ledger *ledger, const struct version *version,
                                const struct lookup *lookup, bool newest, struct table_read *how,
                                uint64_t *stamp, struct found *found)
{
    struct followed read = {
        .at = counter_get(&op->count->gets), .lookup = lookup, .newest = newest};
    ledger_reads_take(op, read.device_reads);
    const tamiz_status st = get_from_tables(op, version, lookup, how, stamp, found, &read.answered);
    ledger_reads_since(op, read.device_reads);
    if (st >= 0)
        ledger_follow(op, ledger, version, &read);
    return st;
}

tamiz_status db_get(struct op *op, struct tamiz *db, struct slice key,
                    const tamiz_read_options *options, struct found *found)
{
    *found = (struct found){0};
    counter_add(&op->count->gets, 1);
    uint64_t seq;
    const struct view *view = view_borrow(db, &seq);
    const struct lookup lookup = lookup_make(key, read_options_seq(options, seq));
    struct table_read how = read_options_table(options);
    uint64_t stamp = 0;
    if (__builtin_expect(op->trace != NULL, 0))
        op->subject_hash = lookup.hash;

    tamiz_status st = get_from_memtables(op, view, &lookup, &stamp, &found->value);
    const unsigned due = st == TAMIZ_NOT_FOUND ? ledger_due(op, db->ledger, &lookup, options) : 0;
    if (__builtin_expect(due & LEDGER_AUDIT, 0))
        ledger_audit(op, db->ledger, view->version, &lookup);
    if (st == TAMIZ_NOT_FOUND && !(due & LEDGER_FOLLOW))
        st = get_from_tables(op, view->version, &lookup, &how, &stamp, found, NULL);
    else if (st == TAMIZ_NOT_FOUND)
        st = get_sampled(op, db->ledger, view->version, &lookup, !options->snapshot, &how, &stamp,
                         found);

    if (st == TAMIZ_OK && stamp_kind(stamp) == KIND_DELETE) {
        cached_block_unpin(found->pinned);
        *found = (struct found){0};
        st = TAMIZ_NOT_FOUND;
    }
    if (st == TAMIZ_OK)
        counter_add(&op->count->gets_found, 1);
    return st;
}
