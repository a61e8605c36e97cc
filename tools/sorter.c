/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* mkstemp, fdopen */
#include "sorter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 2 * sizeof(uint32_t), RUN_BUFFER = 256 << 10 };

void sorter_init(struct sorter *s, const char *directory, uint64_t memory)
{
    *s = (struct sorter){.directory = directory, .memory = memory};
}

static void run_close(struct sorter_run *run)
{
    if (run->file)
        (void)fclose(run->file);
    text_free(&run->key);
    text_free(&run->value);
    *run = (struct sorter_run){0};
}

void sorter_free(struct sorter *s)
{
    while (s->run_count)
        run_close(&s->runs[--s->run_count]);
    text_free(&s->bytes);
    text_free(&s->why);
    text_free(&s->key);
    text_free(&s->value);
    free(s->items);
    free(s->spare);
}

static bool broken(struct sorter *s, const char *what)
{
    text_clear(&s->why);
    text_printf(&s->why, "%s in %s: %s", what, s->directory, strerror(errno));
    return false;
}

/* ---- in memory ---- */

static uint64_t first8(const char *key, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < 8; i++)
        word = word << 8 | (i < size ? (unsigned char)key[i] : 0);
    return word;
}

static int compare_bytes(const char *a, size_t a_size, const char *b, size_t b_size)
{
    const size_t least = a_size < b_size ? a_size : b_size;
    const int order = least ? memcmp(a, b, least) : 0;
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

static void item_read(const struct sorter *s, const struct sorter_item *item, const char **key,
                      uint32_t *key_size, uint32_t *value_size)
{
    const char *at = s->bytes.data + item->offset;
    memcpy(key_size, at, sizeof *key_size);
    memcpy(value_size, at + sizeof *key_size, sizeof *value_size);
    *key = at + HEAD;
}

static int item_compare(const struct sorter *s, const struct sorter_item *a,
                        const struct sorter_item *b)
{
    if (a->key8 != b->key8)
        return (a->key8 > b->key8) - (a->key8 < b->key8);
    const char *x, *y;
    uint32_t xs, ys, unused;
    item_read(s, a, &x, &xs, &unused);
    item_read(s, b, &y, &ys, &unused);
    return compare_bytes(x, xs, y, ys);
}

static void merge_stretch(const struct sorter *s, const struct sorter_item *from, size_t middle,
                          size_t n, struct sorter_item *to)
{
    size_t a = 0, b = middle;
    for (size_t i = 0; i < n; i++) {
        const bool first = b == n || (a < middle && item_compare(s, &from[a], &from[b]) <= 0);
        to[i] = first ? from[a++] : from[b++];
    }
}

/* From pairs up; stable, so that of equal keys the later one stays behind. */
static void items_sort(struct sorter *s)
{
    s->spare = tool_resize(s->spare, (s->count ? s->count : 1) * sizeof *s->spare);
    for (size_t width = 1; width < s->count; width *= 2) {
        for (size_t at = 0; at < s->count; at += 2 * width) {
            const size_t left = s->count - at;
            const size_t n = left < 2 * width ? left : 2 * width;
            merge_stretch(s, s->items + at, n < width ? n : width, n, s->spare + at);
        }
        struct sorter_item *sorted = s->spare;
        s->spare = s->items;
        s->items = sorted;
    }
    s->capacity = s->count; /* the arrays changed places */
}

/* Is there a later one of the same key? */
static bool is_superseded(const struct sorter *s, size_t i)
{
    return i + 1 < s->count && item_compare(s, &s->items[i], &s->items[i + 1]) == 0;
}

/* ---- runs ---- */

static FILE *run_create(struct sorter *s)
{
    struct text path = {0};
    text_printf(&path, "%s/.tamiz-sort-XXXXXX", s->directory);
    const int fd = mkstemp(path.data);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+b");
    if (fd >= 0)
        (void)unlink(path.data); /* the file lives as long as it is open */
    if (fd >= 0 && !file)
        (void)close(fd);
    if (file)
        (void)setvbuf(file, NULL, _IOFBF, RUN_BUFFER);
    text_free(&path);
    return file;
}

static bool record_write(FILE *file, const char *key, uint32_t key_size, const char *value,
                         uint32_t value_size)
{
    return fwrite(&key_size, sizeof key_size, 1, file) == 1 &&
           fwrite(&value_size, sizeof value_size, 1, file) == 1 &&
           fwrite(key, 1, key_size, file) == key_size &&
           fwrite(value, 1, value_size, file) == value_size;
}

static bool part_read(FILE *file, struct text *t, uint32_t size)
{
    text_clear(t);
    if (t->capacity <= size) {
        t->capacity = (size_t)size + 1;
        t->data = tool_resize(t->data, t->capacity);
    }
    t->size = size;
    t->data[size] = 0;
    return fread(t->data, 1, size, file) == size;
}

/* The next record of a run becomes the one at hand. */
static bool run_step(struct sorter *s, struct sorter_run *run)
{
    uint32_t key_size, value_size;
    if (fread(&key_size, sizeof key_size, 1, run->file) != 1) {
        run->ended = true;
        return !ferror(run->file) || broken(s, "reading a run");
    }
    return (fread(&value_size, sizeof value_size, 1, run->file) == 1 &&
            part_read(run->file, &run->key, key_size) &&
            part_read(run->file, &run->value, value_size)) ||
           broken(s, "reading a run");
}

static bool run_rewind(struct sorter *s, struct sorter_run *run)
{
    if (fflush(run->file) != 0 || fseek(run->file, 0, SEEK_SET) != 0)
        return broken(s, "writing a run");
    return run_step(s, run);
}

/* Of the records at hand the smallest key's newest, which becomes s->key and s->value. */
static bool merge_next(struct sorter *s, bool *more)
{
    struct sorter_run *least = NULL;
    for (size_t i = 0; i < s->run_count; i++) {
        struct sorter_run *run = &s->runs[i];
        if (!run->ended && (!least || compare_bytes(run->key.data, run->key.size, least->key.data,
                                                    least->key.size) <= 0))
            least = run; /* a later run's, where they are equal */
    }
    *more = least != NULL;
    if (!least)
        return true;
    const struct text key = s->key, value = s->value;
    s->key = least->key;
    s->value = least->value;
    least->key = key;
    least->value = value;
    bool fine = run_step(s, least);
    for (size_t i = 0; i < s->run_count && fine; i++) {
        struct sorter_run *run = &s->runs[i];
        if (!run->ended &&
            compare_bytes(run->key.data, run->key.size, s->key.data, s->key.size) == 0)
            fine = run_step(s, run);
    }
    return fine;
}

/* All runs become one. */
static bool runs_join(struct sorter *s)
{
    FILE *file = run_create(s);
    bool fine = file || broken(s, "making a run"), more = true;
    for (size_t i = 0; i < s->run_count && fine; i++)
        fine = run_rewind(s, &s->runs[i]);
    while (fine && more) {
        fine = merge_next(s, &more);
        if (fine && more &&
            !record_write(file, s->key.data, (uint32_t)s->key.size, s->value.data,
                          (uint32_t)s->value.size))
            fine = broken(s, "writing a run");
    }
    while (s->run_count)
        run_close(&s->runs[--s->run_count]);
    if (file) {
        s->runs[0] = (struct sorter_run){.file = file};
        s->run_count = 1;
    }
    return fine;
}

/* What is in memory becomes a run. */
static bool spill(struct sorter *s)
{
    if (s->run_count == SORTER_RUNS && !runs_join(s))
        return false;
    FILE *file = run_create(s);
    if (!file)
        return broken(s, "making a run");
    s->runs[s->run_count++] = (struct sorter_run){.file = file};
    items_sort(s);
    for (size_t i = 0; i < s->count; i++) {
        const char *key;
        uint32_t key_size, value_size;
        item_read(s, &s->items[i], &key, &key_size, &value_size);
        if (!is_superseded(s, i) && !record_write(file, key, key_size, key + key_size, value_size))
            return broken(s, "writing a run");
    }
    s->count = 0;
    text_clear(&s->bytes);
    return true;
}

/* ---- the face ---- */

bool sorter_add(struct sorter *s, const void *key, size_t key_size, const void *value,
                size_t value_size)
{
    const uint32_t sizes[2] = {(uint32_t)key_size, (uint32_t)value_size};
    const uint64_t used = s->bytes.size + s->count * 2 * sizeof *s->items;
    if (s->count && used + key_size + value_size > s->memory && !spill(s))
        return false;
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 4096;
        s->items = tool_resize(s->items, s->capacity * sizeof *s->items);
    }
    s->items[s->count++] = (struct sorter_item){first8(key, key_size), s->bytes.size};
    text_add(&s->bytes, sizes, sizeof sizes);
    text_add(&s->bytes, key, key_size);
    text_add(&s->bytes, value, value_size);
    return true;
}

bool sorter_end(struct sorter *s)
{
    if (s->run_count == 0) {
        items_sort(s);
        return true;
    }
    if (s->count && !spill(s))
        return false;
    for (size_t i = 0; i < s->run_count; i++)
        if (!run_rewind(s, &s->runs[i]))
            return false;
    return true;
}

bool sorter_next(struct sorter *s, bool *more)
{
    if (s->run_count)
        return merge_next(s, more);
    while (s->at < s->count && is_superseded(s, s->at))
        s->at++;
    *more = s->at < s->count;
    if (!*more)
        return true;
    const char *key;
    uint32_t key_size, value_size;
    item_read(s, &s->items[s->at++], &key, &key_size, &value_size);
    text_clear(&s->key);
    text_clear(&s->value);
    text_add(&s->key, key, key_size);
    text_add(&s->value, key + key_size, value_size);
    return true;
}
