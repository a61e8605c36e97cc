/* SPDX-License-Identifier: MIT */
#include "db/standing.h"

#include <stdio.h>

enum {
    RETRY_FIRST_MS = 50, /* doubled with each failure in a row */
    RETRY_LAST_MS = 5000,
};

static uint64_t retry_at(const struct store *s, uint32_t failures)
{
    uint64_t ms = RETRY_FIRST_MS;
    for (uint32_t i = 1; i < failures && ms < RETRY_LAST_MS; i++)
        ms *= 2;
    return env_monotonic_ns(s->env) + (ms < RETRY_LAST_MS ? ms : RETRY_LAST_MS) * 1000000;
}

void standing_judge(struct store *s, struct standing_error *e, const struct op *op, tamiz_status st,
                    const char *what)
{
    if (st == TAMIZ_CLOSED)
        return;
    e->status = st;
    if (st == TAMIZ_OK) {
        e->failures = 0;
        e->retry_ns = 0;
        return;
    }
    e->failures++;
    e->retry_ns = retry_at(s, e->failures);
    (void)snprintf(e->text, sizeof e->text, "%s", op->text);
    store_event(s, TAMIZ_EVENT_BACKGROUND_ERROR, "%s: %s: %s", what, tamiz_status_name(st),
                op->text);
}

bool standing_is_due(const struct store *s, const struct standing_error *e)
{
    return e->retry_ns == 0 || env_monotonic_ns(s->env) >= e->retry_ns;
}
