/* SPDX-License-Identifier: MIT
 *
 * A run of real tables as one iterator, against a plain sorted array; and handles that come with a
 * version and go with it.
 */
#include "support/test.h"
#include "table/table_build.h"
#include "version/manifest.h"

enum { TABLES = 5, KEYS = 40, ENTRIES_MAX = TABLES * KEYS * 3 };

struct entry {
    char key[12];
    uint64_t stamp;
};

struct world {
    struct test_op t;
    tamiz_env *env;
    struct epoch epoch;
    struct cache *cache;
    struct file_pool files;
    struct table_world tables;
    struct version *v;
    size_t count;
    struct entry entries[ENTRIES_MAX]; /* in version order */
};

static const struct table_read how = {.use_filter = false, .fill_cache = true, .purpose = IO_DATA};

static struct slice key_of(const struct entry *e)
{
    return slice_of_text(e->key);
}

/* Keys 4i of table t, one to three versions each, into the array. */
static void make_entries(struct world *w)
{
    struct test_random random = {7};
    for (int i = 0; i < TABLES * KEYS; i++) {
        for (uint64_t n = 1 + test_random_below(&random, 3); n; n--) {
            struct entry *e = &w->entries[w->count++];
            (void)snprintf(e->key, sizeof e->key, "key%06d", i * 4);
            e->stamp = stamp_of(n * 10, KIND_PUT);
        }
    }
}

static struct table_meta *build_table(struct world *w, uint64_t number, const struct entry *from,
                                      size_t n)
{
    struct op *op = &w->t.op;
    const struct table_build_options options = {
        .block_bytes = 256, .purpose = IO_DATA, .filter = {.kind = "none"}};
    struct table_builder *b;
    struct table_summary s = {.smallest = buf_init(&alloc_libc), .largest = buf_init(&alloc_libc)};
    char *path = filename_path(&alloc_libc, "d", FILE_TABLE, number);
    assert_status(op, table_builder_open(op, w->env, &alloc_libc, path, &options, &b), TAMIZ_OK);
    for (size_t i = 0; i < n; i++)
        assert_status(op, table_builder_add(op, b, key_of(&from[i]), from[i].stamp, key_of(from)),
                      TAMIZ_OK);
    assert_status(op, table_builder_finish(op, b, &s), TAMIZ_OK);
    const struct table_meta fields = {.number = number,
                                      .file_id = s.file_id,
                                      .file_size = s.file_size,
                                      .level = 1,
                                      .run = 1,
                                      .smallest = buf_slice(&s.smallest),
                                      .largest = buf_slice(&s.largest)};
    struct table_meta *m = table_meta_new(op, &alloc_libc, &fields);
    assert_non_null(m);
    buf_free(&s.smallest);
    buf_free(&s.largest);
    mem_free_text(&alloc_libc, path);
    return m;
}

static void world_make(struct world *w)
{
    struct table_meta *metas[TABLES];
    memset(w, 0, sizeof *w);
    test_op_init(&w->t);
    struct op *op = &w->t.op;
    w->env = tamiz_env_memory_new();
    assert_non_null(w->env);
    assert_status(op, env_make_directory(op, w->env, "d"), TAMIZ_OK);
    assert_status(op, epoch_init(op, &w->epoch, &alloc_libc), TAMIZ_OK);
    w->cache = cache_new(&alloc_libc, &w->epoch, 1 << 20);
    assert_status(op, file_pool_init(op, &w->files, w->env, 4), TAMIZ_OK);
    w->tables = (struct table_world){.env = w->env,
                                     .files = &w->files,
                                     .alloc = &alloc_libc,
                                     .epoch = &w->epoch,
                                     .cache = w->cache,
                                     .verify = true};
    make_entries(w);
    size_t at = 0;
    for (uint64_t t = 0; t < TABLES; t++) {
        char end[12];
        (void)snprintf(end, sizeof end, "key%06d", (int)(t + 1) * KEYS * 4);
        size_t n = 0;
        while (at + n < w->count && strcmp(w->entries[at + n].key, end) < 0)
            n++;
        metas[t] = build_table(w, t + 1, &w->entries[at], n);
        at += n;
    }
    assert_int_equal(at, w->count);
    const struct version_edit edit = {NULL, 0, metas, TABLES};
    assert_status(op, version_apply(op, &alloc_libc, NULL, &edit, &w->v), TAMIZ_OK);
    for (int t = 0; t < TABLES; t++)
        table_meta_unref(&alloc_libc, metas[t]);
    assert_status(op, version_check_files(op, w->v, w->env, "d"), TAMIZ_OK);
    assert_status(op, version_attach(op, w->v, &w->tables, "d"), TAMIZ_OK);
}

static void world_free(struct world *w)
{
    version_unref(w->v); /* and so all handles */
    cache_free(w->cache);
    epoch_free(&w->epoch);
    file_pool_free(&w->files);
    tamiz_env_memory_free(w->env);
}

/* Index of the first entry not before (key, stamp). */
static size_t lower_bound(const struct world *w, struct slice key, uint64_t stamp)
{
    size_t i = 0;
    while (i < w->count &&
           version_compare(key_of(&w->entries[i]), w->entries[i].stamp, key, stamp) < 0)
        i++;
    return i;
}

/* The iterator stands on entry `at`, or nowhere where that is outside. */
static void check_at(const struct world *w, const struct iter *it, size_t at)
{
    assert_int_equal(it->status, TAMIZ_OK);
    assert_int_equal(it->valid, at < w->count);
    if (it->valid) {
        assert_true(slice_equal(it->key, key_of(&w->entries[at])));
        assert_true(it->stamp == w->entries[at].stamp);
    }
}

static void a_run_is_walked_whole_in_both_directions(void **state)
{
    (void)state;
    struct world w;
    world_make(&w);
    struct iter *it = run_iter(&w.t.op, w.v->runs, &how, NULL);
    assert_non_null(it);
    assert_false(it->valid);
    iter_seek_first(it);
    for (size_t i = 0; i < w.count; i++) {
        check_at(&w, it, i);
        iter_next(it);
    }
    check_at(&w, it, w.count);
    iter_seek_last(it);
    for (size_t i = w.count; i-- > 0;) {
        check_at(&w, it, i);
        iter_prev(it);
    }
    check_at(&w, it, SIZE_MAX);
    iter_close(it);
    world_free(&w);
}

static void every_seek_and_step_lands_where_the_array_says(void **state)
{
    (void)state;
    struct test_random random = test_random_start(77);
    struct world w;
    world_make(&w);
    struct iter *it = run_iter(&w.t.op, w.v->runs, &how, NULL);
    size_t at = SIZE_MAX;
    for (int round = 0; round < 20000; round++) {
        char text[12];
        /* Often just around where one table ends and the next begins. */
        const uint64_t n =
            test_random_below(&random, 2)
                ? test_random_below(&random, TABLES * KEYS * 4 + 8)
                : test_random_below(&random, TABLES + 1) * KEYS * 4 + test_random_below(&random, 9);
        const uint64_t stamp = test_random_below(&random, 3) == 0
                                   ? UINT64_MAX
                                   : stamp_of(test_random_below(&random, 40), KIND_PUT);
        (void)snprintf(text, sizeof text, "key%06d", (int)(n < 4 ? 0 : n - 4));
        const struct slice key = slice_of_text(text);
        switch (test_random_below(&random, 6)) {
        case 0:
            iter_seek(it, key, stamp);
            at = lower_bound(&w, key, stamp);
            break;
        case 1:
            iter_seek_before(it, key, stamp);
            at = lower_bound(&w, key, stamp) - 1;
            break;
        default:
            if (!it->valid)
                continue;
            if (test_random_below(&random, 2)) {
                iter_next(it);
                at++;
            } else {
                iter_prev(it);
                at--;
            }
        }
        check_at(&w, it, at);
    }
    iter_close(it);
    world_free(&w);
}

static void a_table_that_cannot_be_read_is_an_error_and_the_others_go_on(void **state)
{
    (void)state;
    struct world w;
    world_make(&w);
    struct op *op = &w.t.op;
    assert_status(op, env_remove(op, w.env, "d/000003.sst"), TAMIZ_OK);
    assert_status(op, version_check_files(op, w.v, w.env, "d"), TAMIZ_CORRUPTION);
    op_forgive(op);
    struct iter *it = run_iter(op, w.v->runs, &how, NULL);
    iter_seek_first(it);
    size_t steps = 0;
    for (; it->valid; iter_next(it))
        steps++;
    assert_true(it->status < 0 && steps > 0 && steps < w.count);
    assert_int_equal(op->status, it->status);
    op_forgive(op);
    iter_seek(it, slice_of_text("key000330"), UINT64_MAX); /* in the lost table */
    assert_true(!it->valid && it->status < 0);
    op_forgive(op);
    iter_seek_last(it);
    check_at(&w, it, w.count - 1);
    iter_close(it);
    world_free(&w);
}

static void handles_are_shared_by_versions_and_closed_with_the_last(void **state)
{
    (void)state;
    struct world w;
    world_make(&w);
    struct op *op = &w.t.op;
    struct version *next;
    static const uint64_t removed[] = {2};
    const struct version_edit edit = {removed, 1, NULL, 0};
    assert_status(op, version_apply(op, &alloc_libc, w.v, &edit, &next), TAMIZ_OK);
    assert_status(op, version_attach(op, next, &w.tables, "d"), TAMIZ_OK);
    assert_ptr_equal(next->tables[0]->table, w.v->tables[0]->table);
    version_unref(w.v);
    w.v = next;
    struct iter *it = run_iter(op, w.v->runs, &how, NULL);
    iter_seek(it, slice_of_text("key000200"), UINT64_MAX); /* was in table 2 */
    assert_true(it->valid && slice_equal(it->key, slice_of_text("key000320")));
    iter_close(it);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_walked_whole_in_both_directions),
        cmocka_unit_test(every_seek_and_step_lands_where_the_array_says),
        cmocka_unit_test(a_table_that_cannot_be_read_is_an_error_and_the_others_go_on),
        cmocka_unit_test(handles_are_shared_by_versions_and_closed_with_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
