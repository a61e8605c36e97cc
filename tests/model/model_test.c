/* SPDX-License-Identifier: MIT
 *
 * Random operations on a store and on the model of model.h, which must agree at every step: each
 * write is read back at once, each read is compared with its bytes, iterators stay open across
 * flushes and compactions, and every so often everything is read in every way at every snapshot.
 *
 * There are two keyspaces, each with a model of its own: batches write to both, snapshots are of
 * both, and one of them is dropped and made again, while iterators go on over what was in it. That
 * one, and in some sets the other, has a compaction filter: what that drops may be there or not,
 * what it changes may be changed or not; but never back again, and for a snapshot as the snapshot
 * found it.
 *
 * It runs over the sets of options of sets.h.
 *
 *     model_test [SET ...]              all sets, or those named; "more": more-1 and so on
 *     TAMIZ_MODEL_SEED=N                another run; TAMIZ_MODEL_SEED=time: always another
 *     TAMIZ_MODEL_STEPS=N               operations a set (the long form: 2000000)
 *
 * A failure prints these three, and the step. LABEL: threads
 * CTEST: deep tiered lazy off large direct zstd monkey threads-leveled threads-lazy sync more busy
 */
#include "base/coding.h"
#include "model/model.h"
#include "model/sets.h"

#include <stdatomic.h>
#include <time.h>

#include "tamiz/tamiz.h"

enum { SETS = sizeof option_sets / sizeof option_sets[0], SNAPSHOTS = 8, WALKS = 3 };

/* A keyspace: the store's, and what it should be. */
struct space {
    tamiz *db;
    struct model model;
};

enum { DEFAULT, SIDE, SPACES };

/* An iterator and where the model says it stands. */
struct walk {
    tamiz_iter *iter;
    struct space *in;
    uint64_t seq;
    int begin, end; /* keys within its bounds */
    int at;         /* MODEL_NONE: invalid    */
    uint8_t *lower, *upper, *prefix;
};

struct held {
    tamiz_snapshot *snapshot;
    uint64_t step; /* that took it */
    uint64_t seq[SPACES];
};

struct run {
    const struct option_set *set;
    uint64_t seed;
    uint64_t step, steps;
    struct test_random random;
    struct space spaces[SPACES];
    struct space *at;  /* the keyspace of this step */
    tamiz_env *env;    /* NULL: the real one */
    tamiz_env clocked; /* what the store has of it: the same with a clock of the test's own */
    tamiz_env_ops clocked_ops;
    tamiz_options options;
    char directory[64];
    char path[96];
    tamiz *reader; /* opened for reading beside it, now and then; NULL: not now */
    tamiz *reader_side;
    uint64_t reader_seq[SPACES];
    bool elsewhere; /* reads are of the reader, or of an iterator: they may see what was */
    struct held held[SNAPSHOTS];
    int held_count;
    struct walk walks[WALKS];
    uint8_t *value; /* MODEL_VALUE_MAX */
    uint8_t *key;   /* MODEL_KEY_MAX   */
};

/* ---- saying what is wrong */

static void run_fail(const struct run *r, const char *what, struct slice key)
{
    char text[100];
    print_error("model: set %s, step %llu: %s; key \"%s\" (%zu bytes)\n", r->set->name,
                (unsigned long long)r->step, what, slice_print(key, text, sizeof text), key.size);
    print_error("detail: %s\n", tamiz_error_detail());
    print_error("again:  TAMIZ_MODEL_SEED=%llu TAMIZ_MODEL_STEPS=%llu model_test %s\n",
                (unsigned long long)r->seed, (unsigned long long)r->steps, r->set->name);
    fail();
}

#define CHECK(condition, what, key)                                                                \
    do {                                                                                           \
        if (!(condition))                                                                          \
            run_fail(r, what, key);                                                                \
    } while (0)
#define NO_KEY slice_of(NULL, 0)

static uint64_t below(struct run *r, uint64_t n)
{
    return test_random_below(&r->random, n);
}

static bool one_in(struct run *r, uint64_t n)
{
    return below(r, n) == 0;
}

/* ---- one version against what the store says */

/* A value that the compaction filter has a word on was found as the filter leaves it, or as it was.
 */
static void note_found(struct run *r, int key, const struct model_version *found, bool judged)
{
    struct model_key *k = &r->at->model.keys[key];
    struct model_version *v = &k->versions[found - k->versions];
    const struct slice bytes = model_key_at(&r->at->model, key);
    if (r->elsewhere)
        return;
    CHECK(judged || !v->found_judged, "what the filter judged is back", bytes);
    if (!judged)
        v->found_as_was = r->step + 1;
    for (int i = 0; judged && !v->found_judged && i < r->held_count; i++) {
        const struct held *h = &r->held[i];
        CHECK(model_get(&r->at->model, key, h->seq[r->at - r->spaces]) != v ||
                  h->step >= v->found_as_was,
              "the filter judged what a snapshot sees", bytes);
    }
    v->found_judged |= judged;
}

/* The filter drops it, sooner or later. */
static bool may_be_gone(const struct run *r, int key, const struct model_version *want)
{
    return want && model_verdict_on(&r->at->model, key, want) == TAMIZ_DROP;
}

static void check_status(struct run *r, int key, const struct model_version *want, tamiz_status st,
                         const char *what)
{
    const bool may_go = may_be_gone(r, key, want);
    if (may_go)
        note_found(r, key, want, st == TAMIZ_NOT_FOUND);
    CHECK(st == (want ? TAMIZ_OK : TAMIZ_NOT_FOUND) || (may_go && st == TAMIZ_NOT_FOUND), what,
          model_key_at(&r->at->model, key));
}

/* The first `size` bytes of it. */
static void check_bytes(struct run *r, int key, const struct model_version *want, const void *value,
                        size_t size)
{
    const struct model *m = &r->at->model;
    model_value(want->seed, want->size, m->expected);
    if (size >= 8 && model_verdict_on(m, key, want) == TAMIZ_CHANGE) {
        const uint64_t was = load_u64(m->expected);
        const bool judged = load_u64(value) != was;
        note_found(r, key, want, judged);
        if (judged)
            store_u64(m->expected, model_changed_word(m->keys[key].size, was));
    } else if (size > 0 && model_verdict_on(m, key, want) == TAMIZ_CHANGE) {
        return; /* too little of it to tell */
    }
    CHECK(size == 0 || memcmp(value, m->expected, size) == 0, "the value has other bytes",
          model_key_at(m, key));
}

static void check_value(struct run *r, int key, const struct model_version *want, const void *value,
                        size_t size)
{
    CHECK(size == want->size, "the value has another size", model_key_at(&r->at->model, key));
    check_bytes(r, key, want, value, size);
}

static tamiz_read_options read_options(struct run *r, const tamiz_snapshot *snapshot)
{
    tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    options.snapshot = snapshot;
    options.use_filters = !one_in(r, 8);
    options.fill_cache = !one_in(r, 8);
    return options;
}

static void check_get(struct run *r, int i, const struct model_version *want,
                      const tamiz_read_options *options)
{
    const struct slice key = model_key_at(&r->at->model, i);
    void *value;
    size_t size;
    const tamiz_status st = tamiz_get(r->at->db, key.data, key.size, &value, &size, options);
    check_status(r, i, want, st, "get: another status");
    CHECK((value != NULL) == (st == TAMIZ_OK), "get: value and status disagree", key);
    if (st == TAMIZ_OK)
        check_value(r, i, want, value, size);
    tamiz_free(value);
}

static void check_get_into(struct run *r, int i, const struct model_version *want,
                           const tamiz_read_options *options)
{
    const struct slice key = model_key_at(&r->at->model, i);
    const size_t room = one_in(r, 4) ? below(r, 40) : MODEL_VALUE_MAX;
    size_t size = 1;
    const tamiz_status st =
        tamiz_get_into(r->at->db, key.data, key.size, r->value, room, &size, options);
    check_status(r, i, want, st, "get_into: another status");
    if (st != TAMIZ_OK)
        return;
    CHECK(size == want->size, "get_into: the value has another size", key);
    check_bytes(r, i, want, r->value, size < room ? size : room);
}

static void check_exists(struct run *r, int i, const struct model_version *want,
                         const tamiz_read_options *options)
{
    const struct slice key = model_key_at(&r->at->model, i);
    const tamiz_status st = tamiz_exists(r->at->db, key.data, key.size, options);
    check_status(r, i, want, st, "exists: another status");
    bool maybe = false;
    CHECK(tamiz_may_contain(r->at->db, key.data, key.size, &maybe, options) == TAMIZ_OK,
          "may_contain failed", key);
    CHECK(maybe || st != TAMIZ_OK, "may_contain denies a key that is there", key);
}

/* ---- reads */

/* Now, or one of the snapshots. */
static const tamiz_snapshot *any_moment(struct run *r, uint64_t *seq)
{
    const uint64_t i = below(r, (uint64_t)r->held_count + 2);
    if (i >= (uint64_t)r->held_count) {
        *seq = r->at->model.seq;
        return NULL;
    }
    *seq = r->held[i].seq[r->at - r->spaces];
    return r->held[i].snapshot;
}

static void step_read(struct run *r)
{
    uint64_t seq;
    const tamiz_read_options options = read_options(r, any_moment(r, &seq));
    const int i = (int)below(r, (uint64_t)r->at->model.count);
    const struct model_version *want = model_get(&r->at->model, i, seq);
    switch (below(r, 3)) {
    case 0: check_get(r, i, want, &options); break;
    case 1: check_get_into(r, i, want, &options); break;
    default: check_exists(r, i, want, &options); break;
    }
}

/* A key that nobody ever wrote. */
static void step_read_stranger(struct run *r)
{
    uint64_t seq;
    const tamiz_read_options options = read_options(r, any_moment(r, &seq));
    const struct slice key = slice_of(r->key, model_key_any(&r->random, r->key));
    void *value;
    size_t size;
    if (model_find(&r->at->model, key) != MODEL_NONE)
        return;
    CHECK(tamiz_get(r->at->db, key.data, key.size, &value, &size, &options) == TAMIZ_NOT_FOUND,
          "get finds a key that was never written", key);
    CHECK(tamiz_exists(r->at->db, key.data, key.size, &options) == TAMIZ_NOT_FOUND,
          "exists finds a key that was never written", key);
}

enum { MULTI_MAX = 40 };

static void step_multi_get(struct run *r)
{
    uint64_t seq;
    const tamiz_read_options options = read_options(r, any_moment(r, &seq));
    const size_t n = below(r, MULTI_MAX + 1);
    int which[MULTI_MAX];
    const void *keys[MULTI_MAX] = {0};
    size_t key_sizes[MULTI_MAX] = {0}, value_sizes[MULTI_MAX];
    void *values[MULTI_MAX];
    tamiz_status statuses[MULTI_MAX];
    for (size_t i = 0; i < n; i++) {
        which[i] = (int)below(r, (uint64_t)r->at->model.count);
        keys[i] = r->at->model.keys[which[i]].data;
        key_sizes[i] = r->at->model.keys[which[i]].size;
    }
    const tamiz_status st =
        tamiz_multi_get(r->at->db, n, keys, key_sizes, values, value_sizes, statuses, &options);
    CHECK(st == TAMIZ_OK, "multi_get failed", NO_KEY);
    for (size_t i = 0; i < n; i++) {
        const struct model_version *want = model_get(&r->at->model, which[i], seq);
        const struct slice key = slice_of(keys[i], key_sizes[i]);
        check_status(r, which[i], want, statuses[i], "multi_get: another status");
        CHECK((values[i] != NULL) == (statuses[i] == TAMIZ_OK), "multi_get: status without value",
              key);
        if (statuses[i] == TAMIZ_OK)
            check_value(r, which[i], want, values[i], value_sizes[i]);
        tamiz_free(values[i]);
    }
}

/* ---- iterators */

/* On past what is there only until the filter drops it; the model leaves it out. */
static void walk_pass(struct run *r, struct walk *w, bool forward)
{
    const struct model *m = &r->at->model;
    while (m->judged && tamiz_iter_valid(w->iter)) {
        size_t size;
        const void *data = tamiz_iter_key(w->iter, &size);
        const int at = model_find(m, slice_of(data, size));
        const struct model_version *v = at == MODEL_NONE ? NULL : model_get(m, at, w->seq);
        if (at < w->begin || at >= w->end || !may_be_gone(r, at, v))
            return;
        data = tamiz_iter_value(w->iter, &size);
        check_value(r, at, v, data, size);
        if (forward)
            tamiz_iter_next(w->iter);
        else
            tamiz_iter_prev(w->iter);
    }
}

static void walk_check(struct run *r, struct walk *w, bool forward, const char *move)
{
    size_t size = 0;
    r->elsewhere = true;
    walk_pass(r, w, forward);
    CHECK(tamiz_iter_status(w->iter) == TAMIZ_OK, move, NO_KEY);
    CHECK(tamiz_iter_valid(w->iter) == (w->at != MODEL_NONE), move,
          w->at == MODEL_NONE ? NO_KEY : model_key_at(&r->at->model, w->at));
    if (w->at == MODEL_NONE) {
        r->elsewhere = false;
        return;
    }
    const void *data = tamiz_iter_key(w->iter, &size);
    CHECK(slice_equal(slice_of(data, size), model_key_at(&r->at->model, w->at)), move,
          slice_of(data, size));
    data = tamiz_iter_value(w->iter, &size);
    check_value(r, w->at, model_get(&r->at->model, w->at, w->seq), data, size);
    r->elsewhere = false;
}

static void walk_close(struct walk *w)
{
    tamiz_iter_close(w->iter);
    free(w->lower);
    free(w->upper);
    free(w->prefix);
    *w = (struct walk){0};
}

/* A copy that ends where its bytes end, so that a read beyond is seen. */
static uint8_t *key_copy(struct slice key)
{
    uint8_t *copy = model_alloc(key.size);
    if (key.size)
        memcpy(copy, key.data, key.size);
    return copy;
}

static struct slice any_key(struct run *r)
{
    if (one_in(r, 4))
        return slice_of(r->key, model_key_any(&r->random, r->key));
    return model_key_at(&r->at->model, (int)below(r, (uint64_t)r->at->model.count));
}

static void walk_bound(struct run *r, struct walk *w, tamiz_read_options *options)
{
    if (one_in(r, 3)) {
        const struct slice lower = any_key(r);
        options->lower = w->lower = key_copy(lower);
        options->lower_size = lower.size;
        w->begin = model_lower_bound(&r->at->model, lower);
    }
    if (one_in(r, 3)) {
        const struct slice upper = any_key(r);
        options->upper = w->upper = key_copy(upper);
        options->upper_size = upper.size;
        w->end = model_lower_bound(&r->at->model, upper);
    }
    if (one_in(r, 4)) {
        const struct slice whole = any_key(r);
        const struct slice prefix = slice_of(whole.data, below(r, whole.size + 1));
        options->prefix = w->prefix = key_copy(prefix);
        options->prefix_size = prefix.size;
        int first = model_lower_bound(&r->at->model, prefix);
        int last = first;
        while (last < r->at->model.count &&
               slice_has_prefix(model_key_at(&r->at->model, last), prefix))
            last++;
        w->begin = first > w->begin ? first : w->begin;
        w->end = last < w->end ? last : w->end;
    }
}

static void walk_open(struct run *r, struct walk *w)
{
    *w = (struct walk){.in = r->at, .end = r->at->model.count, .at = MODEL_NONE};
    tamiz_read_options options = read_options(r, any_moment(r, &w->seq));
    walk_bound(r, w, &options);
    CHECK(tamiz_iter_open(r->at->db, &options, &w->iter) == TAMIZ_OK, "iter_open failed", NO_KEY);
    walk_check(r, w, true, "an iterator is valid before its first seek");
}

static void walk_seek(struct run *r, struct walk *w)
{
    const struct slice target = any_key(r);
    const int at = model_lower_bound(&r->at->model, target);
    if (one_in(r, 2)) {
        tamiz_iter_seek(w->iter, target.data, target.size);
        w->at = model_forward(&r->at->model, at > w->begin ? at : w->begin, w->end, w->seq);
        walk_check(r, w, true, "iterator: seek");
        return;
    }
    const bool there =
        at < r->at->model.count && slice_equal(model_key_at(&r->at->model, at), target);
    const int last = there ? at : at - 1;
    tamiz_iter_seek_for_prev(w->iter, target.data, target.size);
    w->at = model_backward(&r->at->model, last < w->end ? last : w->end - 1, w->begin, w->seq);
    walk_check(r, w, false, "iterator: seek_for_prev");
}

static void walk_step(struct run *r, struct walk *w, bool forward)
{
    if (forward)
        tamiz_iter_next(w->iter);
    else
        tamiz_iter_prev(w->iter);
    if (w->at != MODEL_NONE)
        w->at = forward ? model_forward(&r->at->model, w->at + 1, w->end, w->seq)
                        : model_backward(&r->at->model, w->at - 1, w->begin, w->seq);
    walk_check(r, w, forward, forward ? "iterator: next" : "iterator: prev");
}

static void walk_move(struct run *r, struct walk *w)
{
    const uint64_t move = below(r, 10);
    if (move == 0) {
        tamiz_iter_seek_first(w->iter);
        w->at = model_forward(&r->at->model, w->begin, w->end, w->seq);
        walk_check(r, w, true, "iterator: seek_first");
    } else if (move == 1) {
        tamiz_iter_seek_last(w->iter);
        w->at = model_backward(&r->at->model, w->end - 1, w->begin, w->seq);
        walk_check(r, w, false, "iterator: seek_last");
    } else if (move <= 3) {
        walk_seek(r, w);
    } else {
        const bool forward = one_in(r, 2);
        for (uint64_t n = 1 + below(r, 4); n; n--)
            walk_step(r, w, forward);
    }
}

static void step_walk(struct run *r)
{
    struct walk *w = &r->walks[below(r, WALKS)];
    if (w->iter && one_in(r, 6))
        walk_close(w);
    if (!w->iter)
        walk_open(r, w);
    r->at = w->in;
    for (uint64_t n = 1 + below(r, 8); n; n--)
        walk_move(r, w);
}

/* ---- writes */

static struct model_version any_value(struct run *r)
{
    const uint64_t shape = below(r, 1000);
    const uint64_t most = shape < 850   ? 200
                          : shape < 985 ? 3000
                          : shape < 998 ? 20000
                                        : MODEL_VALUE_MAX;
    return (struct model_version){
        .seed = test_random_u64(&r->random), .size = (uint32_t)below(r, most + 1), .is_put = true};
}

/* Small sets of keys are written again and again, so that versions pile up. */
static int any_written_key(struct run *r)
{
    const int range = one_in(r, 4) ? 40 : r->at->model.count;
    return (int)below(r, (uint64_t)range);
}

static void check_now(struct run *r, int key)
{
    const tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    check_get_into(r, key, model_get(&r->at->model, key, r->at->model.seq), &options);
}

/* ---- the clock: it moves when a step says so, and all that is said of it is exact */

#define SECOND UINT64_C(1000000)

static _Atomic uint64_t model_clock_us = 1000 * SECOND;

static uint64_t model_wall_us(void *ctx)
{
    (void)ctx;
    return atomic_load(&model_clock_us);
}

/* Seconds that the version is to live, or 0. */
static uint64_t any_ttl(struct run *r, struct model_version *version)
{
    const uint64_t ttl = one_in(r, 4) ? 1 + below(r, one_in(r, 8) ? 100000 : 300) : 0;
    version->expires_us = ttl ? r->at->model.now_us + ttl * SECOND : 0;
    return ttl;
}

static void run_set_clock(struct run *r, uint64_t now_us)
{
    for (int i = 0; i < SPACES; i++)
        r->spaces[i].model.now_us = now_us;
    atomic_store(&model_clock_us, now_us);
}

/* An iterator has one moment from when it first needs one, which the model can't know. */
static void step_clock(struct run *r)
{
    for (int i = 0; i < WALKS; i++)
        if (r->walks[i].iter)
            walk_close(&r->walks[i]);
    run_set_clock(r, r->at->model.now_us + 1 + below(r, 100 * SECOND));
    for (int i = 0; i < 5; i++)
        check_now(r, any_written_key(r));
}

static void step_put(struct run *r)
{
    const int i = any_written_key(r);
    const struct slice key = model_key_at(&r->at->model, i);
    struct model_version version = any_value(r);
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    options.sync = one_in(r, 200);
    options.ttl = any_ttl(r, &version);
    model_value(version.seed, version.size, r->value);
    CHECK(tamiz_put(r->at->db, key.data, key.size, r->value, version.size, &options) == TAMIZ_OK,
          "put failed", key);
    model_add(&r->at->model, i, version);
    check_now(r, i);
}

static void step_delete(struct run *r)
{
    const int i = any_written_key(r);
    const struct slice key = model_key_at(&r->at->model, i);
    CHECK(tamiz_delete(r->at->db, key.data, key.size, NULL) == TAMIZ_OK, "delete failed", key);
    model_add(&r->at->model, i, (struct model_version){.is_put = false});
    check_now(r, i);
}

/* Two keys of any kind, in order: what was written, or what never is. Freed by range_free. */
struct key_pair {
    struct slice low, high;
};

static struct key_pair any_range(struct run *r)
{
    struct slice a, b;
    if (one_in(r, 3)) { /* a few neighbours */
        const int i = any_written_key(r), k = i + 1 + (int)below(r, 8);
        a = model_key_at(&r->at->model, i);
        b = model_key_at(&r->at->model, k < r->at->model.count ? k : r->at->model.count - 1);
        a.data = key_copy(a);
    } else {
        a = any_key(r); /* which may stand where the next one will */
        a.data = key_copy(a);
        b = any_key(r);
    }
    b.data = key_copy(b);
    return slice_compare(a, b) > 0 ? (struct key_pair){b, a} : (struct key_pair){a, b};
}

static void range_free(struct key_pair p)
{
    union {
        const uint8_t *borrowed;
        uint8_t *owned;
    } low = {p.low.data}, high = {p.high.data};
    free(low.owned);
    free(high.owned);
}

static void step_delete_range(struct run *r)
{
    const struct key_pair p = any_range(r);
    const int from = model_lower_bound(&r->at->model, p.low),
              to = model_lower_bound(&r->at->model, p.high);
    const tamiz_status st =
        tamiz_delete_range(r->at->db, p.low.data, p.low.size, p.high.data, p.high.size, NULL);
    const bool empty = slice_equal(p.low, p.high);
    CHECK(st == (empty ? TAMIZ_INVALID_ARGUMENT : TAMIZ_OK), "delete_range: another status", p.low);
    CHECK(tamiz_delete_range(r->at->db, p.high.data, p.high.size, p.low.data, p.low.size, NULL) ==
              TAMIZ_INVALID_ARGUMENT,
          "delete_range takes a backward range", p.low);
    if (!empty)
        model_delete_range(&r->at->model, from, to);
    for (int i = from > 0 ? from - 1 : 0; i <= to && i < r->at->model.count && i < from + 3; i++)
        check_now(r, i);
    if (to < r->at->model.count)
        check_now(r, to);
    range_free(p);
}

static void step_batch(struct run *r)
{
    tamiz_batch *batch = tamiz_batch_new();
    const size_t n = below(r, 21);
    struct space *whole = r->at; /* where it is written to */
    size_t ranges = 0;
    int first = MODEL_NONE;
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    struct model_version like = {.is_put = true};
    options.ttl = any_ttl(r, &like);
    assert_non_null(batch);
    for (size_t k = 0; k < n; k++) {
        if (one_in(r, 4)) {
            r->at = &r->spaces[below(r, SPACES)];
            first = MODEL_NONE;
        }
        tamiz *in = r->at == whole && one_in(r, 2) ? NULL : r->at->db;
        const int i = first != MODEL_NONE && one_in(r, 5) ? first : any_written_key(r);
        const struct slice key = model_key_at(&r->at->model, i);
        struct model_version version = {.is_put = false};
        tamiz_status st;
        if (one_in(r, 40)) {
            const struct key_pair p = any_range(r);
            st = tamiz_batch_delete_range(batch, in, p.low.data, p.low.size, p.high.data,
                                          p.high.size);
            const bool empty = slice_equal(p.low, p.high);
            CHECK(st == (empty ? TAMIZ_INVALID_ARGUMENT : TAMIZ_OK), "a batch and a range", p.low);
            if (!empty)
                model_delete_range(&r->at->model, model_lower_bound(&r->at->model, p.low),
                                   model_lower_bound(&r->at->model, p.high));
            ranges += !empty;
            range_free(p);
        }
        if (one_in(r, 4)) {
            st = tamiz_batch_delete(batch, in, key.data, key.size);
        } else {
            version = any_value(r);
            version.expires_us = like.expires_us;
            model_value(version.seed, version.size, r->value);
            st = tamiz_batch_put(batch, in, key.data, key.size, r->value, version.size);
        }
        CHECK(st == TAMIZ_OK, "a batch takes no more", key);
        model_add(&r->at->model, i, version);
        first = first == MODEL_NONE ? i : first;
    }
    CHECK(tamiz_batch_count(batch) == n + ranges, "a batch miscounts", NO_KEY);
    CHECK(tamiz_write(whole->db, batch, &options) == TAMIZ_OK, "write failed", NO_KEY);
    tamiz_batch_free(batch);
    if (first != MODEL_NONE)
        check_now(r, first);
}

/* ---- tables from outside */

/* A table of some keys in a row, or here and there; adds to the model what it has. */
static void build_table(struct run *r, const char *path)
{
    const int from = any_written_key(r);
    const int stride = one_in(r, 2) ? 1 : (int)(1 + below(r, 40));
    int left = (int)(1 + below(r, 30));
    tamiz_table_writer *w;
    CHECK(tamiz_table_writer_open(path, &r->options, &w) == TAMIZ_OK, "no table writer", NO_KEY);
    for (int i = from; i < r->at->model.count && left > 0; i += stride, left--) {
        const struct slice key = model_key_at(&r->at->model, i);
        struct model_version version = {.is_put = false};
        tamiz_status st;
        if (one_in(r, 4)) {
            st = tamiz_table_writer_delete(w, key.data, key.size);
        } else {
            version = any_value(r);
            model_value(version.seed, version.size, r->value);
            st = tamiz_table_writer_put(w, key.data, key.size, r->value, version.size);
        }
        CHECK(st == TAMIZ_OK, "a table writer takes no more", key);
        model_add(&r->at->model, i, version);
    }
    CHECK(tamiz_table_writer_finish(w, NULL, NULL) == TAMIZ_OK, "no table came of it", NO_KEY);
}

static const tamiz_env *run_env(const struct run *r)
{
    return r->env ? r->env : tamiz_env_posix();
}

/* One to three of them, which may overlap each other and anything else. */
static void step_ingest(struct run *r)
{
    const tamiz_env *env = run_env(r);
    char paths[3][128];
    const char *list[3];
    const size_t n = 1 + below(r, 3);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%s-in-%zu", r->path, i);
        list[i] = paths[i];
        build_table(r, paths[i]);
    }
    CHECK(tamiz_ingest(r->at->db, list, n) == TAMIZ_OK, "ingest failed", NO_KEY);
    for (size_t i = 0; i < n; i++)
        CHECK(env->ops->remove(env->ctx, paths[i]) == 0, "an ingested file is gone", NO_KEY);
    check_now(r, any_written_key(r));
}

/* ---- snapshots */

static void step_snapshot(struct run *r)
{
    if (r->held_count == SNAPSHOTS || (r->held_count && one_in(r, 3))) {
        const int i = (int)below(r, (uint64_t)r->held_count);
        tamiz_snapshot_release(r->held[i].snapshot);
        r->held[i] = r->held[--r->held_count];
        return;
    }
    struct held *held = &r->held[r->held_count];
    CHECK(tamiz_snapshot_take(r->at->db, &held->snapshot) == TAMIZ_OK, "no snapshot", NO_KEY);
    for (int i = 0; i < SPACES; i++)
        held->seq[i] = r->spaces[i].model.seq;
    held->step = r->step;
    r->held_count++;
}

/* ---- everything at once */

static void check_scan(struct run *r, const tamiz_snapshot *snapshot, uint64_t seq, bool forward)
{
    struct walk w = {.end = r->at->model.count, .at = MODEL_NONE, .seq = seq};
    const tamiz_read_options options = read_options(r, snapshot);
    CHECK(tamiz_iter_open(r->at->db, &options, &w.iter) == TAMIZ_OK, "iter_open failed", NO_KEY);
    if (forward) {
        tamiz_iter_seek_first(w.iter);
        w.at = model_forward(&r->at->model, 0, w.end, seq);
    } else {
        tamiz_iter_seek_last(w.iter);
        w.at = model_backward(&r->at->model, w.end - 1, 0, seq);
    }
    walk_check(r, &w, forward, forward ? "scan: first" : "scan: last");
    while (w.at != MODEL_NONE)
        walk_step(r, &w, forward);
    tamiz_iter_close(w.iter);
}

static void check_moment(struct run *r, const tamiz_snapshot *snapshot, uint64_t seq)
{
    const tamiz_read_options options = read_options(r, snapshot);
    for (int i = 0; i < r->at->model.count; i++)
        check_get_into(r, i, model_get(&r->at->model, i, seq), &options);
    check_scan(r, snapshot, seq, true);
    check_scan(r, snapshot, seq, false);
}

/* All keyspaces now. */
static void check_all_now(struct run *r)
{
    for (int i = 0; i < SPACES; i++) {
        r->at = &r->spaces[i];
        check_moment(r, NULL, r->at->model.seq);
    }
}

static void check_everything(struct run *r)
{
    check_all_now(r);
    for (int k = 0; k < SPACES; k++) {
        r->at = &r->spaces[k];
        for (int i = 0; i < r->held_count; i++)
            check_moment(r, r->held[i].snapshot, r->held[i].seq[k]);
    }
}

/* ---- the store's own work */

static tamiz_verdict judge(void *ctx, const tamiz_merged *entry, tamiz_change *change)
{
    uint8_t *changed;
    const uint64_t word = entry->value_size < 8 ? 0 : load_u64(entry->value);
    const tamiz_verdict verdict = model_verdict(entry->key_size, word, entry->value_size);
    (void)ctx;
    if (verdict != TAMIZ_CHANGE)
        return verdict;
    changed = model_alloc(entry->value_size);
    memcpy(changed, entry->value, entry->value_size);
    store_u64(changed, model_changed_word(entry->key_size, word));
    const tamiz_status st = tamiz_change_value(change, changed, entry->value_size);
    free(changed);
    return st == TAMIZ_OK ? TAMIZ_CHANGE : TAMIZ_KEEP;
}

static void side_open(struct run *r, tamiz *db, tamiz **side)
{
    tamiz_options o = r->options;
    o.compaction_filter.judge = judge;
    CHECK(tamiz_keyspace_open(db, "side", &o, side) == TAMIZ_OK, "no keyspace", NO_KEY);
}

static void run_open(struct run *r)
{
    tamiz **db = &r->spaces[DEFAULT].db;
    tamiz_options o = r->options;
    o.compaction_filter.judge = r->set->judged ? judge : NULL;
    CHECK(tamiz_open(r->path, &o, db) == TAMIZ_OK, "open failed", NO_KEY);
    CHECK(tamiz_health(*db) == TAMIZ_OK, "health after open", NO_KEY);
    side_open(r, *db, &r->spaces[SIDE].db);
}

static void run_close(struct run *r)
{
    CHECK(tamiz_close(r->spaces[SIDE].db) == TAMIZ_INVALID_ARGUMENT, "half a close", NO_KEY);
    CHECK(tamiz_close(r->spaces[DEFAULT].db) == TAMIZ_OK, "close failed", NO_KEY);
}

static void run_let_go(struct run *r)
{
    for (int i = 0; i < WALKS; i++)
        walk_close(&r->walks[i]);
    while (r->held_count)
        tamiz_snapshot_release(r->held[--r->held_count].snapshot);
}

static void reader_close(struct run *r)
{
    if (r->reader)
        CHECK(tamiz_close(r->reader) == TAMIZ_OK, "close of the reader failed", NO_KEY);
    r->reader = NULL;
}

/* It sees what was there: also what the filter judged since. */
static void check_reader(struct run *r, uint64_t seq)
{
    const tamiz_read_options options = read_options(r, NULL);
    for (int i = 0; i < r->at->model.count; i++) {
        r->elsewhere = true;
        check_get_into(r, i, model_get(&r->at->model, i, seq), &options);
    }
    r->elsewhere = false;
    check_scan(r, NULL, seq, true);
    check_scan(r, NULL, seq, false);
}

/* A second handle that only reads must see the moment it was opened or refreshed at. */
static void step_reader(struct run *r)
{
    const bool opens = !r->reader;
    if (opens) {
        tamiz_options o = r->options;
        o.read_only = true;
        CHECK(tamiz_open(r->path, &o, &r->reader) == TAMIZ_OK, "open for reading failed", NO_KEY);
    }
    const bool moves = opens || one_in(r, 2);
    if (moves && !opens)
        CHECK(tamiz_refresh(r->reader) == TAMIZ_OK, "refresh failed", NO_KEY);
    if (moves)
        side_open(r, r->reader, &r->reader_side);
    for (int i = 0; i < SPACES; i++) {
        r->at = &r->spaces[i];
        if (moves)
            r->reader_seq[i] = r->at->model.seq;
        tamiz *writer = r->at->db;
        r->at->db = i == SIDE ? r->reader_side : r->reader;
        check_reader(r, r->reader_seq[i]);
        r->at->db = writer;
    }
    if (one_in(r, 4))
        reader_close(r);
}

static void step_reopen(struct run *r)
{
    if (r->held_count || r->walks[0].iter)
        CHECK(tamiz_close(r->spaces[DEFAULT].db) == TAMIZ_BUSY,
              "close with an open snapshot or iterator", NO_KEY);
    run_let_go(r);
    run_close(r);
    run_open(r);
    check_all_now(r);
}

/* All that it has is gone, at every moment; but an iterator goes on. */
static void step_drop(struct run *r)
{
    struct space *side = &r->spaces[SIDE];
    tamiz *db = r->spaces[DEFAULT].db, *dropped = side->db;
    CHECK(tamiz_keyspace_drop(db, "side") == TAMIZ_OK, "drop failed", NO_KEY);
    CHECK(tamiz_put(dropped, "k", 1, "", 0, NULL) == TAMIZ_CLOSED, "a dropped handle", NO_KEY);
    model_delete_range(&side->model, 0, side->model.count);
    for (int i = 0; i < r->held_count; i++)
        r->held[i].seq[SIDE] = side->model.seq;
    side_open(r, db, &side->db);
    r->at = side;
    check_moment(r, NULL, side->model.seq);
}

/* The life goes on in a copy, which must be what the store was. */
static void step_checkpoint(struct run *r)
{
    char copy[sizeof r->path];
    (void)snprintf(copy, sizeof copy, "%s/store-%llu", r->directory, (unsigned long long)r->step);
    CHECK(tamiz_checkpoint(r->at->db, copy) == TAMIZ_OK, "checkpoint failed", NO_KEY);
    reader_close(r);
    run_let_go(r);
    run_close(r);
    if (!r->env)
        CHECK(tamiz_destroy(r->path) == TAMIZ_OK, "destroy failed", NO_KEY);
    memcpy(r->path, copy, sizeof copy);
    run_open(r);
    check_all_now(r);
}

static void step_compact(struct run *r)
{
    struct slice a = any_key(r); /* which may stand where the next one will */
    uint8_t *from = key_copy(a);
    a.data = from;
    const struct slice b = any_key(r);
    const bool swapped = slice_compare(a, b) > 0;
    const struct slice low = swapped ? b : a, high = swapped ? a : b;
    const tamiz_status st =
        one_in(r, 3) ? tamiz_compact(r->at->db, NULL, 0, NULL, 0)
                     : tamiz_compact(r->at->db, low.data, low.size, high.data, high.size);
    /* An empty range may be refused, as long as nothing else is. */
    const bool empty = slice_equal(low, high);
    CHECK(st == TAMIZ_OK || (empty && st == TAMIZ_INVALID_ARGUMENT), "compact failed", low);
    free(from);
}

static void step_compact_table(struct run *r)
{
    const unsigned level = (unsigned)below(r, one_in(r, 4) ? TAMIZ_LEVELS : 3);
    const tamiz_status st = tamiz_compact_table(r->at->db, level, below(r, 6));
    CHECK(st == TAMIZ_OK || st == TAMIZ_NOT_FOUND, "compact_table failed", NO_KEY);
}

static void step_background(struct run *r)
{
    bool more = true;
    for (uint64_t n = 1 + below(r, 4); n && more; n--)
        CHECK(tamiz_step(r->spaces[DEFAULT].db, below(r, 1000), &more) == TAMIZ_OK, "step failed",
              NO_KEY);
}

static void step_flush(struct run *r)
{
    CHECK(tamiz_flush(r->at->db) == TAMIZ_OK, "flush failed", NO_KEY);
}

static void step_sync(struct run *r)
{
    CHECK(tamiz_sync(r->at->db) == TAMIZ_OK, "sync failed", NO_KEY);
}

static void step_verify(struct run *r)
{
    tamiz_report report = TAMIZ_REPORT_INIT;
    CHECK(tamiz_verify(r->at->db, &report) == TAMIZ_OK, "verify finds damage", NO_KEY);
    CHECK(tamiz_health(r->at->db) == TAMIZ_OK, "the background is ill", NO_KEY);
}

/* ---- the run */

static const struct step {
    uint32_t weight; /* of 10,000 */
    void (*take)(struct run *r);
} steps[] = {
    {3835, step_put},          {1200, step_delete},      {300, step_batch}, {1800, step_read},
    {600, step_read_stranger}, {150, step_multi_get},    {1200, step_walk}, {300, step_snapshot},
    {40, step_flush},          {40, step_compact_table}, {8, step_compact}, {6, step_reopen},
    {20, step_sync},           {320, step_background},   {6, step_verify},  {10, check_everything},
    {26, step_ingest},         {4, step_checkpoint},     {15, step_reader}, {40, step_delete_range},
    {74, step_clock},          {6, step_drop},
};

static void run_step(struct run *r)
{
    uint64_t n = below(r, 10000);
    r->at = &r->spaces[one_in(r, 4) ? SIDE : DEFAULT];
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (n < steps[i].weight) {
            steps[i].take(r);
            return;
        }
        n -= steps[i].weight;
    }
}

static uint64_t environment_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    if (text && strcmp(text, "time") == 0)
        return (uint64_t)time(NULL);
    return text ? strtoull(text, NULL, 0) : fallback;
}

static void run_begin(struct run *r, const struct option_set *set)
{
    *r = (struct run){.set = set};
    r->seed = environment_number("TAMIZ_MODEL_SEED", 20261130);
    r->steps = environment_number("TAMIZ_MODEL_STEPS", 24000);
    r->random = (struct test_random){r->seed};
    r->value = model_alloc(MODEL_VALUE_MAX);
    r->key = model_alloc(MODEL_KEY_MAX);
    r->at = r->spaces;
    model_init(&r->spaces[DEFAULT].model, &r->random, set->keys);
    model_init(&r->spaces[SIDE].model, &r->random, set->keys / 3);
    r->spaces[DEFAULT].model.judged = set->judged;
    r->spaces[SIDE].model.judged = true;
    tamiz_options_init(&r->options);
    CHECK(tamiz_options_set(&r->options, set->text) == TAMIZ_OK, "options refused", NO_KEY);
    if (set->in_memory) {
        r->env = tamiz_env_memory_new();
        assert_non_null(r->env);
        (void)snprintf(r->path, sizeof r->path, "/store");
    } else {
        test_directory_make(r->directory, sizeof r->directory);
        (void)snprintf(r->path, sizeof r->path, "%s/store", r->directory);
    }
    const tamiz_env *env = run_env(r);
    r->clocked_ops = *env->ops;
    r->clocked_ops.wall_us = model_wall_us;
    r->clocked = (tamiz_env){&r->clocked_ops, env->ctx};
    r->options.env = &r->clocked;
    run_set_clock(r, atomic_load(&model_clock_us));
    run_open(r);
}

static void run_end(struct run *r)
{
    reader_close(r);
    run_let_go(r);
    run_close(r);
    if (r->env) {
        tamiz_env_memory_free(r->env);
    } else {
        CHECK(tamiz_destroy(r->path) == TAMIZ_OK, "destroy failed", NO_KEY);
        test_directory_remove(r->directory);
    }
    for (int i = 0; i < SPACES; i++)
        model_free(&r->spaces[i].model);
    free(r->value);
    free(r->key);
}

/* What the store went through; a set that stays in its memtable would prove little. */
static void run_tell(struct run *r, uint64_t last)
{
    tamiz_stats stats = TAMIZ_STATS_INIT;
    r->at = r->spaces;
    CHECK(tamiz_stats_get(r->at->db, &stats) == TAMIZ_OK, "no statistics", NO_KEY);
    int deepest = 0;
    for (int i = 0; i < TAMIZ_LEVELS; i++)
        deepest = stats.level[i].tables ? i : deepest;
    print_message(
        "model: set %s: %llu operations, %d keys, %llu versions; since the last open %llu "
        "flushes, %llu compactions, deepest level %d, %llu values dropped by the filter, %llu "
        "changed\n",
        r->set->name, (unsigned long long)last, r->at->model.count,
        (unsigned long long)r->at->model.seq, (unsigned long long)stats.flushes,
        (unsigned long long)stats.compactions, deepest,
        (unsigned long long)stats.compaction_filter_dropped,
        (unsigned long long)stats.compaction_filter_changed);
}

static void store_and_model_agree_at_every_step(void **state)
{
    struct run run, *r = &run;
    run_begin(r, *state);
    const uint64_t last = r->steps / r->set->slowness;
    for (r->step = 0; r->step < last; r->step++)
        run_step(r);
    run_tell(r, last);
    check_everything(r);
    step_reopen(r);
    for (int i = 0; i < SPACES; i++)
        CHECK(tamiz_compact(r->spaces[i].db, NULL, 0, NULL, 0) == TAMIZ_OK, "compact failed",
              NO_KEY);
    check_everything(r);
    run_end(r);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const size_t size = strlen(argv[i]);
        if (strncmp(name, argv[i], size) == 0 && (name[size] == 0 || name[size] == '-'))
            return true;
    }
    return argc <= 1;
}

int main(int argc, char **argv)
{
    int failures = 0, runs = 0;
    for (size_t i = 0; i < SETS; i++) {
        struct option_set set = option_sets[i];
        if (!wanted(set.name, argc, argv))
            continue;
        runs++;
        const struct CMUnitTest tests[] = {
            {set.name, store_and_model_agree_at_every_step, NULL, NULL, &set}};
        failures += cmocka_run_group_tests_name(set.name, tests, NULL, NULL);
    }
    if (runs < argc - 1)
        print_error("model_test: no such set of options among the arguments\n");
    return runs < argc - 1 || runs == 0 ? 2 : failures;
}
