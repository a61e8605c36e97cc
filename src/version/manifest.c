/* SPDX-License-Identifier: MIT
 *
 * The manifest of a running store, written edit by edit. Order is everything here:
 *
 *     new manifest:  write it, sync it, sync the directory
 *     switch:        write CURRENT.new, sync it, rename it to CURRENT, sync the directory
 *
 * Until the rename is on the disk the old manifest is in force, and whoever deletes what only the
 * old picture needs waits for manifest_write to return.
 */
#include "version/manifest.h"

#include <inttypes.h>

enum { ROLL_BYTES = 1 << 20 };

tamiz_status manifest_init(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                           const char *directory, struct manifest *m)
{
    *m = (struct manifest){.env = env, .alloc = alloc};
    m->directory = mem_text(alloc, directory);
    return m->directory ? TAMIZ_OK : op_fail_memory(op);
}

/* Everything that `state` is, as one edit. Its two lists are the caller's to free. */
struct whole_picture {
    struct manifest_edit edit;
    struct tree_edit *trees;             /* tree_count of them */
    struct manifest_keyspace *keyspaces; /* as many, the default one's is not used */
};

static void picture_free(const struct manifest *m, const struct manifest_state *state,
                         struct whole_picture *p)
{
    mem_free(m->alloc, p->trees, state->tree_count * sizeof *p->trees);
    mem_free(m->alloc, p->keyspaces, state->tree_count * sizeof *p->keyspaces);
}

static tamiz_status picture_init(struct op *op, const struct manifest *m,
                                 const struct manifest_state *state, struct whole_picture *p)
{
    const size_t n = state->tree_count;
    *p = (struct whole_picture){.trees = mem_new_array(m->alloc, n, sizeof *p->trees),
                                .keyspaces = mem_new_array(m->alloc, n, sizeof *p->keyspaces)};
    if (!p->trees || !p->keyspaces)
        return op_fail_memory(op);
    for (size_t i = 0; i < n; i++) {
        const struct manifest_tree *t = &state->trees[i];
        p->trees[i] = (struct tree_edit){
            .keyspace = t->id,
            .log_number = t->log_number > state->log_number ? t->log_number : 0,
            .tables = {.added = t->version->tables, .added_count = t->version->table_count}};
        p->keyspaces[i] =
            (struct manifest_keyspace){.id = t->id, .name = slice_of_text(t->name ? t->name : "")};
    }
    p->edit = (struct manifest_edit){
        .has_next_file = true,
        .has_log_number = true,
        .has_last_seq = true,
        .has_next_run = true,
        .has_next_keyspace = state->next_keyspace != 0,
        .next_file = state->next_file,
        .log_number = state->log_number,
        .last_seq = state->last_seq,
        .next_run = state->next_run,
        .next_keyspace = state->next_keyspace,
        .trees = p->trees,
        .tree_count = n,
        .keyspaces = p->keyspaces + 1,
        .keyspace_count = n - 1,
    };
    return TAMIZ_OK;
}

static tamiz_status append_edit(struct op *op, struct log_writer *w,
                                const struct manifest_edit *edit)
{
    struct buf body = buf_init(w->scratch.alloc);
    tamiz_status st = TAMIZ_OK;
    manifest_edit_encode(&body, edit);
    if (body.failed) {
        st = op_fail_memory(op);
    } else if (body.size) {
        const struct slice piece = buf_slice(&body);
        TRY(log_append(op, w, &piece, 1));
        TRY(log_sync(op, w));
    }
done:
    buf_free(&body);
    return st;
}

/* A new manifest with the whole of `state`, durable under its own name, not in force yet. On
 * failure its file is gone again, as far as that goes. */
static tamiz_status write_new(struct op *op, const struct manifest *m, const char *path,
                              uint64_t number, const struct manifest_state *state,
                              struct log_writer *w)
{
    struct log_header header = {
        .kind = LOG_MANIFEST, .number = number, .boot_id = env_boot_id(m->env)};
    struct whole_picture picture;
    tamiz_status st;
    *w = (struct log_writer){.env = NULL};
    TRY(picture_init(op, m, state, &picture));
    TRY(env_random_u64(op, m->env, &header.file_id));
    TRY(log_create(op, m->env, m->alloc, path, IO_META, &header, 0, w));
    TRY(append_edit(op, w, &picture.edit));
    TRY(env_sync_directory(op, m->env, m->directory));
done:
    picture_free(m, state, &picture);
    if (st < 0 && w->file) {
        /* The failure is told; CURRENT has never named this file. */
        (void)log_close(op, w);
        (void)env_remove(op, m->env, path);
    }
    return st;
}

static tamiz_status switch_current(struct op *op, const struct manifest *m, uint64_t number)
{
    char line[FILE_NAME_MAX + 1];
    char *temporary = filename_path(m->alloc, m->directory, FILE_CURRENT_NEW, 0);
    char *path = filename_path(m->alloc, m->directory, FILE_CURRENT, 0);
    tamiz_status st;
    filename_format(FILE_MANIFEST, number, line);
    const size_t size = strlen(line);
    line[size] = '\n';
    if (temporary && path)
        st = env_replace_file(op, m->env, m->directory, temporary, path, IO_META,
                              slice_of(line, size + 1));
    else
        st = op_fail_memory(op);
    mem_free_text(m->alloc, temporary);
    mem_free_text(m->alloc, path);
    return st;
}

/* After a switch that failed: false only where CURRENT certainly does not name `number`. What the
 * running system shows is never older than what is on the disk, so that is certain for both. */
static bool may_be_in_force(struct op *op, const struct manifest *m, uint64_t number)
{
    struct op quiet;
    tamiz_file_info info;
    uint64_t named;
    bool exists = true;
    char *path = filename_path(m->alloc, m->directory, FILE_CURRENT, 0);
    op_init(&quiet, op->alloc, op->count);
    if (!path || env_path_info(&quiet, m->env, path, &exists, &info) < 0)
        exists = true;
    mem_free_text(m->alloc, path);
    return exists && (manifest_current(&quiet, m->env, m->alloc, m->directory, &named) < 0 ||
                      named == number);
}

/* Nothing more may go to a manifest that may not be in force. What closing it says is of no
 * consequence: all that matters of it was synced. */
static void retire_log(struct op *op, struct manifest *m)
{
    if (m->open)
        (void)log_close(op, &m->log);
    m->open = false;
}

static tamiz_status write_to_new(struct op *op, struct manifest *m, struct manifest_state *state)
{
    struct log_writer w = {.env = NULL};
    char *path = NULL;
    tamiz_status st;
    const uint64_t wanted = state->next_file ? state->next_file : 1;
    const uint64_t number = wanted < m->number_floor ? m->number_floor : wanted;
    if (number >= FILE_NUMBER_END - 1)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: expected a free file number below 2^62, found none", m->directory);
    state->next_file = m->number_floor = number + 1;
    path = filename_path(m->alloc, m->directory, FILE_MANIFEST, number);
    if (!path)
        return op_fail_memory(op);
    TRY(write_new(op, m, path, number, state, &w));
    st = switch_current(op, m, number);
    if (st < 0 && !may_be_in_force(op, m, number)) {
        (void)log_close(op, &w);
        (void)env_remove(op, m->env, path);
        goto done;
    }
    retire_log(op, m);
    if (st < 0) {
        /* Either manifest may be in force: both stay, and neither takes another edit. */
        m->unsettled = true;
        (void)log_close(op, &w);
        goto done;
    }
    m->log = w;
    m->open = true;
    m->unsettled = false;
    m->snapshot_bytes = w.end;
    m->number = state->manifest_number = number;
done:
    mem_free_text(m->alloc, path);
    return st;
}

static bool has_grown(const struct manifest *m)
{
    return m->log.end > ROLL_BYTES && m->log.end / 2 > m->snapshot_bytes;
}

tamiz_status manifest_write(struct op *op, struct manifest *m, const struct manifest_edit *edit,
                            struct manifest_state *state)
{
    if (!m->open || m->log.broken || m->unsettled || has_grown(m))
        return write_to_new(op, m, state);
    const tamiz_status st = append_edit(op, &m->log, edit);
    if (m->log.broken)
        m->unsettled = true;
    state->manifest_number = m->number;
    return st;
}

void manifest_close(struct op *op, struct manifest *m)
{
    struct op quiet;
    op_init(&quiet, op->alloc, op->count);
    if (m->open && !m->log.broken)
        (void)log_seal(&quiet, &m->log);
    retire_log(&quiet, m);
    if (m->alloc)
        mem_free_text(m->alloc, m->directory);
    *m = (struct manifest){.env = NULL};
}
