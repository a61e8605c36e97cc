/* SPDX-License-Identifier: MIT */
#include "db/write.h"

#include <assert.h>

#include "db/background.h"

enum {
    GROUP_BYTES = 1 << 20, /* a group takes followers until it has so much */
    GROUP_WRITERS = 64,
    LOG_ALLOCATE =
        1 << 20, /* reserved at a time, so that an append seldom changes the file's metadata */
    WAIT_US = 100 * 1000,        /* a waiting writer looks up so often, whatever is signalled */
    SEALED_MAX = 2,              /* memtables that wait for their flush before writers do */
    PACE_EVERY = 64 << 10,       /* bytes after which the pace is worked out anew */
    PACE_SLACK_NS = 1000 * 1000, /* owed time that is worth a pause */
    PACE_PAUSE_NS = 50 * 1000 * 1000, /* the longest pause of one group */
    DEBT_START = 4, /* times what level 1 may have: bytes to be merged that slow writers down, */
    DEBT_STOP = 16, /* and that would stop them */
};

/* ---- logs ---- */

static struct store_log *active_log(struct store *s)
{
    return s->log_count ? &s->logs[s->log_count - 1] : NULL;
}

tamiz_status store_new_log(struct op *op, struct store *s, uint64_t first_seq)
{
    assert(mutex_held(&s->log_mutex));
    tamiz_status st = TAMIZ_OK;
    char *path = NULL;
    if (s->log_count == s->log_capacity) {
        const size_t capacity = s->log_capacity ? s->log_capacity * 2 : 8;
        struct store_log *grown = mem_resize(&s->alloc, s->logs, s->log_capacity * sizeof *grown,
                                             capacity * sizeof *grown);
        if (!grown)
            return op_fail_memory(op);
        s->logs = grown;
        s->log_capacity = capacity;
    }
    struct store_log fresh = {.number = store_next_file(s), .last_seq = first_seq - 1};
    struct log_header header = {.kind = LOG_WAL,
                                .number = fresh.number,
                                .first = first_seq,
                                .boot_id = env_boot_id(s->env)};
    TRY(env_random_u64(op, s->env, &header.file_id));
    path = store_path(op, s, FILE_LOG, fresh.number);
    TRY(path ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(log_create(op, s->env, &s->alloc, path, IO_LOG, &header, LOG_ALLOCATE, &fresh.writer));
    /* Its name is durable before anything is in it: a log that is missing is never from a crash. */
    st = env_sync_directory(op, s->env, s->directory);
    if (st == TAMIZ_OK) {
        s->logs[s->log_count++] = fresh;
    } else {
        (void)log_close(op, &fresh.writer);
        (void)env_remove(op, s->env, path);
    }
done:
    mem_free_text(&s->alloc, path);
    return st;
}

/* Where no-log writes came last, an empty batch says how far the sequence went, so that the next
 * log follows without a gap. */
static tamiz_status log_mark_end(struct op *op, struct store *s, struct store_log *log,
                                 uint64_t next_seq)
{
    if (log->writer.broken || log->last_seq + 1 == next_seq)
        return TAMIZ_OK;
    struct buf head = buf_init(&s->alloc);
    batch_head(&head, next_seq, 0);
    const struct slice piece = buf_slice(&head);
    const tamiz_status st =
        head.failed ? op_fail_memory(op) : log_append(op, &log->writer, &piece, 1);
    buf_free(&head);
    return st;
}

/* *number: the new log's. */
static tamiz_status switch_log(struct op *op, struct store *s, uint64_t *number)
{
    const uint64_t next_seq = atomic_load_explicit(&s->seq, memory_order_relaxed) + 1;
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->log_mutex);
    struct store_log *log = active_log(s);
    if (log)
        TRY(log_mark_end(op, s, log, next_seq));
    TRY(store_new_log(op, s, next_seq));
    *number = active_log(s)->number;
done:
    mutex_unlock(&s->log_mutex);
    return st;
}

tamiz_status store_sync_logs(struct op *op, struct store *s)
{
    assert(mutex_held(&s->log_mutex));
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < s->log_count; i++) {
        struct store_log *log = &s->logs[i];
        if (log->writer.durable < log->writer.end)
            TRY(log_sync(op, &log->writer));
    }
    atomic_store_explicit(&s->last_sync_ns, env_monotonic_ns(s->env), memory_order_relaxed);
done:
    return st;
}

/* Takes the oldest log off the list where it is below `keep_from`. */
static bool detach_log(struct store *s, uint64_t keep_from, struct store_log *log)
{
    mutex_lock(&s->log_mutex);
    const bool found = s->log_count > 1 && s->logs[0].number < keep_from;
    if (found) {
        *log = s->logs[0];
        s->log_count--;
        memmove(s->logs, s->logs + 1, s->log_count * sizeof *s->logs);
    }
    mutex_unlock(&s->log_mutex);
    return found;
}

/* Removing a large file takes the system a tenth of a second and more: no writer waits for it. */
void store_drop_logs(struct op *op, struct store *s, uint64_t keep_from)
{
    struct store_log log;
    while (detach_log(s, keep_from, &log)) {
        /* Its writes are in durable tables: what fails here costs a file that the next open
         * removes. */
        (void)log_close(op, &log.writer);
        op_forgive(op);
        char *path = store_path(op, s, FILE_LOG, log.number);
        if (path)
            (void)env_remove(op, s->env, path);
        op_forgive(op);
        mem_free_text(&s->alloc, path);
    }
}

/* ---- sealing ---- */

/* Ends the active memtable: a new log, a new memtable, a new view. Called by the leader; mutex
 * held, given up in between. */
static tamiz_status seal_memtable(struct op *op, struct tamiz *db)
{
    struct store *s = db->store;
    struct mem_ref *fresh = NULL;
    struct mem_ref **list = NULL;
    struct view *next = NULL;
    uint32_t count = 0;
    uint64_t log = 0;
    tamiz_status st = TAMIZ_OK;
    mutex_unlock(&s->mutex);
    TRY(switch_log(op, s, &log));
    fresh = mem_ref_new(op, s, log);
    TRY(fresh ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
done:
    mutex_lock(&s->mutex);
    if (st != TAMIZ_OK)
        return st;
    /* From here on the mutex is held: no flush can change the view between reading and replacing
     * it. */
    struct view *now = atomic_load_explicit(&db->view, memory_order_relaxed);
    count = now->memtable_count + 1;
    list = mem_new_array(&s->alloc, count, sizeof(struct mem_ref *));
    if (list) {
        list[0] = fresh;
        memcpy(list + 1, now->memtables, now->memtable_count * sizeof *list);
        next = view_new(op, s, list, count, now->version);
        mem_free(&s->alloc, list, count * sizeof *list);
    }
    mem_ref_unref(s, fresh); /* the view has its own */
    if (!next)
        return op_fail_memory(op);
    s->moving_on = false;
    view_publish(db, next);
    condition_broadcast(&s->work);
    return TAMIZ_OK;
}

/* ---- room ---- */

static uint32_t sealed_count(const struct view *v)
{
    return v->memtable_count - 1;
}

static void count_stall(struct op *op, enum pace_reason why, uint64_t us)
{
    counter *const by[PACE_REASONS] = {[PACE_FLUSH] = &op->count->stall_flush_us,
                                       [PACE_LEVEL0] = &op->count->stall_level0_us,
                                       [PACE_DEBT] = &op->count->stall_debt_us};
    counter_add(&op->count->stalls, 1);
    counter_add(&op->count->stall_us, us);
    if (by[why])
        counter_add(by[why], us);
}

static const char *const stall_words[PACE_REASONS] = {
    [PACE_FREE] = "",
    [PACE_FLUSH] = "memtables are not flushed yet",
    [PACE_LEVEL0] = "level 0 has too many runs",
    [PACE_DEBT] = "too much waits to be merged",
};

static tamiz_status refuse_waiting(struct op *op, const struct store *s, enum pace_reason why)
{
    return op_fail(op, TAMIZ_BUSY, "%s: a write would have to wait: %s", s->directory,
                   stall_words[why]);
}

/* Waits for the background, or does its work; counts the stall. mutex held. TAMIZ_BUSY with
 * no_wait. */
static tamiz_status wait_for_background(struct op *op, struct store *s, const struct writer *w,
                                        enum pace_reason why)
{
    if (w->no_wait)
        return refuse_waiting(op, s, why);
    const uint64_t from = env_monotonic_ns(s->env);
    store_event(s, TAMIZ_EVENT_STALL, "writers wait: %s", stall_words[why]);
    if (s->options.threads == 0) {
        mutex_unlock(&s->mutex);
        const bool did = background_step(s);
        mutex_lock(&s->mutex);
        if (!did) /* another caller does it, or it failed */
            (void)condition_wait_us(&s->progress, &s->mutex, 1000);
    } else {
        condition_broadcast(&s->work);
        (void)condition_wait_us(&s->progress, &s->mutex, WAIT_US);
    }
    count_stall(op, why, (env_monotonic_ns(s->env) - from) / 1000);
    return TAMIZ_OK;
}

static tamiz_status refuse_writing(struct op *op, const struct store *s)
{
    if (atomic_load_explicit(&s->closing, memory_order_relaxed))
        return op_fail(op, TAMIZ_CLOSED, "%s: the store is being closed", s->directory);
    if (s->options.read_only)
        return op_fail(op, TAMIZ_READ_ONLY, "%s: opened read-only", s->directory);
    if (s->write_error)
        return op_fail(
            op, TAMIZ_READ_ONLY,
            "%s: a write reached the log but not memory; reading goes on, writing after reopening",
            s->directory);
    return TAMIZ_OK;
}

/* Whether merges go on: nobody waits for one that will not come. */
static bool merges_come(const struct store *s)
{
    return s->options.compaction != TAMIZ_COMPACTION_OFF && s->paused == 0 &&
           (s->merge_error.status == TAMIZ_OK || s->merging > 0);
}

static bool level0_full(const struct store *s, const struct view *v)
{
    return v->version->level_runs[0] >= s->options.level0_stop && merges_come(s);
}

/* ---- pace ---- */

/* mutex held. */
static void work_out_pace(struct store *s, const struct view *v)
{
    const struct pick_options o = pick_options_of(s);
    struct pace_state p = {.memtable_bytes = s->options.memtable,
                           .sealed_most = SEALED_MAX,
                           .flush_rate = s->pace.flush_rate,
                           .merge_rate = s->pace.merge_rate};
    for (uint32_t i = 0; i < v->memtable_count; i++)
        p.unflushed += memtable_bytes(v->memtables[i]->memtable);
    if (merges_come(s)) {
        p.runs = v->version->level_runs[0];
        p.runs_start = s->options.level0_runs;
        p.runs_stop = s->options.level0_stop;
        p.debt = pick_debt(v->version, &o);
        p.debt_start = pick_level_limit(&o, 1) * DEBT_START;
        p.debt_stop = pick_level_limit(&o, 1) * DEBT_STOP;
    }
    const bool was = s->pace.ns_per_byte > 0;
    s->pace.ns_per_byte = pace_ns_per_byte(&p, &s->pace.reason);
    s->pace.since = 0;
    if (s->pace.ns_per_byte > 0 && !was)
        store_event(s, TAMIZ_EVENT_STALL, "writers are slowed to %.0f MB/s: %s",
                    1e3 / s->pace.ns_per_byte, stall_words[s->pace.reason]);
}

/* Pauses until what was written so far is paid for, or the background got on. mutex held, given up
 * in between. */
static void pause_writer(struct op *op, struct writer *w, uint64_t from)
{
    struct store *s = w->db->store;
    const enum pace_reason why = s->pace.reason;
    const uint64_t owed = s->pace.next_ns - from;
    const uint64_t until = from + (owed < PACE_PAUSE_NS ? owed : PACE_PAUSE_NS);
    uint64_t now = from;
    while (now < until && s->pace.ns_per_byte > 0 &&
           !atomic_load_explicit(&s->closing, memory_order_relaxed)) {
        (void)condition_wait_us(&s->progress, &s->mutex, (until - now) / 1000 + 1);
        now = env_monotonic_ns(s->env);
        if (s->pace.since >= PACE_EVERY)
            work_out_pace(s, atomic_load_explicit(&w->db->view, memory_order_relaxed));
    }
    count_stall(op, why, (now - from) / 1000);
    if (s->pace.next_ns > until || s->pace.ns_per_byte <= 0)
        s->pace.next_ns = now; /* the rest is forgiven */
}

/* Holds writers to what the background can take. Leader only; mutex held. */
static tamiz_status keep_pace(struct op *op, struct writer *w)
{
    struct store *s = w->db->store;
    if (s->options.threads == 0)
        return TAMIZ_OK; /* the work is done in this very thread */
    if (s->pace.since >= PACE_EVERY)
        work_out_pace(s, atomic_load_explicit(&w->db->view, memory_order_relaxed));
    if (s->pace.ns_per_byte <= 0)
        return TAMIZ_OK;
    const uint64_t now = env_monotonic_ns(s->env);
    if (s->pace.next_ns < now)
        s->pace.next_ns = now;
    if (s->pace.next_ns - now < PACE_SLACK_NS)
        return TAMIZ_OK;
    if (w->no_wait)
        return refuse_waiting(op, s, s->pace.reason);
    pause_writer(op, w, now);
    return TAMIZ_OK;
}

/* The group's bytes onto the bill. mutex held. */
static void pace_charge(struct store *s, uint64_t bytes)
{
    s->pace.next_ns += (uint64_t)((double)bytes * s->pace.ns_per_byte);
    if (s->pace.since < PACE_EVERY)
        s->pace.since += bytes;
}

/* Too many sealed memtables, or one whose log lost a sync: acknowledged writes are then nowhere but
 * in memory, and no sync can say that all is durable. mutex held. */
static bool waits_for_flush(struct store *s, const struct view *v, bool sealing)
{
    if (s->log_lost && !s->moving_on && sealed_count(v) == 0)
        s->log_lost = false; /* it was flushed, and the log is gone */
    return (s->log_lost && !s->moving_on) || (sealing && sealed_count(v) >= SEALED_MAX);
}

/* mutex held. The flush's error is the writer's: it does not wait for what fails. */
static tamiz_status wait_for_flush(struct op *op, struct store *s, const struct writer *w)
{
    if (s->flush_error.status != TAMIZ_OK && s->flush_failures > 0 && s->options.threads != 0)
        return op_fail(op, s->flush_error.status, "%s", s->flush_error.text);
    const tamiz_status st = wait_for_background(op, s, w, PACE_FLUSH);
    if (st == TAMIZ_OK && s->options.threads == 0 && s->flush_error.status != TAMIZ_OK)
        return op_fail(op, s->flush_error.status, "%s", s->flush_error.text);
    return st;
}

/* Until the active memtable has room for `w`. Leader only; mutex held. */
static tamiz_status make_room(struct op *op, struct writer *w)
{
    struct store *s = w->db->store;
    bool seal = w->seal;
    const bool writes = w->single || w->batch;
    const tamiz_status paced = writes ? keep_pace(op, w) : TAMIZ_OK;
    if (paced != TAMIZ_OK)
        return paced;
    for (;;) {
        const tamiz_status st = refuse_writing(op, s);
        if (st != TAMIZ_OK)
            return st;
        const struct view *v = atomic_load_explicit(&w->db->view, memory_order_relaxed);
        const struct memtable *active = v->memtables[0]->memtable;
        const bool full = memtable_bytes(active) >= s->options.memtable || s->moving_on;
        const bool sealing = full || (seal && memtable_count(active) > 0);
        if (waits_for_flush(s, v, sealing)) {
            const tamiz_status waited = wait_for_flush(op, s, w);
            if (waited != TAMIZ_OK)
                return waited;
        } else if (!sealing) {
            return TAMIZ_OK;
        } else if (level0_full(s, v)) {
            const tamiz_status waited = wait_for_background(op, s, w, PACE_LEVEL0);
            if (waited != TAMIZ_OK)
                return waited;
        } else {
            const tamiz_status sealed = seal_memtable(op, w->db);
            if (sealed != TAMIZ_OK)
                return sealed;
            seal = false;
        }
    }
}

/* ---- the group ---- */

struct group {
    struct memtable *memtable; /* the active one: only the leader could seal it */
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

/* Everybody from the leader on that can go with it. mutex held. */
static struct group collect(struct writer *leader)
{
    struct group g = {
        .last = leader, .writers = 1, .writes = writer_count(leader), .sync = leader->sync};
    g.bytes = writer_bytes(leader);
    for (struct writer *w = leader->next; w && g.writers < GROUP_WRITERS; w = w->next) {
        if (g.bytes + writer_bytes(w) > GROUP_BYTES || w->no_log != leader->no_log || w->seal ||
            w->work)
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
    return log_append(op, &active_log(s)->writer, pieces, n);
}

/* Whether the options want the log on the disk after this write. With threads, intervals are the
 * syncer's. */
static bool sync_is_due(const struct store *s)
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
    log_retract(op, &active_log(s)->writer, g->log_end);
    active_log(s)->last_seq = g->log_seq;
}

/* To the log, and to the disk where somebody asked. No lock held: only the leader is here. */
static tamiz_status log_group(struct op *op, struct store *s, struct writer *leader,
                              struct group *g, uint64_t first_seq)
{
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->log_mutex);
    if (active_log(s)->writer.broken)
        TRY(op_fail(op, TAMIZ_IO_ERROR, "%s: the log failed before", s->directory));
    if (g->writes && !leader->no_log) {
        const uint64_t end = active_log(s)->writer.end;
        TRY(append_group(op, s, leader, g, first_seq));
        g->log_end = end;
        g->log_seq = active_log(s)->last_seq;
        active_log(s)->last_seq = first_seq + g->writes - 1;
    }
    if (g->sync || (g->writes && !leader->no_log && sync_is_due(s)))
        TRY(store_sync_logs(op, s));
done:
    if (st != TAMIZ_OK)
        retract_group(op, s, g);
    mutex_unlock(&s->log_mutex);
    return st;
}

static tamiz_status insert_writer(struct op *op, struct memtable *m, const struct writer *w,
                                  uint64_t first_seq)
{
    if (w->single)
        return memtable_add(op, m, w->key, hash_key(w->key), stamp_of(first_seq, w->kind),
                            w->value);
    if (!w->batch)
        return TAMIZ_OK;
    struct batch_reader reader;
    struct batch_write write;
    batch_walk(w->batch, first_seq, &reader);
    tamiz_status st = TAMIZ_OK;
    while (st == TAMIZ_OK && batch_next(&reader, &write))
        st = memtable_add(op, m, write.key, hash_key(write.key), stamp_of(write.seq, write.kind),
                          write.value);
    return st;
}

static tamiz_status insert_group(struct op *op, struct memtable *m, struct writer *leader,
                                 const struct group *g, uint64_t first_seq)
{
    tamiz_status st = TAMIZ_OK;
    for (struct writer *w = leader; st == TAMIZ_OK; w = w->next) {
        st = insert_writer(op, m, w, first_seq);
        first_seq += writer_count(w);
        if (w == g->last)
            break;
    }
    return st;
}

/* A log that failed is left for good. If only an append failed, all that was acknowledged is in the
 * memtable and in the log's good part, and a new log goes on. If a sync failed, acknowledged bytes
 * of it may be lost: the memtable must reach a table. */
static void log_failed(struct op *op, struct store *s)
{
    struct op quiet;
    op_init(&quiet, &s->alloc, op->count);
    mutex_lock(&s->log_mutex);
    bool lost = false;
    for (size_t i = 0; i < s->log_count; i++)
        lost |= s->logs[i].writer.broken && s->logs[i].writer.durable < s->logs[i].writer.end;
    const bool broken = active_log(s)->writer.broken;
    if (broken && !lost)
        (void)store_new_log(&quiet, s, atomic_load_explicit(&s->seq, memory_order_relaxed) + 1);
    const bool still = active_log(s)->writer.broken;
    mutex_unlock(&s->log_mutex);
    mutex_lock(&s->mutex);
    s->moving_on |= lost || still;
    s->log_lost |= lost;
    mutex_unlock(&s->mutex);
}

static tamiz_status commit(struct op *op, struct store *s, struct writer *leader, struct group *g)
{
    const uint64_t first_seq = atomic_load_explicit(&s->seq, memory_order_relaxed) + 1;
    if (first_seq + g->writes > SEQ_MAX)
        return op_fail(op, TAMIZ_NOT_SUPPORTED, "%s: the sequence has reached its end",
                       s->directory);
    tamiz_status st = log_group(op, s, leader, g, first_seq);
    if (st != TAMIZ_OK) {
        log_failed(op, s);
        return st;
    }
    st = insert_group(op, g->memtable, leader, g, first_seq);
    if (st != TAMIZ_OK) {
        mutex_lock(&s->log_mutex);
        retract_group(op, s, g);
        mutex_unlock(&s->log_mutex);
        mutex_lock(&s->mutex);
        s->write_error = true;
        mutex_unlock(&s->mutex);
        return st;
    }
    if (leader->no_log && g->writes)
        atomic_store_explicit(&s->unlogged, true, memory_order_relaxed);
    if (g->writes)
        atomic_store_explicit(&s->seq, first_seq + g->writes - 1, memory_order_release);
    return TAMIZ_OK;
}

tamiz_status store_log_skip(struct op *op, struct store *s, uint64_t seq)
{
    struct buf head = buf_init(&s->alloc);
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->log_mutex);
    struct store_log *log = active_log(s);
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
        log_failed(op, s);
    return st;
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
    if (s->last_writer)
        s->last_writer->next = w;
    else
        s->first_writer = w;
    s->last_writer = w;
    if (s->first_writer == w)
        return;
    w->waits = condition_init(op, &w->ready) == TAMIZ_OK;
    while (!w->done && s->first_writer != w) {
        if (w->waits)
            condition_wait(&w->ready, &s->mutex);
        else
            (void)condition_wait_us(&s->progress, &s->mutex, 100);
    }
}

static void dequeue_group(struct op *op, struct store *s, struct writer *leader,
                          struct writer *last, tamiz_status st)
{
    for (struct writer *w = leader; w;) {
        struct writer *next = w->next; /* a follower's frame may be gone once it is done */
        const bool end = w == last;
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

tamiz_status db_write(struct op *op, struct writer *w)
{
    struct store *s = w->db->store;
    w->op = op;
    mutex_lock(&s->mutex);
    enqueue(op, s, w);
    if (!w->done) {
        struct group g = {.last = w, .writers = 1};
        tamiz_status st = make_room(op, w);
        if (st == TAMIZ_OK && w->work) {
            mutex_unlock(&s->mutex);
            st = w->work(op, w);
            mutex_lock(&s->mutex);
        } else if (st == TAMIZ_OK) {
            g = collect(w);
            pace_charge(s, g.bytes);
            g.memtable =
                atomic_load_explicit(&w->db->view, memory_order_relaxed)->memtables[0]->memtable;
            mutex_unlock(&s->mutex);
            st = commit(op, s, w, &g);
            mutex_lock(&s->mutex);
        }
        dequeue_group(op, s, w, g.last, st);
    }
    mutex_unlock(&s->mutex);
    if (w->waits)
        condition_free(&w->ready);
    if (s->options.threads == 0)
        background_run(
            s); /* after a failure too: a flush may be what makes the next write possible */
    return w->status;
}

/* ---- public ---- */

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
