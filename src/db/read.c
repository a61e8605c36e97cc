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

static bool key_is_good(const void *key, size_t size)
{
    return (key || !size) && size <= KEY_SIZE_MAX;
}

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
    r->op.seat = r->slot->seat;
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

/* What a multi_get is about: the caller's arrays, or those of the keys that can be asked for. */
struct many {
    size_t n;
    const void **keys;
    size_t *key_sizes;
    void **values;
    size_t *value_sizes;
    tamiz_status *statuses;
};

static void many_free(const struct alloc *alloc, struct many *m, size_t n)
{
    mem_free(alloc, m->keys, n * sizeof *m->keys);
    mem_free(alloc, m->key_sizes, n * sizeof *m->key_sizes);
    mem_free(alloc, m->values, n * sizeof *m->values);
    mem_free(alloc, m->value_sizes, n * sizeof *m->value_sizes);
    mem_free(alloc, m->statuses, n * sizeof *m->statuses);
}

static bool many_new(const struct alloc *alloc, struct many *m, size_t n)
{
    m->keys = mem_new_array(alloc, n, sizeof *m->keys);
    m->key_sizes = mem_new_array(alloc, n, sizeof *m->key_sizes);
    m->values = mem_new_array(alloc, n, sizeof *m->values);
    m->value_sizes = mem_new_array(alloc, n, sizeof *m->value_sizes);
    m->statuses = mem_new_array(alloc, n, sizeof *m->statuses);
    return m->keys && m->key_sizes && m->values && m->value_sizes && m->statuses;
}

/* Answers that hold no value: before the first key is looked for, and where none can be. */
static void answer_all(size_t n, void *values[], size_t value_sizes[], tamiz_status statuses[],
                       tamiz_status status)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = NULL;
        value_sizes[i] = 0;
        statuses[i] = status;
    }
}

/* Some keys can't be keys: the others by themselves, and their answers back to their places. */
static tamiz_status get_the_good(struct op *op, struct tamiz *db, size_t n,
                                 const void *const keys[], const size_t key_sizes[], void *values[],
                                 size_t value_sizes[], tamiz_status statuses[],
                                 const tamiz_read_options *options)
{
    struct many m = {0};
    size_t at = 0;
    tamiz_status st = many_new(op->alloc, &m, n) ? TAMIZ_OK : op_fail_memory(op);
    for (size_t i = 0; i < n; i++)
        statuses[i] = key_is_good(keys[i], key_sizes[i]) ? st : TAMIZ_INVALID_ARGUMENT;
    TRY(st);
    for (size_t i = 0; i < n; i++) {
        m.keys[m.n] = keys[i];
        m.key_sizes[m.n] = key_sizes[i];
        m.n += key_is_good(keys[i], key_sizes[i]);
    }
    answer_all(m.n, m.values, m.value_sizes, m.statuses, TAMIZ_NOT_FOUND);
    st = m.n ? db_multi_get(op, db, m.n, m.keys, m.key_sizes, m.values, m.value_sizes, m.statuses,
                            options)
             : TAMIZ_OK;
    for (size_t i = 0; i < n; i++) {
        if (!key_is_good(keys[i], key_sizes[i]))
            continue;
        values[i] = m.values[at];
        value_sizes[i] = m.value_sizes[at];
        statuses[i] = m.statuses[at++];
    }
done:
    many_free(op->alloc, &m, n);
    return st;
}

tamiz_status tamiz_multi_get(tamiz *db, size_t n, const void *const keys[],
                             const size_t key_sizes[], void *values[], size_t value_sizes[],
                             tamiz_status statuses[], const tamiz_read_options *options)
{
    if (n && (!keys || !key_sizes || !values || !value_sizes || !statuses))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "multi_get: an array is NULL");
    size_t bad = 0;
    while (bad < n && key_is_good(keys[bad], key_sizes[bad]))
        bad++;
    struct reading r;
    struct found none = {0};
    tamiz_status st = reading_begin(&r, db, options);
    answer_all(n, values, value_sizes, statuses, st == TAMIZ_OK ? TAMIZ_NOT_FOUND : st);
    if (st != TAMIZ_OK)
        return st;
    if (bad < n)
        st = get_the_good(&r.op, db, n, keys, key_sizes, values, value_sizes, statuses, r.options);
    else if (n)
        st = db_multi_get(&r.op, db, n, keys, key_sizes, values, value_sizes, statuses, r.options);
    st = reading_end(&r, &none, st);
    return st == TAMIZ_OK && bad < n ? check_key(keys[bad], key_sizes[bad]) : st;
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
        uint64_t cover;
        bool all;
        if (meta->ranges && table_cover(op, meta->table, lookup, &cover, &all) == TAMIZ_OK && cover)
            return false; /* all that is older is deleted */
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
