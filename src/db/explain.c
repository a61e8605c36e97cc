/* SPDX-License-Identifier: MIT
 *
 * One get, told as a story: a sink for the same steps that statistics are made of.
 */
#include "base/buf.h"
#include "db/store.h"

/* The tale as it grows, and what its last sentence needs. */
struct tale {
    struct buf out;
    bool json;
    uint64_t steps, device_reads, wasted;
};

static void table_name(struct buf *out, const tamiz_step_info *step)
{
    if (step->table)
        buf_printf(out, " [%06llu.sst, level %d]", (unsigned long long)step->table, step->level);
    else if (step->level >= 0)
        buf_printf(out, " [level %d]", step->level);
}

static void tell_text(struct tale *t, const tamiz_step_info *step)
{
    struct buf *out = &t->out;
    buf_text(out, tamiz_step_text(step->kind));
    table_name(out, step);
    if (step->filter[0])
        buf_printf(out, " (%s, expected rate %.4g%%)", step->filter, step->expected_fpr * 100);
    if (step->kind == TAMIZ_STEP_INDEX && step->size)
        buf_printf(out, ": bytes %llu..%llu", (unsigned long long)step->offset,
                   (unsigned long long)(step->offset + step->size));
    if (step->kind == TAMIZ_STEP_BLOCK_DEVICE)
        buf_printf(out, ": %llu bytes in %.1f us", (unsigned long long)step->size,
                   (double)step->nanoseconds / 1000);
    if (step->kind == TAMIZ_STEP_FOUND)
        buf_printf(out, ": a value of %llu bytes", (unsigned long long)step->size);
    if (step->text[0])
        buf_printf(out, ": %s", step->text);
    buf_text(out, "\n");
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
    };
    struct buf *out = &t->out;
    buf_printf(
        out,
        "%s{\"step\":\"%s\",\"level\":%d,\"table\":%llu,\"filter\":\"%s\",\"expected_fpr\":%.6g,"
        "\"offset\":%llu,\"size\":%llu,\"nanoseconds\":%llu,\"text\":\"",
        t->steps ? "," : "", names[step->kind], step->level, (unsigned long long)step->table,
        step->filter, step->expected_fpr, (unsigned long long)step->offset,
        (unsigned long long)step->size, (unsigned long long)step->nanoseconds);
    for (const char *c = step->text; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < 0x20)
            buf_printf(out, "\\u%04x", (unsigned char)*c);
        else
            buf_append(out, c, 1);
    buf_text(out, "\"}");
}

static void tell(void *ctx, const tamiz_step_info *step)
{
    struct tale *t = ctx;
    if (t->json)
        tell_json(t, step);
    else
        tell_text(t, step);
    t->steps++;
    t->device_reads += step->kind == TAMIZ_STEP_BLOCK_DEVICE;
    t->wasted += step->kind == TAMIZ_STEP_ABSENT_IN_BLOCK;
}

static void conclude(struct tale *t, tamiz_status st, size_t value_size)
{
    struct buf *out = &t->out;
    const unsigned long long reads = (unsigned long long)t->device_reads,
                             wasted = (unsigned long long)t->wasted;
    if (t->json) {
        buf_printf(
            out, "],\"found\":%s,\"value_size\":%zu,\"device_reads\":%llu,\"wasted_looks\":%llu}\n",
            st == TAMIZ_OK ? "true" : "false", value_size, reads, wasted);
        return;
    }
    buf_printf(out, "%s: %llu device read%s", st == TAMIZ_OK ? "present" : "absent", reads,
               reads == 1 ? "" : "s");
    if (wasted)
        buf_printf(out, "; %llu block%s looked into for nothing", wasted,
                   wasted == 1 ? " was" : "s were");
    buf_text(out, ".\n");
}

static tamiz_status explain(tamiz *db, const void *key, size_t key_size,
                            const tamiz_read_options *options, bool json, char **text)
{
    if (!text)
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "text: NULL where the story should go");
    *text = NULL;
    tamiz_status st = store_check(db);
    if (st != TAMIZ_OK)
        return st;
    tamiz_read_options told = TAMIZ_READ_OPTIONS_INIT;
    if (options && options->struct_size >= sizeof options->struct_size)
        memcpy(&told, options,
               options->struct_size < sizeof told ? options->struct_size : sizeof told);
    told.struct_size = sizeof told;
    struct tale t = {.out = buf_init(&db->store->alloc), .json = json};
    const tamiz_trace trace = {tell, &t};
    told.trace = &trace;
    buf_text(&t.out, json ? "{\"steps\":[" : "");
    size_t value_size = 0;
    st = tamiz_get_into(db, key, key_size, NULL, 0, &value_size, &told);
    if (st >= 0) {
        conclude(&t, st, value_size);
        *text = buf_handout(&t.out);
        st = *text ? TAMIZ_OK : op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
    }
    buf_free(&t.out);
    return st;
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
