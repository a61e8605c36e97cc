/* SPDX-License-Identifier: MIT
 *
 * What a command of the tool is: a row that says its name, its operands, its flags and how it needs
 * the store, and a function that does it. Usage texts are made from the rows. A command that works
 * on a store gets it opened; so the shell, which has one open all the time, calls the same
 * functions.
 *
 * Exit statuses: 0 done; 1 an ordinary no (the key is absent, verify found damage); 2 wrong usage;
 * 3 failure.
 */
#ifndef TAMIZ_TOOLS_TOOL_H
#define TAMIZ_TOOLS_TOOL_H

#include "tamiz/tamiz.h"
#include "text.h"

enum { EXIT_DONE = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_FAILED = 3 };
enum { FLAGS_MAX = 20 };

struct flag {
    const char *name;  /* "--from"; NULL ends the list */
    const char *value; /* what follows it, for the usage; NULL: nothing */
    const char *help;
};

enum opening {
    OPEN_NOTHING, /* no store, or the command opens it by itself */
    OPEN_READ,    /* must exist; nothing is changed, no lock is needed */
    OPEN_WRITE,   /* must exist */
    OPEN_CREATE,  /* made where missing */
};

struct call;

struct command {
    const char *name;
    const char *operands; /* for the usage; begins with STORE where a store is opened */
    const char *help;     /* one line */
    enum opening opening;
    int least, most; /* operands, STORE included; most -1: any number */
    bool raw;        /* gets all of its arguments as operands, flags too */
    const struct flag *flags;
    int (*run)(struct call *call, tamiz *db); /* db NULL with OPEN_NOTHING */
    /* Looks at the arguments before a store is opened, so that a mistake makes none. An exit status
     * that was said, or EXIT_DONE; NULL: nothing to look at. */
    int (*check)(const struct call *call);
};

/* One command line, taken apart. All borrowed from it, but `options`. */
struct call {
    const struct command *command;
    bool json, hex, in_shell;
    struct text options;  /* of every -o, in order; owned */
    const char *keyspace; /* --keyspace; NULL: the default one */
    int count;
    char **operands;
    const char *values[FLAGS_MAX]; /* of command->flags in their order; NULL: not given */
};

extern const struct command commands[]; /* name NULL ends */
const struct command *command_find(const char *name);

/* Takes apart argv, whose first word is the command's name; reorders it. Of *call only in_shell is
 * looked at. 0, or an exit status after
 * having said what is wrong. */
int call_parse(struct call *call, const struct command *command, int argc, char **argv);
void call_free(struct call *call);
/* Opens what the command needs, runs it, closes. */
int call_run(struct call *call);

/* The flag's value ("" for one that takes none), or NULL where it was not given. */
const char *call_flag(const struct call *call, const char *name);
/* false, and it was said: the flag's value is no number. Not given: *n is unchanged. */
bool call_number(const struct call *call, const char *name, uint64_t *n);
/* The same; 500k and 12m are numbers, too. */
bool call_count(const struct call *call, const char *name, uint64_t *n);
bool call_real(const struct call *call, const char *name, double *x);
/* Bytes as typed, escapes and --hex understood. false, and it was said: not well-formed. */
bool call_bytes(const struct call *call, const char *typed, struct text *out);

/* A line "tamiz: COMMAND: …" on stderr. They return the exit status that goes with it. */
int fail(const struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
int misuse(const struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For a status below 0, with the library's words; `what` (may be NULL) goes in front. */
int fail_status(const struct call *call, tamiz_status status, const char *what);
/* Writes `out` to stdout and frees it; the exit status. */
int deliver(const struct call *call, struct text *out);
/* The same for a document in JSON: with a newline at its end. */
int deliver_json(const struct call *call, struct text *out);

/* The end of what has no answer but that it is done: the status' words where it is not. */
int deliver_done(const struct call *call, tamiz_status st);

/* Text that the library made, to stdout, ending in a newline; frees it. `st` below 0: says so. */
int library_text_deliver(const struct call *call, tamiz_status st, char *text);
/* `stats --watch`. */
int stats_watch(struct call *call, tamiz *db);

/* Opens STORE as `opening` says, with -o and then `forced` options (may be NULL). false, and it was
 * said; *exit_status is what to end with. */
bool store_open(const struct call *call, const char *path, enum opening opening, const char *forced,
                tamiz **db, int *exit_status);

/* The handle of the keyspace that --keyspace names, made only where `create`; `db` itself where
 * nothing is named. NULL, and it was said: *exit_status is what to end with. */
tamiz *keyspace_of(const struct call *call, tamiz *db, bool create, int *exit_status);

/* ---- the commands, in their files ---- */

int put_run(struct call *call, tamiz *db);
int put_check(const struct call *call);
int load_check(const struct call *call);
int scan_check(const struct call *call);
int get_run(struct call *call, tamiz *db);
int delete_run(struct call *call, tamiz *db);
int delete_range_run(struct call *call, tamiz *db);
int scan_run(struct call *call, tamiz *db);
int load_run(struct call *call, tamiz *db);
int explain_run(struct call *call, tamiz *db);
int stats_run(struct call *call, tamiz *db);
int levels_run(struct call *call, tamiz *db);
int tables_run(struct call *call, tamiz *db);
int verify_run(struct call *call, tamiz *db);
int repair_run(struct call *call, tamiz *db);
int flush_run(struct call *call, tamiz *db);
int compact_run_command(struct call *call, tamiz *db);
int build_run(struct call *call, tamiz *db);
int ingest_run(struct call *call, tamiz *db);
int checkpoint_run(struct call *call, tamiz *db);
int backup_run(struct call *call, tamiz *db);
int restore_run(struct call *call, tamiz *db);
int destroy_run(struct call *call, tamiz *db);
int options_run(struct call *call, tamiz *db);
int keyspace_run(struct call *call, tamiz *db);
int filter_run(struct call *call, tamiz *db);
int dump_run(struct call *call, tamiz *db);
int lab_run(struct call *call, tamiz *db);
int shell_run(struct call *call, tamiz *db);
int help_run(struct call *call, tamiz *db);
int bench_run(struct call *call, tamiz *db); /* where bench/ is part of the build */

extern const struct flag explain_flags[], get_flags[], scan_flags[], load_flags[], stats_flags[],
    compact_flags[], filter_flags[], dump_flags[], lab_flags[], put_flags[], delete_flags[],
    restore_flags[], build_flags[];

#endif
