/* SPDX-License-Identifier: MIT */
#include "db/replay.h"

#include "log/batch.h"

/* One write into its keyspace's memtable, unless its tables have it. The log may have writes of
 * keyspaces that were dropped since; but none was ever made of ids to come. */
static tamiz_status replay_write(struct op *op, struct replay *r, const struct batch_write *w,
                                 const char *path)
{
    const struct manifest_tree *tree = manifest_tree_find(r->state, w->keyspace);
    if (!tree && w->keyspace >= r->state->next_keyspace)
        return op_fail(op, TAMIZ_CORRUPTION, "%s: a write for keyspace %llu, which was never made",
                       path, (unsigned long long)w->keyspace);
    if (!tree)
        return TAMIZ_OK;
    if (r->log < tree->log_number) {
        r->skipped = true;
        return TAMIZ_OK;
    }
    return memtable_add(op, r->memtables[tree - r->state->trees]->memtable, w->key,
                        hash_key(w->key), stamp_of(w->seq, w->kind), w->value);
}

/* Applies one record, all of it. */
static tamiz_status replay_record(struct op *op, struct replay *r, struct slice body,
                                  uint64_t limit_seq, const char *path)
{
    struct batch_reader reader;
    struct batch_write write;
    uint64_t first, count;
    tamiz_status st = batch_open(op, body, &reader, &first, &count);
    if (st != TAMIZ_OK) {
        char words[OP_TEXT_MAX];
        memcpy(words, op->text, sizeof words);
        op_forgive(op);
        return op_fail(op, st, "%s: %s", path, words);
    }
    if (first + count <= r->next_seq)
        return TAMIZ_OK; /* a recovery that was cut short wrote it to its new log a second time */
    if (first < r->next_seq)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: a record begins at sequence %llu, expected %llu or more", path,
                       (unsigned long long)first, (unsigned long long)r->next_seq);
    if (batch_is_beyond(first, count, limit_seq))
        return TAMIZ_OK;
    r->leapt |= count == 0 && first > r->state->last_seq + 1;
    r->next_seq = first + count;
    while (st == TAMIZ_OK && batch_next(&reader, &write))
        st = replay_write(op, r, &write, path);
    if (st == TAMIZ_OK && r->bytes + body.size <= REPLAY_KEPT_MAX) {
        buf_u64(&r->records, body.size);
        buf_slice_append(&r->records, body);
        if (r->records.failed)
            st = op_fail_memory(op);
    }
    r->bytes += body.size;
    return st;
}

/* Log `i`, or, where `header_only`, perhaps no more than its header. */
static tamiz_status open_log(struct op *op, const struct replay *r, size_t i, const char *path,
                             bool header_only, struct log_reader *log, bool *empty)
{
    struct store *s = r->s;
    if (!r->files)
        return log_reader_open(op, s->env, &s->alloc, path, LOG_WAL, IO_LOG, log, empty);
    struct buf content = buf_init(&s->alloc);
    uint64_t size = LOG_HEADER_SIZE;
    tamiz_status st = header_only ? TAMIZ_OK : file_size(op, r->files[i], &size);
    if (st == TAMIZ_OK && size && (size > SIZE_MAX / 2 || !buf_reserve(&content, (size_t)size)))
        st = op_fail_memory(op);
    if (st == TAMIZ_OK)
        st = file_read_some(op, r->files[i], IO_LOG, 0, content.data, (size_t)size, &content.size);
    if (st == TAMIZ_OK)
        return log_reader_open_bytes(op, &content, path, LOG_WAL, log, empty);
    buf_free(&content);
    return st;
}

/* Sequence at which the log after index `i` begins; SEQ_MAX: it is the last, or the next has no
 * header. */
static tamiz_status next_log_first(struct op *op, const struct replay *r, size_t i, uint64_t *first)
{
    *first = SEQ_MAX + 1;
    for (size_t k = i + 1; k < r->count; k++) {
        struct log_reader reader;
        bool empty = false;
        char *path = store_path(op, r->s, FILE_LOG, r->numbers[k]);
        if (!path)
            return TAMIZ_OUT_OF_MEMORY;
        const tamiz_status st = open_log(op, r, k, path, true, &reader, &empty);
        if (st == TAMIZ_OK && !empty)
            *first = reader.header.first;
        if (st == TAMIZ_OK)
            log_reader_close(&reader);
        mem_free_text(&r->s->alloc, path);
        if (st != TAMIZ_OK || !empty)
            return st;
    }
    return TAMIZ_OK;
}

/* Was a sync of this log ever known to have returned? Logs are synced oldest first, so then all
 * before it was durable too. */
static tamiz_status was_synced(struct op *op, const struct store *s, struct log_reader *log,
                               bool *synced)
{
    struct slice body;
    tamiz_status st;
    do
        st = log_next(op, log, env_boot_id(s->env), &body);
    while (st == TAMIZ_OK);
    *synced = log->durable_seen > LOG_HEADER_SIZE;
    return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : st;
}

/* A hole before this log: were the missing writes durable? And the same machine run loses nothing
 * that was written. */
static tamiz_status judge_gap(struct op *op, struct replay *r, struct log_reader *log,
                              const char *path)
{
    const uint64_t boot = env_boot_id(r->s->env);
    bool synced = false;
    const tamiz_status st = was_synced(op, r->s, log, &synced);
    if (st != TAMIZ_OK)
        return st;
    if (synced || (boot && boot == log->header.boot_id))
        return op_fail(
            op, TAMIZ_CORRUPTION,
            "%s: begins at sequence %llu, but the logs before it end at %llu: writes are missing",
            path, (unsigned long long)log->header.first, (unsigned long long)(r->next_seq - 1));
    store_event(r->s, TAMIZ_EVENT_RECOVERY, "%s: follows a gap after sequence %llu, not replayed",
                path, (unsigned long long)(r->next_seq - 1));
    r->stopped = true;
    return TAMIZ_OK;
}

/* The first log goes on where the tables end. A log's name is durable before anything is in it, and
 * edits of the manifest before a log is removed; so a hole here is not from a crash: the manifest
 * has lost edits, and with them tables. */
static tamiz_status check_first_log(struct op *op, const struct manifest_state *state,
                                    const struct log_reader *log, const char *path)
{
    if (log->header.first <= state->last_seq + 1)
        return TAMIZ_OK;
    return op_fail(op, TAMIZ_CORRUPTION,
                   "MANIFEST-%06llu: expected edits up to sequence %llu, where %s begins, found "
                   "them up to %llu",
                   (unsigned long long)state->manifest_number,
                   (unsigned long long)(log->header.first - 1), path,
                   (unsigned long long)state->last_seq);
}

static tamiz_status replay_log(struct op *op, struct replay *r, size_t i, uint64_t limit_seq)
{
    struct store *s = r->s;
    struct log_reader log;
    bool empty = false, opened = false;
    uint64_t records = 0;
    tamiz_status st = TAMIZ_OK;
    char *path = store_path(op, s, FILE_LOG, r->numbers[i]);
    TRY(path ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(open_log(op, r, i, path, false, &log, &empty));
    opened = true;
    if (empty)
        TRY(manifest_check_empty_log(op, r->state, r->numbers[i], path));
    if (!empty && !r->next_seq)
        TRY(check_first_log(op, r->state, &log, path));
    if (!empty && r->next_seq && log.header.first > r->next_seq)
        TRY(judge_gap(op, r, &log, path));
    while (!empty && !r->stopped) {
        struct slice body;
        TRY(log_next(op, &log, env_boot_id(s->env), &body));
        if (st == TAMIZ_NOT_FOUND)
            break;
        TRY(replay_record(op, r, body, limit_seq, path));
        records++;
    }
    /* Nothing of it is there, so that what the next log has follows a gap. */
    if (!empty && !r->next_seq)
        r->next_seq = log.header.first;
    if (!empty && log.end == LOG_END_TORN)
        store_event(s, TAMIZ_EVENT_RECOVERY,
                    "%s: %llu bytes of an unfinished write at the end, ignored", path,
                    (unsigned long long)log.dropped);
    store_event(s, TAMIZ_EVENT_RECOVERY, "%s: %llu records replayed", path,
                (unsigned long long)records);
    st = TAMIZ_OK;
done:
    if (opened)
        log_reader_close(&log);
    mem_free_text(&s->alloc, path);
    return st;
}

tamiz_status replay_logs(struct op *op, struct replay *r)
{
    for (size_t i = 0; i < r->count && !r->stopped; i++) {
        if (r->numbers[i] < r->state->log_number)
            continue; /* its writes are in tables */
        uint64_t limit;
        tamiz_status st = next_log_first(op, r, i, &limit);
        r->log = r->numbers[i];
        if (st == TAMIZ_OK)
            st = replay_log(op, r, i, limit);
        if (st != TAMIZ_OK)
            return st;
    }
    return TAMIZ_OK;
}

uint64_t replay_seq(const struct replay *r)
{
    const uint64_t replayed = r->next_seq ? r->next_seq - 1 : 0;
    return replayed > r->state->last_seq ? replayed : r->state->last_seq;
}

tamiz_status replay_open_logs(struct op *op, struct store *s, const struct manifest_state *state,
                              const struct open_logs *logs, struct mem_ref **into,
                              struct replayed *replayed)
{
    struct replay r = {.s = s,
                       .state = state,
                       .numbers = logs->numbers,
                       .files = logs->files,
                       .count = logs->count,
                       .memtables = into,
                       .records = buf_init(&s->alloc),
                       .bytes = REPLAY_KEPT_MAX + 1}; /* nothing is written again */
    const tamiz_status st = replay_logs(op, &r);
    *replayed = (struct replayed){replay_seq(&r), r.leapt};
    buf_free(&r.records);
    return st;
}

tamiz_status replay_memtables(struct op *op, struct tamiz *const *keyspaces, size_t n,
                              uint64_t first_log, struct mem_ref ***memtables)
{
    struct mem_ref **list = mem_new_array(op->alloc, n, sizeof(struct mem_ref *));
    *memtables = list;
    if (!list)
        return op_fail_memory(op);
    for (size_t i = 0; i < n; i++) {
        list[i] = mem_ref_new(op, keyspaces[i], first_log);
        if (!list[i])
            return TAMIZ_OUT_OF_MEMORY;
    }
    return TAMIZ_OK;
}

void replay_memtables_free(struct store *s, struct mem_ref **memtables, size_t n)
{
    for (size_t i = 0; memtables && i < n; i++)
        mem_ref_unref(s, memtables[i]);
    mem_free(&s->alloc, memtables, n * sizeof(struct mem_ref *));
}
