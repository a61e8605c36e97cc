/* SPDX-License-Identifier: MIT */
#include "version/listing.h"

#include <stdlib.h>

void listing_init(struct listing *l, const struct alloc *alloc)
{
    *l = (struct listing){.largest = 0};
    for (int kind = 0; kind <= FILE_TABLE; kind++)
        l->numbers[kind] = buf_init(alloc);
}

void listing_free(struct listing *l)
{
    for (int kind = 0; kind <= FILE_TABLE; kind++)
        buf_free(&l->numbers[kind]);
}

static void see(void *ctx, const char *name)
{
    struct listing *l = ctx;
    uint64_t number;
    const enum file_kind kind = filename_parse(name, &number);
    if (kind == FILE_OTHER)
        return;
    buf_append(&l->numbers[kind], &number, sizeof number);
    if (number > l->largest)
        l->largest = number;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

tamiz_status listing_take(struct op *op, const tamiz_env *env, const char *directory,
                          struct listing *l)
{
    l->largest = 0;
    for (int kind = 0; kind <= FILE_TABLE; kind++)
        buf_clear(&l->numbers[kind]);
    const tamiz_status st = env_list(op, env, directory, see, l);
    if (st != TAMIZ_OK)
        return st;
    for (int kind = 0; kind <= FILE_TABLE; kind++) {
        struct buf *b = &l->numbers[kind];
        if (b->failed)
            return op_fail_memory(op);
        if (b->size)
            qsort(b->data, b->size / sizeof(uint64_t), sizeof(uint64_t), ascending);
    }
    return TAMIZ_OK;
}

size_t listing_count(const struct listing *l, enum file_kind kind)
{
    return l->numbers[kind].size / sizeof(uint64_t);
}

const uint64_t *listing_numbers(const struct listing *l, enum file_kind kind)
{
    return (const uint64_t *)(const void *)l->numbers[kind].data;
}

bool listing_has(const struct listing *l, enum file_kind kind, uint64_t number)
{
    const size_t n = listing_count(l, kind);
    return n && bsearch(&number, listing_numbers(l, kind), n, sizeof number, ascending);
}

bool listing_is_empty(const struct listing *l)
{
    for (int kind = 0; kind <= FILE_TABLE; kind++)
        if (l->numbers[kind].size)
            return false;
    return true;
}

tamiz_status listing_remove(struct op *op, const tamiz_env *env, const char *directory,
                            const struct listing *l, enum file_kind kind)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; st == TAMIZ_OK && i < listing_count(l, kind); i++) {
        char *path = filename_path(op->alloc, directory, kind, listing_numbers(l, kind)[i]);
        st = path ? env_remove(op, env, path) : op_fail_memory(op);
        mem_free_text(op->alloc, path);
    }
    return st;
}
