/* SPDX-License-Identifier: MIT */
#include "log/header.h"

#include <inttypes.h>

#include "base/checksum.h"
#include "base/coding.h"

#define LOG_MAGIC UINT64_C(0x474f4c5a494d4154) /* "TAMIZLOG" read as little-endian */

void log_header_encode(uint8_t out[LOG_HEADER_SIZE], const struct log_header *h)
{
    store_u64(out, LOG_MAGIC);
    store_u32(out + 8, LOG_FORMAT_VERSION);
    store_u32(out + 12, h->kind);
    store_u64(out + 16, h->file_id);
    store_u64(out + 24, h->number);
    store_u64(out + 32, h->first);
    store_u64(out + 40, h->boot_id);
    store_u64(out + 48, 0);
    store_u64(out + 56, checksum(h->file_id, 0, slice_of(out, 56)));
}

tamiz_status log_header_decode(struct op *op, struct slice bytes, const char *path,
                               enum log_kind kind, struct log_header *h)
{
    struct reader in = reader_of(bytes);
    const uint64_t magic = reader_u64(&in);
    const uint32_t version = reader_u32(&in);
    h->kind = reader_u32(&in);
    h->file_id = reader_u64(&in);
    h->number = reader_u64(&in);
    h->first = reader_u64(&in);
    h->boot_id = reader_u64(&in);
    const uint64_t zero = reader_u64(&in);
    const uint64_t stored = reader_u64(&in);
    const uint64_t found = checksum(h->file_id, 0, slice_of(bytes.data, 56));
    if (magic != LOG_MAGIC)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: offset 0: expected magic %016" PRIx64 ", found %016" PRIx64, path,
                       LOG_MAGIC, magic);
    if (stored != found)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: header: expected checksum %016" PRIx64 ", found %016" PRIx64, path,
                       stored, found);
    if (version > LOG_FORMAT_VERSION)
        return op_fail(op, TAMIZ_NOT_SUPPORTED,
                       "%s: log format version %" PRIu32 ", this library reads up to %d", path,
                       version, LOG_FORMAT_VERSION);
    if (version == 0 || zero != 0)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: header: expected version 1 and a zero field, found %" PRIu32
                       " and %016" PRIx64,
                       path, version, zero);
    if (h->kind != (uint32_t)kind)
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: header: expected kind %d, found %" PRIu32 " (1 log, 2 manifest)", path,
                       (int)kind, h->kind);
    return TAMIZ_OK;
}
