/* SPDX-License-Identifier: MIT */
#include "db/get.h"

#include "db/ledger.h"
#include "db/read_options.h"

/* Tables that could have the key, one a run, newest run first. Runs beyond the array's end take
 * another round. */
enum { CANDIDATES_MAX = 48 };
struct candidates {
    uint32_t count;
    struct {
        struct table *table;
        int level;
    } at[CANDIDATES_MAX];
};

/* Fills in from run `from` on and starts fetching the filter lines of all of them; returns the run
 * to go on with. */
static uint32_t candidates_find(struct op *op, const struct version *v, uint32_t from,
                                const struct lookup *lookup, uint64_t key8, struct candidates *c)
{
    c->count = 0;
    uint32_t r = from;
    for (; r < v->run_count && c->count < CANDIDATES_MAX; r++) {
        const struct run *run = &v->runs[r];
        const struct table_meta *meta = run_find(run, lookup->key, key8);
        if (!meta) {
            if (op->trace)
                op_tell(op, &(tamiz_step_info){.kind = TAMIZ_STEP_OUTSIDE_RANGE,
                                               .level = (int)run->level});
            continue;
        }
        table_prefetch(meta->table, lookup);
        c->at[c->count].table = meta->table;
        c->at[c->count++].level = (int)run->level;
    }
    return r;
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

static tamiz_status get_from_tables(struct op *op, const struct version *version,
                                    const struct lookup *lookup, struct table_read *how,
                                    uint64_t *stamp, struct found *found,
                                    const struct table **answered)
{
    const uint64_t key8 = slice_prefix8(lookup->key, 0);
    struct candidates c;
    tamiz_status st = TAMIZ_NOT_FOUND;
    for (uint32_t next = 0; st == TAMIZ_NOT_FOUND && next < version->run_count;) {
        next = candidates_find(op, version, next, lookup, key8, &c);
        for (uint32_t i = 0; st == TAMIZ_NOT_FOUND && i < c.count; i++) {
            how->level = c.at[i].level;
            st = table_get(op, c.at[i].table, lookup, how, stamp, &found->value, &found->pinned);
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

    tamiz_status st = get_from_memtables(op, view, &lookup, &stamp, &found->value);
    const unsigned due =
        st == TAMIZ_NOT_FOUND ? ledger_due(op, db->store->ledger, &lookup, options) : 0;
    if (__builtin_expect(due & LEDGER_AUDIT, 0))
        ledger_audit(op, db->store->ledger, view->version, &lookup);
    if (st == TAMIZ_NOT_FOUND && !(due & LEDGER_FOLLOW))
        st = get_from_tables(op, view->version, &lookup, &how, &stamp, found, NULL);
    else if (st == TAMIZ_NOT_FOUND)
        st = get_sampled(op, db->store->ledger, view->version, &lookup, !options->snapshot, &how,
                         &stamp, found);

    if (st == TAMIZ_OK && stamp_kind(stamp) == KIND_DELETE) {
        cached_block_unpin(found->pinned);
        *found = (struct found){0};
        st = TAMIZ_NOT_FOUND;
    }
    if (st == TAMIZ_OK)
        counter_add(&op->count->gets_found, 1);
    return st;
}
