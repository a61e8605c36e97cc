/* SPDX-License-Identifier: MIT
 *
 * Options as text: "name=value" read, and printed so that reading it gives the same.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "db/options_table.h"

static const char *const compaction_names[] = {"off", "leveled", "tiered", "lazy"};
static const char *const memory_names[] = {"uniform", "monkey"};

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

static tamiz_status refuse(const struct option_row *row, const char *text, const char *want)
{
    return op_refuse(TAMIZ_INVALID_ARGUMENT, "%s=%s: want %s", row->name, text, want);
}

static tamiz_status parse_bounded(const struct option_row *row, const char *text, uint64_t *value)
{
    char want[96];
    (void)snprintf(want, sizeof want, "%llu..%llu%s", (unsigned long long)row->least,
                   (unsigned long long)row->most,
                   row->type == OPTION_SIZE ? " bytes, as 65536, 64KiB, 1MiB" : "");
    const bool ok = row->type == OPTION_SIZE ? parse_size(text, value) : parse_number(text, value);
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
        *level = strength <= ZSTD_LEVEL_MAX ? (int)strength : 0;
        return *level >= 1;
    }
    return false;
}

static tamiz_status set_compression(const struct option_row *row, const char *text,
                                    tamiz_options *o)
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

static tamiz_status set_sync(const struct option_row *row, const char *text, tamiz_options *o)
{
    uint64_t ms = 0;
    if (strcmp(text, "none") == 0)
        o->sync = TAMIZ_SYNC_NONE;
    else if (strcmp(text, "always") == 0)
        o->sync = TAMIZ_SYNC_ALWAYS;
    else if (strncmp(text, "interval:", 9) == 0 && parse_number(text + 9, &ms) && ms >= 1 &&
             ms <= SYNC_INTERVAL_MS_MAX)
        o->sync = TAMIZ_SYNC_INTERVAL;
    else
        return refuse(row, text, "none, always or interval:MS with MS 1..3600000");
    o->sync_interval_ms = (uint32_t)ms;
    return TAMIZ_OK;
}

/* "none", "8", "sep:0x3a". */
static tamiz_status set_prefix(const struct option_row *row, const char *text, tamiz_options *o)
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

static tamiz_status set_name(const struct option_row *row, const char *text, tamiz_options *o)
{
    const bool compaction = row->type == OPTION_COMPACTION;
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

static tamiz_status set_row(const struct option_row *row, const char *text, tamiz_options *o)
{
    uint64_t value = 0;
    tamiz_status st = TAMIZ_OK;
    char *field = (char *)o + row->offset;
    switch (row->type) {
    case OPTION_BOOLEAN:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0 && strcmp(text, "1") != 0 &&
            strcmp(text, "0") != 0)
            return refuse(row, text, "true or false");
        *(bool *)(void *)field = text[0] == 't' || text[0] == '1';
        return TAMIZ_OK;
    case OPTION_SIZE:
        st = parse_bounded(row, text, &value);
        if (st == TAMIZ_OK)
            *(uint64_t *)(void *)field = value;
        return st;
    case OPTION_SECONDS:
        st = parse_bounded(row, text, &value);
        if (st == TAMIZ_OK)
            *(uint64_t *)(void *)field = value;
        return st;
    case OPTION_NUMBER:
        st = parse_bounded(row, text, &value);
        if (st == TAMIZ_OK)
            *(uint32_t *)(void *)field = (uint32_t)value;
        return st;
    case OPTION_FILTER: return tamiz_filter_policy_parse(text, &o->filter);
    case OPTION_PREFIX: return set_prefix(row, text, o);
    case OPTION_COMPRESSION: return set_compression(row, text, o);
    case OPTION_FILTER_MEMORY:
    case OPTION_COMPACTION: return set_name(row, text, o);
    case OPTION_SYNC: return set_sync(row, text, o);
    }
    return TAMIZ_INVALID_ARGUMENT;
}

static const struct option_row *row_by_name(const char *name, size_t size)
{
    for (int i = 0; i < OPTION_ROWS; i++)
        if (strlen(option_rows[i].name) == size && memcmp(option_rows[i].name, name, size) == 0)
            return &option_rows[i];
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
    const struct option_row *row = row_by_name(one, name_size);
    if (!row)
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "%.*s: no such option; tamiz_options_help has them all", (int)name_size,
                         one);
    if (!equals || !equals[1])
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "%s: want a value, %s=…", row->name, row->name);
    return set_row(row, equals + 1, o);
}

tamiz_status tamiz_options_set(tamiz_options *options, const char *text)
{
    if (!options || !text)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "options or text: NULL");
    tamiz_options changed;
    tamiz_status st = options_merge(options, &changed);
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
        memcpy(options, &changed, options_known_size(options));
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

static void print_value(struct buf *out, const struct option_row *row, const tamiz_options *o)
{
    const char *field = (const char *)o + row->offset;
    switch (row->type) {
    case OPTION_BOOLEAN:
        buf_text(out, *(const bool *)(const void *)field ? "true" : "false");
        break;
    case OPTION_SIZE: print_size(out, *(const uint64_t *)(const void *)field); break;
    case OPTION_SECONDS:
        buf_printf(out, "%llu", (unsigned long long)*(const uint64_t *)(const void *)field);
        break;
    case OPTION_NUMBER: buf_printf(out, "%u", *(const uint32_t *)(const void *)field); break;
    case OPTION_FILTER: print_filter(out, &o->filter); break;
    case OPTION_FILTER_MEMORY: buf_text(out, memory_names[o->filter_memory]); break;
    case OPTION_PREFIX: print_prefix(out, o); break;
    case OPTION_COMPRESSION: print_compression(out, o); break;
    case OPTION_COMPACTION: buf_text(out, compaction_names[o->compaction]); break;
    case OPTION_SYNC:
        if (o->sync == TAMIZ_SYNC_INTERVAL)
            buf_printf(out, "interval:%u", o->sync_interval_ms);
        else
            buf_text(out, o->sync == TAMIZ_SYNC_ALWAYS ? "always" : "none");
        break;
    }
}

void options_print(struct buf *out, const tamiz_options *o)
{
    for (int i = 0; i < OPTION_ROWS; i++) {
        buf_printf(out, "%s=", option_rows[i].name);
        print_value(out, &option_rows[i], o);
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
    for (int i = 0; i < OPTION_ROWS; i++) {
        struct buf value = buf_init(&alloc_libc);
        print_value(&value, &option_rows[i], &defaults);
        buf_u8(&value, 0);
        buf_printf(&out, "%-18s %-14s %s", option_rows[i].name,
                   value.failed ? "" : (const char *)value.data, option_rows[i].help);
        if (option_rows[i].type == OPTION_SIZE) {
            buf_text(&out, "; ");
            print_size(&out, option_rows[i].least);
            buf_text(&out, "..");
            print_size(&out, option_rows[i].most);
        } else if (option_rows[i].type == OPTION_NUMBER || option_rows[i].type == OPTION_SECONDS) {
            buf_printf(&out, "; %llu..%llu", (unsigned long long)option_rows[i].least,
                       (unsigned long long)option_rows[i].most);
        }
        buf_text(&out, "\n");
        out.failed |= value.failed;
        buf_free(&value);
    }
    return hand_out(&out, text);
}
