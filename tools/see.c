/* SPDX-License-Identifier: MIT
 *
 * Looking at a store: one read explained, counters, levels, tables, options.
 */
#include "json.h"
#include "tool.h"

#include <string.h>

const struct flag stats_flags[] = {
    {"--prometheus", NULL, "in the text format of Prometheus"},
    {"--watch", NULL, "again and again, with what changed a second; ends with Ctrl-C"},
    {"--every", "SECONDS", "between two looks (2)"},
    {"--times", "N", "so many looks, then end"},
    {NULL, NULL, NULL},
};

static int property_run(struct call *call, tamiz *db, const char *name)
{
    char *text = NULL;
    const tamiz_status st = tamiz_property(db, name, &text);
    return library_text_deliver(call, st, text);
}

int stats_run(struct call *call, tamiz *db)
{
    if (call_flag(call, "--watch"))
        return stats_watch(call, db);
    if (call_flag(call, "--prometheus"))
        return property_run(call, db, "stats.prometheus");
    return property_run(call, db, call->json ? "stats.json" : "stats");
}

static void level_json(struct json *j, size_t level, const tamiz_level_stats *l)
{
    json_open(j, NULL, '{');
    json_u64(j, "level", level);
    json_u64(j, "tables", l->tables);
    json_u64(j, "bytes", l->bytes);
    json_u64(j, "keys", l->keys);
    json_u64(j, "filter_bytes", l->filter_bytes);
    json_close(j, '}');
}

int levels_run(struct call *call, tamiz *db)
{
    tamiz_stats stats = TAMIZ_STATS_INIT;
    struct text out = {0};
    if (!call->json)
        return property_run(call, db, "levels");
    const tamiz_status st = tamiz_stats_get(db, &stats);
    if (st != TAMIZ_OK)
        return fail_status(call, st, NULL);
    struct json j = json_to(&out);
    json_open(&j, NULL, '{');
    json_open(&j, "levels", '[');
    for (size_t i = 0; i < TAMIZ_LEVELS; i++)
        if (stats.level[i].tables)
            level_json(&j, i, &stats.level[i]);
    json_close(&j, ']');
    json_u64(&j, "memtable_bytes", stats.memtable_bytes);
    json_close(&j, '}');
    return deliver_json(call, &out);
}

/* An array of the lines of `text`. */
static int lines_json(const struct call *call, const char *name, const char *text)
{
    struct text out = {0}, line = {0};
    struct json j = json_to(&out);
    json_open(&j, NULL, '{');
    json_open(&j, name, '[');
    while (*text) {
        const size_t size = strcspn(text, "\n");
        text_clear(&line);
        text_add(&line, text, size);
        if (size)
            json_bytes(&j, NULL, line.data, line.size, false);
        text += size + (text[size] == '\n');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    text_free(&line);
    return deliver_json(call, &out);
}

int tables_run(struct call *call, tamiz *db)
{
    char *text = NULL;
    if (!call->json)
        return property_run(call, db, "tables");
    const tamiz_status st = tamiz_property(db, "tables", &text);
    const int status =
        st == TAMIZ_OK ? lines_json(call, "tables", text) : fail_status(call, st, NULL);
    tamiz_free(text);
    return status;
}

static int options_deliver(const struct call *call, tamiz_status st, char *text)
{
    if (st != TAMIZ_OK || !call->json)
        return library_text_deliver(call, st, text);
    const int status = lines_json(call, "options", text);
    tamiz_free(text);
    return status;
}

int options_run(struct call *call, tamiz *db)
{
    char *text = NULL;
    tamiz *opened = NULL;
    int status = EXIT_DONE;
    if (call->count == 0 && !call->in_shell) {
        const tamiz_status st = tamiz_options_help(&text);
        return options_deliver(call, st, text);
    }
    if (!db && !store_open(call, call->operands[0], OPEN_READ, NULL, &opened, &status))
        return status;
    const tamiz_status st = tamiz_property(db ? db : opened, "options", &text);
    status = options_deliver(call, st, text);
    (void)tamiz_close(opened); /* opened for reading: nothing that could be lost */
    return status;
}
