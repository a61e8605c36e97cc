/* SPDX-License-Identifier: MIT */
#include "support/alloc_fail.h"

#include <stdlib.h>
#include <string.h>

/* In front of each piece; as large as malloc's alignment, so that the piece keeps it. */
enum { HEAD = 16 };

static void set_size(uint8_t *whole, size_t size)
{
    memcpy(whole, &size, sizeof size);
}

static size_t size_of(const uint8_t *whole)
{
    size_t size;
    memcpy(&size, whole, sizeof size);
    return size;
}

static void raise_to(_Atomic uint64_t *most, uint64_t value)
{
    uint64_t before = atomic_load(most);
    while (before < value && !atomic_compare_exchange_weak(most, &before, value))
        ;
}

static bool fails(struct alloc_fail *a)
{
    const uint64_t number = atomic_fetch_add(&a->asked, 1) + 1;
    const uint64_t at = atomic_load(&a->fail_at);
    if (at == 0 || number < at || (number > at && !atomic_load(&a->sticky)))
        return false;
    atomic_fetch_add(&a->failed, 1);
    return true;
}

static void *give_back(struct alloc_fail *a, uint8_t *whole)
{
    if (whole) {
        atomic_fetch_sub(&a->blocks, 1);
        atomic_fetch_sub(&a->bytes, size_of(whole));
        free(whole);
    }
    return NULL;
}

static void *resize(void *ctx, void *p, size_t old_size, size_t new_size)
{
    struct alloc_fail *a = ctx;
    uint8_t *whole = p ? (uint8_t *)p - HEAD : NULL;
    if (whole && size_of(whole) != old_size)
        atomic_fetch_add(&a->wrong, 1);
    if (new_size == 0)
        return give_back(a, whole);
    raise_to(&a->largest, new_size);
    if (fails(a) || new_size > SIZE_MAX - HEAD)
        return NULL;
    const size_t before = whole ? size_of(whole) : 0;
    uint8_t *grown = realloc(whole, HEAD + new_size);
    if (!grown)
        return NULL;
    set_size(grown, new_size);
    if (!whole)
        atomic_fetch_add(&a->blocks, 1);
    atomic_fetch_sub(&a->bytes, before);
    raise_to(&a->most_bytes, atomic_fetch_add(&a->bytes, new_size) + new_size);
    return grown + HEAD;
}

void alloc_fail_init(struct alloc_fail *a)
{
    memset(a, 0, sizeof *a);
    a->alloc.hook = (tamiz_allocator){resize, a};
}

void alloc_fail_at(struct alloc_fail *a, uint64_t nth, bool sticky)
{
    atomic_store(&a->sticky, sticky);
    atomic_store(&a->fail_at, nth ? atomic_load(&a->asked) + nth : 0);
}

void alloc_fail_done(const struct alloc_fail *a)
{
    assert_int_equal(atomic_load(&a->wrong), 0);
    assert_int_equal(atomic_load(&a->blocks), 0);
    assert_int_equal(atomic_load(&a->bytes), 0);
}
