/* SPDX-License-Identifier: MIT
 *
 * The options that model_test.c runs under: trees that are deep because their tables are tiny, no
 * filter and each kind of filter, caches of nothing and of everything, background work inside the
 * calls and on threads, in memory and on the real file system. The first ones run long; those named
 * `more-N`, and `busy-N` on threads, are for breadth and short.
 */
#ifndef TAMIZ_TESTS_MODEL_SETS_H
#define TAMIZ_TESTS_MODEL_SETS_H

#include <stdbool.h>
#include <stdint.h>

/* Later options win. */
#define SMALL "memtable=32KiB block=1KiB table=16KiB cache=64KiB level0_runs=2 threads=0 "

struct option_set {
    const char *name;
    const char *text;
    bool in_memory;    /* the file system: in memory, or the real one */
    int keys;          /* about how many different keys                */
    uint32_t slowness; /* steps are divided by this */
    bool judged;       /* the default keyspace has a compaction filter, too */
};

static const struct option_set option_sets[] = {
    {"deep",
     "filter=blocked:10 memtable=64KiB block=512 table=16KiB cache=64KiB size_ratio=2 "
     "level0_runs=2 threads=0 compaction=leveled prefix_filter=3 idle_merge=1",
     true, 900, 1, true},
    {"tiered",
     "filter=none memtable=64KiB block=1KiB table=32KiB cache=0 size_ratio=3 level0_runs=2 "
     "threads=0 compaction=tiered",
     true, 900, 1, false},
    {"lazy",
     "filter=bloom:5 memtable=64KiB block=1KiB table=16KiB cache=1MiB size_ratio=3 level0_runs=3 "
     "threads=0 compaction=lazy prefix_filter=sep:0x2f idle_merge=1",
     true, 900, 1, true},
    {"off",
     "filter=bloom:16 memtable=128KiB block=4KiB table=64KiB cache=256MiB threads=0 compaction=off "
     "prefix_filter=11",
     true, 600, 1, false},
    {"large", "filter=blocked:10 memtable=64MiB cache=64MiB threads=2", false, 3000, 1, true},
    {"direct",
     "filter=blocked:8 direct_io=true memtable=64KiB block=2KiB table=32KiB cache=16KiB "
     "size_ratio=3 level0_runs=2 threads=0 compaction=leveled",
     false, 600, 2, false},
    {"zstd",
     "filter=bloom:10 compression=zstd:1 memtable=64KiB block=4KiB table=32KiB cache=128KiB "
     "size_ratio=3 level0_runs=2 threads=0 compaction=leveled",
     true, 900, 1, true},
    {"monkey",
     "filter=bloom:8 filter_memory=monkey compression=none,none,zstd:3 memtable=64KiB block=1KiB "
     "table=16KiB cache=64KiB size_ratio=2 level0_runs=2 threads=0 compaction=lazy verify=false "
     "prefix_filter=2",
     true, 900, 1, false},
    {"threads-leveled",
     "filter=blocked:10 memtable=64KiB block=1KiB table=16KiB cache=64KiB size_ratio=2 "
     "level0_runs=2 threads=2 compaction=leveled prefix_filter=sep:0x00 idle_merge=1",
     false, 900, 2, true},
    {"threads-lazy",
     "filter=blocked:fpr=0.02 direct_io=true compression=zstd-dict:1 memtable=64KiB block=1KiB "
     "table=32KiB cache=0 size_ratio=3 level0_runs=2 threads=2 compaction=lazy idle_merge=1",
     false, 600, 3, false},
    {"sync",
     "filter=blocked:10 sync=always memtable=64KiB block=1KiB table=16KiB cache=1MiB "
     "level0_runs=2 threads=0 compaction=tiered idle_merge=1",
     true, 600, 2, true},
    {"more-1", SMALL "filter=ribbon:9 compaction=leveled size_ratio=2 level0_runs=1 level0_stop=2",
     true, 300, 12, false},
    {"more-2", SMALL "filter=fuse8 compaction=tiered size_ratio=2 level0_runs=2 prefix_filter=4",
     true, 300, 12, true},
    {"more-3", SMALL "filter=xor8 compaction=lazy size_ratio=4 level0_runs=2 filter_memory=monkey",
     true, 300, 12, false},
    {"more-4", SMALL "filter=split:10 compaction=leveled compression=zstd:1 cache=0", true, 300, 12,
     true},
    {"more-5", SMALL "filter=xor16 compaction=off verify=false", true, 300, 12, false},
    {"more-6", SMALL "filter=bumped compaction=leveled block=256 table=4KiB cache=16KiB", true, 300,
     12, true},
    {"more-7", SMALL "filter=cuckoo compaction=tiered block=16KiB table=1MiB max_open_files=16",
     true, 300, 12, false},
    {"more-8",
     SMALL "filter=fuse4 compaction=lazy compression=none,none,zstd:3 level0_runs=1 level0_stop=3",
     true, 300, 12, true},
    {"more-9", SMALL "filter=fuse16 compaction=leveled size_ratio=10 prefix_filter=sep:0x2f", true,
     300, 12, false},
    {"more-10",
     SMALL
     "filter=bloom:14 compaction=leveled memtable=16KiB block=512 table=8KiB cache=0 verify=false",
     true, 300, 12, true},
    {"more-11", SMALL "filter=blocked:fpr=0.05 compaction=lazy sync=interval:1", true, 300, 12,
     false},
    {"more-12", SMALL "filter=none compaction=leveled memtable=16KiB block=256 table=4KiB", true,
     300, 12, true},
    {"more-13", SMALL "filter=ribbon:fpr=0.01 compaction=tiered compression=zstd:1 prefix_filter=1",
     true, 300, 12, false},
    {"more-14",
     SMALL "filter=blocked:2 compaction=leveled filter_memory=monkey size_ratio=2 level0_runs=1",
     true, 300, 12, true},
    {"more-15", SMALL "filter=bloom:1 compaction=lazy cache=1MiB table=4KiB", true, 300, 12, false},
    {"more-16", SMALL "filter=split:6 compaction=tiered sync=always max_open_files=16", true, 300,
     12, true},
    {"busy-1", SMALL "filter=blocked:10 compaction=tiered threads=1", true, 300, 12, false},
    {"busy-2", SMALL "filter=ribbon:8 compaction=leveled threads=2 memtable=16KiB table=8KiB", true,
     300, 12, true},
    {"busy-3", SMALL "filter=bloom:8 compaction=lazy threads=4 level0_runs=1 level0_stop=2 cache=0",
     true, 300, 12, false},
    {"busy-4", SMALL "filter=fuse8 compaction=off threads=1 compression=zstd:1", true, 300, 12,
     true},
    {"busy-5", SMALL "filter=xor8 compaction=leveled threads=2 direct_io=true prefix_filter=2",
     false, 300, 12, false},
};

#endif
