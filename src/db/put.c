/* SPDX-License-Identifier: MIT
 *
 * Writing as the public calls it: checks, a writer on the stack, and batches.
 */
#include "db/expiry.h"
#include "db/options.h"
#include "db/write.h"

/* Bytes of a batch's writes. */
#define BATCH_MOST (UINT32_MAX - 65536)

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
    if (o.ttl > TTL_MAX && o.ttl != TAMIZ_TTL_NEVER)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "write options: ttl=%llu: want 0..%llu seconds or TAMIZ_TTL_NEVER",
                         (unsigned long long)o.ttl, (unsigned long long)TTL_MAX);
    w->ttl = o.ttl;
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
    struct epoch_slot *slot = epoch_enter_at(&s->epoch, w->db->slots);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    const tamiz_status st = op_publish(&op, db_write(&op, w));
    epoch_leave(slot);
    return st;
}

/* ---- values for a time ---- */

/* Seconds that what is put to `db` lives; 0: for good. A keyspace's options are frozen before
 * anybody has its handle. */
static uint64_t ttl_of(const struct writer *w, const struct tamiz *db)
{
    return w->ttl == TAMIZ_TTL_NEVER ? 0 : w->ttl ? w->ttl : db->options.ttl;
}

/* The value as it is stored, in `out`, which is cleared first. */
static tamiz_status expiring_value(struct op *op, struct buf *out, struct store *s, uint64_t ttl,
                                   struct slice value)
{
    if (value.size > EXPIRING_VALUE_MAX)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "value of %zu bytes: want 0..%u with a ttl",
                       value.size, EXPIRING_VALUE_MAX);
    buf_clear(out);
    if (!buf_reserve(out, EXPIRY_SIZE + value.size))
        return op_fail_memory(op);
    buf_u64(out, store_now(s) + ttl * 1000000);
    buf_slice_append(out, value);
    return TAMIZ_OK;
}

/* A single put. */
static tamiz_status write_expiring(struct writer *w, uint64_t ttl)
{
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, &w->db->store->alloc, &nowhere);
    struct buf stored = buf_init(&w->db->store->alloc);
    tamiz_status st = op_publish(&op, expiring_value(&op, &stored, w->db->store, ttl, w->value));
    w->kind = KIND_EXPIRING;
    w->value = buf_slice(&stored);
    if (st == TAMIZ_OK)
        st = write_public(w);
    buf_free(&stored);
    return st;
}

/* ---- single writes ---- */

static tamiz_status write_one(tamiz *db, enum kind kind, struct slice key, struct slice value,
                              const tamiz_write_options *options)
{
    struct writer w = {.db = db,
                       .trees = &w.db,
                       .tree_count = 1,
                       .single = true,
                       .kind = kind,
                       .key = key,
                       .value = value};
    tamiz_status st = store_check(db);
    if (st == TAMIZ_OK)
        st = check_key(key.size, key.data);
    if (st == TAMIZ_OK)
        st = check_value(value.size, value.data);
    if (st == TAMIZ_OK)
        st = write_options_apply(options, &w);
    if (st != TAMIZ_OK)
        return st;
    const uint64_t ttl = kind == KIND_PUT ? ttl_of(&w, db) : 0;
    return __builtin_expect(ttl != 0, 0) ? write_expiring(&w, ttl) : write_public(&w);
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

/* ---- batches ---- */

/* One write of a batch to `db`, with a moment where it is a put for a time. */
static tamiz_status spell_write(struct op *op, const struct writer *writer, const struct tamiz *db,
                                const struct batch_write *w, struct buf *stored, struct batch *out)
{
    const uint64_t ttl = w->kind == KIND_PUT ? ttl_of(writer, db) : 0;
    tamiz_status st;
    if (ttl == 0)
        return batch_add(op, out, w->kind, db->id, w->key, w->value);
    TRY(expiring_value(op, stored, db->store, ttl, w->value));
    TRY(batch_add(op, out, KIND_EXPIRING, db->id, w->key, buf_slice(stored)));
    if (out->body.size > BATCH_MOST)
        st = op_fail(op, TAMIZ_INVALID_ARGUMENT, "a batch of more than 2^32 bytes");
done:
    return st;
}

/* The same writes with the ids that they have when they go to `db`: where none is named, and what
 * names the default keyspace means that. Puts for a time have their moments. */
static tamiz_status spell_out(struct op *op, const tamiz_batch *batch, const struct writer *writer,
                              struct batch *out)
{
    struct batch_reader reader;
    struct batch_write w;
    struct tamiz *const db = writer->db, *last = db;
    struct buf stored = buf_init(&alloc_libc);
    const uint64_t *turns = (const uint64_t *)(const void *)batch->turns.data;
    const size_t n = batch->turns.size / sizeof *turns;
    size_t turn = 0;
    bool named = false;
    tamiz_status st = TAMIZ_OK;
    batch_walk(&batch->writes, 0, &reader);
    while (st == TAMIZ_OK && batch_next(&reader, &w)) {
        for (; turn < n && turns[turn] == w.seq; turn++)
            named = !named;
        last = writer_tree(writer, w.keyspace || named ? w.keyspace : db->id, last);
        st = spell_write(op, writer, last, &w, &stored, out);
    }
    buf_free(&stored);
    return st;
}

static bool is_named(const tamiz_batch *batch, const tamiz *db)
{
    struct tamiz *const *named = (struct tamiz *const *)(const void *)batch->trees.data;
    for (size_t i = batch->trees.size / sizeof(struct tamiz *); i > 0; i--)
        if (named[i - 1] == db)
            return true;
    return false;
}

/* All keyspaces that the batch writes to when it goes to `db`, in the batch's list or in `room`. */
static bool list_trees(const tamiz_batch *batch, tamiz *db, struct buf *room, struct writer *w)
{
    const struct buf *list = &batch->trees;
    if (batch->unnamed && !is_named(batch, db)) {
        buf_slice_append(room, buf_slice(&batch->trees));
        buf_append(room, &db, sizeof(struct tamiz *));
        list = room;
    }
    w->trees = (struct tamiz *const *)(const void *)list->data;
    w->tree_count = list->size / sizeof(struct tamiz *);
    return !room->failed;
}

/* May any of its puts be for a time? */
static bool has_ttl(const struct writer *w)
{
    bool any = false;
    for (size_t i = 0; i < w->tree_count; i++)
        any |= ttl_of(w, w->trees[i]) != 0;
    return any;
}

/* A batch of writes for more than the default keyspace, or for a time. */
static tamiz_status write_spelled(struct writer *w, const tamiz_batch *batch)
{
    struct counters nowhere = {0};
    struct op op;
    struct buf trees = buf_init(&alloc_libc);
    struct batch spelled;
    tamiz_status st = TAMIZ_OK;
    op_init(&op, &alloc_libc, &nowhere);
    batch_init(&spelled, &alloc_libc);
    if (!list_trees(batch, w->db, &trees, w))
        st = op_publish(&op, op_fail_memory(&op));
    if (st == TAMIZ_OK && ((batch->unnamed && w->db->id) || has_ttl(w))) {
        st = op_publish(&op, spell_out(&op, batch, w, &spelled));
        w->batch = &spelled;
    }
    if (st == TAMIZ_OK)
        st = write_public(w);
    batch_free(&spelled);
    buf_free(&trees);
    return st;
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
    struct writer w = {.db = db, .trees = &w.db, .tree_count = 1, .batch = &batch->writes};
    st = write_options_apply(options, &w);
    if (st != TAMIZ_OK)
        return st;
    const bool plain = db->id == 0 && batch->trees.size == 0 && !has_ttl(&w);
    return plain ? write_public(&w) : write_spelled(&w, batch);
}

tamiz_status tamiz_sync(tamiz *db)
{
    struct writer w = {.db = db, .trees = &w.db, .sync = true};
    const tamiz_status st = store_check(db);
    return st == TAMIZ_OK ? write_public(&w) : st;
}

tamiz_batch *tamiz_batch_new(void)
{
    struct tamiz_batch *b = mem_new_array(&alloc_libc, 1, sizeof *b);
    if (b) {
        batch_init(&b->writes, &alloc_libc);
        b->trees = b->turns = buf_init(&alloc_libc);
    }
    return b;
}

/* Does a write of `keyspace` change what an id of 0 means? */
static bool is_turn(const tamiz_batch *batch, const tamiz *keyspace)
{
    return (!keyspace || keyspace->id == 0) && batch->names_default != (keyspace != NULL);
}

/* Room for what a write of `keyspace` adds to the lists, before anything is added. */
static bool batch_reserve(tamiz_batch *batch, const tamiz *keyspace)
{
    const bool done = (!keyspace || buf_reserve(&batch->trees, sizeof keyspace)) &&
                      (!is_turn(batch, keyspace) || buf_reserve(&batch->turns, sizeof(uint64_t)));
    batch->trees.failed = batch->turns.failed = false; /* they are as they were */
    return done;
}

/* What the last write, which was just added, names. */
static void batch_note(tamiz_batch *batch, tamiz *keyspace)
{
    const uint64_t index = batch->writes.count - 1;
    batch->unnamed |= !keyspace;
    if (is_turn(batch, keyspace)) {
        batch->names_default = keyspace != NULL;
        buf_append(&batch->turns, &index, sizeof index);
    }
    if (!keyspace || is_named(batch, keyspace))
        return;
    batch->store = keyspace->store;
    buf_append(&batch->trees, &keyspace, sizeof(struct tamiz *));
}

static tamiz_status batch_put_kind(tamiz_batch *batch, tamiz *keyspace, enum kind kind,
                                   struct slice key, struct slice value)
{
    if (!batch)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "no batch given (NULL)");
    tamiz_status st = check_key(key.size, key.data);
    if (st == TAMIZ_OK)
        st = check_value(value.size, value.data);
    if (st == TAMIZ_OK && keyspace)
        st = store_check(keyspace);
    if (st == TAMIZ_OK && keyspace && batch->store && batch->store != keyspace->store)
        st = op_refuse(TAMIZ_INVALID_ARGUMENT, "the batch has writes for another store");
    if (st == TAMIZ_OK && batch->writes.body.size + key.size + value.size > BATCH_MOST)
        st = op_refuse(TAMIZ_INVALID_ARGUMENT, "a batch of more than 2^32 bytes");
    if (st != TAMIZ_OK)
        return st;
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, &alloc_libc, &nowhere);
    st = batch_reserve(batch, keyspace)
             ? batch_add(&op, &batch->writes, kind, keyspace ? keyspace->id : 0, key, value)
             : op_fail_memory(&op);
    st = op_publish(&op, st);
    if (st == TAMIZ_OK)
        batch_note(batch, keyspace);
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
    buf_clear(&batch->trees);
    buf_clear(&batch->turns);
    batch->unnamed = batch->names_default = false;
    batch->store = NULL;
}

void tamiz_batch_free(tamiz_batch *batch)
{
    if (!batch)
        return;
    batch_free(&batch->writes);
    buf_free(&batch->trees);
    buf_free(&batch->turns);
    mem_free(&alloc_libc, batch, sizeof *batch);
}
