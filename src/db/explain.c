/* SPDX-License-Identifier: MIT
 *
 * Reads told as a story: a sink for the same steps that statistics are made of. Each step is a
 * line; the last sentence says what the device reads were for, one by one:
 *
 *     present: 2 device reads: one found the value in 000042 (level 3); one was a false positive of
 *     000017 (level 1, blocked 10 bits, expected 0.97 %).
 */
#define _POSIX_C_SOURCE 200809L /* strnlen */
#include <stdio.h>

#include "base/buf.h"
#include "db/store.h"

typedef unsigned long long ull; /* for printing */

/* A block that was looked into, and what came of it. */
struct look {
    uint64_t table;
    int level;
    bool from_device;
    tamiz_step_kind outcome; /* FOUND, TOMBSTONE, ABSENT_IN_BLOCK; else none: an ordered read */
    bool too_new;            /* it has only versions newer than the read sees */
    char filter[16];
    double bits, expected_fpr;
};

/* The tale as it grows, and what its last sentence needs. */
struct tale {
    struct buf out;
    bool json;
    uint64_t steps, device_reads, wasted, negatives;
    uint64_t ranges_asked, ranges_denied; /* of filters over prefixes */
    struct buf looks;                     /* struct look each */
    bool asked;                           /* filters were */
    tamiz_step_kind last;                 /* before the one at hand */
    const void *told_key;                 /* of many: whose heading stands above */
    size_t told_key_size;
};

/* ---- lines ---- */

static void table_name(struct buf *out, const tamiz_step_info *step)
{
    if (step->table)
        buf_printf(out, " [%06llu.sst, level %d]", (ull)step->table, step->level);
    else if (step->level >= 0)
        buf_printf(out, " [level %d]", step->level);
}

static void tell_text(struct tale *t, const tamiz_step_info *step)
{
    struct buf *out = &t->out;
    buf_text(out, step->key ? "  " : "");
    buf_text(out, tamiz_step_text(step->kind));
    table_name(out, step);
    if (step->filter[0])
        buf_printf(out, " (%s %.3g bits, expected rate %.4g%%)", step->filter,
                   step->filter_bits_per_key, step->expected_fpr * 100);
    if (step->kind == TAMIZ_STEP_INDEX && step->size)
        buf_printf(out, ": bytes %llu..%llu", (ull)step->offset, (ull)(step->offset + step->size));
    if (step->kind == TAMIZ_STEP_BLOCK_DEVICE)
        buf_printf(out, ": %llu bytes", (ull)step->size);
    if (step->nanoseconds)
        buf_printf(out, " in %.1f us", (double)step->nanoseconds / 1000);
    if (step->kind == TAMIZ_STEP_FOUND)
        buf_printf(out, ": a value of %llu bytes", (ull)step->size);
    if (step->text[0])
        buf_printf(out, ": %s", step->text);
    buf_text(out, "\n");
}

static void json_bytes(struct buf *out, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    buf_text(out, "\"");
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == '"' || bytes[i] == '\\' || bytes[i] < 0x20 || bytes[i] > 0x7e)
            buf_printf(out, "\\u%04x", bytes[i]);
        else
            buf_append(out, &bytes[i], 1);
    buf_text(out, "\"");
}

static void tell_json(struct tale *t, const tamiz_step_info *step)
{
    static const char *const names[TAMIZ_STEP_COUNT] = {
        [TAMIZ_STEP_MEMTABLE] = "memtable",
        [TAMIZ_STEP_MEMTABLE_FILTER] = "memtable_filter_negative",
        [TAMIZ_STEP_OUTSIDE_RANGE] = "outside_range",
        [TAMIZ_STEP_FILTER_NEGATIVE] = "filter_negative",
        [TAMIZ_STEP_FILTER_MAYBE] = "filter_maybe",
        [TAMIZ_STEP_NO_FILTER] = "no_filter",
        [TAMIZ_STEP_INDEX] = "index",
        [TAMIZ_STEP_BLOCK_CACHED] = "block_cached",
        [TAMIZ_STEP_BLOCK_DEVICE] = "block_device",
        [TAMIZ_STEP_FOUND] = "found",
        [TAMIZ_STEP_TOMBSTONE] = "tombstone",
        [TAMIZ_STEP_ABSENT_IN_BLOCK] = "absent_in_block",
        [TAMIZ_STEP_RANGE_TOMBSTONE] = "range_tombstone",
        [TAMIZ_STEP_PREFIX_NEGATIVE] = "prefix_negative",
        [TAMIZ_STEP_PREFIX_MAYBE] = "prefix_maybe",
        [TAMIZ_STEP_NO_PREFIX_FILTER] = "no_prefix_filter",
        [TAMIZ_STEP_EXPIRED] = "expired",
    };
    struct buf *out = &t->out;
    buf_printf(out,
               "%s{\"step\":\"%s\",\"level\":%d,\"table\":%llu,\"filter\":\"%s\","
               "\"filter_bits_per_key\":%.4g,\"expected_fpr\":%.6g,\"offset\":%llu,\"size\":%llu,"
               "\"nanoseconds\":%llu,\"text\":",
               t->steps ? "," : "", names[step->kind], step->level, (ull)step->table, step->filter,
               step->filter_bits_per_key, step->expected_fpr, (ull)step->offset, (ull)step->size,
               (ull)step->nanoseconds);
    json_bytes(out, step->text, strlen(step->text));
    if (step->key) {
        buf_text(out, ",\"key\":");
        json_bytes(out, step->key, step->key_size);
    }
    buf_text(out, "}");
}

/* Of many keys: a line above the steps of each. */
static void tell_whose(struct tale *t, const tamiz_step_info *step)
{
    char shown[160];
    if (t->json || !step->key || (t->told_key == step->key && t->told_key_size == step->key_size))
        return;
    t->told_key = step->key;
    t->told_key_size = step->key_size;
    buf_printf(&t->out, "%s\n",
               slice_print(slice_of(step->key, step->key_size), shown, sizeof shown));
}

/* ---- what the blocks were for ---- */

static void take_look(struct tale *t, const tamiz_step_info *step)
{
    struct look look, *next = &look;
    switch (step->kind) {
    case TAMIZ_STEP_BLOCK_CACHED:
    case TAMIZ_STEP_BLOCK_DEVICE:
        *next = (struct look){.table = step->table,
                              .level = step->level,
                              .from_device = step->kind == TAMIZ_STEP_BLOCK_DEVICE,
                              .outcome = TAMIZ_STEP_COUNT,
                              .bits = step->filter_bits_per_key,
                              .expected_fpr = step->expected_fpr};
        memcpy(next->filter, step->filter,
               strnlen(step->filter, sizeof next->filter - 1)); /* the rest is 0 */
        buf_append(&t->looks, next, sizeof *next);
        break;
    case TAMIZ_STEP_FOUND:
    case TAMIZ_STEP_TOMBSTONE:
    case TAMIZ_STEP_ABSENT_IN_BLOCK:
        if (step->level < 0 || t->looks.size < sizeof *next)
            break;
        memcpy(next, t->looks.data + t->looks.size - sizeof *next, sizeof *next);
        next->outcome = step->kind;
        next->too_new = step->kind == TAMIZ_STEP_ABSENT_IN_BLOCK && step->text[0];
        memcpy(t->looks.data + t->looks.size - sizeof *next, next, sizeof *next);
        break;
    case TAMIZ_STEP_RANGE_TOMBSTONE: /* of the same table: what its block had is hidden */
        if (step->level < 0 || t->looks.size < sizeof *next)
            break;
        memcpy(next, t->looks.data + t->looks.size - sizeof *next, sizeof *next);
        if (next->table == step->table && next->outcome == TAMIZ_STEP_FOUND)
            next->outcome = TAMIZ_STEP_RANGE_TOMBSTONE;
        memcpy(t->looks.data + t->looks.size - sizeof *next, next, sizeof *next);
        break;
    case TAMIZ_STEP_EXPIRED: /* of the block just looked into, or of a memtable */
        if (t->last != TAMIZ_STEP_FOUND || t->looks.size < sizeof *next)
            break;
        memcpy(next, t->looks.data + t->looks.size - sizeof *next, sizeof *next);
        next->outcome = step->kind;
        memcpy(t->looks.data + t->looks.size - sizeof *next, next, sizeof *next);
        break;
    case TAMIZ_STEP_MEMTABLE:
    case TAMIZ_STEP_MEMTABLE_FILTER:
    case TAMIZ_STEP_OUTSIDE_RANGE:
    case TAMIZ_STEP_FILTER_NEGATIVE:
    case TAMIZ_STEP_FILTER_MAYBE:
    case TAMIZ_STEP_NO_FILTER:
    case TAMIZ_STEP_INDEX:
    case TAMIZ_STEP_PREFIX_NEGATIVE:
    case TAMIZ_STEP_PREFIX_MAYBE:
    case TAMIZ_STEP_NO_PREFIX_FILTER:
    case TAMIZ_STEP_COUNT: break;
    }
}

static void tell(void *ctx, const tamiz_step_info *step)
{
    struct tale *t = ctx;
    tell_whose(t, step);
    if (t->json)
        tell_json(t, step);
    else
        tell_text(t, step);
    take_look(t, step);
    t->last = step->kind;
    t->steps++;
    t->device_reads += step->kind == TAMIZ_STEP_BLOCK_DEVICE;
    t->asked |= step->kind == TAMIZ_STEP_FILTER_NEGATIVE || step->kind == TAMIZ_STEP_FILTER_MAYBE;
    t->negatives += step->kind == TAMIZ_STEP_FILTER_NEGATIVE;
    t->wasted += step->kind == TAMIZ_STEP_ABSENT_IN_BLOCK;
    t->ranges_denied += step->kind == TAMIZ_STEP_PREFIX_NEGATIVE;
    t->ranges_asked +=
        step->kind == TAMIZ_STEP_PREFIX_NEGATIVE || step->kind == TAMIZ_STEP_PREFIX_MAYBE;
}

/* ---- the last sentence ---- */

static void look_words(struct buf *out, const struct tale *t, const struct look *look)
{
    if (look->outcome == TAMIZ_STEP_FOUND)
        buf_text(out, "found the value in");
    else if (look->outcome == TAMIZ_STEP_TOMBSTONE)
        buf_text(out, "found the deletion in");
    else if (look->outcome == TAMIZ_STEP_EXPIRED)
        buf_text(out, "found a value that has expired in");
    else if (look->outcome == TAMIZ_STEP_RANGE_TOMBSTONE)
        buf_text(out, "found a value that was deleted with its range in");
    else if (look->outcome != TAMIZ_STEP_ABSENT_IN_BLOCK)
        buf_text(out, "was of");
    else if (look->too_new)
        buf_text(out, "found only newer versions in");
    else
        buf_text(out, t->asked && look->filter[0] ? "was a false positive of" : "found nothing in");
    buf_printf(out, " %06llu (level %d", (ull)look->table, look->level);
    if (look->outcome == TAMIZ_STEP_ABSENT_IN_BLOCK && !look->too_new) {
        if (t->asked && look->filter[0])
            buf_printf(out, ", %s %.3g bits, expected %.3g %%", look->filter, look->bits,
                       look->expected_fpr * 100);
        else
            buf_text(out, look->filter[0] ? ", whose filter was not to be asked"
                                          : ", which has no filter to ask");
    }
    buf_text(out, ")");
}

/* "; one …" for each look that is of the device, or not. At most so many one by one. */
enum { LOOKS_TOLD = 12 };
static void looks_words(struct buf *out, const struct tale *t, bool from_device)
{
    const uint64_t all =
        from_device ? t->device_reads : t->looks.size / sizeof(struct look) - t->device_reads;
    uint64_t told = 0;
    for (size_t at = 0; at < t->looks.size; at += sizeof(struct look)) {
        struct look look;
        memcpy(&look, t->looks.data + at, sizeof look);
        if (look.from_device != from_device || told++ >= LOOKS_TOLD)
            continue;
        buf_text(out, all == 1 ? ": it " : told == 1 ? ": one " : "; one ");
        look_words(out, t, &look);
    }
    if (told > LOOKS_TOLD)
        buf_printf(out, "; and %llu more", (ull)(told - LOOKS_TOLD));
}

static void sentence(struct buf *out, const struct tale *t)
{
    const uint64_t cached = t->looks.size / sizeof(struct look) - t->device_reads;
    buf_printf(out, "%llu device read%s", (ull)t->device_reads, t->device_reads == 1 ? "" : "s");
    looks_words(out, t, true);
    if (cached) {
        buf_printf(out, ". %llu block%s from the cache", (ull)cached, cached == 1 ? "" : "s");
        looks_words(out, t, false);
    }
    if (t->negatives)
        buf_printf(out, ". %llu table%s not looked into, for the filter said no", (ull)t->negatives,
                   t->negatives == 1 ? " was" : "s were");
    buf_text(out, ".");
}

/* `what` stands in front: "present", "3 of 5 present". */
static void conclude(struct tale *t, const char *what, const char *json)
{
    struct buf words = buf_init(t->out.alloc);
    sentence(&words, t);
    buf_append(&words, "", 1);
    const char *said = words.failed ? "" : (const char *)words.data;
    if (t->json) {
        buf_printf(&t->out, "],%s,\"device_reads\":%llu,\"wasted_looks\":%llu,\"sentence\":", json,
                   (ull)t->device_reads, (ull)t->wasted);
        json_bytes(&t->out, said, strlen(said));
        buf_text(&t->out, "}\n");
    } else {
        buf_printf(&t->out, "%s: %s\n", what, said);
    }
    t->out.failed |= words.failed;
    buf_free(&words);
}

/* ---- one story ---- */

static tamiz_status tale_begin(struct tale *t, tamiz *db, const tamiz_read_options *options,
                               bool json, char **text, tamiz_trace *trace, tamiz_read_options *told)
{
    if (!text)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "text: NULL where the story should go");
    *text = NULL;
    const tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    *told = (tamiz_read_options)TAMIZ_READ_OPTIONS_INIT;
    if (options && options->struct_size >= sizeof options->struct_size)
        memcpy(told, options,
               options->struct_size < sizeof *told ? options->struct_size : sizeof *told);
    told->struct_size = sizeof *told;
    *t = (struct tale){
        .out = buf_init(&db->store->alloc), .looks = buf_init(&db->store->alloc), .json = json};
    *trace = (tamiz_trace){tell, t};
    told->trace = trace;
    buf_text(&t->out, json ? "{\"steps\":[" : "");
    return TAMIZ_OK;
}

/* `st`: of the read. */
static tamiz_status tale_end(struct tale *t, tamiz_status st, char **text)
{
    if (st >= 0) {
        *text = t->looks.failed ? NULL : buf_handout(&t->out);
        st = *text ? TAMIZ_OK : op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    }
    buf_free(&t->looks);
    buf_free(&t->out);
    return st;
}

static tamiz_status explain(tamiz *db, const void *key, size_t key_size,
                            const tamiz_read_options *options, bool json, char **text)
{
    struct tale t;
    tamiz_trace trace;
    tamiz_read_options told;
    size_t value_size = 0;
    char members[96];
    tamiz_status st = tale_begin(&t, db, options, json, text, &trace, &told);
    if (st != TAMIZ_OK)
        return st;
    st = tamiz_get_into(db, key, key_size, NULL, 0, &value_size, &told);
    (void)snprintf(members, sizeof members, "\"found\":%s,\"value_size\":%zu",
                   st == TAMIZ_OK ? "true" : "false", value_size);
    if (st >= 0)
        conclude(&t, st == TAMIZ_OK ? "present" : "absent", members);
    return tale_end(&t, st, text);
}

tamiz_status tamiz_explain(tamiz *db, const void *key, size_t key_size,
                           const tamiz_read_options *options, char **text)
{
    return explain(db, key, key_size, options, false, text);
}

tamiz_status tamiz_explain_json(tamiz *db, const void *key, size_t key_size,
                                const tamiz_read_options *options, char **json)
{
    return explain(db, key, key_size, options, true, json);
}

/* ---- many ---- */

/* What a multi_get fills in. */
struct answers {
    void **values;
    size_t *sizes;
    tamiz_status *statuses;
};

static tamiz_status many_run(tamiz *db, size_t n, const void *const keys[],
                             const size_t key_sizes[], const tamiz_read_options *told,
                             struct answers *a, size_t *present)
{
    const struct alloc *alloc = &db->store->alloc;
    a->values = mem_new_array(alloc, n, sizeof *a->values);
    a->sizes = mem_new_array(alloc, n, sizeof *a->sizes);
    a->statuses = mem_new_array(alloc, n, sizeof *a->statuses);
    tamiz_status st =
        a->values && a->sizes && a->statuses
            ? tamiz_multi_get(db, n, keys, key_sizes, a->values, a->sizes, a->statuses, told)
            : op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    for (size_t i = 0; a->values && a->statuses && i < n; i++) {
        *present += a->values[i] != NULL;
        tamiz_free(a->values[i]);
    }
    mem_free(alloc, a->values, n * sizeof *a->values);
    mem_free(alloc, a->sizes, n * sizeof *a->sizes);
    mem_free(alloc, a->statuses, n * sizeof *a->statuses);
    return st;
}

static tamiz_status explain_many(tamiz *db, size_t n, const void *const keys[],
                                 const size_t key_sizes[], const tamiz_read_options *options,
                                 bool json, char **text)
{
    struct tale t;
    tamiz_trace trace;
    tamiz_read_options told;
    struct answers answers = {0};
    size_t present = 0;
    char what[64], members[64];
    tamiz_status st = tale_begin(&t, db, options, json, text, &trace, &told);
    if (st != TAMIZ_OK)
        return st;
    st = many_run(db, n, keys, key_sizes, &told, &answers, &present);
    (void)snprintf(what, sizeof what, "%zu of %zu present", present, n);
    (void)snprintf(members, sizeof members, "\"keys\":%zu,\"found\":%zu", n, present);
    if (st >= 0)
        conclude(&t, what, members);
    return tale_end(&t, st, text);
}

tamiz_status tamiz_explain_many(tamiz *db, size_t n, const void *const keys[],
                                const size_t key_sizes[], const tamiz_read_options *options,
                                char **text)
{
    return explain_many(db, n, keys, key_sizes, options, false, text);
}

tamiz_status tamiz_explain_many_json(tamiz *db, size_t n, const void *const keys[],
                                     const size_t key_sizes[], const tamiz_read_options *options,
                                     char **json)
{
    return explain_many(db, n, keys, key_sizes, options, true, json);
}

/* ---- a range ---- */

static tamiz_status seek_run(tamiz *db, const void *key, size_t key_size, uint64_t limit,
                             const tamiz_read_options *told, uint64_t *entries, uint64_t *touched)
{
    tamiz_iter *it;
    tamiz_status st = tamiz_iter_open(db, told, &it);
    if (st != TAMIZ_OK)
        return st;
    tamiz_iter_seek(it, key, key_size);
    *touched = tamiz_iter_steps(it);
    while (tamiz_iter_valid(it) && ++*entries < limit) {
        tamiz_iter_next(it);
        *touched += tamiz_iter_steps(it);
    }
    st = tamiz_iter_status(it);
    tamiz_iter_close(it);
    return st;
}

static tamiz_status explain_seek(tamiz *db, const void *key, size_t key_size, uint64_t limit,
                                 const tamiz_read_options *options, bool json, char **text)
{
    struct tale t;
    tamiz_trace trace;
    tamiz_read_options told;
    uint64_t entries = 0, touched = 0;
    char what[192], members[160], asked[80] = "a range asks no filter";
    tamiz_status st = tale_begin(&t, db, options, json, text, &trace, &told);
    if (st != TAMIZ_OK)
        return st;
    st = seek_run(db, key, key_size, limit, &told, &entries, &touched);
    if (t.ranges_asked)
        (void)snprintf(asked, sizeof asked, "%llu of %llu prefix filters said no",
                       (ull)t.ranges_denied, (ull)t.ranges_asked);
    (void)snprintf(what, sizeof what, "%llu entr%s in order, %llu touched (%s)", (ull)entries,
                   entries == 1 ? "y" : "ies", (ull)touched, asked);
    (void)snprintf(members, sizeof members,
                   "\"entries\":%llu,\"touched\":%llu,\"prefix_probes\":%llu,"
                   "\"prefix_negatives\":%llu",
                   (ull)entries, (ull)touched, (ull)t.ranges_asked, (ull)t.ranges_denied);
    if (st >= 0)
        conclude(&t, what, members);
    return tale_end(&t, st, text);
}

tamiz_status tamiz_explain_seek(tamiz *db, const void *key, size_t key_size, uint64_t limit,
                                const tamiz_read_options *options, char **text)
{
    return explain_seek(db, key, key_size, limit, options, false, text);
}

tamiz_status tamiz_explain_seek_json(tamiz *db, const void *key, size_t key_size, uint64_t limit,
                                     const tamiz_read_options *options, char **json)
{
    return explain_seek(db, key, key_size, limit, options, true, json);
}
