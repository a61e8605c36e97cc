/* SPDX-License-Identifier: MIT
 *
 * What a log's file begins with, and what tells it from other files:
 *
 *     0 magic u64 | 8 version u32 | 12 kind u32 | 16 file id u64 | 24 number u64 | 32 first u64
 *     40 boot id u64 | 48 zero u64 | 56 checksum u64 of bytes 0..55, seeded with the file id
 */
#ifndef TAMIZ_LOG_HEADER_H
#define TAMIZ_LOG_HEADER_H

#include "base/op.h"
#include "base/slice.h"

enum log_kind { LOG_WAL = 1, LOG_MANIFEST = 2 };
enum { LOG_HEADER_SIZE = 64, LOG_FORMAT_VERSION = 1 };

struct log_header {
    uint32_t kind;
    uint64_t file_id;
    uint64_t number;  /* the file's number in its store                     */
    uint64_t first;   /* WAL: sequence that the first record will have      */
    uint64_t boot_id; /* machine run in which it was created; 0: not known  */
};

void log_header_encode(uint8_t out[LOG_HEADER_SIZE], const struct log_header *h);
/* `bytes` are LOG_HEADER_SIZE. TAMIZ_CORRUPTION: no header of this kind, with the field that is
 * wrong; TAMIZ_NOT_SUPPORTED: a newer format. Words name `path`. */
tamiz_status log_header_decode(struct op *op, struct slice bytes, const char *path,
                               enum log_kind kind, struct log_header *h);

#endif
