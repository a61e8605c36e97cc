/* SPDX-License-Identifier: MIT
 *
 * 128 bits, in two halves: the product of two 64-bit numbers, and shifts. By the compiler's own
 * type where it has one; 32-bit machines have none.
 */
#ifndef TAMIZ_BASE_WIDE_H
#define TAMIZ_BASE_WIDE_H

#include <stdint.h>

struct wide {
    uint64_t low, high;
};

#if defined(__SIZEOF_INT128__) && !defined(TAMIZ_NO_INT128)

__extension__ typedef unsigned __int128 wide_native;

static inline struct wide wide_of(wide_native n)
{
    return (struct wide){(uint64_t)n, (uint64_t)(n >> 64)};
}

static inline struct wide wide_product(uint64_t a, uint64_t b)
{
    return wide_of((wide_native)a * b);
}

/* `shift` below 128. */
static inline struct wide wide_left(struct wide w, unsigned shift)
{
    return wide_of(((wide_native)w.high << 64 | w.low) << shift);
}

/* `shift` below 128. */
static inline struct wide wide_right(struct wide w, unsigned shift)
{
    return wide_of(((wide_native)w.high << 64 | w.low) >> shift);
}

#else

static inline struct wide wide_product(uint64_t a, uint64_t b)
{
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, left = a1 * b0, right = a0 * b1;
    const uint64_t middle = (low >> 32) + (uint32_t)left + (uint32_t)right;
    return (struct wide){middle << 32 | (uint32_t)low,
                         a1 * b1 + (left >> 32) + (right >> 32) + (middle >> 32)};
}

static inline struct wide wide_left(struct wide w, unsigned shift)
{
    if (shift >= 64)
        return (struct wide){0, w.low << (shift - 64)};
    return shift ? (struct wide){w.low << shift, w.high << shift | w.low >> (64 - shift)} : w;
}

static inline struct wide wide_right(struct wide w, unsigned shift)
{
    if (shift >= 64)
        return (struct wide){w.high >> (shift - 64), 0};
    return shift ? (struct wide){w.low >> shift | w.high << (64 - shift), w.high >> shift} : w;
}

#endif
#endif
