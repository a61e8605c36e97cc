/* SPDX-License-Identifier: MIT
 *
 * Keyspaces as handles: made, listed, retired. A handle lives as long as its store, also after its
 * keyspace was dropped, so that a pointer to one is always good.
 */
#ifndef TAMIZ_DB_KEYSPACE_H
#define TAMIZ_DB_KEYSPACE_H

#include "db/view.h"

/* A handle with nothing in it yet: no view. `options` are whole and checked; `name` NULL: the
 * default keyspace, whose id is 0. NULL: memory is out, recorded. */
struct tamiz *keyspace_new(struct op *op, struct store *s, uint64_t id, const char *name,
                           const tamiz_options *options);
/* With whatever it has; nobody uses it any more. */
void keyspace_free(struct tamiz *db);

/* Room in the list of those that can be used. install_mutex held, or nobody else there yet. */
tamiz_status keyspaces_reserve(struct op *op, struct store *s, size_t count);
/* Into that list, where room is reserved; its id is above all others. mutex held, or nobody else
 * there yet. */
void keyspace_enlist(struct store *s, struct tamiz *db);
/* Those of a keyspace that nobody gave any: the store's. A compaction filter is of the keyspace
 * that it was given for and of no other: it may delete what it does not know. */
tamiz_options keyspace_options_default(const struct store *s);
/* Handles, with such options, for all trees that have none, as a store that is being opened
 * makes them. */
tamiz_status keyspaces_meet(struct op *op, struct store *s, const struct manifest_state *state);
/* Out of the list, for good: what calls it from now on is told TAMIZ_CLOSED, and `nothing`, an
 * empty view whose reference passes over, takes the place of what it had. mutex held. */
void keyspace_retire(struct tamiz *db, struct view *nothing);

/* By id, among those that can be used; NULL: none. mutex held, or who changes the list. */
struct tamiz *keyspace_find(const struct store *s, uint64_t id);
/* Those that can be used, as struct tamiz * appended to `out`. No lock held. */
tamiz_status keyspaces_list(struct op *op, struct store *s, struct buf *out);

#endif
