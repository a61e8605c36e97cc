/* SPDX-License-Identifier: MIT
 *
 * The workloads: what each asks for, in which order, and what came of it.
 */
#ifndef TAMIZ_BENCH_WORKLOAD_H
#define TAMIZ_BENCH_WORKLOAD_H

#include "engine.h"
#include "histogram.h"
#include "keys.h"

/* What the command line asked for. */
struct bench_settings {
    uint64_t num;        /* keys in the store                                   */
    uint64_t ops;        /* operations of each reading workload; 0: num         */
    size_t value_size;   /* bytes                                               */
    unsigned threads;    /* that ask                                            */
    unsigned batch;      /* keys of one multi_get                               */
    unsigned seek_nexts; /* entries read after a seek                           */
    uint64_t seed;
    uint64_t write_rate; /* puts a second of the writer beside readers, at most; 0: all it can */
    bool warm;           /* read everything once before the first reading workload */
    bool existing;       /* the store is there: do not begin with an empty one */
    struct engine_options store;
};

/* An open store and what is known of its contents. */
struct bench {
    const struct engine *engine;
    struct bench_settings settings;
    void *store;
    uint64_t stored;     /* keys 0..stored-1 were written          */
    uint32_t generation; /* of the values that are written next    */
    bool deleted;        /* some keys are gone: absent is no error */
    bool warmed;
};

/* Sums over the threads that asked. Times of keys being made up and values being compared with
 * what they should be are inside for neither: only the engine's calls are timed, and the comparing
 * of a value, which is the caller's use of it. */
struct outcome {
    char name[48];
    unsigned threads;
    uint64_t ops;          /* keys asked for, written, or walked over           */
    uint64_t found;        /* of those asked for                                */
    uint64_t bytes;        /* keys and values that went in or out               */
    double seconds;        /* of one thread, in calls                           */
    double cpu_us;         /* process CPU per operation, background included    */
    double thread_cpu_us;  /* of the asking threads alone                       */
    double settle_seconds; /* until the background was idle; fills only        */
    struct histogram latency;
    struct engine_counts counts;                    /* during the workload */
    uint64_t kernel_read_bytes, kernel_write_bytes; /* /proc/self/io, likewise */
    bool kernel_known;
    uint64_t store_bytes; /* of the directory, at the end */
    uint64_t rss_bytes, peak_rss_bytes;
    uint64_t other_ops;   /* of the writer beside the readers, … */
    double other_seconds; /* … and how long it was at it */
};

/* Runs workload `text`: NAME, NAME:PARAMETER, NAME@THREADS or both. 0, or -1 with words on
 * stderr. */
int workload_run(struct bench *bench, const char *text, struct outcome *outcome);
/* Whether that is such a text. */
bool workload_known(const char *text);
/* One line each: name and what it does. */
void workload_list(void);

/* Opens the store as the settings say; fresh: empties its directory first. 0 or -1. */
int bench_open(struct bench *bench, bool fresh);
int bench_close(struct bench *bench);

#endif
