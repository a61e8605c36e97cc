/* SPDX-License-Identifier: MIT
 *
 * Which bytes the keys of a table are made of, and so how far between two fences a key stands. Keys
 * rarely use all of a byte: numbers as text count to ten in each. So eight bytes are read as a
 * number of eight digits, of as many kinds as there are bytes between the least and the most, and
 * places between two numbers are a division ("interpolation search": W. W. Peterson, "Addressing
 * for random-access storage", 1957). A guess: good for what only costs time.
 */
#ifndef TAMIZ_TABLE_ALPHABET_H
#define TAMIZ_TABLE_ALPHABET_H

#include <stdint.h>

struct alphabet {
    uint8_t least, most; /* least > most: nothing learnt */
};

#define ALPHABET_EMPTY ((struct alphabet){UINT8_MAX, 0})

/* Learns from eight bytes of a fence, the first one highest. */
void alphabet_learn(struct alphabet *alphabet, uint64_t bytes);

enum { PART_WHOLE = 1 << 16 };
/* How far from `before` to `behind` the eight bytes of `key` are: 0 to PART_WHOLE. */
uint32_t alphabet_part(struct alphabet alphabet, uint64_t before, uint64_t key, uint64_t behind);

#endif
