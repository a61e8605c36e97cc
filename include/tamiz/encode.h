/* SPDX-License-Identifier: MIT
 *
 * Keys from numbers and texts: encodings whose memcmp order is the natural one, and back. What a
 * custom comparator would be wanted for, answered without one (docs/keys.md).
 *
 *     unsigned char key[64];
 *     tamiz_encoder e = tamiz_encoder_of(key, sizeof key);
 *     tamiz_encode_bytes(&e, city, city_size, TAMIZ_ASCENDING);
 *     tamiz_encode_i64(&e, time, TAMIZ_DESCENDING);          // newest first within a city
 *     if (tamiz_encoder_fits(&e)) tamiz_put(db, key, e.size, ...);
 *
 * One component behind another is a tuple, and orders as tuples do: by the first component, then
 * the second. No encoded component is the beginning of a different one of its type, so the first
 * components alone, encoded, are a prefix of exactly the keys that begin with them.
 *
 * The same types and orders must be used in the same places of all keys that are compared, and for
 * decoding: nothing in the bytes says what they are.
 */
#ifndef TAMIZ_ENCODE_H
#define TAMIZ_ENCODE_H

#include "tamiz/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tamiz_order { TAMIZ_ASCENDING, TAMIZ_DESCENDING } tamiz_order;

/* Writes into the caller's buffer and never beyond it. `size` goes on counting where the buffer has
 * ended, so that it says how large one had to be. */
typedef struct tamiz_encoder {
    unsigned char *buffer; /* borrowed; NULL with capacity 0: only counts */
    size_t capacity;
    size_t size; /* of all that was encoded */
} tamiz_encoder;

static inline tamiz_encoder tamiz_encoder_of(void *buffer, size_t capacity)
{
    tamiz_encoder e;
    e.buffer = (unsigned char *)buffer;
    e.capacity = capacity;
    e.size = 0;
    return e;
}

/* Is all of it in the buffer? */
static inline bool tamiz_encoder_fits(const tamiz_encoder *e)
{
    return e->size <= e->capacity;
}

/* Fixed widths: 1, 4 and 8 bytes. A u8 in front of a component is how something optional is told:
 * 0 for absent, which then comes first, 1 and the component where it is there. */
TAMIZ_API void tamiz_encode_u8(tamiz_encoder *e, uint8_t value, tamiz_order order);
TAMIZ_API void tamiz_encode_u32(tamiz_encoder *e, uint32_t value, tamiz_order order);
TAMIZ_API void tamiz_encode_u64(tamiz_encoder *e, uint64_t value, tamiz_order order);
TAMIZ_API void tamiz_encode_i32(tamiz_encoder *e, int32_t value, tamiz_order order);
TAMIZ_API void tamiz_encode_i64(tamiz_encoder *e, int64_t value, tamiz_order order);

/* 8 bytes. -inf < negative < -0.0 < +0.0 < positive < +inf < NaN. The two zeros are two keys. Every
 * NaN, whatever its sign and payload, is encoded as one and the same. */
TAMIZ_API void tamiz_encode_double(tamiz_encoder *e, double value, tamiz_order order);

/* Any bytes, a prefix before what it begins: size, one more byte for each zero byte, and 2. `data`
 * NULL with size 0 is the empty string. */
TAMIZ_API void tamiz_encode_bytes(tamiz_encoder *e, const void *data, size_t size,
                                  tamiz_order order);

/* Reads components in the order they were encoded. The first failure stays: all calls after it
 * fail too, and `status` can be asked once at the end. */
typedef struct tamiz_decoder {
    const unsigned char *at; /* borrowed */
    size_t left;
    tamiz_status status;
} tamiz_decoder;

static inline tamiz_decoder tamiz_decoder_of(const void *key, size_t size)
{
    tamiz_decoder d;
    d.at = (const unsigned char *)key;
    d.left = size;
    d.status = TAMIZ_OK;
    return d;
}

/* TAMIZ_CORRUPTION: fewer bytes than that, or not what the encoder writes; *value is then 0. */
TAMIZ_API tamiz_status tamiz_decode_u8(tamiz_decoder *d, uint8_t *value, tamiz_order order);
TAMIZ_API tamiz_status tamiz_decode_u32(tamiz_decoder *d, uint32_t *value, tamiz_order order);
TAMIZ_API tamiz_status tamiz_decode_u64(tamiz_decoder *d, uint64_t *value, tamiz_order order);
TAMIZ_API tamiz_status tamiz_decode_i32(tamiz_decoder *d, int32_t *value, tamiz_order order);
TAMIZ_API tamiz_status tamiz_decode_i64(tamiz_decoder *d, int64_t *value, tamiz_order order);
TAMIZ_API tamiz_status tamiz_decode_double(tamiz_decoder *d, double *value, tamiz_order order);

/* Copies what fits into `buffer`; *size is the size of the whole string, so that more than capacity
 * says that it was cut. A buffer of the decoder's `left` bytes always suffices. */
TAMIZ_API tamiz_status tamiz_decode_bytes(tamiz_decoder *d, void *buffer, size_t capacity,
                                          size_t *size, tamiz_order order);

/* Are all bytes used, and none was wrong? TAMIZ_CORRUPTION: not so. */
TAMIZ_API tamiz_status tamiz_decode_end(tamiz_decoder *d);

#ifdef __cplusplus
}
#endif
#endif
