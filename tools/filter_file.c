/* SPDX-License-Identifier: MIT
 *
 * The image of a filter out of a file: the file itself, or a table's filter block. Looks inside the
 * library for the latter.
 */
#include "filter.h"

#include "base/coding.h"
#include "env/env.h"
#include "table/format.h"

/* Payload of a part that is not packed. */
static tamiz_status part_of_table(struct op *op, const char *path, struct slice file,
                                  uint64_t file_id, struct extent at, struct slice *payload)
{
    struct reader r = reader_of(file);
    enum codec codec;
    (void)reader_take(&r, at.offset);
    const struct slice stored = reader_take(&r, extent_whole(at));
    return block_unseal(op, stored, file_id, at.offset, path, true, payload, &codec);
}

/* The filter over the keys. */
static tamiz_status image_of_table(struct op *op, const char *path, struct slice file,
                                   struct slice *image)
{
    struct table_footer footer;
    struct table_properties properties;
    struct slice payload, prefixes;
    uint64_t file_id;
    tamiz_status st;
    *image = slice_of(NULL, 0);
    if (file.size < TABLE_HEADER_SIZE + TABLE_FOOTER_SIZE)
        return op_fail(op, TAMIZ_CORRUPTION, "%s: too short for a table", path);
    TRY(table_header_decode(op, slice_of(file.data, TABLE_HEADER_SIZE), path, &file_id));
    TRY(table_footer_decode(op,
                            slice_of(file.data + file.size - TABLE_FOOTER_SIZE, TABLE_FOOTER_SIZE),
                            file.size, path, &footer));
    if (footer.filter.size == 0)
        return TAMIZ_OK;
    TRY(part_of_table(op, path, file, file_id, footer.properties, &payload));
    TRY(table_properties_decode(op, payload, path, &properties));
    TRY(part_of_table(op, path, file, file_id, footer.filter, &payload));
    if (!table_filter_images(payload, &properties, image, &prefixes))
        TRY(op_fail(op, TAMIZ_CORRUPTION, "%s: a filter block of %zu bytes: no room for two", path,
                    payload.size));
done:
    return st;
}

int filter_image_load(const struct call *call, const char *path, struct text *image)
{
    struct counters count = {0};
    struct op op;
    struct slice found = slice_of(NULL, 0);
    op_init(&op, &alloc_libc, &count);
    struct buf content = buf_init(&alloc_libc);
    tamiz_status st =
        env_read_file(&op, tamiz_env_posix(), path, IO_META, (size_t)1 << 40, &content);
    if (st >= 0 && content.size >= 8 && load_u64(content.data) == TABLE_MAGIC)
        st = image_of_table(&op, path, buf_slice(&content), &found);
    else
        found = buf_slice(&content);
    int status = EXIT_DONE;
    if (st < 0)
        status = fail(call, "%s", op.text);
    else if (!found.size) {
        (void)fail(call, "%s: has no filter", path);
        status = EXIT_NO;
    }
    text_add(image, found.data, found.size);
    buf_free(&content);
    return status;
}
