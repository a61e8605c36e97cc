/* SPDX-License-Identifier: MIT
 *
 * Readers racing with retirement: a freed object that a reader still sees is a use after free for
 * AddressSanitizer, an unordered one a race for ThreadSanitizer.
 * LABEL: threads
 */
#include "support/test.h"

#include <string.h>

#include "env/epoch.h"

/* `value` twice, so that a torn or freed one shows without a sanitizer as well. */
struct object {
    struct retired retired;
    uint64_t value, inverse;
    _Atomic size_t *freed;
};

static void object_free(struct retired *self, void *ctx)
{
    struct object *o = ctx;
    assert_true(self == &o->retired);
    atomic_fetch_add(o->freed, 1);
    o->value = o->inverse = 0;
    mem_free(&alloc_libc, o, sizeof *o);
}

static struct object *object_new(uint64_t value, _Atomic size_t *freed)
{
    struct object *o = mem_new_array(&alloc_libc, 1, sizeof *o);
    assert_non_null(o);
    *o = (struct object){{NULL, 0, object_free, o}, value, ~value, freed};
    return o;
}

static void an_object_is_freed_when_its_last_reader_has_left(void **state)
{
    (void)state;
    struct test_op t;
    struct epoch e;
    _Atomic size_t freed = 0;
    test_op_init(&t);
    assert_status(&t.op, epoch_init(&t.op, &e, &alloc_libc), TAMIZ_OK);

    struct epoch_slot *early = epoch_enter(&e);
    epoch_retire(&e, &object_new(1, &freed)->retired);
    struct epoch_slot *late = epoch_enter(&e); /* cannot reach the first object */
    epoch_retire(&e, &object_new(2, &freed)->retired);
    assert_true(early != late);
    assert_int_equal(freed, 0);
    assert_true(epoch_reclaim(&e));
    epoch_leave(early);
    assert_true(epoch_reclaim(&e));
    assert_int_equal(freed, 1);
    epoch_leave(late);
    assert_false(epoch_reclaim(&e));
    assert_int_equal(freed, 2);

    epoch_retire(&e, &object_new(3, &freed)->retired);
    assert_int_equal(freed, 3);
    epoch_free(&e);
}

static void freeing_the_epoch_frees_what_waits(void **state)
{
    (void)state;
    struct test_op t;
    struct epoch e;
    _Atomic size_t freed = 0;
    test_op_init(&t);
    assert_status(&t.op, epoch_init(&t.op, &e, &alloc_libc), TAMIZ_OK);
    struct epoch_slot *reader = epoch_enter(&e);
    for (uint64_t i = 0; i < 10; i++)
        epoch_retire(&e, &object_new(i, &freed)->retired);
    assert_int_equal(freed, 0);
    epoch_leave(reader);
    epoch_free(&e);
    assert_int_equal(freed, 10);
}

static void all_slots_are_distinct_and_their_counters_add_up(void **state)
{
    (void)state;
    struct test_op t;
    struct epoch e;
    struct epoch_slot *slots[EPOCH_SLOTS];
    test_op_init(&t);
    assert_status(&t.op, epoch_init(&t.op, &e, &alloc_libc), TAMIZ_OK);
    for (size_t i = 0; i < EPOCH_SLOTS; i++) {
        slots[i] = epoch_enter(&e);
        for (size_t j = 0; j < i; j++)
            assert_true(slots[i] != slots[j]);
        counter_add(&slots[i]->count.gets, i);
    }
    for (size_t i = 0; i < EPOCH_SLOTS; i++)
        epoch_leave(slots[i]);
    struct counters sum = {0};
    epoch_counters(e.slots, &sum);
    assert_int_equal(counter_get(&sum.gets), EPOCH_SLOTS * (EPOCH_SLOTS - 1) / 2);
    struct epoch_slot *again = epoch_enter(&e);
    epoch_leave(again);
    assert_true(epoch_enter(&e) == again); /* the last one, found at once */
    epoch_leave(again);
    epoch_free(&e);
}

enum { READERS = 3, SWAPS = 20000 };

struct race {
    struct epoch e;
    _Atomic(struct object *) current;
    _Atomic bool stop;
    _Atomic size_t freed, wrong, reads;
};

static void read_until_stopped(void *ctx)
{
    struct race *r = ctx;
    uint64_t last = 0;
    while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
        struct epoch_slot *slot = epoch_enter(&r->e);
        const struct object *o = atomic_load_explicit(&r->current, memory_order_acquire);
        const uint64_t value = o->value;
        if (o->inverse != ~value || value < last)
            atomic_fetch_add(&r->wrong, 1);
        last = value;
        counter_add(&slot->count.gets, 1);
        epoch_leave(slot);
        atomic_fetch_add_explicit(&r->reads, 1, memory_order_relaxed);
    }
}

static void readers_never_see_a_freed_object(void **state)
{
    (void)state;
    static struct race r;
    struct test_op t;
    struct thread threads[READERS];
    test_op_init(&t);
    memset(&r, 0, sizeof r);
    assert_status(&t.op, epoch_init(&t.op, &r.e, &alloc_libc), TAMIZ_OK);
    atomic_store(&r.current, object_new(1, &r.freed));
    for (size_t i = 0; i < READERS; i++)
        assert_status(&t.op, thread_start(&t.op, &threads[i], "reader", read_until_stopped, &r),
                      TAMIZ_OK);
    for (uint64_t i = 2; i < SWAPS + 2; i++) {
        struct object *old = atomic_exchange(&r.current, object_new(i, &r.freed));
        epoch_retire(&r.e, &old->retired);
        if (i % 64 == 0)
            thread_yield();
    }
    while (atomic_load(&r.reads) < 1000) /* on a busy machine they may not have begun */
        thread_yield();
    atomic_store(&r.stop, true);
    for (size_t i = 0; i < READERS; i++)
        thread_join(&threads[i]);
    assert_int_equal(r.wrong, 0);
    assert_false(epoch_reclaim(&r.e));
    assert_int_equal(r.freed, SWAPS);
    struct counters sum = {0};
    epoch_counters(r.e.slots, &sum);
    assert_int_equal(counter_get(&sum.gets), r.reads);
    epoch_retire(&r.e, &atomic_load(&r.current)->retired);
    epoch_free(&r.e);
    assert_int_equal(r.freed, SWAPS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_freed_when_its_last_reader_has_left),
        cmocka_unit_test(freeing_the_epoch_frees_what_waits),
        cmocka_unit_test(all_slots_are_distinct_and_their_counters_add_up),
        cmocka_unit_test(readers_never_see_a_freed_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
