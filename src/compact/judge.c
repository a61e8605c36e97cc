/* SPDX-License-Identifier: MIT */
#include "compact/judge.h"

#include "base/expiry.h"

/* What the filter says besides its verdict: the new value, behind the moment that the old one had.
 */
struct tamiz_change {
    struct judge *judge;
    size_t head; /* bytes that stay as they are before the user's */
    bool given;
    tamiz_status status; /* the first thing that was wrong */
};

tamiz_status tamiz_change_value(tamiz_change *change, const void *value, size_t size)
{
    if (!change || (!value && size))
        return op_refuse(TAMIZ_INVALID_ARGUMENT, "compaction filter: a change or value of NULL");
    struct buf *to = &change->judge->value;
    if (size > VALUE_SIZE_MAX - change->head) {
        change->status = TAMIZ_INVALID_ARGUMENT;
        return op_refuse(TAMIZ_INVALID_ARGUMENT,
                         "compaction filter: a value of %zu bytes: want at most %zu", size,
                         (size_t)VALUE_SIZE_MAX - change->head);
    }
    to->size = change->head;
    buf_append(to, value, size);
    change->given = !to->failed;
    if (!to->failed)
        return TAMIZ_OK;
    to->failed = false;
    change->status = TAMIZ_OUT_OF_MEMORY;
    return op_refuse(TAMIZ_OUT_OF_MEMORY, "out of memory");
}

static tamiz_status refuse(struct op *op, const struct judge *j, struct slice key, const char *what)
{
    char text[100];
    return op_fail(op, TAMIZ_INVALID_ARGUMENT, "compaction filter of keyspace %s, key %s: %s",
                   j->keyspace, slice_print(key, text, sizeof text), what);
}

static tamiz_status obey(struct op *op, struct judge *j, const struct tamiz_change *change,
                         tamiz_verdict verdict, struct slice key, uint64_t *stamp,
                         struct slice *value)
{
    if (change->status == TAMIZ_OUT_OF_MEMORY)
        return op_fail_memory(op);
    if (change->status != TAMIZ_OK)
        return refuse(op, j, key, "the new value is too long");
    switch (verdict) {
    case TAMIZ_KEEP: return TAMIZ_OK;
    case TAMIZ_DROP:
        *stamp = stamp_of(stamp_seq(*stamp), KIND_DELETE);
        *value = slice_of(NULL, 0);
        j->dropped++;
        return TAMIZ_OK;
    case TAMIZ_CHANGE:
        if (!change->given)
            return refuse(op, j, key, "a change without a value");
        *value = buf_slice(&j->value);
        j->changed++;
        return TAMIZ_OK;
    }
    return refuse(op, j, key, "none of its verdicts");
}

tamiz_status judge_version(struct op *op, struct judge *j, struct slice key, uint64_t *stamp,
                           struct slice *value)
{
    struct slice shown = *value;
    struct tamiz_change change = {.judge = j};
    uint64_t expires_us = 0;
    buf_clear(&j->value);
    if (stamp_kind(*stamp) == KIND_EXPIRING && expiry_split(&shown, &expires_us)) {
        change.head = EXPIRY_SIZE;
        buf_append(&j->value, value->data, EXPIRY_SIZE);
    }
    if (j->value.failed)
        return op_fail_memory(op);
    const tamiz_merged entry = {.struct_size = sizeof entry,
                                .keyspace = j->keyspace,
                                .key = key.data,
                                .key_size = key.size,
                                .value = shown.data,
                                .value_size = shown.size,
                                .expires_us = expires_us,
                                .level = j->level};
    const tamiz_verdict verdict = j->filter.judge(j->filter.ctx, &entry, &change);
    return obey(op, j, &change, verdict, key, stamp, value);
}

void judge_free(struct judge *j)
{
    buf_free(&j->value);
}
