/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* getline */
#include "words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void words_add(struct words *w, const void *data, size_t size)
{
    if (w->count == w->capacity) {
        w->capacity = w->capacity ? w->capacity * 2 : 1024;
        w->ends = tool_resize(w->ends, w->capacity * sizeof *w->ends);
    }
    text_add(&w->bytes, data, size);
    w->ends[w->count++] = w->bytes.size;
}

void words_free(struct words *w)
{
    text_free(&w->bytes);
    free(w->ends);
    *w = (struct words){0};
}

bool words_read(struct words *w, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    while ((size = getline(&line, &capacity, file)) >= 0)
        words_add(w, line, (size_t)(size && line[size - 1] == '\n' ? size - 1 : size));
    const int error = ferror(file) ? errno : 0;
    (void)fclose(file);
    free(line);
    errno = error;
    return !error;
}

void words_synthetic_keys(struct words *w, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char key[32];
        const int size = snprintf(key, sizeof key, "%016llu", 2 * (unsigned long long)i);
        words_add(w, key, (size_t)size);
    }
}

struct word *words_array(const struct words *w)
{
    struct word *list = tool_resize(NULL, w->count * sizeof *list);
    for (size_t i = 0; i < w->count; i++)
        list[i] = words_at(w, i);
    return list;
}

static int word_compare(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    const size_t least = x->size < y->size ? x->size : y->size;
    const int order = least ? memcmp(x->data, y->data, least) : 0;
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

bool word_equal(struct word a, struct word b)
{
    return word_compare(&a, &b) == 0;
}

void word_order(struct word *list, size_t count)
{
    qsort(list, count, sizeof *list, word_compare);
}

size_t word_sort(struct word *list, size_t count)
{
    size_t kept = 0;
    word_order(list, count);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !word_equal(list[kept - 1], list[i]))
            list[kept++] = list[i];
    return kept;
}

size_t word_find(const struct word *sorted, size_t count, struct word key)
{
    const struct word *found =
        count ? bsearch(&key, sorted, count, sizeof *sorted, word_compare) : NULL;
    return found ? (size_t)(found - sorted) : count;
}

uint64_t random_u64(struct random *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* What lies below 2^64 mod n is thrown again: the rest divides evenly. */
uint64_t random_below(struct random *r, uint64_t n)
{
    const uint64_t least = (0 - n) % n;
    uint64_t x;
    do {
        x = random_u64(r);
    } while (x < least);
    return x % n;
}

void word_shuffle(struct word *list, size_t count, struct random *r)
{
    for (size_t i = count; i > 1; i--) {
        const size_t other = (size_t)random_below(r, i);
        const struct word held = list[i - 1];
        list[i - 1] = list[other];
        list[other] = held;
    }
}
