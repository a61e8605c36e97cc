/* SPDX-License-Identifier: MIT
 *
 * Point reads as the public calls them: checks, a slot for the operation, the read, the copy.
 */
#include "db/get.h"
#include "db/read_options.h"

/* One public read: its slot, its record, its options. */
struct reading {
    struct op op;
    struct epoch_slot *slot;
    const tamiz_read_options *options;
    tamiz_read_options room;
};

static tamiz_status check_key(const void *key, size_t size)
{
    if (__builtin_expect(!key && size, 0))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "key: NULL with size %zu", size);
    if (__builtin_expect(size > KEY_SIZE_MAX, 0))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "key of %zu bytes: want 0..%u", size,
                         KEY_SIZE_MAX);
    return TAMIZ_OK;
}

/* On success the caller is inside an epoch and calls reading_end. */
static tamiz_status reading_begin(struct reading *r, tamiz *db, const tamiz_read_options *options)
{
    tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    r->options = options;
    st = read_options_resolve(db, &r->options, &r->room);
    if (st != TAMIZ_OK)
        return st;
    r->slot = epoch_enter_at(&db->store->epoch, db->slots);
    op_init(&r->op, &db->store->alloc, &r->slot->count);
    op_listen(&r->op, r->options->trace);
    return TAMIZ_OK;
}

static tamiz_status reading_end(struct reading *r, struct found *found, tamiz_status st)
{
    if (found->pinned)
        cached_block_unpin(found->pinned);
    epoch_leave(r->slot);
    return st < 0 ? op_publish(&r->op, st) : st;
}

/* A copy for the caller. */
static tamiz_status hand_out(struct op *op, struct slice value, void **out, size_t *size)
{
    *out = mem_handout(op->alloc, value.size);
    if (!*out)
        return op_fail_memory(op);
    if (value.size)
        memcpy(*out, value.data, value.size);
    *size = value.size;
    return TAMIZ_OK;
}

tamiz_status tamiz_get(tamiz *db, const void *key, size_t key_size, void **value,
                       size_t *value_size, const tamiz_read_options *options)
{
    size_t unwanted;
    value_size = value_size ? value_size : &unwanted;
    *value_size = 0;
    if (!value)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "value: NULL where the buffer should go");
    *value = NULL;
    struct reading r;
    struct found found;
    tamiz_status st = check_key(key, key_size);
    if (st == TAMIZ_OK)
        st = reading_begin(&r, db, options);
    if (st != TAMIZ_OK)
        return st;
    st = db_get(&r.op, db, slice_of(key, key_size), r.options, &found);
    if (st == TAMIZ_OK)
        st = hand_out(&r.op, found.value, value, value_size);
    return reading_end(&r, &found, st);
}

tamiz_status tamiz_get_into(tamiz *db, const void *key, size_t key_size, void *buffer,
                            size_t capacity, size_t *value_size, const tamiz_read_options *options)
{
    size_t unwanted;
    value_size = value_size ? value_size : &unwanted;
    *value_size = 0;
    if (!buffer && capacity)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "buffer: NULL with capacity %zu", capacity);
    struct reading r;
    struct found found;
    tamiz_status st = check_key(key, key_size);
    if (st == TAMIZ_OK)
        st = reading_begin(&r, db, options);
    if (st != TAMIZ_OK)
        return st;
    st = db_get(&r.op, db, slice_of(key, key_size), r.options, &found);
    if (st == TAMIZ_OK) {
        *value_size = found.value.size;
        const size_t fits = found.value.size < capacity ? found.value.size : capacity;
        if (fits)
            memcpy(buffer, found.value.data, fits);
    }
    return reading_end(&r, &found, st);
}

tamiz_status tamiz_exists(tamiz *db, const void *key, size_t key_size,
                          const tamiz_read_options *options)
{
    return tamiz_get_into(db, key, key_size, NULL, 0, NULL, options);
}

tamiz_status tamiz_multi_get(tamiz *db, size_t n, const void *const keys[],
                             const size_t key_sizes[], void *values[], size_t value_sizes[],
                             tamiz_status statuses[], const tamiz_read_options *options)
{
    if (n && (!keys || !key_sizes || !values || !value_sizes || !statuses))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "multi_get: an array is NULL");
    for (size_t i = 0; i < n; i++) {
        values[i] = NULL;
        value_sizes[i] = 0;
        statuses[i] = TAMIZ_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < n; i++) {
        const tamiz_status st = check_key(keys[i], key_sizes[i]);
        if (st != TAMIZ_OK)
            return st;
    }
    struct reading r;
    struct found none = {0};
    const tamiz_status begun = reading_begin(&r, db, options);
    if (begun != TAMIZ_OK || n == 0)
        return begun == TAMIZ_OK ? reading_end(&r, &none, TAMIZ_OK) : begun;
    return reading_end(
        &r, &none,
        db_multi_get(&r.op, db, n, keys, key_sizes, values, value_sizes, statuses, r.options));
}

/* From memory: memtables and filters of loaded tables. */
static bool may_contain(struct op *op, const struct view *view, const struct lookup *lookup,
                        const tamiz_read_options *options)
{
    uint64_t stamp;
    struct slice value;
    for (uint32_t i = 0; i < view->memtable_count; i++)
        if (memtable_get(op, view->memtables[i]->memtable, lookup, &stamp, &value) == TAMIZ_OK)
            return stamp_kind(stamp) != KIND_DELETE;
    for (uint32_t r = 0; r < view->version->run_count; r++) {
        const struct run *run = &view->version->runs[r];
        const struct table_meta *meta = run_find(run, lookup->key, run_word(run, lookup->key));
        if (!meta)
            continue;
        struct table_read how = read_options_table(options);
        how.level = (int)run->level;
        if (!table_is_loaded(meta->table))
            return true; /* asking would read the device */
        enum table_verdict verdict;
        if (table_ask(op, meta->table, lookup, &how, &verdict) != TAMIZ_OK || verdict != TABLE_NO)
            return true;
    }
    return false;
}

tamiz_status tamiz_may_contain(tamiz *db, const void *key, size_t key_size, bool *maybe,
                               const tamiz_read_options *options)
{
    if (!maybe)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "maybe: NULL where the answer should go");
    *maybe = true;
    struct reading r;
    struct found none = {0};
    tamiz_status st = check_key(key, key_size);
    if (st == TAMIZ_OK)
        st = reading_begin(&r, db, options);
    if (st != TAMIZ_OK)
        return st;
    uint64_t seq;
    const struct view *view = view_borrow(db, &seq);
    const struct lookup lookup =
        lookup_make(slice_of(key, key_size), read_options_seq(r.options, seq));
    r.op.subject_hash = lookup.hash;
    *maybe = may_contain(&r.op, view, &lookup, r.options);
    return reading_end(&r, &none, TAMIZ_OK);
}
