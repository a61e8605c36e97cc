/* SPDX-License-Identifier: MIT */
#include "db/salvage.h"

#include <stdio.h>

#include "db/life.h"
#include "db/view.h"
#include "log/batch.h"
#include "mem/memtable.h"
#include "table/merge.h"
#include "version/signature.h"

void salvage_find(struct salvage *r, uint64_t lost_bytes, const char *text)
{
    r->report->damaged++;
    r->report->lost_bytes += lost_bytes;
    if (r->report->find)
        r->report->find(r->report->ctx, text);
}

/* The op's failure is a find, unless memory or the disk's space ran out: those end the repair. */
static tamiz_status find_failure(struct salvage *r, tamiz_status st, uint64_t lost_bytes)
{
    if (st == TAMIZ_OK || st == TAMIZ_OUT_OF_MEMORY || st == TAMIZ_NO_SPACE ||
        st == TAMIZ_NOT_SUPPORTED) /* a newer library can read it, and is to repair it */
        return st;
    salvage_find(r, lost_bytes, r->op->text);
    op_forgive(r->op);
    return TAMIZ_OK;
}

/* ---- looking ---- */

tamiz_status salvage_list(struct salvage *r)
{
    bool exists = false;
    tamiz_file_info info;
    tamiz_status st = env_path_info(r->op, r->s->env, r->s->directory, &exists, &info);
    if (st == TAMIZ_OK && exists)
        st = listing_take(r->op, r->s->env, r->s->directory, &r->files);
    if (st != TAMIZ_OK)
        return st;
    if (listing_count(&r->files, FILE_CURRENT) || r->files.largest)
        return store_signature(r->op, r->s->env, r->s->directory);
    op_fail(r->op, TAMIZ_NOT_FOUND, "%s: no store here", r->s->directory);
    return TAMIZ_NOT_FOUND;
}

static tamiz_status look_at_manifest(struct salvage *r)
{
    struct store *s = r->s;
    const tamiz_status st = manifest_recover(r->op, s->env, &s->alloc, s->directory, &s->state);
    r->has_manifest = st == TAMIZ_OK;
    if (st == TAMIZ_NOT_FOUND)
        op_forgive(r->op);
    if (r->has_manifest) {
        r->last_seq = s->state.last_seq;
        r->next_keyspace = s->state.next_keyspace;
    }
    for (size_t i = 1; r->has_manifest && i < s->state.tree_count; i++)
        if (!salvage_tree_meet(r, s->state.trees[i].id, slice_of_text(s->state.trees[i].name)))
            return TAMIZ_OUT_OF_MEMORY;
    return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : find_failure(r, st, 0);
}

/* A handle for one table. NULL: memory is out. */
static struct table *open_table(struct salvage *r, uint64_t number, const struct table_meta *meta)
{
    struct store *s = r->s;
    char *path = store_path(r->op, s, FILE_TABLE, number);
    struct table *t = path ? table_new(r->op, &s->first->world, path, number,
                                       meta ? meta->file_id : 0, meta ? meta->file_size : 0)
                           : NULL;
    mem_free_text(&s->alloc, path);
    return t;
}

/* The keyspace of a table: as the manifest says, or the table itself. One that can't be read at all
 * is the default one's, to which it adds nothing. */
static struct salvage_tree *tree_of_table(struct salvage *r, const struct table *t,
                                          const struct table_meta *meta)
{
    if (meta || !table_is_loaded(t))
        return salvage_tree_meet(r, meta ? meta->keyspace : 0, slice_of(NULL, 0));
    const struct table_properties *p = table_properties(t);
    return salvage_tree_meet(r, p->keyspace, p->keyspace_name);
}

/* Verified, and a source of its keyspace from now on. */
static tamiz_status look_at_table(struct salvage *r, uint64_t number, const struct table_meta *meta)
{
    struct table *t = open_table(r, number, meta);
    if (!t)
        return TAMIZ_OUT_OF_MEMORY;
    const tamiz_status st = table_verify(r->op, t, r->report);
    if (st == TAMIZ_OK || st == TAMIZ_CORRUPTION)
        op_forgive(r->op);
    struct salvage_tree *tree =
        st == TAMIZ_OK || st == TAMIZ_CORRUPTION ? tree_of_table(r, t, meta) : NULL;
    if (tree)
        buf_append(&tree->opened, &t, sizeof(struct table *));
    if (tree && !tree->opened.failed)
        return TAMIZ_OK;
    table_free(t);
    return st == TAMIZ_OK || st == TAMIZ_CORRUPTION ? op_fail_memory(r->op) : st;
}

/* Newest file first: where two show one version, the later one counts. */
static tamiz_status look_at_tables(struct salvage *r)
{
    const struct manifest_state *state = &r->s->state;
    size_t total = r->has_manifest ? 0 : listing_count(&r->files, FILE_TABLE), done = 0;
    tamiz_status st = TAMIZ_OK;
    for (size_t k = 0; r->has_manifest && k < state->tree_count; k++)
        total += state->trees[k].version->table_count;
    for (size_t k = 0; r->has_manifest && k < state->tree_count; k++) {
        const struct version *v = state->trees[k].version;
        for (uint32_t i = v->table_count; i-- > 0;) {
            TRY(look_at_table(r, v->tables[i]->number, v->tables[i]));
            if (r->report->progress)
                r->report->progress(r->report->ctx, ++done, total);
        }
    }
    for (size_t i = total; !r->has_manifest && i-- > 0;) {
        TRY(look_at_table(r, listing_numbers(&r->files, FILE_TABLE)[i], NULL));
        if (r->report->progress)
            r->report->progress(r->report->ctx, ++done, total);
    }
done:
    return st;
}

/* The op's words go on behind the log's name. */
static tamiz_status find_in_log(struct salvage *r, const struct log_reader *log, tamiz_status st,
                                uint64_t lost_bytes)
{
    if (st != TAMIZ_OUT_OF_MEMORY)
        log_tell_where(r->op, log);
    return find_failure(r, st, lost_bytes);
}

/* A write into the memtable of its keyspace. One that the manifest does not have was dropped, or,
 * with no manifest, is met here. */
static tamiz_status take_write(struct salvage *r, const struct batch_write *w)
{
    struct salvage_tree *tree = salvage_tree_find(r, w->keyspace);
    const uint64_t end = r->has_manifest ? r->s->state.next_keyspace : KEYSPACE_ID_MAX + 1;
    if (!tree && w->keyspace >= end)
        return op_fail(r->op, TAMIZ_CORRUPTION, "a write for keyspace %llu, which was never made",
                       (unsigned long long)w->keyspace);
    if (!tree && r->has_manifest)
        return TAMIZ_OK;
    if (!tree)
        tree = salvage_tree_meet(r, w->keyspace, slice_of(NULL, 0));
    if (!tree)
        return TAMIZ_OUT_OF_MEMORY;
    return memtable_add(r->op, tree->memtable, w->key, hash_key(w->key), stamp_of(w->seq, w->kind),
                        w->value);
}

/* `limit`: where the next log begins, so that what stands beyond is of a write that failed. */
static tamiz_status take_record(struct salvage *r, const struct log_reader *log, struct slice body,
                                uint64_t limit)
{
    struct batch_reader reader;
    struct batch_write w;
    uint64_t first, count;
    tamiz_status st = batch_open(r->op, body, &reader, &first, &count);
    if (st != TAMIZ_OK)
        return find_in_log(r, log, st, body.size);
    if (first + count <= r->next_seq || batch_is_beyond(first, count, limit))
        return TAMIZ_OK;
    if (first < r->next_seq)
        return find_in_log(r, log,
                           op_fail(r->op, TAMIZ_CORRUPTION,
                                   "begins at sequence %llu, expected %llu or more",
                                   (unsigned long long)first, (unsigned long long)r->next_seq),
                           body.size);
    while (st == TAMIZ_OK && batch_next(&reader, &w))
        st = take_write(r, &w);
    r->next_seq = first + count;
    return find_in_log(r, log, st, body.size);
}

/* A log that begins behind where the logs before it end (`next_seq`; 0: none), or the tables:
 * writes are missing, and recovery says so where they are known to have been there. Elsewhere it
 * stops. */
static void judge_beginning(struct salvage *r, const struct log_reader *log, uint64_t next_seq)
{
    const uint64_t first = log->header.first, boot = env_boot_id(r->s->env);
    const bool first_log = next_seq == 0;
    const bool known =
        first_log || log->durable_seen > LOG_HEADER_SIZE || (boot && boot == log->header.boot_id);
    char words[OP_TEXT_MAX];
    if (first_log)
        next_seq = r->has_manifest ? r->last_seq + 1 : first;
    if (first <= next_seq || r->gap)
        return;
    r->gap = !known; /* a crash may leave that */
    (void)snprintf(words, sizeof words,
                   "%s: begins at sequence %llu, but what is before it ends at %llu: writes are "
                   "missing",
                   log->path, (unsigned long long)first, (unsigned long long)(next_seq - 1));
    if (known)
        salvage_find(r, 0, words);
}

/* One log as far as it can be read. */
static tamiz_status look_at_log(struct salvage *r, uint64_t number, uint64_t limit)
{
    struct store *s = r->s;
    struct log_reader log = {.path = NULL};
    bool empty = false;
    struct slice body;
    const uint64_t before = r->next_seq;
    char *path = store_path(r->op, s, FILE_LOG, number);
    tamiz_status st = TAMIZ_OK;
    TRY(path ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    st = log_reader_open(r->op, s->env, &s->alloc, path, LOG_WAL, IO_LOG, &log, &empty);
    r->report->files++;
    if (st == TAMIZ_OK && empty && r->has_manifest)
        st = manifest_check_empty_log(r->op, &s->state, number, path);
    const bool readable = st == TAMIZ_OK && !empty;
    while (st == TAMIZ_OK && !empty) {
        st = log_next(r->op, &log, env_boot_id(s->env), &body);
        if (st != TAMIZ_OK)
            break;
        TRY(take_record(r, &log, body, limit));
    }
    if (st != TAMIZ_NOT_FOUND)
        TRY(find_failure(r, st, log.content.size > log.at ? log.content.size - log.at : 0));
    if (readable) {
        judge_beginning(r, &log, before);
        if (!r->next_seq)
            r->next_seq = log.header.first;
    }
    st = TAMIZ_OK;
done:
    log_reader_close(&log);
    mem_free_text(&s->alloc, path);
    return st;
}

/* The sequence at which a log begins; SEQ_MAX + 1: it has none to tell. */
static uint64_t first_of(struct salvage *r, uint64_t number)
{
    struct store *s = r->s;
    struct log_reader log = {.path = NULL};
    uint64_t first = SEQ_MAX + 1;
    bool empty = true;
    struct op quiet;
    op_init(&quiet, &s->alloc, r->op->count);
    char *path = store_path(&quiet, s, FILE_LOG, number);
    if (path &&
        log_reader_open(&quiet, s->env, &s->alloc, path, LOG_WAL, IO_LOG, &log, &empty) ==
            TAMIZ_OK &&
        !empty)
        first = log.header.first;
    log_reader_close(&log);
    mem_free_text(&s->alloc, path);
    return first;
}

static tamiz_status look_at_logs(struct salvage *r)
{
    const size_t n = listing_count(&r->files, FILE_LOG);
    const uint64_t *numbers = listing_numbers(&r->files, FILE_LOG);
    for (size_t i = 0; i < n; i++) {
        if (r->has_manifest && numbers[i] < r->s->state.log_number)
            continue; /* its writes are in tables */
        uint64_t limit = SEQ_MAX + 1;
        for (size_t k = i + 1; k < n && limit > SEQ_MAX; k++)
            limit = first_of(r, numbers[k]);
        const tamiz_status st = look_at_log(r, numbers[i], limit);
        if (st != TAMIZ_OK)
            return st;
    }
    if (r->next_seq && r->next_seq - 1 > r->last_seq)
        r->last_seq = r->next_seq - 1;
    return TAMIZ_OK;
}

tamiz_status salvage_look(struct salvage *r)
{
    tamiz_status st = TAMIZ_OK;
    TRY(salvage_tree_meet(r, 0, slice_of(NULL, 0)) ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(look_at_manifest(r));
    TRY(look_at_tables(r));
    TRY(look_at_logs(r));
    TRY(salvage_trees_name(r));
done:
    return st;
}

/* ---- what was read ---- */

struct iter *salvage_sources(struct salvage *r, struct salvage_tree *tree, tamiz_report *quiet)
{
    struct op *op = r->op;
    const size_t n = salvage_tree_tables(tree);
    size_t count = 0;
    struct iter **list = mem_new_array(&r->s->alloc, n + 1, sizeof(struct iter *));
    struct iter *merged = NULL;
    if (!list) {
        op_fail_memory(op);
        return NULL;
    }
    list[count] = memtable_iter(op, tree->memtable);
    bool ok = list[count] != NULL;
    count += ok;
    for (size_t i = 0; ok && i < n; i++) {
        list[count] = table_salvage(op, salvage_tree_table(tree, i), quiet);
        if (list[count]) {
            const uint64_t seq_max = table_properties(salvage_tree_table(tree, i))->seq_max;
            r->last_seq = seq_max > r->last_seq ? seq_max : r->last_seq;
            count++;
        } else if (op->status == TAMIZ_OUT_OF_MEMORY) {
            ok = false;
        } else {
            op_forgive(op);
        }
    }
    if (ok)
        merged = merge_iter(op, list, count);
    else
        while (count > 0)
            iter_close(list[--count]);
    mem_free(&r->s->alloc, list, (n + 1) * sizeof(struct iter *));
    return merged;
}

void salvage_ranges(const struct salvage_tree *tree, struct buf *list)
{
    memtable_ranges_list(tree->memtable, list);
    for (size_t i = 0; i < salvage_tree_tables(tree); i++) {
        const struct ranges *ranges = table_ranges_near(salvage_tree_table(tree, i));
        if (ranges)
            ranges_list(ranges, list);
    }
}

/* ---- life ---- */

void salvage_init(struct salvage *r, struct op *op, struct store *s, tamiz_report *report)
{
    *r = (struct salvage){.op = op, .s = s, .report = report};
    listing_init(&r->files, &s->alloc);
}

void salvage_free(struct salvage *r)
{
    salvage_trees_free(r);
    listing_free(&r->files);
}
