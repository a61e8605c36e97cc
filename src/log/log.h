/* SPDX-License-Identifier: MIT
 *
 * One append-only file of records that survives a torn tail. The write-ahead log and the manifest
 * are both made of it.
 *
 *     header:        64 bytes (header.h)
 *     record:        size u32 | head check u32 | body checksum u64 | durable u64 |
 *                    body, padded with zeros to a multiple of 8
 *
 * `durable` is how much of this file was known to be on the disk when the record was written (a
 * sync had returned). The head check covers size, durable and offset; both checks are seeded with
 * the file's identity and the record's offset, so that a recycled or torn tail, or a record of
 * another file, can't be taken for one. A record of size 0 is a seal: it says nothing but its
 * `durable`, and so puts all before it under guard. docs/format/log.md
 */
#ifndef TAMIZ_LOG_LOG_H
#define TAMIZ_LOG_LOG_H

#include "base/buf.h"
#include "base/op.h"
#include "env/env.h"
#include "log/header.h"

enum { LOG_RECORD_HEADER_SIZE = 24 };

/* ---- writing ---- */

struct log_writer {
    const tamiz_env *env;
    struct file *file;
    uint64_t file_id;
    enum io_purpose purpose;
    uint64_t end;       /* where the next record goes                        */
    uint64_t durable;   /* bytes that a returned sync covers                 */
    uint64_t allocated; /* room reserved so far; 0: no preallocation         */
    uint64_t allocate_step;
    uint8_t *map; /* part of the file in memory, or NULL: written by write calls */
    uint64_t map_offset;
    size_t map_size;
    bool unmappable; /* it was tried */
    struct buf scratch;
    bool broken; /* a write or sync failed: nothing more may be written here, and `durable` is final
                  */
    tamiz_status why; /* … with what */
};

/* Creates `path` (must not exist), writes the header and syncs the file, so that a header which
 * can't be read in front of records is damage and never a crash; the directory is the caller's to
 * sync. On failure the writer is empty and the file, if it came to be, is removed again. */
tamiz_status log_create(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                        const char *path, enum io_purpose purpose, const struct log_header *header,
                        uint64_t allocate_step, struct log_writer *w);
/* One record. Its body comes in `n` pieces, of which large ones are not copied. An empty body, and
 * one of 2^32 bytes and more: TAMIZ_INVALID_ARGUMENT. Where w->broken: w->why, without trying. A
 * failed write breaks the writer; TAMIZ_OUT_OF_MEMORY does not, nothing was written then. */
tamiz_status log_append(struct op *op, struct log_writer *w, const struct slice *pieces, size_t n);
/* Takes back what was appended from `end` on, which was w->end before: it must not be replayed, for
 * its write is reported as failed. Where the file can't be cut, w->broken, and closing tries again.
 */
void log_retract(struct op *op, struct log_writer *w, uint64_t end);
/* A failure is final: w->broken. Where nothing was written since the last one: no system call. */
tamiz_status log_sync(struct op *op, struct log_writer *w);
/* Syncs, then appends a seal: from then on damage anywhere before it is reported by log_next as
 * what it is, and not taken for a torn tail. For a clean close; the seal itself is not synced, for
 * losing it loses nothing. */
tamiz_status log_seal(struct op *op, struct log_writer *w);
/* Cuts off what was preallocated, and what a failed write left behind the last good record; closes.
 * Always frees. Safe on a zeroed writer. */
tamiz_status log_close(struct op *op, struct log_writer *w);

/* ---- reading ---- */

enum log_end {
    LOG_END_CLEAN, /* the file ends, or only zeros follow */
    LOG_END_TORN,  /* something unfinished follows, and nothing valid behind it that was ever known
                      to be durable */
};

struct log_reader {
    struct log_header header;
    struct buf content; /* the whole file */
    uint64_t at;        /* offset of the next record */
    uint64_t record;    /* offset of the record that log_next returned last */
    uint64_t file_id;
    const char *path;      /* borrowed */
    enum log_end end;      /* set when log_next says no more */
    bool sealed;           /* the last good record is a seal */
    uint64_t durable_seen; /* the largest mark of the records read: more than the header's size
                              proves that a sync of this file had returned */
    uint64_t dropped; /* bytes behind the last good record, zeros at the very end not counted */
};

/* Reads the whole file. TAMIZ_CORRUPTION: no header of the expected kind, with the field that is
 * wrong; TAMIZ_NOT_SUPPORTED: newer format. A file shorter than its header, or with nothing but
 * zeros behind a header that can't be read (a crash while it was created), is *empty: no records,
 * no error. *r is empty on failure. */
tamiz_status log_reader_open(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                             const char *path, enum log_kind kind, enum io_purpose purpose,
                             struct log_reader *r, bool *empty);
/* The same for bytes in memory; `content` is taken over, also on failure. */
tamiz_status log_reader_open_bytes(struct op *op, struct buf *content, const char *path,
                                   enum log_kind kind, struct log_reader *r, bool *empty);
/* The next record's body, borrowed until close; seals are skipped. TAMIZ_NOT_FOUND: no more, see
 * r->end. TAMIZ_CORRUPTION: damage in the middle, which is
 * - bytes that were known to be durable (a later valid record says so), or
 * - any bad record with a valid one behind it, where the machine has not been restarted since the
 *   file was made (`boot_id`, 0: not known): no crash of a process can leave that.
 * The words name file, offset, expected and found. */
tamiz_status log_next(struct op *op, struct log_reader *r, uint64_t boot_id, struct slice *body);
/* Puts "PATH: record at offset N: " in front of the words of op's failure: for decoders of bodies,
 * which know neither. */
void log_tell_where(struct op *op, const struct log_reader *r);
void log_reader_close(struct log_reader *r); /* safe on a zeroed reader */

#endif
