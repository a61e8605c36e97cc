/* SPDX-License-Identifier: MIT
 *
 * Sorting more than fits into memory: what fits is sorted and written to a file as a run, and the
 * runs are merged. Of a key that was added twice, the later one is kept. Too many runs at once are
 * merged into one first, so that the number of open files has a bound, too.
 */
#ifndef TAMIZ_TOOLS_SORTER_H
#define TAMIZ_TOOLS_SORTER_H

#include "text.h"

struct sorter_item {
    uint64_t key8;   /* the first bytes of the key, big-endian: decides nearly always */
    uint64_t offset; /* of its record in `bytes` */
};

struct sorter_run {
    FILE *file;
    struct text key, value; /* the record at hand */
    bool ended;
};

enum { SORTER_RUNS = 128 };

struct sorter {
    const char *directory; /* where runs are written; their names are gone at once */
    uint64_t memory;       /* about so much is used */
    struct text bytes;     /* records: key size u32, value size u32, key, value */
    struct sorter_item *items, *spare;
    size_t count, capacity;
    struct sorter_run runs[SORTER_RUNS]; /* oldest first */
    size_t run_count;
    size_t at;       /* of the items, where nothing was written to a run */
    struct text why; /* words for a failure */
    struct text key, value;
};

/* `directory` is borrowed. */
void sorter_init(struct sorter *s, const char *directory, uint64_t memory);
void sorter_free(struct sorter *s);
/* false: s->why. */
bool sorter_add(struct sorter *s, const void *key, size_t key_size, const void *value,
                size_t value_size);
/* All were added. */
bool sorter_end(struct sorter *s);
/* The next one in order is s->key and s->value; *more false: there is none. */
bool sorter_next(struct sorter *s, bool *more);

#endif
