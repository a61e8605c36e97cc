/* SPDX-License-Identifier: MIT
 *
 * The outside world as a table of functions: files, directories, the lock, clocks, randomness. The
 * store goes through one of these for everything, so that it can run on a simulated machine, in a
 * browser, or on what the embedder has.
 *
 * Every function returns 0 or a negative errno (-ENOENT), unless it says otherwise. Paths are
 * NUL-terminated bytes. Every function may be called from any thread; one file may be read by many
 * threads at once and is written by one.
 */
#ifndef TAMIZ_ENV_H
#define TAMIZ_ENV_H

#include "tamiz/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TAMIZ_OPEN_READ = 1,
    TAMIZ_OPEN_WRITE = 2,
    /* Must not exist yet: -EEXIST. Mode 0600, no symbolic link followed. */
    TAMIZ_OPEN_CREATE = 4,
    /* Around the page cache: offsets, sizes and buffers are multiples of 4096. -EINVAL where the
     * file system refuses. */
    TAMIZ_OPEN_DIRECT = 8,
    TAMIZ_OPEN_SEQUENTIAL = 16 /* a hint */
};

typedef struct tamiz_file_info {
    uint64_t size;
    uint64_t device, inode; /* who it really is, whatever its path */
    bool is_directory;
} tamiz_file_info;

typedef struct tamiz_read_request {
    void *file; /* as opened */
    uint64_t offset;
    void *buffer;
    size_t size;
    int64_t result; /* bytes read, or a negative errno */
} tamiz_read_request;

typedef struct tamiz_env_ops {
    size_t struct_size;

    /* *file is what the other functions are given. */
    int (*open)(void *ctx, const char *path, int flags, void **file);
    /* The file is closed afterwards, whatever the answer. */
    int (*close)(void *ctx, void *file);
    /* Bytes read, 0 at the end of the file, or a negative errno. Short only at the end. */
    int64_t (*read)(void *ctx, void *file, uint64_t offset, void *buffer, size_t size);
    /* All of it or a negative errno, after which the file's bytes from `offset` on are unknown. */
    int (*write)(void *ctx, void *file, uint64_t offset, const void *data, size_t size);
    /* Data, and what is needed to read it back, survive a power cut once it has returned 0. */
    int (*sync)(void *ctx, void *file);
    int (*truncate)(void *ctx, void *file, uint64_t size);
    /* Reserves room for `size` bytes without changing the size; -ENOTSUP and -ENOSYS are fine. */
    int (*allocate)(void *ctx, void *file, uint64_t size);
    int (*file_info)(void *ctx, void *file, tamiz_file_info *info);

    int (*path_info)(void *ctx, const char *path, tamiz_file_info *info);
    /* Tells each name but "." and "..", in any order; `name` is good during the call. */
    int (*list)(void *ctx, const char *directory, void (*each)(void *each_ctx, const char *name),
                void *each_ctx);
    /* Mode 0700; -EEXIST where there is something. */
    int (*make_directory)(void *ctx, const char *path);
    /* Empty ones only. */
    int (*remove_directory)(void *ctx, const char *path);
    /* In one step, replacing what is at `to`. */
    int (*rename)(void *ctx, const char *from, const char *to);
    /* Another name of the same file. -EXDEV, -EMLINK, -EPERM, -ENOSYS, -ENOTSUP: that can't be
     * here, and the store copies instead. */
    int (*link)(void *ctx, const char *from, const char *to);
    int (*remove)(void *ctx, const char *path);
    /* Its entries survive a power cut. */
    int (*sync_directory)(void *ctx, const char *path);

    /* An exclusive lock on `path` (created where missing) for as long as *lock is held, also
     * against other handles of this process. -EWOULDBLOCK where another has it; `holder` then gets
     * words for who. */
    int (*lock)(void *ctx, const char *path, void **lock, char *holder, size_t holder_size);
    int (*unlock)(void *ctx, void *lock);

    uint64_t (*wall_us)(void *ctx);      /* since 1970; may step */
    uint64_t (*monotonic_ns)(void *ctx); /* never steps back */
    void (*sleep_us)(void *ctx, uint64_t us);
    int (*random)(void *ctx, void *buffer, size_t size);
    uint64_t (*boot_id)(void *ctx); /* the same until the machine loses its memory; 0: not known */

    /* Optional: many reads at once, answered when all are done. NULL: one after the other. */
    void (*read_many)(void *ctx, tamiz_read_request *requests, size_t n);
    /* Optional, words for "options": "io_uring", "pread". NULL: "read". */
    const char *(*read_many_name)(void *ctx);
    /* Optional: `path` as it will still be good when the process has changed its directory; at most
     * `size` bytes with the NUL. NULL: paths are good as they are. */
    int (*absolute_path)(void *ctx, const char *path, char *absolute, size_t size);
    /* Optional: bytes [offset, offset + size) of a file opened for reading and writing become part
     * of it (zeros where nothing was written), with their room reserved, and appear at *address:
     * what is stored there is in the file, as if written, and reaches the disk with sync. `offset`
     * is a multiple of 4096. A negative errno: use write. NULL: there is no such thing here. */
    int (*map)(void *ctx, void *file, uint64_t offset, size_t size, void **address);
    void (*unmap)(void *ctx, void *address, size_t size);
    /* Optional: how many files this process may have open; 0: not known. */
    uint32_t (*open_files_limit)(void *ctx);
    /* Optional: the store is at a named point of its work, in the calling thread, with no lock
     * held: for simulations that interleave callers. The names are in tamiz/env_sim.h. */
    void (*point)(void *ctx, const char *name);
    /* Optional: as read_many, and done(done_ctx, i) tells of requests[i] as soon as its result
     * stands: once each, in any order, in the calling thread. NULL: read_many (an env that stands
     * in front of another and has its own read_many needs its own of this too). */
    void (*read_each)(void *ctx, tamiz_read_request *requests, size_t n,
                      void (*done)(void *done_ctx, size_t i), void *done_ctx);
} tamiz_env_ops;

typedef struct tamiz_env {
    const tamiz_env_ops *ops; /* outlives every store that uses it */
    void *ctx;
} tamiz_env;

/* The real one. Static. */
TAMIZ_API const tamiz_env *tamiz_env_posix(void);

/* One in memory, empty: files and directories that vanish with it. NULL: out of memory. Freed after
 * its last store. */
TAMIZ_API tamiz_env *tamiz_env_memory_new(void);
TAMIZ_API void tamiz_env_memory_free(tamiz_env *env);

#ifdef __cplusplus
}
#endif
#endif
