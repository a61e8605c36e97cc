/* SPDX-License-Identifier: MIT
 *
 * Files that are read now and then, of which only so many may be open at a time. A member is opened
 * when it is acquired and stays open until the room is needed by another; those in use are never
 * closed. Who finds all of them in use waits for one.
 */
#ifndef TAMIZ_ENV_FILE_POOL_H
#define TAMIZ_ENV_FILE_POOL_H

#include "env/env.h"
#include "env/thread.h"

/* Embedded in whatever owns the path; zeroed but for path and flags. Guarded by the pool's mutex.
 */
struct pooled_file {
    const char *path; /* borrowed from the owner */
    int flags;        /* TAMIZ_OPEN_… */
    struct file *file;
    uint32_t users;
    bool recent; /* used since the hand last came by */
    bool pinned; /* one of the users is file_pool_pin's */
    struct pooled_file *next, *previous;
};

struct file_pool {
    const tamiz_env *env;
    struct mutex mutex;
    struct condition freed;
    uint32_t open, limit;
    uint32_t pinned;
    struct pooled_file *hand; /* ring of open members; NULL: none */
};

tamiz_status file_pool_init(struct op *op, struct file_pool *pool, const tamiz_env *env,
                            uint32_t limit);
void file_pool_free(struct file_pool *pool); /* all members were forgotten */

/* *file is open until released. Any thread; the same member by several at once. */
tamiz_status file_pool_acquire(struct op *op, struct file_pool *pool, struct pooled_file *member,
                               struct file **file);
/* The same, but TAMIZ_BUSY (nothing recorded) where it would have to wait: for who holds others
 * already. */
tamiz_status file_pool_try_acquire(struct op *op, struct file_pool *pool,
                                   struct pooled_file *member, struct file **file);
void file_pool_release(struct file_pool *pool, struct pooled_file *member);
/* The member is opened and stays so until it is forgotten, whatever happens to its name. TAMIZ_BUSY
 * (nothing recorded) where three quarters of the room are taken by such members. */
tamiz_status file_pool_pin(struct op *op, struct file_pool *pool, struct pooled_file *member);
/* Closes the member for good; nobody uses it. */
void file_pool_forget(struct op *op, struct file_pool *pool, struct pooled_file *member);

#endif
