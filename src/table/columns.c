/* SPDX-License-Identifier: MIT */
#include "table/columns.h"

#include "base/coding.h"
#include "base/hash_short.h"
#include "table/raw_entry.h"

typedef unsigned long long ull; /* for printing */

enum { SHARED, SUFFIX_SIZE, VALUE_SIZE, STAMP, SIZED, SUFFIX = SIZED, VALUE, FIELDS };

enum { SHORT = 16 }; /* bytes that are copied at once, needed or not */
static_assert((int)SHORT <= (int)BLOCK_SLACK, "so many can be written behind a block");

/* ---- apart ---- */

static bool fields_of(struct slice entry, struct slice fields[FIELDS])
{
    struct reader r = reader_of(entry);
    uint64_t number[SIZED];
    for (int f = 0; f < SIZED; f++) {
        const uint8_t *from = r.at;
        number[f] = reader_varint(&r);
        if (r.bad)
            return false;
        fields[f] = slice_of(from, (size_t)(r.at - from));
    }
    fields[SUFFIX] = reader_take(&r, number[SUFFIX_SIZE]);
    fields[VALUE] = reader_take(&r, number[VALUE_SIZE]);
    return !r.bad && reader_left(&r) == 0;
}

bool columns_append(const struct block *b, struct buf *out)
{
    if (!buf_reserve(out, b->entries.size))
        return true;
    for (int f = 0; f < FIELDS; f++)
        for (uint32_t i = 0; i < b->count; i++) {
            struct slice entry, fields[FIELDS];
            if (!entry_bytes(b, i, &entry) || !fields_of(entry, fields))
                return false;
            buf_slice_append(out, fields[f]);
        }
    return true;
}

/* ---- together ---- */

static size_t key_room(size_t columns_size)
{
    return (columns_size < KEY_SIZE_MAX ? columns_size : KEY_SIZE_MAX) + SHORT;
}

size_t columns_room(size_t size)
{
    return size + SHORT + key_room(size);
}

static unsigned offset_width(size_t entries_size)
{
    return entries_size <= UINT16_MAX ? 2 : entries_size <= UINT32_MAX ? 4 : 8;
}

/* 0: there is no block of `size` bytes whose entries have so many. */
static uint32_t count_of(size_t size, size_t entries_size)
{
    const size_t each = 1 + offset_width(entries_size);
    if (size < BLOCK_HEADER_SIZE || entries_size > size - BLOCK_HEADER_SIZE)
        return 0;
    const size_t arrays = size - BLOCK_HEADER_SIZE - entries_size;
    return arrays % each || arrays / each > UINT32_MAX ? 0 : (uint32_t)(arrays / each);
}

/* The varint at *at, which is known to have an end, moved to *to. false: it is longer than one may
 * be. */
static inline bool move_varint(const uint8_t **at, uint8_t **to, uint64_t *value)
{
    uint8_t byte = *(*at)++;
    *(*to)++ = byte;
    *value = byte & 0x7f;
    for (unsigned shift = 7; byte >= 0x80; shift += 7) {
        if (shift >= 7 * VARINT_MAX)
            return false;
        byte = *(*at)++;
        *(*to)++ = byte;
        *value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return true;
}

static inline uint8_t *move_bytes(const uint8_t **at, uint8_t *to, size_t size)
{
    if (size <= SHORT)
        memcpy(to, *at, SHORT);
    else
        memcpy(to, *at, size);
    *at += size;
    return to + size;
}

/* Where the fields of the next entry stand, each in its column. */
struct columns {
    const uint8_t *at[FIELDS];
    const uint8_t *end[FIELDS]; /* known of the last two alone */
};

/* Behind `count` varints; NULL: there are fewer. */
static const uint8_t *behind_varints(const uint8_t *at, const uint8_t *end, uint32_t count)
{
    for (; count && at < end; at++)
        count -= *at < 0x80;
    return count ? NULL : at;
}

/* Each column that has varints has `count` of them, and the values end where all does. */
static bool columns_find(const uint8_t *at, const uint8_t *end, uint32_t count, struct columns *c)
{
    for (int f = 0; f < SIZED; f++) {
        c->at[f] = at;
        at = behind_varints(at, end, count);
        if (!at)
            return false;
    }
    uint64_t values = 0;
    struct reader sizes =
        reader_of(slice_of(c->at[VALUE_SIZE], (size_t)(c->at[STAMP] - c->at[VALUE_SIZE])));
    for (uint32_t i = 0; i < count; i++)
        if (__builtin_add_overflow(values, reader_varint(&sizes), &values) || sizes.bad)
            return false;
    if (values > (uint64_t)(end - at))
        return false;
    c->at[SUFFIX] = at;
    c->at[VALUE] = c->end[SUFFIX] = end - values;
    c->end[VALUE] = end;
    return true;
}

/* A block being made. */
struct making {
    struct columns columns;
    uint8_t *to;  /* where the next entry begins */
    uint8_t *key; /* room to put one together */
    size_t kept;  /* bytes of it that are the restart's */
    struct slice restart;
};

/* Moves the next entry; *key is whole. Its first bytes, where the restart has them, often stand in
 * the room already. */
static inline bool entry_move(struct making *m, bool is_restart, struct slice *key)
{
    struct columns *c = &m->columns;
    uint64_t shared, suffix, value, stamp;
    if (!move_varint(&c->at[SHARED], &m->to, &shared) ||
        !move_varint(&c->at[SUFFIX_SIZE], &m->to, &suffix) ||
        !move_varint(&c->at[VALUE_SIZE], &m->to, &value) ||
        !move_varint(&c->at[STAMP], &m->to, &stamp))
        return false;
    if (suffix > (uint64_t)(c->end[SUFFIX] - c->at[SUFFIX]) ||
        value > (uint64_t)(c->end[VALUE] - c->at[VALUE]) || suffix > KEY_SIZE_MAX)
        return false;
    *key = slice_of(m->to, (size_t)suffix);
    m->to = move_bytes(&c->at[SUFFIX], m->to, (size_t)suffix);
    m->to = move_bytes(&c->at[VALUE], m->to, (size_t)value);
    if (is_restart) {
        m->restart = *key;
        m->kept = 0;
    }
    if (shared == 0)
        return true;
    if (is_restart || shared > m->restart.size || shared + suffix > KEY_SIZE_MAX)
        return false;
    if (m->kept < shared)
        memcpy(m->key, m->restart.data, (size_t)shared);
    m->kept = (size_t)shared;
    const uint8_t *rest = key->data;
    (void)move_bytes(&rest, m->key + shared, (size_t)suffix);
    *key = slice_of(m->key, (size_t)(shared + suffix));
    return true;
}

static inline void store_offset(uint8_t *offsets, unsigned width, uint32_t i, size_t offset)
{
    switch (width) {
    case 2: store_u16(offsets + (size_t)i * 2, (uint16_t)offset); break;
    case 4: store_u32(offsets + (size_t)i * 4, (uint32_t)offset); break;
    default: store_u64(offsets + (size_t)i * 8, offset); break;
    }
}

bool columns_expand(uint8_t *room, size_t columns_size, uint8_t *payload, size_t size)
{
    const uint32_t count = count_of(size, columns_size);
    const unsigned width = offset_width(columns_size);
    const uint8_t *end = room + columns_size;
    uint8_t *tags = payload + BLOCK_HEADER_SIZE, *offsets = tags + count;
    uint8_t *entries = payload + (size - columns_size);
    struct making m = {.to = entries, .key = room + size + SHORT};
    if (count == 0 || !columns_find(room, end, count, &m.columns))
        return false;
    store_u32(payload, count);
    payload[4] = (uint8_t)width;
    payload[5] = BLOCK_GROUP;
    for (uint32_t i = 0; i < count; i++) {
        struct slice key;
        store_offset(offsets, width, i, (size_t)(m.to - entries));
        if (!entry_move(&m, i % BLOCK_GROUP == 0, &key))
            return false;
        tags[i] = hash_tag(hash_key_short(key));
    }
    return m.to == payload + size;
}

tamiz_status columns_unpack(struct op *op, struct codec_pool *pool, const struct packed_block *from,
                            uint8_t *payload)
{
    const size_t size = (size_t)from->size, room_size = columns_room(size);
    size_t columns_size;
    tamiz_status st;
    uint8_t *room = mem_new(op->alloc, room_size);
    if (!room)
        return op_fail_memory(op);
    TRY(codec_unpack(op, pool, from, room, &columns_size));
    if (!columns_expand(room, columns_size, payload, size))
        TRY(op_fail(op, TAMIZ_CORRUPTION,
                    "%s: packed block at offset %llu: expected columns of a block of %llu bytes, "
                    "found %zu bytes that are none",
                    from->path, (ull)from->offset, (ull)from->size, columns_size));
done:
    mem_free(op->alloc, room, room_size);
    return st;
}
