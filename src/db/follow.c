/* SPDX-License-Identifier: MIT */
#include "db/follow.h"

#include <errno.h>

#include "db/keyspace.h"
#include "db/replay.h"
#include "version/listing.h"

enum {
    TRIES_MOVING = 1000, /* while the writer moves on; each takes it an edit of the manifest */
    TRIES_STILL = 5,     /* a log may have been read in the middle of a write */
    PAUSE_US = 500,
};

/* Which manifest is in force, and how much is in it. */
struct mark {
    uint64_t number, size;
};

static tamiz_status mark_take(struct op *op, const struct store *s, struct mark *mark)
{
    bool exists;
    tamiz_file_info info;
    *mark = (struct mark){0, 0};
    tamiz_status st = manifest_current(op, s->env, &s->alloc, s->directory, &mark->number);
    if (st == TAMIZ_IO_ERROR && op->os_error == ENOENT) {
        op_forgive(op);
        return TAMIZ_OK; /* no store, which reading it will say */
    }
    if (st != TAMIZ_OK)
        return st;
    char *path = store_path(op, s, FILE_MANIFEST, mark->number);
    if (!path)
        return TAMIZ_OUT_OF_MEMORY;
    st = env_path_info(op, s->env, path, &exists, &info);
    mem_free_text(&s->alloc, path);
    mark->size = exists ? info.size : 0;
    return st;
}

static bool moved_since(struct op *op, const struct store *s, const struct mark *before)
{
    struct mark after;
    struct op quiet;
    op_init(&quiet, &s->alloc, op->count);
    return mark_take(&quiet, s, &after) != TAMIZ_OK || after.number != before->number ||
           after.size != before->size;
}

/* ---- one picture ---- */

struct picture {
    struct manifest_state state; /* version: a reference of ours */
    struct buf numbers;          /* u64 of logs, ascending */
    struct buf files;            /* struct file *, as many */
    struct tamiz **keyspaces;    /* one a tree; those that are in no list yet are ours */
    struct mem_ref **memtables;  /* as many */
    size_t count;
    struct replayed replayed;
    struct mark mark; /* of the manifest, before it was read */
    bool moved;       /* the manifest moved on while it was taken */
};

static tamiz_status open_log(struct op *op, const struct store *s, uint64_t number,
                             struct picture *p)
{
    struct file *file = NULL;
    tamiz_status st = TAMIZ_OK;
    char *path = store_path(op, s, FILE_LOG, number);
    TRY(path ? TAMIZ_OK : TAMIZ_OUT_OF_MEMORY);
    TRY(buf_reserve(&p->files, sizeof file) ? TAMIZ_OK : op_fail_memory(op));
    TRY(file_open(op, s->env, path, TAMIZ_OPEN_READ, &file));
    buf_append(&p->files, &file, sizeof file);
    buf_append(&p->numbers, &number, sizeof number);
    TRY(p->numbers.failed ? op_fail_memory(op) : TAMIZ_OK);
done:
    mem_free_text(&s->alloc, path);
    return st;
}

static tamiz_status open_logs(struct op *op, const struct store *s, struct picture *p)
{
    struct listing files;
    tamiz_status st = TAMIZ_OK;
    listing_init(&files, &s->alloc);
    TRY(listing_take(op, s->env, s->directory, &files));
    for (size_t i = 0; i < listing_count(&files, FILE_LOG); i++) {
        const uint64_t number = listing_numbers(&files, FILE_LOG)[i];
        if (number >= p->state.log_number)
            TRY(open_log(op, s, number, p));
    }
done:
    listing_free(&files);
    return st;
}

/* The same table in the picture before keeps its handle. */
static void share_tables(const struct version *before, struct version *now)
{
    for (uint32_t i = 0; before && i < now->table_count; i++) {
        struct table_meta *t = now->tables[i];
        const struct table_meta *had = version_table(before, t->number);
        if (had && had->file_id == t->file_id && had->table && !t->table)
            t->table = table_share(had->table);
    }
}

static tamiz_status open_tables(struct op *op, const struct tamiz *db, struct version *v)
{
    const struct store *s = db->store;
    tamiz_status st = version_attach(op, v, &db->world, s->directory);
    for (uint32_t i = 0; i < v->table_count && st == TAMIZ_OK; i++) {
        st = table_pin(op, v->tables[i]->table);
        if (st == TAMIZ_BUSY)
            return version_check_files(op, v, s->env, s->directory); /* the rest is not held */
        if (st != TAMIZ_IO_ERROR || op->os_error != ENOENT)
            continue;
        op_forgive(op);
        st = op_fail(op, TAMIZ_CORRUPTION,
                     "%s: the manifest names table %06llu.sst, which is missing", s->directory,
                     (unsigned long long)v->tables[i]->number);
    }
    return st;
}

static void picture_free(struct op *op, struct store *s, struct picture *p)
{
    struct file **files = (struct file **)(void *)p->files.data;
    struct op quiet; /* they were only read */
    op_init(&quiet, &s->alloc, op->count);
    for (size_t i = 0; i < p->files.size / sizeof *files; i++)
        (void)file_close(&quiet, files[i]);
    buf_free(&p->numbers);
    buf_free(&p->files);
    replay_memtables_free(s, p->memtables, p->count);
    manifest_state_free(&s->alloc, &p->state);
    for (size_t i = 0; p->keyspaces && i < p->count; i++)
        if (p->keyspaces[i] && !keyspace_find(s, p->keyspaces[i]->id))
            keyspace_free(p->keyspaces[i]);
    mem_free(&s->alloc, p->keyspaces, p->count * sizeof(struct tamiz *));
}

/* Handles for the trees: those there are, and new ones. */
static tamiz_status find_keyspaces(struct op *op, struct store *s, struct picture *p)
{
    p->keyspaces = mem_new_array(&s->alloc, p->state.tree_count, sizeof(struct tamiz *));
    if (!p->keyspaces)
        return op_fail_memory(op);
    p->count = p->state.tree_count;
    for (size_t i = 0; i < p->count; i++) {
        const struct manifest_tree *tree = &p->state.trees[i];
        p->keyspaces[i] = keyspace_find(s, tree->id);
        if (!p->keyspaces[i])
            p->keyspaces[i] = keyspace_new(op, s, tree->id, tree->name, &s->options);
        if (!p->keyspaces[i])
            return TAMIZ_OUT_OF_MEMORY;
    }
    return TAMIZ_OK;
}

static tamiz_status take_tables(struct op *op, struct store *s, struct picture *p)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < p->count; i++) {
        const struct manifest_tree *before = manifest_tree_find(&s->state, p->state.trees[i].id);
        if (before)
            share_tables(before->version, p->state.trees[i].version);
        TRY(open_tables(op, p->keyspaces[i], p->state.trees[i].version));
    }
done:
    return st;
}

/* Emptied by the caller also on failure. p->moved is right in any case. */
static tamiz_status picture_take(struct op *op, struct store *s, struct picture *p)
{
    *p = (struct picture){.numbers = buf_init(&s->alloc), .files = buf_init(&s->alloc)};
    tamiz_status st = mark_take(op, s, &p->mark);
    if (st != TAMIZ_OK)
        return st;
    TRY(manifest_recover(op, s->env, &s->alloc, s->directory, &p->state));
    if (st == TAMIZ_NOT_FOUND)
        goto done;
    TRY(open_logs(op, s, p));
    TRY(find_keyspaces(op, s, p));
    TRY(take_tables(op, s, p));
done:
    p->moved = moved_since(op, s, &p->mark);
    return st;
}

/* Is a keyspace of the picture no more? Where that can't be found out now, perhaps. */
static bool lost_keyspace(struct op *op, const struct store *s, const struct picture *p)
{
    struct manifest_state now = {.trees = NULL};
    struct op quiet;
    op_init(&quiet, &s->alloc, op->count);
    bool lost = manifest_recover(&quiet, s->env, &s->alloc, s->directory, &now) != TAMIZ_OK;
    for (size_t i = 0; i < p->count && !lost; i++)
        lost = !manifest_tree_find(&now, p->state.trees[i].id);
    manifest_state_free(&s->alloc, &now);
    return lost;
}

/* The logs were read after the manifest, and may have later writes. Mostly that is only more of the
 * same; but ingestions and drops stand in the manifest alone, and what was written after one is
 * nothing to be shown without it. */
static bool was_overtaken(struct op *op, const struct store *s, const struct picture *p)
{
    return moved_since(op, s, &p->mark) && (p->replayed.leapt || lost_keyspace(op, s, p));
}

/* All files are open: what the writer does to them now harms nothing. */
static tamiz_status picture_replay(struct op *op, struct store *s, struct picture *p)
{
    const struct open_logs logs = {(const uint64_t *)(const void *)p->numbers.data,
                                   (struct file *const *)(void *)p->files.data,
                                   p->numbers.size / sizeof(uint64_t)};
    tamiz_status st = replay_memtables(op, p->keyspaces, p->count, 0, &p->memtables);
    if (st == TAMIZ_OK)
        st = replay_open_logs(op, s, &p->state, &logs, p->memtables, &p->replayed);
    p->moved = st == TAMIZ_OK && was_overtaken(op, s, p);
    return st;
}

/* One that is of one moment; as often as it takes. */
static tamiz_status picture_settle(struct op *op, struct store *s, struct picture *p)
{
    uint32_t still = 0;
    for (uint32_t tries = 0;; tries++) {
        tamiz_status st = picture_take(op, s, p);
        if (st == TAMIZ_OK && !p->moved)
            st = picture_replay(op, s, p);
        if (st == TAMIZ_OUT_OF_MEMORY || (st >= 0 && !p->moved))
            return st;
        if (!p->moved && ++still == TRIES_STILL)
            return st;
        if (tries == TRIES_MOVING)
            return st < 0 ? st
                          : op_fail(op, TAMIZ_BUSY,
                                    "%s: the manifest moves on faster than it can be followed",
                                    s->directory);
        picture_free(op, s, p);
        *p = (struct picture){.count = 0};
        op_forgive(op);
        env_sleep_us(s->env, PAUSE_US);
    }
}

/* ---- showing it ---- */

/* One view a tree, and one with nothing in it for every keyspace that is gone. */
struct showing {
    struct view **views;
    size_t count; /* of trees, then of keyspaces before */
};

static void showing_free(struct store *s, struct showing *v)
{
    for (size_t i = 0; v->views && i < v->count; i++)
        view_unref(v->views[i]);
    mem_free(&s->alloc, v->views, v->count * sizeof(struct view *));
}

static tamiz_status showing_make(struct op *op, struct store *s, struct picture *p,
                                 struct showing *v)
{
    *v = (struct showing){.count = p->count + s->keyspace_count};
    v->views = mem_new_array(&s->alloc, v->count, sizeof(struct view *));
    if (!v->views)
        return op_fail_memory(op);
    for (size_t i = 0; i < v->count; i++) {
        v->views[i] = i < p->count ? view_new(op, s, &p->memtables[i], 1, p->state.trees[i].version)
                                   : view_nothing(op, s);
        if (!v->views[i])
            return TAMIZ_OUT_OF_MEMORY;
    }
    return TAMIZ_OK;
}

static tamiz_status refuse_snapshot(struct op *op, const struct store *s)
{
    return op_fail(op, TAMIZ_BUSY,
                   "%s: a snapshot is held, which the writer knows nothing of: release it first",
                   s->directory);
}

/* The old view with the new sequence shows what it did; the new one with the old sequence might
 * lack what merges dropped since. So the sequence goes first. mutex held; cannot fail any more. */
static void show_all(struct store *s, struct picture *p, struct showing *v)
{
    struct manifest_state old = s->state;
    s->state = p->state;
    p->state = old;
    atomic_store_explicit(&s->next_file, s->state.next_file, memory_order_relaxed);
    atomic_store_explicit(&s->seq, p->replayed.seq, memory_order_release);
    size_t spare = p->count;
    for (size_t i = s->keyspace_count; i-- > 1;)
        if (!manifest_tree_find(&s->state, s->keyspaces[i]->id)) {
            keyspace_retire(s->keyspaces[i], v->views[spare]);
            v->views[spare++] = NULL;
        }
    for (size_t i = 0; i < p->count; i++) {
        if (!keyspace_find(s, p->keyspaces[i]->id))
            keyspace_enlist(s, p->keyspaces[i]);
        view_publish(p->keyspaces[i], v->views[i]);
        v->views[i] = NULL;
    }
}

static tamiz_status picture_show(struct op *op, struct store *s, struct picture *p)
{
    struct showing v;
    tamiz_status st = showing_make(op, s, p, &v);
    TRY(st);
    TRY(keyspaces_reserve(op, s, s->keyspace_count + p->count));
    mutex_lock(&s->mutex);
    if (s->oldest_snapshot)
        st = refuse_snapshot(op, s);
    else
        show_all(s, p, &v);
    mutex_unlock(&s->mutex);
done:
    showing_free(s, &v);
    return st;
}

static tamiz_status follow(struct op *op, struct store *s)
{
    struct picture p = {.count = 0};
    mutex_lock(&s->install_mutex);
    tamiz_status st = picture_settle(op, s, &p);
    if (st == TAMIZ_OK)
        st = picture_show(op, s, &p);
    picture_free(op, s, &p);
    mutex_unlock(&s->install_mutex);
    return st;
}

tamiz_status follow_open(struct op *op, struct store *s)
{
    const tamiz_status st = follow(op, s);
    if (st == TAMIZ_NOT_FOUND)
        op_fail(op, TAMIZ_NOT_FOUND, "%s: no store here", s->directory);
    if (st == TAMIZ_OK && s->options.error_if_exists)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "%s: there is a store already (error_if_exists)",
                       s->directory);
    return st;
}

tamiz_status tamiz_refresh(tamiz *db)
{
    tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    struct store *s = db->store;
    if (!s->options.read_only)
        return TAMIZ_OK;
    struct op op;
    struct epoch_slot *slot = epoch_enter_at(&s->epoch, db->slots);
    epoch_stay_outside(slot);
    op_init(&op, &s->alloc, &slot->count);
    st = follow(&op, s);
    if (st == TAMIZ_NOT_FOUND)
        st = op_fail(&op, TAMIZ_IO_ERROR, "%s: the store is gone", s->directory);
    st = op_publish(&op, st);
    epoch_leave(slot);
    store_collect(s);
    return st;
}
