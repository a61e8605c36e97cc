/* SPDX-License-Identifier: MIT */
#include "db/write.h"

#include <assert.h>

#include "db/background.h"
#include "db/install.h"
#include "db/room.h"

enum {
    GROUP_BYTES = 1 << 20, /* a group takes followers until it has so much */
    GROUP_WRITERS = 64,
    GATHER_PART = 4,       /* a leader waits up to such a part of a sync for others to come */
    GATHER_PAUSE = 16,     /* … and not for so many groups after one that nobody came to */
    GATHER_LOOKS = 100000, /* … whatever the clock says: a simulation's may stand still */
};

/* ---- the group ---- */

struct group {
    struct writer *last;
    size_t writers;
    uint64_t writes;
    uint64_t bytes;
    bool sync;
    uint64_t log_end, log_seq; /* of the log before this group's record; 0: it has none */
};

static uint64_t writer_count(const struct writer *w)
{
    return w->single ? 1 : w->batch ? w->batch->count : 0;
}

static size_t writer_bytes(const struct writer *w)
{
    return w->single ? w->key.size + w->value.size : w->batch ? w->batch->body.size : 0;
}

/* It goes to the leader's keyspace, where there is room, or to others that have some. */
static bool may_follow(const struct writer *leader, const struct writer *w)
{
    for (size_t i = 0; i < w->tree_count; i++) {
        const struct tamiz *db = w->trees[i];
        if ((leader->tree_count != 1 || db != leader->trees[0]) && !room_is_free(db))
            return false;
    }
    return true;
}

/* Everybody from the leader on that can go with it. mutex held. */
static struct group collect(struct writer *leader)
{
    struct group g = {
        .last = leader, .writers = 1, .writes = writer_count(leader), .sync = leader->sync};
    g.bytes = writer_bytes(leader);
    for (struct writer *w = leader->next; w && g.writers < GROUP_WRITERS; w = w->next) {
        if (g.bytes + writer_bytes(w) > GROUP_BYTES || w->no_log != leader->no_log || w->seal ||
            w->work || !may_follow(leader, w))
            break;
        g.bytes += writer_bytes(w);
        g.last = w;
        g.writers++;
        g.writes += writer_count(w);
        g.sync |= w->sync;
    }
    return g;
}

/* The record's pieces: the group's head, then each writer's writes. A single write needs its two
 * small heads encoded. */
static tamiz_status append_group(struct op *op, struct store *s, struct writer *leader,
                                 const struct group *g, uint64_t first_seq)
{
    enum { PIECES_EACH = 4, SMALL = 24 };
    struct slice pieces[1 + GROUP_WRITERS * PIECES_EACH];
    uint8_t small[GROUP_WRITERS * 2][SMALL];
    uint8_t head[2 * VARINT_MAX];
    size_t n = 0, smalls = 0;
    uint8_t *end = varint_store(varint_store(head, first_seq), g->writes);
    pieces[n++] = slice_of(head, (size_t)(end - head));
    for (struct writer *w = leader;; w = w->next) {
        if (w->single) {
            uint8_t *at = small[smalls++];
            uint8_t *to = at;
            *to++ = (uint8_t)w->kind;
            to = varint_store(to, w->db->id);
            to = varint_store(to, w->key.size);
            pieces[n++] = slice_of(at, (size_t)(to - at));
            pieces[n++] = w->key;
            if (w->kind != KIND_DELETE) {
                at = small[smalls++];
                pieces[n++] = slice_of(at, (size_t)(varint_store(at, w->value.size) - at));
                pieces[n++] = w->value;
            }
        } else if (w->batch) {
            pieces[n++] = buf_slice(&w->batch->body);
        }
        if (w == g->last)
            break;
    }
    (void)s;
    return log_append(op, &store_active_log(s)->writer, pieces, n);
}

bool write_sync_is_due(const struct store *s)
{
    const uint64_t interval_ns = (uint64_t)s->options.sync_interval_ms * 1000000;
    if (s->options.sync != TAMIZ_SYNC_INTERVAL)
        return s->options.sync == TAMIZ_SYNC_ALWAYS;
    return s->options.threads == 0 &&
           env_monotonic_ns(s->env) -
                   atomic_load_explicit(&s->last_sync_ns, memory_order_relaxed) >=
               interval_ns;
}

/* The group failed after its record was written, whoever's sync or memory it was: its sequences
 * will be used again. log_mutex held. */
static void retract_group(struct op *op, struct store *s, const struct group *g)
{
    if (g->log_end == 0)
        return;
    log_retract(op, &store_active_log(s)->writer, g->log_end);
    store_active_log(s)->last_seq = g->log_seq;
}

/* To the log, and to the disk where somebody asked. No lock held: only the leader is here. */
static tamiz_status log_group(struct op *op, struct store *s, struct writer *leader,
                              struct group *g, uint64_t first_seq)
{
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->log_mutex);
    if (store_active_log(s)->writer.broken)
        TRY(op_fail(op, TAMIZ_IO_ERROR, "%s: the log failed before", s->directory));
    if (g->writes && !leader->no_log) {
        const uint64_t end = store_active_log(s)->writer.end;
        TRY(append_group(op, s, leader, g, first_seq));
        g->log_end = end;
        g->log_seq = store_active_log(s)->last_seq;
        store_active_log(s)->last_seq = first_seq + g->writes - 1;
    }
    if (g->sync || (g->writes && !leader->no_log && write_sync_is_due(s))) {
        const uint64_t from = env_monotonic_ns(s->env);
        TRY(store_sync_logs(op, s));
        s->sync_ns = env_monotonic_ns(s->env) - from;
    }
done:
    if (st != TAMIZ_OK)
        retract_group(op, s, g);
    mutex_unlock(&s->log_mutex);
    return st;
}

struct tamiz *writer_tree(const struct writer *w, uint64_t id, struct tamiz *last)
{
    if (last->id == id)
        return last;
    for (size_t i = 0; i < w->tree_count; i++)
        if (w->trees[i]->id == id)
            return w->trees[i];
    assert(false && "a batch knows the keyspaces that it names");
    return last;
}

static tamiz_status insert_writer(struct op *op, const struct writer *w, uint64_t first_seq)
{
    if (w->single)
        return memtable_add(op, w->db->active->memtable, w->key, hash_key(w->key),
                            stamp_of(first_seq, w->kind), w->value);
    if (!w->batch)
        return TAMIZ_OK;
    struct batch_reader reader;
    struct batch_write write;
    struct tamiz *db = w->db;
    batch_walk(w->batch, first_seq, &reader);
    tamiz_status st = TAMIZ_OK;
    while (st == TAMIZ_OK && batch_next(&reader, &write)) {
        db = writer_tree(w, write.keyspace, db);
        st = memtable_add(op, db->active->memtable, write.key, hash_key(write.key),
                          stamp_of(write.seq, write.kind), write.value);
    }
    return st;
}

/* The active memtables: only the leader could change which they are. */
static tamiz_status insert_group(struct op *op, struct writer *leader, const struct group *g,
                                 uint64_t first_seq)
{
    tamiz_status st = TAMIZ_OK;
    for (struct writer *w = leader; st == TAMIZ_OK; w = w->next) {
        st = insert_writer(op, w, first_seq);
        first_seq += writer_count(w);
        if (w == g->last)
            break;
    }
    return st;
}

/* After an append or a sync failed: a log that failed is left for good. If only an append failed,
 * all that was acknowledged is in the memtable and in the log's good part, and a new log goes on.
 * If a sync failed, acknowledged bytes of it may be lost: before the next write the memtables must
 * reach tables, all together. No lock held. */
static void store_log_failed(struct op *op, struct store *s)
{
    struct op quiet;
    op_init(&quiet, &s->alloc, op->count);
    mutex_lock(&s->log_mutex);
    bool lost = false;
    for (size_t i = 0; i < s->log_count; i++)
        lost |= s->logs[i].writer.broken && s->logs[i].writer.durable < s->logs[i].writer.end;
    const bool broken = store_active_log(s)->writer.broken;
    if (broken && !lost)
        (void)store_new_log(&quiet, s, store_active_log(s)->last_seq);
    const bool still = store_active_log(s)->writer.broken;
    mutex_unlock(&s->log_mutex);
    mutex_lock(&s->mutex);
    s->moving_on |= lost || still;
    s->log_lost |= lost;
    mutex_unlock(&s->mutex);
}

tamiz_status store_secure_logs(struct op *op, struct store *s)
{
    mutex_lock(&s->log_mutex);
    const tamiz_status st = store_sync_logs(op, s);
    mutex_unlock(&s->log_mutex);
    if (st != TAMIZ_OK)
        store_log_failed(op, s);
    return st;
}

static tamiz_status commit(struct op *op, struct store *s, struct writer *leader, struct group *g)
{
    const uint64_t first_seq = atomic_load_explicit(&s->seq, memory_order_relaxed) + 1;
    if (first_seq + g->writes > SEQ_MAX)
        return op_fail(op, TAMIZ_NOT_SUPPORTED, "%s: the sequence has reached its end",
                       s->directory);
    tamiz_status st = TAMIZ_OK;
    if (g->writes && atomic_load_explicit(&s->in_doubt, memory_order_relaxed))
        st = install_leave_doubt(op, s);
    if (st != TAMIZ_OK)
        return st;
    st = log_group(op, s, leader, g, first_seq);
    if (st != TAMIZ_OK) {
        store_log_failed(op, s);
        return st;
    }
    env_point(s->env, "write.insert");
    st = insert_group(op, leader, g, first_seq);
    if (st != TAMIZ_OK) {
        mutex_lock(&s->log_mutex);
        retract_group(op, s, g);
        mutex_unlock(&s->log_mutex);
        mutex_lock(&s->mutex);
        s->write_error = true;
        mutex_unlock(&s->mutex);
        return st;
    }
    env_point(s->env, "write.publish");
    if (g->writes)
        atomic_store_explicit(&s->seq, first_seq + g->writes - 1, memory_order_release);
    return TAMIZ_OK;
}

tamiz_status store_log_skip(struct op *op, struct store *s, uint64_t seq)
{
    struct buf head = buf_init(&s->alloc);
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->log_mutex);
    struct store_log *log = store_active_log(s);
    const uint64_t end = log->writer.end, last_seq = log->last_seq;
    batch_head(&head, seq + 1, 0);
    TRY(head.failed ? op_fail_memory(op) : TAMIZ_OK);
    const struct slice piece = buf_slice(&head);
    TRY(log_append(op, &log->writer, &piece, 1));
    log->last_seq = seq;
    st = store_sync_logs(op, s);
    if (st != TAMIZ_OK) { /* its sequences will be used */
        log_retract(op, &log->writer, end);
        log->last_seq = last_seq;
    }
done:
    mutex_unlock(&s->log_mutex);
    buf_free(&head);
    if (st != TAMIZ_OK)
        store_log_failed(op, s);
    return st;
}

/* What the memtables need to know of the logs: those that had nothing need them from this one on.
 * mutex held. */
static void mark_logs(struct store *s, struct writer *leader, const struct group *g)
{
    const uint64_t log = atomic_load_explicit(&s->active_log, memory_order_relaxed);
    for (struct writer *w = leader;; w = w->next) {
        for (size_t i = 0; i < w->tree_count; i++) {
            struct mem_ref *m = w->trees[i]->active;
            if (memtable_count(m->memtable) == 0)
                m->first_log = log;
            m->unlogged |= w->no_log && writer_count(w) > 0;
        }
        if (w == g->last)
            break;
    }
}

/* ---- the queue ---- */

static void finish(struct writer *w, struct op *from, tamiz_status status)
{
    w->status = status;
    w->done = true;
    if (status != TAMIZ_OK && w->op != from)
        op_fail(w->op, status, "%s", from->text);
    if (w->waits)
        condition_signal(&w->ready);
}

/* Joins the queue and waits until done or first. mutex held. */
static void enqueue(struct op *op, struct store *s, struct writer *w)
{
    w->next = NULL;
    if (s->last_writer)
        s->last_writer->next = w;
    else
        s->first_writer = w;
    s->last_writer = w;
    atomic_fetch_add_explicit(&s->queued, 1, memory_order_relaxed);
    if (s->first_writer == w)
        return;
    if (!w->waits)
        w->waits = condition_init(op, &w->ready) == TAMIZ_OK;
    while (!w->done && s->first_writer != w) {
        if (w->waits && (s->options.threads || !ENV_HAS(s->env, point)))
            condition_wait(&w->ready, &s->mutex);
        else
            store_wait(s, &s->progress, 100);
    }
}

static void dequeue_group(struct op *op, struct store *s, struct writer *leader,
                          const struct group *g, tamiz_status st)
{
    /* Before any of them can be back. */
    s->expected = atomic_fetch_sub_explicit(&s->queued, (uint32_t)g->writers, memory_order_relaxed);
    for (struct writer *w = leader; w;) {
        struct writer *next = w->next; /* a follower's frame may be gone once it is done */
        const bool end = w == g->last;
        s->first_writer = next;
        if (w == leader)
            w->status = st, w->done = true;
        else
            finish(w, op, st);
        if (end)
            break;
        w = next;
    }
    if (!s->first_writer)
        s->last_writer = NULL;
    else if (s->first_writer->waits)
        condition_signal(&s->first_writer->ready);
}

/* Onto the bills of the keyspaces that are written to. mutex held. */
static void charge_group(struct writer *leader, const struct group *g)
{
    for (struct writer *w = leader;; w = w->next) {
        for (size_t i = 0; i < w->tree_count; i++)
            room_charge(w->trees[i], writer_bytes(w) / w->tree_count);
        if (w == g->last)
            break;
    }
}

/* The leader gives up its place: what it waits for is nothing to those behind it. mutex held. */
static void step_aside(struct store *s, struct writer *w)
{
    atomic_fetch_sub_explicit(&s->queued, 1, memory_order_relaxed);
    s->first_writer = w->next;
    if (!s->first_writer)
        s->last_writer = NULL;
    else if (s->first_writer->waits)
        condition_signal(&s->first_writer->ready);
}

/*
 * Those whom the last sync let go are mostly on their way back, the last leader first. A leader
 * that did not wait for them would sync for itself alone, and they for theirs: two syncs where one
 * does. As many are expected as there were when that group ended, for a part of what a sync takes;
 * a writer that was alone expects nobody. Vain waits become rare. mutex held, given up in between.
 */
static void gather(struct store *s, const struct writer *w)
{
    const uint32_t expected = s->expected < GROUP_WRITERS ? s->expected : GROUP_WRITERS;
    const bool syncs = w->sync || s->options.sync == TAMIZ_SYNC_ALWAYS;
    if (!syncs || s->options.threads == 0 ||
        atomic_load_explicit(&s->queued, memory_order_relaxed) >= expected)
        return;
    if (s->gather_pause > 0) {
        s->gather_pause--;
        return;
    }
    const uint64_t until = env_monotonic_ns(s->env) + s->sync_ns / GATHER_PART;
    uint32_t here, looks = 0;
    mutex_unlock(&s->mutex);
    do {
        thread_yield();
        here = atomic_load_explicit(&s->queued, memory_order_relaxed);
    } while (here < expected && ++looks < GATHER_LOOKS && env_monotonic_ns(s->env) < until);
    mutex_lock(&s->mutex);
    s->gather_pause = here == 1 ? GATHER_PAUSE : 0;
}

/* As the leader, where there is room. mutex held, given up in between. */
static void lead(struct op *op, struct store *s, struct writer *w, tamiz_status st)
{
    struct group g = {.last = w, .writers = 1};
    if (st == TAMIZ_OK && w->work) {
        mutex_unlock(&s->mutex);
        st = w->work(op, w);
        mutex_lock(&s->mutex);
    } else if (st == TAMIZ_OK) {
        gather(s, w);
        g = collect(w);
        charge_group(w, &g);
        mark_logs(s, w, &g);
        mutex_unlock(&s->mutex);
        env_point(s->env, "wal.lead");
        st = commit(op, s, w, &g);
        mutex_lock(&s->mutex);
    }
    dequeue_group(op, s, w, &g, st);
}

tamiz_status db_write(struct op *op, struct writer *w)
{
    struct store *s = w->db->store;
    w->op = op;
    mutex_lock(&s->mutex);
    while (!w->done) {
        struct room_wait wait = {.db = NULL};
        enqueue(op, s, w);
        if (w->done)
            break;
        tamiz_status st = room_make(op, w, &wait);
        if (st != TAMIZ_OK || !wait.db) {
            lead(op, s, w, st);
            break;
        }
        step_aside(s, w);
        st = room_wait(op, w, &wait);
        if (st != TAMIZ_OK) {
            w->status = st;
            w->done = true;
        }
    }
    mutex_unlock(&s->mutex);
    if (w->waits)
        condition_free(&w->ready);
    if (s->options.threads == 0)
        background_run(
            s); /* after a failure too: a flush may be what makes the next write possible */
    return w->status;
}
