/* SPDX-License-Identifier: MIT
 *
 * An openable copy of a store as it is at one moment, made beside its writers. Tables are immutable
 * and keep their files as long as a version that has them is held, so that they are linked or
 * copied without haste; of the logs only what is there at that moment is wanted, and it is copied
 * from files opened then, whose names may be gone by the time.
 *
 * Built in PATH.partial, CURRENT last, and renamed to PATH when all of it is on the disk: a crash
 * leaves either nothing at PATH or the whole copy. What such a crash leaves at PATH.partial is
 * removed by the next attempt, which knows by the lock in it whether somebody is still at work.
 */
#ifndef TAMIZ_DB_CHECKPOINT_H
#define TAMIZ_DB_CHECKPOINT_H

#include "db/view.h"

struct copy_plan {
    const char *path;     /* where it is to stand: nothing there yet */
    const char *previous; /* a directory whose table files are linked where they are the same ones;
                             NULL: none */
    bool own_files;       /* never a link into the store itself; what is copied is verified */
};

struct copy_done {
    uint64_t tables_linked, tables_copied, bytes_linked, bytes_copied, log_bytes;
};

/* `path` absolute and without slashes at its end, so that ".partial" goes behind its last name.
 * Owned: mem_free_text. */
tamiz_status checkpoint_path(struct op *op, const struct store *s, const char *path, char **taken);

tamiz_status checkpoint_make(struct op *op, struct tamiz *db, const struct copy_plan *plan,
                             struct copy_done *done);

#endif
