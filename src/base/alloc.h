/* SPDX-License-Identifier: MIT
 *
 * The only caller of malloc. Every store has its own allocator (the embedder's hook, or libc), and
 * sizes are given both ways, so that what is in use is known without a header on each piece: a
 * store counts it.
 *
 * Buffers handed to the user are different: tamiz_free() gets nothing but the address, so those
 * carry a small header with a copy of the hook, may outlive their store and are not counted.
 */
#ifndef TAMIZ_BASE_ALLOC_H
#define TAMIZ_BASE_ALLOC_H

#include <stdatomic.h>

#include "tamiz/types.h"

/* What is in use, in parts on lines of their own, so that threads do not share one. Starts all 0.
 */
enum { ALLOC_STRIPES = 8 };
struct alloc_count {
    struct {
        _Atomic size_t bytes; /* wraps: what one thread takes another may free */
        char apart[128 - sizeof(size_t)];
    } stripe[ALLOC_STRIPES];
};

struct alloc {
    tamiz_allocator hook;
    struct alloc_count *count; /* NULL: nobody counts. Outlives all pieces but its own */
};

/* libc's. Frozen. */
extern const struct alloc alloc_libc;

/* NULL where memory is out; size 0 gives a valid address. Owned. */
void *mem_new(const struct alloc *a, size_t size);
/* As mem_new, all bytes 0; NULL also where count * size overflows. */
void *mem_new_array(const struct alloc *a, size_t count, size_t size);
/* NULL where memory is out, and `p` is then untouched. */
void *mem_resize(const struct alloc *a, void *p, size_t old_size, size_t new_size);
/* `size` is what mem_new was given. NULL is fine. */
void mem_free(const struct alloc *a, void *p, size_t size);

/* On an address that is a multiple of `alignment` (a power of two of at most 2 MiB). Freed by
 * mem_free_aligned with the same numbers. From 4 MiB on, the pages are advised to be huge where the
 * system knows how. */
void *mem_new_aligned(const struct alloc *a, size_t size, size_t alignment);
void mem_free_aligned(const struct alloc *a, void *p, size_t size, size_t alignment);

/* Bytes in use, with what malloc puts around each piece, about. Any thread. */
size_t alloc_bytes(const struct alloc_count *count);

/* A buffer for the user, who frees it with tamiz_free(). NULL: memory is out. */
void *mem_handout(const struct alloc *a, size_t size);

/* A NUL-terminated copy of `text`, owned; freed by mem_free_text. */
char *mem_text(const struct alloc *a, const char *text);
void mem_free_text(const struct alloc *a, char *text);

#endif
