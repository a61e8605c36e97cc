/* SPDX-License-Identifier: MIT
 *
 * `explain`: one read told as a story; of several keys, as one batch; with --seek or --prefix, an
 * ordered read.
 */
#include "grid.h"
#include "tool.h"

#include <stdlib.h>

const struct flag explain_flags[] = {
    {"--seek", NULL, "an ordered read from KEY on, not a get"},
    {"--prefix", NULL, "an ordered read of the keys that begin with KEY"},
    {"--limit", "N", "of --seek and --prefix: so many entries (10)"},
    {"--no-filters", NULL, "the filterless twin of the read"},
    {NULL, NULL, NULL},
};

int library_text_deliver(const struct call *call, tamiz_status st, char *text)
{
    struct text out = {0};
    if (st != TAMIZ_OK)
        return fail_status(call, st, NULL);
    text_word(&out, text);
    if (out.size && out.data[out.size - 1] != '\n')
        text_word(&out, "\n");
    tamiz_free(text);
    if (!call->json)
        text_fold(&out, terminal_width());
    return deliver(call, &out);
}

/* All keys in one text, and where each begins and how long it is. */
struct typed_keys {
    struct text bytes;
    size_t count;
    const void **keys;
    size_t *sizes;
};

static bool keys_take(const struct call *call, struct typed_keys *k)
{
    const size_t most = (size_t)call->count - 1;
    bool fine = true;
    k->keys = tool_resize(NULL, most * sizeof *k->keys);
    k->sizes = tool_resize(NULL, most * sizeof *k->sizes);
    text_add(&k->bytes, "", 0);
    for (; fine && k->count < most; k->count++) {
        const size_t before = k->bytes.size;
        fine = call_bytes(call, call->operands[k->count + 1], &k->bytes);
        k->sizes[k->count] = k->bytes.size - before;
    }
    size_t at = 0;
    for (size_t i = 0; fine && i < k->count; at += k->sizes[i++])
        k->keys[i] = k->bytes.data + at;
    return fine;
}

static bool is_ordered(const struct call *call)
{
    return call_flag(call, "--seek") || call_flag(call, "--prefix");
}

static tamiz_status story_make(const struct call *call, tamiz *db, const struct typed_keys *k,
                               uint64_t limit, char **story)
{
    tamiz_read_options o = TAMIZ_READ_OPTIONS_INIT;
    o.use_filters = !call_flag(call, "--no-filters");
    if (call_flag(call, "--prefix")) {
        o.prefix = k->keys[0];
        o.prefix_size = k->sizes[0];
    }
    if (is_ordered(call))
        return call->json ? tamiz_explain_seek_json(db, k->keys[0], k->sizes[0], limit, &o, story)
                          : tamiz_explain_seek(db, k->keys[0], k->sizes[0], limit, &o, story);
    if (k->count > 1)
        return call->json ? tamiz_explain_many_json(db, k->count, k->keys, k->sizes, &o, story)
                          : tamiz_explain_many(db, k->count, k->keys, k->sizes, &o, story);
    return call->json ? tamiz_explain_json(db, k->keys[0], k->sizes[0], &o, story)
                      : tamiz_explain(db, k->keys[0], k->sizes[0], &o, story);
}

int explain_run(struct call *call, tamiz *db)
{
    struct typed_keys k = {0};
    uint64_t limit = 10;
    char *story = NULL;
    int status = EXIT_USAGE;
    if (call_number(call, "--limit", &limit) && keys_take(call, &k)) {
        if (is_ordered(call) && k.count > 1) {
            status = misuse(call, "--seek, --prefix: want one key");
        } else {
            const tamiz_status st = story_make(call, db, &k, limit, &story);
            status = library_text_deliver(call, st, story);
        }
    }
    text_free(&k.bytes);
    free(k.keys);
    free(k.sizes);
    return status;
}
