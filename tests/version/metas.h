/* SPDX-License-Identifier: MIT
 *
 * Tables that exist in name only, for tests of versions and of the manifest.
 */
#ifndef TAMIZ_TEST_METAS_H
#define TAMIZ_TEST_METAS_H

#include "support/test.h"
#include "version/version.h"

/* One reference, of whoever calls. */
static inline struct table_meta *meta_make(uint64_t number, uint32_t level, uint64_t run,
                                           const char *smallest, const char *largest)
{
    struct test_op t;
    const struct table_meta fields = {
        .number = number,
        .file_id = number * 1000 + 1,
        .file_size = number * 100,
        .level = level,
        .run = run,
        .entries = 10,
        .keys = 8,
        .tombstones = 2,
        .seq_min = number,
        .seq_max = number + 9,
        .filter_bytes = 64,
        .ranges = 3,
        .smallest = slice_of_text(smallest),
        .largest = slice_of_text(largest),
    };
    test_op_init(&t);
    struct table_meta *m = table_meta_new(&t.op, &alloc_libc, &fields);
    assert_non_null(m);
    return m;
}

static inline void metas_free(struct table_meta *const *metas, size_t n)
{
    for (size_t i = 0; i < n; i++)
        table_meta_unref(&alloc_libc, metas[i]);
}

static inline bool metas_equal(const struct table_meta *a, const struct table_meta *b)
{
    return a->number == b->number && a->file_id == b->file_id && a->file_size == b->file_size &&
           a->keyspace == b->keyspace && a->level == b->level && a->run == b->run &&
           a->entries == b->entries && a->keys == b->keys && a->tombstones == b->tombstones &&
           a->seq_min == b->seq_min && a->seq_max == b->seq_max &&
           a->filter_bytes == b->filter_bytes && a->ranges == b->ranges &&
           slice_equal(a->smallest, b->smallest) && slice_equal(a->largest, b->largest);
}

/* Same tables in the same order, whatever handles they have. */
static inline bool versions_equal(const struct version *a, const struct version *b)
{
    bool same = a->table_count == b->table_count && a->run_count == b->run_count;
    for (uint32_t i = 0; same && i < a->table_count; i++)
        same = metas_equal(a->tables[i], b->tables[i]);
    return same;
}

/* An edit's tables, all of the default keyspace: removed, their count, added, their count. */
#define TABLES(...) .trees = &(const struct tree_edit){.tables = {__VA_ARGS__}}, .tree_count = 1

#endif
