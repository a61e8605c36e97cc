/* SPDX-License-Identifier: MIT
 *
 * Many byte strings in memory, as keys and probes of the lab: read from a file, made up, shuffled,
 * sorted, looked up.
 */
#ifndef TAMIZ_TOOLS_WORDS_H
#define TAMIZ_TOOLS_WORDS_H

#include "text.h"

struct word {
    const char *data; /* borrowed from the list it is of */
    size_t size;
};

struct words {
    struct text bytes; /* all, one behind the other; owned */
    size_t *ends;
    size_t count, capacity;
};

void words_add(struct words *w, const void *data, size_t size);
void words_free(struct words *w);
/* Adds each line of `path`, without its newline. false: errno says why. */
bool words_read(struct words *w, const char *path);
/* Numbers of 16 digits: 2i for i below `count`, so that each odd one is an absent key between two.
 */
void words_synthetic_keys(struct words *w, uint64_t count);

static inline struct word words_at(const struct words *w, size_t i)
{
    const size_t start = i ? w->ends[i - 1] : 0;
    return (struct word){w->bytes.data + start, w->ends[i] - start};
}

/* An array of all of them, in the order of adding; freed by the caller with free(). Valid until the
 * next add. */
struct word *words_array(const struct words *w);
bool word_equal(struct word a, struct word b);
/* In memcmp's order. */
void word_order(struct word *list, size_t count);
/* The same, repeats taken out; the new count. */
size_t word_sort(struct word *list, size_t count);
/* The place of `key` in a sorted list, or `count`. */
size_t word_find(const struct word *sorted, size_t count, struct word key);

/* splitmix64: the same everywhere from the same seed. */
struct random {
    uint64_t state;
};
uint64_t random_u64(struct random *r);
uint64_t random_below(struct random *r, uint64_t n); /* unbiased; n > 0 */
/* Fisher and Yates. */
void word_shuffle(struct word *list, size_t count, struct random *r);

#endif
