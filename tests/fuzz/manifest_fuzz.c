/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes as an edit of the manifest. What is accepted encodes back into an
 * edit that means the same, and applying it gives a version whose runs are in order, or words.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/manifest_fuzz.c \
 *         src/[a-z]*[a-z]/[a-z]*.c -lxxhash -lzstd -pthread -lm
 */
#include <stdlib.h>

#include "version/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool what)
{
    if (!what)
        abort();
}

static void check_version(const struct version *v)
{
    for (uint32_t i = 0; i < v->run_count; i++) {
        const struct run *run = &v->runs[i];
        for (uint32_t t = 0; t < run->count; t++) {
            const struct slice key = run->tables[t]->smallest;
            must(slice_compare(key, run->tables[t]->largest) <= 0);
            must(t == 0 || slice_compare(run->tables[t - 1]->largest, key) < 0);
            must(run_find(run, key, run_word(run, key)) == run->tables[t]);
        }
    }
}

static void apply(struct op *op, const struct version_edit *edit)
{
    struct version *v, *next;
    const struct version_edit added = {NULL, 0, edit->added, edit->added_count};
    if (version_apply(op, &alloc_libc, NULL, &added, &v) == TAMIZ_OK) {
        check_version(v);
        if (version_apply(op, &alloc_libc, v, edit, &next) == TAMIZ_OK)
            check_version(next);
        version_unref(next);
    }
    version_unref(v);
    op_forgive(op);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct counters counters;
    struct op op;
    struct manifest_decoded d, again;
    struct buf body = buf_init(&alloc_libc);
    op_init(&op, &alloc_libc, &counters);
    const tamiz_status st = manifest_edit_decode(&op, &alloc_libc, slice_of(data, size), &d);
    if (st != TAMIZ_OK) {
        must((st == TAMIZ_CORRUPTION || st == TAMIZ_NOT_SUPPORTED) && op.status == st);
        return 0;
    }
    manifest_edit_encode(&body, &d.edit);
    must(manifest_edit_decode(&op, &alloc_libc, buf_slice(&body), &again) == TAMIZ_OK);
    must(again.edit.tree_count == d.edit.tree_count);
    for (size_t i = 0; i < d.edit.tree_count; i++) {
        const struct tree_edit *a = &again.edit.trees[i], *b = &d.edit.trees[i];
        must(a->keyspace == b->keyspace && a->log_number == b->log_number);
        must(a->tables.added_count == b->tables.added_count);
        must(a->tables.removed_count == b->tables.removed_count);
    }
    must(again.edit.next_file == d.edit.next_file && again.edit.last_seq == d.edit.last_seq);
    must(again.edit.keyspace_count == d.edit.keyspace_count);
    for (size_t i = 0; i < d.edit.tree_count; i++)
        apply(&op, &d.edit.trees[i].tables);
    manifest_decoded_free(&again);
    manifest_decoded_free(&d);
    buf_free(&body);
    return 0;
}
