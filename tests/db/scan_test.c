/* SPDX-License-Identifier: MIT
 *
 * Ordered reads that step through blocks: beside the same store kept as an array, over several runs
 * and a memtable, with snapshots, bounds, deletions, values for a time and turns in the middle.
 */
#include <stdlib.h>
#include <string.h>

#include "support/store.h"

enum { KEYS = 300, MOMENTS = 4, KEY_ROOM = 160, VALUE_MOST = 20000 };

struct key {
    uint8_t bytes[KEY_ROOM];
    size_t size;
};

/* What a key was at a moment: the length and the first byte of its value. */
struct was {
    bool there;
    size_t size;
    uint8_t mark;
};

struct world {
    struct test_random random;
    tamiz_env *env;
    tamiz *db;
    struct key keys[KEYS];
    struct was was[MOMENTS][KEYS];
    tamiz_snapshot *snapshots[MOMENTS];
    uint8_t value[VALUE_MOST];
};

static int key_order(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    const int order = memcmp(x->bytes, y->bytes, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Short ones, long ones, some with much in common; a key that others begin with. */
static void make_keys(struct world *w)
{
    for (int i = 0; i < KEYS; i++) {
        struct key *k = &w->keys[i];
        const int shared = i % 3 == 0 ? 0 : i % 3 == 1 ? 20 : 140;
        memset(k->bytes, 'p', KEY_ROOM);
        k->size = (size_t)(shared + snprintf((char *)k->bytes + shared, 12, "%d", i * 7));
    }
    qsort(w->keys, KEYS, sizeof w->keys[0], key_order);
}

static void write_key(struct world *w, int moment, int i)
{
    static const size_t sizes[] = {0, 3, 100, 127, 128, 700, VALUE_MOST};
    struct was *is = &w->was[moment][i];
    const struct key *k = &w->keys[i];
    const uint64_t kind = test_random_below(&w->random, 10);
    if (kind == 0) {
        assert_public(tamiz_delete(w->db, k->bytes, k->size, NULL), TAMIZ_OK);
        *is = (struct was){false, 0, 0};
        return;
    }
    tamiz_write_options o = TAMIZ_WRITE_OPTIONS_INIT;
    o.ttl = kind == 1 ? 3600 : 0;
    is->there = true;
    is->size = sizes[test_random_below(&w->random, test_random_below(&w->random, 20) ? 5 : 7)];
    is->mark = (uint8_t)test_random_below(&w->random, 256);
    memset(w->value, is->mark, is->size);
    assert_public(tamiz_put(w->db, k->bytes, k->size, w->value, is->size, &o), TAMIZ_OK);
}

/* `share` in ten of the keys are written at each moment; the last stays in the memtable, and the
 * first two become one table or two. */
static void world_begin(struct world *w, uint64_t seed, uint64_t share, bool ranges, bool together)
{
    memset(w, 0, sizeof *w);
    w->random = test_random_start(seed);
    w->env = tamiz_env_memory_new();
    w->db = test_open("s", "threads=0 compaction=off block=1KiB", w->env);
    make_keys(w);
    for (int m = 0; m < MOMENTS; m++) {
        if (m)
            memcpy(w->was[m], w->was[m - 1], sizeof w->was[m]);
        for (int i = 0; i < KEYS; i++)
            if (test_random_below(&w->random, 10) < (m ? share : 9))
                write_key(w, m, i);
        if (ranges && m == 1) {
            const struct key *from = &w->keys[50], *to = &w->keys[70];
            assert_public(
                tamiz_delete_range(w->db, from->bytes, from->size, to->bytes, to->size, NULL),
                TAMIZ_OK);
            memset(&w->was[m][50], 0, 20 * sizeof w->was[m][0]);
        }
        assert_public(tamiz_snapshot_take(w->db, &w->snapshots[m]), TAMIZ_OK);
        if (m + 1 < MOMENTS && !(together && m == 0))
            assert_public(tamiz_flush(w->db), TAMIZ_OK);
    }
}

static void world_end(struct world *w)
{
    for (int m = 0; m < MOMENTS; m++)
        tamiz_snapshot_release(w->snapshots[m]);
    test_close(w->db);
    tamiz_env_memory_free(w->env);
}

/* The iterator stands on key `i`; -1 or KEYS: nowhere. */
static void expect_at(const struct world *w, const tamiz_iter *it, int moment, int i)
{
    size_t size;
    if (i < 0 || i >= KEYS) {
        assert_false(tamiz_iter_valid(it));
        assert_int_equal(tamiz_iter_status(it), TAMIZ_OK);
        return;
    }
    assert_true(tamiz_iter_valid(it));
    const void *key = tamiz_iter_key(it, &size);
    assert_int_equal(size, w->keys[i].size);
    assert_memory_equal(key, w->keys[i].bytes, size);
    const uint8_t *value = tamiz_iter_value(it, &size);
    assert_int_equal(size, w->was[moment][i].size);
    for (size_t b = 0; b < size; b += 97)
        assert_int_equal(value[b], w->was[moment][i].mark);
}

/* The next key from `i` on in the direction that was there, inside [low, high); else -1 or KEYS. */
static int neighbour(const struct world *w, int moment, int i, int step, int low, int high)
{
    while (i >= low && i < high && !w->was[moment][i].there)
        i += step;
    return i < low ? -1 : i >= high ? KEYS : i;
}

/* From a random key on, mostly forwards. */
static void walk_once(struct world *w, int moment)
{
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    const bool bounded = test_random_below(&w->random, 2);
    const int low = bounded ? (int)test_random_below(&w->random, KEYS / 2) : 0;
    const int high =
        bounded ? low + (int)test_random_below(&w->random, (uint64_t)(KEYS - low)) : KEYS;
    o.snapshot =
        moment + 1 < MOMENTS || test_random_below(&w->random, 2) ? w->snapshots[moment] : NULL;
    if (bounded) {
        o.lower = w->keys[low].bytes;
        o.lower_size = w->keys[low].size;
        o.upper = w->keys[high].bytes;
        o.upper_size = w->keys[high].size;
    }
    tamiz_iter *it;
    assert_public(tamiz_iter_open(w->db, &o, &it), TAMIZ_OK);
    for (int round = 0; round < 3; round++) {
        int at =
            low < high ? low + (int)test_random_below(&w->random, (uint64_t)(high - low)) : low;
        tamiz_iter_seek(it, w->keys[at].bytes, w->keys[at].size);
        at = neighbour(w, moment, at, 1, low, high);
        expect_at(w, it, moment, at);
        while (tamiz_iter_valid(it)) {
            const bool back = test_random_below(&w->random, 20) == 0;
            (back ? tamiz_iter_prev : tamiz_iter_next)(it);
            at = neighbour(w, moment, at + (back ? -1 : 1), back ? -1 : 1, low, high);
            expect_at(w, it, moment, at);
        }
    }
    tamiz_iter_close(it);
}

static void walks(uint64_t seed, uint64_t share, bool ranges, bool together)
{
    struct world *w = malloc(sizeof *w);
    assert_non_null(w);
    world_begin(w, seed, share, ranges, together);
    for (int round = 0; round < 60; round++)
        walk_once(w, round % MOMENTS);
    world_end(w);
    free(w);
}

static void one_full_run_under_few_changes_reads_as_the_array_does(void **state)
{
    (void)state;
    walks(1, 1, false, false);
}

static void runs_that_take_turns_read_as_the_array_does(void **state)
{
    (void)state;
    walks(2, 5, false, false);
}

static void a_table_with_keys_twice_reads_as_the_array_does(void **state)
{
    (void)state;
    walks(5, 2, false, true);
}

static void what_is_under_a_range_delete_is_not_stepped_to(void **state)
{
    (void)state;
    walks(3, 3, true, false);
}

/* A key that is borrowed from the iterator can be sought with it. */
static void a_step_may_be_followed_by_a_seek_to_its_own_key(void **state)
{
    (void)state;
    struct world *w = malloc(sizeof *w);
    assert_non_null(w);
    world_begin(w, 4, 2, false, false);
    tamiz_iter *it;
    assert_public(tamiz_iter_open(w->db, NULL, &it), TAMIZ_OK);
    const int last = MOMENTS - 1;
    int at = neighbour(w, last, 0, 1, 0, KEYS);
    for (tamiz_iter_seek_first(it); tamiz_iter_valid(it);) {
        size_t size;
        const void *key = tamiz_iter_key(it, &size);
        tamiz_iter_seek(it, key, size);
        expect_at(w, it, last, at);
        for (int step = 0; step < 3; step++) {
            tamiz_iter_next(it);
            at = neighbour(w, last, at + 1, 1, 0, KEYS);
            expect_at(w, it, last, at);
        }
    }
    tamiz_iter_close(it);
    world_end(w);
    free(w);
}

/* What `seek` shows for a key that lies elsewhere, `lent` shows for the same bytes of its own key.
 */
static void seek_alike(tamiz_iter *lent, tamiz_iter *own, bool before, const uint8_t *part,
                       size_t size)
{
    uint8_t copy[KEY_ROOM];
    memcpy(copy, part, size);
    void (*const seek)(tamiz_iter *, const void *, size_t) =
        before ? tamiz_iter_seek_for_prev : tamiz_iter_seek;
    seek(lent, part, size);
    seek(own, copy, size);
    assert_int_equal(tamiz_iter_valid(lent), tamiz_iter_valid(own));
    if (!tamiz_iter_valid(own))
        return;
    size_t got_size, want_size;
    const void *got = tamiz_iter_key(lent, &got_size), *want = tamiz_iter_key(own, &want_size);
    assert_int_equal(got_size, want_size);
    assert_memory_equal(got, want, want_size);
}

/* Any part of the key that is shown, wherever in it: 40 bytes that rise and fall, so that parts
 * of them are keys all over the store. */
static void a_part_of_what_is_shown_can_be_sought(void **state)
{
    (void)state;
    enum { SIZE = 40, WHOLE = 64 };
    struct test_random random = test_random_start(6);
    tamiz_env *env = tamiz_env_memory_new();
    tamiz *db = test_open("s", "threads=0 compaction=off", env);
    uint8_t key[SIZE];
    for (int i = 0; i < WHOLE * 4; i++) {
        for (int b = 0; b < SIZE; b++)
            key[b] = (uint8_t)('a' + test_random_below(&random, 26));
        const size_t size = i < WHOLE ? SIZE : 1 + (size_t)test_random_below(&random, SIZE);
        assert_public(tamiz_put(db, key, size, "v", 1, NULL), TAMIZ_OK);
        if (i == 2 * WHOLE)
            assert_public(tamiz_flush(db), TAMIZ_OK);
    }
    tamiz_iter *lent, *own;
    assert_public(tamiz_iter_open(db, NULL, &lent), TAMIZ_OK);
    assert_public(tamiz_iter_open(db, NULL, &own), TAMIZ_OK);
    for (int turn = 0; turn < 20000; turn++) {
        if (!tamiz_iter_valid(lent))
            tamiz_iter_seek_first(lent);
        size_t size;
        const uint8_t *shown = tamiz_iter_key(lent, &size);
        const size_t from = (size_t)test_random_below(&random, size);
        const size_t length = (size_t)test_random_below(&random, size - from + 1);
        seek_alike(lent, own, turn % 2, shown + from, length);
        if (turn % 5 == 0 && tamiz_iter_valid(lent))
            turn % 3 ? tamiz_iter_next(lent) : tamiz_iter_prev(lent);
    }
    tamiz_iter_close(lent);
    tamiz_iter_close(own);
    test_close(db);
    tamiz_env_memory_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_full_run_under_few_changes_reads_as_the_array_does),
        cmocka_unit_test(runs_that_take_turns_read_as_the_array_does),
        cmocka_unit_test(a_table_with_keys_twice_reads_as_the_array_does),
        cmocka_unit_test(what_is_under_a_range_delete_is_not_stepped_to),
        cmocka_unit_test(a_step_may_be_followed_by_a_seek_to_its_own_key),
        cmocka_unit_test(a_part_of_what_is_shown_can_be_sought),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
