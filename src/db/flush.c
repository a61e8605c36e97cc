/* SPDX-License-Identifier: MIT */
#include "db/flush.h"

#include "db/expiry.h"
#include "db/idle.h"
#include "db/install.h"
#include "db/logs.h"
#include "db/output.h"
#include "db/snapshot.h"
#include "db/standing.h"
#include "db/write.h"

/* ---- the work ---- */

/* One sealed memtable as tables: appended to `tables`. */
static tamiz_status write_memtable(struct op *op, const struct sealed *sealed, struct buf *tables)
{
    struct store *s = sealed->db->store;
    struct memtable *m = sealed->memtable->memtable;
    struct buf snapshots = buf_init(&s->alloc), ranges = buf_init(&s->alloc);
    struct iter *source = NULL;
    tamiz_status st = TAMIZ_OK;
    snapshot_list(s, &snapshots);
    memtable_ranges_list(m, &ranges);
    TRY(snapshots.failed || ranges.failed ? op_fail_memory(op) : TAMIZ_OK);
    source = memtable_iter(op, m);
    TRY(source ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    const struct compact_input in = {.source = source,
                                     .ranges = (const struct range_delete *)(void *)ranges.data,
                                     .range_count = ranges.size / sizeof(struct range_delete),
                                     .now_us = store_now(s),
                                     .snapshots = (const uint64_t *)(const void *)snapshots.data,
                                     .snapshot_count = snapshots.size / sizeof(uint64_t)};
    struct compact_output out = output_of(sealed->db, 0, output_next_run(s), IO_DATA);
    TRY(output_filter(op, sealed->db, NULL, memtable_count(m), &out.build.filter));
    env_point(s->env, "flush.build");
    TRY(compact_run(op, &in, &out, tables));
done:
    iter_close(source);
    buf_free(&snapshots);
    buf_free(&ranges);
    return st;
}

/* A flush of one or more memtables of one keyspace. */
struct flushing {
    struct buf tables;    /* struct table_meta * */
    struct buf memtables; /* struct mem_ref * */
    uint64_t bytes_in, bytes_out;
};

/* A table that holds part of a batch must not outlive the rest of it: what another keyspace has of
 * the same writes is in a memtable, and after a crash in the log, as far as that is durable. Where
 * a log lost a sync this fails, unless list[0..n) is all that there is. */
static tamiz_status secure_logs(struct op *op, struct store *s, const struct sealed *list, size_t n)
{
    mutex_lock(&s->mutex);
    bool shared = false;
    for (size_t i = 0; i < s->keyspace_count; i++) {
        const struct tamiz *db = s->keyspaces[i];
        const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
        bool flushed = false;
        for (size_t k = 0; k < n; k++)
            flushed |= list[k].db == db;
        for (uint32_t k = 0; v && !flushed && k < v->memtable_count; k++)
            shared |= memtable_count(v->memtables[k]->memtable) > 0;
    }
    mutex_unlock(&s->mutex);
    return shared ? store_secure_logs(op, s) : TAMIZ_OK;
}

/* Writes the tables of list[0..n), one `flushing` a keyspace; *count of them. */
static tamiz_status write_all(struct op *op, const struct sealed *list, size_t n,
                              struct flushing *flushes, struct tree_change *changes, size_t *count)
{
    tamiz_status st = TAMIZ_OK;
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        struct tamiz *db = list[i].db;
        if (i == 0 || list[i - 1].db != db) {
            changes[*count].db = db;
            flushes[*count].tables = flushes[*count].memtables = buf_init(&db->store->alloc);
            ++*count;
        }
        struct flushing *f = &flushes[*count - 1];
        buf_append(&f->memtables, &list[i].memtable, sizeof(struct mem_ref *));
        TRY(f->memtables.failed ? op_fail_memory(op) : TAMIZ_OK);
        f->bytes_in += memtable_bytes(list[i].memtable->memtable);
        TRY(write_memtable(op, &list[i], &f->tables));
    }
    for (size_t i = 0; i < *count; i++) {
        flushes[i].bytes_out = output_bytes(&flushes[i].tables);
        changes[i].tables = output_edit(NULL, &flushes[i].tables);
        changes[i].flushed = (struct mem_ref *const *)(const void *)flushes[i].memtables.data;
        changes[i].flushed_count = flushes[i].memtables.size / sizeof(struct mem_ref *);
    }
done:
    return st;
}

static void tell_flush(struct op *op, const struct store *s, const struct flushing *f,
                       size_t memtables)
{
    counter_add(&op->count->flushes, memtables);
    counter_add(&op->count->flush_bytes_in, f->bytes_in);
    counter_add(&op->count->flush_bytes_out, f->bytes_out);
    store_event(s, TAMIZ_EVENT_FLUSH, "memtable of %llu bytes to %llu bytes in level 0",
                (unsigned long long)f->bytes_in, (unsigned long long)f->bytes_out);
}

tamiz_status flush_memtables(struct op *op, struct store *s, const struct sealed *list, size_t n,
                             uint64_t log_number)
{
    const uint64_t from = env_monotonic_ns(s->env);
    struct flushing *flushes = mem_new_array(&s->alloc, n, sizeof *flushes);
    struct tree_change *changes = mem_new_array(&s->alloc, n, sizeof *changes);
    size_t count = 0, tables = 0;
    tamiz_status st = flushes && changes ? TAMIZ_OK : op_fail_memory(op);
    TRY(st);
    TRY(write_all(op, list, n, flushes, changes, &count));
    for (size_t i = 0; i < count; i++)
        tables += changes[i].tables.added_count;
    if (tables)
        TRY(env_sync_directory(op, s->env, s->directory));
    env_point(s->env, "flush.install");
    TRY(secure_logs(op, s, list, n));
    TRY(install(op, s, changes, count, log_number));
    for (size_t i = 0; i < count; i++) {
        output_installed(op, s, &flushes[i].tables);
        tell_flush(op, s, &flushes[i], changes[i].flushed_count);
    }
    counter_add(&op->count->background_us, (env_monotonic_ns(s->env) - from) / 1000);
    store_drop_logs(op, s);
done:
    for (size_t i = 0; i < count; i++) {
        discard_tables(op, s, &flushes[i].tables); /* none, where they were installed */
        buf_free(&flushes[i].tables);
        buf_free(&flushes[i].memtables);
    }
    mem_free(&s->alloc, flushes, n * sizeof *flushes);
    mem_free(&s->alloc, changes, n * sizeof *changes);
    return st;
}

/* ---- which, and when ---- */

bool flush_wanted(const struct tamiz *db)
{
    const struct store *s = db->store;
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    return !db->flushing && !db->dropped && v->memtable_count > 1 &&
           (standing_is_due(s, &db->flush_error) || s->options.threads == 0);
}

/* The `most` oldest of one keyspace. */
static void take_sealed(struct flush_job *j, struct tamiz *db, uint32_t most)
{
    const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
    for (uint32_t i = v->memtable_count; i-- > 1 && most > 0; most--) {
        struct mem_ref *m = v->memtables[i];
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
        j->list[j->count++] = (struct sealed){db, m};
        j->bytes += memtable_bytes(m->memtable);
        db->flushing = true;
    }
}

/* One memtable of the first keyspace, from the turn on, that has one. */
static void pick_one(struct store *s, struct flush_job *j)
{
    for (size_t i = 0; i < s->keyspace_count && j->count == 0; i++) {
        struct tamiz *db = s->keyspaces[(s->flush_turn + i) % s->keyspace_count];
        if (!flush_wanted(db))
            continue;
        take_sealed(j, db, 1);
        s->flush_turn = (s->flush_turn + i + 1) % s->keyspace_count;
    }
}

/* A log lost a sync: what it had may be nowhere but in memory, and of a batch one keyspace's part
 * must not be on the disk without the others'. So all of it goes at once, when all is sealed. */
static void pick_all(struct store *s, struct flush_job *j)
{
    bool ready = !s->moving_on;
    for (size_t i = 0; i < s->keyspace_count; i++) {
        const struct tamiz *db = s->keyspaces[i];
        const struct view *v = atomic_load_explicit(&db->view, memory_order_relaxed);
        ready &= v->memtable_count == 1 || flush_wanted(db);
    }
    for (size_t i = 0; ready && i < s->keyspace_count; i++)
        take_sealed(j, s->keyspaces[i], VIEW_ROOM);
}

/* What its status means for the flushes of a keyspace to come. mutex held. */
static void flush_judge(struct tamiz *db, const struct op *op, tamiz_status st)
{
    db->flushing = false;
    standing_judge(db->store, &db->flush_error, op, st, "flush");
}

static void flush_job_free(struct store *s, struct flush_job *j)
{
    if (j->many)
        mem_free(&s->alloc, j->many, j->room * sizeof *j->many);
    j->many = NULL;
}

/* Where all must go together and there is no memory to say what all is: that is a flush that
 * failed, or whoever waits for it would wait for ever. */
static void fail_all(struct store *s, struct op *op)
{
    const tamiz_status st = op_fail_memory(op);
    for (size_t i = 0; i < s->keyspace_count; i++)
        if (flush_wanted(s->keyspaces[i]))
            flush_judge(s->keyspaces[i], op, st);
}

bool flush_job_pick(struct store *s, struct flush_job *j, struct op *op)
{
    bool wanted = false;
    *j = (struct flush_job){.room = s->keyspace_count * VIEW_ROOM};
    for (size_t i = 0; i < s->keyspace_count && !wanted; i++)
        wanted = flush_wanted(s->keyspaces[i]);
    if (!wanted)
        return false;
    j->list = &j->one;
    if (!s->log_lost || s->keyspace_count == 1) {
        pick_one(s, j);
        return j->count > 0;
    }
    j->list = j->many = mem_new_array(&s->alloc, j->room, sizeof *j->many);
    if (j->many)
        pick_all(s, j);
    else
        fail_all(s, op);
    if (j->count == 0)
        flush_job_free(s, j);
    return j->count > 0;
}

bool flush_job_run(struct store *s, struct flush_job *j, struct op *op)
{
    mutex_unlock(&s->mutex);
    env_point(s->env, "flush.pick");
    const uint64_t from = env_monotonic_ns(s->env);
    const tamiz_status st = flush_memtables(op, s, j->list, j->count, 0);
    const uint64_t took = env_monotonic_ns(s->env) - from;
    for (size_t i = 0; i < j->count; i++)
        mem_ref_unref(s, j->list[i].memtable);
    mutex_lock(&s->mutex);
    for (size_t i = 0; i < j->count; i++) {
        struct tamiz *db = j->list[i].db;
        if (i > 0 && j->list[i - 1].db == db)
            continue;
        flush_judge(db, op, st);
        if (st == TAMIZ_OK)
            db->pace.flush_rate = pace_learn(db->pace.flush_rate, j->bytes, took);
    }
    flush_job_free(s, j);
    idle_yield(s);
    return st == TAMIZ_OK;
}
