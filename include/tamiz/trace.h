/* SPDX-License-Identifier: MIT
 *
 * The steps of one read, as they are taken, and the events of the background. For tools and
 * teaching.
 */
#ifndef TAMIZ_TRACE_H
#define TAMIZ_TRACE_H

#include "tamiz/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tamiz_step_kind {
    TAMIZ_STEP_MEMTABLE, /* a memtable was searched                                            */
    TAMIZ_STEP_MEMTABLE_FILTER, /* a memtable's filter said no */
    TAMIZ_STEP_OUTSIDE_RANGE,   /* no table of this run spans the key   */
    TAMIZ_STEP_FILTER_NEGATIVE, /* the table's filter: definitely absent */
    TAMIZ_STEP_FILTER_MAYBE,    /* the table's filter: maybe present    */
    TAMIZ_STEP_NO_FILTER, /* the table is read unasked; `text` says why                         */
    TAMIZ_STEP_INDEX,     /* the index named a block (offset, size), or none that could have it */
    TAMIZ_STEP_BLOCK_CACHED, /* block from the cache */
    TAMIZ_STEP_BLOCK_DEVICE, /* block from the device: bytes and time */
    TAMIZ_STEP_FOUND,     /* a value                                                            */
    TAMIZ_STEP_TOMBSTONE, /* a deletion: the search ends                                        */
    TAMIZ_STEP_ABSENT_IN_BLOCK, /* the block does not have the key: this read was wasted */
    TAMIZ_STEP_RANGE_TOMBSTONE, /* a deletion of a range that has the key: the search ends */
    /* Of ordered reads whose bounds leave only keys of one prefix: */
    TAMIZ_STEP_PREFIX_NEGATIVE,  /* the table's prefix filter: nothing in the range */
    TAMIZ_STEP_PREFIX_MAYBE,     /* the table's prefix filter: maybe something */
    TAMIZ_STEP_NO_PREFIX_FILTER, /* a bounded read goes into the table unasked; `text` says why */
    TAMIZ_STEP_EXPIRED, /* what was found has expired: as good as deleted, the search ends */
    TAMIZ_STEP_COUNT
} tamiz_step_kind;

typedef struct tamiz_step_info {
    tamiz_step_kind kind;
    int level;                  /* of the table; -1: a memtable, or none                  */
    uint64_t table;             /* file number; 0: none                                   */
    const char *text;           /* words that go with it, or ""; valid during the call    */
    const char *filter;         /* kind of the table's filter, or ""                      */
    double expected_fpr;        /* of that filter, or 0                                   */
    uint64_t offset;            /* in the table file                                      */
    uint64_t size;              /* bytes                                                  */
    uint64_t nanoseconds;       /* of a device read; else 0                               */
    double filter_bits_per_key; /* of that filter, or 0 */
    const void *key; /* which of many keys this is about; NULL: there is but one. During the call */
    size_t key_size;
} tamiz_step_info;

/* Called by the reading thread, in order. Must not call the store. */
typedef struct tamiz_trace {
    void (*step)(void *ctx, const tamiz_step_info *step);
    void *ctx;
} tamiz_trace;

/* The kind's words: "filter: definitely absent". Static. */
TAMIZ_API const char *tamiz_step_text(tamiz_step_kind kind);

typedef enum tamiz_event_kind {
    TAMIZ_EVENT_OPEN,
    TAMIZ_EVENT_RECOVERY,
    TAMIZ_EVENT_FLUSH,
    TAMIZ_EVENT_COMPACTION,
    TAMIZ_EVENT_STALL,
    TAMIZ_EVENT_CORRUPTION,
    TAMIZ_EVENT_FILTER_IGNORED, /* missing, damaged or unknown: the table is read without it */
    TAMIZ_EVENT_FILE_DELETED,
    TAMIZ_EVENT_BACKGROUND_ERROR,
    TAMIZ_EVENT_NOTE,
    TAMIZ_EVENT_FILTER_DRIFT,  /* a table's measured rate has left what its filter promises */
    TAMIZ_EVENT_FILTER_DENIED, /* the audit found a key that its table's filter denied: the filter
                                  is no longer asked */
} tamiz_event_kind;

/* `text` is one line for a person, valid during the call. Called by any thread, sometimes with the
 * store's lock held: it must not call the store. */
typedef struct tamiz_event_log {
    void (*event)(void *ctx, tamiz_event_kind kind, const char *text);
    void *ctx;
} tamiz_event_log;

#ifdef __cplusplus
}
#endif
#endif
