/* SPDX-License-Identifier: MIT
 *
 * Lines of memory asked for before they are looked at. Only the address is used: it need not be
 * anybody's.
 *
 * Not by __builtin_prefetch alone: gcc (12.2, -O2) takes a function that does nothing else for one
 * without effect and leaves out the calls of it. The empty statement is an effect.
 */
#ifndef TAMIZ_BASE_FETCH_H
#define TAMIZ_BASE_FETCH_H

#include <stdint.h>

enum { FETCH_LINE = 64 }; /* bytes that come at once */

static inline void fetch_line(const void *at)
{
    __builtin_prefetch(at);
    __asm__ volatile("");
}

/* Where the address is all there is. */
static inline void fetch_address(uintptr_t at)
{
    fetch_line((const void *)at);
}

static inline void fetch_line_to_write(const void *at)
{
    __builtin_prefetch(at, 1);
    __asm__ volatile("");
}

#endif
