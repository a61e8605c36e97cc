/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes as a batch. What is accepted encodes back into the same writes.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/batch_fuzz.c \
 *         src/base/[a-z]*.c src/log/batch.c -lxxhash
 */
#include <stdlib.h>

#include "log/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool what)
{
    if (!what)
        abort();
}

static void same_writes(struct batch_reader a, struct batch_reader b)
{
    struct batch_write x, y;
    while (batch_next(&a, &x)) {
        must(batch_next(&b, &y));
        must(x.kind == y.kind && x.keyspace == y.keyspace && x.seq == y.seq);
        must(slice_equal(x.key, y.key) && slice_equal(x.value, y.value));
    }
    must(!batch_next(&b, &y));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct counters counters;
    struct op op;
    struct batch again;
    struct batch_reader r, copy, walk;
    struct batch_write w;
    uint64_t first, count;
    op_init(&op, &alloc_libc, &counters);
    const tamiz_status st = batch_open(&op, slice_of(data, size), &r, &first, &count);
    if (st != TAMIZ_OK) {
        must(st == TAMIZ_CORRUPTION && op.status == st && !batch_next(&r, &w));
        return 0;
    }
    batch_init(&again, &alloc_libc);
    for (copy = r; batch_next(&copy, &w);)
        must(batch_add(&op, &again, w.kind, w.keyspace, w.key, w.value) == TAMIZ_OK);
    must(again.count == count);
    batch_walk(&again, first, &walk);
    same_writes(r, walk);
    batch_free(&again);
    return 0;
}
