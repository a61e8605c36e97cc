/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, isatty */
#include "progress.h"

#include "text.h"

#include <time.h>
#include <unistd.h>

enum { CELLS = 30 };

uint64_t tool_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

struct progress progress_start(const char *label, uint64_t total)
{
    const uint64_t now = tool_now_ns();
    return (struct progress){label, total, now, now, isatty(STDERR_FILENO) != 0};
}

/* Seconds left, as if the rest went as the part that is done. */
static double seconds_left(const struct progress *p, uint64_t now, double share)
{
    const double passed = (double)(now - p->start_ns) / 1e9;
    return share > 0 ? passed * (1 - share) / share : 0;
}

static void draw(const struct progress *p, uint64_t done, uint64_t now)
{
    struct text line = {0};
    text_printf(&line, "\r%-28.28s ", p->label);
    if (p->total) {
        const double share = done < p->total ? (double)done / (double)p->total : 1;
        const int full = (int)(share * CELLS);
        for (int i = 0; i < CELLS; i++)
            text_word(&line, i < full ? "█" : "░");
        text_printf(&line, " %3.0f %%  %.0f s left", share * 100, seconds_left(p, now, share));
    } else {
        count_show(&line, done);
    }
    text_word(&line, "\033[K");
    (void)text_flush(&line, stderr);
    text_free(&line);
}

void progress_at(struct progress *p, uint64_t done)
{
    if (!p->shown || done % 256)
        return;
    const uint64_t now = tool_now_ns();
    if (now - p->drawn_ns < 100000000)
        return;
    p->drawn_ns = now;
    draw(p, done, now);
}

void progress_now(struct progress *p, uint64_t done)
{
    if (!p->shown)
        return;
    p->drawn_ns = p->start_ns + 1; /* so that the line is wiped */
    draw(p, done, tool_now_ns());
}

void progress_end(struct progress *p)
{
    if (p->shown && p->drawn_ns != p->start_ns)
        (void)fputs("\r\033[K", stderr);
}
