/* SPDX-License-Identifier: MIT
 *
 * The manifest: edits, logged, from which the tables in force are rebuilt. CURRENT names the
 * manifest; a new one is written whole, synced, and CURRENT replaced in one atomic rename, so that
 * a crash at any moment leaves the old store or the new one. A failed append is never followed by
 * another to the same file: the next edit goes to a new manifest. docs/format/manifest.md
 *
 * An edit is one record: a list of fields, each a varint tag and its content. All of an edit
 * happens or none of it.
 *
 *     1 next file         varint
 *     2 log number        varint: logs below it are not needed
 *     3 last sequence     varint
 *     4 next run          varint
 *     5 removed table     keyspace varint, number varint
 *     6 added table       keyspace varint, number varint, file id u64, then varints: file size,
 *                         level, run, entries, keys, tombstones, seq min, seq max, filter bytes,
 *                         range deletes;
 *                         smallest block, largest block
 *     7 keyspace          id varint, name block
 *     8 keyspace dropped  id varint
 *     9 next keyspace     varint
 *    10 log of keyspace   id varint, log number varint: what logs below it have of this keyspace is
 *                         in its tables; at least field 2
 *
 * An unknown tag is TAMIZ_NOT_SUPPORTED: a newer library wrote it. The first record of a manifest
 * is a whole picture (a snapshot edit): it has fields 1 to 4 and removes nothing.
 */
#ifndef TAMIZ_VERSION_MANIFEST_H
#define TAMIZ_VERSION_MANIFEST_H

#include "log/log.h"
#include "version/filename.h"
#include "version/version.h"

/* A keyspace: an id that is never used again, and its tables. */
struct manifest_tree {
    uint64_t id; /* 0: the default one, always there */
    char *name;  /* owned, mem_text; NULL: of the default one */
    /* What logs below it have of this keyspace is in its tables. Where that is less than the
     * store's log_number, the store's counts. */
    uint64_t log_number;
    struct version *version; /* owned reference */
};

/* What a manifest says, all edits applied: everything that must survive. */
struct manifest_state {
    uint64_t next_file;  /* above every file number ever used            */
    uint64_t log_number; /* logs below it are not needed                 */
    uint64_t last_seq;   /* at least the highest in any table            */
    uint64_t next_run;
    uint64_t next_keyspace;      /* above every id ever used; 0: never handed one out */
    uint64_t manifest_number;    /* of the manifest in force; 0: none yet */
    struct manifest_tree *trees; /* owned, ids ascending; [0] is the default keyspace */
    size_t tree_count, tree_room;
};

/* The state of a store with nothing in it. */
tamiz_status manifest_state_init(struct op *op, const struct alloc *alloc,
                                 struct manifest_state *state);
/* A copy of its own of everything, versions shared. *copy is empty on failure. */
tamiz_status manifest_state_copy(struct op *op, const struct alloc *alloc,
                                 const struct manifest_state *state, struct manifest_state *copy);
/* Leaves it empty; safe on an empty one. */
void manifest_state_free(const struct alloc *alloc, struct manifest_state *state);
/* By id; NULL: there is none. */
struct manifest_tree *manifest_tree_find(const struct manifest_state *state, uint64_t id);
/* A log without a header was being made when the machine stopped; TAMIZ_CORRUPTION: not so one at
 * which the replay of a keyspace begins, for its header was on the disk before an edit said so. */
tamiz_status manifest_check_empty_log(struct op *op, const struct manifest_state *state,
                                      uint64_t number, const char *path);
/* A new tree at the end, for `id` above all others; `name` is copied. The state is as it was on
 * failure. */
tamiz_status manifest_tree_add(struct op *op, const struct alloc *alloc,
                               struct manifest_state *state, uint64_t id, struct slice name);
/* Takes a tree out, not the default one; its contents are now the caller's. */
struct manifest_tree manifest_tree_take(struct manifest_state *state, uint64_t id);
/* Undoes that: nothing was added since. */
void manifest_tree_put_back(struct manifest_state *state, struct manifest_tree tree);
void manifest_tree_free(const struct alloc *alloc, struct manifest_tree *tree);
/* Where the replay of a keyspace's writes begins. */
static inline uint64_t manifest_tree_log(const struct manifest_state *state,
                                         const struct manifest_tree *tree)
{
    return tree->log_number > state->log_number ? tree->log_number : state->log_number;
}

/* A keyspace made (with its name) or dropped. */
struct manifest_keyspace {
    uint64_t id;
    struct slice name;
    bool dropped;
};

/* What an edit changes in one keyspace. */
struct tree_edit {
    uint64_t keyspace;
    uint64_t log_number; /* 0: as it was */
    struct version_edit tables;
};

struct manifest_edit {
    bool has_next_file, has_log_number, has_last_seq, has_next_run, has_next_keyspace;
    uint64_t next_file, log_number, last_seq, next_run, next_keyspace;
    const struct tree_edit *trees; /* each keyspace once */
    size_t tree_count;
    const struct manifest_keyspace *keyspaces; /* made before tables come, dropped after */
    size_t keyspace_count;
};

/* Appends the fields that are set, in ascending order of their tags; none: nothing. */
void manifest_edit_encode(struct buf *out, const struct manifest_edit *edit);

/* A decoded edit owns its lists; names of keyspaces are borrowed from the body. */
struct manifest_decoded {
    struct manifest_edit edit; /* trees by id, ascending */
    struct buf removed;        /* struct of_keyspace while it is decoded, then u64 numbers */
    struct buf added;          /* struct table_meta * */
    struct buf logs;           /* struct of_keyspace */
    struct buf trees;          /* struct tree_edit */
    struct buf keyspaces;      /* struct manifest_keyspace */
    const struct alloc *alloc;
};
/* Every field checked: key sizes, levels, numbers, order of smallest and largest. TAMIZ_CORRUPTION
 * or TAMIZ_NOT_SUPPORTED, with words that lack file and offset (log_tell_where adds them). *d is
 * empty on failure. */
tamiz_status manifest_edit_decode(struct op *op, const struct alloc *alloc, struct slice body,
                                  struct manifest_decoded *d);
void manifest_decoded_free(struct manifest_decoded *d);

/* Attaches a table handle to every meta of a version that has none. Reads no file. */
tamiz_status version_attach(struct op *op, struct version *v, const struct table_world *world,
                            const char *directory);
/* That every table of a version is there and has its size: TAMIZ_CORRUPTION names the first that
 * is not. One call of the file system a table. */
tamiz_status version_check_files(struct op *op, const struct version *v, const tamiz_env *env,
                                 const char *directory);

/* The number of the manifest that CURRENT names: exactly a manifest's name and a newline, else
 * TAMIZ_CORRUPTION. A missing CURRENT is TAMIZ_IO_ERROR with ENOENT. */
tamiz_status manifest_current(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                              const char *directory, uint64_t *number);

/*
 * Reads CURRENT and the manifest it names; changes nothing. The versions have no handles attached;
 * the state is the caller's to free, here and on TAMIZ_NOT_FOUND; state->next_file is above every
 * number that a file in the directory has, whatever the manifest says.
 *
 * TAMIZ_NOT_FOUND: there is no store here, *state is that of an empty one. That is where CURRENT is
 * missing, and no table and no log with a record is there either: what a crash during the very
 * first creation can leave. CURRENT missing beside those, empty, malformed, or naming a manifest
 * that is missing: TAMIZ_CORRUPTION. A torn last record of the manifest is ignored (its edit was
 * never acknowledged); an edit that makes no sense after the ones before is TAMIZ_CORRUPTION, with
 * manifest and offset. On failure *state is empty.
 */
tamiz_status manifest_recover(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                              const char *directory, struct manifest_state *state);

/* The open manifest. Guarded by whoever installs versions. */
struct manifest {
    const tamiz_env *env;
    const struct alloc *alloc;
    char *directory;
    uint64_t number;       /* of the manifest in force, as far as this one wrote it; else 0 */
    uint64_t number_floor; /* numbers below it were tried already */
    struct log_writer log; /* broken, or closed: the next write makes a new manifest */
    uint64_t snapshot_bytes;
    bool open;
    /* A write failed and left open which picture is in force: until the next success no file that
     * either picture, the one before the edit or the one after, names may be deleted, nor any
     * manifest. */
    bool unsettled;
};

tamiz_status manifest_init(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                           const char *directory, struct manifest *m);
/*
 * Makes `edit` durable. `state` is the whole picture *after* it, made by the caller (version_apply
 * and the counters). Appended and synced to the open manifest; or, where there is none, it is
 * broken, or it has grown beyond 1 MiB and twice its snapshot: `state` goes to a new manifest,
 * whose number is state->next_file (which is then counted up, also on failure), and CURRENT is
 * switched. state->manifest_number is set to the manifest in force.
 *
 * On failure the edit may or may not be durable: m->unsettled, and the next write makes a new
 * manifest, which settles it. Where it is certain that nothing changed, m->unsettled stays as it
 * was.
 */
tamiz_status manifest_write(struct op *op, struct manifest *m, const struct manifest_edit *edit,
                            struct manifest_state *state);
/* Seals what is open, so that damage to it is noticed; all edits are durable already, so that a
 * failure here costs nothing and is not told. Safe on a zeroed manifest. */
void manifest_close(struct op *op, struct manifest *m);

#endif
