/* SPDX-License-Identifier: MIT */
#include "db/salvage_tree.h"

#include <stdio.h>

#include "db/salvage.h"
#include "mem/memtable.h"

size_t salvage_tree_tables(const struct salvage_tree *tree)
{
    return tree->opened.size / sizeof(struct table *);
}

struct table *salvage_tree_table(const struct salvage_tree *tree, size_t i)
{
    struct table *t;
    memcpy(&t, tree->opened.data + i * sizeof(struct table *), sizeof(struct table *));
    return t;
}

struct salvage_tree *salvage_tree_find(const struct salvage *r, uint64_t id)
{
    for (size_t i = 0; i < r->tree_count; i++)
        if (r->trees[i].id == id)
            return &r->trees[i];
    return NULL;
}

static bool trees_reserve(struct salvage *r)
{
    if (r->tree_count < r->tree_room)
        return true;
    const size_t room = r->tree_room ? 2 * r->tree_room : 8;
    struct salvage_tree *grown =
        mem_resize(&r->s->alloc, r->trees, r->tree_room * sizeof *grown, room * sizeof *grown);
    if (!grown)
        return false;
    r->trees = grown;
    r->tree_room = room;
    return true;
}

/* Its name, where somebody says it and nobody did before. */
static tamiz_status tree_call(struct salvage *r, struct salvage_tree *tree, struct slice name)
{
    char words[KEYSPACE_NAME_MAX + 1];
    if (tree->name || !keyspace_name_is_proper(name))
        return TAMIZ_OK;
    memcpy(words, name.data, name.size);
    words[name.size] = 0;
    tree->name = mem_text(&r->s->alloc, words);
    return tree->name ? TAMIZ_OK : op_fail_memory(r->op);
}

struct salvage_tree *salvage_tree_meet(struct salvage *r, uint64_t id, struct slice name)
{
    struct store *s = r->s;
    struct salvage_tree *known = salvage_tree_find(r, id);
    if (known)
        return tree_call(r, known, name) == TAMIZ_OK ? known : NULL;
    struct salvage_tree tree = {.id = id,
                                .memtable = memtable_new(&s->alloc, (size_t)s->options.memtable),
                                .opened = buf_init(&s->alloc)};
    if (!tree.memtable || tree_call(r, &tree, name) != TAMIZ_OK || !trees_reserve(r)) {
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

static bool name_is_taken(const struct salvage *r, const char *name, size_t above)
{
    for (size_t i = above + 1; i < r->tree_count; i++)
        if (strcmp(r->trees[i].name, name) == 0)
            return true;
    return strcmp(name, "default") == 0;
}

/* "keyspace-7", or with as many strokes behind as make it the only one. */
static tamiz_status name_make_up(struct salvage *r, size_t at)
{
    struct salvage_tree *tree = &r->trees[at];
    char name[KEYSPACE_NAME_MAX + 1], words[KEYSPACE_NAME_MAX + 100];
    size_t size =
        (size_t)snprintf(name, sizeof name, "keyspace-%llu", (unsigned long long)tree->id);
    bool taken = true;
    while (taken) {
        taken = name_is_taken(r, name, at);
        for (size_t i = 1; i < at; i++)
            taken |= r->trees[i].name && strcmp(r->trees[i].name, name) == 0;
        if (taken && size + 1 < sizeof name) {
            name[size++] = '-';
            name[size] = 0;
        }
    }
    (void)snprintf(words, sizeof words,
                   "keyspace %llu: its name is not known: it is %s from now on",
                   (unsigned long long)tree->id, name);
    salvage_find(r, 0, words);
    mem_free_text(&r->s->alloc, tree->name);
    tree->name = mem_text(&r->s->alloc, name);
    return tree->name ? TAMIZ_OK : op_fail_memory(r->op);
}

tamiz_status salvage_trees_name(struct salvage *r)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t i = r->tree_count; st == TAMIZ_OK && i-- > 1;)
        if (!r->trees[i].name || name_is_taken(r, r->trees[i].name, i))
            st = name_make_up(r, i);
    return st;
}

static void tree_free(const struct alloc *alloc, struct salvage_tree *tree)
{
    for (size_t i = 0; i < salvage_tree_tables(tree); i++)
        table_free(salvage_tree_table(tree, i));
    memtable_free(tree->memtable);
    mem_free_text(alloc, tree->name);
    buf_free(&tree->opened);
}

void salvage_trees_free(struct salvage *r)
{
    for (size_t i = 0; i < r->tree_count; i++)
        tree_free(&r->s->alloc, &r->trees[i]);
    mem_free(&r->s->alloc, r->trees, r->tree_room * sizeof *r->trees);
}
