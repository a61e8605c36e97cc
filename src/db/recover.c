/* SPDX-License-Identifier: MIT
 *
 * After the replay (replay.h) no old log is left: what was replayed is in a table if it was much,
 * or was written again to the new log if it was little, so that neither opening often nor crashing
 * often lets files grow.
 */
#include "db/recover.h"

#include <errno.h>

#include "db/flush.h"
#include "db/install.h"
#include "db/keyspace.h"
#include "db/replay.h"
#include "db/write.h"
#include "version/listing.h"

/* Every table that the manifest names must be there; one that is missing is named now, not at its
 * first read. */
static tamiz_status check_tables(struct op *op, const struct store *s, const struct listing *files)
{
    for (size_t t = 0; t < s->state.tree_count; t++) {
        const struct version *v = s->state.trees[t].version;
        for (uint32_t i = 0; i < v->table_count; i++) {
            const uint64_t number = v->tables[i]->number;
            if (!listing_has(files, FILE_TABLE, number))
                return op_fail(op, TAMIZ_CORRUPTION,
                               "%s: the manifest names table %06llu.sst, which is missing",
                               s->directory, (unsigned long long)number);
        }
    }
    return TAMIZ_OK;
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
    const bool rewrite = r->bytes <= REPLAY_KEPT_MAX && !r->skipped;
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
    struct listing files;
    struct replay r = {.s = s, .state = &s->state, .records = buf_init(&s->alloc)};
    listing_init(&files, &s->alloc);
    tamiz_status st = recover_state(op, s);
    if (st != TAMIZ_OK)
        goto done;
    TRY(listing_take(op, s->env, s->directory, &files));
    TRY(check_tables(op, s, &files));
    TRY(keyspaces_meet(op, s, &s->state));
    for (size_t i = 0; i < s->state.tree_count; i++)
        TRY(version_attach(op, s->state.trees[i].version, &s->keyspaces[i]->world, s->directory));
    const uint64_t next =
        s->state.next_file > files.largest ? s->state.next_file : files.largest + 1;
    atomic_store_explicit(&s->next_file, next, memory_order_relaxed);
    s->state.next_file = next;
    TRY(replay_memtables(op, s->keyspaces, s->keyspace_count, 0, &r.memtables));
    r.numbers = listing_numbers(&files, FILE_LOG);
    r.count = listing_count(&files, FILE_LOG);
    TRY(replay_logs(op, &r));
    atomic_store_explicit(&s->seq, replay_seq(&r), memory_order_release);
    TRY(start_writing(op, s, &r));
done:
    replay_memtables_free(s, r.memtables, s->keyspace_count);
    buf_free(&r.records);
    listing_free(&files);
    return st;
}

/* ---- garbage ---- */

static bool is_named(const struct manifest_state *state, uint64_t number)
{
    for (size_t i = 0; i < state->tree_count; i++)
        if (version_table(state->trees[i].version, number))
            return true;
    return false;
}

static bool is_garbage(const struct store *s, enum file_kind kind, uint64_t number)
{
    return kind == FILE_CURRENT_NEW || (kind == FILE_MANIFEST && number != s->manifest.number) ||
           (kind == FILE_LOG && number < s->logs[0].number) ||
           (kind == FILE_TABLE && !is_named(&s->state, number));
}

static void remove_file(struct op *op, struct store *s, enum file_kind kind, uint64_t number)
{
    char *path = store_path(op, s, kind, number);
    if (path && env_remove(op, s->env, path) == TAMIZ_OK)
        store_event(s, TAMIZ_EVENT_FILE_DELETED, "%s", path);
    op_forgive(op);
    mem_free_text(&s->alloc, path);
}

void remove_garbage(struct op *op, struct store *s)
{
    static const enum file_kind kinds[] = {FILE_CURRENT_NEW, FILE_MANIFEST, FILE_LOG, FILE_TABLE};
    struct listing files;
    listing_init(&files, &s->alloc);
    const bool listed = listing_take(op, s->env, s->directory, &files) == TAMIZ_OK;
    for (size_t k = 0; listed && k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < listing_count(&files, kinds[k]); i++) {
            const uint64_t number = listing_numbers(&files, kinds[k])[i];
            if (is_garbage(s, kinds[k], number))
                remove_file(op, s, kinds[k], number);
        }
    op_forgive(op);
    listing_free(&files);
}
