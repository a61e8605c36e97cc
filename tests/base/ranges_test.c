/* SPDX-License-Identifier: MIT
 *
 * Ranges stacked by age, against the obvious way: every key of a small alphabet asked of every
 * range.
 */
#include "base/ranges.h"

#include <stdlib.h>

#include "base/coding.h"
#include "base/key.h"
#include "base/skyline.h"
#include "support/alloc_fail.h"
#include "support/test.h"

enum { KEYS = 40, DELETES = 60 };

static struct slice key(int i)
{
    static char text[KEYS + 1][4];
    (void)snprintf(text[i], sizeof text[i], "%02d", i);
    return slice_of_text(text[i]);
}

/* Any two keys in order; now and then all of them, or the same beginning as most. */
static struct range_delete any_delete(struct test_random *r, uint64_t seq)
{
    const int from = test_random_below(r, 3) ? (int)test_random_below(r, KEYS) : 0;
    const int to = from + 1 + (int)test_random_below(r, (uint64_t)(KEYS - from));
    return (struct range_delete){key(from), key(to), seq};
}

static bool covers(const struct range_delete *d, struct slice k)
{
    return slice_compare(d->from, k) <= 0 && slice_compare(k, d->to) < 0;
}

static uint64_t newest_over(const struct range_delete *list, size_t n, struct slice k, uint64_t max)
{
    uint64_t best = 0;
    for (size_t i = 0; i < n; i++)
        if (covers(&list[i], k) && list[i].seq <= max && list[i].seq > best)
            best = list[i].seq;
    return best;
}

struct walk {
    struct slice end;
    size_t count;
};

static void see(void *ctx, const struct cover *piece)
{
    struct walk *w = ctx;
    assert_true(slice_compare(piece->from, piece->to) < 0);
    assert_true(w->count++ == 0 || slice_compare(w->end, piece->from) <= 0);
    w->end = piece->to;
}

static void a_skyline_shows_the_newest_range_over_each_key_at_each_moment(void **state)
{
    (void)state;
    struct test_random r = test_random_start(11);
    for (int round = 0; round < 100; round++) {
        struct arena arena = arena_init(&alloc_libc, 1 << 12, 1 << 16);
        struct range_delete list[DELETES];
        const struct skyline *at[DELETES + 1] = {NULL};
        for (size_t i = 0; i < DELETES; i++) {
            list[i] = any_delete(&r, i + 1);
            const struct cover c = {list[i].from, list[i].to, i + 1, 0};
            at[i + 1] = skyline_add(&arena, at[i], &c);
            assert_non_null(at[i + 1]);
        }
        for (size_t moment = 0; moment <= DELETES; moment += 1 + test_random_below(&r, 9)) {
            struct walk w = {.count = 0};
            skyline_walk(at[moment], see, &w);
            for (int k = 0; k <= KEYS; k++) {
                const struct cover *c = skyline_find(at[moment], key(k));
                const uint64_t want = newest_over(list, moment, key(k), UINT64_MAX);
                assert_int_equal(c ? c->seq : 0, want);
                const struct cover *next = skyline_from(at[moment], key(k));
                assert_true(!c || c == next);
                assert_true(!next || slice_compare(next->to, key(k)) > 0);
            }
        }
        arena_free(&arena);
    }
}

/* Ranges that all begin at one key, and one large range that many small ones cut up: neither may
 * make a deep tree, nor n^2 pieces. */
static void a_skyline_stays_small_and_shallow(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    struct arena arena = arena_init(&alloc_libc, 1 << 16, 1 << 20);
    static char text[MANY + 1][16];
    const struct skyline *s = NULL;
    for (int i = 0; i <= MANY; i++)
        (void)snprintf(text[i], sizeof text[i], "%06d", i);
    for (int i = 1; i < MANY; i++) {
        const struct cover c = {slice_of_text(""), slice_of_text(text[i]), (uint64_t)i, 0};
        s = skyline_add(&arena, s, &c);
    }
    struct walk w = {.count = 0};
    skyline_walk(s, see, &w);
    assert_int_equal(w.count, 1); /* the newest hides all others */
    const struct cover all = {slice_of_text(""), slice_of_text("z"), MANY, 0};
    s = skyline_add(&arena, NULL, &all);
    const size_t before = arena.total_bytes;
    for (int i = MANY - 2; i > 0; i -= 2) { /* each cuts the left rest of the large one */
        const struct cover c = {slice_of_text(text[i]), slice_of_text(text[i + 1]),
                                (uint64_t)(2 * MANY - i), 0};
        s = skyline_add(&arena, s, &c);
        assert_non_null(s);
    }
    w.count = 0;
    skyline_walk(s, see, &w);
    assert_true(w.count > MANY / 2);
    /* A path is some tens of nodes of 80 bytes, several times over; a list would be thousands. */
    assert_true((arena.total_bytes - before) / (MANY / 2) < 20000);
    arena_free(&arena);
}

static void pieces_have_what_any_snapshot_can_tell_apart(void **state)
{
    (void)state;
    struct test_random r = test_random_start(12);
    for (int round = 0; round < 300; round++) {
        struct test_op t;
        struct range_delete list[DELETES];
        const size_t n = test_random_below(&r, DELETES + 1);
        uint64_t snapshots[5];
        const size_t k = test_random_below(&r, 6);
        test_op_init(&t);
        for (size_t i = 0; i < n; i++)
            list[i] = any_delete(&r, 1 + test_random_below(&r, 100));
        for (size_t i = 0; i < k; i++)
            snapshots[i] = (i ? snapshots[i - 1] : 0) + 1 + test_random_below(&r, 25);
        struct ranges pieces;
        assert_status(&t.op, ranges_build(&t.op, &alloc_libc, list, n, snapshots, k, &pieces),
                      TAMIZ_OK);
        for (int i = 0; i <= KEYS; i++) {
            for (size_t s = 0; s <= k; s++) { /* now, and at each snapshot */
                const uint64_t at = s < k ? snapshots[s] : UINT64_MAX;
                assert_int_equal(ranges_cover(&pieces, key(i), at),
                                 newest_over(list, n, key(i), at));
            }
        }
        for (size_t i = 0; i < pieces.count; i++) {
            assert_true(pieces.list[i].seq_count >= 1 && pieces.list[i].seq_count <= k + 1);
            assert_true(i == 0 || slice_compare(pieces.list[i - 1].to, pieces.list[i].from) <= 0);
        }
        ranges_free(&pieces);
    }
}

static void encode(const struct ranges *r, struct buf *out)
{
    buf_varint(out, r->count);
    for (size_t i = 0; i < r->count; i++)
        range_encode(out, &r->list[i]);
}

static void bytes_come_back_as_they_were_and_nothing_else_is_taken(void **state)
{
    (void)state;
    struct test_random r = test_random_start(13);
    struct test_op t;
    struct range_delete list[DELETES];
    const uint64_t snapshots[] = {20, 40, 60};
    struct buf bytes = buf_init(&alloc_libc);
    struct ranges made, read;
    test_op_init(&t);
    for (size_t i = 0; i < DELETES; i++)
        list[i] = any_delete(&r, i + 1);
    assert_status(&t.op, ranges_build(&t.op, &alloc_libc, list, DELETES, snapshots, 3, &made),
                  TAMIZ_OK);
    encode(&made, &bytes);
    assert_status(&t.op, ranges_decode(&t.op, &alloc_libc, buf_slice(&bytes), &read), TAMIZ_OK);
    assert_int_equal(read.count, made.count);
    for (size_t i = 0; i < made.count; i++) {
        assert_true(slice_equal(read.list[i].from, made.list[i].from));
        assert_true(slice_equal(read.list[i].to, made.list[i].to));
        assert_int_equal(read.list[i].seq_count, made.list[i].seq_count);
        assert_memory_equal(read.list[i].seqs, made.list[i].seqs, 8 * made.list[i].seq_count);
    }
    ranges_free(&read);
    for (size_t cut = 0; cut < bytes.size; cut++) {
        assert_int_equal(ranges_decode(&t.op, &alloc_libc, slice_of(bytes.data, cut), &read),
                         TAMIZ_CORRUPTION);
        ranges_free(&read);
        op_forgive(&t.op);
    }
    for (int i = 0; i < 3000; i++) { /* whatever comes of it lies in order */
        const size_t at = test_random_below(&r, bytes.size);
        const uint8_t had = bytes.data[at];
        bytes.data[at] = (uint8_t)test_random_u64(&r);
        if (ranges_decode(&t.op, &alloc_libc, buf_slice(&bytes), &read) == TAMIZ_OK)
            for (size_t k = 1; k < read.count; k++)
                assert_true(slice_compare(read.list[k - 1].to, read.list[k].from) <= 0);
        ranges_free(&read);
        op_forgive(&t.op);
        bytes.data[at] = had;
    }
    ranges_free(&made);
    buf_free(&bytes);
}

static void memory_that_runs_out_is_not_taken_for_damage(void **state)
{
    (void)state;
    struct test_random r = test_random_start(17);
    struct test_op t;
    struct range_delete list[DELETES];
    struct buf bytes = buf_init(&alloc_libc);
    struct ranges made, read;
    struct alloc_fail memory;
    tamiz_status st = TAMIZ_OUT_OF_MEMORY;
    test_op_init(&t);
    for (size_t i = 0; i < DELETES; i++)
        list[i] = any_delete(&r, i + 1);
    assert_status(&t.op, ranges_build(&t.op, &alloc_libc, list, DELETES, NULL, 0, &made), TAMIZ_OK);
    encode(&made, &bytes);
    alloc_fail_init(&memory);
    t.op.alloc = &memory.alloc;
    for (uint64_t nth = 1; st == TAMIZ_OUT_OF_MEMORY; nth++) {
        op_forgive(&t.op);
        alloc_fail_at(&memory, nth, false);
        st = ranges_decode(&t.op, &memory.alloc, buf_slice(&bytes), &read);
        ranges_free(&read);
    }
    assert_status(&t.op, st, TAMIZ_OK);
    alloc_fail_done(&memory);
    ranges_free(&made);
    buf_free(&bytes);
}

static void the_last_key_below_an_end_is_known_where_it_ends_in_zero(void **state)
{
    (void)state;
    assert_true(slice_equal(range_last_key(slice_of("ab\0", 3)), slice_of("ab", 2)));
    assert_true(slice_equal(range_last_key(slice_of("\0", 1)), slice_of("", 0)));
    assert_true(slice_equal(range_last_key(slice_of("ab", 2)), slice_of("ab", 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_skyline_shows_the_newest_range_over_each_key_at_each_moment),
        cmocka_unit_test(a_skyline_stays_small_and_shallow),
        cmocka_unit_test(pieces_have_what_any_snapshot_can_tell_apart),
        cmocka_unit_test(bytes_come_back_as_they_were_and_nothing_else_is_taken),
        cmocka_unit_test(memory_that_runs_out_is_not_taken_for_damage),
        cmocka_unit_test(the_last_key_below_an_end_is_known_where_it_ends_in_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
