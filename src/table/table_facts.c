/* SPDX-License-Identifier: MIT
 *
 * What a table says of itself.
 */
#include "table/table_inside.h"

uint64_t table_fence8(const struct table *t, uint32_t block, size_t skip)
{
    struct slice prefix;
    const struct slice rest = index_fence(table_loaded_of(t)->index, block, &prefix);
    if (skip >= prefix.size)
        return slice_prefix8(rest, skip - prefix.size);
    uint8_t bytes[8] = {0};
    const size_t own = prefix.size - skip < sizeof bytes ? prefix.size - skip : sizeof bytes;
    const size_t more = rest.size < sizeof bytes - own ? rest.size : sizeof bytes - own;
    memcpy(bytes, (const uint8_t *)prefix.data + skip, own);
    if (more)
        memcpy(bytes + own, rest.data, more);
    return slice_prefix8(slice_of(bytes, sizeof bytes), 0);
}

const struct table_properties *table_properties(const struct table *t)
{
    return &table_loaded_of(t)->properties;
}

const struct filter_view *table_filter(const struct table *t)
{
    return &table_loaded_of(t)->filter;
}

const char *table_filter_missing(const struct table *t)
{
    return table_loaded_of(t)->filter_missing;
}

const char *table_path(const struct table *t)
{
    return t->path;
}

uint64_t table_file_id(const struct table *t)
{
    return table_loaded_of(t)->file_id;
}

uint64_t table_file_size(const struct table *t)
{
    return table_loaded_of(t)->file_size;
}

uint64_t table_filter_bytes(const struct table *t)
{
    const size_t whole = table_loaded_of(t)->filter_memory_size;
    return whole ? whole - BLOCK_TRAILER_SIZE : 0;
}

uint32_t table_blocks(const struct table *t)
{
    return index_count(table_loaded_of(t)->index);
}

size_t table_memory(const struct table *t)
{
    const struct table_loaded *l = table_loaded_of(t);
    return l ? index_memory(l->index) + l->filter_memory_size +
                   index_count(l->index) * sizeof *l->places + codec_reader_memory(l->dictionary)
             : 0;
}
