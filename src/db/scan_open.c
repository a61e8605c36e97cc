/* SPDX-License-Identifier: MIT
 *
 * Ordered reads begin and end: bounds, sources, the park.
 */
#include <assert.h>

#include "db/read_options.h"
#include "db/scan.h"
#include "table/merge.h"

enum { ROOM_KEPT = 4096 }; /* of each buffer, in the park */

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

/* Where it is empty, and no range delete makes the sources' numbers matter, the memtable that is
 * written to is none: what comes later is newer than what this iterator sees. */
static bool may_leave_out(const struct tamiz_iter *it)
{
    const struct view *v = it->view;
    return v->memtable_count && v->version->run_count && !it->covers.sources &&
           !memtable_used(v->memtables[0]->memtable);
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
    it->left_out = may_leave_out(it);
    for (uint32_t i = it->left_out; ok && i < v->memtable_count; i++) {
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
    if (view_borrow(db, &seq) != it->view || covers_possible(it->view) ||
        (it->left_out && memtable_used(it->view->memtables[0]->memtable))) {
        iter_end(it);
        return NULL;
    }
    iter_begin(it);
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
