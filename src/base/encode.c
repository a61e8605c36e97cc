/* SPDX-License-Identifier: MIT
 *
 * Order-preserving encodings. Each component is made so that memcmp on its bytes is its order; a
 * descending one is the same bytes inverted, which is right because no encoding is the beginning of
 * another one.
 *
 *     u8, u32, u64    1, 4, 8 bytes, big-endian
 *     i32, i64        the same with the sign bit turned over: negative ones come first
 *     double          the 64 bits of IEEE 754, big-endian: sign bit turned over where it is clear,
 *                     all bits where it is set. NaN: 7f f8 00 … before that
 *     bytes           each byte as it is, but 00 as 00 ff; then 00 01
 *
 * The end mark is below every byte that could follow in a longer string (00 ff, or 01 and more), so
 * a prefix comes first; and as 00 is always followed by ff or 01, the end is found.
 */
#include "tamiz/encode.h"

#include "base/op.h"

enum { ESCAPE = 0x00, ESCAPED_ZERO = 0xff, END_MARK = 0x01 };

#define SIGN    (UINT64_C(1) << 63)
#define THE_NAN UINT64_C(0x7ff8000000000000)

/* What each byte is turned over with. */
static uint8_t mask_of(tamiz_order order)
{
    return order == TAMIZ_DESCENDING ? 0xff : 0;
}

/* ---- writing ---- */

static void put(tamiz_encoder *e, uint8_t byte)
{
    if (e->size < e->capacity)
        e->buffer[e->size] = byte;
    e->size++;
}

static void put_big_endian(tamiz_encoder *e, uint64_t value, unsigned bytes, tamiz_order order)
{
    for (unsigned i = bytes; i-- > 0;)
        put(e, (uint8_t)(value >> (8 * i)) ^ mask_of(order));
}

void tamiz_encode_u8(tamiz_encoder *e, uint8_t value, tamiz_order order)
{
    put_big_endian(e, value, 1, order);
}

void tamiz_encode_u32(tamiz_encoder *e, uint32_t value, tamiz_order order)
{
    put_big_endian(e, value, 4, order);
}

void tamiz_encode_u64(tamiz_encoder *e, uint64_t value, tamiz_order order)
{
    put_big_endian(e, value, 8, order);
}

void tamiz_encode_i32(tamiz_encoder *e, int32_t value, tamiz_order order)
{
    put_big_endian(e, (uint32_t)value ^ (UINT32_C(1) << 31), 4, order);
}

void tamiz_encode_i64(tamiz_encoder *e, int64_t value, tamiz_order order)
{
    put_big_endian(e, (uint64_t)value ^ SIGN, 8, order);
}

void tamiz_encode_double(tamiz_encoder *e, double value, tamiz_order order)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        bits = THE_NAN;
    put_big_endian(e, bits & SIGN ? ~bits : bits ^ SIGN, 8, order);
}

void tamiz_encode_bytes(tamiz_encoder *e, const void *data, size_t size, tamiz_order order)
{
    const uint8_t *bytes = data;
    const uint8_t mask = mask_of(order);
    for (size_t i = 0; i < size; i++) {
        put(e, bytes[i] ^ mask);
        if (bytes[i] == ESCAPE)
            put(e, ESCAPED_ZERO ^ mask);
    }
    put(e, ESCAPE ^ mask);
    put(e, END_MARK ^ mask);
}

/* ---- reading ---- */

static tamiz_status refuse(tamiz_decoder *d, const char *expected)
{
    d->status =
        op_refuse(TAMIZ_CORRUPTION, "key: expected %s, found %zu bytes that do not begin so",
                  expected, d->left);
    return d->status;
}

static tamiz_status take_big_endian(tamiz_decoder *d, unsigned bytes, tamiz_order order,
                                    uint64_t *value)
{
    *value = 0;
    if (d->status != TAMIZ_OK)
        return d->status;
    if (d->left < bytes)
        return refuse(d, bytes == 1 ? "1 byte" : bytes == 4 ? "4 bytes" : "8 bytes");
    for (unsigned i = 0; i < bytes; i++)
        *value = *value << 8 | (uint8_t)(d->at[i] ^ mask_of(order));
    d->at += bytes;
    d->left -= bytes;
    return TAMIZ_OK;
}

tamiz_status tamiz_decode_u8(tamiz_decoder *d, uint8_t *value, tamiz_order order)
{
    uint64_t wide;
    const tamiz_status st = take_big_endian(d, 1, order, &wide);
    *value = (uint8_t)wide;
    return st;
}

tamiz_status tamiz_decode_u32(tamiz_decoder *d, uint32_t *value, tamiz_order order)
{
    uint64_t wide;
    const tamiz_status st = take_big_endian(d, 4, order, &wide);
    *value = (uint32_t)wide;
    return st;
}

tamiz_status tamiz_decode_u64(tamiz_decoder *d, uint64_t *value, tamiz_order order)
{
    return take_big_endian(d, 8, order, value);
}

tamiz_status tamiz_decode_i32(tamiz_decoder *d, int32_t *value, tamiz_order order)
{
    uint64_t wide;
    const tamiz_status st = take_big_endian(d, 4, order, &wide);
    const uint32_t bits = (uint32_t)wide ^ (UINT32_C(1) << 31);
    *value = 0;
    if (st == TAMIZ_OK)
        memcpy(value, &bits, sizeof bits);
    return st;
}

tamiz_status tamiz_decode_i64(tamiz_decoder *d, int64_t *value, tamiz_order order)
{
    uint64_t bits;
    const tamiz_status st = take_big_endian(d, 8, order, &bits);
    bits ^= SIGN;
    *value = 0;
    if (st == TAMIZ_OK)
        memcpy(value, &bits, sizeof bits);
    return st;
}

tamiz_status tamiz_decode_double(tamiz_decoder *d, double *value, tamiz_order order)
{
    uint64_t bits;
    tamiz_status st = take_big_endian(d, 8, order, &bits);
    *value = 0;
    if (st != TAMIZ_OK)
        return st;
    bits = bits & SIGN ? bits ^ SIGN : ~bits;
    double found;
    memcpy(&found, &bits, sizeof found);
    if (found != found && bits != THE_NAN)
        return refuse(d, "a double, whose NaN is one alone");
    *value = found;
    return TAMIZ_OK;
}

tamiz_status tamiz_decode_bytes(tamiz_decoder *d, void *buffer, size_t capacity, size_t *size,
                                tamiz_order order)
{
    uint8_t *out = buffer;
    const uint8_t mask = mask_of(order);
    size_t n = 0, i = 0;
    *size = 0;
    if (d->status != TAMIZ_OK)
        return d->status;
    for (; i + 1 < d->left; i++) {
        const uint8_t byte = d->at[i] ^ mask;
        if (byte == ESCAPE && (uint8_t)(d->at[i + 1] ^ mask) != ESCAPED_ZERO)
            break;
        i += byte == ESCAPE;
        if (n < capacity)
            out[n] = byte;
        n++;
    }
    if (i + 1 >= d->left || (uint8_t)(d->at[i + 1] ^ mask) != END_MARK)
        return refuse(d, "a string and its end mark");
    d->at += i + 2;
    d->left -= i + 2;
    *size = n;
    return TAMIZ_OK;
}

tamiz_status tamiz_decode_end(tamiz_decoder *d)
{
    if (d->status == TAMIZ_OK && d->left)
        return refuse(d, "the end");
    return d->status;
}
