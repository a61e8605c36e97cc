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
 *     1 next file      varint                5 removed table   keyspace varint, number varint
 *     2 log number     varint                6 added table     keyspace varint, number, file id
 * u64, file size, level, run, entries, keys, 3 last sequence  varint tombstones, seq min, seq max,
 * filter bytes: varints; smallest block, largest block 4 next run       varint                7
 * keyspace        id varint, name block; 8 keyspace dropped  id varint; 9 next keyspace varint
 *
 * An unknown tag is TAMIZ_NOT_SUPPORTED: a newer library wrote it. The first record of a manifest
 * is a whole picture (a snapshot edit).
 */
#ifndef TAMIZ_VERSION_MANIFEST_H
#define TAMIZ_VERSION_MANIFEST_H

#include "log/log.h"
#include "version/filename.h"
#include "version/version.h"

/* What a manifest says, all edits applied: everything that must survive. */
struct manifest_state {
    uint64_t next_file;  /* above every file number ever used            */
    uint64_t log_number; /* logs below it are not needed                 */
    uint64_t last_seq;   /* at least the highest in any table            */
    uint64_t next_run;
    uint64_t manifest_number;
    struct version *version; /* owned reference */
};

struct manifest_edit {
    bool has_next_file, has_log_number, has_last_seq, has_next_run;
    uint64_t next_file, log_number, last_seq, next_run;
    struct version_edit tables;
};

void manifest_edit_encode(struct buf *out, const struct manifest_edit *edit);

/* A decoded edit owns its lists. */
struct manifest_decoded {
    struct manifest_edit edit;
    struct buf removed; /* u64 numbers */
    struct buf added;   /* struct table_meta * */
    const struct alloc *alloc;
};
/* Every field checked: key sizes, levels, numbers, order of smallest and largest. TAMIZ_CORRUPTION
 * or TAMIZ_NOT_SUPPORTED with words. */
tamiz_status manifest_edit_decode(struct op *op, const struct alloc *alloc, struct slice body,
                                  struct manifest_decoded *d);
void manifest_decoded_free(struct manifest_decoded *d);

/* Attaches a table handle to every meta of a version that has none. */
tamiz_status version_attach(struct op *op, struct version *v, const struct table_world *world,
                            const char *directory);

/*
 * Reads CURRENT and the manifest it names. TAMIZ_NOT_FOUND: there is no store here: no CURRENT and
 * no file of a store. CURRENT missing beside tables, logs or manifests, naming a missing manifest,
 * or empty: TAMIZ_CORRUPTION, and nothing was changed. A torn last record of the manifest is
 * ignored (its edit was never acknowledged). state->version has no handles attached.
 */
tamiz_status manifest_recover(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                              const char *directory, struct manifest_state *state);

/* The open manifest. Guarded by whoever installs versions. */
struct manifest {
    const tamiz_env *env;
    const struct alloc *alloc;
    char *directory;
    uint64_t number;
    struct log_writer log; /* broken, or closed: the next write makes a new manifest */
    uint64_t snapshot_bytes;
    bool open;
};

tamiz_status manifest_init(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                           const char *directory, struct manifest *m);
/*
 * Makes `edit` durable: appended and synced to the open manifest, or, where there is none, it is
 * broken, or it has grown beyond 1 MiB and twice its snapshot, a new manifest with number
 * state->next_file (which is then counted up) holding the whole of `state` as it is *after* the
 * edit, and the switch of CURRENT. On failure the edit may or may not be durable: files named by
 * either picture must stay; the next write makes a new manifest, which settles it.
 */
tamiz_status manifest_write(struct op *op, struct manifest *m, const struct manifest_edit *edit,
                            struct manifest_state *state);
void manifest_close(struct op *op, struct manifest *m);

#endif
