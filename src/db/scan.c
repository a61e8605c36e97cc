/* SPDX-License-Identifier: MIT */
#include "db/scan.h"

#include <assert.h>

#include "db/expiry.h"
#include "db/read_options.h"
#include "table/merge.h"

enum { ROOM_KEPT = 4096 }; /* of each buffer, in the park */

/* ---- positions ---- */

static void land(struct tamiz_iter *it, struct slice key, struct slice value, bool backwards)
{
    it->valid = true;
    it->backwards = backwards;
    it->key = key;
    it->value = value;
}

static void fail(struct tamiz_iter *it, tamiz_status status)
{
    it->valid = false;
    it->status = status;
}

static bool save(struct tamiz_iter *it, struct buf *to, struct slice from)
{
    if (__builtin_expect(to->capacity >= from.size, 1)) {
        bytes_copy(to->data, from.data, from.size);
        to->size = from.size;
        to->failed = false;
        return true;
    }
    buf_clear(to);
    buf_slice_append(to, from);
    if (!to->failed)
        return true;
    fail(it, op_fail_memory(&it->op));
    return false;
}

static bool above_upper(const struct tamiz_iter *it, struct slice key)
{
    return it->has_upper && slice_compare(key, buf_slice(&it->upper)) >= 0;
}

static bool below_lower(const struct tamiz_iter *it, struct slice key)
{
    return it->has_lower && slice_compare(key, buf_slice(&it->lower)) < 0;
}

/* ---- range deletes ---- */

enum { PASS_STEPS = 4 }; /* dead versions of one piece that are stepped over before a seek */

/* The piece that hides the merge's version, or NULL. */
static inline const struct cover *cover_of(struct tamiz_iter *it)
{
    if (__builtin_expect(it->covers.count == 0, 1))
        return NULL;
    const struct cover *c = covers_find(&it->covers, it->merge->key);
    return c && c->seq > stamp_seq(it->merge->stamp) ? c : NULL;
}

/* Past the merge's version, which the piece hides, and more of what it hides. */
static void pass(struct tamiz_iter *it, const struct cover *c, bool backwards)
{
    const struct merge_past past = {c->source + 1, it->covers.newest, c->seq};
    it->passed = it->passing == it->covers.stretch ? it->passed + 1 : 0;
    it->passing = it->covers.stretch;
    if (it->passed >= PASS_STEPS && merge_skip(it->merge, &past, backwards ? c->from : c->to))
        return;
    if (backwards)
        iter_prev(it->merge);
    else
        iter_next(it->merge);
}

/* ---- settling ---- */

/* Is the merge's version, no plain put, a value whose time has not come? *value is the user's then.
 * Fails the iterator where it is damaged. */
static __attribute__((noinline)) bool is_in_time(struct tamiz_iter *it, struct slice *value)
{
    if (stamp_kind(it->merge->stamp) != KIND_EXPIRING)
        return false;
    const tamiz_status st = expiry_judge(&it->op, it->store, &it->now_us, value);
    if (st < 0)
        fail(it, st);
    return st == TAMIZ_OK;
}

/* From the merge's position on, to the first visible entry whose key is not saved_key (where
 * `skip`). */
static void settle_forwards(struct tamiz_iter *it, bool skip)
{
    struct iter *m = it->merge;
    const struct cover *hidden;
    while (m->valid) {
        it->steps++;
        if (skip && slice_equal(m->key, buf_slice(&it->saved_key))) {
            iter_next(m);
            continue;
        }
        skip = false;
        if (above_upper(it, m->key))
            break;
        if (m->stamp > it->stamp_max) {
            iter_next(m);
            continue;
        }
        hidden = cover_of(it);
        if (hidden) {
            pass(it, hidden, false);
            continue;
        }
        /* The newest visible version decides over all older ones of its key. */
        if (!save(it, &it->saved_key, m->key))
            return;
        struct slice value = m->value;
        if (stamp_kind(m->stamp) == KIND_PUT || is_in_time(it, &value)) {
            land(it, buf_slice(&it->saved_key), value, false);
            return;
        }
        if (it->status < 0)
            return;
        skip = true;
        iter_next(m);
    }
    fail(it, m->status);
}

/* From the merge's position backwards, to the newest visible version of the first key that has one.
 * Versions of a key come oldest first. */
static void settle_backwards(struct tamiz_iter *it)
{
    struct iter *m = it->merge;
    const struct cover *hidden;
    bool have = false, live = false;
    while (m->valid) {
        it->steps++;
        if (have && !slice_equal(m->key, buf_slice(&it->saved_key))) {
            if (live)
                break;
            have = false;
        }
        if (!have && below_lower(it, m->key))
            break;
        if (m->stamp > it->stamp_max) {
            iter_prev(m);
            continue;
        }
        hidden = cover_of(it);
        if (hidden) { /* older than what hides it, as all of its key so far: as good as not there */
            pass(it, hidden, true);
            continue;
        }
        if (!have && !save(it, &it->saved_key, m->key))
            return;
        have = true;
        struct slice value = m->value;
        live = stamp_kind(m->stamp) == KIND_PUT || is_in_time(it, &value);
        if (it->status < 0 || (live && !save(it, &it->saved_value, value)))
            return;
        iter_prev(m);
    }
    if (m->status != TAMIZ_OK)
        fail(it, m->status);
    else if (have && live)
        land(it, buf_slice(&it->saved_key), buf_slice(&it->saved_value), true);
    else
        fail(it, TAMIZ_OK);
}

static void begin(struct tamiz_iter *it)
{
    it->valid = false;
    it->status = TAMIZ_OK;
    it->steps = 0;
    op_forgive(&it->op);
}

static void begin_seek(struct tamiz_iter *it)
{
    begin(it);
    counter_add(&it->count.seeks, 1);
}

static tamiz_status finish(struct tamiz_iter *it)
{
    return it->status < 0 ? op_publish(&it->op, it->status) : it->status;
}

/* NULL is the empty key only with size 0. */
static bool refuse_key(struct tamiz_iter *it, const void *key, size_t key_size)
{
    if (key || key_size == 0)
        return false;
    begin(it);
    fail(it, op_fail(&it->op, TAMIZ_INVALID_ARGUMENT, "seek: key: NULL with size %zu", key_size));
    (void)finish(it);
    return true;
}

/* ---- public ---- */

void tamiz_iter_seek_first(tamiz_iter *it)
{
    if (!it)
        return;
    begin_seek(it);
    if (it->has_lower)
        iter_seek(it->merge, buf_slice(&it->lower), UINT64_MAX);
    else
        iter_seek_first(it->merge);
    settle_forwards(it, false);
    (void)finish(it);
}

void tamiz_iter_seek_last(tamiz_iter *it)
{
    if (!it)
        return;
    begin_seek(it);
    if (it->has_upper)
        iter_seek_before(it->merge, buf_slice(&it->upper), UINT64_MAX);
    else
        iter_seek_last(it->merge);
    settle_backwards(it);
    (void)finish(it);
}

void tamiz_iter_seek(tamiz_iter *it, const void *key, size_t key_size)
{
    if (!it || refuse_key(it, key, key_size))
        return;
    const struct slice to = slice_of(key, key_size);
    if (below_lower(it, to)) {
        tamiz_iter_seek_first(it);
        return;
    }
    begin_seek(it);
    iter_seek(it->merge, to, UINT64_MAX);
    settle_forwards(it, false);
    (void)finish(it);
}

void tamiz_iter_seek_for_prev(tamiz_iter *it, const void *key, size_t key_size)
{
    if (!it || refuse_key(it, key, key_size))
        return;
    const struct slice to = slice_of(key, key_size);
    if (above_upper(it, to)) {
        tamiz_iter_seek_last(it);
        return;
    }
    begin_seek(it);
    /* Before (key, oldest stamp there can be) and not before it: the key's own versions are
     * included. */
    iter_seek_after(it->merge, to);
    settle_backwards(it);
    (void)finish(it);
}

void tamiz_iter_next(tamiz_iter *it)
{
    if (!tamiz_iter_valid(it))
        return;
    const bool turn = it->backwards;
    begin(it);
    if (turn) {
        iter_seek(it->merge, buf_slice(&it->saved_key), UINT64_MAX);
    } else { /* it stands on what was shown */
        it->steps++;
        iter_next(it->merge);
    }
    settle_forwards(it, true);
    (void)finish(it);
}

void tamiz_iter_prev(tamiz_iter *it)
{
    if (!tamiz_iter_valid(it))
        return;
    const bool turn = !it->backwards;
    begin(it);
    if (turn)
        iter_seek_before(it->merge, buf_slice(&it->saved_key), UINT64_MAX);
    settle_backwards(it);
    (void)finish(it);
}

bool tamiz_iter_valid(const tamiz_iter *it)
{
    return it && it->valid;
}

static const uint8_t nothing[1];

static const void *part(const tamiz_iter *it, struct slice s, size_t *size)
{
    const bool valid = tamiz_iter_valid(it);
    if (size)
        *size = valid ? s.size : 0;
    return valid ? (s.size ? s.data : nothing) : NULL;
}

const void *tamiz_iter_key(const tamiz_iter *it, size_t *size)
{
    return part(it, it ? it->key : slice_of(NULL, 0), size);
}

const void *tamiz_iter_value(const tamiz_iter *it, size_t *size)
{
    return part(it, it ? it->value : slice_of(NULL, 0), size);
}

tamiz_status tamiz_iter_status(const tamiz_iter *it)
{
    return it ? it->status : TAMIZ_INVALID_ARGUMENT;
}

uint64_t tamiz_iter_steps(const tamiz_iter *it)
{
    return it ? it->steps : 0;
}

/* ---- sources ---- */

/* The bounds: lower and upper, narrowed by the prefix: [prefix, the first key beyond all that begin
 * with it). */
static tamiz_status take_bounds(struct tamiz_iter *it, const tamiz_read_options *o)
{
    if ((o->lower_size > KEY_SIZE_MAX) || (o->upper_size > KEY_SIZE_MAX) ||
        (o->prefix_size > KEY_SIZE_MAX))
        return op_fail(&it->op, TAMIZ_INVALID_ARGUMENT, "a bound of more than %u bytes",
                       KEY_SIZE_MAX);
    it->has_lower = o->lower != NULL;
    buf_append(&it->lower, o->lower, o->lower ? o->lower_size : 0);
    it->has_upper = o->upper != NULL;
    buf_append(&it->upper, o->upper, o->upper ? o->upper_size : 0);
    if (o->prefix && o->prefix_size) {
        const struct slice prefix = slice_of(o->prefix, o->prefix_size);
        if (!it->has_lower || slice_compare(prefix, buf_slice(&it->lower)) > 0) {
            it->has_lower = true;
            buf_clear(&it->lower);
            buf_slice_append(&it->lower, prefix);
        }
        size_t size = prefix.size;
        while (size && prefix.data[size - 1] == 0xff)
            size--;
        struct buf beyond = buf_init(&it->store->alloc);
        buf_append(&beyond, prefix.data, size);
        if (size && !beyond.failed)
            beyond.data[size - 1]++;
        if (size &&
            (!it->has_upper || slice_compare(buf_slice(&beyond), buf_slice(&it->upper)) < 0)) {
            it->has_upper = true;
            buf_clear(&it->upper);
            buf_slice_append(&it->upper, buf_slice(&beyond));
        }
        it->upper.failed |= beyond.failed;
        buf_free(&beyond);
    }
    it->range = (struct read_range){it->has_lower, it->has_upper, buf_slice(&it->lower),
                                    buf_slice(&it->upper)};
    return it->lower.failed || it->upper.failed ? op_fail_memory(&it->op) : TAMIZ_OK;
}

/* The bounds are not changed any more: the pieces borrow their bytes. */
static tamiz_status take_covers(struct tamiz_iter *it, uint64_t seq)
{
    const struct slice lower = buf_slice(&it->lower), upper = buf_slice(&it->upper);
    return covers_init(&it->op, &it->store->alloc, it->view, seq, it->has_lower ? &lower : NULL,
                       it->has_upper ? &upper : NULL, &it->covers);
}

/* One source a memtable and a run, newest first. */
static tamiz_status open_sources(struct tamiz_iter *it, const tamiz_read_options *options)
{
    const struct view *v = it->view;
    const size_t most = v->memtable_count + v->version->run_count;
    struct iter **sources = mem_new_array(&it->store->alloc, most, sizeof *sources);
    if (!sources)
        return op_fail_memory(&it->op);
    const struct read_range *range = it->has_lower || it->has_upper ? &it->range : NULL;
    size_t n = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && i < v->memtable_count; i++) {
        sources[n] = memtable_iter(&it->op, v->memtables[i]->memtable);
        ok = sources[n] != NULL;
        n += ok;
    }
    for (uint32_t i = 0; ok && i < v->version->run_count; i++) {
        struct table_read how = read_options_table(options);
        how.level = (int)v->version->runs[i].level;
        sources[n] = run_iter(&it->op, &v->version->runs[i], &how, range);
        ok = sources[n] != NULL;
        n += ok;
    }
    if (ok)
        it->merge = merge_iter(&it->op, sources, n);
    else
        while (n)
            iter_close(sources[--n]);
    mem_free(&it->store->alloc, sources, most * sizeof *sources);
    return it->merge ? TAMIZ_OK : it->op.status;
}

static void iter_link(struct tamiz_iter *it)
{
    struct store *s = it->store;
    mutex_lock(&s->mutex);
    it->following = s->iters;
    if (s->iters)
        s->iters->previous = it;
    s->iters = it;
    mutex_unlock(&s->mutex);
}

static void iter_unlink(struct tamiz_iter *it)
{
    struct store *s = it->store;
    assert(mutex_held(&s->mutex));
    if (it->previous)
        it->previous->following = it->following;
    else
        s->iters = it->following;
    if (it->following)
        it->following->previous = it->previous;
    counters_sum(&it->db->ended, &it->count);
}

/* Unlinked by now. */
static void iter_free(struct tamiz_iter *it)
{
    const struct alloc *alloc = &it->store->alloc;
    iter_close(it->merge);
    covers_free(&it->covers, alloc);
    view_unref(it->view);
    buf_free(&it->lower);
    buf_free(&it->upper);
    buf_free(&it->saved_key);
    buf_free(&it->saved_value);
    mem_free(alloc, it, sizeof *it);
}

static void iter_end(struct tamiz_iter *it)
{
    struct store *s = it->store;
    mutex_lock(&s->mutex);
    iter_unlink(it);
    mutex_unlock(&s->mutex);
    iter_free(it);
}

/* ---- the park ---- */

void iters_forget(struct tamiz *db, const struct view *view)
{
    assert(mutex_held(&db->store->mutex));
    for (size_t i = 0; i < PARK_PLACES; i++) {
        struct tamiz_iter *it = park_take_from(&db->park.places[i]);
        if (!it || (view && it->view != view && park_put(&db->park, it)))
            continue;
        iter_unlink(it);
        iter_free(it);
    }
}

/* Would a closed iterator with these options do for one who has none? */
static bool is_plain(const tamiz_read_options *o)
{
    return !o->lower && !o->upper && !o->prefix && !o->trace && o->fill_cache && o->use_filters;
}

static void trim(struct buf *b)
{
    if (b->capacity > ROOM_KEPT)
        buf_free(b);
}

/* Into the park; false: it is still the caller's. */
static bool iter_park(struct tamiz_iter *it)
{
    const struct view *view = it->view; /* once it is parked it may be anybody's */
    struct tamiz *db = it->db;
    if (!it->plain || it->status < 0 || covers_possible(view))
        return false;
    iter_rest(it->merge);
    trim(&it->saved_key);
    trim(&it->saved_value);
    struct park_place *place = park_put(&db->park, it);
    if (!place)
        return false;
    return atomic_load_explicit(&db->view, memory_order_seq_cst) == view ||
           !park_take_back(place, it);
}

/* From the park, over the view as it is now. NULL: a new one has to be made. */
static struct tamiz_iter *iter_again(struct tamiz *db, const tamiz_read_options *options)
{
    uint64_t seq;
    struct tamiz_iter *it = is_plain(options) ? park_take(&db->park) : NULL;
    if (!it)
        return NULL;
    if (view_borrow(db, &seq) != it->view || covers_possible(it->view)) {
        iter_end(it);
        return NULL;
    }
    begin(it);
    it->backwards = false;
    it->now_us = 0;
    it->stamp_max = stamp_of(read_options_seq(options, seq), 0) | 15;
    return it;
}

/* ---- opening ---- */

static struct tamiz_iter *iter_new(struct tamiz *db, const tamiz_read_options *options)
{
    struct store *s = db->store;
    struct tamiz_iter *it = mem_new_array(&s->alloc, 1, sizeof *it);
    if (!it)
        return NULL;
    it->db = db;
    it->store = s;
    op_init(&it->op, &s->alloc, &it->count);
    op_listen(&it->op, options->trace);
    it->lower = it->upper = it->saved_key = it->saved_value = buf_init(&s->alloc);
    iter_link(it);
    uint64_t seq;
    struct epoch_slot *slot = epoch_enter_at(&s->epoch, db->slots);
    it->view = view_acquire(db, &seq);
    epoch_leave(slot);
    it->stamp_max = stamp_of(read_options_seq(options, seq), 0) | 15;
    return it;
}

tamiz_status tamiz_iter_open(tamiz *db, const tamiz_read_options *options, tamiz_iter **iter)
{
    if (!iter)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "iter: NULL where the handle should go");
    *iter = NULL;
    tamiz_read_options room;
    tamiz_status st = store_check(db);
    if (st == TAMIZ_OK)
        st = read_options_resolve(db, &options, &room);
    if (st != TAMIZ_OK)
        return st;
    struct tamiz_iter *it = iter_again(db, options);
    if (it) {
        *iter = it;
        return TAMIZ_OK;
    }
    it = iter_new(db, options);
    if (!it)
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    TRY(take_bounds(it, options));
    TRY(take_covers(it, stamp_seq(it->stamp_max)));
    TRY(open_sources(it, options));
    it->plain = is_plain(options);
    *iter = it;
    return TAMIZ_OK;
done:
    st = op_publish(&it->op, st);
    iter_end(it);
    return st;
}

void tamiz_iter_close(tamiz_iter *it)
{
    if (it && !iter_park(it))
        iter_end(it);
}
