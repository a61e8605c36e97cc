/* SPDX-License-Identifier: MIT
 *
 * Ordered reads: a line "key TAB value" each, which `load --format tsv` reads back.
 */
#include "json.h"
#include "tool.h"

const struct flag scan_flags[] = {
    {"--from", "KEY", "first key, itself included"},
    {"--to", "KEY", "end, itself excluded"},
    {"--prefix", "KEY", "only keys that begin so"},
    {"--limit", "N", "no more than N"},
    {"--reverse", NULL, "last key first"},
    {"--count", NULL, "only say how many there are"},
    {"--keys", NULL, "only the keys"},
    {NULL, NULL, NULL},
};

enum { FLUSH_BYTES = 1 << 16 };

struct scan {
    const struct call *call;
    struct text from, to, prefix;
    uint64_t limit, count;
    bool reverse, only_count, only_keys;
    struct text out;
    struct json json;
};

/* One bound: where the flag was given, its bytes, also where they are none. */
static bool bound_take(const struct scan *s, const char *flag, struct text *bytes,
                       const void **data, size_t *size)
{
    const char *typed = call_flag(s->call, flag);
    if (!typed)
        return true;
    if (!call_bytes(s->call, typed, bytes))
        return false;
    *data = bytes->data;
    *size = bytes->size;
    return true;
}

static bool scan_take(struct scan *s, tamiz_read_options *options)
{
    s->limit = UINT64_MAX;
    s->reverse = call_flag(s->call, "--reverse") != NULL;
    s->only_count = call_flag(s->call, "--count") != NULL;
    s->only_keys = call_flag(s->call, "--keys") != NULL;
    options->fill_cache = false;
    return call_number(s->call, "--limit", &s->limit) &&
           bound_take(s, "--from", &s->from, &options->lower, &options->lower_size) &&
           bound_take(s, "--to", &s->to, &options->upper, &options->upper_size) &&
           bound_take(s, "--prefix", &s->prefix, &options->prefix, &options->prefix_size);
}

static void entry_print(struct scan *s, tamiz_iter *it)
{
    size_t key_size, value_size;
    const void *key = tamiz_iter_key(it, &key_size);
    const void *value = tamiz_iter_value(it, &value_size);
    if (s->call->json) {
        json_open(&s->json, NULL, '{');
        json_bytes(&s->json, "key", key, key_size, s->call->hex);
        if (!s->only_keys)
            json_bytes(&s->json, "value", value, value_size, s->call->hex);
        json_close(&s->json, '}');
        return;
    }
    bytes_show(&s->out, key, key_size, s->call->hex);
    if (!s->only_keys) {
        text_word(&s->out, "\t");
        bytes_show(&s->out, value, value_size, s->call->hex);
    }
    text_word(&s->out, "\n");
}

/* false: stdout refused. */
static bool walk(struct scan *s, tamiz_iter *it)
{
    if (s->limit == 0)
        return true;
    if (s->reverse)
        tamiz_iter_seek_last(it);
    else
        tamiz_iter_seek_first(it);
    while (tamiz_iter_valid(it)) {
        if (!s->only_count)
            entry_print(s, it);
        if (++s->count == s->limit)
            break;
        if (s->out.size >= FLUSH_BYTES && !text_flush(&s->out, stdout))
            return false;
        if (s->reverse)
            tamiz_iter_prev(it);
        else
            tamiz_iter_next(it);
    }
    return true;
}

static void frame_open(struct scan *s)
{
    s->json = json_to(&s->out);
    if (!s->call->json)
        return;
    json_open(&s->json, NULL, '{');
    if (!s->only_count)
        json_open(&s->json, "entries", '[');
}

static int frame_close(struct scan *s)
{
    if (s->call->json) {
        if (!s->only_count)
            json_close(&s->json, ']');
        json_u64(&s->json, "count", s->count);
        json_close(&s->json, '}');
        return deliver_json(s->call, &s->out);
    }
    if (s->only_count)
        text_printf(&s->out, "%llu\n", (unsigned long long)s->count);
    return deliver(s->call, &s->out);
}

int scan_check(const struct call *call)
{
    uint64_t limit = 0;
    return call_number(call, "--limit", &limit) ? EXIT_DONE : EXIT_USAGE;
}

int scan_run(struct call *call, tamiz *db)
{
    struct scan s = {.call = call};
    tamiz_read_options options = TAMIZ_READ_OPTIONS_INIT;
    tamiz_iter *it = NULL;
    int status = EXIT_USAGE;
    if (!scan_take(&s, &options))
        goto done;
    tamiz_status st = tamiz_iter_open(db, &options, &it);
    if (st == TAMIZ_OK) {
        frame_open(&s);
        const bool written = walk(&s, it);
        st = tamiz_iter_status(it);
        status = written ? EXIT_DONE : fail(call, "stdout does not take what is written to it");
    }
    if (st != TAMIZ_OK)
        status = fail_status(call, st, NULL);
    else if (status == EXIT_DONE)
        status = frame_close(&s);
done:
    tamiz_iter_close(it);
    text_free(&s.from);
    text_free(&s.to);
    text_free(&s.prefix);
    text_free(&s.out);
    return status;
}
