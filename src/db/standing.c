/* SPDX-License-Identifier: MIT */
#include "db/standing.h"

#include <stdio.h>

enum {
    RETRY_FIRST_MS = 50, /* doubled with each failure in a row */
    RETRY_LAST_MS = 5000,
};

void stand(struct store *s, struct standing_error *e, const struct op *op, tamiz_status st,
           const char *what)
{
    e->status = st;
    (void)snprintf(e->text, sizeof e->text, "%s", op->text);
    store_event(s, TAMIZ_EVENT_BACKGROUND_ERROR, "%s: %s: %s", what, tamiz_status_name(st),
                op->text);
}

uint64_t retry_at(const struct store *s, uint32_t failures)
{
    uint64_t ms = RETRY_FIRST_MS;
    for (uint32_t i = 1; i < failures && ms < RETRY_LAST_MS; i++)
        ms *= 2;
    return env_monotonic_ns(s->env) + (ms < RETRY_LAST_MS ? ms : RETRY_LAST_MS) * 1000000;
}
