/* SPDX-License-Identifier: MIT
 *
 * Damage of every kind: it is either an error that names the file, or all reads are right.
 */
#include "kit.h"
#include "repair.h"

struct setting {
    struct kit k;
    struct model m;
    struct table_summary s;
    struct buf bytes;
};

static void setting_make(struct setting *s, uint64_t seed, const char *filter, enum codec codec)
{
    struct test_random random = test_random_start(seed);
    kit_make(&s->k, 1 << 16);
    model_make(&s->m, &random, 30, 12);
    struct table_build_options options = kit_options(filter, codec);
    options.block_bytes = 256;
    kit_build(&s->k, "t.sst", &s->m, &options, &s->s);
    kit_read_file(&s->k, "t.sst", &s->bytes);
}

static void setting_free(struct setting *s)
{
    buf_free(&s->bytes);
    model_free(&s->m);
    kit_free(&s->k);
}

static void assert_named(struct kit *k, tamiz_status st)
{
    assert_true(st == TAMIZ_CORRUPTION || st == TAMIZ_NOT_SUPPORTED);
    assert_int_equal(st, k->t.op.status);
    assert_non_null(strstr(k->t.op.text, "damaged.sst"));
    op_forgive(&k->t.op);
}

/* Every key, one between each, and a walk. Returns how many of those were errors. */
static size_t assert_right_or_error(struct kit *k, const struct model *m, struct table *t)
{
    size_t errors = 0;
    for (uint64_t number = 0; number <= 25; number++) {
        struct version v;
        version_key(&v, number);
        const struct lookup lookup = lookup_make(key_of(&v), SEQ_MAX);
        const struct answer a = kit_get(k, t, &lookup, &kit_read);
        if (a.status < 0) {
            assert_named(k, a.status);
            errors++;
        } else {
            assert_true(kit_right(m, &lookup, &a));
        }
    }
    struct iter *it = table_iter(&k->t.op, t, &kit_read);
    if (!it) {
        assert_named(k, k->t.op.status);
        return errors + 1;
    }
    size_t at = 0;
    for (iter_seek_first(it); it->valid; iter_next(it), at++)
        assert_true(at < m->count && it->stamp == m->versions[at].stamp &&
                    slice_equal(it->key, key_of(&m->versions[at])) &&
                    slice_equal(it->value, value_of(&m->versions[at])));
    if (it->status < 0) {
        assert_named(k, it->status);
        errors++;
    } else {
        assert_int_equal(at, m->count);
    }
    iter_close(it);
    return errors;
}

static void every_truncation_is_an_error(void **state)
{
    (void)state;
    struct setting s;
    setting_make(&s, 71, "bloom:10", CODEC_NONE);
    for (size_t size = 0; size < s.bytes.size; size++) {
        kit_write_file(&s.k, "damaged.sst", s.bytes.data, size);
        struct table *t = kit_table(&s.k, "damaged.sst");
        assert_named(&s.k, table_load(&s.k.t.op, t));
        table_free(t);
    }
    setting_free(&s);
}

static void check_flips(uint64_t seed, const char *filter, enum codec codec)
{
    struct setting s;
    setting_make(&s, seed, filter, codec);
    for (size_t i = 0; i < s.bytes.size; i++) {
        for (unsigned k = 0; k < 2; k++) {
            const uint8_t flip = (uint8_t)(k ? 0xff : 1u << (i % 8));
            s.bytes.data[i] ^= flip;
            kit_write_file(&s.k, "damaged.sst", s.bytes.data, s.bytes.size);
            s.bytes.data[i] ^= flip;
            struct table *t = kit_table(&s.k, "damaged.sst");
            const size_t errors = assert_right_or_error(&s.k, &s.m, t);
            const bool ignored = table_load(&s.k.t.op, t) == TAMIZ_OK && *table_filter_missing(t) &&
                                 strcmp(filter, "none") != 0;
            op_forgive(&s.k.t.op);
            assert_true(errors > 0 || ignored); /* no flip goes unnoticed */
            table_free(t);
        }
    }
    setting_free(&s);
}

static void every_flipped_byte_is_an_error_or_leaves_all_reads_right(void **state)
{
    (void)state;
    check_flips(72, "none", CODEC_NONE);
    check_flips(73, "bloom:10", CODEC_ZSTD);
}

static struct extent filter_of(const struct buf *bytes)
{
    return repair_extent(bytes->data + bytes->size - TABLE_FOOTER_SIZE + 32);
}

static void a_damaged_filter_is_told_once_counted_each_time_and_never_believed(void **state)
{
    (void)state;
    struct setting s;
    setting_make(&s, 74, "blocked:10", CODEC_NONE);
    const struct extent e = filter_of(&s.bytes);
    for (uint64_t i = 0; i < extent_whole(e); i += 3) {
        memset(s.k.events, 0, sizeof s.k.events);
        memset(&s.k.t.count, 0, sizeof s.k.t.count);
        s.bytes.data[e.offset + i] ^= 0x10;
        kit_write_file(&s.k, "damaged.sst", s.bytes.data, s.bytes.size);
        s.bytes.data[e.offset + i] ^= 0x10;
        struct table *t = kit_table(&s.k, "damaged.sst");
        assert_int_equal(assert_right_or_error(&s.k, &s.m, t), 0);
        assert_int_equal(s.k.events[TAMIZ_EVENT_FILTER_IGNORED], 1);
        assert_non_null(strstr(table_filter_missing(t), "damaged.sst"));
        assert_null(table_filter(t)->family);
        const struct level_counters *at = &s.k.t.count.level[1];
        assert_int_equal(counter_get(&at->steps[TAMIZ_STEP_NO_FILTER]), 26);
        assert_int_equal(counter_get(&at->true_positives) + counter_get(&at->false_positives), 0);
        table_free(t);
    }
    setting_free(&s);
}

static void a_filter_of_unknown_kind_or_newer_format_is_ignored(void **state)
{
    (void)state;
    struct setting s;
    setting_make(&s, 75, "blocked:10", CODEC_NONE);
    const struct extent e = filter_of(&s.bytes);
    for (size_t i = 4; i < 8; i++) { /* format, family version, family */
        const uint8_t before = s.bytes.data[e.offset + i];
        s.bytes.data[e.offset + i] = 99;
        repair_block(s.bytes.data, s.bytes.size, e, 0x1234);
        kit_write_file(&s.k, "damaged.sst", s.bytes.data, s.bytes.size);
        s.bytes.data[e.offset + i] = before;
        struct table *t = kit_table(&s.k, "damaged.sst");
        assert_int_equal(assert_right_or_error(&s.k, &s.m, t), 0);
        assert_null(table_filter(t)->family);
        assert_true(*table_filter_missing(t));
        table_free(t);
    }
    assert_int_equal(s.k.events[TAMIZ_EVENT_FILTER_IGNORED], 4);
    setting_free(&s);
}

static void a_block_of_another_place_or_table_is_noticed(void **state)
{
    (void)state;
    struct setting s;
    setting_make(&s, 76, "none", CODEC_NONE);
    /* The same bytes under another id: only the header's and the footer's checks are made right. */
    store_u64(s.bytes.data + 16, 0x5678);
    store_u64(s.bytes.data + 32, checksum(0x5678, 0, slice_of(s.bytes.data, 32)));
    uint8_t *footer = s.bytes.data + s.bytes.size - TABLE_FOOTER_SIZE;
    store_u64(footer + 80, 0x5678);
    store_u64(footer + 96,
              checksum(0x5678, s.bytes.size - TABLE_FOOTER_SIZE, slice_of(footer, 96)));
    kit_write_file(&s.k, "damaged.sst", s.bytes.data, s.bytes.size);
    struct table *t = kit_table(&s.k, "damaged.sst");
    assert_named(&s.k, table_load(&s.k.t.op, t));
    table_free(t);
    setting_free(&s);
}

static void an_index_of_another_number_of_blocks_is_refused(void **state)
{
    (void)state;
    struct setting s;
    setting_make(&s, 79, "none", CODEC_NONE);
    const struct extent e = repair_extent(s.bytes.data + s.bytes.size - TABLE_FOOTER_SIZE + 64);
    struct reader r = reader_of(slice_of(s.bytes.data + e.offset, (size_t)e.size));
    for (int i = 0; i < 5; i++)
        (void)reader_varint(&r);
    s.bytes.data[r.at - s.bytes.data] ^= 1; /* data blocks */
    repair_table(&s.k.t.op, s.bytes.data, s.bytes.size, &alloc_libc);
    kit_write_file(&s.k, "damaged.sst", s.bytes.data, s.bytes.size);
    struct table *t = kit_table(&s.k, "damaged.sst");
    assert_named(&s.k, table_load(&s.k.t.op, t));
    table_free(t);
    setting_free(&s);
}

/* ---- mutations behind the checksums ---- */

struct limit {
    size_t now, most;
};

static void *limited_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct limit *limit = ctx;
    limit->now = limit->now - (p ? old_size : 0) + new_size;
    if (limit->now > limit->most)
        limit->most = limit->now;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, new_size);
}

/* Whether it could be opened. */
static bool use_everything(struct kit *k, const char *path, const struct table_world *world)
{
    struct table *t = table_new(&k->t.op, world, path, 7, 0, 0);
    for (uint64_t number = 0; number <= 25; number += 4) {
        struct version v;
        version_key(&v, number);
        const struct lookup lookup = lookup_make(key_of(&v), 20);
        (void)kit_get(k, t, &lookup, &kit_read);
        op_forgive(&k->t.op);
    }
    struct iter *it = table_iter(&k->t.op, t, &kit_read);
    if (it) {
        size_t steps = 0;
        for (iter_seek_first(it); it->valid && steps < 1000; iter_next(it))
            steps++;
        for (iter_seek_last(it); it->valid && steps < 2000; iter_prev(it))
            steps++;
        iter_seek(it, slice_of_text("user00000010"), 0);
        iter_seek_before(it, slice_of_text("user00000010"), 0);
        iter_close(it);
    }
    op_forgive(&k->t.op);
    tamiz_report report = TAMIZ_REPORT_INIT;
    (void)table_verify(&k->t.op, t, &report);
    op_forgive(&k->t.op);
    table_free(t);
    return it != NULL;
}

static void mutate(struct test_random *random, uint8_t *bytes, size_t size)
{
    for (uint64_t flips = 1 + test_random_below(random, 4); flips; flips--) {
        static const uint8_t favourites[] = {0, 1, 2, 0x7f, 0x80, 0xff};
        /* More often where lengths and places are: the last third. */
        const size_t low = test_random_below(random, 2) ? size * 2 / 3 : 0;
        const size_t at = low + test_random_below(random, size - low);
        bytes[at] = test_random_below(random, 2) ? favourites[test_random_below(random, 6)]
                                                 : (uint8_t)test_random_u64(random);
    }
}

static void check_mutations(uint64_t seed, const char *filter, enum codec codec)
{
    struct setting s;
    struct limit limit = {0, 0};
    const struct alloc limited = {{limited_resize, &limit}, NULL};
    setting_make(&s, seed, filter, codec);
    struct cache *cache = cache_new(&limited, &s.k.epoch, 1 << 16);
    struct table_world world = s.k.world;
    world.alloc = &limited;
    world.cache = cache;
    struct test_random random = {seed};
    uint8_t *copy = mem_new(&alloc_libc, s.bytes.size);
    int opened = 0;
    for (int round = 0; round < 4000; round++) {
        memcpy(copy, s.bytes.data, s.bytes.size);
        mutate(&random, copy, s.bytes.size);
        repair_table(&s.k.t.op, copy, s.bytes.size, &alloc_libc);
        kit_write_file(&s.k, "damaged.sst", copy, s.bytes.size);
        opened += use_everything(&s.k, "damaged.sst", &world);
    }
    mem_free(&alloc_libc, copy, s.bytes.size);
    cache_free(cache);
    (void)epoch_reclaim(&s.k.epoch);
    assert_int_equal(limit.now, 0);

    assert_true(opened > 800); /* else the checksums were not made right */
    print_message("%d of 4000 opened, %zu bytes at most\n", opened, limit.most);
    assert_true(limit.most < (size_t)40 << 20);
    setting_free(&s);
}

static void mutations_behind_the_checksums_stay_in_bounds(void **state)
{
    (void)state;
    check_mutations(77, "bloom:10", CODEC_NONE);
    check_mutations(78, "none", CODEC_ZSTD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(every_flipped_byte_is_an_error_or_leaves_all_reads_right),
        cmocka_unit_test(a_damaged_filter_is_told_once_counted_each_time_and_never_believed),
        cmocka_unit_test(a_filter_of_unknown_kind_or_newer_format_is_ignored),
        cmocka_unit_test(a_block_of_another_place_or_table_is_noticed),
        cmocka_unit_test(an_index_of_another_number_of_blocks_is_refused),
        cmocka_unit_test(mutations_behind_the_checksums_stay_in_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
