/* SPDX-License-Identifier: MIT
 *
 * One append-only file of records that survives a torn tail. The write-ahead log and the manifest
 * are both made of it.
 *
 *     header, 64 B:  magic u64 | version u32 | kind u32 | file id u64 | number u64 | first u64 |
 * boot id u64 | zero u64 | checksum u64 record:        size u32 | head check u32 | body checksum
 * u64 | durable u64 | body, padded with zeros to a multiple of 8
 *
 * `durable` is how much of this file was known to be on the disk when the record was written (a
 * sync had returned). The head check covers size, durable and offset; both checks are seeded with
 * the file's identity and the record's offset, so that a recycled or torn tail, or a record of
 * another file, can't be taken for one. docs/format/log.md
 */
#ifndef TAMIZ_LOG_LOG_H
#define TAMIZ_LOG_LOG_H

#include "base/buf.h"
#include "base/op.h"
#include "env/env.h"

enum log_kind { LOG_WAL = 1, LOG_MANIFEST = 2 };
enum { LOG_HEADER_SIZE = 64, LOG_RECORD_HEADER_SIZE = 24, LOG_FORMAT_VERSION = 1 };

struct log_header {
    uint32_t kind;
    uint64_t file_id;
    uint64_t number;  /* the file's number in its store                     */
    uint64_t first;   /* WAL: sequence that the first record will have      */
    uint64_t boot_id; /* machine run in which it was created; 0: not known  */
};

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
    struct buf scratch;
    bool broken; /* a write or sync failed: nothing more may be written here, and `durable` is final
                  */
};

/* Creates `path` (must not exist) and writes the header; not synced. */
tamiz_status log_create(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                        const char *path, enum io_purpose purpose, const struct log_header *header,
                        uint64_t allocate_step, struct log_writer *w);
/* One record, in one write call. Fails without trying where w->broken. `body` may come in `n`
 * pieces, copied once. 2^32 bytes and more: TAMIZ_INVALID_ARGUMENT. */
tamiz_status log_append(struct op *op, struct log_writer *w, const struct slice *pieces, size_t n);
/* A failure is final: w->broken. */
tamiz_status log_sync(struct op *op, struct log_writer *w);
/* Cuts off what was preallocated, closes. Safe on a zeroed writer. */
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
    uint64_t file_id;
    const char *path; /* borrowed */
    enum log_end end; /* set when log_next says no more */
    uint64_t dropped; /* bytes behind the last good record that are not zero */
};

/* Reads the whole file. TAMIZ_CORRUPTION: no header of the expected kind, with the field that is
 * wrong; TAMIZ_NOT_SUPPORTED: newer format. A file shorter than its header (a crash while it was
 * created) is *empty: no records, no error. */
tamiz_status log_reader_open(struct op *op, const tamiz_env *env, const struct alloc *alloc,
                             const char *path, enum log_kind kind, enum io_purpose purpose,
                             struct log_reader *r, bool *empty);
/* The next record's body, borrowed until close. TAMIZ_NOT_FOUND: no more, see r->end.
 * TAMIZ_CORRUPTION: damage in the middle, which is
 * - bytes that were known to be durable (a later valid record says so), or
 * - any bad record with a valid one behind it, where the machine has not been restarted since the
 * file was made (`boot_id`): no crash of a process can leave that. The words name file, offset,
 * expected and found. */
tamiz_status log_next(struct op *op, struct log_reader *r, uint64_t boot_id, struct slice *body);
void log_reader_close(struct log_reader *r);

#endif
