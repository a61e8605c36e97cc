/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* madvise */
#include "base/alloc.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { HUGE_FROM = 4 << 20, HUGE_PAGE = 2 << 20 };

const struct alloc alloc_libc = {{NULL, NULL}, NULL};

/* ---- counting ---- */

/* Its address tells threads apart. */
static _Thread_local char thread_mark;

/* What malloc takes for `size` bytes, about. */
static size_t whole_of(size_t size)
{
    const size_t header = 8, unit = 16, least = 32, page = 4096, mapped_from = 128 << 10;
    if (size >= mapped_from)
        return (size + unit + page - 1) / page * page;
    const size_t whole = (size + header + unit - 1) / unit * unit;
    return whole < least ? least : whole;
}

static void count_add(const struct alloc *a, size_t bytes)
{
    if (!a->count)
        return;
    const uint64_t spread = (uintptr_t)&thread_mark * UINT64_C(0x9e3779b97f4a7c15);
    atomic_fetch_add_explicit(&a->count->stripe[(spread >> 32) % ALLOC_STRIPES].bytes, bytes,
                              memory_order_relaxed);
}

size_t alloc_bytes(const struct alloc_count *count)
{
    size_t sum = 0;
    for (size_t i = 0; i < ALLOC_STRIPES; i++)
        sum += atomic_load_explicit(&count->stripe[i].bytes, memory_order_relaxed);
    return (ptrdiff_t)sum < 0 ? 0 : sum; /* read while another thread was between two stripes */
}

/* ---- pieces ---- */

void *mem_resize(const struct alloc *a, void *p, size_t old_size, size_t new_size)
{
    void *q = a->hook.resize ? a->hook.resize(a->hook.ctx, p, old_size, new_size ? new_size : 1)
                             : realloc(p, new_size ? new_size : 1);
    if (q)
        count_add(a, whole_of(new_size) - (p ? whole_of(old_size) : 0));
    return q;
}

void *mem_new(const struct alloc *a, size_t size)
{
    return mem_resize(a, NULL, 0, size);
}

void *mem_new_array(const struct alloc *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    if (a->hook.resize) {
        void *p = mem_new(a, bytes);
        return p ? memset(p, 0, bytes) : NULL;
    }
    void *p = calloc(count ? count : 1, size ? size : 1);
    if (p)
        count_add(a, whole_of(bytes));
    return p;
}

void mem_free(const struct alloc *a, void *p, size_t size)
{
    if (!p)
        return;
    count_add(a, 0 - whole_of(size));
    if (a->hook.resize)
        a->hook.resize(a->hook.ctx, p, size ? size : 1, 0);
    else
        free(p);
}

static void advise_huge(void *p, size_t size)
{
#if defined(__linux__)
    if (size >= HUGE_FROM)
        (void)madvise(p, size,
                      MADV_HUGEPAGE); /* advice: a kernel without it loses nothing but speed */
#else
    (void)p;
    (void)size;
#endif
}

/* What an aligned piece takes from the hook: the piece, room to align it, and the way back to the
 * start. */
static size_t aligned_whole(size_t size, size_t alignment)
{
    return size + alignment + sizeof(void *);
}

void *mem_new_aligned(const struct alloc *a, size_t size, size_t alignment)
{
    if (size > SIZE_MAX / 2 || alignment > HUGE_PAGE)
        return NULL;
    if (size >= HUGE_FROM)
        alignment = HUGE_PAGE;
    const struct alloc uncounted = {a->hook, NULL}; /* the system gives what is used of the room */
    uint8_t *whole = mem_new(&uncounted, aligned_whole(size, alignment));
    if (!whole)
        return NULL;
    count_add(a, whole_of(size));
    uint8_t *first = whole + sizeof(void *);
    uint8_t *piece = first + (-(uintptr_t)first & (alignment - 1));
    memcpy(piece - sizeof(void *), &whole, sizeof(void *));
    advise_huge(piece, size);
    return piece;
}

void mem_free_aligned(const struct alloc *a, void *p, size_t size, size_t alignment)
{
    if (!p)
        return;
    if (size >= HUGE_FROM)
        alignment = HUGE_PAGE;
    const struct alloc uncounted = {a->hook, NULL};
    void *whole;
    memcpy(&whole, (uint8_t *)p - sizeof(void *), sizeof(void *));
    count_add(a, 0 - whole_of(size));
    mem_free(&uncounted, whole, aligned_whole(size, alignment));
}

/* Before each handed-out buffer. A multiple of 16 bytes, so that the buffer keeps malloc's
 * alignment. */
struct handout {
    tamiz_allocator hook;
    size_t whole;
    size_t reserved;
};

void *mem_handout(const struct alloc *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    const struct alloc uncounted = {a->hook, NULL};
    struct handout *h = mem_new(&uncounted, sizeof *h + size);
    if (!h)
        return NULL;
    *h = (struct handout){a->hook, sizeof *h + size, 0};
    return h + 1;
}

void tamiz_free(void *buffer)
{
    if (!buffer)
        return;
    struct handout *h = (struct handout *)buffer - 1;
    const struct alloc a = {h->hook, NULL};
    mem_free(&a, h, h->whole);
}

char *mem_text(const struct alloc *a, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = mem_new(a, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void mem_free_text(const struct alloc *a, char *text)
{
    if (text)
        mem_free(a, text, strlen(text) + 1);
}
