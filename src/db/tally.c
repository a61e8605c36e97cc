/* SPDX-License-Identifier: MIT */
#include "db/tally.h"

#include "filter/theory.h"

enum {
    SEEN_BITS = 1 << 17, /* (table, key) pairs …                   */
    SEEN_MOST = 1 << 15, /* … of which so many are known at a time */
    DRIFT_LOOK = 64,     /* each so many absent keys a tally is judged */
};
#define DRIFT_SIGMAS 5.0

bool tallies_init(struct tallies *t, const struct alloc *alloc)
{
    *t = (struct tallies){.seen = mem_new_array(alloc, SEEN_BITS / 64, sizeof *t->seen)};
    return t->seen != NULL;
}

void tallies_free(struct tallies *t, const struct alloc *alloc)
{
    mem_free(alloc, t->seen, SEEN_BITS / 64 * sizeof *t->seen);
    t->seen = NULL;
}

/* Was this key looked up in this table before, as far as is remembered? It is from now on. */
static bool seen_before(struct tallies *s, uint64_t table, uint64_t hash)
{
    const uint64_t pair =
        (hash ^ table * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
    const uint64_t bit = (pair >> 32) % SEEN_BITS;
    if (s->seen[bit / 64] >> (bit % 64) & 1)
        return true;
    if (++s->seen_count > SEEN_MOST) {
        memset(s->seen, 0, SEEN_BITS / 64 * sizeof *s->seen);
        s->seen_count = 1;
    }
    s->seen[bit / 64] |= UINT64_C(1) << (bit % 64);
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

bool tallies_add(struct tallies *t, const struct table_meta *meta, const struct lookup *lookup,
                 bool has)
{
    struct table *table = meta->table;
    if (!table_is_loaded(table) || seen_before(t, meta->number, lookup->hash))
        return false;
    const enum table_verdict verdict = table_peek(table, lookup);
    struct table_tally *c = table_tally(table);
    if (verdict == TABLE_NO_FILTER)
        return false;
    counter_add(has                   ? &c->true_positives
                : verdict == TABLE_NO ? &c->negatives
                                      : &c->false_positives,
                1);
    return !has && has_drifted(table);
}

void tally_tell_drift(const struct store *s, struct table *t)
{
    const struct table_tally *c = table_tally(t);
    const uint64_t wrong = counter_get(&c->false_positives);
    const uint64_t absent = wrong + counter_get(&c->negatives);
    store_event(s, TAMIZ_EVENT_FILTER_DRIFT,
                "%s: the filter said maybe to %llu of %llu absent keys, %.4g %%; expected %.4g %%",
                table_path(t), (unsigned long long)wrong, (unsigned long long)absent,
                100 * (double)wrong / (double)absent, 100 * table_filter(t)->expected_fpr);
}
