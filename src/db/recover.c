/* SPDX-License-Identifier: MIT
 *
 * Replay follows one rule: the recovered writes are a prefix of those that were made. A log ends
 * where the next one begins (records beyond the next log's first sequence are of a group that
 * failed); a gap between two logs ends the replay, and is damage where the missing writes were
 * known to be durable.
 *
 * Afterwards no old log is left: what was replayed is in a table if it was much, or was written
 * again to the new log if it was little, so that neither opening often nor crashing often lets
 * files grow.
 */
#include "db/recover.h"

#include <errno.h>
#include <stdlib.h>

#include "db/flush.h"
#include "db/install.h"
#include "db/keyspace.h"
#include "db/write.h"

enum { REWRITE_MAX = 256 << 10 }; /* replayed bytes up to which the new log takes them over */

/* ---- what is there ---- */

struct found_files {
    struct buf logs;   /* u64 numbers */
    struct buf tables; /* u64 numbers */
    uint64_t largest;  /* of any of our files */
};

static void see_file(void *ctx, const char *name)
{
    struct found_files *f = ctx;
    uint64_t number = 0;
    const enum file_kind kind = filename_parse(name, &number);
    if (kind == FILE_LOG)
        buf_append(&f->logs, &number, sizeof number);
    else if (kind == FILE_TABLE)
        buf_append(&f->tables, &number, sizeof number);
    else if (kind != FILE_MANIFEST)
        return;
    if (number > f->largest)
        f->largest = number;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static tamiz_status look_around(struct op *op, struct store *s, struct found_files *f)
{
    const tamiz_status st = env_list(op, s->env, s->directory, see_file, f);
    if (st != TAMIZ_OK)
        return st;
    if (f->logs.failed || f->tables.failed)
        return op_fail_memory(op);
    if (f->logs.size)
        qsort(f->logs.data, f->logs.size / sizeof(uint64_t), sizeof(uint64_t), compare_numbers);
    if (f->tables.size)
        qsort(f->tables.data, f->tables.size / sizeof(uint64_t), sizeof(uint64_t), compare_numbers);
    return TAMIZ_OK;
}

/* Every table that the manifest names must be there; one that is missing is named now, not at its
 * first read. */
static tamiz_status check_tables(struct op *op, const struct store *s, const struct found_files *f)
{
    for (size_t t = 0; t < s->state.tree_count; t++) {
        const struct version *v = s->state.trees[t].version;
        for (uint32_t i = 0; i < v->table_count; i++) {
            const uint64_t number = v->tables[i]->number;
            if (!f->tables.size || !bsearch(&number, f->tables.data, f->tables.size / sizeof number,
                                            sizeof number, compare_numbers))
                return op_fail(op, TAMIZ_CORRUPTION,
                               "%s: the manifest names table %06llu.sst, which is missing",
                               s->directory, (unsigned long long)number);
        }
    }
    return TAMIZ_OK;
}

/* ---- replay ---- */

struct replay {
    struct store *s;
    const struct manifest_state *state;
    const uint64_t *numbers;   /* of all logs there are, ascending */
    struct file *const *files; /* the same, open; NULL: they are opened by name */
    size_t count;
    struct mem_ref **memtables; /* one a tree of the state: fresh, or what was replayed */
    uint64_t log;               /* number of the one that is replayed */
    bool skipped;               /* writes that are in tables already: they must not come back */
    struct buf records; /* bodies of replayed records, each after its u64 size: for the new log */
    uint64_t next_seq;  /* behind the last write replayed; 0: none yet */
    uint64_t bytes;
    bool stopped; /* a tail was torn: nothing after it counts */
};

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
    /* Of a group that failed: the next log begins before it. A record of no writes only says where
     * it goes on, and may say it of the next log. */
    if (count ? first >= limit_seq : first > limit_seq)
        return TAMIZ_OK;
    r->next_seq = first + count;
    while (st == TAMIZ_OK && batch_next(&reader, &write))
        st = replay_write(op, r, &write, path);
    if (st == TAMIZ_OK && r->bytes + body.size <= REWRITE_MAX) {
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
    if (st == TAMIZ_OK && size && !buf_reserve(&content, (size_t)size))
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

static tamiz_status replay_logs(struct op *op, struct replay *r)
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

/* Up to where the replayed logs and the tables go. */
static uint64_t replayed_seq(const struct replay *r)
{
    const uint64_t replayed = r->next_seq ? r->next_seq - 1 : 0;
    return replayed > r->state->last_seq ? replayed : r->state->last_seq;
}

tamiz_status replay_open_logs(struct op *op, struct store *s, const struct manifest_state *state,
                              const struct open_logs *logs, struct mem_ref **into, uint64_t *seq)
{
    struct replay r = {.s = s,
                       .state = state,
                       .numbers = logs->numbers,
                       .files = logs->files,
                       .count = logs->count,
                       .memtables = into,
                       .records = buf_init(&s->alloc),
                       .bytes = REWRITE_MAX + 1}; /* nothing is written again */
    const tamiz_status st = replay_logs(op, &r);
    *seq = replayed_seq(&r);
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

/* ---- starting to write ---- */

/* The replayed records once more, into the new log. */
static tamiz_status rewrite_records(struct op *op, struct store *s, const struct replay *r)
{
    struct reader in = reader_of(buf_slice(&r->records));
    tamiz_status st = TAMIZ_OK;
    while (st == TAMIZ_OK && reader_left(&in)) {
        const struct slice body = reader_take(&in, reader_u64(&in));
        st = log_append(op, &s->logs[s->log_count - 1].writer, &body, 1);
    }
    return st == TAMIZ_OK && r->records.size ? store_sync_logs(op, s) : st;
}

/* First views of all: over the recovered versions, each with its replayed memtable, or, where
 * `fresh` are given, that one sealed behind a fresh one. */
static tamiz_status show(struct op *op, struct store *s, struct mem_ref **replayed,
                         struct mem_ref **fresh)
{
    for (size_t i = 0; i < s->state.tree_count; i++) {
        struct tamiz *db = s->keyspaces[i];
        struct mem_ref *list[2] = {replayed[i], NULL};
        const bool sealed = fresh && memtable_count(replayed[i]->memtable) > 0;
        if (sealed) {
            list[0] = fresh[i];
            list[1] = replayed[i];
        }
        struct view *view = view_new(op, s, list, sealed ? 2 : 1, s->state.trees[i].version);
        if (!view)
            return TAMIZ_OUT_OF_MEMORY;
        mutex_lock(&s->mutex);
        view_publish(db, view);
        mutex_unlock(&s->mutex);
    }
    return TAMIZ_OK;
}

/* All that was replayed goes to tables, with one edit: a batch has its writes in all keyspaces
 * again, or in none. */
static tamiz_status flush_replayed(struct op *op, struct store *s, struct replay *r,
                                   uint64_t new_log)
{
    struct mem_ref **fresh = NULL;
    struct sealed *list = mem_new_array(&s->alloc, s->state.tree_count, sizeof *list);
    size_t n = 0;
    tamiz_status st = list ? TAMIZ_OK : op_fail_memory(op);
    TRY(st);
    TRY(replay_memtables(op, s->keyspaces, s->keyspace_count, new_log, &fresh));
    TRY(show(op, s, r->memtables, fresh));
    for (size_t i = 0; i < s->state.tree_count; i++)
        if (memtable_count(r->memtables[i]->memtable) > 0)
            list[n++] = (struct sealed){s->keyspaces[i], r->memtables[i]};
    TRY(n ? flush_memtables(op, s, list, n, new_log) : install(op, s, NULL, 0, new_log));
done:
    replay_memtables_free(s, fresh, s->keyspace_count);
    mem_free(&s->alloc, list, s->state.tree_count * sizeof *list);
    return st;
}

/* The new log, the new manifest that makes it the first one needed, and the replayed writes in one
 * of the two. */
static tamiz_status start_writing(struct op *op, struct store *s, struct replay *r)
{
    const bool rewrite = r->bytes <= REWRITE_MAX && !r->skipped;
    /* Tables may go further, by writes that no log has any more. */
    const uint64_t logged =
        r->next_seq ? r->next_seq - 1 : atomic_load_explicit(&s->seq, memory_order_relaxed);
    tamiz_status st = TAMIZ_OK;
    mutex_lock(&s->log_mutex);
    /* Its header says where it goes on, not where the copied records begin: until the manifest
     * names it, the old logs count. */
    st = store_new_log(op, s, logged);
    if (st == TAMIZ_OK && rewrite)
        st = rewrite_records(op, s, r);
    mutex_unlock(&s->log_mutex);
    if (st != TAMIZ_OK)
        return st;

    const uint64_t new_log = s->logs[0].number;
    if (!rewrite)
        return flush_replayed(op, s, r, new_log);
    for (size_t i = 0; i < s->state.tree_count; i++)
        r->memtables[i]->first_log = new_log;
    st = show(op, s, r->memtables, NULL);
    return st == TAMIZ_OK ? install(op, s, NULL, 0, new_log) : st;
}

/* The directory of a new store is itself only a name in its parent, and may have been left there
 * unsynced: by a run that ended between making and syncing it, or by whoever made it for us. Where
 * the parent may not be opened, it was not us who made it. */
static tamiz_status keep_directory(struct op *op, struct store *s)
{
    const tamiz_status st = env_sync_parent(op, s->env, s->directory);
    if (st == TAMIZ_OK || (op->os_error != EACCES && op->os_error != EPERM))
        return st;
    op_forgive(op);
    return TAMIZ_OK;
}

static tamiz_status recover_state(struct op *op, struct store *s)
{
    tamiz_status st = manifest_recover(op, s->env, &s->alloc, s->directory, &s->state);
    if (st == TAMIZ_OK && s->options.error_if_exists)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "%s: there is a store already (error_if_exists)",
                       s->directory);
    if (st != TAMIZ_NOT_FOUND)
        return st;
    if (!s->options.create_if_missing) {
        op_fail(op, TAMIZ_NOT_FOUND, "%s: no store here", s->directory);
        return TAMIZ_NOT_FOUND;
    }
    return keep_directory(op, s); /* the state is that of an empty store */
}

tamiz_status recover(struct op *op, struct store *s)
{
    struct found_files files = {.logs = buf_init(&s->alloc), .tables = buf_init(&s->alloc)};
    struct replay r = {.s = s, .state = &s->state, .records = buf_init(&s->alloc)};
    tamiz_status st = recover_state(op, s);
    if (st != TAMIZ_OK)
        goto done;
    TRY(look_around(op, s, &files));
    TRY(check_tables(op, s, &files));
    TRY(keyspaces_meet(op, s, &s->state));
    for (size_t i = 0; i < s->state.tree_count; i++)
        TRY(version_attach(op, s->state.trees[i].version, &s->keyspaces[i]->world, s->directory));
    const uint64_t next =
        s->state.next_file > files.largest ? s->state.next_file : files.largest + 1;
    atomic_store_explicit(&s->next_file, next, memory_order_relaxed);
    s->state.next_file = next;
    TRY(replay_memtables(op, s->keyspaces, s->keyspace_count, 0, &r.memtables));
    r.numbers = (const uint64_t *)(const void *)files.logs.data;
    r.count = files.logs.size / sizeof *r.numbers;
    TRY(replay_logs(op, &r));
    atomic_store_explicit(&s->seq, replayed_seq(&r), memory_order_release);
    TRY(start_writing(op, s, &r));
done:
    replay_memtables_free(s, r.memtables, s->keyspace_count);
    buf_free(&r.records);
    buf_free(&files.logs);
    buf_free(&files.tables);
    return st;
}

/* ---- garbage ---- */

struct garbage {
    struct store *s;
    struct op *op;
};

static bool is_named(const struct manifest_state *state, uint64_t number)
{
    for (size_t i = 0; i < state->tree_count; i++)
        if (version_table(state->trees[i].version, number))
            return true;
    return false;
}

static void judge_file(void *ctx, const char *name)
{
    struct garbage *g = ctx;
    struct store *s = g->s;
    uint64_t number = 0;
    const enum file_kind kind = filename_parse(name, &number);
    const bool garbage = kind == FILE_CURRENT_NEW ||
                         (kind == FILE_MANIFEST && number != s->manifest.number) ||
                         (kind == FILE_LOG && number < s->logs[0].number) ||
                         (kind == FILE_TABLE && !is_named(&s->state, number));
    char *path = garbage ? store_path(g->op, s, kind, number) : NULL;
    if (path && env_remove(g->op, s->env, path) == TAMIZ_OK)
        store_event(s, TAMIZ_EVENT_FILE_DELETED, "%s", path);
    op_forgive(g->op);
    mem_free_text(&s->alloc, path);
}

/* Names first, then removal: a directory is not changed while it is read. */
struct names {
    struct buf text; /* NUL-terminated, one behind the other */
};

static void keep_name(void *ctx, const char *name)
{
    struct names *n = ctx;
    buf_append(&n->text, name, strlen(name) + 1);
}

void remove_garbage(struct op *op, struct store *s)
{
    struct garbage g = {s, op};
    struct names names = {buf_init(&s->alloc)};
    if (env_list(op, s->env, s->directory, keep_name, &names) == TAMIZ_OK && !names.text.failed)
        for (size_t at = 0; at < names.text.size;
             at += strlen((const char *)names.text.data + at) + 1)
            judge_file(&g, (const char *)names.text.data + at);
    op_forgive(op);
    buf_free(&names.text);
}
