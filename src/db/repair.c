/* SPDX-License-Identifier: MIT
 *
 * Repairing a store that can't be opened, or that verify finds damaged. Where all is well nothing
 * is touched. Else everything that can be read, of the tables that the manifest names (of all
 * tables where it can't be read) and of the logs, is merged by sequence into one new run, and a new
 * manifest names that. Merged, not strung together: which table is newer than which was only known
 * to the manifest, but each version carries its sequence, so that deletes stay deleted and newer
 * values win.
 *
 *     1. look: manifest, every block of every table, every record of every log
 *     2. merge what can be read into new tables, sync
 *     3. link every old file into the subdirectory "lost"
 *     4. write the new manifest, switch CURRENT
 *     5. remove the old names
 *
 * A crash before 4 leaves the old store, one after 4 the new one; in both the old files are still
 * there, in "lost" too from 3 on. Nothing is ever deleted there: that is for a person.
 *
 * What cannot be known: a delete that stood in an unreadable place is lost with it, and what it
 * deleted may show again. And with no manifest, a table or log that was merged into others before,
 * but not yet removed when the machine died, counts as one more source.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "compact/compact.h"
#include "db/install.h"
#include "db/life.h"
#include "db/options.h"
#include "db/report.h"
#include "log/batch.h"
#include "mem/memtable.h"
#include "table/merge.h"
#include "version/signature.h"

static const char LOST[] = "lost";

/* One keyspace: what there is of it, and what comes of that. */
struct repair_tree {
    uint64_t id;
    char *name;                /* owned; NULL: of the default one */
    struct memtable *memtable; /* what the logs hold */
    struct buf opened;         /* struct table *: sources of the merge */
    struct buf made;           /* struct table_meta *: its outcome */
};

struct repair {
    struct op *op;
    struct store *s;
    tamiz_report *report;
    struct buf tables, logs, manifests; /* u64 numbers of what is there, ascending */
    bool current;                       /* there is a CURRENT */
    uint64_t largest;                   /* number of any file */
    bool has_manifest;                  /* s->state is what it says */
    uint64_t last_seq;
    uint64_t next_keyspace;    /* at least */
    struct repair_tree *trees; /* ids ascending; [0] is the default keyspace */
    size_t tree_count, tree_room;
};

static void find(struct repair *r, uint64_t lost_bytes, const char *text)
{
    r->report->damaged++;
    r->report->lost_bytes += lost_bytes;
    if (r->report->find)
        r->report->find(r->report->ctx, text);
}

/* The op's failure is a find, unless memory or the disk's space ran out: those end the repair. */
static tamiz_status find_failure(struct repair *r, tamiz_status st, uint64_t lost_bytes)
{
    if (st == TAMIZ_OK || st == TAMIZ_OUT_OF_MEMORY || st == TAMIZ_NO_SPACE)
        return st;
    find(r, lost_bytes, r->op->text);
    op_forgive(r->op);
    return TAMIZ_OK;
}

/* ---- keyspaces ---- */

static struct repair_tree *tree_find(const struct repair *r, uint64_t id)
{
    for (size_t i = 0; i < r->tree_count; i++)
        if (r->trees[i].id == id)
            return &r->trees[i];
    return NULL;
}

static bool trees_reserve(struct repair *r)
{
    if (r->tree_count < r->tree_room)
        return true;
    const size_t room = r->tree_room ? 2 * r->tree_room : 8;
    struct repair_tree *grown =
        mem_resize(&r->s->alloc, r->trees, r->tree_room * sizeof *grown, room * sizeof *grown);
    if (!grown)
        return false;
    r->trees = grown;
    r->tree_room = room;
    return true;
}

/* What only its id is known of. */
static char *name_made_up(struct repair *r, uint64_t id)
{
    char words[48];
    (void)snprintf(words, sizeof words, "keyspace-%llu", (unsigned long long)id);
    return mem_text(&r->s->alloc, words);
}

/* The keyspace, met before or not. `name` NULL: not known. NULL: memory is out, recorded. */
static struct repair_tree *tree_meet(struct repair *r, uint64_t id, const char *name)
{
    struct store *s = r->s;
    struct repair_tree *known = tree_find(r, id);
    if (known)
        return known;
    struct repair_tree tree = {.id = id,
                               .memtable = memtable_new(&s->alloc, (size_t)s->options.memtable),
                               .opened = buf_init(&s->alloc),
                               .made = buf_init(&s->alloc)};
    if (id)
        tree.name = name ? mem_text(&s->alloc, name) : name_made_up(r, id);
    if (!tree.memtable || (id && !tree.name) || !trees_reserve(r)) {
        memtable_free(tree.memtable);
        mem_free_text(&s->alloc, tree.name);
        op_fail_memory(r->op);
        return NULL;
    }
    size_t at = r->tree_count++;
    for (; at > 0 && r->trees[at - 1].id > id; at--)
        r->trees[at] = r->trees[at - 1];
    r->trees[at] = tree;
    if (id >= r->next_keyspace)
        r->next_keyspace = id + 1;
    return &r->trees[at];
}

/* ---- 1: looking ---- */

static void see(void *ctx, const char *name)
{
    struct repair *r = ctx;
    uint64_t number = 0;
    const enum file_kind kind = filename_parse(name, &number);
    struct buf *list = kind == FILE_TABLE      ? &r->tables
                       : kind == FILE_LOG      ? &r->logs
                       : kind == FILE_MANIFEST ? &r->manifests
                                               : NULL;
    r->current |= kind == FILE_CURRENT;
    if (list)
        buf_append(list, &number, sizeof number);
    if (number > r->largest)
        r->largest = number;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static size_t count_of(const struct buf *list)
{
    return list->size / sizeof(uint64_t);
}

static uint64_t number_at(const struct buf *list, size_t i)
{
    uint64_t number;
    memcpy(&number, list->data + i * sizeof number, sizeof number);
    return number;
}

static tamiz_status look_around(struct repair *r)
{
    struct buf *lists[] = {&r->tables, &r->logs, &r->manifests};
    bool exists = false;
    tamiz_file_info info;
    tamiz_status st = env_path_info(r->op, r->s->env, r->s->directory, &exists, &info);
    if (st == TAMIZ_OK && exists)
        st = env_list(r->op, r->s->env, r->s->directory, see, r);
    if (st != TAMIZ_OK)
        return st;
    for (int i = 0; i < 3; i++) {
        if (lists[i]->failed)
            return op_fail_memory(r->op);
        if (lists[i]->size)
            qsort(lists[i]->data, count_of(lists[i]), sizeof(uint64_t), ascending);
    }
    if (r->current || r->tables.size || r->logs.size || r->manifests.size)
        return store_signature(r->op, r->s->env, r->s->directory);
    op_fail(r->op, TAMIZ_NOT_FOUND, "%s: no store here", r->s->directory);
    return TAMIZ_NOT_FOUND;
}

static tamiz_status look_at_manifest(struct repair *r)
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
    for (size_t i = 0; r->has_manifest && i < s->state.tree_count; i++)
        if (!tree_meet(r, s->state.trees[i].id, s->state.trees[i].name))
            return TAMIZ_OUT_OF_MEMORY;
    return st == TAMIZ_NOT_FOUND ? TAMIZ_OK : find_failure(r, st, 0);
}

/* A handle for one table. NULL: memory is out. */
static struct table *open_table(struct repair *r, uint64_t number, const struct table_meta *meta)
{
    struct store *s = r->s;
    char *path = store_path(r->op, s, FILE_TABLE, number);
    struct table *t = path ? table_new(r->op, &s->first->world, path, number,
                                       meta ? meta->file_id : 0, meta ? meta->file_size : 0)
                           : NULL;
    mem_free_text(&s->alloc, path);
    return t;
}

/* Verified, and a source of its keyspace from now on. */
static tamiz_status look_at_table(struct repair *r, uint64_t number, const struct table_meta *meta)
{
    struct table *t = open_table(r, number, meta);
    if (!t)
        return TAMIZ_OUT_OF_MEMORY;
    const tamiz_status st = table_verify(r->op, t, r->report);
    if (st == TAMIZ_OK || st == TAMIZ_CORRUPTION)
        op_forgive(r->op);
    struct repair_tree *tree = st == TAMIZ_OK || st == TAMIZ_CORRUPTION
                                   ? tree_meet(r, meta ? meta->keyspace : 0, NULL)
                                   : NULL;
    if (tree)
        buf_append(&tree->opened, &t, sizeof(struct table *));
    if (tree && !tree->opened.failed)
        return TAMIZ_OK;
    table_free(t);
    return st == TAMIZ_OK || st == TAMIZ_CORRUPTION ? op_fail_memory(r->op) : st;
}

/* Newest file first: where two show one version, the later one counts. */
static tamiz_status look_at_tables(struct repair *r)
{
    const struct manifest_state *state = &r->s->state;
    size_t total = r->has_manifest ? 0 : count_of(&r->tables), done = 0;
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
        TRY(look_at_table(r, number_at(&r->tables, i), NULL));
        if (r->report->progress)
            r->report->progress(r->report->ctx, ++done, total);
    }
done:
    return st;
}

/* A write into the memtable of its keyspace. One that the manifest does not have was dropped, or,
 * with no manifest, is met here. */
static tamiz_status take_write(struct repair *r, const struct batch_write *w)
{
    struct repair_tree *tree = tree_find(r, w->keyspace);
    if (!tree && r->has_manifest)
        return TAMIZ_OK;
    if (!tree)
        tree = tree_meet(r, w->keyspace, NULL);
    if (!tree)
        return TAMIZ_OUT_OF_MEMORY;
    return memtable_add(r->op, tree->memtable, w->key, hash_key(w->key), stamp_of(w->seq, w->kind),
                        w->value);
}

/* One log as far as it can be read. `next_seq`: behind the last write taken; `limit`: where the
 * next log begins, so that what stands beyond is of a write that failed. */
static tamiz_status take_record(struct repair *r, struct slice body, uint64_t limit,
                                uint64_t *next_seq)
{
    struct batch_reader reader;
    struct batch_write w;
    uint64_t first, count;
    tamiz_status st = batch_open(r->op, body, &reader, &first, &count);
    if (st != TAMIZ_OK)
        return find_failure(r, st, body.size);
    if (first < *next_seq || first >= limit)
        return TAMIZ_OK;
    while (st == TAMIZ_OK && batch_next(&reader, &w))
        st = take_write(r, &w);
    *next_seq = first + count;
    return st;
}

static tamiz_status look_at_log(struct repair *r, uint64_t number, uint64_t limit,
                                uint64_t *next_seq)
{
    struct store *s = r->s;
    struct log_reader log = {.path = NULL};
    bool empty = false;
    struct slice body;
    char *path = store_path(r->op, s, FILE_LOG, number);
    tamiz_status st = TAMIZ_OK;
    TRY(path ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    st = log_reader_open(r->op, s->env, &s->alloc, path, LOG_WAL, IO_LOG, &log, &empty);
    r->report->files++;
    while (st == TAMIZ_OK && !empty) {
        st = log_next(r->op, &log, env_boot_id(s->env), &body);
        if (st != TAMIZ_OK)
            break;
        TRY(take_record(r, body, limit, next_seq));
    }
    if (st != TAMIZ_NOT_FOUND)
        TRY(find_failure(r, st, log.content.size > log.at ? log.content.size - log.at : 0));
    st = TAMIZ_OK;
done:
    log_reader_close(&log);
    mem_free_text(&s->alloc, path);
    return st;
}

/* The sequence at which a log begins; SEQ_MAX + 1: it has none to tell. */
static uint64_t first_of(struct repair *r, uint64_t number)
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

static tamiz_status look_at_logs(struct repair *r)
{
    uint64_t next_seq = 0;
    const size_t n = count_of(&r->logs);
    for (size_t i = 0; i < n; i++) {
        if (r->has_manifest && number_at(&r->logs, i) < r->s->state.log_number)
            continue; /* its writes are in tables */
        uint64_t limit = SEQ_MAX + 1;
        for (size_t k = i + 1; k < n && limit > SEQ_MAX; k++)
            limit = first_of(r, number_at(&r->logs, k));
        const tamiz_status st = look_at_log(r, number_at(&r->logs, i), limit, &next_seq);
        if (st != TAMIZ_OK)
            return st;
    }
    if (next_seq && next_seq - 1 > r->last_seq)
        r->last_seq = next_seq - 1;
    return TAMIZ_OK;
}

/* ---- 2: merging ---- */

static struct table *source_at(const struct repair_tree *tree, size_t i)
{
    struct table *t;
    memcpy(&t, tree->opened.data + i * sizeof(struct table *), sizeof(struct table *));
    return t;
}

/* All that can be read, as one iterator; what can't be opened was told already. */
static struct iter *all_sources(struct repair *r, struct repair_tree *tree, tamiz_report *quiet)
{
    struct op *op = r->op;
    const size_t n = tree->opened.size / sizeof(struct table *);
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
        list[count] = table_salvage(op, source_at(tree, i), quiet);
        if (list[count]) {
            const uint64_t seq_max = table_properties(source_at(tree, i))->seq_max;
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

/* All range deletes that can be read; those that can't are lost, as other deletes are. */
static void all_ranges(const struct repair_tree *tree, struct buf *list)
{
    memtable_ranges_list(tree->memtable, list);
    for (size_t i = 0; i < tree->opened.size / sizeof(struct table *); i++) {
        const struct ranges *ranges = table_ranges_near(source_at(tree, i));
        if (ranges)
            ranges_list(ranges, list);
    }
}

static tamiz_status merge_tree(struct repair *r, struct repair_tree *tree)
{
    enum { LEVEL = 1 };
    struct store *s = r->s;
    const tamiz_options *o = &s->options;
    tamiz_report quiet = TAMIZ_REPORT_INIT; /* told when it was verified */
    struct buf ranges = buf_init(&s->alloc);
    struct iter *source = all_sources(r, tree, &quiet);
    if (!source)
        return TAMIZ_OUT_OF_MEMORY;
    all_ranges(tree, &ranges);
    const struct compact_input in = {.source = source,
                                     .ranges = (const struct range_delete *)(void *)ranges.data,
                                     .range_count = ranges.size / sizeof(struct range_delete),
                                     .bottom = true};
    const struct compact_output out = {.env = s->env,
                                       .alloc = &s->alloc,
                                       .build = options_recipe(o, LEVEL, IO_COMPACTION),
                                       .directory = s->directory,
                                       .table_bytes = o->table,
                                       .keyspace = tree->id,
                                       .level = LEVEL,
                                       .run = 1,
                                       .next_file = store_next_file,
                                       .next_file_ctx = s};
    const tamiz_status st =
        ranges.failed ? op_fail_memory(r->op) : compact_run(r->op, &in, &out, &tree->made);
    iter_close(source);
    buf_free(&ranges);
    return st;
}

static tamiz_status merge_all(struct repair *r)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < r->tree_count; i++)
        TRY(merge_tree(r, &r->trees[i]));
    TRY(env_sync_directory(r->op, r->s->env, r->s->directory));
done:
    return st;
}

/* ---- 3 to 5: the old files aside, the new manifest ---- */

/* "DIRECTORY/lost" or "DIRECTORY/lost/NAME"; NULL: memory is out. Freed with mem_free_text. */
static char *lost_path(struct repair *r, const char *name)
{
    struct buf b = buf_init(&r->s->alloc);
    buf_printf(&b, "%s/%s%s%s", r->s->directory, LOST, name ? "/" : "", name ? name : "");
    buf_u8(&b, 0);
    char *text = b.failed ? NULL : mem_text(&r->s->alloc, (const char *)b.data);
    buf_free(&b);
    if (!text)
        op_fail_memory(r->op);
    return text;
}

enum step { LINK, UNLINK };

/* Links are made before the switch and the old names removed after it. A file system without links
 * gets a rename after it. What is there already from an earlier try is fine. */
static tamiz_status one_aside(struct repair *r, enum file_kind kind, uint64_t number,
                              enum step step)
{
    struct store *s = r->s;
    struct op quiet;
    char name[FILE_NAME_MAX];
    tamiz_file_info info;
    bool there = false;
    filename_format(kind, number, name);
    char *from = store_path(r->op, s, kind, number), *to = lost_path(r, name);
    tamiz_status st = from && to ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY;
    op_init(&quiet, &s->alloc, r->op->count);
    if (st == TAMIZ_OK && step == LINK)
        (void)env_link(&quiet, s->env, from, to);
    if (st == TAMIZ_OK && step == UNLINK) {
        st = env_path_info(r->op, s->env, to, &there, &info);
        if (st == TAMIZ_OK)
            st = there ? env_remove(r->op, s->env, from) : env_rename(r->op, s->env, from, to);
        if (st == TAMIZ_IO_ERROR && r->op->os_error == ENOENT) {
            op_forgive(r->op); /* CURRENT named a manifest that is not there, or the like */
            st = TAMIZ_OK;
        }
    }
    mem_free_text(&s->alloc, from);
    mem_free_text(&s->alloc, to);
    return st;
}

static tamiz_status all_aside(struct repair *r, enum step step)
{
    static const enum file_kind kinds[] = {FILE_TABLE, FILE_LOG, FILE_MANIFEST};
    const struct buf *lists[] = {&r->tables, &r->logs, &r->manifests};
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < count_of(lists[k]); i++) {
            const tamiz_status st = one_aside(r, kinds[k], number_at(lists[k], i), step);
            if (st != TAMIZ_OK)
                return st;
        }
    return TAMIZ_OK;
}

static tamiz_status make_lost(struct repair *r)
{
    bool there = false;
    tamiz_file_info info;
    char *path = lost_path(r, NULL);
    tamiz_status st = TAMIZ_OK;
    TRY(path ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(env_path_info(r->op, r->s->env, path, &there, &info));
    if (!there)
        TRY(env_make_directory(r->op, r->s->env, path));
    TRY(all_aside(r, LINK));
    TRY(env_sync_directory(r->op, r->s->env, path));
done:
    mem_free_text(&r->s->alloc, path);
    return st;
}

/* The picture with what was made. */
static tamiz_status state_after(struct repair *r, struct manifest_state *after)
{
    struct store *s = r->s;
    tamiz_status st = manifest_state_init(r->op, &s->alloc, after);
    TRY(st);
    for (size_t i = 0; i < r->tree_count; i++) {
        const struct repair_tree *tree = &r->trees[i];
        const struct version_edit edit = {
            .added = (struct table_meta *const *)(const void *)tree->made.data,
            .added_count = tree->made.size / sizeof(struct table_meta *)};
        if (tree->id)
            TRY(manifest_tree_add(r->op, &s->alloc, after, tree->id, slice_of_text(tree->name)));
        struct manifest_tree *to = manifest_tree_find(after, tree->id);
        version_unref(to->version);
        to->version = NULL;
        TRY(version_apply(r->op, &s->alloc, NULL, &edit, &to->version));
    }
    after->log_number = store_next_file(s);
    after->last_seq = r->last_seq;
    after->next_run = 2;
    after->next_keyspace = r->next_keyspace;
    after->next_file = atomic_load_explicit(&s->next_file, memory_order_relaxed);
done:
    return st;
}

static tamiz_status switch_manifest(struct repair *r)
{
    struct store *s = r->s;
    const struct manifest_edit nothing = {.has_next_file = false};
    struct manifest_state after;
    tamiz_status st = state_after(r, &after);
    if (st == TAMIZ_OK)
        st = manifest_write(r->op, &s->manifest, &nothing, &after);
    atomic_store_explicit(&s->unsettled, s->manifest.unsettled, memory_order_release);
    manifest_state_free(&s->alloc, &after);
    return st;
}

static tamiz_status rebuild(struct repair *r)
{
    struct store *s = r->s;
    tamiz_status st = TAMIZ_OK;
    const uint64_t next = r->largest + 1;
    atomic_store_explicit(&s->next_file, next > s->state.next_file ? next : s->state.next_file,
                          memory_order_relaxed);
    TRY(merge_all(r));
    TRY(make_lost(r));
    TRY(switch_manifest(r));
    TRY(all_aside(r, UNLINK));
    TRY(env_sync_directory(r->op, s->env, s->directory));
done:
    for (size_t i = 0; i < r->tree_count && st != TAMIZ_OK && s->manifest.number == 0; i++)
        discard_tables(r->op, s, &r->trees[i].made);
    return st;
}

static void tree_free(const struct alloc *alloc, struct repair_tree *tree)
{
    struct table_meta **made = (struct table_meta **)(void *)tree->made.data;
    for (size_t i = 0; i < tree->made.size / sizeof *made; i++)
        table_meta_unref(alloc, made[i]);
    for (size_t i = 0; i < tree->opened.size / sizeof(struct table *); i++)
        table_free(source_at(tree, i));
    memtable_free(tree->memtable);
    mem_free_text(alloc, tree->name);
    buf_free(&tree->made);
    buf_free(&tree->opened);
}

static void repair_free(struct repair *r)
{
    for (size_t i = 0; i < r->tree_count; i++)
        tree_free(&r->s->alloc, &r->trees[i]);
    mem_free(&r->s->alloc, r->trees, r->tree_room * sizeof *r->trees);
    buf_free(&r->tables);
    buf_free(&r->logs);
    buf_free(&r->manifests);
}

static tamiz_status repair(struct op *op, struct store *s, tamiz_report *report)
{
    struct repair r = {.op = op, .s = s, .report = report};
    struct buf *lists[] = {&r.tables, &r.logs, &r.manifests};
    tamiz_status st = TAMIZ_OK;
    for (int i = 0; i < 3; i++)
        *lists[i] = buf_init(&s->alloc);
    TRY(look_around(&r));
    if (st == TAMIZ_NOT_FOUND)
        goto done;
    TRY(store_lock(op, s));
    TRY(manifest_init(op, s->env, &s->alloc, s->directory, &s->manifest));
    TRY(tree_meet(&r, 0, NULL) ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(look_at_manifest(&r));
    TRY(look_at_tables(&r));
    TRY(look_at_logs(&r));
    if (report->damaged)
        TRY(rebuild(&r));
done:
    repair_free(&r);
    return st;
}

tamiz_status tamiz_repair(const char *path, const tamiz_options *options, tamiz_report *given)
{
    tamiz_options taken;
    tamiz_report room, *report;
    tamiz_status st = report_open(given, &room, &report);
    if (st == TAMIZ_OK)
        st = store_options(path, options, &taken);
    if (st != TAMIZ_OK)
        return st;
    taken.read_only = false;
    struct loose_op *l = NULL;
    struct store *s = NULL;
    st = store_make(path, &taken, &l, &s);
    if (!s)
        return st;
    if (st == TAMIZ_OK)
        st = repair(&l->op, s, report);
    report_close(given, report);
    st = op_publish(&l->op, st);
    store_free(&l->op, s);
    mem_free(&alloc_libc, l, sizeof *l);
    return st;
}
