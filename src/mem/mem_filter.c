/* SPDX-License-Identifier: MIT */
#include "mem/mem_filter.h"

#include <string.h>

bool mem_filter_init(struct mem_filter *f, const struct alloc *alloc, uint64_t keys)
{
    const uint64_t most = UINT32_MAX / MEM_FILTER_BITS_PER_KEY; /* 512 MiB of lines at the most */
    const uint64_t bits = (keys < most ? keys : most) * MEM_FILTER_BITS_PER_KEY;
    const uint32_t count = (uint32_t)(bits / 512 + 1);
    f->lines = mem_new_aligned(alloc, count * sizeof *f->lines, 64);
    f->line_count = f->lines ? count : 0;
    if (f->lines)
        memset(f->lines, 0, count * sizeof *f->lines); /* nobody reads yet */
    return f->lines != NULL;
}

void mem_filter_free(struct mem_filter *f, const struct alloc *alloc)
{
    mem_free_aligned(alloc, f->lines, mem_filter_bytes(f), 64);
}
