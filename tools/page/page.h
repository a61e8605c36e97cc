/* SPDX-License-Identifier: MIT
 *
 * The page's door into the engine: calls with plain numbers and addresses, as JavaScript can make
 * them across WebAssembly. Compiled natively too (tests/page), so that both builds can be asked the
 * same and compared.
 *
 * Texts are UTF-8 with their size. What a call hands out goes into a struct page_bytes, freed with
 * page_free; where a call fails, it is empty and page_error() has the words.
 */
#ifndef TAMIZ_PAGE_H
#define TAMIZ_PAGE_H

#include "tamiz/tamiz.h"

#if defined(__wasm__)
#define PAGE_CALL(name) __attribute__((export_name(#name))) name
#else
#define PAGE_CALL(name) name
#endif

struct page_bytes {
    void *data;
    size_t size;
};

/* ---- memory and words ---- */

void *PAGE_CALL(page_alloc)(size_t size); /* NULL: out of memory. Freed with page_free */
void PAGE_CALL(page_free)(void *p);
const char *PAGE_CALL(page_error)(void); /* of the last call that failed */
const char *PAGE_CALL(page_version)(void);

/* ---- filters ---- */

/* One hash for each line of `text` that is not empty, up to `room`; how many there were. */
size_t PAGE_CALL(page_hash_lines)(const char *text, size_t size, uint64_t *hashes, size_t room);
/* Hashes of `n` keys that no typed word can be (a zero byte, the seed, a number). */
void PAGE_CALL(page_hash_probes)(uint32_t seed, uint64_t *hashes, size_t n);

int PAGE_CALL(page_filter_build)(const char *policy, const uint64_t *hashes, size_t n,
                                 tamiz_filter **filter);
int PAGE_CALL(page_filter_new)(const char *policy, uint32_t capacity, tamiz_filter **filter);
/* An empty Bloom filter of exactly m bits, a multiple of 64, and k hashes; or, counting, one of m
 * counters at the same places. */
int PAGE_CALL(page_filter_bloom)(uint32_t bits, uint32_t k, int counting, tamiz_filter **filter);
int PAGE_CALL(page_filter_add)(tamiz_filter *filter, const uint64_t *hashes, size_t n);
int PAGE_CALL(page_filter_remove)(tamiz_filter *filter, const uint64_t *hash);
void PAGE_CALL(page_filter_ask)(const tamiz_filter *filter, const uint64_t *hashes, size_t n,
                                bool *maybe);
int PAGE_CALL(page_filter_image)(const tamiz_filter *filter, struct page_bytes *image);
int PAGE_CALL(page_filter_open)(const void *image, size_t size, tamiz_filter **filter);
int PAGE_CALL(page_filter_info)(const tamiz_filter *filter, struct page_bytes *json);
void PAGE_CALL(page_filter_free)(tamiz_filter *filter);
/* The k bits of that Bloom filter which a query looks at, in its order, of each hash. */
void PAGE_CALL(page_bloom_places)(uint32_t bits, uint32_t k, const uint64_t *hashes, size_t n,
                                  uint32_t *places);
double PAGE_CALL(page_bloom_bits)(double n, double p);
uint32_t PAGE_CALL(page_bloom_hashes)(double bits, double n);
double PAGE_CALL(page_bloom_rate)(double bits, uint32_t k, double n);

/* ---- the store, on a disk in memory ---- */

struct page_store;

/* A disk with nothing on it, and no store open yet. NULL: out of memory. */
struct page_store *PAGE_CALL(page_store_new)(void);
void PAGE_CALL(page_store_free)(struct page_store *s);
/* Puts a file into the store's directory, before it is opened. */
int PAGE_CALL(page_store_file)(struct page_store *s, const char *name, const void *data,
                               size_t size);
/* Opens (and makes) the store; closes it first where it is open. Options as text; threads are 0. */
int PAGE_CALL(page_store_open)(struct page_store *s, const char *options);
/* Writes a manifest for the tables that are there, newest (highest number) first. */
int PAGE_CALL(page_store_adopt)(struct page_store *s);
int PAGE_CALL(page_store_put)(struct page_store *s, const char *key, size_t key_size,
                              const char *value, size_t value_size);
int PAGE_CALL(page_store_delete)(struct page_store *s, const char *key, size_t key_size);
/* Each line is a key, its number (`first` and up) the value; as `tamiz load` does. */
int PAGE_CALL(page_store_fill)(struct page_store *s, const char *text, size_t size, uint32_t first);
int PAGE_CALL(page_store_get)(struct page_store *s, const char *key, size_t key_size, int filters,
                              struct page_bytes *value);
/* tamiz_explain_json; with `filters` 0, of the read that asks no filter. */
int PAGE_CALL(page_store_explain)(struct page_store *s, const char *key, size_t key_size,
                                  int filters, struct page_bytes *json);
/* Asks for each line and says nothing but how many were there: for the counters. */
int PAGE_CALL(page_store_ask)(struct page_store *s, const char *text, size_t size, int filters,
                              uint32_t *found);
int PAGE_CALL(page_store_flush)(struct page_store *s);
int PAGE_CALL(page_store_compact)(struct page_store *s);
int PAGE_CALL(page_store_step)(struct page_store *s, uint32_t *more);
/* Checks every block: TAMIZ_CORRUPTION where one is damaged. */
int PAGE_CALL(page_store_verify)(struct page_store *s);
int PAGE_CALL(page_store_property)(struct page_store *s, const char *name, struct page_bytes *text);
/* Memtables, levels and tables, each with what its filter holds. */
int PAGE_CALL(page_store_tables)(struct page_store *s, struct page_bytes *json);
int PAGE_CALL(page_store_files)(struct page_store *s, struct page_bytes *json);
int PAGE_CALL(page_store_read)(struct page_store *s, const char *name, struct page_bytes *bytes);

#endif
