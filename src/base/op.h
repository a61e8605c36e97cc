/* SPDX-License-Identifier: MIT
 *
 * What one operation carries down through the floors: the record of its first error, the counters
 * it adds to, the trace it tells, and the memory it uses. A counter is a trace step with the sink
 * switched off: op_step() does both, so that statistics and explanations come from the same line
 * and cannot disagree.
 */
#ifndef TAMIZ_BASE_OP_H
#define TAMIZ_BASE_OP_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/slice.h"
#include "tamiz/options.h"
#include "tamiz/trace.h"

/* Written by one thread at a time, read by any: relaxed, and no locked instruction. */
typedef _Atomic uint64_t counter;

static inline void counter_add(counter *c, uint64_t n)
{
#ifdef TAMIZ_NO_LEDGER /* what counting costs: the build to compare with */
    (void)c, (void)n;
    return;
#endif
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline uint64_t counter_get(const counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

enum io_purpose { IO_DATA, IO_INDEX, IO_FILTER, IO_META, IO_LOG, IO_COMPACTION, IO_PURPOSES };

struct io_counters {
    counter reads, read_bytes, writes, write_bytes;
};

struct level_counters {
    counter steps[TAMIZ_STEP_COUNT]; /* by kind of step */
    counter true_positives;          /* filter said maybe, and the table knew the key          */
    counter false_positives;         /* filter said maybe, and the table did not         */
    counter expected_fp_1e9; /* sum of the probed filters' expected rates where the key was absent,
                                × 1e9 */
    counter device_read_bytes;
    counter prefix_false_positives; /* a prefix filter said maybe, and the table had nothing */
    /* Behind the estimate of device reads avoided: db/ledger.c. */
    counter outside_range, answered_above; /* filters not asked, and why: from sampled reads */
    counter twin, avoided, avoided_linear, avoided_squares;
};

/* One thread's part of a store's statistics. All 64-bit counters, so that summing is a loop. */
struct counters {
    counter gets, gets_found, memtable_hits;
    counter seeks; /* no statistic: what compact/toll.h is asked with */
    counter
        quiet_until; /* no statistic: below so many gets the ledger wants no read of this slot */
    counter syncs, stalls, stall_us;
    counter stall_flush_us, stall_level0_us, stall_debt_us; /* the same, by reason */
    counter flushes, flush_bytes_in, flush_bytes_out;
    counter compactions, compaction_bytes_in, compaction_bytes_out;
    counter checkpoints, backups, copied_bytes_linked, copied_bytes;
    counter ingests, ingested_tables, ingested_bytes_linked, ingested_bytes_copied;
    counter background_us, filter_build_us; /* flushes and merges; building filters, of that */
    counter tables_dropped;                 /* inside a range delete, unread */
    counter judged_dropped, judged_changed, judged_again; /* by compaction filters */
    counter followed_squares;                             /* of the ledger: db/ledger.c */
    counter filter_audits, filter_denials; /* negatives really looked into; and found wrong */
    struct io_counters io[IO_PURPOSES];
    struct level_counters memtables; /* steps with no level */
    struct level_counters level[TAMIZ_LEVELS];
};

/* Adds each counter of `from` to `to`. */
void counters_sum(struct counters *to, const struct counters *from);
void counters_clear(struct counters *c);

enum { OP_TEXT_MAX = 400 };
#define OP_NO_SEAT UINT32_MAX

struct op {
    tamiz_status status; /* the first failure's, or TAMIZ_OK      */
    int os_error;        /* its errno, or 0                       */
    const struct alloc *alloc;
    struct counters *count;   /* never NULL, owned by this operation while it runs */
    uint32_t seat;            /* of an epoch slot's operation, its number; else OP_NO_SEAT */
    const tamiz_trace *trace; /* NULL: nobody listens              */
    struct slice subject;     /* where somebody listens: of many keys, the one that is worked on */
    uint64_t subject_hash;  /* … and the hash of the key, of many or one                       */
    char text[OP_TEXT_MAX]; /* valid where status is not OK       */
};

/* Leaves `text` as it is: an operation that does not fail pays nothing for it. */
static inline void op_init(struct op *op, const struct alloc *alloc, struct counters *count)
{
    op->status = TAMIZ_OK;
    op->os_error = 0;
    op->alloc = alloc;
    op->count = count;
    op->seat = OP_NO_SEAT;
    op->trace = NULL;
    op->text[0] = 0;
}

/* Where every error is born. Records status and text unless an earlier failure already told its
 * story; returns `status`. */
tamiz_status op_fail(struct op *op, tamiz_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));
/* The same for a negative errno of `env`; ENOSPC and EDQUOT become TAMIZ_NO_SPACE, ENOMEM
 * TAMIZ_OUT_OF_MEMORY, the rest TAMIZ_IO_ERROR. */
tamiz_status op_fail_os(struct op *op, int error, const char *what, const char *path)
    __attribute__((cold));
tamiz_status op_fail_memory(struct op *op) __attribute__((cold));
/* Forgets a failure that was dealt with, so that the next one is recorded. */
void op_forgive(struct op *op);

/* TRY(expr): leaves by the one label on what is wrong; an ordinary "no" flows on. Needs
 * `tamiz_status st` and `done:`. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        st = (expr);                                                                               \
        if (st < 0)                                                                                \
            goto done;                                                                             \
    } while (0)

/* NULL: nobody. */
static inline void op_listen(struct op *op, const tamiz_trace *trace)
{
    op->trace = trace;
    if (trace)
        op->subject = slice_of(NULL, 0);
}

void op_tell(struct op *op, const tamiz_step_info *step); /* the slow half of op_step */

/* One decision of a read: counted at its level (-1: memtables), told where somebody listens. */
static inline void op_step(struct op *op, const tamiz_step_info *step)
{
    struct level_counters *at =
        step->level < 0 ? &op->count->memtables : &op->count->level[step->level];
    counter_add(&at->steps[step->kind], 1);
    if (__builtin_expect(op->trace != NULL, 0))
        op_tell(op, step);
}

/* The calling thread's detail, for tamiz_error_detail(): only public functions call this, on their
 * way out. */
tamiz_status op_publish(const struct op *op, tamiz_status status);
/* The same for a failure that has no op: bad arguments. */
tamiz_status op_refuse(tamiz_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* They return the status they are given. The analyzer sees one file at a time and has to be told,
 * or it follows failures on as if nothing had happened. */
#if defined(__clang_analyzer__) && !defined(TAMIZ_OP_C)
#define op_fail(op, status, ...) ((void)op_fail(op, status, __VA_ARGS__), (status))
#define op_refuse(status, ...)   ((void)op_refuse(status, __VA_ARGS__), (status))
#define op_fail_memory(op)       ((void)op_fail_memory(op), TAMIZ_OUT_OF_MEMORY)
#endif

#endif
