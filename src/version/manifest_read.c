/* SPDX-License-Identifier: MIT
 *
 * From a directory to the picture of its store: CURRENT, the manifest it names, edit by edit. What
 * can't be is told apart here: no store at all, one whose creation was cut short, and one that is
 * damaged.
 */
#include <errno.h>
#include <inttypes.h>

#include "version/listing.h"
#include "version/manifest.h"

/* ---- what is in the directory ---- */

/* A directory that is not there has nothing in it. */
static tamiz_status list_files(struct op *op, const tamiz_env *env, const char *directory,
                               struct listing *files)
{
    const bool clean = op->status == TAMIZ_OK;
    const tamiz_status st = listing_take(op, env, directory, files);
    if (st == TAMIZ_IO_ERROR && clean && op->os_error == ENOENT) {
        op_forgive(op);
        return TAMIZ_OK;
    }
    return st;
}

/* TAMIZ_NOT_FOUND: the log has no record. */
static tamiz_status log_first_record(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                                     const char *path)
{
    struct log_reader r;
    struct slice body;
    bool empty;
    tamiz_status st = log_reader_open(op, env, alloc, path, LOG_WAL, IO_META, &r, &empty);
    if (st == TAMIZ_OK)
        st = log_next(op, &r, 0, &body);
    log_reader_close(&r);
    return st;
}

/* There is no CURRENT. TAMIZ_NOT_FOUND where there never was one: the first creation was cut short
 * before the store could take anything. TAMIZ_CORRUPTION where data is there. */
static tamiz_status judge_missing_current(struct op *op, const tamiz_env *env,
                                          const struct alloc *alloc, const char *directory,
                                          const struct listing *files)
{
    const size_t tables = listing_count(files, FILE_TABLE);
    if (tables)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s/CURRENT: expected the name of a manifest, found no such file beside %zu "
                       "tables (%06" PRIu64 ".sst)",
                       directory, tables, listing_numbers(files, FILE_TABLE)[tables - 1]);
    const uint64_t *logs = listing_numbers(files, FILE_LOG);
    for (size_t i = 0; i < listing_count(files, FILE_LOG); i++) {
        char *path = filename_path(alloc, directory, FILE_LOG, logs[i]);
        if (!path)
            return op_fail_memory(op);
        const tamiz_status st = log_first_record(op, env, alloc, path);
        mem_free_text(alloc, path);
        if (st < 0)
            return st;
        if (st == TAMIZ_OK)
            return op_fail(op, TAMIZ_CORRUPTION,
                           "%s/CURRENT: expected the name of a manifest, found no such file beside "
                           "%06" PRIu64 ".log, which has records",
                           directory, logs[i]);
    }
    return TAMIZ_NOT_FOUND;
}

/* ---- recovering ---- */

tamiz_status manifest_current(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                              const char *directory, uint64_t *number)
{
    struct buf content = buf_init(alloc);
    char *path = filename_path(alloc, directory, FILE_CURRENT, 0);
    char name[FILE_NAME_MAX] = "", words[4 * FILE_NAME_MAX];
    tamiz_status st;
    *number = 0;
    if (!path) {
        st = op_fail_memory(op);
        goto done;
    }
    TRY(env_read_file(op, env, path, IO_META, FILE_NAME_MAX, &content));
    const bool line = content.size && content.data[content.size - 1] == '\n';
    if (line && !memchr(content.data, 0, content.size))
        memcpy(name, content.data, content.size - 1);
    if (filename_parse(name, number) != FILE_MANIFEST)
        st = op_fail(op, TAMIZ_CORRUPTION,
                     "%s: expected the name of a manifest and a newline, found \"%s\" (%zu bytes)",
                     path, slice_print(buf_slice(&content), words, sizeof words), content.size);
done:
    mem_free_text(alloc, path);
    buf_free(&content);
    return st;
}

/* Ids are handed out in their order and never again: so a log's writes for one that is not there
 * are those of a keyspace that was dropped. */
static tamiz_status make_keyspace(struct op *op, const struct alloc *alloc,
                                  struct manifest_state *state, const struct manifest_keyspace *k)
{
    char words[80];
    const struct manifest_tree *last = &state->trees[state->tree_count - 1];
    if (k->id <= last->id)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "expected keyspaces with ascending ids, found %" PRIu64
                       " made after %" PRIu64,
                       k->id, last->id);
    for (size_t i = 1; i < state->tree_count; i++) {
        if (slice_equal(slice_of_text(state->trees[i].name), k->name))
            return op_fail(op, TAMIZ_CORRUPTION,
                           "expected one keyspace of a name, found %s made again, as %" PRIu64,
                           slice_print(k->name, words, sizeof words), k->id);
    }
    return manifest_tree_add(op, alloc, state, k->id, k->name);
}

static tamiz_status refuse_unknown(struct op *op, uint64_t id, const char *what)
{
    return op_fail(op, TAMIZ_CORRUPTION,
                   "expected %s a keyspace that is there, found none with the id %" PRIu64, what,
                   id);
}

/* Those that the edit makes come first, those that it drops go last. */
static tamiz_status apply_keyspaces(struct op *op, const struct alloc *alloc,
                                    const struct manifest_edit *e, bool dropped,
                                    struct manifest_state *state)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < e->keyspace_count; i++) {
        const struct manifest_keyspace *k = &e->keyspaces[i];
        if (k->dropped != dropped)
            continue;
        if (!dropped) {
            TRY(make_keyspace(op, alloc, state, k));
            continue;
        }
        if (!manifest_tree_find(state, k->id))
            return refuse_unknown(op, k->id, "to drop");
        struct manifest_tree gone = manifest_tree_take(state, k->id);
        manifest_tree_free(alloc, &gone);
    }
done:
    return st;
}

static tamiz_status apply_trees(struct op *op, const struct alloc *alloc,
                                const struct manifest_edit *e, struct manifest_state *state)
{
    for (size_t i = 0; i < e->tree_count; i++) {
        struct version *next = NULL;
        struct manifest_tree *tree = manifest_tree_find(state, e->trees[i].keyspace);
        if (!tree)
            return refuse_unknown(op, e->trees[i].keyspace, "changes of");
        const tamiz_status st = version_apply(op, alloc, tree->version, &e->trees[i].tables, &next);
        if (st < 0)
            return st;
        version_unref(tree->version);
        tree->version = next;
        if (e->trees[i].log_number > tree->log_number)
            tree->log_number = e->trees[i].log_number;
    }
    return TAMIZ_OK;
}

static tamiz_status check_first(struct op *op, const struct manifest_edit *e)
{
    size_t removed = 0;
    for (size_t i = 0; i < e->tree_count; i++)
        removed += e->trees[i].tables.removed_count;
    if (e->has_next_file && e->has_log_number && e->has_last_seq && e->has_next_run && removed == 0)
        return TAMIZ_OK;
    return op_fail(op, TAMIZ_CORRUPTION,
                   "expected a whole picture as the first edit (fields 1 to 4, nothing removed), "
                   "found next file %d, log number %d, last sequence %d, next run %d, %zu removed",
                   e->has_next_file, e->has_log_number, e->has_last_seq, e->has_next_run, removed);
}

static void lift(uint64_t *number, uint64_t least)
{
    if (*number < least)
        *number = least;
}

/* The counters of a decoded edit; those that must be above what is in use are, whatever it says. */
static void apply_numbers(struct manifest_state *state, const struct manifest_edit *e)
{
    if (e->has_next_file)
        state->next_file = e->next_file;
    if (e->has_log_number)
        state->log_number = e->log_number;
    if (e->has_last_seq)
        lift(&state->last_seq, e->last_seq);
    if (e->has_next_run)
        state->next_run = e->next_run;
    if (e->has_next_keyspace)
        state->next_keyspace = e->next_keyspace;
    lift(&state->next_file, state->log_number + 1);
    for (size_t t = 0; t < e->tree_count; t++) {
        const struct version_edit *tables = &e->trees[t].tables;
        lift(&state->next_file, e->trees[t].log_number + 1);
        for (size_t i = 0; i < tables->added_count; i++) {
            lift(&state->next_file, tables->added[i]->number + 1);
            lift(&state->next_run, tables->added[i]->run + 1);
            lift(&state->last_seq, tables->added[i]->seq_max);
        }
    }
    for (size_t i = 0; i < e->keyspace_count; i++)
        lift(&state->next_keyspace, e->keyspaces[i].id + 1);
}

static tamiz_status apply_record(struct op *op, const struct alloc *alloc, struct slice body,
                                 bool first, struct manifest_state *state)
{
    struct manifest_decoded d;
    tamiz_status st = manifest_edit_decode(op, alloc, body, &d);
    if (st < 0)
        return st;
    if (first)
        TRY(check_first(op, &d.edit));
    TRY(apply_keyspaces(op, alloc, &d.edit, false, state));
    TRY(apply_trees(op, alloc, &d.edit, state));
    TRY(apply_keyspaces(op, alloc, &d.edit, true, state));
    apply_numbers(state, &d.edit);
done:
    manifest_decoded_free(&d);
    return st;
}

/* All edits of an opened manifest. */
static tamiz_status replay(struct op *op, const struct alloc *alloc, struct log_reader *r,
                           uint64_t boot_id, struct manifest_state *state)
{
    struct slice body;
    uint64_t edits = 0;
    tamiz_status st;
    while ((st = log_next(op, r, boot_id, &body)) == TAMIZ_OK) {
        const bool clean = op->status == TAMIZ_OK;
        st = apply_record(op, alloc, body, edits++ == 0, state);
        if (st < 0 && clean)
            log_tell_where(op, r);
        if (st < 0)
            return st;
    }
    if (st < 0)
        return st;
    if (edits == 0)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: offset %d: expected a whole picture as the first edit, found no valid "
                       "record in %zu bytes",
                       r->path, LOG_HEADER_SIZE, r->content.size);
    return TAMIZ_OK;
}

static tamiz_status read_manifest(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                                  const char *directory, struct manifest_state *state)
{
    struct log_reader r = {.path = NULL};
    const bool clean = op->status == TAMIZ_OK;
    bool empty;
    tamiz_status st;
    char *path = filename_path(alloc, directory, FILE_MANIFEST, state->manifest_number);
    if (!path)
        return op_fail_memory(op);
    st = log_reader_open(op, env, alloc, path, LOG_MANIFEST, IO_META, &r, &empty);
    if (st == TAMIZ_IO_ERROR && clean && op->os_error == ENOENT) {
        op_forgive(op);
        st = op_fail(op, TAMIZ_CORRUPTION,
                     "%s: expected the manifest that CURRENT names, found no such file", path);
    }
    if (st < 0)
        goto done;
    if (!empty && r.header.number != state->manifest_number) {
        st =
            op_fail(op, TAMIZ_CORRUPTION, "%s: header: expected number %" PRIu64 ", found %" PRIu64,
                    path, state->manifest_number, r.header.number);
        goto done;
    }
    TRY(replay(op, alloc, &r, env_boot_id(env), state));
done:
    log_reader_close(&r);
    mem_free_text(alloc, path);
    return st;
}

tamiz_status manifest_recover(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                              const char *directory, struct manifest_state *state)
{
    struct listing files;
    tamiz_status st;
    listing_init(&files, alloc);
    TRY(manifest_state_init(op, alloc, state));
    TRY(list_files(op, env, directory, &files));
    if (listing_count(&files, FILE_CURRENT)) {
        TRY(manifest_current(op, env, alloc, directory, &state->manifest_number));
        TRY(read_manifest(op, env, alloc, directory, state));
    } else {
        TRY(judge_missing_current(op, env, alloc, directory, &files));
    }
    lift(&state->next_file, files.largest + 1);
done:
    listing_free(&files);
    if (st < 0)
        manifest_state_free(alloc, state);
    return st;
}
