/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: any bytes as a log, and as batches where its records' bodies are. Read twice:
 * as they are, and with header and record checks made valid, as an attacker would.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc tests/fuzz/log_fuzz.c \
 *         src/base/[a-z]*.c src/env/[a-z]*.c src/log/[a-z]*.c -lxxhash -pthread
 *
 * Seeds: tests/golden/log. Each record that is found is valid, in order and inside the file.
 */
#include <stdlib.h>

#include "base/checksum.h"
#include "base/coding.h"
#include "log/batch.h"
#include "log/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool what)
{
    if (!what)
        abort();
}

static void read_batch(struct op *op, struct slice body)
{
    struct batch_reader r;
    struct batch_write w;
    uint64_t first, count, seen = 0;
    const tamiz_status st = batch_open(op, body, &r, &first, &count);
    while (batch_next(&r, &w)) {
        must(w.seq == first + seen && w.key.size <= KEY_SIZE_MAX);
        seen++;
    }
    must(seen == count && (st == TAMIZ_OK || count == 0));
    op_forgive(op);
}

static void read_log(struct buf *content, uint64_t boot_id)
{
    static struct counters counters;
    struct op op;
    struct log_reader r;
    struct slice body;
    const size_t size = content->size;
    uint64_t last = 0;
    bool empty;
    op_init(&op, &alloc_libc, &counters);
    if (log_reader_open_bytes(&op, content, "fuzz", LOG_WAL, &r, &empty) < 0)
        return;
    while (log_next(&op, &r, boot_id, &body) == TAMIZ_OK) {
        must(r.record >= last + (last ? 32 : 64) && r.at <= size && body.size < r.at - r.record);
        last = r.record;
        read_batch(&op, body);
    }
    log_reader_close(&r);
}

static void repair(struct buf *b)
{
    if (b->size < LOG_HEADER_SIZE)
        return;
    memcpy(b->data, "TAMIZLOG\1\0\0\0\1\0\0\0", 16);
    memset(b->data + 48, 0, 8);
    const uint64_t id = load_u64(b->data + 16);
    store_u64(b->data + 56, checksum(id, 0, slice_of(b->data, 56)));
    for (size_t at = LOG_HEADER_SIZE; b->size - at >= LOG_RECORD_HEADER_SIZE;) {
        const size_t left = b->size - at - LOG_RECORD_HEADER_SIZE;
        uint8_t *head = b->data + at;
        uint32_t bytes = load_u32(head) % 600; /* mostly there; sometimes past the end */
        uint8_t covered[12];
        store_u32(head, bytes);
        memcpy(covered, head, 4);
        memcpy(covered + 4, head + 16, 8);
        const uint64_t sum = checksum(id, at, slice_of(covered, sizeof covered));
        const uint32_t folded = (uint32_t)(sum ^ sum >> 32);
        store_u32(head + 4, folded ? folded : 1);
        if (bytes > left)
            return;
        store_u64(head + 8, checksum(id, at, slice_of(head + LOG_RECORD_HEADER_SIZE, bytes)));
        const size_t step = LOG_RECORD_HEADER_SIZE + ((size_t)bytes + 7) / 8 * 8;
        if (step > b->size - at)
            return;
        at += step;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int repaired = 0; repaired < 2; repaired++) {
        for (uint64_t same_boot = 0; same_boot < 2; same_boot++) {
            struct buf copy = buf_init(&alloc_libc);
            buf_append(&copy, data, size);
            if (repaired)
                repair(&copy);
            read_log(&copy, same_boot && size >= 48 ? load_u64(data + 40) : 0);
        }
    }
    return 0;
}
