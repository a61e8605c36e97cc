/* SPDX-License-Identifier: MIT
 *
 * Logs as bytes, for tests that damage them: written through an env in memory, taken out, changed,
 * and given to a reader. The checksums are put together here a second time, from docs/format/log.md
 * and not from the code, so that a test also holds the two together.
 */
#ifndef TAMIZ_TEST_LOG_IMAGE_H
#define TAMIZ_TEST_LOG_IMAGE_H

#include "base/checksum.h"
#include "base/coding.h"
#include "log/log.h"
#include "support/test.h"

enum { IMAGE_FILE_ID = 0x5eed, IMAGE_BOOT = 77 };

struct journal {
    struct test_op t;
    tamiz_env *memory;
    struct log_writer w;
    struct buf image; /* the file's bytes, after journal_image */
};

static inline struct log_header journal_header(enum log_kind kind)
{
    return (struct log_header){
        .kind = kind, .file_id = IMAGE_FILE_ID, .number = 12, .first = 1, .boot_id = IMAGE_BOOT};
}

static inline void journal_start(struct journal *j, enum log_kind kind)
{
    const struct log_header header = journal_header(kind);
    *j = (struct journal){.memory = tamiz_env_memory_new(), .image = buf_init(&alloc_libc)};
    test_op_init(&j->t);
    assert_non_null(j->memory);
    assert_status(&j->t.op, env_make_directory(&j->t.op, j->memory, "d"), TAMIZ_OK);
    assert_status(&j->t.op,
                  log_create(&j->t.op, j->memory, &alloc_libc, "d/log", IO_LOG, &header, 0, &j->w),
                  TAMIZ_OK);
}

static inline void journal_add(struct journal *j, struct slice body)
{
    assert_status(&j->t.op, log_append(&j->t.op, &j->w, &body, 1), TAMIZ_OK);
}

static inline void journal_text(struct journal *j, const char *text)
{
    journal_add(j, slice_of_text(text));
}

static inline void journal_sync(struct journal *j)
{
    assert_status(&j->t.op, log_sync(&j->t.op, &j->w), TAMIZ_OK);
}

/* Closes the writer and takes the bytes. */
static inline void journal_image(struct journal *j)
{
    assert_status(&j->t.op, log_close(&j->t.op, &j->w), TAMIZ_OK);
    assert_status(&j->t.op,
                  env_read_file(&j->t.op, j->memory, "d/log", IO_LOG, (size_t)1 << 30, &j->image),
                  TAMIZ_OK);
}

static inline void journal_free(struct journal *j)
{
    (void)log_close(&j->t.op, &j->w);
    buf_free(&j->image);
    tamiz_env_memory_free(j->memory);
}

/* A copy of the image with room to change. */
static inline struct buf image_copy(struct slice bytes)
{
    struct buf copy = buf_init(&alloc_libc);
    buf_slice_append(&copy, bytes);
    assert_false(copy.failed);
    return copy;
}

/* What a reader makes of bytes: how many records, and how it ended. */
struct seen {
    tamiz_status status; /* NOT_FOUND: came to the end */
    enum log_end end;
    bool empty, sealed;
    uint64_t records, bytes, dropped;
    uint64_t sum; /* over all bodies, in order */
    char words[OP_TEXT_MAX];
};

static inline struct seen image_read(struct slice bytes, enum log_kind kind, uint64_t boot_id)
{
    struct test_op t;
    struct log_reader r;
    struct seen seen = {.status = TAMIZ_OK};
    struct slice body;
    struct buf copy = image_copy(bytes);
    test_op_init(&t);
    seen.status = log_reader_open_bytes(&t.op, &copy, "d/log", kind, &r, &seen.empty);
    while (seen.status == TAMIZ_OK && (seen.status = log_next(&t.op, &r, boot_id, &body)) == 0) {
        seen.records++;
        seen.bytes += body.size;
        seen.sum = checksum(seen.sum, seen.records, body);
    }
    seen.end = r.end;
    seen.sealed = r.sealed;
    seen.dropped = r.dropped;
    memcpy(seen.words, t.op.text, sizeof seen.words);
    /* The end is the end, however often it is asked for. */
    if (seen.status == TAMIZ_NOT_FOUND)
        assert_int_equal(log_next(&t.op, &r, boot_id, &body), TAMIZ_NOT_FOUND);
    if (seen.status < 0)
        assert_true(t.op.status == seen.status && strlen(t.op.text) > 10);
    log_reader_close(&r);
    return seen;
}

static inline struct seen image_read_buf(const struct buf *b, uint64_t boot_id)
{
    return image_read(buf_slice(b), LOG_WAL, boot_id);
}

static inline void image_repair_header(struct buf *b)
{
    store_u64(b->data + 56, checksum(load_u64(b->data + 16), 0, slice_of(b->data, 56)));
}

static inline void image_repair_head(struct buf *b, uint64_t file_id, size_t at)
{
    uint8_t bytes[12];
    memcpy(bytes, b->data + at, 4);
    memcpy(bytes + 4, b->data + at + 16, 8);
    const uint64_t sum = checksum(file_id, at, slice_of(bytes, sizeof bytes));
    const uint32_t folded = (uint32_t)(sum ^ sum >> 32);
    store_u32(b->data + at + 4, folded ? folded : 1);
}

/* Both checks of the record at `at`, as far as its body is there. */
static inline void image_repair_record(struct buf *b, uint64_t file_id, size_t at)
{
    if (b->size - at < LOG_RECORD_HEADER_SIZE)
        return;
    const size_t left = b->size - at - LOG_RECORD_HEADER_SIZE;
    const size_t size = load_u32(b->data + at);
    image_repair_head(b, file_id, at);
    store_u64(b->data + at + 8,
              checksum(file_id, at,
                       slice_of(b->data + at + LOG_RECORD_HEADER_SIZE, size < left ? size : left)));
}

#endif
