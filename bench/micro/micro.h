/* SPDX-License-Identifier: MIT
 *
 * The inner loops of a read and a write, each as "make the thing, then do it n times": tamiz's own
 * headers are C17 and stay on the other side of this one. Every loop takes keys in an order that
 * was shuffled before, and returns a sum of what it found, so that nothing is optimised away; a
 * loop that found something wrong returns MICRO_WRONG.
 */
#ifndef TAMIZ_BENCH_MICRO_H
#define TAMIZ_BENCH_MICRO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MICRO_WRONG UINT64_MAX

/* One structure under test with the keys to ask it for. */
struct micro;
void micro_free(struct micro *m); /* NULL is fine */
size_t micro_count(const struct micro *m);

/* Each returns NULL where it could not be made (an unknown filter, no memory). `count` keys of the
 * shape that the workloads use: 16 decimal digits. */
struct micro *micro_hash_new(size_t key_size);
struct micro *micro_filter_new(const char *policy, size_t count);
struct micro *micro_block_new(size_t block_bytes);
struct micro *micro_memtable_new(size_t count);
struct micro *micro_index_new(size_t count);

uint64_t micro_hash(struct micro *m, size_t n);
/* Present keys, absent keys; one by one, or 64 in one call. */
uint64_t micro_filter_ask(struct micro *m, size_t n, int present);
uint64_t micro_filter_ask_many(struct micro *m, size_t n, int present);
double micro_filter_bits(const struct micro *m); /* per key, as built */
uint64_t micro_block_find(struct micro *m, size_t n, int present);
uint64_t micro_block_lower_bound(struct micro *m, size_t n);
uint64_t micro_memtable_get(struct micro *m, size_t n, int present);
/* `count` inserts into a fresh memtable, in order or shuffled. */
uint64_t micro_memtable_fill(size_t count, int in_order);
uint64_t micro_index_find(struct micro *m, size_t n);

#ifdef __cplusplus
}
#endif
#endif
