/* SPDX-License-Identifier: MIT
 *
 * A get, counted in cache lines that wait for each other: the handle, what is loaded, one line of
 * the filter (which answers most absent keys); a node a layer of the index, of which all but the
 * lowest stay near; the place, the block's tags, its entry.
 */
#include "table/table.h"

#include <assert.h>

#include "base/expiry.h"
#include "table/table_inside.h"

typedef unsigned long long ull; /* for printing */

/* ---- the handle ---- */

struct table *table_new(struct op *op, const struct table_world *world, const char *path,
                        uint64_t number, uint64_t file_id, uint64_t file_size)
{
    struct table *t = mem_new_aligned(world->alloc, sizeof *t, _Alignof(struct table));
    char *copy = mem_text(world->alloc, path);
    if (t)
        memset(t, 0, sizeof *t);
    if (!t || !copy) {
        (void)op_fail_memory(op);
    } else if (mutex_init(op, &t->loading) == TAMIZ_OK) {
        atomic_init(&t->holders, 1);
        t->world = world;
        t->number = number;
        t->file_id = file_id;
        t->file_size = file_size;
        t->path = copy;
        t->file.path = copy;
        t->file.flags = TAMIZ_OPEN_READ | (world->direct_io ? TAMIZ_OPEN_DIRECT : 0);
        return t;
    }
    mem_free_aligned(world->alloc, t, sizeof *t, _Alignof(struct table));
    mem_free_text(world->alloc, copy);
    return NULL;
}

void table_set_sequence(struct table *t, uint64_t seq)
{
    assert(!table_loaded_of(t));
    t->sequence = seq;
}

tamiz_status table_pin(struct op *op, struct table *t)
{
    return file_pool_pin(op, t->world->files, &t->file);
}

struct table *table_share(struct table *t)
{
    atomic_fetch_add_explicit(&t->holders, 1, memory_order_relaxed);
    return t;
}

bool table_is_shared(const struct table *t)
{
    return atomic_load_explicit(&t->holders, memory_order_acquire) > 1;
}

void table_free(struct table *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->holders, 1, memory_order_acq_rel) != 1)
        return;
    const struct alloc *alloc = t->world->alloc;
    struct counters count = {0};
    struct op op; /* closing what was only read fails for nobody */
    op_init(&op, alloc, &count);
    table_loaded_close(t, table_loaded_of(t));
    file_pool_forget(&op, t->world->files, &t->file);
    mutex_free(&t->loading);
    mem_free_text(alloc, t->path);
    mem_free_aligned(alloc, t, sizeof *t, _Alignof(struct table));
}

/* From here on everybody sees it. */
static void face_fill(struct table *t, struct table_loaded *l)
{
    t->face.filter = filter_lines_of(&l->filter);
    if (l->filter.family)
        t->face.expected_fp_1e9 = (uint64_t)(l->filter.expected_fpr * 1e9 + 0.5);
    atomic_store_explicit(&t->face.loaded, l, memory_order_release);
}

tamiz_status table_load(struct op *op, struct table *t)
{
    if (table_loaded_of(t))
        return TAMIZ_OK;
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&t->loading);
    if (!table_loaded_of(t)) {
        struct table_loaded *l = NULL;
        st = table_loaded_open(op, t, &l);
        if (st == TAMIZ_OK)
            face_fill(t, l);
    }
    mutex_unlock(&t->loading);
    return st;
}

/* The fast half inline, the other one out of the way. */
static inline tamiz_status loaded(struct op *op, struct table *t, struct table_loaded **l)
{
    *l = table_loaded_of(t);
    if (__builtin_expect(*l != NULL, 1))
        return TAMIZ_OK;
    const tamiz_status st = table_load(op, t);
    *l = table_loaded_of(t);
    return st;
}

bool table_is_loaded(const struct table *t)
{
    return table_loaded_of(t) != NULL;
}

bool table_locate(const struct table *t, struct slice key, uint32_t *block)
{
    const struct table_loaded *l = table_loaded_of(t);
    if (!l)
        return false;
    *block = index_find(l->index, key);
    return *block < index_count(l->index);
}

uint32_t table_expect(const struct table *t, struct slice key)
{
    const struct table_loaded *l = table_loaded_of(t);
    if (!l)
        return 0;
    const uint32_t block = index_find_beside(l->index, key, l->places);
    if (block == index_count(l->index))
        return 0;
    const struct cached_block *b = atomic_load_explicit(&l->places[block], memory_order_relaxed);
    if (b)
        cached_block_fetch(b);
    return block + 1;
}

void table_approach(const struct table *t, struct slice key)
{
    const struct table_loaded *l = table_loaded_of(t);
    if (l)
        index_fetch(l->index, key, l->places);
}

/* ---- the filter ---- */

void table_tell(struct op *op, const struct table *t, const struct table_read *how,
                tamiz_step_kind kind, struct step_about about)
{
    const struct table_loaded *l = table_loaded_of(t);
    struct extent at = {0, 0};
    if (about.block != STEP_NO_BLOCK)
        at = index_extent(l->index, about.block);
    struct buf words = buf_init(op->alloc); /* what the filter looked at */
    if (kind == TAMIZ_STEP_FILTER_NEGATIVE || kind == TAMIZ_STEP_FILTER_MAYBE) {
        filter_view_story(&l->filter, op->subject_hash, &words);
        buf_append(&words, "", 1);
        if (!words.failed)
            about.text = (const char *)words.data;
    }
    op_tell(op, &(const tamiz_step_info){
                    .kind = kind,
                    .level = how->level,
                    .table = t->number,
                    .text = about.text,
                    .filter = l->properties.keys ? l->filter_name : "", /* else nothing to ask */
                    .expected_fpr = l->filter.family ? l->filter.expected_fpr : 0,
                    .filter_bits_per_key =
                        l->filter.family && l->properties.keys
                            ? (double)l->filter.payload_bytes * 8 / (double)l->properties.keys
                            : 0,
                    .offset = at.offset,
                    .size = about.size == STEP_WHOLE_BLOCK ? at.size : about.size,
                    .nanoseconds = about.nanoseconds,
                });
    buf_free(&words);
}

/* The key turned out not to be in the table, whatever the filter said: its share of the theory. */
static void count_absent(struct op *op, const struct table *t, const struct table_read *how)
{
    counter_add(&table_level(op, how)->expected_fp_1e9, t->face.expected_fp_1e9);
}

void table_answered(struct op *op, const struct table *t, const struct table_read *how, bool maybe)
{
    table_step(op, t, how, maybe ? TAMIZ_STEP_FILTER_MAYBE : TAMIZ_STEP_FILTER_NEGATIVE,
               step_plain(""));
    if (!maybe)
        count_absent(op, t, how);
}

static enum table_verdict ask(struct op *op, const struct table *t, const struct table_loaded *l,
                              const struct lookup *lookup, const struct table_read *how)
{
    if (!table_asks(t, l)) {
        table_step(
            op, t, how, TAMIZ_STEP_NO_FILTER,
            step_plain(l->filter.family ? "it denied a key that is there" : l->filter_missing));
        return TABLE_NO_FILTER;
    }
    const bool maybe = l->filter.family->may_contain(&l->filter, lookup->hash);
    table_answered(op, t, how, maybe);
    return maybe ? TABLE_MAYBE : TABLE_NO;
}

tamiz_status table_ask(struct op *op, struct table *t, const struct lookup *lookup,
                       const struct table_read *how, enum table_verdict *verdict)
{
    struct table_loaded *l;
    *verdict = TABLE_NO_FILTER;
    const tamiz_status st = loaded(op, t, &l);
    if (st == TAMIZ_OK)
        *verdict = ask(op, t, l, lookup, how);
    return st;
}

enum table_verdict table_peek(const struct table *t, const struct lookup *lookup)
{
    const struct table_loaded *l = table_loaded_of(t);
    if (!table_asks(t, l))
        return TABLE_NO_FILTER;
    return l->filter.family->may_contain(&l->filter, lookup->hash) ? TABLE_MAYBE : TABLE_NO;
}

struct table_tally *table_tally(struct table *t)
{
    return &t->tally;
}

void table_quarantine(struct table *t)
{
    atomic_store_explicit(&t->face.quarantined, true, memory_order_relaxed);
}

bool table_is_quarantined(const struct table *t)
{
    return atomic_load_explicit(&t->face.quarantined, memory_order_relaxed);
}

void table_prefetch(const struct table *t, const struct lookup *lookup)
{
    const struct table_loaded *l = table_loaded_of(t);
    if (l)
        filter_view_prefetch(&l->filter, lookup->hash);
}

/* The filter said maybe; was it right? */
static void judge(struct op *op, const struct table *t, const struct table_read *how, bool known)
{
    struct level_counters *at = table_level(op, how);
    counter_add(known ? &at->true_positives : &at->false_positives, 1);
    if (!known)
        count_absent(op, t, how);
}

/* ---- get ---- */

/* Does the table know the key at all, at whatever time? Asked only where the answer was no. */
static bool knows(const struct table_loaded *l, const struct block *b, const struct lookup *lookup)
{
    if (stamp_seq(lookup->stamp_max) >= l->seq_max)
        return false; /* all its versions were visible */
    struct lookup any = *lookup;
    any.stamp_max = UINT64_MAX;
    uint64_t stamp;
    struct slice value;
    return block_find(b, &any, &stamp, &value) == TAMIZ_OK;
}

/* The block is there. */
static tamiz_status search(struct op *op, const struct table *t, const struct table_loaded *l,
                           const struct lookup *lookup, const struct table_read *how, bool judged,
                           uint32_t number, const struct block *b, uint64_t *stamp,
                           struct slice *value)
{
    tamiz_status st = block_find(b, lookup, stamp, value);
    if (st == TAMIZ_OK && __builtin_expect(l->stamp_base != 0, 0)) {
        *stamp += l->stamp_base;
        if (*stamp > lookup->stamp_max) /* ingested after the moment that is read */
            st = TAMIZ_NOT_FOUND;
    }
    if (st == TAMIZ_OK) {
        const bool put = stamp_kind(*stamp) != KIND_DELETE;
        if (judged)
            judge(op, t, how, true);
        table_step(op, t, how, put ? TAMIZ_STEP_FOUND : TAMIZ_STEP_TOMBSTONE,
                   (struct step_about){number, expiry_user_size(*stamp, value->size), "", 0});
        return st;
    }
    if (st != TAMIZ_NOT_FOUND)
        return op_fail(op, st, "%s: block at offset %llu: expected whole entries, found damage",
                       t->path, (ull)index_extent(l->index, number).offset);
    const bool known = knows(l, b, lookup);
    if (judged)
        judge(op, t, how, known);
    table_step(op, t, how, TAMIZ_STEP_ABSENT_IN_BLOCK,
               (struct step_about){number, STEP_WHOLE_BLOCK,
                                   known ? "it has only versions newer than this read sees" : "",
                                   0});
    return st;
}

tamiz_status table_get_begin(struct op *op, struct table *t, const struct lookup *lookup,
                             const struct table_read *how, uint64_t *stamp, struct slice *value,
                             struct table_wait *wait)
{
    struct table_loaded *l;
    *stamp = 0;
    *value = slice_of(NULL, 0);
    wait->request.file = NULL;
    wait->starved = false;
    tamiz_status st = loaded(op, t, &l);
    if (st)
        return st;
    bool judged = how->asked && table_asks(t, l);
    if (how->use_filter && !how->asked) {
        const enum table_verdict verdict = ask(op, t, l, lookup, how);
        if (verdict == TABLE_NO)
            return TAMIZ_NOT_FOUND;
        judged = verdict == TABLE_MAYBE;
    }
    const uint32_t number =
        how->located ? how->located - 1 : index_find_beside(l->index, lookup->key, l->places);
    if (number == index_count(l->index)) {
        table_step(op, t, how, TAMIZ_STEP_INDEX,
                   step_plain("no block: the key is above the last fence"));
        if (judged)
            judge(op, t, how, false);
        return TAMIZ_NOT_FOUND;
    }
    table_step(op, t, how, TAMIZ_STEP_INDEX, step_block(number));
    const struct cached_block *b = cache_peek(&l->places[number]);
    if (b) {
        table_step(op, t, how, TAMIZ_STEP_BLOCK_CACHED, step_block(number));
        return search(op, t, l, lookup, how, judged, number, &b->block, stamp, value);
    }
    const struct extent at = index_extent(l->index, number);
    struct block_load load;
    struct file *file;
    st = block_load_begin(op, t, l, number, &load);
    if (st)
        return st;
    st = wait->impatient ? file_pool_try_acquire(op, t->world->files, &t->file, &file)
                         : file_pool_acquire(op, t->world->files, &t->file, &file);
    wait->starved = st == TAMIZ_BUSY;
    if (st) {
        block_load_abandon(t, &load);
        return wait->starved ? TAMIZ_OK : st;
    }
    *wait = (struct table_wait){
        .request = {file, at.offset, load.bytes, (size_t)extent_whole(at), TAMIZ_OK},
        .table = t,
        .lookup = lookup,
        .how = *how,
        .block = number,
        .judged = judged,
        .target = load.target,
        .packed = load.packed,
    };
    return TAMIZ_OK;
}

tamiz_status table_get_end(struct op *op, struct table_wait *wait, uint64_t *stamp,
                           struct slice *value, struct cached_block **pinned)
{
    struct table *t = wait->table;
    struct table_loaded *l = table_loaded_of(t);
    const struct extent at = index_extent(l->index, wait->block);
    struct block_load load = {wait->block, at, wait->target, wait->packed, wait->request.buffer};
    struct cached_block *b = NULL;
    tamiz_status st = TAMIZ_OK;
    *stamp = 0;
    *value = slice_of(NULL, 0);
    *pinned = NULL;
    file_pool_release(t->world->files, &t->file);
    if (wait->request.status < 0) {
        block_load_abandon(t, &load);
        return op_fail(op, wait->request.status, "%s: block at offset %llu: %zu bytes not read",
                       t->path, (ull)at.offset, wait->request.size);
    }
    counter_add(&table_level(op, &wait->how)->device_read_bytes, wait->request.size);
    table_step(op, t, &wait->how, TAMIZ_STEP_BLOCK_DEVICE,
               (struct step_about){wait->block, wait->request.size, "", wait->nanoseconds});
    TRY(block_load_end(op, t, l, &load, &b));
    if (wait->how.fill_cache)
        cache_insert(t->world->cache, &l->places[wait->block], b);
    TRY(search(op, t, l, wait->lookup, &wait->how, wait->judged, wait->block, &b->block, stamp,
               value));
    if (st == TAMIZ_OK && !cached_block_kept(b)) {
        *pinned = b;
        b = NULL;
    }
done:
    cached_block_unpin(b);
    return st;
}

tamiz_status table_get(struct op *op, struct table *t, const struct lookup *lookup,
                       const struct table_read *how, uint64_t *stamp, struct slice *value,
                       struct cached_block **pinned)
{
    struct table_wait wait;
    wait.impatient = false;
    *pinned = NULL;
    const tamiz_status st = table_get_begin(op, t, lookup, how, stamp, value, &wait);
    struct file_request *r = &wait.request;
    if (!r->file)
        return st;
    const tamiz_env *env = t->world->env;
    const uint64_t started = op->trace ? env_monotonic_ns(env) : 0;
    r->status = file_read(op, r->file, how->purpose, r->offset, r->buffer, r->size);
    wait.nanoseconds = op->trace ? env_monotonic_ns(env) - started : 0;
    return table_get_end(op, &wait, stamp, value, pinned);
}

/* ---- range deletes ---- */

tamiz_status table_ranges(struct op *op, struct table *t, const struct ranges **ranges)
{
    struct table_loaded *l;
    *ranges = NULL;
    const tamiz_status st = loaded(op, t, &l);
    if (st != TAMIZ_OK)
        return st;
    if (l->ranges_status != TAMIZ_OK)
        return op_fail(op, l->ranges_status, "%s", l->ranges_damage);
    *ranges = &l->ranges;
    return TAMIZ_OK;
}

const struct ranges *table_ranges_near(const struct table *t)
{
    const struct table_loaded *l = table_loaded_of(t);
    return l && l->ranges_status == TAMIZ_OK ? &l->ranges : NULL;
}

tamiz_status table_cover(struct op *op, struct table *t, const struct lookup *lookup, uint64_t *seq,
                         bool *all)
{
    const struct ranges *ranges;
    *seq = 0;
    *all = false;
    const tamiz_status st = table_ranges(op, t, &ranges);
    if (st != TAMIZ_OK || ranges->count == 0)
        return st;
    *seq = ranges_cover(ranges, lookup->key, stamp_seq(lookup->stamp_max));
    *all = *seq && *seq == table_loaded_of(t)->seq_max;
    return TAMIZ_OK;
}

void table_covered(struct op *op, const struct table *t, const struct table_read *how)
{
    table_step(op, t, how, TAMIZ_STEP_RANGE_TOMBSTONE, step_plain(""));
}
