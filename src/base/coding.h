/* SPDX-License-Identifier: MIT
 *
 * Integers to bytes and back. Little-endian everywhere, on every machine. Varints are LEB128: seven
 * bits a byte, low ones first, at most ten bytes.
 *
 * `struct reader` is the only way to take apart bytes that came from disk: it cannot run off its
 * end. A read past it yields zero and sets `bad`, so that a decoder checks once, at its own end.
 */
#ifndef TAMIZ_BASE_CODING_H
#define TAMIZ_BASE_CODING_H

#include "base/slice.h"

enum { VARINT_MAX = 10 };

static inline void store_u16(void *to, uint16_t v)
{
    uint8_t *b = (uint8_t *)to;
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
}

static inline void store_u32(void *to, uint32_t v)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(to, &v, 4);
}

static inline void store_u64(void *to, uint64_t v)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(to, &v, 8);
}

static inline uint16_t load_u16(const void *from)
{
    const uint8_t *b = (const uint8_t *)from;
    return (uint16_t)(b[0] | (b[1] << 8));
}

static inline uint32_t load_u32(const void *from)
{
    uint32_t v;
    memcpy(&v, from, 4);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}

static inline uint64_t load_u64(const void *from)
{
    uint64_t v;
    memcpy(&v, from, 8);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Bytes that `v` takes as a varint: 1 to 10. */
static inline size_t varint_size(uint64_t v)
{
    return v ? (size_t)(70 - __builtin_clzll(v)) / 7 : 1;
}

/* Writes `v`, returns the byte behind it. `to` has room for varint_size(v). */
static inline uint8_t *varint_store(uint8_t *to, uint64_t v)
{
    while (v >= 0x80) {
        *to++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *to++ = (uint8_t)v;
    return to;
}

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool bad; /* something was read that was not there, or was no varint */
};

static inline struct reader reader_of(struct slice s)
{
    /* An empty slice may have no address, and NULL + 0 is not for C to say. */
    return s.size ? (struct reader){s.data, s.data + s.size, false}
                  : (struct reader){NULL, NULL, false};
}

static inline size_t reader_left(const struct reader *r)
{
    return r->at == r->end ? 0 : (size_t)(r->end - r->at);
}

/* The next `size` bytes, borrowed; an empty slice and `bad` where there are fewer. */
static inline struct slice reader_take(struct reader *r, uint64_t size)
{
    if (r->bad || size > reader_left(r)) {
        r->bad = true;
        return slice_of(NULL, 0);
    }
    const struct slice got = slice_of(r->at, (size_t)size);
    if (size)
        r->at += size;
    return got;
}

static inline uint8_t reader_u8(struct reader *r)
{
    const struct slice s = reader_take(r, 1);
    return s.size ? s.data[0] : 0;
}

static inline uint16_t reader_u16(struct reader *r)
{
    const struct slice s = reader_take(r, 2);
    return s.size ? load_u16(s.data) : 0;
}

static inline uint32_t reader_u32(struct reader *r)
{
    const struct slice s = reader_take(r, 4);
    return s.size ? load_u32(s.data) : 0;
}

static inline uint64_t reader_u64(struct reader *r)
{
    const struct slice s = reader_take(r, 8);
    return s.size ? load_u64(s.data) : 0;
}

static inline uint64_t reader_varint(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; !r->bad && shift < 70; shift += 7) {
        if (r->at == r->end)
            break;
        const uint64_t byte = *r->at++;
        if (shift == 63 && byte > 1)
            break; /* more than 64 bits */
        v |= (byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
    r->bad = true;
    return 0;
}

/* A varint length and that many bytes, borrowed. */
static inline struct slice reader_block(struct reader *r)
{
    return reader_take(r, reader_varint(r));
}

#endif
