/* SPDX-License-Identifier: MIT */
#include "db/options.h"

#include "db/options_table.h"
#include "env/env.h"
#include "filter/filter.h"

#define KIB       UINT64_C(1024)
#define AT(field) offsetof(tamiz_options, field)

const struct option_row option_rows[OPTION_ROWS] = {
    {"create_if_missing", OPTION_BOOLEAN, AT(create_if_missing), 0, 1,
     "make the store where there is none"},
    {"error_if_exists", OPTION_BOOLEAN, AT(error_if_exists), 0, 1,
     "refuse a store that is there already"},
    {"read_only", OPTION_BOOLEAN, AT(read_only), 0, 1, "no lock, nothing changes on disk"},
    {"direct_io", OPTION_BOOLEAN, AT(direct_io), 0, 1,
     "read tables around the page cache where the file system can"},
    {"verify", OPTION_BOOLEAN, AT(verify), 0, 1, "check a block's checksum when it is read"},
    {"memtable", OPTION_SIZE, AT(memtable), 16 * KIB, 4096 * KIB *KIB,
     "bytes at which a memtable is sealed"},
    {"cache", OPTION_SIZE, AT(cache), 0, UINT64_C(1) << 44,
     "bytes of the block cache, all keyspaces together"},
    {"block", OPTION_SIZE, AT(block), 256, 1024 * KIB, "bytes of a data block before compression"},
    {"table", OPTION_SIZE, AT(table), 4 * KIB, 4096 * KIB *KIB, "bytes at which a table is ended"},
    {"filter", OPTION_FILTER, AT(filter), 0, 0, "KIND, KIND:BITS or KIND:fpr=P; none"},
    {"filter_memory", OPTION_FILTER_MEMORY, AT(filter_memory), 0, 0, "uniform or monkey"},
    {"prefix_filter", OPTION_PREFIX, AT(prefix_filter), 0, 0,
     "none, N (bytes) or sep:0xNN: also a filter over the keys' prefixes"},
    {"compression", OPTION_COMPRESSION, AT(compression), 0, 0,
     "none, zstd[:LEVEL], zstd-dict[:LEVEL]; by level: none,none,zstd:3 (the last one goes on)"},
    {"compaction", OPTION_COMPACTION, AT(compaction), 0, 0, "leveled, tiered, lazy or off"},
    {"size_ratio", OPTION_NUMBER, AT(size_ratio), 2, 64,
     "how many times larger each level is than the one above"},
    {"level0_runs", OPTION_NUMBER, AT(level0_runs), 1, 1024,
     "runs in level 0 that start a compaction"},
    {"level0_stop", OPTION_NUMBER, AT(level0_stop), 2, 4096,
     "runs in level 0 at which writers wait; above level0_runs"},
    {"threads", OPTION_NUMBER, AT(threads), 0, 64,
     "background threads; 0: work is done inside calls and tamiz_step"},
    {"sync", OPTION_SYNC, AT(sync), 0, 0,
     "when the log reaches the disk: none, interval:MS, always"},
    {"max_open_files", OPTION_NUMBER, AT(max_open_files), 0, 1 << 20,
     "never exceeded, at least 16; 0: by the process's limit"},
    {"audit", OPTION_NUMBER, AT(audit), 0, UINT32_MAX,
     "one read in so many also looks where filters said no; 0: none"},
    {"ttl", OPTION_SECONDS, AT(ttl), 0, TTL_MAX,
     "seconds after which what is put is as good as deleted; 0: never"},
    {"idle_merge", OPTION_NUMBER, AT(idle_merge), 0, 86400000,
     "milliseconds without a write after which runs are merged until few are left; 0: never"},
};

size_t options_row_count(void)
{
    return OPTION_ROWS;
}

void tamiz_options_init(tamiz_options *options)
{
    if (!options)
        return;
    const tamiz_options defaults = TAMIZ_OPTIONS_INIT;
    *options = defaults;
}

/* ---- checking ---- */

/* Fields that are names: a number that is none of them. */
static tamiz_status check_names(const tamiz_options *o)
{
    if ((unsigned)o->compaction > TAMIZ_COMPACTION_LAZY ||
        (unsigned)o->filter_memory > TAMIZ_FILTER_MONKEY || (unsigned)o->sync > TAMIZ_SYNC_ALWAYS)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "compaction=%d filter_memory=%d sync=%d: no such value",
                         (int)o->compaction, (int)o->filter_memory, (int)o->sync);
    if (!prefix_rule_is_known(options_prefix_rule(o)))
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "prefix_filter: kind %d, value %u: want 1..%d bytes or a separator 0..255",
                         (int)o->prefix_filter, o->prefix_filter_value, PREFIX_BYTES_MAX);
    if (o->sync == TAMIZ_SYNC_INTERVAL &&
        (o->sync_interval_ms < 1 || o->sync_interval_ms > SYNC_INTERVAL_MS_MAX))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "sync=interval:%u: want MS 1..%d",
                         o->sync_interval_ms, SYNC_INTERVAL_MS_MAX);
    return TAMIZ_OK;
}

static tamiz_status check_compression(const tamiz_options *o, int level)
{
    const int strength = o->compression_level[level];
    if ((unsigned)o->compression[level] > TAMIZ_COMPRESSION_ZSTD_DICT)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compression of level %d: %d: no such value",
                         level, (int)o->compression[level]);
    if (o->compression[level] != TAMIZ_COMPRESSION_NONE &&
        (strength < 1 || strength > ZSTD_LEVEL_MAX))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compression of level %d: zstd:%d: want 1..%d",
                         level, strength, ZSTD_LEVEL_MAX);
    return TAMIZ_OK;
}

tamiz_status options_check(const tamiz_options *o)
{
    for (int i = 0; i < OPTION_ROWS; i++) {
        const struct option_row *row = &option_rows[i];
        const char *field = (const char *)o + row->offset;
        if (row->type != OPTION_SIZE && row->type != OPTION_NUMBER && row->type != OPTION_SECONDS)
            continue;
        const uint64_t value = row->type == OPTION_NUMBER ? *(const uint32_t *)(const void *)field
                                                          : *(const uint64_t *)(const void *)field;
        if (value < row->least || value > row->most)
            return op_refuse(TAMIZ_INVALID_ARGUMENT, "%s=%llu: want %llu..%llu", row->name,
                             (unsigned long long)value, (unsigned long long)row->least,
                             (unsigned long long)row->most);
    }
    if (o->level0_stop <= o->level0_runs)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "level0_stop=%u: want more than level0_runs=%u",
                         o->level0_stop, o->level0_runs);
    if (o->max_open_files && o->max_open_files < 16)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "max_open_files=%u: want 0 or 16 and more",
                         o->max_open_files);
    tamiz_status st = check_names(o);
    for (int i = 0; i < TAMIZ_LEVELS && st == TAMIZ_OK; i++)
        st = check_compression(o, i);
    if (st != TAMIZ_OK)
        return st;
    struct counters nowhere = {0};
    struct op op;
    op_init(&op, &alloc_libc, &nowhere);
    return op_publish(&op, filter_policy_check(&op, &o->filter));
}

size_t options_known_size(const tamiz_options *given)
{
    return given->struct_size < sizeof *given ? given->struct_size : sizeof *given;
}

tamiz_status options_merge(const tamiz_options *given, tamiz_options *taken)
{
    tamiz_options_init(taken);
    if (given && given->struct_size < sizeof given->struct_size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "options: struct_size=%zu: start from TAMIZ_OPTIONS_INIT",
                         given->struct_size);
    if (given)
        memcpy(taken, given, options_known_size(given));
    taken->struct_size = sizeof *taken;
    return TAMIZ_OK;
}

/* ---- what follows from them ---- */

struct prefix_rule options_prefix_rule(const tamiz_options *o)
{
    return (struct prefix_rule){o->prefix_filter, o->prefix_filter_value};
}

static enum codec codec_of(tamiz_compression compression)
{
    return compression == TAMIZ_COMPRESSION_NONE   ? CODEC_NONE
           : compression == TAMIZ_COMPRESSION_ZSTD ? CODEC_ZSTD
                                                   : CODEC_ZSTD_DICT;
}

struct table_build_options options_recipe(const tamiz_options *o, uint32_t level,
                                          enum io_purpose purpose)
{
    return (struct table_build_options){.block_bytes = (size_t)o->block,
                                        .filter = o->filter,
                                        .prefix = options_prefix_rule(o),
                                        .prefix_filter = o->filter,
                                        .codec = codec_of(o->compression[level]),
                                        .compression_level = o->compression_level[level],
                                        .purpose = purpose,
                                        .log = o->log};
}

tamiz_status options_take(const tamiz_options *options, tamiz_options *taken)
{
    const tamiz_status st = options_merge(options, taken);
    if (st != TAMIZ_OK)
        return st;
    if (!taken->env)
        taken->env = tamiz_env_posix();
    if (!env_is_complete(taken->env))
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "env: a function that must be there is NULL, or beyond its struct_size");
    return options_check(taken);
}
