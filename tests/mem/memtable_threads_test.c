/* SPDX-License-Identifier: MIT
 *
 * LABEL: threads. One writer, several readers, no lock between them but the published sequence.
 */
#include "mem/memtable.h"

#include <pthread.h>

#include "base/coding.h"
#include "support/test.h"

enum { WRITES = 60000, KEYS = 500, READERS = 3 };

struct shared {
    struct memtable *memtable;
    _Atomic uint64_t published; /* every write up to it is complete */
    uint64_t seed;
};

struct reader_thread {
    pthread_t id;
    struct shared *shared;
    uint64_t seed, wrong, rounds;
};

/* Write number `seq` goes to this key: every KEYS writes each key once, in another order. */
static uint64_t key_of(uint64_t seq)
{
    return (seq % KEYS) * 2654435761u % UINT32_MAX << 16;
}

static void *write_all(void *ctx)
{
    struct shared *s = ctx;
    struct test_op t;
    test_op_init(&t);
    for (uint64_t seq = 1; seq <= WRITES; seq++) {
        const uint64_t key = key_of(seq);
        const struct slice k = slice_of(&key, 8);
        if (memtable_add(&t.op, s->memtable, k, hash_key(k), stamp_of(seq, KIND_PUT),
                         slice_of(&seq, 8)) != TAMIZ_OK)
            break;
        atomic_store_explicit(&s->published, seq, memory_order_release);
    }
    return NULL;
}

/* The write to the key of `seq` that a read at `now` must find. */
static uint64_t newest_of(uint64_t seq, uint64_t now)
{
    const uint64_t latest = now - (now + KEYS - seq % KEYS) % KEYS;
    return latest > now ? 0 : latest;
}

static bool get_is_right(struct op *op, const struct memtable *m, uint64_t seq, uint64_t now)
{
    const uint64_t key = key_of(seq);
    const struct lookup lookup = lookup_make(slice_of(&key, 8), now);
    uint64_t stamp;
    struct slice value;
    const tamiz_status st = memtable_get(op, m, &lookup, &stamp, &value);
    const uint64_t want = newest_of(seq, now);
    if (want == 0 || want > now)
        return st == TAMIZ_NOT_FOUND;
    return st == TAMIZ_OK && stamp_seq(stamp) == want && load_u64(value.data) == want;
}

/* Both ways over everything: in order, and all that is published is met. */
static bool walk_is_right(struct op *op, const struct memtable *m, uint64_t now, bool back)
{
    struct iter *it = memtable_iter(op, m);
    uint64_t met = 0, last_key = 0, last_stamp = 0;
    bool right = true, first = true;
    for (back ? iter_seek_last(it) : iter_seek_first(it); it->valid;
         back ? iter_prev(it) : iter_next(it)) {
        const int order = version_compare(slice_of(&last_key, 8), last_stamp, it->key, it->stamp);
        right &= first || (back ? order > 0 : order < 0);
        right &= load_u64(it->value.data) == stamp_seq(it->stamp);
        memcpy(&last_key, it->key.data, 8);
        last_stamp = it->stamp;
        met += stamp_seq(it->stamp) <= now;
        first = false;
    }
    iter_close(it);
    return right && met == now;
}

static void *read_on(void *ctx)
{
    struct reader_thread *self = ctx;
    const struct shared *s = self->shared;
    struct test_op t;
    test_op_init(&t);
    struct test_random random = {self->seed};
    for (uint64_t now = 0; now < WRITES; self->rounds++) {
        now = atomic_load_explicit(&s->published, memory_order_acquire);
        for (int i = 0; i < 50; i++)
            self->wrong +=
                !get_is_right(&t.op, s->memtable, 1 + test_random_below(&random, WRITES), now);
        if (self->rounds % 64 == 0)
            self->wrong += !walk_is_right(&t.op, s->memtable, now, self->rounds % 128 == 0);
    }
    return NULL;
}

static void readers_beside_the_writer_see_all_that_was_published(void **state)
{
    (void)state;
    struct test_random random = test_random_start(3);
    struct shared s = {.memtable = memtable_new(&alloc_libc, WRITES * 96)};
    struct reader_thread readers[READERS];
    pthread_t writer;
    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader_thread){.shared = &s, .seed = test_random_u64(&random)};
        assert_int_equal(pthread_create(&readers[i].id, NULL, read_on, &readers[i]), 0);
    }
    assert_int_equal(pthread_create(&writer, NULL, write_all, &s), 0);
    pthread_join(writer, NULL);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i].id, NULL);
        assert_int_equal(readers[i].wrong, 0);
        assert_true(readers[i].rounds > 0);
    }
    assert_int_equal(memtable_count(s.memtable), WRITES);
    memtable_free(s.memtable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_beside_the_writer_see_all_that_was_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
