/* SPDX-License-Identifier: MIT
 *
 * Growable owned bytes. A failed append sets `failed` and changes nothing else; a builder appends
 * all it has and asks once at its end.
 */
#ifndef TAMIZ_BASE_BUF_H
#define TAMIZ_BASE_BUF_H

#include "base/alloc.h"
#include "base/slice.h"

struct buf {
    const struct alloc *alloc; /* outlives the buffer */
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool failed; /* an append found no memory; cleared by buf_clear */
};

static inline struct buf buf_init(const struct alloc *alloc)
{
    return (struct buf){alloc, NULL, 0, 0, false};
}

void buf_free(struct buf *b); /* empty and usable again afterwards */
bool buf_reserve(struct buf *b,
                 size_t more); /* room for `more` bytes behind size; false and failed: none */
void buf_append_grow(struct buf *b, const void *data, size_t size);
void buf_text(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A copy for the user, NUL-terminated, freed with tamiz_free(); NULL where memory was or is out. */
char *buf_handout(const struct buf *b);

static inline void buf_clear(struct buf *b)
{
    b->size = 0;
    b->failed = false;
}

static inline struct slice buf_slice(const struct buf *b)
{
    return slice_of(b->data, b->size);
}

static inline void buf_append(struct buf *b, const void *data, size_t size)
{
    if (size && b->capacity - b->size >= size) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): with capacity there is data. */
        memcpy(b->data + b->size, data, size);
        b->size += size;
    } else if (size) {
        buf_append_grow(b, data, size);
    }
}

static inline void buf_slice_append(struct buf *b, struct slice s)
{
    buf_append(b, s.data, s.size);
}

void buf_u8(struct buf *b, uint8_t v);
void buf_u32(struct buf *b, uint32_t v);
void buf_u64(struct buf *b, uint64_t v);
void buf_varint(struct buf *b, uint64_t v);
void buf_block(struct buf *b,
               struct slice s); /* varint length, then the bytes: what reader_block reads */

#endif
