/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/coding.h"

void buf_free(struct buf *b)
{
    mem_free(b->alloc, b->data, b->capacity);
    *b = buf_init(b->alloc);
}

bool buf_reserve(struct buf *b, size_t more)
{
    if (b->capacity - b->size >= more)
        return true;
    size_t need;
    if (__builtin_add_overflow(b->size, more, &need) || need > SIZE_MAX / 2) {
        b->failed = true;
        return false;
    }
    size_t capacity = b->capacity ? b->capacity * 2 : 64;
    if (capacity < need)
        capacity = need;
    uint8_t *data = mem_resize(b->alloc, b->data, b->capacity, capacity);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

void buf_append_grow(struct buf *b, const void *data, size_t size)
{
    if (!buf_reserve(b, size))
        return;
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

void buf_text(struct buf *b, const char *text)
{
    buf_append(b, text, strlen(text));
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (size < 0 || !buf_reserve(b, (size_t)size + 1)) {
        b->failed = true;
    } else {
        (void)vsnprintf((char *)b->data + b->size, (size_t)size + 1, format, again);
        b->size += (size_t)size;
    }
    va_end(again);
}

char *buf_handout(const struct buf *b)
{
    char *copy = b->failed ? NULL : mem_handout(b->alloc, b->size + 1);
    if (!copy)
        return NULL;
    if (b->size)
        memcpy(copy, b->data, b->size);
    copy[b->size] = 0;
    return copy;
}

void buf_u8(struct buf *b, uint8_t v)
{
    buf_append(b, &v, 1);
}

void buf_u32(struct buf *b, uint32_t v)
{
    uint8_t bytes[4];
    store_u32(bytes, v);
    buf_append(b, bytes, sizeof bytes);
}

void buf_u64(struct buf *b, uint64_t v)
{
    uint8_t bytes[8];
    store_u64(bytes, v);
    buf_append(b, bytes, sizeof bytes);
}

void buf_varint(struct buf *b, uint64_t v)
{
    uint8_t bytes[VARINT_MAX];
    buf_append(b, bytes, (size_t)(varint_store(bytes, v) - bytes));
}

void buf_block(struct buf *b, struct slice s)
{
    buf_varint(b, s.size);
    buf_slice_append(b, s);
}
