/* SPDX-License-Identifier: MIT */
#include "db/scan.h"

#include "db/expiry.h"

/* ---- positions ---- */

static void land(struct tamiz_iter *it, struct slice key, struct slice value, bool backwards)
{
    it->valid = true;
    it->backwards = backwards;
    it->key = key;
    it->value = value;
}

/* Lands on the merge's version, which is the user's, with this value. What follows in its block may
 * be stepped to where no key stands there twice, all is to be seen, and nothing comes between. */
static void land_forwards(struct tamiz_iter *it, struct slice value)
{
    const struct iter *m = it->merge;
    land(it, buf_slice(&it->saved_key), value, false);
    if (!m->walk || m->walk->newest > it->stamp_max || it->covers.count)
        return;
    it->walk = m->walk;
    it->limit = merge_limit(m);
    if (it->has_upper && merge_limit_admits(&it->limit, buf_slice(&it->upper)))
        it->limit = merge_limit_at(buf_slice(&it->upper));
}

static void fail(struct tamiz_iter *it, tamiz_status status)
{
    it->valid = false;
    it->status = status;
}

/* `from` may be a part of what is saved there. */
static bool save(struct tamiz_iter *it, struct buf *to, struct slice from)
{
    if (__builtin_expect(to->capacity >= from.size, 1)) {
        bytes_move(to->data, from.data, from.size);
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
            land_forwards(it, value);
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

static void begin_seek(struct tamiz_iter *it)
{
    iter_begin(it);
    counter_add(&it->count.seeks, 1);
}

/* Before a seek to `key`, which may be borrowed from what the iterator shows: *to is a copy. A
 * single source is told at once what it will be asked, as the merge tells many. false: memory is
 * out. */
static bool approach(struct tamiz_iter *it, struct slice key, uint64_t stamp, struct slice *to)
{
    if (!save(it, &it->saved_key, key))
        return false;
    *to = buf_slice(&it->saved_key);
    for (unsigned step = 0; step < ITER_STEPS; step++)
        iter_approach(it->merge, *to, stamp, step);
    return true;
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
    iter_begin(it);
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
    struct slice to = slice_of(key, key_size);
    if (below_lower(it, to)) {
        tamiz_iter_seek_first(it);
        return;
    }
    begin_seek(it);
    if (approach(it, to, UINT64_MAX, &to)) {
        iter_seek(it->merge, to, UINT64_MAX);
        settle_forwards(it, false);
    }
    (void)finish(it);
}

void tamiz_iter_seek_for_prev(tamiz_iter *it, const void *key, size_t key_size)
{
    if (!it || refuse_key(it, key, key_size))
        return;
    struct slice to = slice_of(key, key_size);
    if (above_upper(it, to)) {
        tamiz_iter_seek_last(it);
        return;
    }
    begin_seek(it);
    /* Before (key, oldest stamp there can be) and not before it: the key's own versions are
     * included. */
    if (approach(it, to, 0, &to)) {
        iter_seek_after(it->merge, to);
        settle_backwards(it);
    }
    (void)finish(it);
}

/* Lands on the next entry of the block. false: the merge has to be asked, which stands there. */
static inline bool step_in_block(struct tamiz_iter *it)
{
    it->key = it->walk->at_key;
    it->value = it->walk->value;
    it->steps = 2; /* as counted everywhere: the one that is left, and the one that is shown */
    return merge_limit_admits(&it->limit, it->key);
}

void tamiz_iter_next(tamiz_iter *it)
{
    if (!tamiz_iter_valid(it))
        return;
    const bool stepped = it->walk && block_walk_step(it->walk);
    if (__builtin_expect(stepped, 1) && step_in_block(it))
        return;
    const bool turn = it->backwards;
    iter_begin(it);
    it->steps += !turn;
    if (turn)
        iter_seek(it->merge, buf_slice(&it->saved_key), UINT64_MAX);
    else if (stepped)
        iter_refresh(it->merge);
    else /* it stands on what was shown */
        iter_next(it->merge);
    settle_forwards(it, true);
    (void)finish(it);
}

void tamiz_iter_prev(tamiz_iter *it)
{
    if (!tamiz_iter_valid(it))
        return;
    const bool turn = !it->backwards;
    const bool stepped = it->key.data != it->saved_key.data;
    iter_begin(it);
    if (stepped && !save(it, &it->saved_key, it->key)) {
        (void)finish(it);
        return;
    }
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

/* What an iterator that stands nowhere has in place of both. */
static const void *no_part(size_t *size)
{
    if (size)
        *size = 0;
    return NULL;
}

static inline const void *part(struct slice s, size_t *size)
{
    if (size)
        *size = s.size;
    return s.size ? s.data : nothing;
}

const void *tamiz_iter_key(const tamiz_iter *it, size_t *size)
{
    return tamiz_iter_valid(it) ? part(it->key, size) : no_part(size);
}

const void *tamiz_iter_value(const tamiz_iter *it, size_t *size)
{
    return tamiz_iter_valid(it) ? part(it->value, size) : no_part(size);
}

tamiz_status tamiz_iter_status(const tamiz_iter *it)
{
    return it ? it->status : TAMIZ_INVALID_ARGUMENT;
}

uint64_t tamiz_iter_steps(const tamiz_iter *it)
{
    return it ? it->steps : 0;
}
