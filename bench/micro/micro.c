/* SPDX-License-Identifier: MIT */
#include "micro.h"

#include <stdlib.h>
#include <string.h>

#include "filter/filter.h"
#include "keys.h"
#include "mem/memtable.h"
#include "table/block.h"
#include "table/index.h"

enum { VALUE_SIZE = 100, TURN = 1 << 16 };

/* A structure fills what it needs. `turn` is an order of TURN keys that wraps around; where there
 * are more keys than that, it has a random choice of them. */
struct micro {
    struct op op;
    struct counters counters;
    size_t count;
    size_t at; /* in `turn` */
    uint32_t *turn;
    uint64_t *present, *absent; /* hashes, in turn */
    uint8_t *bytes;             /* of the key that is hashed */
    size_t bytes_size;
    tamiz_filter *filter;
    struct buf image;
    struct block block;
    struct memtable *memtable;
    struct index *index;
};

static struct micro *micro_new(size_t count)
{
    struct random r = {count};
    struct micro *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    op_init(&m->op, &alloc_libc, &m->counters);
    m->image = buf_init(&alloc_libc);
    m->count = count;
    m->turn = malloc(TURN * sizeof *m->turn);
    m->present = malloc(TURN * sizeof *m->present);
    m->absent = malloc(TURN * sizeof *m->absent);
    if (!m->turn || !m->present || !m->absent) {
        micro_free(m);
        return NULL;
    }
    for (size_t i = 0; i < TURN; i++) {
        uint8_t key[KEY_SIZE];
        m->turn[i] = (uint32_t)random_below(&r, count);
        key_write(2 * (uint64_t)m->turn[i], key);
        m->present[i] = hash_key(slice_of(key, KEY_SIZE));
        key_write(2 * (uint64_t)m->turn[i] + 1, key);
        m->absent[i] = hash_key(slice_of(key, KEY_SIZE));
    }
    return m;
}

void micro_free(struct micro *m)
{
    if (!m)
        return;
    free(m->turn);
    free(m->present);
    free(m->absent);
    free(m->bytes);
    tamiz_filter_free(m->filter);
    buf_free(&m->image);
    memtable_free(m->memtable);
    index_free(m->index);
    free(m);
}

size_t micro_count(const struct micro *m)
{
    return m->count;
}

static size_t next_turn(struct micro *m)
{
    return m->at++ % TURN;
}

/* ---- hash */

struct micro *micro_hash_new(size_t key_size)
{
    struct micro *m = micro_new(1);
    if (!m)
        return NULL;
    m->bytes_size = key_size;
    m->bytes = calloc(1, key_size + 1);
    if (m->bytes)
        return m;
    micro_free(m);
    return NULL;
}

/* Each hash goes into the next key: one after the other, as a lookup sees it. */
uint64_t micro_hash(struct micro *m, size_t n)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) {
        m->bytes[0] = (uint8_t)hash;
        hash = hash_key(slice_of(m->bytes, m->bytes_size));
    }
    return hash;
}

/* ---- filters */

struct micro *micro_filter_new(const char *text, size_t count)
{
    tamiz_filter_policy policy;
    struct micro *m = micro_new(count);
    uint64_t *hashes = malloc(count * sizeof *hashes);
    tamiz_status st = m && hashes ? tamiz_filter_policy_parse(text, &policy) : TAMIZ_OUT_OF_MEMORY;
    for (size_t i = 0; st == TAMIZ_OK && i < count; i++) {
        uint8_t key[KEY_SIZE];
        key_write(2 * (uint64_t)i, key);
        hashes[i] = hash_key(slice_of(key, KEY_SIZE));
    }
    if (st == TAMIZ_OK)
        st = tamiz_filter_build(&policy, hashes, count, &m->filter);
    free(hashes);
    if (st == TAMIZ_OK)
        return m;
    micro_free(m);
    return NULL;
}

uint64_t micro_filter_ask(struct micro *m, size_t n, int present)
{
    const uint64_t *hashes = present ? m->present : m->absent;
    uint64_t maybe = 0;
    for (size_t i = 0; i < n; i++)
        maybe += tamiz_filter_may_contain(m->filter, hashes[next_turn(m)]);
    return present && maybe != n ? MICRO_WRONG : maybe;
}

uint64_t micro_filter_ask_many(struct micro *m, size_t n, int present)
{
    enum { MANY = 64 };
    const uint64_t *hashes = present ? m->present : m->absent;
    bool answers[MANY];
    uint64_t maybe = 0;
    for (size_t i = 0; i < n; i += MANY) {
        const size_t at = m->at % TURN;
        tamiz_filter_may_contain_many(m->filter, hashes + at, MANY, answers);
        m->at += MANY;
        for (size_t k = 0; k < MANY; k++)
            maybe += answers[k];
    }
    return maybe;
}

double micro_filter_bits(const struct micro *m)
{
    tamiz_filter_info info = {.struct_size = sizeof info};
    tamiz_filter_info_get(m->filter, &info);
    return info.bits_per_key;
}

/* ---- one data block */

struct micro *micro_block_new(size_t block_bytes)
{
    struct block_builder builder;
    uint8_t key[KEY_SIZE], value[VALUE_SIZE];
    size_t count = 0;
    block_builder_init(&builder, &alloc_libc);
    while (block_builder_size(&builder) < block_bytes) {
        key_write(2 * (uint64_t)count, key);
        value_write(count, 0, value, sizeof value);
        const struct slice k = slice_of(key, sizeof key);
        block_builder_add(&builder, k, hash_key(k), stamp_of(1, KIND_PUT),
                          slice_of(value, sizeof value));
        count++;
    }
    struct micro *m = micro_new(count);
    if (m && (block_builder_finish(&m->op, &builder, &m->image) != TAMIZ_OK ||
              !block_open(buf_slice(&m->image), &m->block))) {
        micro_free(m);
        m = NULL;
    }
    block_builder_free(&builder);
    return m;
}

uint64_t micro_block_find(struct micro *m, size_t n, int present)
{
    const uint64_t *hashes = present ? m->present : m->absent;
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t at = next_turn(m);
        uint8_t key[KEY_SIZE];
        uint64_t stamp;
        struct slice value;
        key_write(2 * (uint64_t)m->turn[at] + !present, key);
        const struct lookup lookup = {slice_of(key, sizeof key), hashes[at], UINT64_MAX};
        found += block_find(&m->block, &lookup, &stamp, &value) == TAMIZ_OK;
    }
    return found == (present ? n : 0) ? found : MICRO_WRONG;
}

uint64_t micro_block_lower_bound(struct micro *m, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t key[KEY_SIZE];
        const uint32_t want = m->turn[next_turn(m)];
        key_write(2 * (uint64_t)want, key);
        const uint32_t got = block_lower_bound(&m->block, slice_of(key, sizeof key), UINT64_MAX);
        if (got != want)
            return MICRO_WRONG;
        sum += got;
    }
    return sum;
}

/* ---- memtable */

static tamiz_status memtable_put_all(struct op *op, struct memtable *table, size_t count,
                                     int in_order)
{
    const struct permutation order = permutation_make(count, 1);
    uint8_t key[KEY_SIZE], value[VALUE_SIZE] = {0};
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < count && st == TAMIZ_OK; i++) {
        key_write(2 * (in_order ? i : permutation_at(&order, i)), key);
        const struct slice k = slice_of(key, sizeof key);
        st = memtable_add(op, table, k, hash_key(k), stamp_of(i + 1, KIND_PUT),
                          slice_of(value, sizeof value));
    }
    return st;
}

struct micro *micro_memtable_new(size_t count)
{
    struct micro *m = micro_new(count);
    if (!m)
        return NULL;
    m->memtable = memtable_new(&alloc_libc, count * 200);
    if (m->memtable && memtable_put_all(&m->op, m->memtable, count, 0) == TAMIZ_OK)
        return m;
    micro_free(m);
    return NULL;
}

uint64_t micro_memtable_get(struct micro *m, size_t n, int present)
{
    const uint64_t *hashes = present ? m->present : m->absent;
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t at = next_turn(m);
        uint8_t key[KEY_SIZE];
        uint64_t stamp;
        struct slice value;
        key_write(2 * (uint64_t)m->turn[at] + !present, key);
        const struct lookup lookup = {slice_of(key, sizeof key), hashes[at], UINT64_MAX};
        found += memtable_get(&m->op, m->memtable, &lookup, &stamp, &value) == TAMIZ_OK;
    }
    return found == (present ? n : 0) ? found : MICRO_WRONG;
}

uint64_t micro_memtable_fill(size_t count, int in_order)
{
    struct counters counters = {0};
    struct op op;
    op_init(&op, &alloc_libc, &counters);
    struct memtable *table = memtable_new(&alloc_libc, count * 200);
    const bool right = table && memtable_put_all(&op, table, count, in_order) == TAMIZ_OK &&
                       memtable_count(table) == count;
    memtable_free(table);
    return right ? count : MICRO_WRONG;
}

/* ---- index of a table */

struct micro *micro_index_new(size_t count)
{
    enum { STORED = 4000 };
    struct index_builder builder;
    struct micro *m = micro_new(count);
    if (!m)
        return NULL;
    index_builder_init(&builder, &alloc_libc);
    for (size_t i = 0; i < count; i++) {
        uint8_t key[KEY_SIZE];
        key_write(2 * (uint64_t)i, key);
        index_builder_add(&builder, slice_of(key, sizeof key), STORED, STORED);
    }
    const uint64_t end = TABLE_HEADER_SIZE + count * (STORED + BLOCK_TRAILER_SIZE);
    tamiz_status st = index_builder_finish(&m->op, &builder, &m->image);
    index_builder_free(&builder);
    if (st == TAMIZ_OK)
        st = index_open(&m->op, buf_slice(&m->image), end, "micro", &alloc_libc, &m->index);
    if (st == TAMIZ_OK)
        return m;
    micro_free(m);
    return NULL;
}

uint64_t micro_index_find(struct micro *m, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t key[KEY_SIZE];
        const uint32_t want = m->turn[next_turn(m)];
        key_write(2 * (uint64_t)want, key);
        const uint32_t got = index_find(m->index, slice_of(key, sizeof key));
        if (got != want)
            return MICRO_WRONG;
        sum += got;
    }
    return sum;
}
