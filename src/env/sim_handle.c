/* SPDX-License-Identifier: MIT
 *
 * Open files and locks of the simulated machine. One that was opened by a program that has crashed
 * since is dead: everything on it fails with EIO, and closing it only frees it.
 */
#include <errno.h>
#include <string.h>

#include "env/sim.h"

struct handle *handle_new(const char *path, int flags)
{
    struct handle *h = mem_new_array(&alloc_libc, 1, sizeof *h);
    if (!h)
        return NULL;
    const char *name = path_last(path);
    const size_t size = strcspn(name, "/");
    memcpy(h->name, name, size < NAME_BYTES ? size : NAME_BYTES - 1);
    h->flags = flags;
    return h;
}

void handle_free(struct handle *h)
{
    mem_free(&alloc_libc, h, sizeof *h);
}

bool handle_lives(const tamiz_env_sim *s, const struct handle *h)
{
    return h->generation == s->generation;
}

int handle_take(tamiz_env_sim *s, struct handle *h, struct node *node)
{
    if (node->is_directory)
        return -EISDIR;
    if (s->files_open >= s->files_limit)
        return -EMFILE;
    s->files_open++;
    node->opens++;
    h->node = node;
    h->generation = s->generation;
    return 0;
}

void handle_drop(tamiz_env_sim *s, struct handle *h)
{
    if (!handle_lives(s, h))
        return;
    struct node *n = h->node;
    h->generation = 0;
    s->files_open--;
    n->opens--;
    if (!n->opens && !n->links)
        s->disk_used -= node_charge(n);
    node_settle(s, n);
}

int call_begin_on(tamiz_env_sim *s, struct call *call, tamiz_sim_call kind, const struct handle *h)
{
    *call = (struct call){.kind = kind, .name = h->name};
    const int error = call_begin(s, call);
    return error || handle_lives(s, h) ? error : -EIO;
}

int call_begin_at(tamiz_env_sim *s, struct call *call, tamiz_sim_call kind, const char *path)
{
    *call = (struct call){.kind = kind, .name = path_last(path)};
    return call_begin(s, call);
}
