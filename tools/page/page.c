/* SPDX-License-Identifier: MIT
 *
 * Memory, words and filters for the page. Errors that are born here go through the same record as
 * the library's, so that page_error() has one source.
 */
#include "page_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/family.h"

void *page_alloc(size_t size)
{
    return mem_handout(&alloc_libc, size);
}

void page_free(void *p)
{
    tamiz_free(p);
}

const char *page_error(void)
{
    return tamiz_error_detail();
}

const char *page_version(void)
{
    return tamiz_version();
}

int page_hand(struct buf *out, struct page_bytes *bytes)
{
    bytes->size = out->size;
    bytes->data = buf_handout(out);
    buf_free(out);
    return bytes->data ? TAMIZ_OK : op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
}

bool page_line_next(struct slice *text, struct slice *line)
{
    do {
        if (text->size == 0)
            return false;
        const uint8_t *end = memchr(text->data, '\n', text->size);
        const size_t size = end ? (size_t)(end - text->data) : text->size;
        *line = slice_of(text->data, size);
        const size_t used = end ? size + 1 : size;
        *text = slice_of(text->data + used, text->size - used);
        if (line->size && line->data[line->size - 1] == '\r')
            line->size--;
    } while (line->size == 0);
    return true;
}

size_t page_hash_lines(const char *text, size_t size, uint64_t *hashes, size_t room)
{
    struct slice left = slice_of(text, size), line;
    size_t n = 0;
    while (page_line_next(&left, &line)) {
        if (n < room)
            hashes[n] = tamiz_hash(line.data, line.size);
        n++;
    }
    return n;
}

void page_hash_probes(uint32_t seed, uint64_t *hashes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t key[16] = {0};
        store_u32(key + 4, seed);
        store_u64(key + 8, i);
        hashes[i] = tamiz_hash(key, sizeof key);
    }
}

int page_filter_build(const char *policy, const uint64_t *hashes, size_t n, tamiz_filter **filter)
{
    tamiz_filter_policy parsed;
    *filter = NULL;
    const tamiz_status st = tamiz_filter_policy_parse(policy, &parsed);
    return st ? st : tamiz_filter_build(&parsed, hashes, n, filter);
}

int page_filter_new(const char *policy, uint32_t capacity, tamiz_filter **filter)
{
    tamiz_filter_policy parsed;
    *filter = NULL;
    const tamiz_status st = tamiz_filter_policy_parse(policy, &parsed);
    return st ? st : tamiz_filter_new(&parsed, capacity, filter);
}

/* A policy names bits per key and lets the family choose k; here both are given, so the image of
 * the empty filter is written out and opened as any other. */
int page_filter_bloom(uint32_t bits, uint32_t k, int counting, tamiz_filter **filter)
{
    *filter = NULL;
    if (bits < 64 || bits > 1u << 24 || bits % 64)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "m=%u: want 64, 128, 192, … %u", bits, 1u << 24);
    if (k < 1 || k > 64)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "k=%u: want 1..64", k);
    const size_t payload = counting ? bits / 2 : bits / 8; /* four bits a counter */
    const struct filter_plan plan = {.payload_bytes = payload, .parameters = {k}};
    const size_t size = FILTER_HEADER_SIZE + payload;
    uint8_t *image = mem_new_array(&alloc_libc, size, 1);
    if (!image)
        return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    filter_header_write(counting ? &filter_counting : &filter_bloom, &plan, image);
    const tamiz_status st = tamiz_filter_deserialize(image, size, filter);
    mem_free(&alloc_libc, image, size);
    return st;
}

int page_filter_add(tamiz_filter *filter, const uint64_t *hashes, size_t n)
{
    tamiz_status st = TAMIZ_OK;
    for (size_t i = 0; i < n && st == TAMIZ_OK; i++)
        st = tamiz_filter_add(filter, hashes[i]);
    return st;
}

int page_filter_remove(tamiz_filter *filter, const uint64_t *hash)
{
    return tamiz_filter_remove(filter, *hash);
}

void page_filter_ask(const tamiz_filter *filter, const uint64_t *hashes, size_t n, bool *maybe)
{
    tamiz_filter_may_contain_many(filter, hashes, n, maybe);
}

int page_filter_image(const tamiz_filter *filter, struct page_bytes *image)
{
    *image = (struct page_bytes){0};
    return tamiz_filter_serialize(filter, &image->data, &image->size);
}

int page_filter_open(const void *image, size_t size, tamiz_filter **filter)
{
    return tamiz_filter_deserialize(image, size, filter);
}

void page_info_json(struct buf *out, const tamiz_filter_info *info)
{
    buf_printf(out,
               "\"kind\":\"%s\",\"keys\":%llu,\"bytes\":%llu,\"bits_per_key\":%.9g,"
               "\"expected_fpr\":%.9g,\"fill\":%.9g,\"hashes\":%u,\"fingerprint_bits\":%u",
               info->kind, (unsigned long long)info->keys, (unsigned long long)info->bytes,
               info->bits_per_key, info->expected_fpr, info->fill, info->hashes,
               info->fingerprint_bits);
}

int page_filter_info(const tamiz_filter *filter, struct page_bytes *json)
{
    tamiz_filter_info info = TAMIZ_FILTER_INFO_INIT;
    struct buf out = buf_init(&alloc_libc);
    tamiz_filter_info_get(filter, &info);
    buf_text(&out, "{");
    page_info_json(&out, &info);
    buf_text(&out, "}");
    return page_hand(&out, json);
}

void page_filter_free(tamiz_filter *filter)
{
    tamiz_filter_free(filter);
}

/* As docs/format/filter.md says; a test holds it against the bits that a filter of one key has. */
void page_bloom_places(uint32_t bits, uint32_t k, const uint64_t *hashes, size_t n,
                       uint32_t *places)
{
    for (size_t h = 0; h < n; h++) {
        uint64_t mixed = filter_mix(hashes[h], 0);
        for (uint32_t i = 0; i < k; i++, mixed *= FILTER_MULTIPLIER)
            *places++ = (uint32_t)mul_high(mixed, bits);
    }
}

double page_bloom_bits(double n, double p)
{
    return tamiz_bloom_bits(n, p);
}

uint32_t page_bloom_hashes(double bits, double n)
{
    return tamiz_bloom_hashes(bits, n);
}

double page_bloom_rate(double bits, uint32_t k, double n)
{
    return tamiz_bloom_fpr(bits, k, n);
}
