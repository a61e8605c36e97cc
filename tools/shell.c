/* SPDX-License-Identifier: MIT
 *
 * The commands, typed one by one on a store that stays open: no STORE operand, same flags. Words
 * are parted by blanks and may be held together by quotes, single or double. Where stdin is no
 * terminal there is no prompt, and the exit status is the worst one: so a file of commands is a
 * script.
 */
#define _POSIX_C_SOURCE 200809L /* getline, isatty */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 64 };

/* Parts `line` in place. The number of words, or -1: a quote is open, or there are too many. */
static int words_part(char *line, char **words)
{
    int count = 0;
    char *at = line;
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (!*at)
            return count;
        if (count == WORDS_MAX - 2)
            return -1;
        char *to = words[count++] = at;
        while (*at && !strchr(" \t\r\n", *at)) {
            const char quote = *at == '"' || *at == '\'' ? *at : 0;
            at += quote != 0;
            while (*at && (quote ? *at != quote : !strchr(" \t\r\n\"'", *at)))
                *to++ = *at++;
            if (quote && !*at)
                return -1;
            at += quote != 0;
        }
        const bool more = *at != 0;
        *to = 0;
        at += more;
    }
}

static int shell_help(void)
{
    for (const struct command *c = commands; c->name; c++)
        if (strncmp(c->operands, "STORE", 5) == 0 && c->run != shell_run && c->run != destroy_run)
            (void)printf("  %-8s %-12s %s\n", c->name, c->operands + strspn(c->operands, "STORE "),
                         c->help);
    (void)puts("  quit");
    return EXIT_DONE;
}

/* words[0] is the command; the store's name is put behind it, as if it had been typed. */
static int shell_command(struct call *shell, tamiz *db, char **words, int count)
{
    const struct command *c = command_find(words[0]);
    if (strcmp(words[0], "help") == 0)
        return shell_help();
    if (!c || strncmp(c->operands, "STORE", 5) != 0 || c->run == shell_run ||
        c->run == destroy_run) {
        (void)fprintf(stderr, "no command \"%s\" here; try: help\n", words[0]);
        return EXIT_USAGE;
    }
    memmove(words + 2, words + 1, (size_t)(count - 1) * sizeof *words);
    words[1] = shell->operands[0];
    struct call call = {.in_shell = true};
    int status = call_parse(&call, c, count + 1, words);
    call.json = call.json || shell->json;
    call.hex = call.hex || shell->hex;
    if (status == EXIT_DONE && c->check)
        status = c->check(&call);
    tamiz *keyspace =
        status == EXIT_DONE ? keyspace_of(&call, db, c->opening == OPEN_CREATE, &status) : NULL;
    if (keyspace)
        status = c->run(&call, keyspace);
    call_free(&call);
    (void)fflush(stdout);
    return status;
}

int shell_run(struct call *call, tamiz *db)
{
    const bool prompt = isatty(STDIN_FILENO) != 0;
    char *line = NULL, *words[WORDS_MAX];
    size_t capacity = 0;
    int worst = EXIT_DONE;
    for (;;) {
        if (prompt)
            (void)fputs("tamiz> ", stderr);
        if (getline(&line, &capacity, stdin) < 0)
            break;
        const int count = words_part(line, words);
        if (count > 0 && (strcmp(words[0], "quit") == 0 || strcmp(words[0], "exit") == 0))
            break;
        int status = EXIT_DONE;
        if (count < 0) {
            (void)fputs("an open quote, or too many words\n", stderr);
            status = EXIT_USAGE;
        } else if (count > 0 && words[0][0] != '#') {
            status = shell_command(call, db, words, count);
        }
        if (status > worst)
            worst = status;
    }
    if (prompt)
        (void)fputs("\n", stderr);
    free(line);
    return prompt ? EXIT_DONE : worst;
}
