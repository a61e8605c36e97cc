/* SPDX-License-Identifier: MIT
 *
 * The page's calls in the native build: writes a filter image of each kind, and the tables of a
 * store with that kind, into a directory. same.mjs makes the same calls in WebAssembly and
 * compares.
 *
 *     page_native DIRECTORY [KIND...]        policies from the command line, words from standard
 * input
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page_inside.h"

enum { TEXT_MAX = 1 << 20, WORDS_MAX = 1 << 17 };

static int save(const char *directory, const char *kind, const char *name,
                const struct page_bytes *bytes)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s-%s", directory, kind, name);
    FILE *file = fopen(path, "wb");
    const bool whole = file && fwrite(bytes->data, 1, bytes->size, file) == bytes->size;
    const bool closed = file && fclose(file) == 0;
    if (!whole || !closed)
        fprintf(stderr, "%s: could not be written\n", path);
    return whole && closed ? 0 : 1;
}

static int image_save(const char *directory, const char *kind, const uint64_t *hashes, size_t n)
{
    tamiz_filter *filter;
    struct page_bytes image = {0};
    int failed = page_filter_build(kind, hashes, n, &filter) || page_filter_image(filter, &image) ||
                 save(directory, kind, "image", &image);
    page_filter_free(filter);
    page_free(image.data);
    return failed;
}

static int tables_save(const char *directory, const char *kind, struct page_store *s)
{
    struct page_bytes list = {0};
    int failed = page_store_files(s, &list);
    const char *at = list.data;
    while (!failed && (at = strstr(at, "\"name\":\"")) != NULL) {
        char name[64] = {0};
        struct page_bytes bytes = {0};
        at += strlen("\"name\":\"");
        memcpy(name, at, strcspn(at, "\""));
        if (strstr(name, ".sst"))
            failed = page_store_read(s, name, &bytes) || save(directory, kind, name, &bytes);
        page_free(bytes.data);
    }
    page_free(list.data);
    return failed;
}

/* Two flushes, and one compaction behind them: tables of both kinds of making. */
static int store_save(const char *directory, const char *kind, const char *text, size_t size)
{
    char options[128];
    struct page_store *s = page_store_new();
    (void)snprintf(options, sizeof options, "filter=%s memtable=1MiB table=256KiB block=4KiB",
                   kind);
    int failed = !s || page_store_open(s, options) || page_store_fill(s, text, size, 1) ||
                 page_store_flush(s) || page_store_compact(s) ||
                 page_store_fill(s, text, size / 2, 7) || page_store_flush(s) ||
                 tables_save(directory, kind, s);
    page_store_free(s);
    return failed;
}

int main(int argc, char **argv)
{
    char *text = malloc(TEXT_MAX);
    uint64_t *hashes = malloc(WORDS_MAX * sizeof *hashes);
    int failed = argc < 2 || !text || !hashes;
    const size_t size = failed ? 0 : fread(text, 1, TEXT_MAX, stdin);
    const size_t n = failed ? 0 : page_hash_lines(text, size, hashes, WORDS_MAX);
    for (int i = 2; i < argc && !failed; i++) {
        failed = (strcmp(argv[i], "none") != 0 && image_save(argv[1], argv[i], hashes, n)) ||
                 store_save(argv[1], argv[i], text, size);
        if (failed)
            fprintf(stderr, "%s: %s\n", argv[i], page_error());
    }
    free(hashes);
    free(text);
    return failed;
}
