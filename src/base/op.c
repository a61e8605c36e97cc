/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* strerror_r */
#define TAMIZ_OP_C
#include "base/op.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The detail of this thread's last failed call. */
static _Thread_local char detail[OP_TEXT_MAX];

void counters_sum(struct counters *to, const struct counters *from)
{
    static_assert(sizeof *to % sizeof(counter) == 0, "only counters, so that summing is a loop");
    counter *t = (counter *)to;
    const counter *f = (const counter *)from;
    for (size_t i = 0; i < sizeof *to / sizeof(counter); i++)
        counter_add(&t[i], counter_get(&f[i]));
}

void counters_clear(struct counters *c)
{
    counter *at = (counter *)c;
    for (size_t i = 0; i < sizeof *c / sizeof *at; i++)
        atomic_store_explicit(&at[i], 0, memory_order_relaxed);
}

/* A story that is too long, as with a path of thousands of bytes, loses its middle: the reason
 * stands at its end. */
static void tell_story(char out[OP_TEXT_MAX], const char *format, va_list args)
{
    enum { WHOLE = 8192, HEAD = 120 };
    static const char gap[] = " ... ";
    char whole[WHOLE];
    const int wanted = vsnprintf(whole, sizeof whole, format, args);
    const size_t size = wanted < 0                ? 0
                        : (size_t)wanted >= WHOLE ? (size_t)WHOLE - 1
                                                  : (size_t)wanted;
    if (size < OP_TEXT_MAX) {
        memcpy(out, whole, size);
        out[size] = 0;
        return;
    }
    const size_t tail = OP_TEXT_MAX - 1 - HEAD - (sizeof gap - 1);
    memcpy(out, whole, HEAD);
    memcpy(out + HEAD, gap, sizeof gap - 1);
    memcpy(out + HEAD + sizeof gap - 1, whole + size - tail, tail);
    out[OP_TEXT_MAX - 1] = 0;
}

tamiz_status op_fail(struct op *op, tamiz_status status, const char *format, ...)
{
    if (op->status != TAMIZ_OK)
        return status;
    op->status = status;
    va_list args;
    va_start(args, format);
    tell_story(op->text, format, args);
    va_end(args);
    return status;
}

static tamiz_status status_of_errno(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT: return TAMIZ_NO_SPACE;
    case ENOMEM: return TAMIZ_OUT_OF_MEMORY;
    default: return TAMIZ_IO_ERROR;
    }
}

tamiz_status op_fail_os(struct op *op, int error, const char *what, const char *path)
{
    const int positive = error < 0 ? -error : error;
    const tamiz_status status = status_of_errno(positive);
    if (op->status == TAMIZ_OK) {
        op->os_error = positive;
        char words[128];
        if (strerror_r(positive, words, sizeof words) != 0)
            (void)snprintf(words, sizeof words, "error");
        op_fail(op, status, "%s: %s: %s (errno %d)", path, what, words, positive);
    }
    return status;
}

tamiz_status op_fail_memory(struct op *op)
{
    return op_fail(op, TAMIZ_OUT_OF_MEMORY, "out of memory");
}

void op_forgive(struct op *op)
{
    op->status = TAMIZ_OK;
    op->os_error = 0;
    op->text[0] = 0;
}

void op_tell(struct op *op, const tamiz_step_info *step)
{
    tamiz_step_info told = *step;
    if (!told.text)
        told.text = "";
    if (!told.filter)
        told.filter = "";
    told.key = op->subject.data;
    told.key_size = op->subject.size;
    op->trace->step(op->trace->ctx, &told);
}

tamiz_status op_publish(const struct op *op, tamiz_status status)
{
    if (status < 0 || (status > 0 && op->status == status)) {
        const char *text =
            op->status != TAMIZ_OK && op->text[0] ? op->text : tamiz_status_name(status);
        (void)snprintf(detail, sizeof detail, "%s", text);
    }
    return status;
}

tamiz_status op_refuse(tamiz_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tell_story(detail, format, args);
    va_end(args);
    return status;
}

const char *tamiz_error_detail(void)
{
    return detail;
}

const char *tamiz_status_name(tamiz_status status)
{
    switch (status) {
    case TAMIZ_OK: return "TAMIZ_OK";
    case TAMIZ_NOT_FOUND: return "TAMIZ_NOT_FOUND";
    case TAMIZ_INVALID_ARGUMENT: return "TAMIZ_INVALID_ARGUMENT";
    case TAMIZ_IO_ERROR: return "TAMIZ_IO_ERROR";
    case TAMIZ_NO_SPACE: return "TAMIZ_NO_SPACE";
    case TAMIZ_CORRUPTION: return "TAMIZ_CORRUPTION";
    case TAMIZ_BUSY: return "TAMIZ_BUSY";
    case TAMIZ_NOT_SUPPORTED: return "TAMIZ_NOT_SUPPORTED";
    case TAMIZ_OUT_OF_MEMORY: return "TAMIZ_OUT_OF_MEMORY";
    case TAMIZ_READ_ONLY: return "TAMIZ_READ_ONLY";
    case TAMIZ_CLOSED: return "TAMIZ_CLOSED";
    }
    return "TAMIZ_UNKNOWN";
}

const char *tamiz_version(void)
{
    return TAMIZ_VERSION;
}

/* The words of each step, in the order of the enumeration. */
static const char *const step_words[] = {
    [TAMIZ_STEP_MEMTABLE] = "look in a memtable",
    [TAMIZ_STEP_MEMTABLE_FILTER] = "memtable filter: definitely absent",
    [TAMIZ_STEP_OUTSIDE_RANGE] = "no table of this run spans the key",
    [TAMIZ_STEP_FILTER_NEGATIVE] = "filter: definitely absent",
    [TAMIZ_STEP_FILTER_MAYBE] = "filter: maybe present",
    [TAMIZ_STEP_NO_FILTER] = "no filter to ask",
    [TAMIZ_STEP_INDEX] = "index: one block could have it",
    [TAMIZ_STEP_BLOCK_CACHED] = "block from the cache",
    [TAMIZ_STEP_BLOCK_DEVICE] = "block read from the device",
    [TAMIZ_STEP_FOUND] = "found",
    [TAMIZ_STEP_TOMBSTONE] = "deleted here: the search ends",
    [TAMIZ_STEP_ABSENT_IN_BLOCK] = "not in the block: this read was wasted",
    [TAMIZ_STEP_RANGE_TOMBSTONE] = "deleted here with its range: the search ends",
    [TAMIZ_STEP_PREFIX_NEGATIVE] = "prefix filter: definitely nothing in the range",
    [TAMIZ_STEP_PREFIX_MAYBE] = "prefix filter: maybe something in the range",
    [TAMIZ_STEP_NO_PREFIX_FILTER] = "no prefix filter to ask",
    [TAMIZ_STEP_EXPIRED] = "expired: the search ends",
};

const char *tamiz_step_text(tamiz_step_kind kind)
{
    return (unsigned)kind < TAMIZ_STEP_COUNT ? step_words[kind] : "";
}
