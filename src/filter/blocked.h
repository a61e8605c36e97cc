/* SPDX-License-Identifier: MIT
 *
 * Where a key's line is, and which of its bits are the key's: what the ways of building and asking
 * a blocked filter share. The idea is drawn in blocked.c, which has the portable way; blocked_x86.c
 * and blocked_neon.c have others, which give the same bytes and answers.
 */
#ifndef TAMIZ_FILTER_BLOCKED_H
#define TAMIZ_FILTER_BLOCKED_H

#include "base/fetch.h"
#include "filter/family.h"
#include "filter/lines.h"

enum { LINE_BYTES = FILTER_LINE_BYTES, LINE_BITS = LINE_BYTES * 8, K_MAX = 24 };

/* Odd, without structure: the first 24 outputs of splitmix64 from 0, upper halves, made odd. */
extern const uint32_t blocked_multipliers[K_MAX];

/* The same as the number of a line times LINE_BYTES: a payload is whole lines. */
static inline uint64_t line_of(uint64_t mixed, uint64_t payload_bytes)
{
    return mul_high(mixed, payload_bytes) & ~(uint64_t)(LINE_BYTES - 1);
}

static inline uint32_t bit_of(uint64_t mixed, unsigned i)
{
    return ((uint32_t)mixed * blocked_multipliers[i]) >> 23;
}

/* Keys whose lines are on their way while others are written: at a few ns a key, longer than
 * memory takes. */
enum { AHEAD = 32 };

/* The faces that are the same in all ways. */
tamiz_status blocked_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                          struct filter_plan *plan);
tamiz_status blocked_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed, size_t n,
                           uint8_t *payload);
size_t blocked_build_loose(const struct alloc *alloc, const struct filter_plan *plan,
                           const uint64_t *hashes, size_t n, uint8_t *payload, uint64_t *seen,
                           size_t room);
tamiz_status blocked_open(struct op *op, struct filter_view *view);
void blocked_prefetch(const struct filter_view *view, uint64_t hash);
void blocked_story(const struct filter_view *view, uint64_t hash, struct buf *out);
double blocked_rate(const struct filter_view *view);
void blocked_describe(const struct filter_view *view, tamiz_filter_info *info);

#define BLOCKED_FACES                                                                              \
    .name = "blocked", .id = 2, .version = 1, .plan = blocked_plan, .build = blocked_build,        \
    .open = blocked_open, .story = blocked_story, .prefetch = blocked_prefetch,                    \
    .rate = blocked_rate, .describe = blocked_describe

/* Whether all k bits of a line are set; `low` is the lower half of the mixed hash. */
typedef bool ask_line(const uint8_t *line, uint32_t low, unsigned k);

enum { BLOCKED_BATCH = 32 };

/* may_contain_many of any way: all lines of a batch are named before the first is looked at. */
static inline __attribute__((always_inline)) void blocked_many(ask_line *ask,
                                                               const struct filter_view *view,
                                                               const uint64_t *hashes, size_t n,
                                                               bool *maybe)
{
    const uint64_t bytes = view->payload_bytes;
    for (size_t start = 0; start < n; start += BLOCKED_BATCH) {
        const size_t count = n - start < BLOCKED_BATCH ? n - start : BLOCKED_BATCH;
        const uint8_t *lines[BLOCKED_BATCH];
        uint32_t low[BLOCKED_BATCH];
        for (size_t i = 0; i < count; i++) {
            const uint64_t mixed = filter_mix(hashes[start + i], view->seed);
            lines[i] = view->payload + line_of(mixed, bytes);
            low[i] = (uint32_t)mixed;
            fetch_line(lines[i]);
        }
        for (size_t i = 0; i < count; i++)
            maybe[start + i] = ask(lines[i], low[i], view->parameters[0]);
    }
}

/* filter_lines_ask of any way. */
static inline __attribute__((always_inline)) uint64_t
blocked_ask(ask_line *ask, const struct filter_line *lines, size_t n)
{
    uint64_t maybe = 0;
    for (size_t i = 0; i < n; i++)
        maybe |= (uint64_t)ask(lines[i].line, lines[i].bits, lines[i].k) << i;
    return maybe;
}

/* The next way to try; NULL: none here. */
#if defined(__x86_64__) && defined(__GNUC__)
#define BLOCKED_X86 1
extern const struct filter_family blocked_avx2, blocked_avx512;
uint64_t blocked_ask_avx2(const struct filter_line *lines, size_t n);
uint64_t blocked_ask_avx512(const struct filter_line *lines, size_t n);
#define BLOCKED_BETTER &blocked_avx2
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define BLOCKED_NEON   1
extern const struct filter_family blocked_neon;
uint64_t blocked_ask_neon(const struct filter_line *lines, size_t n);
#define BLOCKED_BETTER &blocked_neon
#else
#define BLOCKED_BETTER NULL
#endif

#endif
