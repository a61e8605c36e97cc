/* SPDX-License-Identifier: MIT
 *
 * Memory for what reads walk through at random: cached blocks, filters, indexes. It comes in large
 * chunks whose pages are advised to be huge. With ordinary pages each of a get's cache misses is a
 * miss of the TLB as well, which on a virtual machine adds half again to its price.
 *
 * Pieces are found by two-level segregated fit (M. Masmano, I. Ripoll, A. Crespo, J. Real, "TLSF: a
 * new dynamic memory allocator for real-time systems", 2004): a free list for each eighth of a
 * power of two, two words of bits to find one that is not empty, neighbours joined when freed, and
 * a look at a few pieces of the list that the size itself belongs to. All of it is a handful of
 * instructions whatever the state of the heap.
 *
 * Chunks double from 256 KiB to 32 MiB, so that small stores stay small. One that is empty goes
 * back, but for the last.
 */
#ifndef TAMIZ_TABLE_HEAP_H
#define TAMIZ_TABLE_HEAP_H

#include "env/thread.h"

enum { HEAP_ALIGN = 64 };

struct heap;

/* Any thread may use it. NULL: memory is out. */
struct heap *heap_new(const struct alloc *alloc);
/* All pieces were freed. NULL is fine. */
void heap_free(struct heap *h);

/* HEAP_ALIGN aligned. NULL: memory is out. */
void *heap_take(struct heap *h, size_t size);
void heap_give(struct heap *h, void *p); /* NULL is fine */
/* What a piece of `size` bytes takes of the heap, all told. */
size_t heap_whole(size_t size);
/* Bytes of all chunks. */
size_t heap_bytes(struct heap *h);
/* Bytes of those that no piece has had so far, in whole pages: the system has not given them yet.
 */
size_t heap_untouched(struct heap *h);
/* The same as an allocator, for whoever is given one. Lives as long as the heap. */
const struct alloc *heap_alloc(const struct heap *h);

#endif
