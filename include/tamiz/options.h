/* SPDX-License-Identifier: MIT
 *
 * How a store behaves: one field a knob. TAMIZ_OPTIONS_INIT holds the defaults, so that 0 stays a
 * value; all but pointers can be set from text with tamiz_options_set. Ranges and defaults are in
 * docs/options.md, as `tamiz options` prints them: a number out of its range is
 * TAMIZ_INVALID_ARGUMENT when the store is opened.
 */
#ifndef TAMIZ_OPTIONS_H
#define TAMIZ_OPTIONS_H

#include "tamiz/compaction_filter.h"
#include "tamiz/env.h"
#include "tamiz/filter.h"
#include "tamiz/trace.h"
#include "tamiz/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tamiz_compression {
    TAMIZ_COMPRESSION_NONE,
    TAMIZ_COMPRESSION_ZSTD,
    TAMIZ_COMPRESSION_ZSTD_DICT /* with a dictionary that is trained for each table */
} tamiz_compression;
typedef enum tamiz_compaction {
    TAMIZ_COMPACTION_OFF,
    TAMIZ_COMPACTION_LEVELED,
    TAMIZ_COMPACTION_TIERED,
    TAMIZ_COMPACTION_LAZY
} tamiz_compaction;
typedef enum tamiz_sync_mode {
    TAMIZ_SYNC_NONE,
    TAMIZ_SYNC_INTERVAL,
    TAMIZ_SYNC_ALWAYS
} tamiz_sync_mode;
typedef enum tamiz_prefix_kind {
    TAMIZ_PREFIX_NONE,
    TAMIZ_PREFIX_BYTES,    /* the first so many bytes of a key */
    TAMIZ_PREFIX_SEPARATOR /* up to and with the first such byte */
} tamiz_prefix_kind;
typedef enum tamiz_filter_memory { TAMIZ_FILTER_UNIFORM, TAMIZ_FILTER_MONKEY } tamiz_filter_memory;

enum { TAMIZ_LEVELS = 8 }; /* levels 0..7 */

typedef struct tamiz_options {
    size_t struct_size;     /* sizeof(tamiz_options): TAMIZ_OPTIONS_INIT sets it */
    bool create_if_missing; /* make the store where there is none */
    bool error_if_exists;   /* refuse one that is there */
    bool read_only;         /* no lock, nothing changes on disk */
    /* O_DIRECT for tables; where the file system refuses, buffered, with an event. */
    bool direct_io;
    bool verify;       /* check a block's checksum when it is read */
    uint64_t memtable; /* bytes at which a memtable is sealed */
    uint64_t cache;    /* bytes of the block cache, all keyspaces together; 0: no cache */
    uint64_t block;    /* bytes of a data block before compression */
    uint64_t table;    /* bytes at which a table is ended */
    tamiz_filter_policy filter;
    tamiz_filter_memory filter_memory; /* all runs the same bits a key, or more where they pay */
    tamiz_compression compression[TAMIZ_LEVELS]; /* by level */
    int compression_level[TAMIZ_LEVELS];         /* zstd's, 1..19 */
    tamiz_compaction compaction;
    uint32_t size_ratio; /* each level is so many times larger than the one above */
    /* Runs in level 0 that start a compaction; fewer, where reads have paid for it (idle_merge). */
    uint32_t level0_runs;
    uint32_t level0_stop;      /* runs in level 0 at which writers wait; above level0_runs */
    uint32_t threads;          /* background threads; 0: work is done inside calls and tamiz_step.
                                  Idle ones open the tables that are there, while those take no more
                                  memory than `cache` */
    tamiz_sync_mode sync;      /* when the log reaches the disk: docs/durability.md */
    uint32_t sync_interval_ms; /* of TAMIZ_SYNC_INTERVAL, 1..3600000; else not looked at */
    /* Never exceeded, at least 16; 0: by the process's limit. Where reads go through io_uring the
     * process has up to four descriptors beside them. */
    uint32_t max_open_files;
    tamiz_event_log log;       /* events; the default is silence. `ctx` outlives the store */
    const tamiz_env *env;      /* borrowed, outlives the store; NULL: tamiz_env_posix() */
    tamiz_allocator allocator; /* resize NULL: libc */
    /* One read in so many also looks into the tables whose filters said no; 0: none. */
    uint32_t audit;
    /* Each table that is written also gets a filter over the prefixes of its keys, of the kind and
     * bits of `filter` (none with filter=none), which iterators ask whose bounds leave only keys of
     * one prefix: docs/prefixes.md. Tables remember how their prefixes are found, so that a change
     * is for new tables and old ones stay right. */
    tamiz_prefix_kind prefix_filter;
    uint32_t prefix_filter_value; /* BYTES: how many, 1..1024; SEPARATOR: the byte, 0..255 */
    /* Seconds after which what is put is as good as deleted, where the put does not say otherwise
     * (tamiz_write_options.ttl); 0: never. At most 100 years. For puts from now on: what is there
     * keeps its own. docs/expiry.md */
    uint64_t ttl;
    /* Asked of values that are merged; of this keyspace only. docs/compaction-filter.md */
    tamiz_compaction_filter compaction_filter;
    /* Milliseconds without a write after which runs are merged that need not be, so that reads ask
     * few; 0: never. A byte is rewritten so at most once a rest, and seldom:
     * docs/adr/0025-merging-when-idle.md. Such merges give way to what writers need. Beside writers
     * the same is done as far as reads have paid for it: docs/adr/0027-reads-pay-for-merges.md. */
    uint32_t idle_merge;
} tamiz_options;

/* The defaults, struct_size set. NULL is fine. */
TAMIZ_API void tamiz_options_init(tamiz_options *options);

/*
 * Sets fields from text: "filter=blocked:10 cache=64MiB". Space or newline between settings; sizes
 * take KiB, MiB, GiB or plain bytes. All or nothing: on TAMIZ_INVALID_ARGUMENT nothing changed, and
 * the detail says "size_ratio=1: want 2..64".
 */
TAMIZ_API tamiz_status tamiz_options_set(tamiz_options *options, const char *text);

/* All fields as text that tamiz_options_set reads back; *text is freed with tamiz_free. */
TAMIZ_API tamiz_status tamiz_options_text(const tamiz_options *options, char **text);

/* One line a knob, "name  default  meaning; bounds", for --help; *text is freed with tamiz_free. */
TAMIZ_API tamiz_status tamiz_options_help(char **text);

#define TAMIZ_OPTIONS_INIT                                                                         \
    {                                                                                              \
        sizeof(tamiz_options), true, false, false, false, true, UINT64_C(64) << 20,                \
            UINT64_C(64) << 20, 4096, UINT64_C(32) << 20, {"blocked", 10, 0, NULL},                \
            TAMIZ_FILTER_UNIFORM,                                                                  \
            {TAMIZ_COMPRESSION_NONE, TAMIZ_COMPRESSION_NONE, TAMIZ_COMPRESSION_NONE,               \
             TAMIZ_COMPRESSION_NONE, TAMIZ_COMPRESSION_NONE, TAMIZ_COMPRESSION_NONE,               \
             TAMIZ_COMPRESSION_NONE, TAMIZ_COMPRESSION_NONE},                                      \
            {3, 3, 3, 3, 3, 3, 3, 3}, TAMIZ_COMPACTION_LAZY, 10, 32, 48, 2, TAMIZ_SYNC_NONE, 0, 0, \
            {NULL, NULL}, NULL, {NULL, NULL}, 0, TAMIZ_PREFIX_NONE, 0, 0, {NULL, NULL}, 1000       \
    }

#ifdef __cplusplus
}
#endif
#endif
