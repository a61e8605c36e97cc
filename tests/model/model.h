/* SPDX-License-Identifier: MIT
 *
 * A store so simple that it is obviously right: all keys that a run may ever write stand in one
 * sorted array from the beginning, and each has the list of its versions, oldest first. A read at a
 * sequence number takes the last version that is not newer. Nothing is ever thrown away.
 *
 * Values are not kept: a version remembers from which seed and in which size its value was made.
 * The memory of the model is so a few bytes a write, with values of 64 KiB too.
 *
 * Header only: it belongs to the programs of this folder and to nobody else.
 */
#ifndef TAMIZ_TESTS_MODEL_MODEL_H
#define TAMIZ_TESTS_MODEL_MODEL_H

#include <stdlib.h>

#include "base/slice.h"
#include "support/test.h"
#include "tamiz/compaction_filter.h"

enum { MODEL_VALUE_MAX = 64 << 10, MODEL_KEY_MAX = 65535, MODEL_NONE = -1 };

struct model_version {
    uint64_t seq;
    uint64_t seed; /* of the value's bytes */
    uint32_t size;
    bool is_put;
    uint64_t expires_us; /* as good as deleted from then on; 0: never */
    /* Where a compaction filter judges: what reads found. */
    bool found_judged;
    uint64_t found_as_was; /* the step of the last one, and one */
};

struct model_key {
    uint8_t *data;
    size_t size;
    struct model_version *versions; /* oldest first */
    size_t count, capacity;
};

struct model {
    struct model_key *keys; /* ascending, distinct */
    int count;
    uint64_t seq;      /* of the newest write */
    uint64_t now_us;   /* only goes forward */
    bool judged;       /* merges ask model_verdict */
    uint8_t *expected; /* MODEL_VALUE_MAX bytes for the value being compared */
};

static inline void *model_alloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    assert_non_null(p);
    return p;
}

static inline struct slice model_key_at(const struct model *m, int i)
{
    return slice_of(m->keys[i].data, m->keys[i].size);
}

/* ---- keys
 *
 * One shape each for what stores have got wrong: the empty key, zero bytes, runs of 0xff (which
 * have no short successor), keys of the greatest size, long shared prefixes, keys that are prefixes
 * of each other, big-endian numbers. */

static inline size_t model_key_text(struct test_random *r, uint8_t *out)
{
    static const char letters[] = "ab";
    const size_t size = test_random_below(r, 9);
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)letters[test_random_below(r, 2)];
    return size;
}

static inline size_t model_key_filled(struct test_random *r, uint8_t byte, uint8_t *out)
{
    const size_t size = 1 + test_random_below(r, 20);
    memset(out, byte, size);
    if (test_random_below(r, 3) == 0)
        out[size - 1] = (uint8_t)test_random_u64(r);
    return size;
}

static inline size_t model_key_prefixed(struct test_random *r, uint8_t *out)
{
    return (size_t)sprintf((char *)out, "tenant/%04u/user/%08u/name",
                           (unsigned)test_random_below(r, 3), (unsigned)test_random_below(r, 4000));
}

static inline size_t model_key_long(struct test_random *r, uint8_t *out)
{
    const bool longest = test_random_below(r, 16) == 0;
    const size_t size = longest ? MODEL_KEY_MAX : 200 + test_random_below(r, 3000);
    memset(out, 'L', size);
    for (size_t i = 0; i < 8; i++)
        out[size - 1 - i] = (uint8_t)test_random_below(r, 4);
    return size;
}

static inline size_t model_key_number(struct test_random *r, uint8_t *out)
{
    const uint64_t number = test_random_below(r, 5000) << (8 * test_random_below(r, 6));
    for (size_t i = 0; i < 8; i++)
        out[i] = (uint8_t)(number >> (56 - 8 * i));
    return 8;
}

static inline size_t model_key_bytes(struct test_random *r, uint8_t *out)
{
    const size_t size = 1 + test_random_below(r, 24);
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)test_random_u64(r);
    return size;
}

/* Any key of any shape into `out`, which has room for MODEL_KEY_MAX bytes; returns its size. */
static inline size_t model_key_any(struct test_random *r, uint8_t *out)
{
    const uint64_t shape = test_random_below(r, 100);
    if (shape < 25)
        return model_key_text(r, out);
    if (shape < 32)
        return model_key_filled(r, 0x00, out);
    if (shape < 39)
        return model_key_filled(r, 0xff, out);
    if (shape < 65)
        return model_key_prefixed(r, out);
    if (shape < 67)
        return model_key_long(r, out);
    if (shape < 85)
        return model_key_number(r, out);
    return model_key_bytes(r, out);
}

static inline int model_key_compare(const void *a, const void *b)
{
    const struct model_key *left = a, *right = b;
    return slice_compare(slice_of(left->data, left->size), slice_of(right->data, right->size));
}

static inline void model_init(struct model *m, struct test_random *r, int wanted)
{
    uint8_t *key = model_alloc(MODEL_KEY_MAX);
    memset(m, 0, sizeof *m);
    m->expected = model_alloc(MODEL_VALUE_MAX);
    m->keys = model_alloc((size_t)wanted * sizeof *m->keys);
    for (int i = 0; i < wanted; i++) {
        const size_t size = i == 0 ? 0 : model_key_any(r, key);
        m->keys[i] = (struct model_key){.data = model_alloc(size), .size = size};
        memcpy(m->keys[i].data, key, size);
    }
    qsort(m->keys, (size_t)wanted, sizeof *m->keys, model_key_compare);
    for (int i = 0; i < wanted; i++)
        if (m->count && model_key_compare(&m->keys[m->count - 1], &m->keys[i]) == 0)
            free(m->keys[i].data);
        else
            m->keys[m->count++] = m->keys[i];
    free(key);
}

static inline void model_free(struct model *m)
{
    for (int i = 0; i < m->count; i++) {
        free(m->keys[i].data);
        free(m->keys[i].versions);
    }
    free(m->keys);
    free(m->expected);
}

/* ---- writes */

static inline void model_add(struct model *m, int key, struct model_version version)
{
    struct model_key *k = &m->keys[key];
    if (k->count == k->capacity) {
        k->capacity = k->capacity ? 2 * k->capacity : 4;
        k->versions = realloc(k->versions, k->capacity * sizeof *k->versions);
        assert_non_null(k->versions);
    }
    version.seq = ++m->seq;
    k->versions[k->count++] = version;
}

/* All keys in [from, to), at one sequence. */
static inline void model_delete_range(struct model *m, int from, int to)
{
    const uint64_t seq = m->seq;
    for (int i = from; i < to; i++) {
        m->seq = seq;
        model_add(m, i, (struct model_version){.is_put = false});
    }
    m->seq = seq + 1;
}

/* The value that belongs to (seed, size). */
static inline void model_value(uint64_t seed, uint32_t size, uint8_t *out)
{
    struct test_random r = {seed};
    for (uint32_t i = 0; i < size; i += 8) {
        const uint64_t word = (i & 63) < 32 ? test_random_u64(&r) : UINT64_C(0x6161616161616161);
        memcpy(out + i, &word, size - i < 8 ? size - i : 8);
    }
}

/* ---- the compaction filter: a pure function of the size of the key and the value's first bytes */

enum { VERDICT_MASK = 15, VERDICT_DROP = 3, VERDICT_CHANGE = 5, VERDICT_CHANGED = 6 };

static inline tamiz_verdict model_verdict(size_t key_size, uint64_t first_word, size_t size)
{
    const uint64_t n = (first_word + key_size) & VERDICT_MASK;
    return size < 8              ? TAMIZ_KEEP
           : n == VERDICT_DROP   ? TAMIZ_DROP
           : n == VERDICT_CHANGE ? TAMIZ_CHANGE
                                 : TAMIZ_KEEP;
}

/* The first word of what is written in the place of a value that changes: not to be changed again.
 */
static inline uint64_t model_changed_word(size_t key_size, uint64_t first_word)
{
    return (first_word & ~(uint64_t)VERDICT_MASK) | ((VERDICT_CHANGED - key_size) & VERDICT_MASK);
}

static inline tamiz_verdict model_verdict_on(const struct model *m, int key,
                                             const struct model_version *v)
{
    struct test_random r = {v->seed};
    return m->judged ? model_verdict(m->keys[key].size, test_random_u64(&r), v->size) : TAMIZ_KEEP;
}

/* ---- reads: a key's index, or MODEL_NONE */

/* The version that a read at `seq` finds; NULL: the key is absent then. */
static inline const struct model_version *model_get(const struct model *m, int key, uint64_t seq)
{
    const struct model_key *k = &m->keys[key];
    size_t i = k->count;
    while (i && k->versions[i - 1].seq > seq)
        i--;
    const struct model_version *v = i ? &k->versions[i - 1] : NULL;
    return v && v->is_put && (!v->expires_us || v->expires_us > m->now_us) ? v : NULL;
}

/* Whether a read at `seq` surely finds the key: no merge may have dropped it. */
static inline bool model_surely(const struct model *m, int key, uint64_t seq)
{
    const struct model_version *v = model_get(m, key, seq);
    return v && model_verdict_on(m, key, v) != TAMIZ_DROP;
}

/* The first key not before `target`: 0..count. */
static inline int model_lower_bound(const struct model *m, struct slice target)
{
    int low = 0, high = m->count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (slice_compare(model_key_at(m, middle), target) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The key itself, or MODEL_NONE where it is none of the model's. */
static inline int model_find(const struct model *m, struct slice key)
{
    const int i = model_lower_bound(m, key);
    return i < m->count && slice_equal(model_key_at(m, i), key) ? i : MODEL_NONE;
}

/* The first key at or after `from`, below `end`, that surely has a value at `seq`. */
static inline int model_forward(const struct model *m, int from, int end, uint64_t seq)
{
    for (int i = from; i < end; i++)
        if (model_surely(m, i, seq))
            return i;
    return MODEL_NONE;
}

/* The last key at or before `from`, not below `begin`, that surely has a value at `seq`. */
static inline int model_backward(const struct model *m, int from, int begin, uint64_t seq)
{
    for (int i = from; i >= begin; i--)
        if (model_surely(m, i, seq))
            return i;
    return MODEL_NONE;
}

#endif
