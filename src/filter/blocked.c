/* SPDX-License-Identifier: MIT
 *
 * The cache-local Bloom filter: the key first chooses one line of 512 bits, and all of its k bits
 * are in it. A query is one cache miss, whatever k is.
 *
 *     key --> line     | 512 | 512 | 512 | 512 | ...
 *                                \__ . . 1 . . 1 1 . . . 1 . 1     k bits of this line
 *
 * The price: lines are not equally full. Their number of keys is binomial, the rate is the mean
 * over it, and at 10 bits a key that is 0.96 % where the plain filter has 0.82 %.
 *
 * F. Putze, P. Sanders, J. Singler, "Cache-, hash- and space-efficient Bloom filters", 2007. The
 * probing of eight bits at once follows the idea of P. Dillinger's filter in RocksDB (2019).
 *
 * The line is chosen by the upper bits of the mixed hash, so that a build, which gets them sorted,
 * walks the lines in order. Bit i is the upper 9 bits of (lower 32 bits of the mixed hash) times an
 * odd constant of its own: eight multiplications, eight shifts and eight looks in one instruction
 * each, where AVX2 is there; AVX-512 has the whole line in one register.
 *
 *   payload: lines of 64 bytes; bit b of a line is bit b % 8 of its byte b / 8.
 *   parameters: [0] k.
 */
#include <math.h>

#include "filter/blocked.h"
#include "base/fetch.h"
#include "filter/theory.h"

enum { DEFAULT_BITS = 10 };

const uint32_t blocked_multipliers[K_MAX] = {
    0xe220a839, 0x6e789e6b, 0x06c45d19, 0xf88bb8a9, 0x1b39896b, 0x53cb9f0d, 0x2c829abf, 0xc584133b,
    0x3ee57891, 0xf3b8488d, 0x657eecdd, 0xc2d326e1, 0x8621a03f, 0x8e1f7555, 0xb54e0f17, 0x84bb3f97,
    0x7d29825d, 0xc3cf1711, 0x3466e9a1, 0xd81a8d2b, 0xdb01602b, 0xa9038a93, 0xedf5f1d9, 0x54496ad7,
};

/* The rate over k has one minimum, a little below bits a key times ln 2: downhill from there. */
static unsigned best_k(double keys, double lines, double *fpr)
{
    const double guess = lines * LINE_BITS / (keys > 0 ? keys : 1) * LN2 * 0.85;
    const unsigned first = guess < 1 ? 1 : guess > K_MAX ? K_MAX : (unsigned)guess;
    unsigned k = first;
    *fpr = theory_lines_fpr(keys, lines, LINE_BITS, k);
    for (int step = 1; step >= -1 && k == first; step -= 2)
        for (unsigned next = k + (unsigned)step; next >= 1 && next <= K_MAX;
             next += (unsigned)step) {
            const double rate = theory_lines_fpr(keys, lines, LINE_BITS, next);
            if (rate >= *fpr)
                break;
            *fpr = rate;
            k = next;
        }
    return k;
}

static double lines_for_bits(double keys, double per_key)
{
    const double lines = ceil(keys * per_key / LINE_BITS - 1e-9);
    return lines < 1 ? 1 : lines;
}

/* The fewest lines whose best k reaches `fpr`: bisection, as the rate falls with their number. */
static double lines_for_rate(double keys, double fpr)
{
    double enough = lines_for_bits(keys, 64), few = 0, rate;
    while (enough - few > 1 && (enough - few) > enough * 1e-4) {
        const double middle = floor((enough + few) / 2);
        best_k(keys, middle, &rate);
        if (rate <= fpr)
            enough = middle;
        else
            few = middle;
    }
    return enough;
}

tamiz_status blocked_plan(struct op *op, const tamiz_filter_policy *policy, uint64_t keys,
                          struct filter_plan *plan)
{
    const double n = (double)keys;
    const double per_key = policy->bits_per_key > 0 ? policy->bits_per_key : DEFAULT_BITS;
    const double lines =
        policy->fpr > 0 ? lines_for_rate(n, policy->fpr) : lines_for_bits(n, per_key);
    if (lines > (double)UINT32_MAX) /* beyond, line and bits would share bits of the hash */
        return filter_too_large(op, keys, lines * LINE_BITS / n);
    plan->payload_bytes = (uint64_t)lines * LINE_BYTES;
    plan->parameters[0] = best_k(n, lines, &plan->expected_fpr);
    return TAMIZ_OK;
}

/* The mean of (share of set bits)^k over the lines as they are. */
double blocked_rate(const struct filter_view *view)
{
    const uint8_t *payload = view->payload;
    const uint64_t payload_bytes = view->payload_bytes;
    const unsigned k = view->parameters[0];
    uint64_t lines_with[LINE_BITS + 1] = {0};
    for (uint64_t at = 0; at < payload_bytes; at += LINE_BYTES)
        lines_with[filter_count_bits(payload + at, LINE_BYTES)]++;
    double sum = 0;
    for (unsigned set = 0; set <= LINE_BITS; set++)
        if (lines_with[set])
            sum += (double)lines_with[set] * theory_power(set / (double)LINE_BITS, k);
    return sum * LINE_BYTES / (double)payload_bytes;
}

/* true: they were set already. */
static inline bool set_in_line(uint8_t *line, uint64_t mixed, unsigned k)
{
    uint64_t was = 1;
    for (unsigned i = 0; i < k; i++) {
        const uint32_t bit = bit_of(mixed, i);
        uint8_t *word = line + (bit >> 6) * 8;
        const uint64_t before = load_u64(word);
        was &= before >> (bit & 63);
        store_u64(word, before | UINT64_C(1) << (bit & 63));
    }
    return was;
}

tamiz_status blocked_build(struct op *op, struct filter_plan *plan, const uint64_t *mixed, size_t n,
                           uint8_t *payload)
{
    (void)op;
    for (size_t i = 0; i < n; i++)
        (void)set_in_line(payload + line_of(mixed[i], plan->payload_bytes), mixed[i],
                          plan->parameters[0]);
    return TAMIZ_OK;
}

/* The lines of the hashes AHEAD are fetched, as those before are written. */
size_t blocked_build_loose(const struct alloc *alloc, const struct filter_plan *plan,
                           const uint64_t *hashes, size_t n, uint8_t *payload, uint64_t *seen,
                           size_t room)
{
    (void)alloc; /* all it needs is the payload */
    const uint64_t bytes = plan->payload_bytes;
    uint64_t mixed[AHEAD] = {0};
    size_t count = 0;
    for (size_t i = 0; i < n + AHEAD; i++) {
        const uint64_t old = mixed[i % AHEAD];
        if (i < n) {
            mixed[i % AHEAD] = filter_mix(hashes[i], plan->seed);
            fetch_line_to_write(payload + line_of(mixed[i % AHEAD], bytes));
        }
        if (i >= AHEAD &&
            __builtin_expect(set_in_line(payload + line_of(old, bytes), old, plan->parameters[0]),
                             0) &&
            count++ < room)
            seen[count - 1] = hashes[i - AHEAD];
    }
    return count;
}

static bool line_set(const uint8_t *line, uint32_t low, unsigned k)
{
    for (unsigned j = 0; j < k; j++) {
        const uint32_t bit = bit_of(low, j);
        if (!(line[bit >> 3] >> (bit & 7) & 1))
            return false;
    }
    return true;
}

static bool blocked_may_contain(const struct filter_view *view, uint64_t hash)
{
    const uint64_t mixed = filter_mix(hash, view->seed);
    return line_set(view->payload + line_of(mixed, view->payload_bytes), (uint32_t)mixed,
                    view->parameters[0]);
}

void blocked_prefetch(const struct filter_view *view, uint64_t hash)
{
    fetch_line(view->payload + line_of(filter_mix(hash, view->seed), view->payload_bytes));
}

void blocked_story(const struct filter_view *view, uint64_t hash, struct buf *out)
{
    struct filter_bits_story story = {0};
    const uint64_t mixed = filter_mix(hash, view->seed);
    const uint64_t line = line_of(mixed, view->payload_bytes);
    buf_printf(out, "line %llu of %llu, of its 512 bits", (unsigned long long)line / LINE_BYTES,
               (unsigned long long)view->payload_bytes / LINE_BYTES);
    for (unsigned j = 0; j < view->parameters[0]; j++) {
        const uint32_t bit = bit_of(mixed, j);
        filter_story_bit(&story, out, bit, view->payload[line + (bit >> 3)] >> (bit & 7) & 1);
    }
    filter_story_bits_end(&story, out);
}

void blocked_describe(const struct filter_view *view, tamiz_filter_info *info)
{
    info->hashes = view->parameters[0];
    info->fill = (double)filter_count_bits(view->payload, view->payload_bytes) /
                 (double)(view->payload_bytes * 8);
}

tamiz_status blocked_open(struct op *op, struct filter_view *view)
{
    const uint64_t lines = view->payload_bytes / LINE_BYTES;
    if (lines == 0 || lines > UINT32_MAX || view->payload_bytes % LINE_BYTES)
        return op_fail(op, TAMIZ_CORRUPTION, "filter blocked: %llu bytes: want lines of %d",
                       (unsigned long long)view->payload_bytes, LINE_BYTES);
    if (view->parameters[0] < 1 || view->parameters[0] > K_MAX)
        return op_fail(op, TAMIZ_CORRUPTION, "filter blocked: k=%u: want 1..%d",
                       view->parameters[0], K_MAX);
    return TAMIZ_OK;
}

const struct filter_family filter_blocked = {
    BLOCKED_FACES,
    .build_loose = blocked_build_loose,
    .may_contain = blocked_may_contain,
    .better = BLOCKED_BETTER,
};

/* ---- asked by line (filter/lines.h) ---- */

struct filter_lines filter_lines_of(const struct filter_view *view)
{
    return view->family && view->family->id == filter_blocked.id && view->seed == 0
               ? (struct filter_lines){view->payload, (uint32_t)(view->payload_bytes / LINE_BYTES),
                                       view->parameters[0]}
               : (struct filter_lines){NULL, 0, 0};
}

uint64_t filter_lines_ask(const struct filter_line *lines, size_t n)
{
#if defined(BLOCKED_X86)
    if (filter_has_avx512())
        return blocked_ask_avx512(lines, n);
    if (filter_has_avx2())
        return blocked_ask_avx2(lines, n);
#elif defined(BLOCKED_NEON)
    return blocked_ask_neon(lines, n);
#endif
    return blocked_ask(line_set, lines, n);
}
