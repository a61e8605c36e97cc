/* SPDX-License-Identifier: MIT
 *
 * What leads to what on the simulated machine. A name has a node now and a node on the disk; a call
 * changes the first and notes the change, a sync of the directory brings its changes to the second.
 * A rename between two directories is one change: syncing either brings both halves.
 *
 * A node lives as long as something leads to it: a name now, a name on the disk, a change that is
 * not on the disk yet, an open file.
 */
#include <errno.h>
#include <string.h>

#include "env/sim.h"

/* ---- nodes ---- */

static void node_join(tamiz_env_sim *s, struct node *n)
{
    n->previous = NULL;
    n->next = s->nodes;
    if (s->nodes)
        s->nodes->previous = n;
    s->nodes = n;
}

static void node_leave(tamiz_env_sim *s, struct node *n)
{
    if (n->previous)
        n->previous->next = n->next;
    else
        s->nodes = n->next;
    if (n->next)
        n->next->previous = n->previous;
}

struct node *node_new(tamiz_env_sim *s, bool is_directory)
{
    struct node *n = mem_new_array(&alloc_libc, 1, sizeof *n);
    if (!n)
        return NULL;
    n->inode = ++s->last_inode;
    n->touched = ++s->last_touch;
    n->is_directory = is_directory;
    n->cache = n->disk = buf_init(&alloc_libc);
    n->changes_end = &n->changes;
    node_join(s, n);
    return n;
}

static void entry_free(struct entry *e)
{
    mem_free(&alloc_libc, e, sizeof *e);
}

/* With its entries, but nothing of what they lead to. */
static void node_free(tamiz_env_sim *s, struct node *n)
{
    while (n->entries) {
        struct entry *e = n->entries;
        n->entries = e->next;
        entry_free(e);
    }
    node_leave(s, n);
    node_free_bytes(n);
    mem_free(&alloc_libc, n, sizeof *n);
}

static bool is_present(const struct node *n)
{
    return n->links || n->opens;
}

static void let_go_of_entries(tamiz_env_sim *s, struct node *directory)
{
    for (struct entry *e = directory->entries; e; e = e->next) {
        struct node *now = e->now, *disk = e->disk;
        e->now = e->disk = NULL;
        if (now)
            now->links--;
        if (disk)
            disk->disk_links--;
        if (now)
            node_settle(s, now);
        if (disk && disk != now)
            node_settle(s, disk);
    }
}

void node_settle(tamiz_env_sim *s, struct node *n)
{
    if (is_present(n) || n->disk_links)
        return;
    let_go_of_entries(s, n);
    node_free(s, n);
}

/* The disk's limit counts what the program can still reach. */
static void link_now(tamiz_env_sim *s, struct entry *e, struct node *n)
{
    struct node *before = e->now;
    e->now = n;
    if (n) {
        n->links++;
        if (n->is_directory)
            n->parent = e->directory;
    }
    if (before) {
        before->links--;
        if (!is_present(before))
            s->disk_used -= node_charge(before);
        node_settle(s, before);
    }
}

static void link_disk(tamiz_env_sim *s, struct entry *e, struct node *n)
{
    struct node *before = e->disk;
    e->disk = n;
    if (n)
        n->disk_links++;
    if (before) {
        before->disk_links--;
        node_settle(s, before);
    }
}

/* ---- entries ---- */

static struct entry **entry_at(struct node *directory, const char *name)
{
    struct entry **at = &directory->entries;
    while (*at && strcmp((*at)->name, name) < 0)
        at = &(*at)->next;
    return at;
}

struct entry *entry_find(struct node *directory, const char *name)
{
    struct entry *e = *entry_at(directory, name);
    return e && strcmp(e->name, name) == 0 ? e : NULL;
}

struct entry *entry_get(struct node *directory, const char *name)
{
    struct entry **at = entry_at(directory, name);
    if (*at && strcmp((*at)->name, name) == 0)
        return *at;
    struct entry *e = mem_new_array(&alloc_libc, 1, sizeof *e);
    if (!e)
        return NULL;
    memcpy(e->name, name, strlen(name) + 1);
    e->directory = directory;
    e->next = *at;
    *at = e;
    return e;
}

void entry_settle(struct entry *e)
{
    if (!e || e->now || e->disk || e->pending)
        return;
    *entry_at(e->directory, e->name) = e->next;
    entry_free(e);
}

bool directory_is_empty(const struct node *directory)
{
    for (const struct entry *e = directory->entries; e; e = e->next)
        if (e->now)
            return false;
    return true;
}

/* ---- changes of entries ---- */

static void change_append(tamiz_env_sim *s, struct entry_change *c)
{
    c->previous = s->last_change;
    if (c->previous)
        c->previous->next = c;
    else
        s->changes = c;
    s->last_change = c;
}

static void change_unlink(tamiz_env_sim *s, struct entry_change *c)
{
    if (c->previous)
        c->previous->next = c->next;
    else
        s->changes = c->next;
    if (c->next)
        c->next->previous = c->previous;
    else
        s->last_change = c->previous;
}

/* Notes it where the machine can forget, else nothing is kept. NULL only where memory is out. */
static int change_note(tamiz_env_sim *s, struct entry *from, struct entry *to, struct node *node)
{
    if (!s->tracks)
        return 0;
    struct entry_change *c = mem_new_array(&alloc_libc, 1, sizeof *c);
    if (!c)
        return -ENOMEM;
    *c = (struct entry_change){.from = from, .to = to, .node = node};
    if (from) {
        from->pending++;
        from->directory->disk_links++;
    }
    if (to) {
        to->pending++;
        to->directory->disk_links++;
    }
    node->disk_links++;
    change_append(s, c);
    return 0;
}

static void change_apply(tamiz_env_sim *s, const struct entry_change *c)
{
    if (c->from && c->from->disk == c->node)
        link_disk(s, c->from, NULL);
    if (c->to)
        link_disk(s, c->to, c->node);
}

static void let_go(tamiz_env_sim *s, struct node *n)
{
    n->disk_links--;
    node_settle(s, n);
}

/* Its entries before their directories, which may go with the last of them. */
static void change_free(tamiz_env_sim *s, struct entry_change *c)
{
    struct node *from = c->from ? c->from->directory : NULL;
    struct node *to = c->to ? c->to->directory : NULL;
    if (from) {
        c->from->pending--;
        entry_settle(c->from);
    }
    if (to) {
        c->to->pending--;
        entry_settle(c->to);
    }
    let_go(s, c->node);
    if (from)
        let_go(s, from);
    if (to)
        let_go(s, to);
    mem_free(&alloc_libc, c, sizeof *c);
}

static bool change_is_in(const struct entry_change *c, const struct node *directory)
{
    return (c->from && c->from->directory == directory) || (c->to && c->to->directory == directory);
}

static bool touches_wanted(const struct entry_change *c)
{
    return (c->from && c->from->wanted) || (c->to && c->to->wanted);
}

/* Those in `directory`, and what came before them to the names that they touch: of a rename from
 * another directory, what happened to the name there. Backwards, so that one pass finds all. */
static void want_changes(tamiz_env_sim *s, const struct node *directory)
{
    for (struct entry_change *c = s->last_change; c; c = c->previous) {
        c->wanted = change_is_in(c, directory) || touches_wanted(c);
        if (c->wanted && c->from)
            c->from->wanted = true;
        if (c->wanted && c->to)
            c->to->wanted = true;
    }
}

static void sync_wanted(tamiz_env_sim *s)
{
    struct entry_change *next;
    for (struct entry_change *c = s->changes; c; c = next) {
        next = c->next;
        if (!c->wanted)
            continue;
        if (c->from)
            c->from->wanted = false;
        if (c->to)
            c->to->wanted = false;
        change_unlink(s, c);
        change_apply(s, c);
        change_free(s, c);
    }
}

void directory_sync(tamiz_env_sim *s, const struct node *directory)
{
    want_changes(s, directory);
    sync_wanted(s);
}

void tree_sync_all(tamiz_env_sim *s)
{
    for (struct entry_change *c = s->changes; c; c = c->next)
        c->wanted = true;
    sync_wanted(s);
}

int entry_move(tamiz_env_sim *s, struct entry *from, struct entry *to, struct node *node)
{
    const int error = change_note(s, from, to, node);
    if (!error && to)
        link_now(s, to, node);
    if (!error && from)
        link_now(s, from, NULL);
    entry_settle(from);
    entry_settle(to);
    return error;
}

struct node *tree_newest(tamiz_env_sim *s, const char *pattern)
{
    struct node *newest = NULL;
    for (struct node *d = s->nodes; d; d = d->next)
        for (const struct entry *e = d->entries; e; e = e->next)
            if (e->now && !e->now->is_directory && name_matches(pattern, e->name) &&
                (!newest || e->now->touched > newest->touched))
                newest = e->now;
    return newest;
}

/* ---- power cuts ---- */

/* A directory cannot have two names, so what happens to it survives up to some point only. */
static bool follows_dropped(const tamiz_env_sim *s, const struct entry_change *c)
{
    if (!c->node->is_directory)
        return false;
    for (const struct entry_change *e = s->changes; e != c; e = e->next)
        if (e->node == c->node && e->dropped)
            return true;
    return false;
}

static void entries_from_disk(tamiz_env_sim *s, struct node *directory)
{
    struct entry *next;
    for (struct entry *e = directory->entries; e; e = next) {
        next = e->next;
        if (e->now != e->disk)
            link_now(s, e, e->disk);
        else if (e->now && e->now->is_directory)
            e->now->parent = directory;
        entry_settle(e);
    }
}

/* Keeps a node in the list while its neighbours go. */
static void hold_all(tamiz_env_sim *s)
{
    for (struct node *n = s->nodes; n; n = n->next)
        n->disk_links++;
}

/* Going may take others along: again from the start until nothing goes. */
static void let_go_of_all(tamiz_env_sim *s)
{
    for (struct node *n = s->nodes; n; n = n->next)
        n->disk_links--;
    for (bool again = true; again;) {
        again = false;
        for (struct node *n = s->nodes; n && !again; n = n->next)
            if (!is_present(n) && !n->disk_links) {
                node_settle(s, n);
                again = true;
            }
    }
}

void tree_power_cut(tamiz_env_sim *s, bool (*survives)(uint64_t seed, uint64_t index),
                    uint64_t seed)
{
    uint64_t index = 0;
    for (struct entry_change *c = s->changes; c; c = c->next, index++)
        c->dropped = !survives || !survives(seed, index) || follows_dropped(s, c);
    hold_all(s);
    while (s->changes) {
        struct entry_change *c = s->changes;
        change_unlink(s, c);
        if (!c->dropped)
            change_apply(s, c);
        change_free(s, c);
    }
    for (struct node *n = s->nodes; n; n = n->next)
        entries_from_disk(s, n);
    let_go_of_all(s);
}

/* ---- whole trees ---- */

static bool copy_entries(struct node *to, const struct node *from)
{
    struct entry **end = &to->entries;
    for (struct entry *e = from->entries; e; e = e->next) {
        struct entry *copy = mem_new_array(&alloc_libc, 1, sizeof *copy);
        if (!copy)
            return false;
        *copy = *e;
        copy->next = NULL;
        copy->directory = to;
        copy->now = e->now ? e->now->copy : NULL;
        copy->disk = e->disk ? e->disk->copy : NULL;
        e->copy = copy;
        *end = copy;
        end = &copy->next;
    }
    return true;
}

static bool copy_node(tamiz_env_sim *to, struct node *from)
{
    struct node *n = node_new(to, from->is_directory);
    from->copy = n;
    if (!n)
        return false;
    n->inode = from->inode;
    n->touched = from->touched;
    n->links = from->links;
    n->disk_links = from->disk_links;
    return node_copy_bytes(n, from);
}

static bool copy_changes(tamiz_env_sim *to, const tamiz_env_sim *from)
{
    for (const struct entry_change *c = from->changes; c; c = c->next) {
        struct entry_change *copy = mem_new_array(&alloc_libc, 1, sizeof *copy);
        if (!copy)
            return false;
        *copy = (struct entry_change){.from = c->from ? c->from->copy : NULL,
                                      .to = c->to ? c->to->copy : NULL,
                                      .node = c->node->copy};
        change_append(to, copy);
    }
    return true;
}

/* `to` is empty, without even a root. Nodes first, in an order that keeps the list's. */
bool tree_copy(tamiz_env_sim *to, const tamiz_env_sim *from)
{
    struct node *last = from->nodes;
    while (last && last->next)
        last = last->next;
    for (struct node *n = last; n; n = n->previous)
        if (!copy_node(to, n))
            return false;
    for (struct node *n = from->nodes; n; n = n->next) {
        n->copy->parent = n->parent ? n->parent->copy : NULL;
        if (!copy_entries(n->copy, n))
            return false;
    }
    to->root = from->root->copy;
    to->last_inode = from->last_inode;
    to->last_touch = from->last_touch;
    if (!copy_changes(to, from))
        return false;
    hold_all(to);
    let_go_of_all(to); /* what only the original's open files led to */
    return true;
}

void tree_free(tamiz_env_sim *s)
{
    while (s->changes) {
        struct entry_change *c = s->changes;
        s->changes = c->next;
        mem_free(&alloc_libc, c, sizeof *c);
    }
    while (s->nodes)
        node_free(s, s->nodes);
}
