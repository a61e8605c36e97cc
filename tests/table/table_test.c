/* SPDX-License-Identifier: MIT */
#include "table/table.h"

#include "base/checksum.h"
#include "kit.h"

/* What holds for every table holds for each of these. */
static const struct shape {
    const char *filter;
    enum codec codec;
    size_t cache_bytes;
} shapes[] = {
    {"none", CODEC_NONE, 1 << 20},    {"bloom:10", CODEC_NONE, 1 << 20},
    {"blocked:10", CODEC_ZSTD, 4096}, {"blocked:6", CODEC_NONE, 0},
    {"bloom:4", CODEC_ZSTD, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct setting {
    struct kit k;
    struct model m;
    struct table_summary s;
    struct table *t;
};

static void setting_make(struct setting *s, struct test_random *random, const struct shape *shape,
                         size_t count, uint64_t keys)
{
    kit_make(&s->k, shape->cache_bytes);
    model_make(&s->m, random, count, keys);
    const struct table_build_options options = kit_options(shape->filter, shape->codec);
    kit_build(&s->k, "t.sst", &s->m, &options, &s->s);
    s->t = kit_table(&s->k, "t.sst");
}

static void setting_free(struct setting *s)
{
    table_free(s->t);
    model_free(&s->m);
    kit_free(&s->k);
}

static void every_get_answers_as_the_model_does(void **state)
{
    (void)state;
    struct test_random random = test_random_start(41);
    for (size_t i = 0; i < SHAPES; i++) {
        struct setting s;
        setting_make(&s, &random, &shapes[i], 2000, 700);
        for (int probe = 0; probe < 3000; probe++) {
            struct version v;
            version_key(&v, test_random_below(&random, 1500)); /* odd, and above the last, too */
            const struct lookup lookup =
                lookup_make(key_of(&v), test_random_below(&random, KIT_SEQS + 2));
            struct table_read how = kit_read;
            how.use_filter = probe % 4 != 0;
            how.fill_cache = probe % 3 != 0;
            const struct answer a = kit_get(&s.k, s.t, &lookup, &how);
            assert_true(kit_right(&s.m, &lookup, &a));
        }
        assert_true(cache_bytes(s.k.cache) <= cache_capacity(s.k.cache));
        setting_free(&s);
    }
}

static void the_summary_and_the_properties_count_what_was_added(void **state)
{
    (void)state;
    struct test_random random = test_random_start(42);
    for (size_t i = 0; i < SHAPES; i++) {
        struct setting s;
        setting_make(&s, &random, &shapes[i], 1500, 400);
        uint64_t keys = 0, tombstones = 0, seq_min = UINT64_MAX, seq_max = 0;
        for (size_t j = 0; j < s.m.count; j++) {
            const struct version *v = &s.m.versions[j];
            keys += j == 0 || !slice_equal(key_of(v), key_of(v - 1));
            tombstones += stamp_kind(v->stamp) == KIND_DELETE;
            seq_min = stamp_seq(v->stamp) < seq_min ? stamp_seq(v->stamp) : seq_min;
            seq_max = stamp_seq(v->stamp) > seq_max ? stamp_seq(v->stamp) : seq_max;
        }
        assert_status(&s.k.t.op, table_load(&s.k.t.op, s.t), TAMIZ_OK);
        const struct table_properties *p = table_properties(s.t);
        assert_true(p->entries == s.m.count && p->keys == keys && p->tombstones == tombstones);
        assert_true(p->seq_min == seq_min && p->seq_max == seq_max);
        assert_true(s.s.entries == p->entries && s.s.keys == keys && s.s.tombstones == tombstones);
        assert_true(s.s.seq_min == seq_min && s.s.seq_max == seq_max);
        assert_true(table_file_size(s.t) == s.s.file_size && table_file_id(s.t) == 0x1234);
        assert_true(slice_equal(p->smallest, key_of(&s.m.versions[0])));
        assert_true(slice_equal(p->largest, key_of(&s.m.versions[s.m.count - 1])));
        assert_true((s.s.filter_bytes > 0) == (table_filter(s.t)->family != NULL));
        if (table_filter(s.t)->family)
            assert_true(table_filter(s.t)->keys == keys);
        assert_true(table_memory(s.t) > s.s.filter_bytes);
        setting_free(&s);
    }
}

static void verify_finds_nothing_in_a_sound_table(void **state)
{
    (void)state;
    struct test_random random = test_random_start(43);
    for (size_t i = 0; i < SHAPES; i++) {
        struct setting s;
        setting_make(&s, &random, &shapes[i], 1500, 400);
        tamiz_report report = TAMIZ_REPORT_INIT;
        assert_status(&s.k.t.op, table_verify(&s.k.t.op, s.t, &report), TAMIZ_OK);
        assert_true(report.files == 1 && report.blocks == table_blocks(s.t) &&
                    report.keys == s.s.keys && report.damaged == 0 && report.lost_bytes == 0);
        setting_free(&s);
    }
}

/* ---- counting ---- */

static uint64_t steps(const struct kit *k, tamiz_step_kind kind)
{
    return counter_get(&k->t.count.level[1].steps[kind]);
}

static void the_ledger_counts_each_probe_once_and_truly(void **state)
{
    (void)state;
    struct test_random random = test_random_start(44);
    const struct shape shape = {"bloom:3", CODEC_NONE, 1 << 20};
    struct setting s;
    setting_make(&s, &random, &shape, 1500, 400);
    uint64_t known = 0, unknown = 0, found = 0;
    const uint64_t probes = 4000;
    for (uint64_t probe = 0; probe < probes; probe++) {
        struct version v;
        version_key(&v, test_random_below(&random, 1000));
        const struct lookup lookup =
            lookup_make(key_of(&v), test_random_below(&random, KIT_SEQS + 2));
        const struct lookup any = lookup_make(key_of(&v), SEQ_MAX);
        if (model_get(&s.m, &any))
            known++;
        else
            unknown++;
        found += model_get(&s.m, &lookup) != NULL;
        (void)kit_get(&s.k, s.t, &lookup, &kit_read);
    }
    const struct level_counters *at = &s.k.t.count.level[1];
    const uint64_t negatives = steps(&s.k, TAMIZ_STEP_FILTER_NEGATIVE);
    const uint64_t maybes = steps(&s.k, TAMIZ_STEP_FILTER_MAYBE);
    assert_int_equal(negatives + maybes, probes);
    assert_int_equal(counter_get(&at->true_positives), known);
    assert_int_equal(counter_get(&at->false_positives) + negatives, unknown);
    assert_true(counter_get(&at->false_positives) > 0);
    const uint64_t share = (uint64_t)(table_filter(s.t)->expected_fpr * 1e9 + 0.5);
    assert_int_equal(counter_get(&at->expected_fp_1e9), share * unknown);
    assert_int_equal(steps(&s.k, TAMIZ_STEP_FOUND) + steps(&s.k, TAMIZ_STEP_TOMBSTONE), found);
    assert_int_equal(steps(&s.k, TAMIZ_STEP_INDEX), maybes);
    assert_int_equal(steps(&s.k, TAMIZ_STEP_BLOCK_DEVICE),
                     counter_get(&s.k.t.count.io[IO_DATA].reads));
    assert_int_equal(counter_get(&at->device_read_bytes),
                     counter_get(&s.k.t.count.io[IO_DATA].read_bytes));
    assert_true(steps(&s.k, TAMIZ_STEP_BLOCK_DEVICE) <= table_blocks(s.t));
    setting_free(&s);
}

static void a_read_without_filters_counts_nothing_about_them(void **state)
{
    (void)state;
    struct test_random random = test_random_start(45);
    struct setting s;
    setting_make(&s, &random, &shapes[1], 500, 100);
    struct table_read how = kit_read;
    how.use_filter = false;
    for (int probe = 0; probe < 300; probe++) {
        struct version v;
        version_key(&v, test_random_below(&random, 250));
        const struct lookup lookup = lookup_make(key_of(&v), SEQ_MAX);
        (void)kit_get(&s.k, s.t, &lookup, &how);
    }
    const struct level_counters *at = &s.k.t.count.level[1];
    assert_int_equal(steps(&s.k, TAMIZ_STEP_FILTER_NEGATIVE) +
                         steps(&s.k, TAMIZ_STEP_FILTER_MAYBE) + steps(&s.k, TAMIZ_STEP_NO_FILTER),
                     0);
    assert_int_equal(counter_get(&at->true_positives) + counter_get(&at->false_positives) +
                         counter_get(&at->expected_fp_1e9),
                     0);
    assert_int_equal(steps(&s.k, TAMIZ_STEP_INDEX), 300);
    setting_free(&s);
}

static void asking_first_and_getting_then_counts_as_one_probe(void **state)
{
    (void)state;
    struct test_random random = test_random_start(46);
    const struct shape shape = {"bloom:3", CODEC_NONE, 1 << 20};
    struct setting s;
    setting_make(&s, &random, &shape, 1500, 400);
    struct table_read how = kit_read;
    uint64_t known = 0;
    for (int probe = 0; probe < 1000; probe++) {
        struct version v;
        version_key(&v, test_random_below(&random, 800));
        const struct lookup lookup = lookup_make(key_of(&v), SEQ_MAX);
        enum table_verdict verdict;
        how.asked = false;
        table_prefetch(s.t, &lookup);
        assert_status(&s.k.t.op, table_ask(&s.k.t.op, s.t, &lookup, &how, &verdict), TAMIZ_OK);
        known += model_get(&s.m, &lookup) != NULL;
        if (verdict == TABLE_NO) {
            assert_null(model_get(&s.m, &lookup));
            continue;
        }
        how.asked = true;
        const struct answer a = kit_get(&s.k, s.t, &lookup, &how);
        assert_true(kit_right(&s.m, &lookup, &a));
    }
    const struct level_counters *at = &s.k.t.count.level[1];
    assert_int_equal(steps(&s.k, TAMIZ_STEP_FILTER_NEGATIVE) + steps(&s.k, TAMIZ_STEP_FILTER_MAYBE),
                     1000);
    assert_int_equal(counter_get(&at->true_positives), known);
    assert_int_equal(counter_get(&at->true_positives) + counter_get(&at->false_positives),
                     steps(&s.k, TAMIZ_STEP_FILTER_MAYBE));
    setting_free(&s);
}

static void a_get_in_two_halves_answers_like_one(void **state)
{
    (void)state;
    struct test_random random = test_random_start(47);
    for (size_t i = 0; i < SHAPES; i++) {
        struct setting s;
        setting_make(&s, &random, &shapes[i], 1000, 300);
        for (int round = 0; round < 60; round++) {
            enum { MANY = 16 };
            struct version v[MANY];
            struct lookup lookups[MANY];
            struct table_wait waits[MANY] = {0};
            struct file_request requests[MANY];
            struct cached_block *pinned[MANY] = {NULL};
            uint64_t stamps[MANY];
            struct slice values[MANY];
            tamiz_status statuses[MANY];
            size_t waiting[MANY], n = 0;
            struct epoch_slot *slot = epoch_enter(&s.k.epoch);
            for (size_t j = 0; j < MANY; j++) {
                version_key(&v[j], test_random_below(&random, 620));
                lookups[j] = lookup_make(key_of(&v[j]), SEQ_MAX);
                statuses[j] = table_get_begin(&s.k.t.op, s.t, &lookups[j], &kit_read, &stamps[j],
                                              &values[j], &waits[j]);
                if (waits[j].request.file) {
                    requests[n] = waits[j].request;
                    waiting[n++] = j;
                }
            }
            file_read_many(&s.k.t.op, IO_DATA, requests, n);
            for (size_t w = 0; w < n; w++) {
                const size_t j = waiting[w];
                waits[j].request.status = requests[w].status;
                waits[j].nanoseconds = 0;
                statuses[j] =
                    table_get_end(&s.k.t.op, &waits[j], &stamps[j], &values[j], &pinned[j]);
            }
            for (size_t j = 0; j < MANY; j++) {
                struct answer a = {statuses[j], stamps[j], {0}, values[j].size};
                if (a.value_size)
                    memcpy(a.value, values[j].data, a.value_size);
                assert_true(kit_right(&s.m, &lookups[j], &a));
            }
            epoch_leave(slot);
            for (size_t j = 0; j < MANY; j++)
                cached_block_unpin(pinned[j]);
        }
        setting_free(&s);
    }
}

/* ---- tracing ---- */

struct story {
    tamiz_step_info steps[16];
    size_t count;
};

static void story_step(void *ctx, const tamiz_step_info *step)
{
    struct story *story = ctx;
    if (story->count < 16)
        story->steps[story->count++] = *step;
}

static void a_traced_read_tells_its_steps_in_order(void **state)
{
    (void)state;
    struct test_random random = test_random_start(48);
    struct setting s;
    setting_make(&s, &random, &shapes[1], 500, 100);
    struct story story = {.count = 0};
    const tamiz_trace trace = {story_step, &story};
    const struct version *v = &s.m.versions[s.m.count / 2];
    const struct lookup lookup = lookup_make(key_of(v), SEQ_MAX);
    s.k.t.op.trace = &trace;
    (void)kit_get(&s.k, s.t, &lookup, &kit_read);
    (void)kit_get(&s.k, s.t, &lookup, &kit_read);
    s.k.t.op.trace = NULL;
    const tamiz_step_kind wanted[] = {
        TAMIZ_STEP_FILTER_MAYBE, TAMIZ_STEP_INDEX, TAMIZ_STEP_BLOCK_DEVICE, TAMIZ_STEP_FOUND,
        TAMIZ_STEP_FILTER_MAYBE, TAMIZ_STEP_INDEX, TAMIZ_STEP_BLOCK_CACHED, TAMIZ_STEP_FOUND};
    assert_int_equal(story.count, 8);
    for (size_t i = 0; i < 8; i++) {
        const bool last = wanted[i] == TAMIZ_STEP_FOUND;
        if (!last)
            assert_int_equal(story.steps[i].kind, wanted[i]);
        else
            assert_true(story.steps[i].kind == TAMIZ_STEP_FOUND ||
                        story.steps[i].kind == TAMIZ_STEP_TOMBSTONE);
        assert_int_equal(story.steps[i].level, 1);
        assert_int_equal(story.steps[i].table, 7);
        assert_string_equal(story.steps[i].filter, "bloom");
        assert_true(story.steps[i].expected_fpr > 0);
    }
    assert_true(story.steps[2].size > 9 && story.steps[2].offset >= TABLE_HEADER_SIZE);
    setting_free(&s);
}

/* ---- iterators ---- */

static void assert_shows(const struct iter *it, const struct model *m, size_t i)
{
    assert_status(it->op, it->status, TAMIZ_OK);
    assert_int_equal(it->valid, i < m->count);
    if (i >= m->count)
        return;
    const struct version *v = &m->versions[i];
    assert_true(slice_equal(it->key, key_of(v)) && it->stamp == v->stamp &&
                slice_equal(it->value, value_of(v)));
}

static void a_walk_shows_every_version_in_order_both_ways(void **state)
{
    (void)state;
    struct test_random random = test_random_start(49);
    for (size_t i = 0; i < SHAPES; i++) {
        for (int purpose = 0; purpose < 2; purpose++) {
            struct setting s;
            setting_make(&s, &random, &shapes[i], 3000, 900);
            struct table_read how = kit_read;
            how.purpose = purpose ? IO_COMPACTION : IO_DATA;
            how.fill_cache = i % 2 == 0;
            struct iter *it = table_iter(&s.k.t.op, s.t, &how);
            assert_non_null(it);
            assert_false(it->valid);
            size_t at = 0;
            for (iter_seek_first(it); it->valid; iter_next(it))
                assert_shows(it, &s.m, at++);
            assert_int_equal(at, s.m.count);
            for (iter_seek_last(it); it->valid; iter_prev(it))
                assert_shows(it, &s.m, --at);
            assert_int_equal(at, 0);
            assert_status(&s.k.t.op, it->status, TAMIZ_OK);
            iter_close(it);
            if (purpose) {
                assert_int_equal(cache_bytes(s.k.cache), 0);
                assert_int_equal(steps(&s.k, TAMIZ_STEP_BLOCK_DEVICE), 0);
                assert_int_equal(counter_get(&s.k.t.count.io[IO_DATA].reads), 0);
            }
            setting_free(&s);
        }
    }
}

static void seeks_land_where_the_model_says_and_walk_on(void **state)
{
    (void)state;
    struct test_random random = test_random_start(50);
    for (size_t i = 0; i < SHAPES; i++) {
        struct setting s;
        setting_make(&s, &random, &shapes[i], 1500, 300);
        struct iter *it = table_iter(&s.k.t.op, s.t, &kit_read);
        for (int probe = 0; probe < 600; probe++) {
            struct version v;
            version_key(&v, test_random_below(&random, 620));
            if (probe % 50 == 0)
                v.key_size = 0;
            const uint64_t stamp = probe % 3 == 0   ? UINT64_MAX
                                   : probe % 3 == 1 ? 0
                                                    : stamp_of(test_random_below(&random, 50), 1);
            size_t at = model_lower_bound(&s.m, key_of(&v), stamp);
            if (probe % 2) {
                iter_seek(it, key_of(&v), stamp);
            } else {
                iter_seek_before(it, key_of(&v), stamp);
                at = at == 0 ? s.m.count : at - 1;
            }
            assert_shows(it, &s.m, at);
            for (uint64_t hop = test_random_below(&random, 12); hop && it->valid; hop--) {
                if (test_random_below(&random, 2)) {
                    iter_next(it);
                    at = at + 1;
                } else {
                    iter_prev(it);
                    at = at == 0 ? s.m.count : at - 1;
                }
                assert_shows(it, &s.m, at);
            }
        }
        /* The key that is sought may be the one that is shown. */
        iter_seek_first(it);
        iter_seek(it, it->key, 0);
        assert_shows(it, &s.m, model_lower_bound(&s.m, key_of(&s.m.versions[0]), 0));
        iter_close(it);
        setting_free(&s);
    }
}

static void a_long_walk_reads_ahead(void **state)
{
    (void)state;
    struct test_random random = test_random_start(51);
    const struct shape shape = {"none", CODEC_NONE, 0};
    struct setting s;
    setting_make(&s, &random, &shape, 9000, 4000);
    struct iter *it = table_iter(&s.k.t.op, s.t, &kit_read);
    for (iter_seek_first(it); it->valid; iter_next(it))
        ;
    iter_close(it);
    const uint64_t reads = counter_get(&s.k.t.count.io[IO_DATA].reads);
    assert_true(table_blocks(s.t) > 500);
    assert_true(reads < 12);
    assert_int_equal(counter_get(&s.k.t.count.io[IO_DATA].read_bytes),
                     table_properties(s.t)->data_bytes);
    setting_free(&s);
}

static void a_long_walk_leaves_the_cache_to_others(void **state)
{
    (void)state;
    struct test_random random = test_random_start(55);
    const size_t capacity = 1 << 18;
    const struct shape shape = {"none", CODEC_NONE, capacity};
    struct setting s;
    setting_make(&s, &random, &shape, 9000, 4000);
    struct iter *it = table_iter(&s.k.t.op, s.t, &kit_read);
    for (iter_seek_first(it); it->valid; iter_next(it))
        ;
    iter_close(it);
    const uint64_t most = table_properties(s.t)->block_raw_max + CACHED_BLOCK_HEADER + BLOCK_SLACK;
    assert_true(table_blocks(s.t) > 5 * TABLE_LONG_SCAN);
    /* It fills what nobody needs, and then no block has to leave for it. */
    assert_true(table_properties(s.t)->data_bytes > capacity + capacity / 4);
    assert_true(cache_bytes(s.k.cache) > capacity / 2);
    assert_true(cache_bytes(s.k.cache) <= capacity - capacity / 8 + most);
    setting_free(&s);
}

static void write_posix(struct op *op, const char *path, const struct buf *bytes)
{
    struct file *file;
    assert_status(
        op, file_open(op, tamiz_env_posix(), path, TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &file),
        TAMIZ_OK);
    assert_status(op, file_write(op, file, IO_META, 0, bytes->data, bytes->size), TAMIZ_OK);
    assert_status(op, file_close(op, file), TAMIZ_OK);
}

static void around_the_page_cache_the_answers_are_the_same(void **state)
{
    (void)state;
    struct test_random random = test_random_start(56);
    struct setting s;
    struct buf bytes;
    char directory[64], path[80];
    setting_make(&s, &random, &shapes[2], 2000, 600);
    kit_read_file(&s.k, "t.sst", &bytes);
    test_directory_make(directory, sizeof directory);
    (void)snprintf(path, sizeof path, "%s/t.sst", directory);
    write_posix(&s.k.t.op, path, &bytes);
    struct file_pool files;
    assert_status(&s.k.t.op, file_pool_init(&s.k.t.op, &files, tamiz_env_posix(), 2), TAMIZ_OK);
    struct table_world world = s.k.world;
    world.env = tamiz_env_posix();
    world.files = &files;
    world.direct_io = true;
    struct table *t = table_new(&s.k.t.op, &world, path, 7, 0x1234, bytes.size);
    for (int probe = 0; probe < 500; probe++) {
        struct version v;
        version_key(&v, test_random_below(&random, 1300));
        const struct lookup lookup = lookup_make(key_of(&v), SEQ_MAX);
        const struct answer a = kit_get(&s.k, t, &lookup, &kit_read);
        assert_true(kit_right(&s.m, &lookup, &a));
    }
    struct iter *it = table_iter(&s.k.t.op, t, &kit_read);
    size_t at = 0;
    for (iter_seek_first(it); it->valid; iter_next(it))
        assert_shows(it, &s.m, at++);
    assert_int_equal(at, s.m.count);
    iter_close(it);
    assert_true(s.k.events[TAMIZ_EVENT_NOTE] <= 1); /* where the file system refuses */
    table_free(t);
    file_pool_free(&files);
    test_directory_remove(directory);
    buf_free(&bytes);
    setting_free(&s);
}

/* ---- identity and versions ---- */

static void another_tables_file_is_refused_by_name(void **state)
{
    (void)state;
    struct test_random random = test_random_start(52);
    struct setting s;
    setting_make(&s, &random, &shapes[0], 100, 50);
    const struct {
        uint64_t id, size;
    } expected[] = {{0x9999, 0}, {0x1234, 5}, {0, s.s.file_size + 1}};
    for (size_t i = 0; i < 3; i++) {
        struct table *t =
            table_new(&s.k.t.op, &s.k.world, "t.sst", 7, expected[i].id, expected[i].size);
        assert_int_equal(table_load(&s.k.t.op, t), TAMIZ_CORRUPTION);
        assert_non_null(strstr(s.k.t.op.text, "t.sst"));
        assert_non_null(strstr(s.k.t.op.text, "expected"));
        op_forgive(&s.k.t.op);
        table_free(t);
    }
    struct table *t = table_new(&s.k.t.op, &s.k.world, "t.sst", 7, 0x1234, s.s.file_size);
    assert_status(&s.k.t.op, table_load(&s.k.t.op, t), TAMIZ_OK);
    table_free(t);
    setting_free(&s);
}

static void a_newer_format_is_not_supported_by_name(void **state)
{
    (void)state;
    struct test_random random = test_random_start(53);
    struct setting s;
    setting_make(&s, &random, &shapes[0], 100, 50);
    struct buf bytes;
    kit_read_file(&s.k, "t.sst", &bytes);
    uint8_t *footer = bytes.data + bytes.size - TABLE_FOOTER_SIZE;
    for (int which = 0; which < 2; which++) {
        /* A whole one, with its checksum; a damaged version number is damage. */
        if (which) {
            store_u32(bytes.data + 8, 1);
            store_u64(bytes.data + 32, checksum(0x1234, 0, slice_of(bytes.data, 32)));
            store_u32(footer + 92, 2);
            store_u64(footer + 96,
                      checksum(0x1234, bytes.size - TABLE_FOOTER_SIZE, slice_of(footer, 96)));
        } else {
            store_u32(bytes.data + 8, 2);
            store_u64(bytes.data + 32, checksum(0x1234, 0, slice_of(bytes.data, 32)));
        }
        kit_write_file(&s.k, "new.sst", bytes.data, bytes.size);
        struct table *t = kit_table(&s.k, "new.sst");
        assert_int_equal(table_load(&s.k.t.op, t), TAMIZ_NOT_SUPPORTED);
        assert_non_null(strstr(s.k.t.op.text, "new.sst"));
        op_forgive(&s.k.t.op);
        table_free(t);
    }
    buf_free(&bytes);
    setting_free(&s);
}

static void a_missing_file_is_an_error_and_tried_again(void **state)
{
    (void)state;
    struct kit k;
    struct model m;
    struct table_summary summary;
    struct test_random random = test_random_start(54);
    kit_make(&k, 1 << 16);
    model_make(&m, &random, 100, 40);
    struct table *t = kit_table(&k, "later.sst");
    assert_int_equal(table_load(&k.t.op, t), TAMIZ_IO_ERROR);
    op_forgive(&k.t.op);
    const struct table_build_options options = kit_options("none", CODEC_NONE);
    kit_build(&k, "later.sst", &m, &options, &summary);
    assert_status(&k.t.op, table_load(&k.t.op, t), TAMIZ_OK);
    table_free(t);
    model_free(&m);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_get_answers_as_the_model_does),
        cmocka_unit_test(the_summary_and_the_properties_count_what_was_added),
        cmocka_unit_test(verify_finds_nothing_in_a_sound_table),
        cmocka_unit_test(the_ledger_counts_each_probe_once_and_truly),
        cmocka_unit_test(a_read_without_filters_counts_nothing_about_them),
        cmocka_unit_test(asking_first_and_getting_then_counts_as_one_probe),
        cmocka_unit_test(a_get_in_two_halves_answers_like_one),
        cmocka_unit_test(a_traced_read_tells_its_steps_in_order),
        cmocka_unit_test(a_walk_shows_every_version_in_order_both_ways),
        cmocka_unit_test(seeks_land_where_the_model_says_and_walk_on),
        cmocka_unit_test(a_long_walk_reads_ahead),
        cmocka_unit_test(a_long_walk_leaves_the_cache_to_others),
        cmocka_unit_test(around_the_page_cache_the_answers_are_the_same),
        cmocka_unit_test(another_tables_file_is_refused_by_name),
        cmocka_unit_test(a_newer_format_is_not_supported_by_name),
        cmocka_unit_test(a_missing_file_is_an_error_and_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
