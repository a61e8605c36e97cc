/* SPDX-License-Identifier: MIT
 *
 * Versions in words: "k12" is key k written at 12, "k-12" its deletion then; the value says the
 * sequence again.
 */
#include "compact/compact.h"

#include <errno.h>
#include <stdlib.h>

#include "base/coding.h"
#include "support/test.h"
#include "version/filename.h"

enum { VERSIONS = 6000 };

struct one {
    char key;
    uint64_t stamp;
    uint64_t origin; /* of a put that was read back: the sequence its value tells */
};

/* ---- a source that is a list ---- */

struct list_iter {
    struct iter base;
    const struct one *list;
    size_t count, at, fail_at;
    uint8_t value[8];
};

static void list_show(struct list_iter *it)
{
    it->base.valid = it->at < it->count && it->at != it->fail_at;
    if (it->at == it->fail_at)
        it->base.status = op_fail(it->base.op, TAMIZ_CORRUPTION, "the source is damaged");
    if (!it->base.valid)
        return;
    const struct one *o = &it->list[it->at];
    store_u64(it->value, stamp_seq(o->stamp));
    it->base.key = slice_of(&o->key, 1);
    it->base.stamp = o->stamp;
    it->base.value = slice_of(it->value, stamp_kind(o->stamp) == KIND_PUT ? 8 : 0);
}

static void list_first(struct iter *base)
{
    struct list_iter *it = (struct list_iter *)base;
    it->at = 0;
    list_show(it);
}

static void list_next(struct iter *base)
{
    struct list_iter *it = (struct list_iter *)base;
    it->at++;
    list_show(it);
}

static const struct iter_ops list_ops = {.seek_first = list_first, .next = list_next};

/* ---- a world to merge in ---- */

struct world {
    struct test_op t;
    tamiz_env *memory;
    tamiz_env_ops ops; /* memory's, with a write that may fail */
    tamiz_env env;
    int writes_left;
    uint64_t next_number;
    struct one list[VERSIONS];
    size_t count;
    uint64_t snapshots[64];
    size_t snapshot_count;
    struct buf tables;
    int asked, cancel_at;
};

static struct world *the_world; /* the env's functions get the memory env's ctx */

static int failing_write(void *ctx, void *file, uint64_t offset, const void *data, size_t size)
{
    if (the_world->writes_left-- == 0)
        return -EIO;
    return the_world->memory->ops->write(ctx, file, offset, data, size);
}

static struct world *world_begin(void)
{
    struct world *w = calloc(1, sizeof *w);
    test_op_init(&w->t);
    the_world = w;
    w->memory = tamiz_env_memory_new();
    w->ops = *w->memory->ops;
    w->ops.write = failing_write;
    w->env = (tamiz_env){&w->ops, w->memory->ctx};
    w->writes_left = -1;
    w->next_number = 1;
    w->cancel_at = -1;
    w->tables = buf_init(&alloc_libc);
    assert_status(&w->t.op, env_make_directory(&w->t.op, &w->env, "d"), TAMIZ_OK);
    return w;
}

static size_t table_count(const struct world *w)
{
    return w->tables.size / sizeof(struct table_meta *);
}

static struct table_meta *table_at(const struct world *w, size_t i)
{
    struct table_meta *m;
    memcpy(&m, w->tables.data + i * sizeof m, sizeof m);
    return m;
}

static void tables_forget(struct world *w)
{
    for (size_t i = 0; i < table_count(w); i++) {
        char path[FILE_NAME_MAX + 2] = "d/";
        filename_format(FILE_TABLE, table_at(w, i)->number, path + 2);
        assert_status(&w->t.op, env_remove(&w->t.op, &w->env, path), TAMIZ_OK);
        table_meta_unref(&alloc_libc, table_at(w, i));
    }
    buf_clear(&w->tables);
}

static void world_end(struct world *w)
{
    tables_forget(w);
    buf_free(&w->tables);
    tamiz_env_memory_free(w->memory);
    free(w);
}

static uint64_t next_number(void *ctx)
{
    return ((struct world *)ctx)->next_number++;
}

static bool cancelled(void *ctx)
{
    struct world *w = ctx;
    return w->asked++ == w->cancel_at;
}

static tamiz_status merge(struct world *w, const struct alloc *alloc, bool bottom, uint64_t bytes,
                          size_t fail_at)
{
    struct list_iter source = {.base = {.ops = &list_ops, .op = &w->t.op},
                               .list = w->list,
                               .count = w->count,
                               .fail_at = fail_at};
    const struct compact_input in = {.source = &source.base,
                                     .snapshots = w->snapshots,
                                     .snapshot_count = w->snapshot_count,
                                     .bottom = bottom,
                                     .cancelled = cancelled,
                                     .cancel_ctx = w};
    const struct compact_output out = {.env = &w->env,
                                       .alloc = alloc,
                                       .directory = "d",
                                       .build = {.block_bytes = 256,
                                                 .filter = {"blocked", 10, 0, NULL},
                                                 .codec = CODEC_NONE,
                                                 .purpose = IO_COMPACTION},
                                       .table_bytes = bytes,
                                       .level = 3,
                                       .run = 17,
                                       .next_file = next_number,
                                       .next_file_ctx = w};
    return compact_run(&w->t.op, &in, &out, &w->tables);
}

static void count_file(void *ctx, const char *name)
{
    (void)name;
    ++*(size_t *)ctx;
}

static size_t files(struct world *w)
{
    size_t n = 0;
    struct test_op t;
    test_op_init(&t);
    assert_status(&t.op, env_list(&t.op, &w->env, "d", count_file, &n), TAMIZ_OK);
    return n;
}

/* ---- reading it back ---- */

struct reading {
    struct epoch epoch;
    struct cache *cache;
    struct file_pool files;
    struct table_world world;
};

static void reading_begin(struct world *w, struct reading *r)
{
    assert_status(&w->t.op, epoch_init(&w->t.op, &r->epoch, &alloc_libc), TAMIZ_OK);
    r->cache = cache_new(&alloc_libc, &r->epoch, 0);
    assert_status(&w->t.op, file_pool_init(&w->t.op, &r->files, &w->env, 4), TAMIZ_OK);
    r->world = (struct table_world){.env = &w->env,
                                    .files = &r->files,
                                    .alloc = &alloc_libc,
                                    .epoch = &r->epoch,
                                    .cache = r->cache,
                                    .verify = true};
}

static void reading_end(struct reading *r)
{
    cache_free(r->cache);
    epoch_free(&r->epoch);
    file_pool_free(&r->files);
}

/* Appends the versions of one table to `out`. */
static void table_read(struct world *w, struct reading *r, const struct table_meta *m,
                       struct buf *out)
{
    char path[FILE_NAME_MAX + 2] = "d/";
    const struct table_read how = {.level = 0, .purpose = IO_DATA};
    filename_format(FILE_TABLE, m->number, path + 2);
    struct table *t = table_new(&w->t.op, &r->world, path, m->number, m->file_id, m->file_size);
    assert_non_null(t);
    struct epoch_slot *slot = epoch_enter(&r->epoch);
    struct iter *it = table_iter(&w->t.op, t, &how);
    assert_non_null(it);
    for (iter_seek_first(it); it->valid; iter_next(it)) {
        struct one o = {(char)it->key.data[0], it->stamp, 0};
        if (stamp_kind(o.stamp) == KIND_PUT) {
            assert_int_equal(it->value.size, 8);
            o.origin = load_u64(it->value.data);
            assert_true(stamp_seq(o.stamp) == 0 || stamp_seq(o.stamp) == o.origin);
        }
        buf_append(out, &o, sizeof o);
    }
    assert_status(&w->t.op, it->status, TAMIZ_OK);
    iter_close(it);
    epoch_leave(slot);
    table_free(t);
}

/* All tables' versions, in order. */
static void tables_read(struct world *w, struct buf *out)
{
    struct reading r;
    reading_begin(w, &r);
    for (size_t i = 0; i < table_count(w); i++)
        table_read(w, &r, table_at(w, i), out);
    reading_end(&r);
}

/* ---- words ---- */

static int one_compare(const void *a, const void *b)
{
    const struct one *x = a, *y = b;
    return version_compare(slice_of(&x->key, 1), x->stamp, slice_of(&y->key, 1), y->stamp);
}

static void list_set(struct world *w, const char *words)
{
    w->count = 0;
    for (const char *at = words; *at;) {
        char key, dead = 0;
        unsigned seq;
        int used = 0;
        if (sscanf(at, " %c-%u%n", &key, &seq, &used) == 2)
            dead = 1;
        else if (sscanf(at, " %c%u%n", &key, &seq, &used) != 2)
            break;
        at += used;
        w->list[w->count++] = (struct one){key, stamp_of(seq, dead ? KIND_DELETE : KIND_PUT), 0};
    }
    qsort(w->list, w->count, sizeof *w->list, one_compare);
}

static void assert_merged(const uint64_t *snapshots, size_t count, bool bottom, const char *words,
                          const char *want)
{
    struct world *w = world_begin();
    char text[500] = "";
    size_t at = 0;
    struct buf out = buf_init(&alloc_libc);
    list_set(w, words);
    memcpy(w->snapshots, snapshots, count * sizeof *snapshots);
    w->snapshot_count = count;
    assert_status(&w->t.op, merge(w, &alloc_libc, bottom, 1 << 20, SIZE_MAX), TAMIZ_OK);
    tables_read(w, &out);
    for (size_t i = 0; i < out.size / sizeof(struct one); i++) {
        struct one o;
        memcpy(&o, out.data + i * sizeof o, sizeof o);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%c%s%u", i ? " " : "", o.key,
                               stamp_kind(o.stamp) == KIND_DELETE ? "-" : "",
                               (unsigned)stamp_seq(o.stamp));
    }
    assert_string_equal(text, want);
    buf_free(&out);
    world_end(w);
}

static void of_each_key_the_newest_version_a_snapshot_sees_is_left(void **state)
{
    (void)state;
    const uint64_t s[] = {20, 40};
    assert_merged(s, 2, false, "k12 k17 k23 k25 k29 k51", "k51 k29 k17");
    assert_merged(s, 2, true, "k12 k17 k23 k25 k29 k51", "k51 k29 k0");
    assert_merged(s, 0, false, "k12 k17 k51 l3", "k51 l3");
    assert_merged(s, 2, false, "k20 k21 k40 k41", "k41 k40 k20");
}

static void the_oldest_of_several_tombstones_speaks_for_all(void **state)
{
    (void)state;
    const uint64_t s[] = {20, 40};
    assert_merged(s, 2, false, "k12 k17 k23 k-29 k51 k-56", "k-29 k17");
    assert_merged(s, 2, true, "k12 k17 k23 k-29 k51 k-56", "k-29 k0");
    assert_merged(s, 2, false, "m-17 m-29", "m-17");
}

static void a_tombstone_that_hides_nothing_goes_at_the_bottom_only(void **state)
{
    (void)state;
    const uint64_t s[] = {20, 40};
    assert_merged(s, 2, true, "m-17 m-29", "");
    assert_merged(s, 2, true, "m-29", "");
    assert_merged(s, 2, false, "m-29", "m-29");
    assert_merged(s, 0, true, "k5 m3 m-29 z1", "k0 z0");
    assert_merged(s, 2, true, "m3 m-29", "m-29 m0"); /* 20 still sees 3 */
    assert_merged(s, 2, true, "m3 m-15", "");
}

static void only_what_every_snapshot_sees_loses_its_sequence(void **state)
{
    (void)state;
    const uint64_t s[] = {0, 20};
    assert_merged(s, 1, true, "k5", "k5"); /* a snapshot of the empty store */
    assert_merged(s + 1, 1, true, "k5 l21", "k0 l21");
    assert_merged(s + 1, 1, false, "k5 l21", "k5 l21");
    assert_merged(s, 0, true, "k5 l21", "k0 l0");
}

static void nothing_in_gives_nothing_out(void **state)
{
    (void)state;
    struct world *w = world_begin();
    assert_status(&w->t.op, merge(w, &alloc_libc, true, 100, SIZE_MAX), TAMIZ_OK);
    list_set(w, "a-1 b-2 c-3");
    assert_status(&w->t.op, merge(w, &alloc_libc, true, 100, SIZE_MAX), TAMIZ_OK);
    assert_int_equal(table_count(w), 0);
    assert_int_equal(files(w), 0);
    world_end(w);
}

/* ---- against the model ---- */

/* Few keys, many versions. */
static void list_random(struct world *w, struct test_random *random, size_t count)
{
    w->count = count;
    for (size_t i = 0; i < count; i++)
        w->list[i] =
            (struct one){(char)('a' + test_random_below(random, 20)),
                         stamp_of(i + 1, test_random_below(random, 3) ? KIND_PUT : KIND_DELETE), 0};
    qsort(w->list, w->count, sizeof *w->list, one_compare);
    w->snapshot_count = test_random_below(random, 12);
    for (size_t i = 0; i < w->snapshot_count; i++)
        w->snapshots[i] = i * count / 11 + test_random_below(random, count / 11 + 1);
}

/* What a read at `seq` meets first, or NULL. */
static const struct one *visible(const struct one *list, size_t n, char key, uint64_t seq)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].key == key && stamp_seq(list[i].stamp) <= seq)
            return &list[i];
    return NULL;
}

static void assert_reads_alike(struct world *w, const struct buf *out, bool bottom, uint64_t seq)
{
    const size_t n = out->size / sizeof(struct one);
    for (char key = 'a'; key < 'a' + 20; key++) {
        const struct one *before = visible(w->list, w->count, key, seq);
        const struct one *after = visible((const void *)out->data, n, key, seq);
        const bool was = before && stamp_kind(before->stamp) == KIND_PUT;
        const bool is = after && stamp_kind(after->stamp) == KIND_PUT;
        assert_true(was == is);
        if (was)
            assert_true(after->origin == stamp_seq(before->stamp));
        if (!bottom) /* what lies below must stay hidden, or not */
            assert_true((before == NULL) == (after == NULL));
    }
}

static void no_read_changes_and_no_key_is_split(void **state)
{
    (void)state;
    struct test_random random = test_random_start(5);
    for (int round = 0; round < 60; round++) {
        struct world *w = world_begin();
        struct buf out = buf_init(&alloc_libc);
        const bool bottom = round % 2;
        list_random(w, &random, 30 + test_random_below(&random, 600));
        assert_status(&w->t.op, merge(w, &alloc_libc, bottom, 400, SIZE_MAX), TAMIZ_OK);
        tables_read(w, &out);
        for (size_t i = 0; i < w->snapshot_count; i++)
            assert_reads_alike(w, &out, bottom, w->snapshots[i]);
        assert_reads_alike(w, &out, bottom, SEQ_MAX);
        for (size_t i = 1; i < table_count(w); i++)
            assert_true(slice_compare(table_at(w, i - 1)->largest, table_at(w, i)->smallest) < 0);
        assert_int_equal(files(w), table_count(w));
        buf_free(&out);
        world_end(w);
    }
}

static void a_table_says_where_it_belongs_and_what_it_has(void **state)
{
    (void)state;
    struct world *w = world_begin();
    const uint64_t s[] = {20};
    memcpy(w->snapshots, s, sizeof s);
    w->snapshot_count = 1;
    list_set(w, "a3 b-25 b7 c30 c9");
    assert_status(&w->t.op, merge(w, &alloc_libc, false, 1, SIZE_MAX), TAMIZ_OK);
    assert_int_equal(table_count(w), 3); /* a table a key, however small they shall be */
    const struct table_meta *b = table_at(w, 1);
    assert_int_equal(b->number, 2);
    assert_int_equal(b->level, 3);
    assert_int_equal(b->run, 17);
    assert_int_equal(b->entries, 2);
    assert_int_equal(b->keys, 1);
    assert_int_equal(b->tombstones, 1);
    assert_int_equal(b->seq_min, 7);
    assert_int_equal(b->seq_max, 25);
    assert_true(b->file_id != 0 && b->file_size != 0 && b->table == NULL);
    world_end(w);
}

/* ---- failures ---- */

static void assert_nothing_is_left(struct world *w, tamiz_status st, tamiz_status want)
{
    assert_status(&w->t.op, st, want);
    assert_int_equal(w->t.op.status, want);
    assert_int_equal(table_count(w), 0);
    assert_int_equal(files(w), 0);
    op_forgive(&w->t.op);
}

static void a_cancelled_merge_leaves_nothing(void **state)
{
    (void)state;
    struct test_random random = test_random_start(6);
    struct world *w = world_begin();
    list_random(w, &random, VERSIONS);
    for (w->cancel_at = 0; w->cancel_at < 20; w->cancel_at += 6) {
        w->asked = 0;
        assert_nothing_is_left(w, merge(w, &alloc_libc, false, 400, SIZE_MAX), TAMIZ_CLOSED);
    }
    assert_true(w->next_number > 3);
    w->cancel_at = VERSIONS;
    w->asked = 0;
    assert_status(&w->t.op, merge(w, &alloc_libc, false, 400, SIZE_MAX), TAMIZ_OK);
    assert_true(w->asked >= VERSIONS / 500);
    world_end(w);
}

static void a_damaged_source_leaves_nothing(void **state)
{
    (void)state;
    struct test_random random = test_random_start(7);
    struct world *w = world_begin();
    list_random(w, &random, 500);
    assert_nothing_is_left(w, merge(w, &alloc_libc, false, 400, 0), TAMIZ_CORRUPTION);
    assert_nothing_is_left(w, merge(w, &alloc_libc, false, 400, 250), TAMIZ_CORRUPTION);
    assert_nothing_is_left(w, merge(w, &alloc_libc, false, 400, 500), TAMIZ_CORRUPTION);
    w->list[250].stamp |= 7;
    assert_nothing_is_left(w, merge(w, &alloc_libc, false, 400, SIZE_MAX), TAMIZ_NOT_SUPPORTED);
    world_end(w);
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    struct test_random random = test_random_start(8);
    struct world *w = world_begin();
    list_random(w, &random, 500);
    tamiz_status st = TAMIZ_IO_ERROR;
    for (int nth = 0; st == TAMIZ_IO_ERROR; nth++) {
        w->writes_left = nth;
        st = merge(w, &alloc_libc, false, 100, SIZE_MAX);
        if (st == TAMIZ_IO_ERROR)
            assert_nothing_is_left(w, st, TAMIZ_IO_ERROR);
        assert_true(nth < 1000);
    }
    assert_status(&w->t.op, st, TAMIZ_OK);
    assert_true(table_count(w) > 2);
    world_end(w);
}

struct stingy {
    int left;
    size_t used;
};

static void *stingy_resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct stingy *s = ctx;
    if (new_size > old_size && s->left-- <= 0)
        return NULL;
    s->used += new_size - old_size;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

static void memory_that_runs_out_leaves_nothing(void **state)
{
    (void)state;
    struct test_random random = test_random_start(9);
    struct world *w = world_begin();
    list_random(w, &random, 200);
    tamiz_status st = TAMIZ_OUT_OF_MEMORY;
    for (int calls = 0; st == TAMIZ_OUT_OF_MEMORY; calls++) {
        struct stingy s = {calls, 0};
        const struct alloc alloc = {{stingy_resize, &s}, NULL};
        st = merge(w, &alloc, false, 400, SIZE_MAX);
        if (st == TAMIZ_OUT_OF_MEMORY)
            assert_nothing_is_left(w, st, TAMIZ_OUT_OF_MEMORY);
        for (size_t i = 0; i < table_count(w); i++)
            table_meta_unref(&alloc, table_at(w, i));
        buf_clear(&w->tables);
        assert_int_equal(s.used, 0);
        assert_true(calls < 5000);
    }
    assert_status(&w->t.op, st, TAMIZ_OK);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_each_key_the_newest_version_a_snapshot_sees_is_left),
        cmocka_unit_test(the_oldest_of_several_tombstones_speaks_for_all),
        cmocka_unit_test(a_tombstone_that_hides_nothing_goes_at_the_bottom_only),
        cmocka_unit_test(only_what_every_snapshot_sees_loses_its_sequence),
        cmocka_unit_test(nothing_in_gives_nothing_out),
        cmocka_unit_test(no_read_changes_and_no_key_is_split),
        cmocka_unit_test(a_table_says_where_it_belongs_and_what_it_has),
        cmocka_unit_test(a_cancelled_merge_leaves_nothing),
        cmocka_unit_test(a_damaged_source_leaves_nothing),
        cmocka_unit_test(a_failed_write_leaves_nothing),
        cmocka_unit_test(memory_that_runs_out_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
