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

#include "compact/compact.h"
#include "db/install.h"
#include "db/life.h"
#include "db/options.h"
#include "db/salvage.h"

static const char LOST[] = "lost";

struct repair {
    struct op *op;
    struct store *s;
    struct salvage found;
    struct buf *made; /* one a keyspace of `found`: struct table_meta *, what comes of it */
};

/* ---- 2: merging ---- */

static tamiz_status merge_tree(struct repair *r, struct salvage_tree *tree, struct buf *made)
{
    enum { LEVEL = 1 };
    struct store *s = r->s;
    const tamiz_options *o = &s->options;
    tamiz_report quiet = TAMIZ_REPORT_INIT; /* told when it was verified */
    struct buf ranges = buf_init(&s->alloc);
    struct iter *source = salvage_sources(&r->found, tree, &quiet);
    if (!source)
        return TAMIZ_OUT_OF_MEMORY;
    salvage_ranges(tree, &ranges);
    const struct compact_input in = {.source = source,
                                     .ranges = (const struct range_delete *)(void *)ranges.data,
                                     .range_count = ranges.size / sizeof(struct range_delete),
                                     .bottom = true};
    struct compact_output out = {.env = s->env,
                                 .alloc = &s->alloc,
                                 .build = options_recipe(o, LEVEL, IO_COMPACTION),
                                 .directory = s->directory,
                                 .table_bytes = o->table,
                                 .level = LEVEL,
                                 .run = 1,
                                 .next_file = store_next_file,
                                 .next_file_ctx = s};
    out.build.keyspace = tree->id;
    out.build.keyspace_name = slice_of_text(tree->id ? tree->name : "");
    const tamiz_status st =
        ranges.failed ? op_fail_memory(r->op) : compact_run(r->op, &in, &out, made);
    iter_close(source);
    buf_free(&ranges);
    return st;
}

static tamiz_status merge_all(struct repair *r)
{
    tamiz_status st = TAMIZ_OK;
    struct salvage *found = &r->found;
    r->made = mem_new_array(&r->s->alloc, found->tree_count, sizeof *r->made);
    TRY(r->made ? TAMIZ_OK : op_fail_memory(r->op));
    for (size_t i = 0; i < found->tree_count; i++)
        r->made[i] = buf_init(&r->s->alloc);
    for (size_t i = 0; i < found->tree_count; i++)
        TRY(merge_tree(r, &found->trees[i], &r->made[i]));
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
    const struct listing *files = &r->found.files;
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < listing_count(files, kinds[k]); i++) {
            const uint64_t number = listing_numbers(files, kinds[k])[i];
            const tamiz_status st = one_aside(r, kinds[k], number, step);
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
    for (size_t i = 0; i < r->found.tree_count; i++) {
        const struct salvage_tree *tree = &r->found.trees[i];
        const struct version_edit edit = {
            .added = (struct table_meta *const *)(const void *)r->made[i].data,
            .added_count = r->made[i].size / sizeof(struct table_meta *)};
        if (tree->id)
            TRY(manifest_tree_add(r->op, &s->alloc, after, tree->id, slice_of_text(tree->name)));
        struct manifest_tree *to = manifest_tree_find(after, tree->id);
        version_unref(to->version);
        to->version = NULL;
        TRY(version_apply(r->op, &s->alloc, NULL, &edit, &to->version));
    }
    after->log_number = store_next_file(s);
    after->last_seq = r->found.last_seq;
    after->next_run = 2;
    after->next_keyspace = r->found.next_keyspace;
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
    const uint64_t next = r->found.files.largest + 1;
    atomic_store_explicit(&s->next_file, next > s->state.next_file ? next : s->state.next_file,
                          memory_order_relaxed);
    TRY(merge_all(r));
    TRY(make_lost(r));
    TRY(switch_manifest(r));
    TRY(all_aside(r, UNLINK));
    TRY(env_sync_directory(r->op, s->env, s->directory));
done:
    for (size_t i = 0; r->made && i < r->found.tree_count; i++)
        if (st != TAMIZ_OK && s->manifest.number == 0)
            discard_tables(r->op, s, &r->made[i]);
    return st;
}

static void made_free(struct repair *r)
{
    const struct alloc *alloc = &r->s->alloc;
    for (size_t k = 0; r->made && k < r->found.tree_count; k++) {
        struct table_meta **made = (struct table_meta **)(void *)r->made[k].data;
        for (size_t i = 0; i < r->made[k].size / sizeof *made; i++)
            table_meta_unref(alloc, made[i]);
        buf_free(&r->made[k]);
    }
    mem_free(alloc, r->made, r->found.tree_count * sizeof *r->made);
}

static tamiz_status repair(struct op *op, struct store *s, tamiz_report *report)
{
    struct repair r = {.op = op, .s = s};
    tamiz_status st = TAMIZ_OK;
    salvage_init(&r.found, op, s, report);
    TRY(salvage_list(&r.found));
    if (st == TAMIZ_NOT_FOUND)
        goto done;
    TRY(store_lock(op, s));
    TRY(manifest_init(op, s->env, &s->alloc, s->directory, &s->manifest));
    TRY(salvage_look(&r.found));
    if (report->damaged)
        TRY(rebuild(&r));
done:
    made_free(&r);
    salvage_free(&r.found);
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
