/* SPDX-License-Identifier: MIT */
#include "table/merge.h"

#include "kit.h"

/* ---- a source over a part of a model ---- */

struct part {
    struct iter base;
    struct model m;
    size_t at; /* m.count: invalid */
    uint8_t key[24];
    bool *closed;
    int fail_after; /* moves until it fails; below 0: never */
};

static void part_show(struct part *p, size_t at)
{
    p->at = at;
    p->base.valid = at < p->m.count;
    p->base.status = TAMIZ_OK;
    if (p->fail_after >= 0 && p->fail_after-- == 0) {
        p->base.valid = false;
        p->base.status = op_fail(p->base.op, TAMIZ_CORRUPTION, "as planned");
    }
    if (!p->base.valid)
        return;
    const struct version *v = &p->m.versions[at];
    memcpy(p->key, v->key, sizeof p->key); /* as a block's iterator: gone when it moves */
    p->base.key = slice_of(p->key, v->key_size);
    p->base.stamp = v->stamp;
    p->base.value = value_of(v);
}

static void part_first(struct iter *it)
{
    part_show((struct part *)it, 0);
}

static void part_last(struct iter *it)
{
    struct part *p = (struct part *)it;
    part_show(p, p->m.count ? p->m.count - 1 : 0);
}

static void part_seek(struct iter *it, struct slice key, uint64_t stamp)
{
    struct part *p = (struct part *)it;
    part_show(p, model_lower_bound(&p->m, key, stamp));
}

static void part_seek_before(struct iter *it, struct slice key, uint64_t stamp)
{
    struct part *p = (struct part *)it;
    const size_t at = model_lower_bound(&p->m, key, stamp);
    part_show(p, at ? at - 1 : p->m.count);
}

static void part_next(struct iter *it)
{
    struct part *p = (struct part *)it;
    assert_true(it->valid);
    memset(p->key, 0xee, sizeof p->key);
    part_show(p, p->at + 1);
}

static void part_prev(struct iter *it)
{
    struct part *p = (struct part *)it;
    assert_true(it->valid);
    memset(p->key, 0xee, sizeof p->key);
    part_show(p, p->at ? p->at - 1 : p->m.count);
}

static void part_close(struct iter *it)
{
    struct part *p = (struct part *)it;
    *p->closed = true;
    mem_free(&alloc_libc, p->m.versions, p->m.room * sizeof *p->m.versions);
    mem_free(&alloc_libc, p, sizeof *p);
}

static const struct iter_ops part_ops = {part_first, part_last, part_seek,  part_seek_before,
                                         part_next,  part_prev, part_close, NULL,
                                         NULL,       NULL};

static struct part *part_new(struct op *op, size_t room, bool *closed)
{
    struct part *p = mem_new_array(&alloc_libc, 1, sizeof *p);
    p->base.ops = &part_ops;
    p->base.op = op;
    p->m.versions = mem_new_array(&alloc_libc, room, sizeof *p->m.versions);
    p->m.room = room;
    p->closed = closed;
    p->fail_after = -1;
    return p;
}

/* ---- tests ---- */

enum { SOURCES_MOST = 9 };

struct setting {
    struct test_op t;
    struct model whole;
    struct part *parts[SOURCES_MOST];
    struct iter *it;
    bool closed[SOURCES_MOST];
    size_t n;
};

static void setting_make(struct setting *s, struct test_random *random, size_t n, size_t count)
{
    test_op_init(&s->t);
    s->n = n;
    model_make(&s->whole, random, count, 1 + count / 4);
    struct iter *sources[SOURCES_MOST];
    for (size_t i = 0; i < n; i++) {
        s->closed[i] = false;
        s->parts[i] = part_new(&s->t.op, count, &s->closed[i]);
        sources[i] = &s->parts[i]->base;
    }
    if (n == 0)
        s->whole.count = 0;
    for (size_t i = 0; i < s->whole.count; i++) {
        struct model *m = &s->parts[test_random_below(random, n)]->m;
        m->versions[m->count++] = s->whole.versions[i];
    }
    s->it = merge_iter(&s->t.op, sources, n);
    assert_non_null(s->it);
}

static void setting_free(struct setting *s)
{
    iter_close(s->it);
    for (size_t i = 0; i < s->n; i++)
        assert_true(s->closed[i]);
    model_free(&s->whole);
}

static void assert_shows(const struct setting *s, size_t i)
{
    assert_status(&s->t.op, s->it->status, TAMIZ_OK);
    assert_int_equal(s->it->valid, i < s->whole.count);
    if (i >= s->whole.count)
        return;
    const struct version *v = &s->whole.versions[i];
    assert_true(slice_equal(s->it->key, key_of(v)) && s->it->stamp == v->stamp &&
                slice_equal(s->it->value, value_of(v)));
}

static void many_sources_walk_as_one(void **state)
{
    (void)state;
    struct test_random random = test_random_start(61);
    for (size_t n = 0; n <= SOURCES_MOST; n++) {
        for (size_t count = 0; count <= 300; count += 75) {
            struct setting s;
            setting_make(&s, &random, n, count);
            size_t at = 0;
            for (iter_seek_first(s.it); s.it->valid; iter_next(s.it))
                assert_shows(&s, at++);
            assert_int_equal(at, s.whole.count);
            for (iter_seek_last(s.it); s.it->valid; iter_prev(s.it))
                assert_shows(&s, --at);
            assert_int_equal(at, 0);
            setting_free(&s);
        }
    }
}

static void seeks_and_turns_stay_in_order(void **state)
{
    (void)state;
    struct test_random random = test_random_start(62);
    for (size_t n = 1; n <= SOURCES_MOST; n++) {
        struct setting s;
        setting_make(&s, &random, n, 200);
        for (int probe = 0; probe < 500; probe++) {
            struct version v;
            version_key(&v, test_random_below(&random, 110));
            const uint64_t stamp = probe % 3 == 0   ? UINT64_MAX
                                   : probe % 3 == 1 ? 0
                                                    : stamp_of(test_random_below(&random, 50), 1);
            size_t at = model_lower_bound(&s.whole, key_of(&v), stamp);
            if (probe % 2) {
                iter_seek(s.it, key_of(&v), stamp);
            } else {
                iter_seek_before(s.it, key_of(&v), stamp);
                at = at == 0 ? s.whole.count : at - 1;
            }
            assert_shows(&s, at);
            for (uint64_t hop = test_random_below(&random, 15); hop && s.it->valid; hop--) {
                const bool onwards = test_random_below(&random, 2);
                if (onwards)
                    iter_next(s.it);
                else
                    iter_prev(s.it);
                at = onwards ? at + 1 : at == 0 ? s.whole.count : at - 1;
                assert_shows(&s, at);
            }
        }
        setting_free(&s);
    }
}

static void the_same_version_in_two_sources_is_shown_twice_in_a_fixed_order(void **state)
{
    (void)state;
    struct test_op t;
    test_op_init(&t);
    bool closed[3] = {false};
    struct iter *sources[3];
    for (size_t i = 0; i < 3; i++) {
        struct part *p = part_new(&t.op, 2, &closed[i]);
        for (size_t j = 0; j < 2; j++) {
            struct version *v = &p->m.versions[p->m.count++];
            version_key(v, j);
            v->stamp = stamp_of(5, KIND_PUT);
            v->value[0] = (uint8_t)('a' + i);
            v->value_size = 1;
        }
        sources[i] = &p->base;
    }
    struct iter *it = merge_iter(&t.op, sources, 3);
    iter_seek_first(it);
    const char wanted[] = "abcabc";
    /* Forwards to each place, one back, one forward: the order is the same from either side. */
    for (size_t i = 0; i < 6; i++) {
        assert_true(it->valid && it->value.data[0] == wanted[i]);
        if (i > 0) {
            iter_prev(it);
            assert_true(it->valid && it->value.data[0] == wanted[i - 1]);
            iter_next(it);
            assert_true(it->valid && it->value.data[0] == wanted[i]);
        }
        iter_next(it);
    }
    assert_false(it->valid);
    iter_close(it);
    assert_true(closed[0] && closed[1] && closed[2]);
}

static void an_error_of_one_source_ends_the_merge(void **state)
{
    (void)state;
    struct test_random random = test_random_start(63);
    for (int after = 0; after < 40; after++) {
        struct setting s;
        setting_make(&s, &random, 4, 300);
        s.parts[2]->fail_after = after;
        size_t at = 0;
        for (iter_seek_first(s.it); s.it->valid; iter_next(s.it))
            at++;
        assert_int_equal(s.it->status, TAMIZ_CORRUPTION);
        assert_true(at < s.whole.count);
        assert_string_equal(s.t.op.text, "as planned");
        op_forgive(&s.t.op);
        iter_seek_first(s.it); /* a new seek begins anew */
        assert_shows(&s, 0);
        setting_free(&s);
    }
}

static void the_key_sought_may_be_the_one_shown(void **state)
{
    (void)state;
    struct test_random random = test_random_start(64);
    struct setting s;
    setting_make(&s, &random, 5, 200);
    iter_seek_first(s.it);
    for (int hop = 0; hop < 20; hop++) {
        const size_t at = model_lower_bound(&s.whole, s.it->key, 0);
        iter_seek(s.it, s.it->key, 0);
        assert_shows(&s, at);
        if (!s.it->valid)
            break;
    }
    setting_free(&s);
}

/* The oldest version of some keys becomes the oldest that there can be: what seeking to the end of
 * a key's versions finds at once, and the merge faces forwards. */
static void make_oldest(struct setting *s, struct test_random *random)
{
    for (size_t i = 0; i < s->whole.count; i++) {
        struct version *v = &s->whole.versions[i];
        const bool oldest = i + 1 == s->whole.count || !slice_equal(key_of(v), key_of(v + 1));
        if (!oldest || test_random_below(random, 2))
            continue;
        for (size_t k = 0; k < s->n; k++)
            for (size_t j = 0; j < s->parts[k]->m.count; j++)
                if (version_order(&s->parts[k]->m.versions[j], v) == 0)
                    s->parts[k]->m.versions[j].stamp = 0;
        v->stamp = 0;
    }
}

/* However the merge came to where it stands, a skip either says that it moved nothing, or moved
 * past the key; and where it says the former, it says the latter after a step that way. */
static void a_skip_moves_past_its_key_or_says_that_it_did_not(void **state)
{
    (void)state;
    struct test_random random = test_random_start(65);
    size_t moved = 0, refused = 0;
    for (size_t n = 2; n <= SOURCES_MOST; n++) {
        struct setting s;
        setting_make(&s, &random, n, 200);
        make_oldest(&s, &random);
        const struct merge_past all = {.behind = 0, .seq = 1};
        for (int probe = 0; probe < 2000; probe++) {
            struct version v, to;
            const bool backwards = test_random_below(&random, 2);
            version_key(&v, test_random_below(&random, 110));
            version_key(&to, test_random_below(&random, 110));
            const size_t after = model_lower_bound(&s.whole, key_of(&v), 0);
            size_t at = after;
            if (probe % 3 == 0) {
                iter_seek(s.it, key_of(&v), 0);
            } else if (probe % 3 == 1) {
                iter_seek_before(s.it, key_of(&v), 0);
                at--;
            } else {
                iter_seek_after(s.it, key_of(&v));
                if (at >= s.whole.count || s.whole.versions[at].stamp ||
                    !slice_equal(key_of(&s.whole.versions[at]), key_of(&v)))
                    at--;
            }
            assert_shows(&s, at < s.whole.count ? at : s.whole.count);
            if (!s.it->valid || (slice_compare(s.it->key, key_of(&to)) >= 0) != backwards)
                continue; /* the key is not in this direction */
            size_t past = model_lower_bound(&s.whole, key_of(&to), UINT64_MAX);
            past = !backwards ? past : past ? past - 1 : s.whole.count;
            bool did = merge_skip(s.it, &all, key_of(&to));
            moved += did;
            if (!did) {
                refused++;
                assert_shows(&s, at);
                if (backwards)
                    iter_prev(s.it);
                else
                    iter_next(s.it);
                if (!s.it->valid || (slice_compare(s.it->key, key_of(&to)) >= 0) != backwards)
                    continue; /* that one step went past it */
                did = merge_skip(s.it, &all, key_of(&to));
            }
            assert_true(did);
            assert_shows(&s, past);
        }
        setting_free(&s);
    }
    assert_true(moved > 1000 && refused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_sources_walk_as_one),
        cmocka_unit_test(seeks_and_turns_stay_in_order),
        cmocka_unit_test(the_same_version_in_two_sources_is_shown_twice_in_a_fixed_order),
        cmocka_unit_test(an_error_of_one_source_ends_the_merge),
        cmocka_unit_test(the_key_sought_may_be_the_one_shown),
        cmocka_unit_test(a_skip_moves_past_its_key_or_says_that_it_did_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
