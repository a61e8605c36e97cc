/* SPDX-License-Identifier: MIT
 *
 * Writing as the public calls it: checks, a writer on the stack, and batches.
 */
#include "db/write.h"

static tamiz_status check_key(size_t size, const void *key)
{
    if (!key && size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "key: NULL with size %zu", size);
    if (size > KEY_SIZE_MAX)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "key of %zu bytes: want 0..%u", size,
                         KEY_SIZE_MAX);
    return TAMIZ_OK;
}

static tamiz_status check_value(size_t size, const void *value)
{
    if (!value && size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "value: NULL with size %zu", size);
    if (size > VALUE_SIZE_MAX)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "value of %zu bytes: want 0..%u", size,
                         VALUE_SIZE_MAX);
    return TAMIZ_OK;
}

static tamiz_status write_options_apply(const tamiz_write_options *options, struct writer *w)
{
    if (!options)
        return TAMIZ_OK;
    tamiz_write_options o = TAMIZ_WRITE_OPTIONS_INIT;
    if (options->struct_size < sizeof options->struct_size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "write options: struct_size=%zu: start from TAMIZ_WRITE_OPTIONS_INIT",
                         options->struct_size);
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    if (o.sync && o.no_log)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "write options: sync with no_log: nothing would be synced");
    w->sync = o.sync;
    w->no_log = o.no_log;
    w->no_wait = o.no_wait;
    return TAMIZ_OK;
}

/* Runs a writer with a slot's counters. It looks at nothing that is reclaimed by epochs and may
 * wait long, so it is not inside. */
static tamiz_status write_public(struct writer *w)
{
    struct store *s = w->db->store;
    struct op op;
    struct epoch_slot *slot = epoch_enter(&s->epoch);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    const tamiz_status st = op_publish(&op, db_write(&op, w));
    epoch_leave(slot);
    return st;
}

static tamiz_status write_one(tamiz *db, enum kind kind, struct slice key, struct slice value,
                              const tamiz_write_options *options)
{
    struct writer w = {.db = db, .single = true, .kind = kind, .key = key, .value = value};
    tamiz_status st = store_check(db);
    if (st == TAMIZ_OK)
        st = check_key(key.size, key.data);
    if (st == TAMIZ_OK)
        st = check_value(value.size, value.data);
    if (st == TAMIZ_OK)
        st = write_options_apply(options, &w);
    return st == TAMIZ_OK ? write_public(&w) : st;
}

tamiz_status tamiz_put(tamiz *db, const void *key, size_t key_size, const void *value,
                       size_t value_size, const tamiz_write_options *options)
{
    return write_one(db, KIND_PUT, slice_of(key, key_size), slice_of(value, value_size), options);
}

tamiz_status tamiz_delete(tamiz *db, const void *key, size_t key_size,
                          const tamiz_write_options *options)
{
    return write_one(db, KIND_DELETE, slice_of(key, key_size), slice_of(NULL, 0), options);
}

static tamiz_status check_range(struct slice from, struct slice to)
{
    char a[60], b[60];
    if (slice_compare(from, to) < 0)
        return TAMIZ_OK;
    return op_refuse(TAMIZ_INVALID_ARGUMENT,
                     "delete_range: \"%s\" to \"%s\": want an end above the beginning (\"\" is a "
                     "key, not a missing end)",
                     slice_print(from, a, sizeof a), slice_print(to, b, sizeof b));
}

tamiz_status tamiz_delete_range(tamiz *db, const void *from, size_t from_size, const void *to,
                                size_t to_size, const tamiz_write_options *options)
{
    tamiz_status st = check_key(from_size, from);
    if (st == TAMIZ_OK)
        st = check_key(to_size, to);
    if (st == TAMIZ_OK)
        st = check_range(slice_of(from, from_size), slice_of(to, to_size));
    if (st != TAMIZ_OK)
        return st;
    return write_one(db, KIND_RANGE_DELETE, slice_of(from, from_size), slice_of(to, to_size),
                     options);
}

tamiz_status tamiz_write(tamiz *db, tamiz_batch *batch, const tamiz_write_options *options)
{
    tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    if (!batch)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "no batch given (NULL)");
    if (batch->store && batch->store != db->store)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "%s: the batch has writes for another store",
                         db->store->directory);
    struct writer w = {.db = db, .batch = &batch->writes};
    st = write_options_apply(options, &w);
    return st == TAMIZ_OK ? write_public(&w) : st;
}

tamiz_status tamiz_sync(tamiz *db)
{
    struct writer w = {.db = db, .sync = true};
    const tamiz_status st = store_check(db);
    return st == TAMIZ_OK ? write_public(&w) : st;
}

tamiz_batch *tamiz_batch_new(void)
{
    struct tamiz_batch *b = mem_new_array(&alloc_libc, 1, sizeof *b);
    if (b)
        batch_init(&b->writes, &alloc_libc);
    return b;
}

static tamiz_status batch_put_kind(tamiz_batch *batch, tamiz *keyspace, enum kind kind,
                                   struct slice key, struct slice value)
{
    if (!batch)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "no batch given (NULL)");
    tamiz_status st = check_key(key.size, key.data);
    if (st == TAMIZ_OK)
        st = check_value(value.size, value.data);
    if (st == TAMIZ_OK && keyspace && batch->store && batch->store != keyspace->store)
        st = op_refuse(TAMIZ_INVALID_ARGUMENT, "the batch has writes for another store");
    if (st == TAMIZ_OK && batch->writes.body.size + key.size + value.size > UINT32_MAX - 65536)
        st = op_refuse(TAMIZ_INVALID_ARGUMENT, "a batch of more than 2^32 bytes");
    if (st != TAMIZ_OK)
        return st;
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, &alloc_libc, &nowhere);
    st = op_publish(&op,
                    batch_add(&op, &batch->writes, kind, keyspace ? keyspace->id : 0, key, value));
    if (st == TAMIZ_OK && keyspace)
        batch->store = keyspace->store;
    return st;
}

tamiz_status tamiz_batch_put(tamiz_batch *batch, tamiz *keyspace, const void *key, size_t key_size,
                             const void *value, size_t value_size)
{
    return batch_put_kind(batch, keyspace, KIND_PUT, slice_of(key, key_size),
                          slice_of(value, value_size));
}

tamiz_status tamiz_batch_delete(tamiz_batch *batch, tamiz *keyspace, const void *key,
                                size_t key_size)
{
    return batch_put_kind(batch, keyspace, KIND_DELETE, slice_of(key, key_size), slice_of(NULL, 0));
}

tamiz_status tamiz_batch_delete_range(tamiz_batch *batch, tamiz *keyspace, const void *from,
                                      size_t from_size, const void *to, size_t to_size)
{
    tamiz_status st = check_key(from_size, from);
    if (st == TAMIZ_OK)
        st = check_key(to_size, to);
    if (st == TAMIZ_OK)
        st = check_range(slice_of(from, from_size), slice_of(to, to_size));
    if (st != TAMIZ_OK)
        return st;
    return batch_put_kind(batch, keyspace, KIND_RANGE_DELETE, slice_of(from, from_size),
                          slice_of(to, to_size));
}

size_t tamiz_batch_count(const tamiz_batch *batch)
{
    return batch ? (size_t)batch->writes.count : 0;
}

void tamiz_batch_clear(tamiz_batch *batch)
{
    if (!batch)
        return;
    batch_clear(&batch->writes);
    batch->store = NULL;
}

void tamiz_batch_free(tamiz_batch *batch)
{
    if (!batch)
        return;
    batch_free(&batch->writes);
    mem_free(&alloc_libc, batch, sizeof *batch);
}
