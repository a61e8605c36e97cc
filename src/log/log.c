/* SPDX-License-Identifier: MIT
 *
 * Records one behind the other in a file that only grows; see log.h for the bytes.
 *
 * Writing: a record is put together where the file is mapped, or in memory from where it goes out
 * in one write call; a large one is written by pieces. After a write or sync that failed nobody
 * knows what the file holds, so the writer is broken from then on and its owner moves to a new
 * file.
 *
 * Reading: what ends a log? A crash leaves a tail of half a record, zeros, or bytes of anything,
 * and that is normal: those writes were never promised. Damage in front of promised bytes is not.
 * Both look alike at the first bad byte, so the decision is made by what stands behind it: a record
 * proves by its identity (file id, offset) that it was written here, and its `durable` field says
 * what the disk had already confirmed at that time. If that covers the bad place, promised bytes
 * are damaged.
 */
#include "log/log.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checksum.h"
#include "base/coding.h"
#include "log/pieces.h"

enum {
    MAP_ALIGN = 4096,
    SCRATCH_KEEP_MAX = 1 << 20, /* a rare huge record does not hold its memory for ever */
    LOG_PADDING_MOST = 7,
};

static uint64_t padded(uint64_t size)
{
    return (size + 7) & ~UINT64_C(7);
}

/* ---- one record's head ---- */

/* Never 0, so that zeros are no record. */
static uint32_t head_check(uint64_t file_id, uint64_t offset, uint32_t size, uint64_t durable)
{
    uint8_t bytes[12];
    store_u32(bytes, size);
    store_u64(bytes + 4, durable);
    const uint64_t sum = checksum(file_id, offset, slice_of(bytes, sizeof bytes));
    const uint32_t folded = (uint32_t)(sum ^ sum >> 32);
    return folded ? folded : 1;
}

/* ---- writing ---- */

tamiz_status log_create(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                        const char *path, enum io_purpose purpose, const struct log_header *header,
                        uint64_t allocate_step, struct log_writer *w)
{
    uint8_t bytes[LOG_HEADER_SIZE];
    tamiz_status st;
    *w = (struct log_writer){.env = env,
                             .file_id = header->file_id,
                             .purpose = purpose,
                             .allocate_step = allocate_step,
                             .scratch = buf_init(alloc)};
    log_header_encode(bytes, header);
    TRY(file_open(op, env, path, TAMIZ_OPEN_READ | TAMIZ_OPEN_WRITE | TAMIZ_OPEN_CREATE, &w->file));
    TRY(file_write(op, w->file, purpose, 0, bytes, sizeof bytes));
    TRY(file_sync(op, w->file));
    w->end = w->durable = LOG_HEADER_SIZE;
done:
    if (st < 0 && w->file) {
        /* The first failure is the story; what clearing up says adds nothing to it. */
        (void)file_close(op, w->file);
        (void)env_remove(op, env, path);
    }
    if (st < 0)
        *w = (struct log_writer){.env = NULL};
    return st;
}

static void break_off(struct log_writer *w, tamiz_status why)
{
    w->broken = true;
    w->why = why;
}

static tamiz_status refuse_broken(struct op *op, const struct log_writer *w)
{
    return op_fail(op, w->why, "%s: an earlier write or sync failed: nothing more goes here",
                   w->file ? file_path(w->file) : "log");
}

/* Room in steps, so that appending rarely has to ask the file system for it. It only makes things
 * faster: a refusal ends the asking, and whether the bytes fit is for the write itself to say. */
static void reserve_room(struct op *op, struct log_writer *w, uint64_t end)
{
    if (w->allocate_step == 0 || end <= w->allocated)
        return;
    const uint64_t want = (end / w->allocate_step + 1) * w->allocate_step;
    const bool clean = op->status == TAMIZ_OK;
    if (file_allocate(op, w->file, want) == TAMIZ_OK) {
        w->allocated = want;
    } else {
        w->allocate_step = 0;
        if (clean)
            op_forgive(op);
    }
}

static void put_head(const struct log_writer *w, uint32_t size, uint64_t body_checksum,
                     uint8_t out[LOG_RECORD_HEADER_SIZE])
{
    store_u32(out, size);
    store_u32(out + 4, head_check(w->file_id, w->end, size, w->durable));
    store_u64(out + 8, body_checksum);
    store_u64(out + 16, w->durable);
}

/* Zeros behind a body. */
static size_t padding_of(uint32_t size)
{
    return (size_t)(padded(size) - size);
}

/* One record, head and padding included, into `out`. */
static void put_together(const struct log_writer *w, struct pieces pieces, uint32_t size,
                         uint8_t *out)
{
    const struct slice body = slice_of(out + LOG_RECORD_HEADER_SIZE, size);
    memset(pieces_copy(pieces, out + LOG_RECORD_HEADER_SIZE), 0, padding_of(size));
    put_head(w, size, checksum(w->file_id, w->end, body), out);
}

/* By one call. */
static tamiz_status write_whole(struct op *op, struct log_writer *w, struct pieces pieces,
                                uint32_t size, size_t whole)
{
    put_together(w, pieces, size, w->scratch.data);
    return file_write(op, w->file, w->purpose, w->end, w->scratch.data, whole);
}

/* Room for what write_pieces gathers. */
static size_t most_gathered(struct pieces pieces)
{
    return LOG_RECORD_HEADER_SIZE + pieces_small_size(pieces) + LOG_PADDING_MOST;
}

/* Large pieces from where they are. */
static tamiz_status write_pieces(struct op *op, struct log_writer *w, struct pieces pieces,
                                 uint32_t size)
{
    uint8_t head[LOG_RECORD_HEADER_SIZE];
    put_head(w, size, checksum_pieces(w->file_id, w->end, pieces.at, pieces.n), head);
    return pieces_write(op, w->file, w->purpose, w->end, slice_of(head, sizeof head), pieces,
                        padding_of(size), &w->scratch);
}

/* Where the next `whole` bytes of the file are in memory, or NULL. The window moves on in steps;
 * where the system refuses one, there are no more. */
static uint8_t *mapped_room(struct log_writer *w, uint64_t whole)
{
    if (w->map && w->end + whole <= w->map_offset + w->map_size)
        return w->map + (w->end - w->map_offset);
    if (w->unmappable || w->allocate_step == 0 || whole > w->allocate_step / 2)
        return NULL;
    file_unmap(w->file, w->map, w->map_size);
    w->map_offset = w->end & ~(uint64_t)(MAP_ALIGN - 1);
    w->map_size = (size_t)w->allocate_step;
    w->map = file_map(w->file, w->map_offset, w->map_size);
    w->unmappable = !w->map;
    if (!w->map)
        return NULL;
    if (w->allocated < w->map_offset + w->map_size)
        w->allocated = w->map_offset + w->map_size;
    return w->map + (w->end - w->map_offset);
}

static tamiz_status append(struct op *op, struct log_writer *w, struct pieces pieces, uint32_t size)
{
    const size_t whole = (size_t)(LOG_RECORD_HEADER_SIZE + padded(size));
    uint8_t *room = mapped_room(w, whole);
    tamiz_status st = TAMIZ_OK;
    if (room) {
        put_together(w, pieces, size, room);
        file_count_write(op, w->purpose, whole);
    } else {
        const bool large = whole >= PIECE_LARGE;
        buf_clear(&w->scratch);
        if (!buf_reserve(&w->scratch, large ? most_gathered(pieces) : whole))
            return op_fail_memory(op);
        reserve_room(op, w, w->end + whole);
        st = large ? write_pieces(op, w, pieces, size) : write_whole(op, w, pieces, size, whole);
        if (w->scratch.capacity > SCRATCH_KEEP_MAX)
            buf_free(&w->scratch);
    }
    if (st < 0)
        break_off(w, st);
    else
        w->end += whole;
    return st;
}

tamiz_status log_append(struct op *op, struct log_writer *w, const struct slice *pieces, size_t n)
{
    uint64_t size = 0;
    for (size_t i = 0; i < n; i++) {
        if (__builtin_add_overflow(size, pieces[i].size, &size) || size > UINT32_MAX)
            return op_fail(op, TAMIZ_INVALID_ARGUMENT, "a log record holds less than 2^32 bytes");
    }
    if (size == 0)
        return op_fail(op, TAMIZ_INVALID_ARGUMENT, "a log record has at least one byte");
    if (w->broken)
        return refuse_broken(op, w);
    return append(op, w, (struct pieces){pieces, n}, (uint32_t)size);
}

void log_retract(struct op *op, struct log_writer *w, uint64_t end)
{
    const bool clean = op->status == TAMIZ_OK;
    const tamiz_status st = w->broken ? w->why : file_truncate(op, w->file, end);
    if (st != TAMIZ_OK)
        break_off(w, st);
    if (clean)
        op_forgive(op);
    w->end = end;
    w->allocated = w->allocated < end ? w->allocated : end;
    if (!w->broken && w->durable > end)
        w->durable = end;
}

tamiz_status log_sync(struct op *op, struct log_writer *w)
{
    if (w->broken)
        return refuse_broken(op, w);
    if (w->durable == w->end)
        return TAMIZ_OK;
    const tamiz_status st = file_sync(op, w->file);
    if (st < 0)
        break_off(w, st); /* what it covers is lost; a second one would only say OK */
    else
        w->durable = w->end;
    return st;
}

tamiz_status log_seal(struct op *op, struct log_writer *w)
{
    const tamiz_status st = log_sync(op, w);
    return st < 0 ? st : append(op, w, (struct pieces){NULL, 0}, 0);
}

tamiz_status log_close(struct op *op, struct log_writer *w)
{
    tamiz_status st = TAMIZ_OK;
    if (w->file)
        file_unmap(w->file, w->map, w->map_size);
    if (w->file && (w->broken || w->allocated > w->end))
        st = file_truncate(op, w->file, w->end);
    const tamiz_status closed = file_close(op, w->file);
    if (w->scratch.alloc)
        buf_free(&w->scratch);
    *w = (struct log_writer){.env = NULL};
    return st < 0 ? st : closed;
}

/* ---- reading ---- */

/* Why bytes are no record, or NOTHING_WRONG. */
struct fault {
    enum { NOTHING_WRONG, CUT_OFF, BAD_HEAD, BAD_DURABLE, TOO_LONG, BAD_BODY, BAD_PADDING } what;
    uint64_t expected, found;
};

struct record {
    uint32_t size;
    uint64_t durable;
    struct slice body;
    uint64_t next; /* offset behind it */
};

static bool all_zero(struct slice s)
{
    for (size_t i = 0; i < s.size; i++) {
        if (s.data[i])
            return false;
    }
    return true;
}

/* The head at `at` and how far it reaches; the body is not looked at. */
static struct fault record_head(const struct log_reader *r, uint64_t at, struct record *rec)
{
    const uint64_t left = r->content.size - at;
    if (left < LOG_RECORD_HEADER_SIZE)
        return (struct fault){CUT_OFF, LOG_RECORD_HEADER_SIZE, left};
    struct reader in = reader_of(slice_of(r->content.data + at, LOG_RECORD_HEADER_SIZE));
    rec->size = reader_u32(&in);
    const uint32_t stored = reader_u32(&in);
    (void)reader_u64(&in); /* the body's checksum: record_body looks at it */
    rec->durable = reader_u64(&in);
    /* Cheap questions first: a scan asks at every eighth byte, mostly of zeros. */
    if (stored == 0)
        return (struct fault){BAD_HEAD, 0, 0};
    const uint32_t check = head_check(r->file_id, at, rec->size, rec->durable);
    if (check != stored)
        return (struct fault){BAD_HEAD, stored, check};
    if (rec->durable > at)
        return (struct fault){BAD_DURABLE, at, rec->durable};
    if (padded(rec->size) > left - LOG_RECORD_HEADER_SIZE)
        return (struct fault){TOO_LONG, left - LOG_RECORD_HEADER_SIZE, padded(rec->size)};
    rec->body = slice_of(r->content.data + at + LOG_RECORD_HEADER_SIZE, rec->size);
    rec->next = at + LOG_RECORD_HEADER_SIZE + padded(rec->size);
    return (struct fault){NOTHING_WRONG, 0, 0};
}

/* After record_head found nothing wrong. */
static struct fault record_body(const struct log_reader *r, uint64_t at, const struct record *rec)
{
    const uint64_t stored = load_u64(r->content.data + at + 8);
    const uint64_t sum = checksum(r->file_id, at, rec->body);
    if (sum != stored)
        return (struct fault){BAD_BODY, stored, sum};
    const struct slice padding =
        slice_of(rec->body.data + rec->size, (size_t)(padded(rec->size) - rec->size));
    if (!all_zero(padding))
        return (struct fault){BAD_PADDING, 0, padding.data[padding.size - 1]};
    return (struct fault){NOTHING_WRONG, 0, 0};
}

static struct fault record_at(const struct log_reader *r, uint64_t at, struct record *rec)
{
    const struct fault head = record_head(r, at, rec);
    return head.what == NOTHING_WRONG ? record_body(r, at, rec) : head;
}

static tamiz_status fail_damaged(struct op *op, const struct log_reader *r, struct fault f,
                                 uint64_t valid, uint64_t durable)
{
    static const char *const field[] = {
        [NOTHING_WRONG] = "",        [CUT_OFF] = "bytes of a record's head",
        [BAD_HEAD] = "head check",   [BAD_DURABLE] = "durable at most",
        [TOO_LONG] = "size at most", [BAD_BODY] = "body checksum",
        [BAD_PADDING] = "padding",
    };
    return op_fail(op, TAMIZ_CORRUPTION,
                   "%s: record at offset %" PRIu64 ": expected %s %" PRIx64 ", found %" PRIx64
                   " (hex); a valid record follows at offset %" PRIu64 ", written when %" PRIu64
                   " bytes were durable",
                   r->path, r->at, field[f.what], f.expected, f.found, valid, durable);
}

/*
 * Something that is no record stands at r->at. Looks for records behind it at all offsets where one
 * may begin. In a log as we write them the bodies looked at do not overlap; a crafted one could
 * make every eighth byte a head whose body is the rest of the file, so there is a bound to the
 * work.
 */
static tamiz_status judge_tail(struct op *op, struct log_reader *r, uint64_t boot_id,
                               struct fault fault)
{
    const bool same_boot = boot_id != 0 && boot_id == r->header.boot_id;
    uint64_t work = 0;
    struct record rec;
    for (uint64_t at = r->at + 8; at < r->content.size;) {
        if (record_head(r, at, &rec).what != NOTHING_WRONG) {
            at += 8;
            continue;
        }
        work += rec.size;
        if (work > 4 * (uint64_t)r->content.size)
            return op_fail(op, TAMIZ_CORRUPTION,
                           "%s: offset %" PRIu64 ": expected records one behind the other, found "
                           "heads that overlap",
                           r->path, at);
        const bool valid = record_body(r, at, &rec).what == NOTHING_WRONG;
        if (valid && (rec.durable > r->at || same_boot))
            return fail_damaged(op, r, fault, at, rec.durable);
        at = valid ? rec.next : at + 8;
    }
    r->end = LOG_END_TORN;
    return TAMIZ_NOT_FOUND;
}

static uint64_t last_non_zero(const struct log_reader *r)
{
    uint64_t end = r->content.size;
    while (end > r->at && r->content.data[end - 1] == 0)
        end--;
    return end;
}

tamiz_status log_next(struct op *op, struct log_reader *r, uint64_t boot_id, struct slice *body)
{
    struct record rec;
    struct fault fault = {NOTHING_WRONG, 0, 0};
    *body = slice_of(NULL, 0);
    while (r->at < r->content.size) {
        fault = record_at(r, r->at, &rec);
        if (fault.what != NOTHING_WRONG)
            break;
        r->record = r->at;
        if (rec.durable > r->durable_seen)
            r->durable_seen = rec.durable;
        r->at = rec.next;
        r->sealed = rec.size == 0;
        if (!r->sealed) {
            *body = rec.body;
            return TAMIZ_OK;
        }
    }
    r->dropped = last_non_zero(r) - r->at;
    if (r->dropped)
        return judge_tail(op, r, boot_id, fault);
    r->end = LOG_END_CLEAN;
    return TAMIZ_NOT_FOUND;
}

void log_tell_where(struct op *op, const struct log_reader *r)
{
    char words[OP_TEXT_MAX];
    if (op->status == TAMIZ_OK)
        return;
    (void)snprintf(words, sizeof words, "%s", op->text);
    const int head = snprintf(op->text, sizeof op->text, "%s: record at offset %" PRIu64 ": ",
                              r->path, r->record);
    if (head > 0 && (size_t)head < sizeof op->text)
        (void)snprintf(op->text + head, sizeof op->text - (size_t)head, "%.*s",
                       (int)(sizeof op->text - (size_t)head - 1), words);
}

tamiz_status log_reader_open_bytes(struct op *op, struct buf *content, const char *path,
                                   enum log_kind kind, struct log_reader *r, bool *empty)
{
    tamiz_status st = TAMIZ_OK;
    *r = (struct log_reader){.content = *content, .path = path};
    *content = buf_init(r->content.alloc);
    const size_t size = r->content.size;
    *empty = size < LOG_HEADER_SIZE;
    if (!*empty) {
        const bool fresh =
            all_zero(slice_of(r->content.data + LOG_HEADER_SIZE, size - LOG_HEADER_SIZE));
        st = log_header_decode(op, slice_of(r->content.data, LOG_HEADER_SIZE), path, kind,
                               &r->header);
        if (st == TAMIZ_CORRUPTION && fresh) {
            op_forgive(op);
            st = TAMIZ_OK;
            *empty = true;
        }
    }
    if (st < 0) {
        log_reader_close(r);
        return st;
    }
    r->file_id = r->header.file_id;
    r->at = *empty ? size : LOG_HEADER_SIZE;
    return TAMIZ_OK;
}

tamiz_status log_reader_open(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                             const char *path, enum log_kind kind, enum io_purpose purpose,
                             struct log_reader *r, bool *empty)
{
    struct file *file = NULL;
    struct buf content = buf_init(alloc);
    uint64_t size = 0;
    tamiz_status st;
    *r = (struct log_reader){.path = path};
    *empty = false;
    TRY(file_open(op, env, path, TAMIZ_OPEN_READ | TAMIZ_OPEN_SEQUENTIAL, &file));
    TRY(file_size(op, file, &size));
    if (size > SIZE_MAX / 2 || !buf_reserve(&content, (size_t)size)) {
        st = op_fail_memory(op);
        goto done;
    }
    TRY(file_read_some(op, file, purpose, 0, content.data, (size_t)size, &content.size));
    TRY(log_reader_open_bytes(op, &content, path, kind, r, empty));
done:
    buf_free(&content);
    if (file) {
        const tamiz_status closed = file_close(op, file);
        if (st >= 0 && closed < 0) {
            log_reader_close(r);
            st = closed;
        }
    }
    return st;
}

void log_reader_close(struct log_reader *r)
{
    if (r->content.alloc)
        buf_free(&r->content);
    *r = (struct log_reader){.path = NULL};
}
