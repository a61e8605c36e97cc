/* SPDX-License-Identifier: MIT
 *
 * A command line taken apart, and how a command says what went wrong.
 */
#include "tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void say(const struct call *call, const char *format, va_list args)
{
    struct text line = {0};
    if (!call->in_shell)
        text_word(&line, "tamiz: ");
    text_printf(&line, "%s: ", call->command->name);
    char words[1024];
    (void)vsnprintf(words, sizeof words, format, args);
    words_show(&line, words);
    text_word(&line, "\n");
    (void)fflush(stdout);
    (void)text_flush(&line, stderr);
    text_free(&line);
}

int fail(const struct call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(call, format, args);
    va_end(args);
    return EXIT_FAILED;
}

int misuse(const struct call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(call, format, args);
    va_end(args);
    if (!call->in_shell)
        (void)fprintf(stderr, "try: tamiz help %s\n", call->command->name);
    return EXIT_USAGE;
}

int fail_status(const struct call *call, tamiz_status status, const char *what)
{
    const char *detail = status < 0 ? tamiz_error_detail() : tamiz_status_name(status);
    if (!detail[0])
        detail = tamiz_status_name(status);
    (void)fail(call, "%s%s%s", what ? what : "", what ? ": " : "", detail);
    return status == TAMIZ_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

int deliver(const struct call *call, struct text *out)
{
    const bool fine = text_flush(out, stdout) && fflush(stdout) == 0;
    text_free(out);
    return fine ? EXIT_DONE : fail(call, "stdout does not take what is written to it");
}

int deliver_json(const struct call *call, struct text *out)
{
    text_word(out, "\n");
    return deliver(call, out);
}

int deliver_done(const struct call *call, tamiz_status st)
{
    struct text out = {0};
    if (st != TAMIZ_OK)
        return fail_status(call, st, NULL);
    if (!call->json)
        return EXIT_DONE;
    text_word(&out, "{\"done\":true}");
    return deliver_json(call, &out);
}

/* ---- taking apart ---- */

static const struct flag *flag_find(const struct command *command, const char *name, size_t *index)
{
    for (*index = 0; command->flags[*index].name; (*index)++)
        if (strcmp(command->flags[*index].name, name) == 0)
            return &command->flags[*index];
    return NULL;
}

const char *call_flag(const struct call *call, const char *name)
{
    size_t index;
    if (strcmp(name, "--help") == 0)
        return call->values[FLAGS_MAX - 1];
    return flag_find(call->command, name, &index) ? call->values[index] : NULL;
}

static bool common_flag(struct call *call, const char *word)
{
    if (strcmp(word, "--json") == 0)
        call->json = true;
    else if (strcmp(word, "--hex") == 0)
        call->hex = true;
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        call->values[FLAGS_MAX - 1] = "";
    else
        return false;
    return true;
}

/* One flag at argv[*at], which moves to its last word. */
static int flag_take(struct call *call, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    if (common_flag(call, word))
        return EXIT_DONE;
    size_t index = 0;
    const bool options = strcmp(word, "-o") == 0, keyspace = strcmp(word, "--keyspace") == 0;
    const struct flag *flag = options || keyspace ? NULL : flag_find(call->command, word, &index);
    if (!flag && !options && !keyspace)
        return misuse(call, "no flag \"%s\"; a key that looks like one goes behind --", word);
    if (flag && !flag->value) {
        call->values[index] = "";
        return EXIT_DONE;
    }
    if (++*at == argc)
        return misuse(call, "%s: want %s behind it", word,
                      flag       ? flag->value
                      : keyspace ? "NAME"
                                 : "OPTIONS");
    if (flag)
        call->values[index] = argv[*at];
    else if (keyspace)
        call->keyspace = argv[*at];
    else
        text_printf(&call->options, "%s%s", call->options.size ? " " : "", argv[*at]);
    return EXIT_DONE;
}

static int operands_check(const struct call *call)
{
    const struct command *c = call->command;
    if (call->count < c->least)
        return misuse(call, "too few operands: want %s", c->operands);
    if (c->most >= 0 && call->count > c->most)
        return misuse(call, "too many operands: want %s", c->operands);
    return EXIT_DONE;
}

int call_parse(struct call *call, const struct command *command, int argc, char **argv)
{
    *call = (struct call){.command = command, .in_shell = call->in_shell, .operands = argv + 1};
    if (command->raw) {
        call->count = argc;
        call->operands = argv;
        return EXIT_DONE;
    }
    bool flags = true;
    for (int i = 1; i < argc; i++) {
        if (flags && strcmp(argv[i], "--") == 0) {
            flags = false;
        } else if (flags && argv[i][0] == '-' && argv[i][1]) {
            const int status = flag_take(call, argc, argv, &i);
            if (status)
                return status;
        } else {
            call->operands[call->count++] = argv[i];
        }
    }
    return call_flag(call, "--help") ? EXIT_DONE : operands_check(call);
}

void call_free(struct call *call)
{
    text_free(&call->options);
}

bool call_number(const struct call *call, const char *name, uint64_t *n)
{
    const char *value = call_flag(call, name);
    if (!value || number_parse(value, n))
        return true;
    (void)misuse(call, "%s %s: want a whole number", name, value);
    return false;
}

bool call_count(const struct call *call, const char *name, uint64_t *n)
{
    const char *value = call_flag(call, name);
    if (!value || count_parse(value, n))
        return true;
    (void)misuse(call, "%s %s: want a number, such as 500000, 500k or 12m", name, value);
    return false;
}

bool call_real(const struct call *call, const char *name, double *x)
{
    const char *value = call_flag(call, name);
    if (!value || real_parse(value, x))
        return true;
    (void)misuse(call, "%s %s: want a number", name, value);
    return false;
}

bool call_bytes(const struct call *call, const char *typed, struct text *out)
{
    struct text why = {0};
    const bool fine = bytes_parse(typed, call->hex, out, &why);
    if (!fine)
        (void)misuse(call, "%s", why.data);
    text_free(&why);
    return fine;
}

/* ---- the store ---- */

static bool open_failed(const struct call *call, const char *path, tamiz_status status,
                        int *exit_status)
{
    if (status == TAMIZ_NOT_FOUND)
        *exit_status = fail(call, "%s: there is no store", path);
    else
        *exit_status = fail_status(call, status, NULL);
    return false;
}

bool store_open(const struct call *call, const char *path, enum opening opening, const char *forced,
                tamiz **db, int *exit_status)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz_status st = TAMIZ_OK;
    *db = NULL;
    if (call->options.size)
        st = tamiz_options_set(&options, call->options.data);
    if (st == TAMIZ_OK && forced)
        st = tamiz_options_set(&options, forced);
    if (st != TAMIZ_OK) {
        *exit_status = fail_status(call, st, "-o");
        return false;
    }
    if (opening != OPEN_CREATE)
        options.create_if_missing = false;
    if (opening == OPEN_READ)
        options.read_only = true;
    st = tamiz_open(path, &options, db);
    return st == TAMIZ_OK || open_failed(call, path, st, exit_status);
}

tamiz *keyspace_of(const struct call *call, tamiz *db, bool create, int *exit_status)
{
    tamiz_options options = TAMIZ_OPTIONS_INIT;
    tamiz *keyspace = NULL;
    if (!call->keyspace)
        return db;
    if (call->options.size && tamiz_options_set(&options, call->options.data) != TAMIZ_OK) {
        *exit_status = fail_status(call, TAMIZ_INVALID_ARGUMENT, "-o");
        return NULL;
    }
    options.create_if_missing = create;
    const tamiz_status st = tamiz_keyspace_open(db, call->keyspace, &options, &keyspace);
    if (st == TAMIZ_NOT_FOUND)
        *exit_status = fail(call, "there is no keyspace %s", call->keyspace);
    else if (st != TAMIZ_OK)
        *exit_status = fail_status(call, st, NULL);
    return keyspace;
}

int call_run(struct call *call)
{
    const struct command *c = call->command;
    int status = EXIT_DONE;
    tamiz *db = NULL, *keyspace = NULL;
    if (c->check && (status = c->check(call)) != EXIT_DONE)
        return status;
    if (c->opening == OPEN_NOTHING)
        return c->run(call, NULL);
    if (!store_open(call, call->operands[0], c->opening, NULL, &db, &status))
        return status;
    keyspace = keyspace_of(call, db, c->opening == OPEN_CREATE, &status);
    if (keyspace)
        status = c->run(call, keyspace);
    const tamiz_status st = tamiz_close(db);
    return st < 0 && status < EXIT_USAGE ? fail_status(call, st, "closing") : status;
}
