/* SPDX-License-Identifier: MIT
 *
 * The keyspaces of a store that may be damaged, as they are met: in the manifest, in what tables
 * say of themselves, in the writes of logs.
 */
#ifndef TAMIZ_DB_SALVAGE_TREE_H
#define TAMIZ_DB_SALVAGE_TREE_H

#include "db/store.h"

struct salvage;

/* One keyspace: what there is of it. */
struct salvage_tree {
    uint64_t id;
    char *name;                /* owned; NULL: of the default one, or not known yet */
    struct memtable *memtable; /* owned: what the logs hold */
    struct buf opened;         /* struct table *, owned: each has at least a block to look for */
};

/* NULL: not met. */
struct salvage_tree *salvage_tree_find(const struct salvage *r, uint64_t id);
/* The keyspace, met before or not. `name` empty: not known. NULL: memory is out, recorded. Valid
 * until the next one is met. */
struct salvage_tree *salvage_tree_meet(struct salvage *r, uint64_t id, struct slice name);

/* Its tables; borrowed. */
size_t salvage_tree_tables(const struct salvage_tree *tree);
struct table *salvage_tree_table(const struct salvage_tree *tree, size_t i);

/* All have a name and each another one. Of two that say the same the older one was dropped, and its
 * files were about to go. */
tamiz_status salvage_trees_name(struct salvage *r);
void salvage_trees_free(struct salvage *r);

#endif
