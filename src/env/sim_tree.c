/* SPDX-License-Identifier: MIT
 *
 * Paths of the simulated machine, and the calls that change names: the same answers as a real file
 * system's, down to which of two errors it is.
 */
#include <errno.h>
#include <string.h>

#include "env/sim.h"

/* ---- paths ---- */

static bool ends_here(const char *path)
{
    while (*path == '/')
        path++;
    return *path == 0;
}

const char *path_last(const char *path)
{
    const char *last = path;
    for (; *path; path++)
        if (*path == '/' && !ends_here(path))
            last = path + 1;
    return last;
}

static int next_name(const char **path, char *name)
{
    size_t size = 0;
    while (**path == '/')
        ++*path;
    while ((*path)[size] && (*path)[size] != '/')
        size++;
    if (size >= NAME_BYTES)
        return -ENAMETOOLONG;
    memcpy(name, *path, size);
    name[size] = 0;
    *path += size;
    while (**path == '/')
        ++*path;
    return 0;
}

static struct node *step(struct node *directory, const char *name)
{
    if (name[0] == 0 || strcmp(name, ".") == 0)
        return directory;
    if (strcmp(name, "..") == 0)
        return directory->parent ? directory->parent : directory;
    const struct entry *e = entry_find(directory, name);
    return e ? e->now : NULL;
}

int tree_find(tamiz_env_sim *s, const char *path, struct place *place)
{
    struct node *at = s->root;
    if (!*path)
        return -ENOENT;
    for (;;) {
        const int error = next_name(&path, place->name);
        if (error)
            return error;
        if (!at->is_directory)
            return -ENOTDIR;
        place->directory = at;
        place->node = step(at, place->name);
        if (!*path)
            return 0;
        if (!place->node)
            return -ENOENT;
        at = place->node;
    }
}

int tree_find_there(tamiz_env_sim *s, const char *path, struct place *place)
{
    const int error = tree_find(s, path, place);
    return error ? error : place->node ? 0 : -ENOENT;
}

static bool has_name(const struct place *p)
{
    return p->name[0] && strcmp(p->name, ".") != 0 && strcmp(p->name, "..") != 0;
}

/* ---- changing the tree ---- */

int tree_create(tamiz_env_sim *s, struct place *place, bool is_directory)
{
    if (place->node)
        return -EEXIST;
    struct entry *e = entry_get(place->directory, place->name);
    struct node *n = e ? node_new(s, is_directory) : NULL;
    const int error = n ? entry_move(s, NULL, e, n) : -ENOMEM;
    if (!n)
        entry_settle(e);
    else if (error)
        node_settle(s, n);
    else
        place->node = n;
    return error;
}

int tree_remove(tamiz_env_sim *s, const char *path, bool is_directory)
{
    struct place place;
    const int error = tree_find_there(s, path, &place);
    if (error)
        return error;
    if (place.node->is_directory != is_directory)
        return is_directory ? -ENOTDIR : -EISDIR;
    if (!has_name(&place))
        return -EINVAL;
    if (!directory_is_empty(place.node))
        return -ENOTEMPTY;
    return entry_move(s, entry_find(place.directory, place.name), NULL, place.node);
}

static bool is_inside(const struct node *node, const struct node *directory)
{
    for (; node; node = node->parent)
        if (node == directory)
            return true;
    return false;
}

/* Whether what is at `from` may take the place of what is at `to`. */
static int may_replace(const struct place *from, const struct place *to)
{
    if (!has_name(from) || !has_name(to))
        return -EINVAL;
    if (from->node->is_directory && is_inside(to->directory, from->node))
        return -EINVAL;
    if (!to->node || to->node == from->node)
        return 0;
    if (to->node->is_directory && is_inside(from->directory, to->node))
        return -ENOTEMPTY;
    if (from->node->is_directory && !to->node->is_directory)
        return -ENOTDIR;
    if (!from->node->is_directory && to->node->is_directory)
        return -EISDIR;
    return directory_is_empty(to->node) ? 0 : -ENOTEMPTY;
}

int tree_rename(tamiz_env_sim *s, const char *from_path, const char *to_path)
{
    struct place from, to;
    int error = tree_find(s, from_path, &from);
    if (!error)
        error = tree_find(s, to_path, &to);
    if (!error && !from.node)
        error = -ENOENT;
    if (!error)
        error = may_replace(&from, &to);
    if (error || from.node == to.node)
        return error;
    struct entry *e = entry_get(to.directory, to.name);
    return e ? entry_move(s, entry_find(from.directory, from.name), e, from.node) : -ENOMEM;
}

int tree_link(tamiz_env_sim *s, const char *from_path, const char *to_path)
{
    struct place from, to;
    int error = tree_find_there(s, from_path, &from);
    if (!error)
        error = tree_find(s, to_path, &to);
    if (error)
        return error;
    if (to.node)
        return -EEXIST;
    if (from.node->is_directory)
        return -EPERM;
    struct entry *e = entry_get(to.directory, to.name);
    return e ? entry_move(s, NULL, e, from.node) : -ENOMEM;
}

int tree_sync(tamiz_env_sim *s, const char *path)
{
    struct place place;
    const int error = tree_find_there(s, path, &place);
    if (error)
        return error;
    if (!place.node->is_directory)
        return -ENOTDIR;
    directory_sync(s, place.node);
    return 0;
}
