/* SPDX-License-Identifier: MIT
 *
 * One key at a time: put, get, delete; and deleting all of a range.
 */
#include "json.h"
#include "tool.h"

const struct flag put_flags[] = {
    {"--sync", NULL, "durable when the command returns"},
    {"--ttl", "SECONDS", "as good as deleted after so long; 0: as the store's option ttl has it"},
    {NULL, NULL, NULL},
};

const struct flag delete_flags[] = {
    {"--sync", NULL, "durable when the command returns"},
    {NULL, NULL, NULL},
};

const struct flag get_flags[] = {
    {"--raw", NULL, "the value's bytes as they are, with no newline"},
    {NULL, NULL, NULL},
};

/* Closing stops the background and keeps all that was written, so that a process that ends well
 * needs no sync; --sync is for the machine that does not. */
static tamiz_write_options write_options(const struct call *call)
{
    tamiz_write_options options = TAMIZ_WRITE_OPTIONS_INIT;
    options.sync = call_flag(call, "--sync") != NULL;
    return options;
}

int put_check(const struct call *call)
{
    struct text scratch = {0};
    uint64_t ttl = 0;
    const bool fine = call_bytes(call, call->operands[1], &scratch) &&
                      call_bytes(call, call->operands[2], &scratch) &&
                      call_number(call, "--ttl", &ttl);
    text_free(&scratch);
    return fine ? EXIT_DONE : EXIT_USAGE;
}

int put_run(struct call *call, tamiz *db)
{
    tamiz_write_options options = write_options(call);
    struct text key = {0}, value = {0};
    int status = EXIT_USAGE;
    if (call_number(call, "--ttl", &options.ttl) && call_bytes(call, call->operands[1], &key) &&
        call_bytes(call, call->operands[2], &value)) {
        status =
            deliver_done(call, tamiz_put(db, key.data, key.size, value.data, value.size, &options));
    }
    text_free(&key);
    text_free(&value);
    return status;
}

int delete_run(struct call *call, tamiz *db)
{
    const tamiz_write_options options = write_options(call);
    struct text key = {0};
    int status = EXIT_USAGE;
    if (call_bytes(call, call->operands[1], &key)) {
        status = deliver_done(call, tamiz_delete(db, key.data, key.size, &options));
    }
    text_free(&key);
    return status;
}

int delete_range_run(struct call *call, tamiz *db)
{
    const tamiz_write_options options = write_options(call);
    struct text from = {0}, to = {0};
    int status = EXIT_USAGE;
    if (call_bytes(call, call->operands[1], &from) && call_bytes(call, call->operands[2], &to)) {
        status = deliver_done(
            call, tamiz_delete_range(db, from.data, from.size, to.data, to.size, &options));
    }
    text_free(&from);
    text_free(&to);
    return status;
}

static int value_print(const struct call *call, const struct text *key, const void *value,
                       size_t size, bool found)
{
    struct text out = {0};
    if (call->json) {
        struct json j = json_to(&out);
        json_open(&j, NULL, '{');
        json_bytes(&j, "key", key->data, key->size, call->hex);
        json_bool(&j, "found", found);
        if (found)
            json_bytes(&j, "value", value, size, call->hex);
        json_close(&j, '}');
        return deliver_json(call, &out);
    }
    if (found && call_flag(call, "--raw")) {
        text_add(&out, value, size);
    } else if (found) {
        bytes_show(&out, value, size, call->hex);
        text_word(&out, "\n");
    }
    return deliver(call, &out);
}

int get_run(struct call *call, tamiz *db)
{
    struct text key = {0};
    void *value = NULL;
    size_t size = 0;
    int status = EXIT_USAGE;
    if (call_bytes(call, call->operands[1], &key)) {
        const tamiz_status st = tamiz_get(db, key.data, key.size, &value, &size, NULL);
        if (st < 0)
            status = fail_status(call, st, NULL);
        else if ((status = value_print(call, &key, value, size, st == TAMIZ_OK)) == EXIT_DONE)
            status = st == TAMIZ_OK ? EXIT_DONE : EXIT_NO;
    }
    tamiz_free(value);
    text_free(&key);
    return status;
}
