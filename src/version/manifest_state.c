/* SPDX-License-Identifier: MIT
 *
 * The picture that a manifest draws, in memory: numbers, and a tree of tables for each keyspace.
 */
#include "version/manifest.h"

static bool trees_reserve(const struct alloc *alloc, struct manifest_state *state, size_t room)
{
    if (room <= state->tree_room)
        return true;
    struct manifest_tree *grown =
        mem_resize(alloc, state->trees, state->tree_room * sizeof *grown, room * sizeof *grown);
    if (!grown)
        return false;
    state->trees = grown;
    state->tree_room = room;
    return true;
}

/* A name as text of its own; *text NULL: memory is out. */
static bool copy_name(const struct alloc *alloc, struct slice name, char **text)
{
    char words[KEYSPACE_NAME_MAX + 1];
    memcpy(words, name.data, name.size);
    words[name.size] = 0;
    *text = mem_text(alloc, words);
    return *text != NULL;
}

tamiz_status manifest_state_init(struct op *op, const struct alloc *alloc,
                                 struct manifest_state *state)
{
    const struct version_edit nothing = {.removed_count = 0};
    struct manifest_tree first = {.id = 0};
    *state = (struct manifest_state){.next_file = 1, .next_run = 1};
    const tamiz_status st = version_apply(op, alloc, NULL, &nothing, &first.version);
    if (st < 0 || !trees_reserve(alloc, state, 1)) {
        version_unref(first.version);
        *state = (struct manifest_state){.next_file = 0};
        return st < 0 ? st : op_fail_memory(op);
    }
    state->trees[state->tree_count++] = first;
    return TAMIZ_OK;
}

tamiz_status manifest_state_copy(struct op *op, const struct alloc *alloc,
                                 const struct manifest_state *state, struct manifest_state *copy)
{
    *copy = *state;
    copy->trees = NULL;
    copy->tree_count = copy->tree_room = 0;
    bool done = trees_reserve(alloc, copy, state->tree_count);
    for (size_t i = 0; done && i < state->tree_count; i++) {
        struct manifest_tree tree = state->trees[i];
        if (tree.name)
            done = copy_name(alloc, slice_of_text(tree.name), &tree.name);
        if (done) {
            version_ref(tree.version);
            copy->trees[copy->tree_count++] = tree;
        }
    }
    if (done)
        return TAMIZ_OK;
    manifest_state_free(alloc, copy);
    return op_fail_memory(op);
}

void manifest_tree_free(const struct alloc *alloc, struct manifest_tree *tree)
{
    version_unref(tree->version);
    mem_free_text(alloc, tree->name);
    *tree = (struct manifest_tree){.id = 0};
}

void manifest_state_free(const struct alloc *alloc, struct manifest_state *state)
{
    for (size_t i = 0; i < state->tree_count; i++)
        manifest_tree_free(alloc, &state->trees[i]);
    if (state->tree_room)
        mem_free(alloc, state->trees, state->tree_room * sizeof *state->trees);
    *state = (struct manifest_state){.next_file = 0};
}

struct manifest_tree *manifest_tree_find(const struct manifest_state *state, uint64_t id)
{
    size_t low = 0, high = state->tree_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (state->trees[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < state->tree_count && state->trees[low].id == id ? &state->trees[low] : NULL;
}

tamiz_status manifest_check_empty_log(struct op *op, const struct manifest_state *state,
                                      uint64_t number, const char *path)
{
    for (size_t i = 0; i < state->tree_count; i++)
        if (manifest_tree_log(state, &state->trees[i]) == number)
            return op_fail(op, TAMIZ_CORRUPTION,
                           "%s: expected the header that it had when MANIFEST-%06llu named it, "
                           "found none",
                           path, (unsigned long long)state->manifest_number);
    return TAMIZ_OK;
}

tamiz_status manifest_tree_add(struct op *op, const struct alloc *alloc,
                               struct manifest_state *state, uint64_t id, struct slice name)
{
    const struct version_edit nothing = {.removed_count = 0};
    struct manifest_tree tree = {.id = id};
    tamiz_status st = version_apply(op, alloc, NULL, &nothing, &tree.version);
    if (st == TAMIZ_OK &&
        !(copy_name(alloc, name, &tree.name) && trees_reserve(alloc, state, state->tree_count + 1)))
        st = op_fail_memory(op);
    if (st == TAMIZ_OK)
        state->trees[state->tree_count++] = tree;
    else
        manifest_tree_free(alloc, &tree);
    return st;
}

struct manifest_tree manifest_tree_take(struct manifest_state *state, uint64_t id)
{
    struct manifest_tree *at = manifest_tree_find(state, id), taken = *at;
    state->tree_count--;
    memmove(at, at + 1, (size_t)(state->trees + state->tree_count - at) * sizeof *at);
    return taken;
}

void manifest_tree_put_back(struct manifest_state *state, struct manifest_tree tree)
{
    size_t at = state->tree_count;
    for (; state->trees[at - 1].id > tree.id; at--)
        state->trees[at] = state->trees[at - 1];
    state->trees[at] = tree;
    state->tree_count++;
}
