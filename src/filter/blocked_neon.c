/* SPDX-License-Identifier: MIT
 *
 * The blocked filter (blocked.c) asked with NEON, which every AArch64 has: a line is a table of 64
 * bytes in four registers, and one instruction looks up eight of them.
 */
#include "filter/blocked.h"

#if defined(BLOCKED_NEON)
#include <arm_neon.h>

enum { LANES = 8 };

/* The numbers of bits first to first + 3 of a key. */
static inline uint16x4_t four_bits(uint32_t low, unsigned first)
{
    return vshrn_n_u32(vshrq_n_u32(vmulq_n_u32(vld1q_u32(blocked_multipliers + first), low), 16),
                       7);
}

static inline bool eight_set(uint8x16x4_t line, uint32_t low, unsigned first, unsigned k)
{
    static const uint8_t lane_ones[2 * LANES] = {1, 1, 1, 1, 1, 1, 1, 1};
    const unsigned lanes = k - first < LANES ? k - first : LANES;
    const uint16x8_t bits = vcombine_u16(four_bits(low, first), four_bits(low, first + 4));
    const uint8x8_t bytes = vqtbl4_u8(line, vshrn_n_u16(bits, 3));
    const uint8x8_t in_byte = vand_u8(vmovn_u16(bits), vdup_n_u8(7));
    const uint8x8_t wanted =
        vshl_u8(vld1_u8(lane_ones + LANES - lanes), vreinterpret_s8_u8(in_byte));
    return vmaxv_u8(vbic_u8(wanted, bytes)) == 0;
}

static bool line_set_neon(const uint8_t *line, uint32_t low, unsigned k)
{
    const uint8x16x4_t bytes = vld1q_u8_x4(line);
    bool set = eight_set(bytes, low, 0, k);
    for (unsigned first = LANES; set && first < k; first += LANES)
        set = eight_set(bytes, low, first, k);
    return set;
}

static bool may_contain_neon(const struct filter_view *view, uint64_t hash)
{
    const uint64_t mixed = filter_mix(hash, view->seed);
    return line_set_neon(view->payload + line_of(mixed, view->payload_bytes), (uint32_t)mixed,
                         view->parameters[0]);
}

static void many_neon(const struct filter_view *view, const uint64_t *hashes, size_t n, bool *maybe)
{
    blocked_many(line_set_neon, view, hashes, n, maybe);
}

uint64_t blocked_ask_neon(const struct filter_line *lines, size_t n)
{
    return blocked_ask(line_set_neon, lines, n);
}

static bool always(void)
{
    return true;
}

const struct filter_family blocked_neon = {
    BLOCKED_FACES,
    .build_loose = blocked_build_loose,
    .may_contain = may_contain_neon,
    .may_contain_many = many_neon,
    .usable = always,
};

#else
typedef int blocked_neon_is_empty; /* a file has to have something in it */
#endif
