/* SPDX-License-Identifier: MIT
 *
 * tamiz, the tool: a table of commands and what they have in common.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TERMINAL_COLUMNS = 80, COMMAND_COLUMN = 30, FLAG_COLUMN = 23 };

static const struct flag no_flags[] = {{NULL, NULL, NULL}};

const struct command commands[] = {
    {"put", "STORE KEY VALUE", "store one value", OPEN_CREATE, 3, 3, false, put_flags, put_run,
     put_check},
    {"get", "STORE KEY", "print the value; status 1 where there is none", OPEN_READ, 2, 2, false,
     get_flags, get_run, NULL},
    {"delete", "STORE KEY", "remove a key, there or not", OPEN_WRITE, 2, 2, false, delete_flags,
     delete_run, NULL},
    {"delete-range", "STORE FROM TO", "remove every key from FROM up to TO, TO not among them",
     OPEN_WRITE, 3, 3, false, delete_flags, delete_range_run, NULL},
    {"scan", "STORE", "print keys and values in order", OPEN_READ, 1, 1, false, scan_flags,
     scan_run, scan_check},
    {"load", "STORE [FILE|-]", "put many keys from a file or from stdin", OPEN_CREATE, 1, 2, false,
     load_flags, load_run, load_check},
    {"build", "DIR [FILE...|-]", "tables from text, with no store; ingest takes them", OPEN_NOTHING,
     1, -1, false, build_flags, build_run, NULL},
    {"ingest", "STORE TABLE...", "take built tables in, all or none", OPEN_CREATE, 2, -1, false,
     no_flags, ingest_run, NULL},
    {"explain", "STORE KEY...", "tell a read as a story: each source, its decision, its cost",
     OPEN_READ, 2, -1, false, explain_flags, explain_run, NULL},
    {"stats", "STORE", "print the counters", OPEN_READ, 1, 1, false, stats_flags, stats_run, NULL},
    {"levels", "STORE", "print the shape of the tree", OPEN_READ, 1, 1, false, no_flags, levels_run,
     NULL},
    {"tables", "STORE", "print each table and its filter", OPEN_READ, 1, 1, false, no_flags,
     tables_run, NULL},
    {"verify", "STORE", "read and check everything; status 1 where damage was found", OPEN_NOTHING,
     1, 1, false, no_flags, verify_run, NULL},
    {"repair", "STORE", "rebuild a damaged store from what can be read; old files go to STORE/lost",
     OPEN_NOTHING, 1, 1, false, no_flags, repair_run, NULL},
    {"flush", "STORE", "write what is in memory to tables", OPEN_WRITE, 1, 1, false, no_flags,
     flush_run, NULL},
    {"compact", "STORE", "merge a range, or everything, into one run", OPEN_WRITE, 1, 1, false,
     compact_flags, compact_run_command, NULL},
    {"checkpoint", "STORE DIR", "an openable copy as of now; hard links where they can be",
     OPEN_WRITE, 2, 2, false, no_flags, checkpoint_run, NULL},
    {"backup", "STORE DIR", "the next numbered copy in DIR, of new tables only", OPEN_WRITE, 2, 2,
     false, no_flags, backup_run, NULL},
    {"restore", "DIR STORE", "make a store of a backup, verified", OPEN_NOTHING, 2, 2, false,
     restore_flags, restore_run, NULL},
    {"destroy", "STORE", "remove a store's own files and nothing else", OPEN_NOTHING, 1, 1, false,
     no_flags, destroy_run, NULL},
    {"dump", "FILE...", "print any file of a store, changing nothing", OPEN_NOTHING, 1, -1, false,
     dump_flags, dump_run, NULL},
    {"filter", "FILE... | calc", "show the filter in a file, or plan one", OPEN_NOTHING, 1, -1,
     false, filter_flags, filter_run, NULL},
    {"lab", "EXPERIMENT [STORE]",
     "avoided-reads, curve, levels, cache, size, whatif, writes: theory beside measurement",
     OPEN_NOTHING, 1, 2, false, lab_flags, lab_run, NULL},
    {"keyspace", "list STORE | create|drop STORE NAME", "list, make and drop keyspaces",
     OPEN_NOTHING, 2, 3, false, no_flags, keyspace_run, NULL},
    {"options", "[STORE]", "list the options that -o sets; those of a store", OPEN_NOTHING, 0, 1,
     false, no_flags, options_run, NULL},
    {"shell", "STORE", "the commands above, typed one by one on one open store", OPEN_CREATE, 1, 1,
     false, no_flags, shell_run, NULL},
#ifdef TAMIZ_TOOL_BENCH
    {"bench", "...", "workloads with db_bench's names; see bench --help", OPEN_NOTHING, 0, -1, true,
     no_flags, bench_run, NULL},
#endif
    {"help", "[COMMAND]", "this text, or a command's", OPEN_NOTHING, 0, 1, false, no_flags,
     help_run, NULL},
    {NULL, NULL, NULL, OPEN_NOTHING, 0, 0, false, NULL, NULL, NULL},
};

const struct command *command_find(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

/* `text` from `column` on, where the cursor is, in lines that fit a terminal. */
static void print_wrapped(FILE *to, int column, const char *text)
{
    int at = column;
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (at > column && at + 1 + word >= TERMINAL_COLUMNS) {
            (void)fprintf(to, "\n%*s", column, "");
            at = column;
        } else if (at > column) {
            (void)fputc(' ', to);
            at++;
        }
        (void)fprintf(to, "%.*s", word, text);
        at += word;
        text += word;
        text += strspn(text, " ");
    }
    (void)fputc('\n', to);
}

/* What something is called, and from `column` on what it does; below it, where it is long. */
static void print_entry(FILE *to, const char *name, int column, const char *help)
{
    const int size = fprintf(to, "  %s", name);
    if (size < column)
        (void)fprintf(to, "%*s", column - size, "");
    else
        (void)fprintf(to, "\n%*s", column, "");
    print_wrapped(to, column, help);
}

static void usage_all(FILE *to)
{
    char form[80];
    (void)fprintf(to,
                  "tamiz %s: an ordered key-value store whose filter numbers can be trusted\n\n"
                  "usage: tamiz [--json] [--hex] [--keyspace NAME] [-o OPTIONS] COMMAND ...\n\n",
                  tamiz_version());
    for (const struct command *c = commands; c->name; c++) {
        (void)snprintf(form, sizeof form, "%-10s %s", c->name, c->operands);
        print_entry(to, form, COMMAND_COLUMN, c->help);
    }
    (void)fputs("\n"
                "  --json         print one JSON document\n"
                "  --hex          keys and values are hex digits, not text with \\xNN escapes\n"
                "  --keyspace NAME  of the store; put, load and ingest make it\n"
                "  -o OPTIONS     such as \"cache=8MiB filter=blocked:12\"; see tamiz options\n"
                "  --             what follows is no flag\n\n"
                "Exit status: 0 done, 1 an ordinary no, 2 wrong usage, 3 failure.\n",
                to);
}

static void usage_one(const struct command *c, FILE *to)
{
    (void)fprintf(to, "usage: tamiz %s %s\n", c->name, c->operands);
    print_wrapped(to, 0, c->help);
    for (const struct flag *f = c->flags; f->name; f++) {
        char form[64];
        (void)snprintf(form, sizeof form, "%s %s", f->name, f->value ? f->value : "");
        print_entry(to, form, FLAG_COLUMN, f->help);
    }
}

int help_run(struct call *call, tamiz *db)
{
    struct text nothing_more = {0};
    (void)db;
    if (call->count == 0) {
        usage_all(stdout);
        return deliver(call, &nothing_more);
    }
    const struct command *c = command_find(call->operands[0]);
    if (!c)
        return misuse(call, "no command \"%s\"", call->operands[0]);
    usage_one(c, stdout);
    return deliver(call, &nothing_more);
}

/* The command is the first word that is no common flag; argv is turned so that it stands first. */
static int command_at(int argc, char **argv)
{
    int i = 1;
    while (i < argc && argv[i][0] == '-' && argv[i][1])
        i += strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--keyspace") == 0 ? 2 : 1;
    return i;
}

/* What common flags in front of `bench` are called in its own command line, where --json wants a
 * file. */
static void rename_common(char **argv, int at)
{
    static char json[] = "--json=-", options[] = "--options";
    for (int i = 1; i < at; i++)
        if (strcmp(argv[i], "--json") == 0)
            argv[i] = json;
        else if (strcmp(argv[i], "-o") == 0)
            argv[i++] = options;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("tamiz %s\n", tamiz_version()) < 0 ? EXIT_FAILED : EXIT_DONE;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage_all(stdout);
        return EXIT_DONE;
    }
    const int at = command_at(argc, argv);
    const struct command *command = at < argc ? command_find(argv[at]) : NULL;
    if (!command) {
        if (at < argc)
            (void)fprintf(stderr, "tamiz: no command \"%s\"; try: tamiz help\n", argv[at]);
        else
            usage_all(stderr);
        return EXIT_USAGE;
    }
    if (command->raw)
        rename_common(argv, at);
    memmove(argv + 1, argv, (size_t)at * sizeof *argv); /* common flags go behind the name */
    struct call call = {0};
    int status = call_parse(&call, command, argc - 1, argv + 1);
    if (call_flag(&call, "--help"))
        usage_one(command, stdout);
    else if (status == EXIT_DONE)
        status = call_run(&call);
    call_free(&call);
    return status;
}
