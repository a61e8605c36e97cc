/* SPDX-License-Identifier: MIT
 *
 * A picture of a filter's bits. First the beginning, bit by bit: a character shows 2 x 2 bits,
 *
 *     bit 0  bit 1      ▘ = 1, ▝ = 2, ▖ = 4, ▗ = 8, and their sums
 *     bit 2  bit 3
 *
 * with 128 bits a row, so that two rows of bits make one line of 64 characters. Then the whole
 * filter in 64 equal parts, each a bar of how many of its bits are set: a good filter is even, and
 * about half full if it is a Bloom filter at its best.
 */
#include "filter.h"

static const size_t row_bits = 128, lines_max = 16, parts = 64;

static bool bit_at(const unsigned char *bits, size_t size, size_t index)
{
    return index / 8 < size && (bits[index / 8] >> (index % 8) & 1);
}

static void line_draw(struct text *out, const unsigned char *bits, size_t size, size_t first)
{
    static const char *const quadrants[16] = {" ", "▘", "▝", "▀", "▖", "▌", "▞", "▛",
                                              "▗", "▚", "▐", "▜", "▄", "▙", "▟", "█"};
    text_word(out, "  |");
    for (size_t x = 0; x < row_bits; x += 2) {
        const size_t upper = first + x, lower = upper + row_bits;
        const unsigned set =
            (unsigned)bit_at(bits, size, upper) | (unsigned)bit_at(bits, size, upper + 1) << 1 |
            (unsigned)bit_at(bits, size, lower) << 2 | (unsigned)bit_at(bits, size, lower + 1) << 3;
        text_word(out, quadrants[set]);
    }
    text_word(out, "|\n");
}

/* Bits set in bytes from..end. */
static size_t bits_count(const unsigned char *bits, size_t from, size_t end)
{
    size_t set = 0;
    for (size_t i = from; i < end; i++)
        set += (size_t)__builtin_popcount(bits[i]);
    return set;
}

static void parts_draw(struct text *out, const unsigned char *bits, size_t size)
{
    static const char *const bars[9] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double least = 1, most = 0;
    text_word(out, "  |");
    for (size_t part = 0; part < parts; part++) {
        const size_t from = size * part / parts, end = size * (part + 1) / parts;
        const double full =
            end > from ? (double)bits_count(bits, from, end) / (8.0 * (double)(end - from)) : 0;
        least = full < least ? full : least;
        most = full > most ? full : most;
        text_word(out, bars[(size_t)(full * 8 + 0.5)]);
    }
    text_printf(out, "|\n  each 64th of the whole: %.1f %% to %.1f %% of its bits are set\n",
                least * 100, most * 100);
}

void bits_draw(struct text *out, const unsigned char *payload, size_t size)
{
    const size_t bits = size * 8;
    size_t lines = (bits + 2 * row_bits - 1) / (2 * row_bits);
    if (lines > lines_max)
        lines = lines_max;
    for (size_t i = 0; i < lines; i++)
        line_draw(out, payload, size, i * 2 * row_bits);
    const size_t shown = lines * 2 * row_bits < bits ? lines * 2 * row_bits : bits;
    text_word(out, "  the first ");
    count_show(out, shown);
    text_word(out, " of ");
    count_show(out, bits);
    text_word(out, " bits\n");
    if (size >= parts)
        parts_draw(out, payload, size);
}
