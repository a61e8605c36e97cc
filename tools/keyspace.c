/* SPDX-License-Identifier: MIT
 *
 * Keyspaces of a store: listed, made, dropped.
 */
#include <string.h>

#include "json.h"
#include "tool.h"

static int list(const struct call *call, tamiz *db)
{
    struct text out = {0};
    char *names;
    const tamiz_status st = tamiz_property(db, "keyspaces", &names);
    if (st != TAMIZ_OK || !call->json)
        return library_text_deliver(call, st, names);
    struct json j = json_to(&out);
    json_open(&j, NULL, '{');
    json_open(&j, "keyspaces", '[');
    for (char *at = names, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        json_text(&j, NULL, at);
    }
    json_close(&j, ']');
    json_close(&j, '}');
    tamiz_free(names);
    return deliver_json(call, &out);
}

static int done(const struct call *call, tamiz_status st, const char *name)
{
    if (st != TAMIZ_NOT_FOUND)
        return deliver_done(call, st);
    (void)fail(call, "there is no keyspace %s", name);
    return EXIT_NO;
}

static int create(const struct call *call, tamiz *db, const char *name)
{
    tamiz *keyspace;
    return done(call, tamiz_keyspace_open(db, name, NULL, &keyspace), name);
}

int keyspace_run(struct call *call, tamiz *db)
{
    const char *what = call->operands[0], *name = call->count == 3 ? call->operands[2] : NULL;
    const bool lists = strcmp(what, "list") == 0, creates = strcmp(what, "create") == 0;
    int status = EXIT_DONE;
    if ((!lists && !creates && strcmp(what, "drop") != 0) || lists == (name != NULL))
        return misuse(call, "want list STORE, create STORE NAME or drop STORE NAME");
    if (!store_open(call, call->operands[1],
                    lists     ? OPEN_READ
                    : creates ? OPEN_CREATE
                              : OPEN_WRITE,
                    NULL, &db, &status))
        return status;
    status = lists     ? list(call, db)
             : creates ? create(call, db, name)
                       : done(call, tamiz_keyspace_drop(db, name), name);
    const tamiz_status st = tamiz_close(db);
    return st < 0 && status < EXIT_USAGE ? fail_status(call, st, "closing") : status;
}
