/* SPDX-License-Identifier: MIT
 *
 * All knobs in one table: name, where it is, bounds, meaning. It serves the defaults' check, the
 * parser, the printer, the help and the documents; a test proves that the rows cover the struct.
 */
#include "db/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "env/env.h"
#include "filter/filter.h"

enum type {
    BOOLEAN,
    SIZE,
    NUMBER,
    SECONDS,
    FILTER,
    FILTER_MEMORY,
    PREFIX,
    COMPRESSION,
    COMPACTION,
    SYNC
};

struct row {
    const char *name;
    enum type type;
    size_t offset;
    uint64_t least, most; /* of SIZE, NUMBER and SECONDS */
    const char *help;
};

enum { SYNC_INTERVAL_MAX = 3600000, ZSTD_MOST = 19 };

#define KIB       UINT64_C(1024)
#define AT(field) offsetof(tamiz_options, field)

static const struct row rows[] = {
    {"create_if_missing", BOOLEAN, AT(create_if_missing), 0, 1,
     "make the store where there is none"},
    {"error_if_exists", BOOLEAN, AT(error_if_exists), 0, 1, "refuse a store that is there already"},
    {"read_only", BOOLEAN, AT(read_only), 0, 1, "no lock, nothing changes on disk"},
    {"direct_io", BOOLEAN, AT(direct_io), 0, 1,
     "read tables around the page cache where the file system can"},
    {"verify", BOOLEAN, AT(verify), 0, 1, "check a block's checksum when it is read"},
    {"memtable", SIZE, AT(memtable), 16 * KIB, 4096 * KIB *KIB,
     "bytes at which a memtable is sealed"},
    {"cache", SIZE, AT(cache), 0, UINT64_C(1) << 44,
     "bytes of the block cache, all keyspaces together"},
    {"block", SIZE, AT(block), 256, 1024 * KIB, "bytes of a data block before compression"},
    {"table", SIZE, AT(table), 4 * KIB, 4096 * KIB *KIB, "bytes at which a table is ended"},
    {"filter", FILTER, AT(filter), 0, 0, "KIND, KIND:BITS or KIND:fpr=P; none"},
    {"filter_memory", FILTER_MEMORY, AT(filter_memory), 0, 0, "uniform or monkey"},
    {"prefix_filter", PREFIX, AT(prefix_filter), 0, 0,
     "none, N (bytes) or sep:0xNN: also a filter over the keys' prefixes"},
    {"compression", COMPRESSION, AT(compression), 0, 0,
     "none, zstd[:LEVEL], zstd-dict[:LEVEL]; by level: none,none,zstd:3 (the last one goes on)"},
    {"compaction", COMPACTION, AT(compaction), 0, 0, "leveled, tiered, lazy or off"},
    {"size_ratio", NUMBER, AT(size_ratio), 2, 64,
     "how many times larger each level is than the one above"},
    {"level0_runs", NUMBER, AT(level0_runs), 1, 1024, "runs in level 0 that start a compaction"},
    {"level0_stop", NUMBER, AT(level0_stop), 2, 4096,
     "runs in level 0 at which writers wait; above level0_runs"},
    {"threads", NUMBER, AT(threads), 0, 64,
     "background threads; 0: work is done inside calls and tamiz_step"},
    {"sync", SYNC, AT(sync), 0, 0, "when the log reaches the disk: none, interval:MS, always"},
    {"max_open_files", NUMBER, AT(max_open_files), 0, 1 << 20,
     "never exceeded, at least 16; 0: by the process's limit"},
    {"audit", NUMBER, AT(audit), 0, UINT32_MAX,
     "one read in so many also looks where filters said no; 0: none"},
    {"ttl", SECONDS, AT(ttl), 0, TTL_MAX,
     "seconds after which what is put is as good as deleted; 0: never"},
    {"idle_merge", NUMBER, AT(idle_merge), 0, 86400000,
     "milliseconds without a write after which runs are merged until few are left; 0: never"},
};
enum { ROWS = sizeof rows / sizeof *rows };

size_t options_row_count(void)
{
    return ROWS;
}

void tamiz_options_init(tamiz_options *options)
{
    if (!options)
        return;
    const tamiz_options defaults = TAMIZ_OPTIONS_INIT;
    *options = defaults;
}

/* ---- text to value ---- */

static bool parse_number(const char *text, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (errno || *end)
        return false;
    *value = v;
    return true;
}

/* "64MiB", "4KiB", "1GiB", "4096", "1.5MiB" is not one. */
static bool parse_size(const char *text, uint64_t *value)
{
    static const struct {
        const char *unit;
        unsigned shift;
    } units[] = {{"", 0},   {"B", 0},    {"K", 10}, {"KiB", 10},
                 {"M", 20}, {"MiB", 20}, {"G", 30}, {"GiB", 30}};
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    for (size_t i = 0; !errno && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0 && (v << units[i].shift) >> units[i].shift == v) {
            *value = v << units[i].shift;
            return true;
        }
    return false;
}

static tamiz_status refuse(const struct row *row, const char *text, const char *want)
{
    return op_refuse(TAMIZ_INVALID_ARGUMENT, "%s=%s: want %s", row->name, text, want);
}

static tamiz_status parse_bounded(const struct row *row, const char *text, uint64_t *value)
{
    char want[96];
    (void)snprintf(want, sizeof want, "%llu..%llu%s", (unsigned long long)row->least,
                   (unsigned long long)row->most,
                   row->type == SIZE ? " bytes, as 65536, 64KiB, 1MiB" : "");
    const bool ok = row->type == SIZE ? parse_size(text, value) : parse_number(text, value);
    if (!ok || *value < row->least || *value > row->most)
        return refuse(row, text, want);
    return TAMIZ_OK;
}

/* Longer names before those they begin with. */
static const struct {
    const char *name;
    tamiz_compression compression;
} packers[] = {{"zstd-dict", TAMIZ_COMPRESSION_ZSTD_DICT}, {"zstd", TAMIZ_COMPRESSION_ZSTD}};
enum { PACKERS = sizeof packers / sizeof *packers };

/* One level's: "none", "zstd", "zstd-dict:9". */
static bool parse_compression(const char *text, tamiz_compression *compression, int *level)
{
    uint64_t strength = 3;
    *compression = TAMIZ_COMPRESSION_NONE;
    *level = (int)strength;
    if (strcmp(text, "none") == 0)
        return true;
    for (size_t i = 0; i < PACKERS; i++) {
        const size_t size = strlen(packers[i].name);
        if (strncmp(text, packers[i].name, size) != 0 || (text[size] && text[size] != ':'))
            continue;
        if (text[size] && !parse_number(text + size + 1, &strength))
            return false;
        *compression = packers[i].compression;
        *level = strength <= ZSTD_MOST ? (int)strength : 0;
        return *level >= 1;
    }
    return false;
}

static tamiz_status set_compression(const struct row *row, const char *text, tamiz_options *o)
{
    static const char want[] =
        "none, zstd[:1..19] or zstd-dict[:1..19], by level as none,none,zstd:3";
    const char *at = text;
    for (int level = 0; level < TAMIZ_LEVELS; level++) {
        char one[16];
        const size_t size = strcspn(at, ",");
        if (size == 0 || size >= sizeof one || (level == TAMIZ_LEVELS - 1 && at[size] == ','))
            return refuse(row, text, want);
        memcpy(one, at, size);
        one[size] = 0;
        if (!parse_compression(one, &o->compression[level], &o->compression_level[level]))
            return refuse(row, text, want);
        if (at[size] == ',')
            at += size + 1; /* else the last one goes on */
    }
    return TAMIZ_OK;
}

/* Index of `text` in `names`, or -1. */
static int name_index(const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    return -1;
}

static const char *const compaction_names[] = {"off", "leveled", "tiered", "lazy"};
static const char *const memory_names[] = {"uniform", "monkey"};

static tamiz_status set_sync(const struct row *row, const char *text, tamiz_options *o)
{
    uint64_t ms = 0;
    if (strcmp(text, "none") == 0)
        o->sync = TAMIZ_SYNC_NONE;
    else if (strcmp(text, "always") == 0)
        o->sync = TAMIZ_SYNC_ALWAYS;
    else if (strncmp(text, "interval:", 9) == 0 && parse_number(text + 9, &ms) && ms >= 1 &&
             ms <= SYNC_INTERVAL_MAX)
        o->sync = TAMIZ_SYNC_INTERVAL;
    else
        return refuse(row, text, "none, always or interval:MS with MS 1..3600000");
    o->sync_interval_ms = (uint32_t)ms;
    return TAMIZ_OK;
}

/* "none", "8", "sep:0x3a". */
static tamiz_status set_prefix(const struct row *row, const char *text, tamiz_options *o)
{
    uint64_t value = 0;
    char *end = NULL;
    if (strcmp(text, "none") == 0) {
        o->prefix_filter = TAMIZ_PREFIX_NONE;
    } else if (strncmp(text, "sep:0x", 6) == 0 && isxdigit((unsigned char)text[6])) {
        value = strtoull(text + 6, &end, 16);
        if (*end || end - text > 8)
            return refuse(row, text, "a separator sep:0x00..sep:0xff");
        o->prefix_filter = TAMIZ_PREFIX_SEPARATOR;
    } else if (parse_number(text, &value) && value >= 1 && value <= PREFIX_BYTES_MAX) {
        o->prefix_filter = TAMIZ_PREFIX_BYTES;
    } else {
        return refuse(row, text, "none, 1..1024 bytes or a separator sep:0x00..sep:0xff");
    }
    o->prefix_filter_value = (uint32_t)value;
    return TAMIZ_OK;
}

static tamiz_status set_name(const struct row *row, const char *text, tamiz_options *o)
{
    const bool compaction = row->type == COMPACTION;
    const int i =
        compaction ? name_index(text, compaction_names, 4) : name_index(text, memory_names, 2);
    if (i < 0)
        return refuse(row, text, compaction ? "leveled, tiered, lazy or off" : "uniform or monkey");
    if (compaction)
        o->compaction = (tamiz_compaction)i;
    else
        o->filter_memory = (tamiz_filter_memory)i;
    return TAMIZ_OK;
}

static tamiz_status set_row(const struct row *row, const char *text, tamiz_options *o)
{
    uint64_t value = 0;
    tamiz_status st = TAMIZ_OK;
    char *field = (char *)o + row->offset;
    switch (row->type) {
    case BOOLEAN:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0 && strcmp(text, "1") != 0 &&
            strcmp(text, "0") != 0)
            return refuse(row, text, "true or false");
        *(bool *)(void *)field = text[0] == 't' || text[0] == '1';
        return TAMIZ_OK;
    case SIZE:
        st = parse_bounded(row, text, &value);
        if (st == TAMIZ_OK)
            *(uint64_t *)(void *)field = value;
        return st;
    case SECONDS:
        st = parse_bounded(row, text, &value);
        if (st == TAMIZ_OK)
            *(uint64_t *)(void *)field = value;
        return st;
    case NUMBER:
        st = parse_bounded(row, text, &value);
        if (st == TAMIZ_OK)
            *(uint32_t *)(void *)field = (uint32_t)value;
        return st;
    case FILTER: return tamiz_filter_policy_parse(text, &o->filter);
    case PREFIX: return set_prefix(row, text, o);
    case COMPRESSION: return set_compression(row, text, o);
    case FILTER_MEMORY:
    case COMPACTION: return set_name(row, text, o);
    case SYNC: return set_sync(row, text, o);
    }
    return TAMIZ_INVALID_ARGUMENT;
}

static const struct row *row_by_name(const char *name, size_t size)
{
    for (int i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == size && memcmp(rows[i].name, name, size) == 0)
            return &rows[i];
    return NULL;
}

/* One "name=value". */
static tamiz_status set_one(tamiz_options *o, const char *text, size_t size)
{
    char one[160];
    if (size >= sizeof one)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "an option of %zu bytes: want name=value", size);
    memcpy(one, text, size);
    one[size] = 0;
    char *equals = strchr(one, '=');
    const size_t name_size = equals ? (size_t)(equals - one) : size;
    const struct row *row = row_by_name(one, name_size);
    if (!row)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "%.*s: no such option; tamiz_options_help has them all", (int)name_size,
                         one);
    if (!equals || !equals[1])
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "%s: want a value, %s=…", row->name, row->name);
    return set_row(row, equals + 1, o);
}

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
        (o->sync_interval_ms < 1 || o->sync_interval_ms > SYNC_INTERVAL_MAX))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "sync=interval:%u: want MS 1..%d",
                         o->sync_interval_ms, SYNC_INTERVAL_MAX);
    return TAMIZ_OK;
}

static tamiz_status check_compression(const tamiz_options *o, int level)
{
    const int strength = o->compression_level[level];
    if ((unsigned)o->compression[level] > TAMIZ_COMPRESSION_ZSTD_DICT)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compression of level %d: %d: no such value",
                         level, (int)o->compression[level]);
    if (o->compression[level] != TAMIZ_COMPRESSION_NONE && (strength < 1 || strength > ZSTD_MOST))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compression of level %d: zstd:%d: want 1..%d",
                         level, strength, ZSTD_MOST);
    return TAMIZ_OK;
}

tamiz_status options_check(const tamiz_options *o)
{
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        const char *field = (const char *)o + row->offset;
        if (row->type != SIZE && row->type != NUMBER && row->type != SECONDS)
            continue;
        const uint64_t value = row->type == NUMBER ? *(const uint32_t *)(const void *)field
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

/* As much of the caller's struct as both sides know. */
static size_t known_size(const tamiz_options *given)
{
    return given->struct_size < sizeof *given ? given->struct_size : sizeof *given;
}

/* The caller's fields over the defaults; env as given. */
static tamiz_status merge(const tamiz_options *given, tamiz_options *taken)
{
    tamiz_options_init(taken);
    if (given && given->struct_size < sizeof given->struct_size)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "options: struct_size=%zu: start from TAMIZ_OPTIONS_INIT",
                         given->struct_size);
    if (given)
        memcpy(taken, given, known_size(given));
    taken->struct_size = sizeof *taken;
    return TAMIZ_OK;
}

tamiz_status tamiz_options_set(tamiz_options *options, const char *text)
{
    if (!options || !text)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "options or text: NULL");
    tamiz_options changed;
    tamiz_status st = merge(options, &changed);
    if (st != TAMIZ_OK)
        return st;
    for (const char *at = text; *at;) {
        const size_t size = strcspn(at, " \t\r\n");
        st = size ? set_one(&changed, at, size) : TAMIZ_OK;
        if (st != TAMIZ_OK)
            return st;
        at += size + (at[size] != 0);
    }
    st = options_check(&changed);
    if (st == TAMIZ_OK) {
        changed.struct_size = options->struct_size;
        memcpy(options, &changed, known_size(options));
    }
    return st;
}

/* ---- value to text ---- */

static void print_size(struct buf *out, uint64_t v)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    int unit = 0;
    while (unit < 3 && v && v % 1024 == 0) {
        v /= 1024;
        unit++;
    }
    buf_printf(out, "%llu%s", (unsigned long long)v, units[unit]);
}

static void print_filter(struct buf *out, const tamiz_filter_policy *p)
{
    buf_text(out, p->kind);
    if (p->fpr > 0)
        buf_printf(out, ":fpr=%.17g", p->fpr);
    else if (p->bits_per_key > 0)
        buf_printf(out, ":%.17g", p->bits_per_key);
}

static void print_compression(struct buf *out, const tamiz_options *o)
{
    int last = TAMIZ_LEVELS - 1; /* equal ones at the end are said once */
    while (last > 0 && o->compression[last] == o->compression[last - 1] &&
           o->compression_level[last] == o->compression_level[last - 1])
        last--;
    for (int i = 0; i <= last; i++) {
        buf_text(out, i ? "," : "");
        if (o->compression[i] == TAMIZ_COMPRESSION_NONE)
            buf_text(out, "none");
        else
            buf_printf(out, "%s:%d",
                       o->compression[i] == TAMIZ_COMPRESSION_ZSTD ? "zstd" : "zstd-dict",
                       o->compression_level[i]);
    }
}

static void print_prefix(struct buf *out, const tamiz_options *o)
{
    if (o->prefix_filter == TAMIZ_PREFIX_NONE)
        buf_text(out, "none");
    else if (o->prefix_filter == TAMIZ_PREFIX_BYTES)
        buf_printf(out, "%u", o->prefix_filter_value);
    else
        buf_printf(out, "sep:0x%02x", o->prefix_filter_value);
}

static void print_value(struct buf *out, const struct row *row, const tamiz_options *o)
{
    const char *field = (const char *)o + row->offset;
    switch (row->type) {
    case BOOLEAN: buf_text(out, *(const bool *)(const void *)field ? "true" : "false"); break;
    case SIZE: print_size(out, *(const uint64_t *)(const void *)field); break;
    case SECONDS:
        buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)(const void *)field);
        break;
    case NUMBER: buf_printf(out, "%u", *(const uint32_t *)(const void *)field); break;
    case FILTER: print_filter(out, &o->filter); break;
    case FILTER_MEMORY: buf_text(out, memory_names[o->filter_memory]); break;
    case PREFIX: print_prefix(out, o); break;
    case COMPRESSION: print_compression(out, o); break;
    case COMPACTION: buf_text(out, compaction_names[o->compaction]); break;
    case SYNC:
        if (o->sync == TAMIZ_SYNC_INTERVAL)
            buf_printf(out, "interval:%u", o->sync_interval_ms);
        else
            buf_text(out, o->sync == TAMIZ_SYNC_ALWAYS ? "always" : "none");
        break;
    }
}

void options_print(struct buf *out, const tamiz_options *o)
{
    for (int i = 0; i < ROWS; i++) {
        buf_printf(out, "%s=", rows[i].name);
        print_value(out, &rows[i], o);
        buf_text(out, "\n");
    }
}

static tamiz_status hand_out(struct buf *out, char **text)
{
    *text = buf_handout(out);
    buf_free(out);
    return *text ? TAMIZ_OK : op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
}

tamiz_status tamiz_options_text(const tamiz_options *options, char **text)
{
    tamiz_options taken;
    if (text)
        *text = NULL;
    if (!options || !text)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "options or text: NULL");
    const tamiz_status st = options_take(options, &taken);
    if (st != TAMIZ_OK)
        return st;
    struct buf out = buf_init(&alloc_libc);
    options_print(&out, &taken);
    return hand_out(&out, text);
}

tamiz_status tamiz_options_help(char **text)
{
    if (!text)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "text: NULL");
    const tamiz_options defaults = TAMIZ_OPTIONS_INIT;
    struct buf out = buf_init(&alloc_libc);
    for (int i = 0; i < ROWS; i++) {
        struct buf value = buf_init(&alloc_libc);
        print_value(&value, &rows[i], &defaults);
        buf_u8(&value, 0);
        buf_printf(&out, "%-18s %-14s %s", rows[i].name,
                   value.failed ? "" : (const char *)value.data, rows[i].help);
        if (rows[i].type == SIZE) {
            buf_text(&out, "; ");
            print_size(&out, rows[i].least);
            buf_text(&out, "..");
            print_size(&out, rows[i].most);
        } else if (rows[i].type == NUMBER || rows[i].type == SECONDS) {
            buf_printf(&out, "; %llu..%llu", (unsigned long long)rows[i].least,
                       (unsigned long long)rows[i].most);
        }
        buf_text(&out, "\n");
        out.failed |= value.failed;
        buf_free(&value);
    }
    return hand_out(&out, text);
}

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
    const tamiz_status st = merge(options, taken);
    if (st != TAMIZ_OK)
        return st;
    if (!taken->env)
        taken->env = tamiz_env_posix();
    if (!env_is_complete(taken->env))
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "env: a function that must be there is NULL, or beyond its struct_size");
    return options_check(taken);
}
