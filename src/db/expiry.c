/* SPDX-License-Identifier: MIT */
#include "db/expiry.h"

#include "env/env.h"

uint64_t store_now(struct store *s)
{
    const uint64_t now = env_wall_us(s->env);
    uint64_t latest = atomic_load_explicit(&s->now_us, memory_order_relaxed);
    while (latest < now)
        if (atomic_compare_exchange_weak_explicit(&s->now_us, &latest, now, memory_order_relaxed,
                                                  memory_order_relaxed))
            return now;
    return latest;
}

tamiz_status expiry_judge(struct op *op, struct store *s, uint64_t *now_us, struct slice *value)
{
    uint64_t expires_us;
    if (!expiry_split(value, &expires_us))
        return op_fail(op, TAMIZ_CORRUPTION,
                       "%s: a value for a time: expected at least %d bytes, found %zu",
                       s->directory, EXPIRY_SIZE, value->size);
    if (*now_us == 0)
        *now_us = store_now(s);
    return expires_us <= *now_us ? TAMIZ_NOT_FOUND : TAMIZ_OK;
}

tamiz_status expiry_answer(struct op *op, struct store *s, uint64_t *now_us, uint64_t stamp,
                           struct slice *value)
{
    if (stamp_kind(stamp) != KIND_EXPIRING)
        return TAMIZ_NOT_FOUND; /* a tombstone */
    const tamiz_status st = expiry_judge(op, s, now_us, value);
    if (st == TAMIZ_NOT_FOUND)
        op_step(op, &(const tamiz_step_info){
                        .kind = TAMIZ_STEP_EXPIRED, .level = -1, .text = "", .filter = ""});
    return st;
}
