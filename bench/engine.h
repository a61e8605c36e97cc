/* SPDX-License-Identifier: MIT
 *
 * A store, as the workloads see one: a table of functions, so that tamiz and its peers run the very
 * same code over the same keys. One program is built for each engine.
 *
 * Threads: a store is shared; each thread has a session of its own, which is where an engine keeps
 * what it wants one of per thread (a read transaction, a cursor, a pinned value).
 *
 * Calls return ENGINE_OK, ENGINE_ABSENT or ENGINE_FAILED; the words for the last failure of a
 * thread are in engine_error().
 */
#ifndef TAMIZ_BENCH_ENGINE_H
#define TAMIZ_BENCH_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum engine_result { ENGINE_FAILED = -1, ENGINE_OK = 0, ENGINE_ABSENT = 1 };

struct engine_options {
    const char *path;    /* a directory that exists */
    bool create;         /* a fresh store, in an empty directory */
    uint64_t cache;      /* bytes */
    uint64_t memtable;   /* bytes */
    uint64_t block;      /* bytes */
    uint64_t data_bytes; /* about how much will be stored, for those who must know before */
    double filter_bits;  /* per key; 0: no filter */
    bool direct;         /* around the page cache, where the engine can */
    bool zstd;           /* compress tables */
    unsigned threads;    /* in the background */
    bool counts;         /* keep the counters that cost time, for device reads */
    const char *extra;   /* the engine's own settings, in its own words; "" */
};

struct engine_counts {
    uint64_t device_reads; /* of data, as the engine counts them */
    uint64_t device_read_bytes;
    uint64_t memory_bytes; /* that it says it holds: cache, tables, memtables; 0: it does not say */
    bool known;            /* false: this engine does not count reads */
};

struct engine {
    const char *name;
    const char *(*version)(void);

    /* Is `extra` such settings? NULL: found out by opening. */
    int (*check)(const char *extra);
    int (*open)(const struct engine_options *options, void **store);
    int (*close)(void *store);
    void *(*session_open)(void *store); /* NULL: failed */
    void (*session_close)(void *session);

    int (*put)(void *session, const void *key, size_t key_size, const void *value,
               size_t value_size, bool sync);
    int (*remove)(void *session, const void *key, size_t key_size);
    /* Every key in [from, to). NULL: none. */
    int (*remove_range)(void *session, const void *from, size_t from_size, const void *to,
                        size_t to_size);
    /* The value is copied into `buffer` (as much as fits); *size is the whole. */
    int (*get)(void *session, const void *key, size_t key_size, void *buffer, size_t capacity,
               size_t *size);
    /* Value i goes to buffers[i]; sizes[i] is SIZE_MAX where the key is absent. NULL: none. */
    int (*multi_get)(void *session, size_t n, const void *const keys[], const size_t key_sizes[],
                     void *const buffers[], size_t capacity, size_t sizes[]);

    void *(*iter_open)(void *session); /* NULL: failed */
    /* Over the keys that begin so, `prefix` outliving it. NULL: the engine has none, and seeks. */
    void *(*prefix_open)(void *session, const void *prefix, size_t size);
    void (*iter_seek)(void *iter, const void *key, size_t key_size);
    void (*iter_seek_first)(void *iter);
    void (*iter_seek_last)(void *iter);
    void (*iter_next)(void *iter);
    void (*iter_prev)(void *iter);
    bool (*iter_valid)(void *iter);
    const void *(*iter_key)(void *iter, size_t *size);
    const void *(*iter_value)(void *iter, size_t *size);
    void (*iter_close)(void *iter);

    int (*flush)(void *store); /* what is in memory goes to the files */
    /* Whether nothing more will be done in the background, as far as it knows. NULL: found out by
     * watching. */
    bool (*settled)(void *store);
    int (*compact)(void *store); /* into as few runs as there can be; NULL: nothing to do */
    void (*counts)(void *store, struct engine_counts *counts);
    /* The settings that are in force and the shape of the tree, for the report; malloc'ed or NULL.
     */
    char *(*describe)(void *store);
};

/* Words of this thread's last failure. */
const char *engine_error(void);
/* For engines: keeps the words, returns ENGINE_FAILED. */
int engine_fail(const char *what, const char *why);

int bench_main(const struct engine *engine, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
