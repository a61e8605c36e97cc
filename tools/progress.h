/* SPDX-License-Identifier: MIT
 *
 * A bar for work that takes a while, on stderr, and only where that is a terminal.
 */
#ifndef TAMIZ_TOOLS_PROGRESS_H
#define TAMIZ_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label; /* borrowed */
    uint64_t total;    /* 0: not known, a count is shown */
    uint64_t start_ns, drawn_ns;
    bool shown; /* stderr is a terminal */
};

struct progress progress_start(const char *label, uint64_t total);
/* Cheap enough for every step: it looks at the clock each 256th time and draws ten times a second.
 */
void progress_at(struct progress *p, uint64_t done);
/* Of few and long steps: draws at once. */
void progress_now(struct progress *p, uint64_t done);
void progress_end(struct progress *p); /* wipes the line */

uint64_t tool_now_ns(void); /* monotonic */

#endif
