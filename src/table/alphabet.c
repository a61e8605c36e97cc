/* SPDX-License-Identifier: MIT */
#include "table/alphabet.h"

#include <string.h>

void alphabet_learn(struct alphabet *alphabet, uint64_t bytes)
{
    for (; bytes; bytes >>= 8) {
        const uint8_t byte = (uint8_t)bytes;
        /* 0 is left out: behind a shortened fence it is no byte at all. */
        alphabet->least = byte && byte < alphabet->least ? byte : alphabet->least;
        alphabet->most = byte > alphabet->most ? byte : alphabet->most;
    }
}

typedef uint8_t bytes8 __attribute__((vector_size(8)));

/* Each byte as a digit, what lies outside of the alphabet as its first or last. */
static uint64_t digits_of(struct alphabet a, uint64_t bytes)
{
    const bytes8 least = (bytes8){0} + a.least, most = (bytes8){0} + a.most;
    bytes8 d;
    memcpy(&d, &bytes, sizeof d);
    const bytes8 below = (bytes8)(d < least), above = (bytes8)(d > most);
    d = ((d & ~below & ~above) | (least & below) | (most & above)) - least;
    memcpy(&bytes, &d, sizeof bytes);
    return bytes;
}

/* The eight digits as a number: neighbours become one digit of radix^2, then radix^4. */
static uint64_t number_of(struct alphabet a, uint64_t bytes)
{
    const uint64_t radix = (uint64_t)(a.most - a.least) + 1, square = radix * radix;
    const uint64_t pairs = UINT64_C(0x00ff00ff00ff00ff), fours = UINT64_C(0x0000ffff0000ffff);
    uint64_t n = digits_of(a, bytes);
    n = (n >> 8 & pairs) * radix + (n & pairs);
    n = (n >> 16 & fours) * square + (n & fours);
    return (n >> 32) * square * square + (uint32_t)n;
}

uint32_t alphabet_part(struct alphabet alphabet, uint64_t before, uint64_t key, uint64_t behind)
{
    if (alphabet.most <= alphabet.least)
        return 0;
    const uint64_t from = number_of(alphabet, before);
    const uint64_t far = number_of(alphabet, key) - from;
    const uint64_t whole = number_of(alphabet, behind) - from;
    if (far >= whole)
        return whole ? PART_WHOLE : 0;
    return (uint32_t)(whole >> 47 ? far / (whole / PART_WHOLE) : far * PART_WHOLE / whole);
}
