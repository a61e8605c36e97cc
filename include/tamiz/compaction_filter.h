/* SPDX-License-Identifier: MIT
 *
 * A compaction filter: the program's own word on each value that a merge is about to write again:
 * keep it, drop it, or write another in its place. For what expires by rules that only the program
 * knows, for values in an old format, for what has to be erased. docs/compaction-filter.md
 */
#ifndef TAMIZ_COMPACTION_FILTER_H
#define TAMIZ_COMPACTION_FILTER_H

#include "tamiz/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tamiz_verdict {
    TAMIZ_KEEP,  /* as it is */
    TAMIZ_DROP,  /* as if deleted when it was written: nothing older of its key shows */
    TAMIZ_CHANGE /* the value that was given to tamiz_change_value */
} tamiz_verdict;

/* A value that is about to be written again. All of it is borrowed for the time of the call. */
typedef struct tamiz_merged {
    size_t struct_size;   /* of the library: so much of it is there */
    const char *keyspace; /* "default", or its name */
    const void *key;
    size_t key_size;
    const void *value;
    size_t value_size;
    uint64_t expires_us; /* when it expires, microseconds since 1970; 0: never */
    unsigned level;      /* where it will stand */
} tamiz_merged;

typedef struct tamiz_change tamiz_change; /* where a new value goes; good for one call of judge */

/*
 * The value to be written in the place of the one that is judged: copied; a second call replaces
 * the first. It counts where the verdict is TAMIZ_CHANGE. Its time to live stays. Only from inside
 * `judge`. TAMIZ_INVALID_ARGUMENT: beyond what a value may have; TAMIZ_OUT_OF_MEMORY. Either fails
 * the merge whatever `judge` returns.
 */
TAMIZ_API tamiz_status tamiz_change_value(tamiz_change *change, const void *value, size_t size);

/*
 * `judge` NULL: none. It is called from the threads that merge, several at a time, and with
 * threads=0 from inside any call; it must not call the store, must not wait for who does, and must
 * give the same answer for the same key and value until the store is closed: it is asked again each
 * time an entry is merged. Any other number than the three fails the merge, which is told
 * (tamiz_health, the event log) and tried again. `ctx` outlives the store.
 */
typedef struct tamiz_compaction_filter {
    tamiz_verdict (*judge)(void *ctx, const tamiz_merged *entry, tamiz_change *change);
    void *ctx;
} tamiz_compaction_filter;

#ifdef __cplusplus
}
#endif
#endif
