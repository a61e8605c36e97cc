/* SPDX-License-Identifier: MIT
 *
 * `stats --watch`: the store looked at again and again. From the shell, the open store, whose
 * counters move; from the command line, the store as it lies on disk, opened anew for each look:
 * counters are of the process that reads, and another process's are not to be seen from outside.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep, isatty */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "grid.h"
#include "progress.h"

struct look {
    tamiz_stats stats;
    uint64_t at_ns;
};

/* "1,234 gets a second" for what moved since the look before. */
static void moved_show(struct text *out, const struct look *now, const struct look *before)
{
    const struct {
        const char *what;
        uint64_t now, before;
    } counters[] = {
        {"gets", now->stats.gets, before->stats.gets},
        {"filter negatives", now->stats.total.filter_negatives,
         before->stats.total.filter_negatives},
        {"false positives", now->stats.total.filter_false_positives,
         before->stats.total.filter_false_positives},
        {"device reads", now->stats.total.device_reads, before->stats.total.device_reads},
        {"device reads avoided", now->stats.total.device_reads_avoided,
         before->stats.total.device_reads_avoided},
        {"bytes in tables", now->stats.total.bytes, before->stats.total.bytes},
    };
    const double seconds = (double)(now->at_ns - before->at_ns) / 1e9;
    text_word(out, "a second:");
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        const double moved = (double)counters[i].now - (double)counters[i].before;
        text_printf(out, "%s %.3g %s", i ? "," : "", seconds > 0 ? moved / seconds : 0,
                    counters[i].what);
    }
    text_word(out, "\n\n");
}

static int look_show(const struct call *call, tamiz *db, struct look *before, bool first)
{
    struct look now = {.stats = TAMIZ_STATS_INIT, .at_ns = tool_now_ns()};
    struct text out = {0};
    char *levels = NULL, *stats = NULL;
    tamiz_status st = tamiz_stats_get(db, &now.stats);
    if (st == TAMIZ_OK)
        st = tamiz_property(db, "levels", &levels);
    if (st == TAMIZ_OK)
        st = tamiz_property(db, "stats", &stats);
    if (st == TAMIZ_OK) {
        const char *matrix = strstr(stats, "\nlevel ");
        if (isatty(STDOUT_FILENO))
            text_word(&out, "\033[H\033[J");
        if (!first)
            moved_show(&out, &now, before);
        text_word(&out, levels);
        text_word(&out, matrix ? matrix : "");
        text_fold(&out, terminal_width());
        *before = now;
    }
    tamiz_free(levels);
    tamiz_free(stats);
    return st == TAMIZ_OK ? deliver(call, &out) : fail_status(call, st, NULL);
}

/* One look; the store opened anew where it is not the shell's. */
static int look_take(struct call *call, tamiz *db, struct look *before, bool first)
{
    tamiz *opened = NULL;
    int status = EXIT_DONE;
    if (!call->in_shell && !store_open(call, call->operands[0], OPEN_READ, NULL, &opened, &status))
        return status;
    status = look_show(call, opened ? opened : db, before, first);
    (void)tamiz_close(opened); /* opened for reading: nothing that could be lost */
    return status;
}

int stats_watch(struct call *call, tamiz *db)
{
    double every = 2;
    uint64_t times = UINT64_MAX;
    struct look before;
    int status = EXIT_DONE;
    if (!call_real(call, "--every", &every) || !call_number(call, "--times", &times))
        return EXIT_USAGE;
    if (!(every >= 0.01 && every <= 86400))
        return misuse(call, "--every: want 0.01..86400 seconds");
    const struct timespec pause = {(time_t)every, (long)((every - (double)(time_t)every) * 1e9)};
    for (uint64_t i = 0; status == EXIT_DONE && i < times; i++) {
        if (i)
            (void)nanosleep(&pause, NULL);
        status = look_take(call, db, &before, i == 0);
    }
    return status;
}
