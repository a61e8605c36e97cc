/* SPDX-License-Identifier: MIT
 *
 * The outside world, as the rest of the store calls it: the embedder's table of functions
 * (tamiz/env.h) wrapped so that every call is counted by purpose where it is made, and every
 * refusal becomes a status with the path in it.
 */
#ifndef TAMIZ_ENV_ENV_H
#define TAMIZ_ENV_ENV_H

#include "base/buf.h"
#include "base/op.h"
#include "tamiz/env.h"

enum { DIRECT_ALIGN = 4096 };

struct file;

/* Every function that must be there is, and within struct_size. */
bool env_is_complete(const tamiz_env *env);
/* Whether an optional one is: beyond struct_size it is NULL, whatever stands there. */
#define ENV_HAS(env, function)                                                                     \
    ((env)->ops->struct_size >= offsetof(tamiz_env_ops, function) + sizeof(env)->ops->function &&  \
     (env)->ops->function)

/* At a named point, with no lock held: see tamiz_env_ops. */
static inline void env_point(const tamiz_env *env, const char *name)
{
    if (ENV_HAS(env, point))
        env->ops->point(env->ctx, name);
}

/* The allocator of `op` outlives the file. Opens `path`. TAMIZ_OPEN_DIRECT where the file system
 * refuses it: opened buffered, file_is_direct() says so. *file is NULL on failure; a missing file
 * is TAMIZ_IO_ERROR with op->os_error ENOENT. Owned: file_close. */
tamiz_status file_open(struct op *op, const tamiz_env *env, const char *path, int flags,
                       struct file **file);
/* Always frees; the status of the close itself. NULL is fine. */
tamiz_status file_close(struct op *op, struct file *file);
const char *file_path(const struct file *file);
bool file_is_direct(const struct file *file);

/* Exactly `size` bytes at `offset`; TAMIZ_CORRUPTION where the file ends before. Any alignment,
 * also on direct files (the bytes then pass through an aligned buffer; what is counted is what the
 * device was asked for). Any thread. */
tamiz_status file_read(struct op *op, struct file *file, enum io_purpose purpose, uint64_t offset,
                       void *buffer, size_t size);
/* As file_read, but fewer bytes at the end of the file are fine: *got says how many. */
tamiz_status file_read_some(struct op *op, struct file *file, enum io_purpose purpose,
                            uint64_t offset, void *buffer, size_t size, size_t *got);

struct file_request {
    struct file *file;
    uint64_t offset;
    void *buffer;
    size_t size;
    tamiz_status status; /* out: OK, or what file_read would have returned */
};

/* All of `n` at once as far as the env can; each request has its own status. Counted like
 * file_read. Requests with an error do not touch op's record; a caller that cares repeats them with
 * file_read. */
void file_read_many(struct op *op, enum io_purpose purpose, struct file_request *requests,
                    size_t n);
/* The same, and done(done_ctx, i) tells of requests[i] as soon as its bytes and status are there,
 * while others may still be under way: once each, in any order, in the calling thread. */
void file_read_each(struct op *op, enum io_purpose purpose, struct file_request *requests, size_t n,
                    void (*done)(void *done_ctx, size_t i), void *done_ctx);

/* Written at `offset`, whole or an error, after which the bytes there are unknown. Also on direct
 * files any alignment is not offered: writers use buffered files. */
tamiz_status file_write(struct op *op, struct file *file, enum io_purpose purpose, uint64_t offset,
                        const void *data, size_t size);
tamiz_status file_sync(struct op *op, struct file *file); /* counted in op->count->syncs */
tamiz_status file_truncate(struct op *op, struct file *file, uint64_t size);
tamiz_status file_allocate(struct op *op, struct file *file,
                           uint64_t size); /* a refusal with ENOTSUP/EOPNOTSUPP is OK */
/* Part of a file in memory, written by storing: see tamiz/env.h. NULL where the env or the file
 * system can't; that is no error. */
void *file_map(struct file *file, uint64_t offset, size_t size);
void file_unmap(struct file *file, void *address, size_t size);
/* Counts what was stored through a mapping as the write that it is. */
static inline void file_count_write(struct op *op, enum io_purpose purpose, size_t size)
{
    counter_add(&op->count->io[purpose].writes, 1);
    counter_add(&op->count->io[purpose].write_bytes, size);
}
tamiz_status file_size(struct op *op, struct file *file, uint64_t *size);

/* A whole small file into `out` (cleared first). TAMIZ_CORRUPTION where it is larger than `most`.
 */
tamiz_status env_read_file(struct op *op, const tamiz_env *env, const char *path,
                           enum io_purpose purpose, size_t most, struct buf *out);
/* Writes `path` whole by way of `temporary` in the same directory: write, sync, rename, sync of
 * `directory`. A `temporary` left over from a crash is removed first. */
tamiz_status env_replace_file(struct op *op, const tamiz_env *env, const char *directory,
                              const char *temporary, const char *path, enum io_purpose purpose,
                              struct slice content);

/* The first `size` bytes of an open file as a new one at `path`, synced. On failure nothing stands
 * there. `buffer` of COPY_BYTES. */
enum { COPY_BYTES = 256 << 10 };
tamiz_status file_copy(struct op *op, struct file *from, const tamiz_env *env, const char *path,
                       enum io_purpose purpose, uint64_t size, void *buffer);
/* The same for a whole file, by name. */
tamiz_status env_copy_file(struct op *op, const tamiz_env *env, const char *from, const char *to,
                           enum io_purpose purpose);
/* A second name for a file, or, where the file system can't (another device, no links), a synced
 * copy: *linked says which. */
tamiz_status env_link_or_copy(struct op *op, const tamiz_env *env, const char *from, const char *to,
                              enum io_purpose purpose, bool *linked);
/* The directory that `path` is an entry of: owned (mem_free_text). NULL: memory is out. */
char *env_parent_path(const struct alloc *alloc, const char *path);
/* The entries of that directory survive a power cut. */
tamiz_status env_sync_parent(struct op *op, const tamiz_env *env, const char *path);

tamiz_status env_path_info(struct op *op, const tamiz_env *env, const char *path, bool *exists,
                           tamiz_file_info *info);
tamiz_status env_list(struct op *op, const tamiz_env *env, const char *directory,
                      void (*each)(void *ctx, const char *name), void *ctx);
tamiz_status env_make_directory(struct op *op, const tamiz_env *env,
                                const char *path); /* and syncs the parent's entries */
tamiz_status env_remove_directory(struct op *op, const tamiz_env *env, const char *path);
tamiz_status env_rename(struct op *op, const tamiz_env *env, const char *from, const char *to);
tamiz_status env_link(struct op *op, const tamiz_env *env, const char *from, const char *to);
tamiz_status env_remove(struct op *op, const tamiz_env *env, const char *path);
/* counted in op->count->syncs, like file_sync */
tamiz_status env_sync_directory(struct op *op, const tamiz_env *env, const char *path);
/* TAMIZ_BUSY names path and holder. */
tamiz_status env_lock(struct op *op, const tamiz_env *env, const char *path, void **lock);
tamiz_status env_unlock(struct op *op, const tamiz_env *env, void *lock);
tamiz_status env_random_u64(struct op *op, const tamiz_env *env, uint64_t *value); /* never 0 */
uint64_t env_wall_us(const tamiz_env *env);
uint64_t env_monotonic_ns(const tamiz_env *env);
void env_sleep_us(const tamiz_env *env, uint64_t us);
uint64_t env_boot_id(const tamiz_env *env);
uint32_t env_open_files_limit(const tamiz_env *env);  /* 0: not known */
const char *env_read_many_name(const tamiz_env *env); /* how reads at once are done; static */
/* A copy of `path` that stays good when the process changes its directory. Owned: mem_free_text. */
tamiz_status env_absolute_path(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                               const char *path, char **absolute);

#endif
