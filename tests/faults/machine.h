/* SPDX-License-Identifier: MIT
 *
 * A store on the simulated machine, a random workload, and a history that knows what the store may
 * be after a crash.
 *
 * The history is a list of groups: one write or one batch each. A group is acknowledged, failed, or
 * under way. What a recovery may find is the state after some prefix of the groups, where
 *
 *     - the prefix holds every group that was durable: synced, or followed by a sync or a flush;
 *     - no group is there by halves;
 *     - a failed group is not there, unless nothing that came after it was acknowledged;
 *     - groups written with no_log are there up to some point and missing from there on: what was
 *       flushed has them, and no log does.
 *
 * Keys from SIDE on live in a second keyspace, under names that the default one has as well; it is
 * made when it is first written to, and dropped now and then, which is a group like any other. The
 * rules are those of one store: a batch over both is one group, and the prefix is of both. It has a
 * compaction filter, which changes some values, and drops others: whether these are there or not is
 * one and the same, but nothing older may show in their place.
 *
 * A value begins with the number of its group, so that a value read back says who wrote it, and its
 * other bytes and its size follow from that number, so that any damage shows.
 *
 * Header only: it belongs to the programs of this folder.
 */
#ifndef TAMIZ_TESTS_FAULTS_MACHINE_H
#define TAMIZ_TESTS_FAULTS_MACHINE_H

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "tamiz/env_sim.h"
#include "tamiz/tamiz.h"

enum { EVERY_NO_LOG = INT_MAX };
enum { SIDE = 29 }; /* keys from here on are the second keyspace's */
enum { KEYS = 40, GROUPS_MAX = 4096, BATCH_MAX = 6, VALUE_MAX = 1600, ABSENT = -1, DAMAGED = -2 };

enum outcome { UNDER_WAY, ACKNOWLEDGED, FAILED };

enum change_kind { DELETE, PUT, DELETE_RANGE, DROP };

struct change {
    uint8_t key;
    uint8_t to; /* of DELETE_RANGE: the key of the same keyspace that is the first to stay */
    enum change_kind kind;
};

struct group {
    struct change changes[BATCH_MAX];
    int count;
    bool no_log;
    enum outcome outcome;
};

struct history {
    struct group groups[GROUPS_MAX];
    int count;
    int durable; /* all acknowledged groups below this one survive a power cut, */
    int flushed; /* and below this one also those of no_log */
    int states[KEYS];
};

/* ---- keys and values */

static inline bool is_side(int key)
{
    return key >= SIDE;
}

/* Its place in the order of keys. */
static inline int key_rank(int key)
{
    return (is_side(key) ? key - SIDE : key) * 7919 % 997;
}

static inline size_t key_text(int key, char out[16])
{
    return (size_t)snprintf(out, 16, "key%04d", key_rank(key));
}

static inline size_t value_size_of(int group)
{
    const uint64_t mixed = (uint64_t)(group + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 40;
    return 8 + (mixed % 8 == 0 ? mixed % (VALUE_MAX - 8) : mixed % 120);
}

static inline size_t value_of(int group, char out[VALUE_MAX])
{
    const size_t size = value_size_of(group);
    struct test_random r = {(uint64_t)group};
    (void)snprintf(out, VALUE_MAX, "%07d", group);
    for (size_t i = 7; i < size; i++)
        out[i] = (char)('a' + test_random_below(&r, 26));
    return size;
}

/* What the filter of the second keyspace does. */
static inline bool is_dropped(int group)
{
    return group % 7 == 3;
}

static inline bool is_changed(int group)
{
    return group % 7 == 5;
}

enum { CHANGED_HEAD = 'c' }; /* for the first digit, which is 0 */

static inline tamiz_verdict side_judge(void *ctx, const tamiz_merged *entry, tamiz_change *change)
{
    char head[8] = "", value[VALUE_MAX];
    (void)ctx;
    if (entry->value_size < 8 || entry->value_size > VALUE_MAX)
        return TAMIZ_KEEP; /* none of ours: for the test to find */
    memcpy(head, entry->value, 7);
    const int group = head[0] == CHANGED_HEAD ? 0 : atoi(head);
    memcpy(value, entry->value, entry->value_size);
    value[0] = CHANGED_HEAD;
    if (is_dropped(group))
        return TAMIZ_DROP;
    if (is_changed(group) && tamiz_change_value(change, value, entry->value_size) == TAMIZ_OK)
        return TAMIZ_CHANGE;
    return TAMIZ_KEEP;
}

/* Which group wrote these bytes under the key; DAMAGED: none. ABSENT also where the filter may drop
 * it at any time. */
static inline int group_of(int key, const void *bytes, size_t size)
{
    char head[8] = "", want[VALUE_MAX];
    if (size < 8 || size > VALUE_MAX)
        return DAMAGED;
    memcpy(head, bytes, 7);
    const bool changed = head[0] == CHANGED_HEAD;
    if (changed)
        head[0] = '0';
    const int group = atoi(head);
    const size_t wanted = value_of(group, want);
    want[0] = changed ? CHANGED_HEAD : want[0];
    if (wanted != size || memcmp(want, bytes, size) != 0 ||
        (changed && !(is_side(key) && is_changed(group))))
        return DAMAGED;
    return is_side(key) && is_dropped(group) ? ABSENT : group;
}

/* ---- the history */

static inline void states_empty(int states[KEYS])
{
    for (int i = 0; i < KEYS; i++)
        states[i] = ABSENT;
}

static inline void history_init(struct history *h)
{
    h->count = h->durable = h->flushed = 0;
    states_empty(h->states);
}

static inline bool change_covers(const struct change *c, int key)
{
    switch (c->kind) {
    case DELETE:
    case PUT: return key == c->key;
    case DELETE_RANGE:
        return is_side(key) == is_side(c->key) && key_rank(key) >= key_rank(c->key) &&
               key_rank(key) < key_rank(c->to);
    case DROP: return is_side(key);
    }
    return false;
}

/* Groups of no_log from `cut` on are not there. */
static inline void group_apply(const struct history *h, int group, int cut, int states[KEYS])
{
    const struct group *g = &h->groups[group];
    if (g->no_log && group >= cut)
        return;
    for (int i = 0; i < g->count; i++)
        for (int key = 0; key < KEYS; key++)
            if (change_covers(&g->changes[i], key))
                states[key] = g->changes[i].kind == PUT && !(is_side(key) && is_dropped(group))
                                  ? group
                                  : ABSENT;
}

static inline struct group *history_begin(struct history *h)
{
    assert_true(h->count < GROUPS_MAX);
    struct group *g = &h->groups[h->count++];
    memset(g, 0, sizeof *g);
    return g;
}

static inline void history_end(struct history *h, bool ok, bool synced)
{
    const int last = h->count - 1;
    h->groups[last].outcome = ok ? ACKNOWLEDGED : FAILED;
    if (ok)
        group_apply(h, last, EVERY_NO_LOG, h->states);
    if (ok && synced)
        h->durable = h->count;
}

/* All groups but the one that is under way. */
static inline int history_acknowledged(const struct history *h)
{
    return h->count && h->groups[h->count - 1].outcome == UNDER_WAY ? h->count - 1 : h->count;
}

static inline bool states_equal(const int a[KEYS], const int b[KEYS])
{
    return memcmp(a, b, KEYS * sizeof *a) == 0;
}

/* The groups behind the last acknowledged one, all failed but one that may be under way: the first
 * of them, and how many of the failed are thought about. */
static inline int last_failed(const struct history *h, int *first)
{
    enum { MOST = 10 };
    const int end = history_acknowledged(h);
    *first = end;
    while (*first > 0 && h->groups[*first - 1].outcome == FAILED)
        --*first;
    return end - *first < MOST ? end - *first : MOST;
}

/* Is `got` what `states` and some of the groups behind the last acknowledged one made: all failed,
 * and one that is under way or not there? */
static inline bool some_failed_allow(const struct history *h, const int states[KEYS],
                                     const int got[KEYS])
{
    int first;
    const int n = last_failed(h, &first);
    for (unsigned mask = 0; mask < 1u << n; mask++) {
        int with[KEYS];
        memcpy(with, states, sizeof with);
        for (int i = 0; i < n; i++)
            if (mask >> i & 1)
                group_apply(h, first + i, EVERY_NO_LOG, with);
        if (states_equal(with, got))
            return true;
        if (history_acknowledged(h) < h->count)
            group_apply(h, h->count - 1, EVERY_NO_LOG, with);
        if (states_equal(with, got))
            return true;
    }
    return false;
}

/* Whether a point from which on no_log groups are missing could be this one. */
static inline bool may_cut(const struct history *h, int cut)
{
    return cut == h->flushed || (cut > h->flushed && h->groups[cut - 1].no_log);
}

/* Is `got` what the first n groups made, for some n of at least `least`? */
static inline bool history_allows_cut(const struct history *h, int least, int cut,
                                      const int got[KEYS])
{
    int states[KEYS], with_failed[KEYS];
    while (least > 0 && h->groups[least - 1].outcome == FAILED)
        least--;
    states_empty(states);
    if (least == 0 && states_equal(states, got))
        return true;
    for (int i = 0; i < history_acknowledged(h); i++) {
        if (h->groups[i].outcome == FAILED) {
            memcpy(with_failed, states, sizeof states);
            group_apply(h, i, cut, with_failed);
            if (i >= least && states_equal(with_failed, got))
                return true;
            continue;
        }
        group_apply(h, i, cut, states);
        if (i + 1 >= least && states_equal(states, got))
            return true;
    }
    return some_failed_allow(h, states, got);
}

static inline bool history_allows(const struct history *h, int least, const int got[KEYS])
{
    for (int cut = h->count; cut >= h->flushed; cut--)
        if (may_cut(h, cut) && history_allows_cut(h, cut > least ? cut : least, cut, got))
            return true;
    return false;
}

/* The largest n for which `got` is what the first n groups made; -1: none. */
static inline int history_until(const struct history *h, int least, int cut, const int got[KEYS])
{
    int states[KEYS], until = -1;
    states_empty(states);
    for (int i = 0; i <= h->count; i++) {
        if (i >= least && states_equal(states, got))
            until = i;
        if (i < h->count && h->groups[i].outcome != FAILED)
            group_apply(h, i, cut, states);
    }
    return until;
}

static inline bool history_rebase_acknowledged(struct history *h, int least, const int got[KEYS])
{
    int until = -1, cut = h->count + 1;
    while (until < 0 && --cut >= h->flushed)
        if (may_cut(h, cut))
            until = history_until(h, least, cut, got);
    for (int i = 0; until >= 0 && i < h->count; i++)
        if (i >= until || (h->groups[i].no_log && i >= cut))
            h->groups[i].outcome = FAILED;
    memcpy(h->states, got, sizeof h->states);
    return until >= 0;
}

/* A store whose machine lost data, or whose close failed, was opened again and has `got`: a prefix
 * that holds the first `least` groups, and perhaps some that had failed last. What is not in it
 * never will be. */
static inline bool history_rebase(struct history *h, int least, const int got[KEYS])
{
    int first;
    const int n = last_failed(h, &first);
    for (unsigned mask = 0; mask < 1u << n; mask++) {
        for (int i = 0; i < n; i++)
            h->groups[first + i].outcome = mask >> i & 1 ? ACKNOWLEDGED : FAILED;
        if (history_rebase_acknowledged(h, least, got))
            return true;
    }
    return false;
}

/* ---- a run */

#define SIDE_NAME "side"

struct run {
    uint64_t seed;
    const char *options;
    tamiz_env_sim *sim;
    tamiz *db;
    struct test_random random;
    struct history h;
    struct alloc *allocator; /* NULL: libc */
    int steps;
    bool may_lose;    /* a sync lost what it should have written, though the machine lives */
    bool unclean;     /* the last close failed */
    bool lies;        /* the disk does not do what it says: nothing is sure to be durable */
    char moment[240]; /* how to do this again; told on failure */
};

/* With TAMIZ_FAULTS_EVENTS set: what the store tells. */
static inline void run_event(void *ctx, tamiz_event_kind kind, const char *text)
{
    (void)ctx;
    print_message("  event %d: %s\n", (int)kind, text);
}

static inline tamiz_options run_options(const struct run *r, tamiz_env_sim *sim)
{
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    assert_int_equal(tamiz_options_set(&o, r->options), TAMIZ_OK);
    o.env = tamiz_env_sim_env(sim);
    if (getenv("TAMIZ_FAULTS_EVENTS"))
        o.log.event = run_event;
    if (r->allocator)
        o.allocator = r->allocator->hook;
    return o;
}

static inline tamiz_status run_open_on(const struct run *r, tamiz_env_sim *sim, tamiz **db)
{
    const tamiz_options o = run_options(r, sim);
    return tamiz_open("store", &o, db);
}

/* The second keyspace of a store. To be read: TAMIZ_NOT_FOUND where it is not there. */
static inline tamiz_status run_side(const struct run *r, tamiz *db, bool create, tamiz **side)
{
    tamiz_options o = run_options(r, r->sim);
    o.create_if_missing = create;
    o.compaction_filter.judge = side_judge;
    return tamiz_keyspace_open(db, SIDE_NAME, &o, side);
}

#define CHECK(r_, condition_, ...)                                                                 \
    do {                                                                                           \
        if (!(condition_)) {                                                                       \
            print_error(__VA_ARGS__);                                                              \
            print_error("\ndetail: %s\nagain: %s\n", tamiz_error_detail(), (r_)->moment);          \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

static inline uint64_t below(struct run *r, uint64_t n)
{
    return test_random_below(&r->random, n);
}

/* A random change; the same numbers are drawn whatever it becomes. */
static inline struct change run_change(struct run *r)
{
    const int key = (int)below(r, KEYS), first = is_side(key) ? SIDE : 0;
    const int other = first + (int)below(r, is_side(key) ? KEYS - SIDE : SIDE);
    const uint64_t what = below(r, 24);
    const bool swapped = key_rank(key) > key_rank(other);
    if (what < 2 && key != other)
        return (struct change){(uint8_t)(swapped ? other : key), (uint8_t)(swapped ? key : other),
                               DELETE_RANGE};
    return (struct change){.key = (uint8_t)key, .kind = what < 7 ? DELETE : PUT};
}

static inline tamiz_status batch_change(tamiz_batch *batch, tamiz *side, const struct change *c,
                                        const char *value, size_t size)
{
    char key[16], to[16];
    const size_t n = key_text(c->key, key), m = key_text(c->to, to);
    tamiz *in = is_side(c->key) ? side : NULL;
    if (c->kind == PUT)
        return tamiz_batch_put(batch, in, key, n, value, size);
    if (c->kind == DELETE_RANGE)
        return tamiz_batch_delete_range(batch, in, key, n, to, m);
    return tamiz_batch_delete(batch, in, key, n);
}

static inline tamiz_status write_change(tamiz *in, const struct change *c, const char *value,
                                        size_t size, const tamiz_write_options *w)
{
    char key[16], to[16];
    const size_t n = key_text(c->key, key), m = key_text(c->to, to);
    if (c->kind == PUT)
        return tamiz_put(in, key, n, value, size, w);
    if (c->kind == DELETE_RANGE)
        return tamiz_delete_range(in, key, n, to, m, w);
    return tamiz_delete(in, key, n, w);
}

/* Writes a group that has its changes: alone, or as a batch. */
static inline tamiz_status run_write_group(struct run *r, struct group *g, bool sync)
{
    char value[VALUE_MAX];
    const size_t size = value_of(r->h.count - 1, value);
    tamiz_write_options w = TAMIZ_WRITE_OPTIONS_INIT;
    tamiz *side = NULL;
    tamiz_status st = TAMIZ_OK;
    w.sync = sync;
    w.no_log = g->no_log;
    for (int i = 0; i < g->count && !side && st == TAMIZ_OK; i++)
        if (is_side(g->changes[i].key))
            st = run_side(r, r->db, true, &side);
    if (st == TAMIZ_OK && g->count == 1) {
        st = write_change(side ? side : r->db, g->changes, value, size, &w);
    } else if (st == TAMIZ_OK) {
        tamiz_batch *batch = tamiz_batch_new();
        for (int i = 0; i < g->count && st == TAMIZ_OK; i++)
            st = batch_change(batch, side, &g->changes[i], value, size);
        if (st == TAMIZ_OK)
            st = tamiz_write(r->db, batch, &w);
        tamiz_batch_free(batch);
    }
    history_end(&r->h, st == TAMIZ_OK, sync);
    return st;
}

/* What is not logged is the default keyspace's alone: a flush of one keyspace would make a part of
 * the group durable. */
static inline tamiz_status run_write(struct run *r, int count, bool sync)
{
    struct group *g = history_begin(&r->h);
    g->no_log = below(r, 10) == 0 && !sync;
    g->count = count;
    for (int i = 0; i < count; i++) {
        g->changes[i] = run_change(r);
        g->no_log &= !is_side(g->changes[i].key);
    }
    return run_write_group(r, g, sync);
}

/* Durable at once, with all that was before it. */
static inline tamiz_status run_drop(struct run *r)
{
    tamiz *side;
    const tamiz_status there = run_side(r, r->db, true, &side);
    if (there != TAMIZ_OK)
        return there;
    struct group *g = history_begin(&r->h);
    g->count = 1;
    g->changes[0] = (struct change){.key = SIDE, .kind = DROP};
    const tamiz_status st = tamiz_keyspace_drop(r->db, SIDE_NAME);
    history_end(&r->h, st == TAMIZ_OK, true);
    return st;
}

/* What the store says of every key, by get; DAMAGED where it says something impossible. */
static inline tamiz_status run_look(const struct run *r, tamiz *db, int got[KEYS])
{
    tamiz *side = NULL;
    const tamiz_status there = run_side(r, db, false, &side);
    if (there < 0)
        return there;
    states_empty(got);
    for (int i = 0; i < (side ? KEYS : SIDE); i++) {
        char key[16];
        void *value = NULL;
        size_t size = 0;
        const size_t n = key_text(i, key);
        const tamiz_status st = tamiz_get(is_side(i) ? side : db, key, n, &value, &size, NULL);
        if (st < 0)
            return st;
        got[i] = st == TAMIZ_OK ? group_of(i, value, size) : ABSENT;
        tamiz_free(value);
        CHECK(r, got[i] != DAMAGED, "%s has a value that nobody wrote", key);
    }
    return TAMIZ_OK;
}

/* Among those of one keyspace, which begin at `first`. */
static inline int key_index(const void *key, size_t size, int first)
{
    char text[16];
    for (int i = first; i < (first == SIDE ? KEYS : SIDE); i++)
        if (key_text(i, text) == size && memcmp(text, key, size) == 0)
            return i;
    return -1;
}

/* The same by a scan of one keyspace, one way. */
static inline tamiz_status run_scan_one(const struct run *r, tamiz *db, bool backwards, int first,
                                        int got[KEYS])
{
    tamiz_iter *it = NULL;
    tamiz_status st = tamiz_iter_open(db, NULL, &it);
    if (st != TAMIZ_OK)
        return st;
    for (backwards ? tamiz_iter_seek_last(it) : tamiz_iter_seek_first(it); tamiz_iter_valid(it);
         backwards ? tamiz_iter_prev(it) : tamiz_iter_next(it)) {
        size_t ks, vs;
        const void *k = tamiz_iter_key(it, &ks), *v = tamiz_iter_value(it, &vs);
        if (ks == 1 && memcmp(k, "~", 1) == 0)
            continue; /* run_recover wrote it */
        const int i = key_index(k, ks, first);
        CHECK(r, i >= 0, "a scan shows a key that nobody wrote");
        CHECK(r, got[i] == ABSENT, "a scan shows a key twice");
        got[i] = group_of(i, v, vs);
        CHECK(r, got[i] != DAMAGED, "a scan shows a value that nobody wrote");
    }
    st = tamiz_iter_status(it);
    tamiz_iter_close(it);
    return st;
}

static inline tamiz_status run_scan(const struct run *r, tamiz *db, bool backwards, int got[KEYS])
{
    tamiz *side = NULL;
    tamiz_status st = run_side(r, db, false, &side);
    states_empty(got);
    if (st >= 0)
        st = run_scan_one(r, db, backwards, 0, got);
    if (st == TAMIZ_OK && side)
        st = run_scan_one(r, side, backwards, SIDE, got);
    return st;
}

/* Get and both scans say the same, or one of them says an error. */
static inline tamiz_status run_look_thrice(const struct run *r, tamiz *db, int got[KEYS])
{
    int scanned[KEYS];
    tamiz_status st = run_look(r, db, got);
    for (int backwards = 0; st == TAMIZ_OK && backwards < 2; backwards++) {
        st = run_scan(r, db, backwards, scanned);
        for (int i = 0; st == TAMIZ_OK && i < KEYS; i++)
            CHECK(r, got[i] == scanned[i], "key %d: get says group %d, the scan (%s) group %d", i,
                  got[i], backwards ? "backwards" : "forwards", scanned[i]);
    }
    return st;
}

/* A read in the middle of the run sees all acknowledged writes and no other. Errors are allowed
 * where faults are. */
static inline tamiz_status run_check_live(const struct run *r)
{
    int got[KEYS];
    const tamiz_status st = run_look_thrice(r, r->db, got);
    for (int i = 0; st == TAMIZ_OK && i < KEYS; i++)
        CHECK(r, got[i] == r->h.states[i], "key %d: group %d is there, group %d was acknowledged",
              i, got[i], r->h.states[i]);
    return st;
}

/* Opens the run's store; what may be missing now is forgotten. */
static inline tamiz_status run_open(struct run *r)
{
    const tamiz_status st = run_open_on(r, r->sim, &r->db);
    int got[KEYS];
    if (r->lies)
        r->h.durable = r->h.flushed = 0;
    const bool may_lose = r->may_lose || r->lies;
    if (r->db && (may_lose || r->unclean) && run_look(r, r->db, got) == TAMIZ_OK) {
        CHECK(r, history_rebase(&r->h, may_lose ? r->h.durable : r->h.count, got),
              "opened again, writes are missing");
        r->unclean = false;
    }
    return st;
}

static inline void run_all_in_tables(struct run *r)
{
    r->h.durable = r->h.flushed = r->h.count;
}

static inline tamiz_status run_reopen(struct run *r)
{
    const tamiz_status st = tamiz_close(r->db);
    r->db = NULL;
    if (st == TAMIZ_OK)
        run_all_in_tables(r); /* or in a log that is on the disk */
    else
        r->unclean = true;
    const tamiz_status opened = run_open(r);
    return st == TAMIZ_OK ? opened : st;
}

static inline tamiz_status run_maintain(struct run *r, uint64_t kind)
{
    char from[16], to[16];
    const int a = (int)below(r, SIDE), b = (int)below(r, SIDE);
    const unsigned level = (unsigned)below(r, 4);
    const size_t index = below(r, 3), n = key_text(a, from), m = key_text(b, to);
    const bool of_side = below(r, 3) == 0;
    tamiz *in = r->db;
    tamiz_status st = of_side ? run_side(r, r->db, true, &in) : TAMIZ_OK;
    if (st != TAMIZ_OK)
        return st;
    if (kind < 2)
        return tamiz_compact(in, NULL, 0, NULL, 0);
    if (kind < 4)
        return strcmp(from, to) < 0 ? tamiz_compact(in, from, n, to, m)
                                    : tamiz_compact(in, from, n, NULL, 0);
    st = tamiz_compact_table(in, level, index);
    return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : st;
}

/* A table built beside the store and ingested: a few keys, some of them deleted, all or none. */
static inline tamiz_status run_ingest(struct run *r)
{
    struct history *h = &r->h;
    char path[32], text[BATCH_MAX][16], value[VALUE_MAX];
    const char *const paths[] = {path};
    int order[BATCH_MAX];
    const int count = 1 + (int)below(r, BATCH_MAX);
    const int first = below(r, 3) == 0 ? SIDE : 0, keys = first ? KEYS - SIDE : SIDE;
    struct group *g = history_begin(h);
    const size_t size = value_of(h->count - 1, value);
    for (int i = 0; i < count; i++) {
        g->changes[i] = (struct change){.key = (uint8_t)(first + (i * 7 + h->count) % keys),
                                        .kind = below(r, 4) != 0 ? PUT : DELETE};
        (void)key_text(g->changes[i].key, text[i]);
        int at = i;
        for (; at > 0 && strcmp(text[order[at - 1]], text[i]) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    g->count = count;
    (void)snprintf(path, sizeof path, "table-%d", h->count);
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    o.env = tamiz_env_sim_env(r->sim);
    if (r->allocator)
        o.allocator = r->allocator->hook;
    tamiz_table_writer *w = NULL;
    tamiz_status st = tamiz_table_writer_open(path, &o, &w);
    for (int i = 0; st == TAMIZ_OK && i < count; i++) {
        const struct change *c = &g->changes[order[i]];
        st = c->kind == PUT
                 ? tamiz_table_writer_put(w, text[order[i]], strlen(text[order[i]]), value, size)
                 : tamiz_table_writer_delete(w, text[order[i]], strlen(text[order[i]]));
    }
    if (st == TAMIZ_OK)
        st = tamiz_table_writer_finish(w, NULL, NULL);
    else
        tamiz_table_writer_abandon(w);
    tamiz *in = r->db;
    if (st == TAMIZ_OK && first)
        st = run_side(r, r->db, true, &in);
    if (st == TAMIZ_OK)
        st = tamiz_ingest(in, paths, 1);
    history_end(h, st == TAMIZ_OK, true);
    return st;
}

/* A checkpoint opens as a store of its own and says the same. */
static inline tamiz_status run_checkpoint(struct run *r)
{
    char path[32];
    int got[KEYS];
    tamiz *copy = NULL;
    tamiz_options o = TAMIZ_OPTIONS_INIT;
    (void)snprintf(path, sizeof path, "checkpoint-%d-%d", r->h.count, (int)below(r, 1000000));
    tamiz_status st = tamiz_checkpoint(r->db, path);
    if (st != TAMIZ_OK)
        return st;
    o.env = tamiz_env_sim_env(r->sim);
    o.threads = 0;
    if (r->allocator)
        o.allocator = r->allocator->hook;
    st = tamiz_open(path, &o, &copy);
    if (st == TAMIZ_OK)
        st = run_look(r, copy, got);
    if (st == TAMIZ_OK && r->lies)
        r->h.durable = r->h.flushed = 0; /* the end of the log that was copied may be lost */
    CHECK(r,
          st != TAMIZ_OK || states_equal(got, r->h.states) ||
              (r->lies && history_allows(&r->h, 0, got)),
          "%s says something else", path);
    const tamiz_status closed = tamiz_close(copy);
    return st == TAMIZ_OK ? closed : st;
}

/* Of both, and then all is in tables; or of one, which says little of the other. */
static inline tamiz_status run_flush(struct run *r, uint64_t which)
{
    tamiz *side = NULL;
    tamiz_status st = run_side(r, r->db, false, &side);
    if (st >= 0)
        st = which == 0 && side ? TAMIZ_OK : tamiz_flush(r->db);
    if (st == TAMIZ_OK && side && which != 1)
        st = tamiz_flush(side);
    if (st == TAMIZ_OK && which > 1)
        run_all_in_tables(r);
    return st;
}

/* All of both. */
static inline tamiz_status run_compact(struct run *r)
{
    tamiz *side = NULL;
    tamiz_status st = run_side(r, r->db, false, &side);
    if (st >= 0)
        st = tamiz_compact(r->db, NULL, 0, NULL, 0);
    return st == TAMIZ_OK && side ? tamiz_compact(side, NULL, 0, NULL, 0) : st;
}

/* One step of the workload. The random numbers used do not depend on what succeeds. */
/* Nobody writes for a while. What fails in the background is the background's. */
static inline void run_rest(const struct run *r)
{
    bool more;
    for (int look = 0; look < 4; look++) {
        tamiz_env_sim_clock_advance(r->sim, 2000);
        (void)tamiz_step(r->db, 0, &more);
    }
}

static inline tamiz_status run_step(struct run *r)
{
    const uint64_t what = below(r, 100), small = below(r, 6);
    const bool sync = below(r, 4) == 0;
    if (what < 64)
        return run_write(r, 1, sync);
    if (what < 66)
        return run_drop(r);
    if (what < 78)
        return run_write(r, 2 + (int)(small % 5), sync);
    if (what < 85)
        return run_flush(r, small);
    if (what < 87) {
        const tamiz_status st = tamiz_sync(r->db);
        if (st == TAMIZ_OK)
            r->h.durable = r->h.count;
        return st;
    }
    if (what < 94)
        return run_maintain(r, small);
    if (what < 96)
        return run_reopen(r);
    if (what < 98)
        return run_ingest(r);
    if (what < 99)
        return run_checkpoint(r);
    run_rest(r);
    return run_check_live(r);
}

#define RUN_OPTIONS                                                                                \
    "threads=0 memtable=16KiB block=256 table=4KiB cache=64KiB level0_runs=2 level0_stop=4 "       \
    "size_ratio=2 idle_merge=1"

static inline struct run *run_new(uint64_t seed, const char *options, int steps)
{
    struct run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->seed = seed;
    r->options = options ? options : RUN_OPTIONS;
    r->random.state = seed;
    r->steps = steps;
    r->sim = tamiz_env_sim_new(seed);
    assert_non_null(r->sim);
    history_init(&r->h);
    return r;
}

static inline void run_free(struct run *r)
{
    tamiz_env_sim_free(r->sim);
    free(r);
}

/* What the system dropped after a failed sync is missing, and a process that was killed then could
 * not put it into a table: that is told, and repaired. What comes of it need not be a prefix. */
static inline void run_repair(struct run *r, tamiz_env_sim *crashed)
{
    tamiz *db = NULL;
    int got[KEYS];
    const tamiz_options o = run_options(r, crashed);
    tamiz_report report = TAMIZ_REPORT_INIT;
    tamiz_status st = tamiz_repair("store", &o, &report);
    CHECK(r, st == TAMIZ_OK && report.damaged > 0, "repair: %s", tamiz_status_name(st));
    st = run_open_on(r, crashed, &db);
    CHECK(r, st == TAMIZ_OK, "open after the repair: %s", tamiz_status_name(st));
    st = run_look_thrice(r, db, got);
    CHECK(r, st == TAMIZ_OK, "reading after the repair: %s", tamiz_status_name(st));
    st = tamiz_close(db);
    CHECK(r, st == TAMIZ_OK, "closing after the repair: %s", tamiz_status_name(st));
}

/* The store opens on a machine that crashed, has what it must and nothing else, is whole, and can
 * be written. `least`: the first so many groups must be there. */
static inline void run_recover(struct run *r, tamiz_env_sim *crashed, int least)
{
    tamiz *db = NULL;
    int got[KEYS];
    tamiz_report report = TAMIZ_REPORT_INIT;
    tamiz_status st = run_open_on(r, crashed, &db);
    if (st == TAMIZ_CORRUPTION && r->may_lose && strstr(tamiz_error_detail(), "are missing")) {
        run_repair(r, crashed);
        return;
    }
    CHECK(r, st == TAMIZ_OK, "open after the crash: %s", tamiz_status_name(st));
    st = run_look_thrice(r, db, got);
    CHECK(r, st == TAMIZ_OK, "reading after the crash: %s", tamiz_status_name(st));
    if (!history_allows(&r->h, least, got)) {
        int states[KEYS];
        states_empty(states);
        for (int i = 0; i < least; i++)
            if (r->h.groups[i].outcome != FAILED)
                group_apply(&r->h, i, r->h.flushed, states);
        for (int i = 0; i < KEYS; i++)
            if (got[i] != states[i])
                print_error("key %d: group %d, by the durable writes %d\n", i, got[i], states[i]);
        CHECK(r, false, "what is there is no prefix of the %d writes with the first %d in it",
              r->h.count, least);
    }
    st = tamiz_verify(db, &report);
    CHECK(r, st == TAMIZ_OK, "verify after the crash: %s", tamiz_status_name(st));
    tamiz_write_options w = TAMIZ_WRITE_OPTIONS_INIT;
    w.sync = true;
    st = tamiz_put(db, "~", 1, "y", 1, &w);
    CHECK(r, st == TAMIZ_OK, "writing after the crash: %s", tamiz_status_name(st));
    st = tamiz_close(db);
    CHECK(r, st == TAMIZ_OK, "closing after the crash: %s", tamiz_status_name(st));
    CHECK(r, tamiz_env_sim_files_open(crashed) == 0, "files are still open");
}

static inline bool long_form(void)
{
    const char *text = getenv("TAMIZ_LONG");
    return text && *text && *text != '0';
}

#endif
